//! What a linked instance may ask of this computer.
//!
//! The limits that are judged at every request, scheduled work, watch commands, the folders a
//! person may pick, and what ends when the limits change. The instance is not trusted: all
//! authority comes from the person's own settings. Not here: the frames (`link`, `acp`), what a
//! single command may do (`permission`).

mod directories;
mod limits;
mod monitor;
mod scheduled;
pub mod watch;

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

pub use limits::Limits;
pub use monitor::{Check, Monitor, Seen, Unseen, Watch};
pub(crate) use scheduled::default_mode;

use crate::acp::{Refusal, RemoteWork};
use crate::permission::Origin;
use crate::rpc::RpcError;
use crate::rt;

/// Keeps the successor of a link's token: on the disk when its future is done. The error is why
/// not, in words without the token.
pub trait Tokens: Send + Sync + 'static {
    fn keep(&self, grant: &str, token: String) -> BoxFuture<'static, Result<(), String>>;
}

/// What only a linked instance asks. Cheap to clone.
#[derive(Clone)]
pub struct Remote {
    limits: Limits,
    monitor: Monitor,
    tokens: Arc<dyn Tokens>,
}

impl Remote {
    pub fn new(limits: Limits, monitor: Monitor, tokens: Arc<dyn Tokens>) -> Self {
        Self {
            limits,
            monitor,
            tokens,
        }
    }
}

impl RemoteWork for Remote {
    fn directories(&self, path: Option<PathBuf>) -> BoxFuture<'static, Result<Value, RpcError>> {
        let limits = self.limits.clone();
        async move {
            let list = rt::blocking(move || directories::list(&limits, path.as_deref())).await;
            let list = list.ok_or_else(|| RpcError::internal("the folder could not be read"))?;
            Ok(list?)
        }
        .boxed()
    }

    fn monitor(
        &self,
        origin: &Origin,
        params: Value,
    ) -> BoxFuture<'static, Result<Value, RpcError>> {
        let Origin::Remote { instance, grant } = origin.clone() else {
            let error = RpcError::method_not_found("_lembas/monitor");
            return std::future::ready(Err(error)).boxed();
        };
        self.monitor.clone().answer(instance, grant, params).boxed()
    }

    fn token(&self, origin: &Origin, params: Value) -> BoxFuture<'static, Result<Value, RpcError>> {
        let token = params
            .get("token")
            .and_then(Value::as_str)
            .map(str::to_owned);
        let (Some(token), Origin::Remote { grant, .. }) = (token.filter(|t| is_token(t)), origin)
        else {
            let text = "token: 1 to 512 characters of a bearer token";
            let error = Refusal::new(RpcError::INVALID_PARAMS, "params", text);
            return std::future::ready(Err(error.into())).boxed();
        };
        let kept = self.tokens.keep(grant, token);
        async move {
            match kept.await {
                Ok(()) => Ok(json!({ "kept": true })),
                Err(why) => Err(RpcError::internal(format!(
                    "the token could not be kept: {why}"
                ))),
            }
        }
        .boxed()
    }
}

/// The form of a token (T1).
fn is_token(token: &str) -> bool {
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
    (1..=512).contains(&token.len()) && token.bytes().all(fine)
}
