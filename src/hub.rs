//! The embedded instance: accounts, pairing, the link's server end, `/api/v2`, `/v1`, the page.
//!
//! It shares `rpc`, the link's framing, the store's thread and the spec with the device, and
//! nothing else: the two meet only on a socket. What the hub says of a computer is what it heard
//! and when; it never shows as done what the computer has not confirmed.

mod api;
mod asked;
mod asks;
mod auth;
mod chats;
mod console;
mod devices;
mod error;
mod events;
mod front;
mod gate;
mod link;
mod messages;
pub mod models;
mod oauth;
mod output;
mod pages;
mod pairing;
mod passwords;
mod render;
mod rules;
mod sse;
mod tls;
mod turns;
mod unattended;
mod v1;
mod view;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;

use crate::clock;
use crate::rt::Tasks;
use crate::store::db::StoreError;
use crate::store::hub::HubStore;

pub use front::TlsFiles;
pub use tls::TlsError;

/// The link protocol this instance speaks.
pub const PROTOCOL: u64 = 3;

/// How long a one-time sign-in link works.
const ONE_TIME: Duration = Duration::from_secs(10 * 60);

/// How a hub is set up.
#[derive(Clone, Debug, Default)]
pub struct HubConfig {
    /// The folder of its database; made when missing, 0700.
    pub data: PathBuf,
    /// What people call this instance.
    pub name: String,
    /// The address people and devices use, when it is not the one listened on: behind a reverse
    /// proxy, or a name for a certificate.
    pub url: Option<String>,
    /// Certificate and key; plain HTTP without, which is for loopback and reverse proxies.
    pub tls: Option<TlsFiles>,
    /// Serves the page's files from a folder instead of from the program (debug builds).
    pub web: Option<PathBuf>,
    /// Chunks a second of the practice model; 0 for no pause at all.
    pub practice_pace: u32,
}

/// Why a hub could not start.
#[derive(Debug, thiserror::Error)]
pub enum HubError {
    #[error("cannot make the folder {path}")]
    Folder {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("cannot open the hub's store")]
    Store(#[from] StoreError),
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error("the listener has no address")]
    Listener(#[source] std::io::Error),
    #[error("cannot make the HTTP client for model servers")]
    Http(#[source] reqwest::Error),
}

/// Why a code could not be approved.
#[derive(Debug, thiserror::Error)]
pub enum ApproveError {
    #[error("there is no open code like that")]
    Unknown,
    #[error("cannot save")]
    Store(#[from] StoreError),
}

/// A link that signs one browser in, once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OneTimeLink {
    /// Crockford's letters, `XXXX-XXXX-XXXX`.
    pub token: String,
    pub url: String,
    /// Milliseconds since the epoch.
    pub expires: i64,
}

/// What the parts of a running hub share.
pub(crate) struct Shared {
    pub(crate) store: HubStore,
    pub(crate) facts: Facts,
    pub(crate) events: events::Events,
    pub(crate) links: link::Links,
    pub(crate) grants: pairing::Grants,
    pub(crate) gate: gate::Gate,
    pub(crate) tasks: Tasks,
    pub(crate) http: models::ModelHttp,
}

/// What does not change while a hub runs.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub(crate) name: String,
    /// This instance's own id.
    pub(crate) instance: String,
    /// Base address without a slash at its end.
    pub(crate) url: String,
    pub(crate) addr: SocketAddr,
    /// The first account.
    pub(crate) owner: String,
    /// A reverse proxy may stand before it: an address of its own was configured.
    pub(crate) proxied: bool,
    /// Cookies are for TLS only.
    pub(crate) secure: bool,
    pub(crate) web: Option<PathBuf>,
    pub(crate) pace: u32,
}

/// A running hub. Cheap to clone; ends with its tasks.
#[derive(Clone)]
pub struct Hub {
    shared: Arc<Shared>,
}

impl std::fmt::Debug for Hub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hub")
            .field("url", &self.shared.facts.url)
            .finish_non_exhaustive()
    }
}

/// Starts a hub on a listener. It runs as children of `tasks` until they end.
///
/// # Errors
/// When the folder, the store or the certificate cannot be used.
pub async fn serve(
    config: HubConfig,
    listener: TcpListener,
    tasks: &Tasks,
) -> Result<Hub, HubError> {
    make_folder(&config.data)?;
    let addr = listener.local_addr().map_err(HubError::Listener)?;
    let tls = config.tls.as_ref().map(tls::load).transpose()?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    let url = match &config.url {
        Some(url) => url.trim_end_matches('/').to_owned(),
        None if addr.ip().is_unspecified() => {
            format!("{scheme}://{}:{}", host_name(), addr.port())
        }
        None => format!("{scheme}://{addr}"),
    };
    let store = HubStore::open(&config.data)?;
    let owner = store.owner().await?;
    let facts = Facts {
        name: config.name,
        instance: store.instance().await?,
        proxied: config.url.is_some(),
        secure: url.starts_with("https://"),
        url,
        addr,
        owner: owner.id,
        web: config.web,
        pace: config.practice_pace,
    };
    let shared = Arc::new(Shared {
        events: events::Events::new(store.event_base().await?),
        store,
        facts,
        links: link::Links::default(),
        grants: pairing::Grants::default(),
        gate: gate::Gate::default(),
        tasks: tasks.child(),
        http: models::ModelHttp::new().map_err(HubError::Http)?,
    });
    let router = front::router(&shared);
    let (child, proxied) = (shared.tasks.clone(), shared.facts.proxied);
    tasks.spawn("hub", front::run(listener, tls, router, proxied, child));
    Ok(Hub { shared })
}

impl Hub {
    /// Where people and devices reach this hub.
    pub fn url(&self) -> &str {
        &self.shared.facts.url
    }

    /// Whether that address is a guess: every address is listened on, and none was named.
    pub fn assumed(&self) -> bool {
        !self.shared.facts.proxied && self.shared.facts.addr.ip().is_unspecified()
    }

    /// What it listens on.
    pub fn addr(&self) -> SocketAddr {
        self.shared.facts.addr
    }

    /// This instance's id, as discovery says it.
    pub fn instance(&self) -> &str {
        &self.shared.facts.instance
    }

    /// Whether the first account has a password, so that its person can come back without us.
    ///
    /// # Errors
    /// When the store cannot read.
    pub async fn is_set_up(&self) -> Result<bool, StoreError> {
        Ok(self.shared.store.owner().await?.password.is_some())
    }

    /// Makes a link that signs a browser in to the first account, once, within ten minutes.
    ///
    /// # Errors
    /// When the store cannot write.
    pub async fn one_time_link(&self) -> Result<OneTimeLink, StoreError> {
        self.link_for(self.shared.facts.owner.clone()).await
    }

    /// A one-time link that signs in an account by its name; none where nobody has that name.
    ///
    /// # Errors
    /// When it cannot be saved.
    pub async fn link_of(&self, name: &str) -> Result<Option<OneTimeLink>, StoreError> {
        match self.shared.store.account_named(name.to_owned()).await? {
            Some(account) => self.link_for(account.id).await.map(Some),
            None => Ok(None),
        }
    }

    async fn link_for(&self, account: String) -> Result<OneTimeLink, StoreError> {
        let token = auth::one_time_code();
        let expires = clock::now_ms() + i64::try_from(ONE_TIME.as_millis()).unwrap_or(0);
        self.shared
            .store
            .add_one_time(&token, account, expires)
            .await?;
        Ok(OneTimeLink {
            url: format!("{}/in/{token}", self.shared.facts.url),
            token,
            expires,
        })
    }

    /// Approves the pairing of our own device: `secret` is the code its pairing was given, handed
    /// over inside this process. A request is never trusted because it came from loopback.
    ///
    /// # Errors
    /// When no such code is open.
    pub async fn approve_own(&self, secret: &str) -> Result<(), ApproveError> {
        let owner = &self.shared.facts.owner;
        let approved = self
            .shared
            .grants
            .approve(&pairing::plain_code(secret), owner);
        if approved {
            Ok(())
        } else {
            Err(ApproveError::Unknown)
        }
    }

    /// Adds a model after one tiny request, or says which of the ways it can fail it did.
    ///
    /// # Errors
    /// See [`models::AddError`].
    pub async fn add_model(
        &self,
        new: models::NewModel,
    ) -> Result<models::Tested, models::AddError> {
        models::add(&self.shared, &self.shared.facts.owner, new).await
    }

    /// The models of the first account, with what their last test said. No keys.
    ///
    /// # Errors
    /// When the store cannot read.
    pub async fn models(&self) -> Result<Vec<serde_json::Value>, StoreError> {
        models::list(&self.shared, &self.shared.facts.owner).await
    }
}

/// What this computer calls itself, where that can stand in an address.
fn host_name() -> String {
    let system = rustix::system::uname();
    let name = system.nodename().to_string_lossy();
    let plain = |b: u8| b.is_ascii_alphanumeric() || b".-".contains(&b);
    if (1..=253).contains(&name.len()) && name.bytes().all(plain) {
        name.into_owned()
    } else {
        "localhost".to_owned()
    }
}

fn make_folder(path: &std::path::Path) -> Result<(), HubError> {
    let wrap = |source| HubError::Folder {
        path: path.to_owned(),
        source,
    };
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt as _;
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(wrap)
    }
    #[cfg(not(unix))]
    std::fs::create_dir_all(path).map_err(wrap)
}

/// The version of the spec that this program carries.
pub(crate) fn spec_version() -> &'static str {
    crate::spec::version()
}
