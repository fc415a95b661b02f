//! ACP, spoken as the agent: to a linked instance and to programs on this computer alike.
//!
//! A [`Device`] is what is served; each connection gets its own service from [`Device::serve`].
//! Wire forms are turned into the domain in `inbound` and back in `outbound`; what a client may ask
//! is judged by [`Limits`] at every request. Not here: frames and order (`rpc`), what sessions do
//! (`session`), what those limits are (`remote`).

mod asks;
mod capabilities;
mod changing;
mod connection;
mod error;
mod ext;
mod inbound;
mod keys;
mod limits;
mod opening;
mod outbound;
mod port;
mod prompt;
mod replay;
mod rules;
mod stream;

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};

pub use capabilities::{Capability, PROTOCOL, protocol};
pub use error::{BUSY, GONE, MONITOR, REFUSED, Refusal, SCHEDULED};
pub use inbound::good_parts;
pub use keys::{Again, Did, KEPT, KeyStore, Keys, MemoryKeys, Scope as KeyScope, Taken};
pub use limits::{Limits, Local, Lowered, RemoteWork, Schedule, existing};
pub use port::{Journal, OneSession, Page, Sessions};
pub use rules::Rules;

use crate::permission::Origin;
use crate::rpc::{Peer, Service};
use crate::rt::Tasks;
use crate::store::device::Store;

/// This computer, as it tells of itself in the handshake.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    pub id: String,
    pub name: String,
    pub os: String,
    pub arch: String,
    /// Of lembas.
    pub version: String,
    /// The person's home folder, so that a page can write `~`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub home: Option<String>,
    /// Of the spec that it carries.
    #[serde(skip)]
    pub spec: String,
}

/// The life of the numbers in the journals (link.md, Epoch).
pub trait Epoch: Send + Sync + 'static {
    fn current(&self) -> String;
    /// Somebody has seen numbers that this store never gave: what is here is an older state than
    /// what they saw, and must not be taken for its continuation. Answers the new epoch.
    fn renew(&self, why: &str) -> BoxFuture<'static, String>;
}

impl Epoch for Store {
    fn current(&self) -> String {
        self.epoch()
    }

    fn renew(&self, why: &str) -> BoxFuture<'static, String> {
        tracing::warn!(why, "the numbers of this store begin anew");
        let store = self.clone();
        async move {
            match store.renew_epoch().await {
                Ok(epoch) => epoch,
                Err(error) => {
                    tracing::error!(%error, "the new epoch could not be kept");
                    store.epoch()
                }
            }
        }
        .boxed()
    }
}

/// What the model API says of a model that a client names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    /// It is served, with these levels besides `default` (models/schema.json).
    Served { levels: Vec<String> },
    /// The list has no such model.
    NotServed,
    /// The list could not be had; whether it is served shows when it is asked.
    Unknown,
}

/// The models that sessions may be opened with.
pub trait Models: Send + Sync + 'static {
    /// Which one a session gets when its client, which knows none of ours, names none.
    fn default(&self, origin: &Origin) -> BoxFuture<'static, Option<String>>;

    /// Looks a name up (S3).
    fn named(&self, origin: &Origin, model: &str) -> BoxFuture<'static, Named>;
}

/// What a device is made of.
#[derive(Clone)]
pub struct Parts {
    pub sessions: Arc<dyn Sessions>,
    /// The gate of linked instances; programs on this computer go through [`Local`].
    pub limits: Arc<dyn Limits>,
    /// What only linked instances ask; none: there is no link.
    pub remote: Option<Arc<dyn RemoteWork>>,
    pub keys: Keys,
    pub models: Arc<dyn Models>,
    pub epoch: Arc<dyn Epoch>,
    /// What is allowed always.
    pub rules: Arc<dyn Rules>,
    /// Asked at each handshake: a name can change.
    pub about: Arc<dyn Fn() -> About + Send + Sync>,
}

/// What is served. Cheap to clone.
#[derive(Clone)]
pub struct Device {
    parts: Arc<Parts>,
    table: jsonrpsee_core::server::Methods,
    tasks: Tasks,
}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Device").finish_non_exhaustive()
    }
}

impl std::ops::Deref for Device {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.parts
    }
}

impl Device {
    /// Its connections' tasks are children of `tasks`.
    pub fn new(parts: Parts, tasks: &Tasks) -> Self {
        Self {
            parts: Arc::new(parts),
            table: ext::table(),
            tasks: tasks.clone(),
        }
    }

    /// The service of one connection: `Origin::Remote` for a link, `Origin::Local` for a program
    /// on this computer. What it started for the connection ends when the peer closes.
    pub fn serve(&self, peer: Peer, origin: Origin) -> Arc<dyn Service> {
        connection::serve(self, peer, origin)
    }
}
