//! What a device asks and tells: questions, updates, events. Notices go to the intake in the order
//! of the wire.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::Link;
use super::intake::Heard;
use crate::hub::{Shared, asks};
use crate::link::ws;
use crate::rpc::{Call, Peer, RpcError, Service};

pub(super) struct Served {
    pub(super) shared: Arc<Shared>,
    pub(super) link: Link,
    pub(super) peer: Peer,
    pub(super) heard: mpsc::Sender<Heard>,
}

impl Service for Served {
    fn call(&self, call: Call) -> BoxFuture<'static, Result<Value, RpcError>> {
        self.link.hear();
        if !self.link.is_ready() {
            let text = "the first message is the answer to initialize";
            return std::future::ready(Err(RpcError::invalid_request(text))).boxed();
        }
        match call.method.as_str() {
            "session/request_permission" | "_lembas/ask" => {
                let (shared, link) = (Arc::clone(&self.shared), self.link.clone());
                let heard = self.heard.clone();
                async move { ask(&shared, &link, &heard, call).await }.boxed()
            }
            // Files and terminals are the computer's own; this instance offers none.
            other => std::future::ready(Err(RpcError::method_not_found(other))).boxed(),
        }
    }

    fn notice(&self, method: &str, params: Value) {
        self.link.hear();
        let heard = match method {
            "session/update" => Heard::Update(params),
            "_lembas/event" => Heard::Event(params),
            "_lembas/rules/changed" => return self.link.rules_changed(),
            _ => return,
        };
        if self.heard.try_send(heard).is_err() {
            // Ahead of our disk by more than is held here: what is stored is where it goes on.
            self.peer.close(
                ws::code::LATER,
                &ws::retry_after(std::time::Duration::from_secs(1)),
            );
        }
    }
}

/// A question. It is kept and shown; its answer goes by `_lembas/answer`, so that a dropped link
/// loses neither. The request itself ends when the device takes it back, or with the link.
async fn ask(
    shared: &Shared,
    link: &Link,
    heard: &mpsc::Sender<Heard>,
    call: Call,
) -> Result<Value, RpcError> {
    let stored = asks::heard(shared, link, &call.params).await;
    let session = stored.map_err(RpcError::invalid_params)?;
    let _link_ended = heard.send(Heard::Asked { session }).await;
    tokio::select! {
        () = call.cancelled.cancelled() => {}
        _ = call.peer.closed() => {}
    }
    Ok(json!({ "outcome": { "outcome": "cancelled" } }))
}
