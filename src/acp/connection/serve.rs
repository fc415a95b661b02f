//! The door of a connection: nothing before the handshake, prompts in the order of the wire.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::Connection;
use crate::acp::capabilities::{self, Capability};
use crate::acp::{asks, ext, prompt, rules};
use crate::permission::Origin;
use crate::rpc::{Call, RpcError, Service};
use crate::rt::CancellationToken;

/// The service of one connection.
pub(super) struct Served(pub(super) Arc<Connection>);

impl Service for Served {
    fn call(&self, call: Call) -> BoxFuture<'static, Result<Value, RpcError>> {
        let connection = Arc::clone(&self.0);
        match call.method.as_str() {
            "initialize" => match self.0.hello(call.params.clone()) {
                // Set before the future runs: what is sent right behind it is taken.
                Ok(()) => async move { Ok(connection.welcome(call.answered).await) }.boxed(),
                Err(error) => {
                    connection.part(&error, call.answered);
                    std::future::ready(Err(error)).boxed()
                }
            },
            _ if self.0.client.get().is_none() => {
                let text = "nothing is answered before initialize: send that first";
                std::future::ready(Err(RpcError::invalid_request(text))).boxed()
            }
            // Registered in the order of the wire: a cancel that follows means this turn.
            "session/prompt" => prompt::begin(connection, call),
            _ => async move {
                let cancelled = call.cancelled.clone();
                let answer = connection.answer(call);
                let answer = cancelled.run_until_cancelled(answer).await;
                answer.unwrap_or_else(|| Err(RpcError::cancelled()))
            }
            .boxed(),
        }
    }

    fn notice(&self, method: &str, params: Value) {
        // Before the handshake nothing is taken, and a notification has no answer to say so.
        if self.0.client.get().is_none() {
            return;
        }
        match method {
            "session/cancel" => prompt::cancel(&self.0, &params),
            "_lembas/ack" if self.0.client().follows() => {
                let connection = Arc::clone(&self.0);
                let ack = async move { ext::ack(&connection, params).await };
                self.0.tasks.spawn("ack", ack);
            }
            _ => tracing::trace!(method, "a notification that is not known was ignored"),
        }
    }
}

impl Connection {
    fn hello(&self, params: Value) -> Result<(), RpcError> {
        let client = capabilities::read(params, &self.origin)?;
        self.client.set(client).map_err(|_| {
            RpcError::invalid_request("initialize comes once on a connection, and was answered")
        })
    }

    /// Goes when the two cannot work together at all (H4), once the other side has heard why.
    fn part(&self, error: &RpcError, answered: CancellationToken) {
        let reason = error.data.as_ref().and_then(|data| data.get("reason"));
        let reason = match reason.and_then(Value::as_str) {
            Some("protocol") => "protocol",
            Some("instance") => "instance",
            _ => return,
        };
        let peer = self.peer.clone();
        self.tasks.spawn("part", async move {
            answered.cancelled().await;
            peer.close(4004, reason);
        });
    }

    /// An instance that has seen more than there is here saw another state of this store: a new
    /// epoch begins, and the answer says it (Y8).
    async fn check_seen(&self, head: i64) {
        let Some((epoch, seen)) = self.client().seen() else {
            return;
        };
        if self.origin != Origin::Local && epoch == self.device.epoch.current() && seen > head {
            let why = format!("the instance knows a change at {seen}, here the last is {head}");
            self.device.epoch.renew(&why).await;
        }
    }

    async fn welcome(self: Arc<Self>, answered: CancellationToken) -> Value {
        let about = (self.device.about)();
        let head = self.device.sessions.head(&self.origin).await;
        self.check_seen(head).await;
        let ours = json!({
            "protocol": capabilities::PROTOCOL,
            "spec": about.spec,
            "epoch": self.device.epoch.current(),
            "head": head,
            "device": about,
            "capabilities": Capability::list(&self.origin),
            "limits": self.limits.describe(),
        });
        let connection = Arc::clone(&self);
        let after = answered.clone();
        self.tasks.spawn("rules", async move {
            // Subscribed before the answer is out: what changes from then on is told.
            let changes = connection.device.rules.changes();
            after.cancelled().await;
            let stop = connection.tasks.stop().clone();
            let tell = rules::tell(connection, changes);
            stop.run_until_cancelled(tell).await;
        });
        let connection = Arc::clone(&self);
        self.tasks.spawn("asks", async move {
            answered.cancelled().await;
            let stop = connection.tasks.stop().clone();
            stop.run_until_cancelled(asks::run(connection)).await;
        });
        capabilities::answer(&about, &ours)
    }
}
