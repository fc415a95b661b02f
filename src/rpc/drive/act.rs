//! Doing what the core says: handing over, starting calls, giving answers.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::FutureExt as _;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::Driver;
use crate::rpc::Call;
use crate::rpc::core::Action;
use crate::rpc::error::{CallError, RpcError};
use crate::rpc::frames::{Outgoing, Sink};
use crate::rpc::message::{self, Id};
use crate::rpc::peer::Kind;

impl<W: Sink> Driver<W> {
    pub(super) fn act(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Write(frame) => self.writer.own(Outgoing::Text(frame)),
                Action::Call {
                    id,
                    method,
                    params,
                    order,
                } => self.call(id, method, params, order),
                Action::Notice { method, params } => {
                    let service = &self.service;
                    let notice = || service.notice(&method, params);
                    if std::panic::catch_unwind(AssertUnwindSafe(notice)).is_err() {
                        tracing::error!(method, "taking a notification panicked");
                    }
                }
                Action::Cancel(id) => {
                    if let Some(token) = self.tokens.get(&id) {
                        token.cancel();
                    }
                }
                Action::Resolve { id, outcome } => {
                    if let Some(give) = self.answers.remove(&id) {
                        let _ = give.send(match outcome {
                            Some(outcome) => outcome.map_err(CallError::Rpc),
                            None => Err(CallError::BadAnswer),
                        });
                    }
                }
                Action::Open => {
                    let shared = &self.peer.shared;
                    shared.max_in.store(self.limits.frame_in, Ordering::Relaxed);
                    shared
                        .max_out
                        .store(self.limits.frame_out, Ordering::Relaxed);
                }
                Action::Stray(id) => {
                    tracing::warn!(id, "an answer that nobody waits for was ignored");
                }
                Action::Close { code, reason } => self.close(code, reason),
            }
        }
    }

    fn call(&mut self, id: Id, method: String, params: Value, order: u64) {
        let cancelled = CancellationToken::new();
        self.tokens.insert(id.clone(), cancelled.clone());
        let answered = CancellationToken::new();
        let call = Call {
            answered: answered.clone(),
            method: method.clone(),
            params,
            id: id.clone(),
            peer: self.peer.clone(),
            cancelled,
            order,
        };
        let service = Arc::clone(&self.service);
        let future = std::panic::catch_unwind(AssertUnwindSafe(|| service.call(call)));
        let peer = self.peer.clone();
        self.tasks.spawn("rpc call", async move {
            let outcome = match future {
                Ok(future) => AssertUnwindSafe(future).catch_unwind().await,
                Err(panic) => Err(panic),
            };
            let outcome = outcome.unwrap_or_else(|_| {
                tracing::error!(method, "a call panicked");
                Err(RpcError::internal(
                    "lembas failed inside; its log says more",
                ))
            });
            let (frame, ok) = encode(&id, &outcome, peer.max_send());
            drop(outcome);
            // When the link is closed there is nobody to answer.
            let _ = peer.enqueue(frame, Kind::Answer { id, ok }).await;
            answered.cancel();
        });
    }
}

/// The frame of an answer, and whether it is a result.
fn encode(id: &Id, outcome: &Result<Value, RpcError>, max: usize) -> (String, bool) {
    let frame = message::answer(Some(id), outcome.as_ref());
    if frame.len() <= max {
        return (frame, outcome.is_ok());
    }
    let text = format!("the answer has {} bytes, more than {max}", frame.len());
    tracing::warn!(text, "an answer was not sent");
    let error = RpcError::internal(text);
    (message::answer(Some(id), Err(&error)), false)
}
