//! Work for a device: each piece is said with its key, again after every drop, until it is
//! answered.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::intake::Heard;
use super::{Link, notices};
use crate::clock::{now_ms, sleep};
use crate::hub::{Shared, asks, messages, rules, view};
use crate::rpc::{CallError, Peer, RpcError};
use crate::rt::Tasks;
use crate::store::db::StoreError;
use crate::store::hub::chats::{Chat, Said};
use crate::store::hub::rules::REMOVE;
use crate::store::hub::work::Work;

/// The device's codes (spec/acp.md, Errors).
const GONE: i64 = -32004;
const BUSY: i64 = -32052;
/// Pieces of work that may be under way at once with one device; the next waits for an answer.
const AT_ONCE: usize = 64;
/// How long an answer, a change or a stop may take before it is said again.
const SMALL: Duration = Duration::from_secs(20);
/// How long after "not now" it is said again.
const AGAIN: Duration = Duration::from_secs(2);

/// Runs until the link ends.
pub(super) async fn run(
    shared: Arc<Shared>,
    link: Link,
    peer: Peer,
    heard: mpsc::Sender<Heard>,
    tasks: Tasks,
) {
    let under_way: Arc<Mutex<HashSet<i64>>> = Arc::default();
    let device = link.inner.device.clone();
    if let Ok(chats) = shared.store.chats_with_queue(device.clone()).await {
        for chat in chats {
            let _next = shared.store.send_next(device.clone(), chat).await;
        }
    }
    loop {
        match shared.store.open_work(device.clone()).await {
            Ok(list) => {
                for work in list {
                    let mut going = under_way.lock();
                    if going.len() >= AT_ONCE || !going.insert(work.id) {
                        continue;
                    }
                    drop(going);
                    let one = One {
                        shared: Arc::clone(&shared),
                        link: link.clone(),
                        peer: peer.clone(),
                        heard: heard.clone(),
                    };
                    let under_way = Arc::clone(&under_way);
                    tasks.spawn("work", async move {
                        let id = work.id;
                        if let Err(error) = one.say(work).await {
                            tracing::warn!(%error, "work for a device could not be noted");
                            sleep(AGAIN).await;
                        }
                        under_way.lock().remove(&id);
                        one.link.inner.wake.notify_one();
                    });
                }
            }
            Err(error) => {
                tracing::warn!(%error, "the work for a device could not be read");
                sleep(AGAIN).await;
            }
        }
        tokio::select! {
            () = link.inner.wake.notified() => {}
            _ = peer.closed() => return,
        }
    }
}

struct One {
    shared: Arc<Shared>,
    link: Link,
    peer: Peer,
    heard: mpsc::Sender<Heard>,
}

impl One {
    async fn say(&self, work: Work) -> Result<(), StoreError> {
        let chat = match &work.chat {
            Some(id) => self.shared.store.chat(id.clone()).await?,
            None => None,
        };
        match (work.kind.as_str(), chat) {
            ("prompt", Some(chat)) => self.prompt(work, chat).await,
            ("steer", Some(chat)) => self.steer(work, chat).await,
            ("answer", _) => self.answer(work).await,
            ("stop", Some(chat)) => self.stop(work, chat).await,
            ("set", Some(chat)) => self.set(work, chat).await,
            ("delete", _) => self.delete(work).await,
            (REMOVE, _) => self.unrule(work).await,
            _ => self.done(&work, None).await,
        }
    }

    async fn done(&self, work: &Work, note: Option<String>) -> Result<(), StoreError> {
        self.shared.store.set_work(work.id, "done", note).await
    }

    async fn prompt(&self, work: Work, chat: Chat) -> Result<(), StoreError> {
        self.follow(&chat).await?;
        let params = json!({
            "sessionId": chat.session, "prompt": parts(&work.params),
            "_meta": { "lembas": { "key": work.key } },
        });
        let answer = self.peer.request("session/prompt", params).await;
        let taken = self.taken(&work).await?;
        match answer {
            Ok(_) | Err(CallError::BadAnswer) => self.done(&work, None).await?,
            Err(CallError::Rpc(error)) if error.code == BUSY => {
                sleep(AGAIN).await;
                return Ok(());
            }
            Err(CallError::Rpc(error)) => {
                // A turn that began and failed has its own end in the transcript.
                let state = if taken { "done" } else { "failed" };
                let note = Some(said(&error));
                self.shared.store.set_work(work.id, state, note).await?;
                self.missing(&error, &chat).await?;
            }
            Err(CallError::TooLong { .. }) => {
                let note = Some("it is longer than can be sent at once".to_owned());
                self.shared.store.set_work(work.id, "failed", note).await?;
            }
            // Not known: it is said again with its key.
            Err(CallError::Closed { .. } | CallError::Timeout) => return Ok(()),
        }
        messages::tell_queue(&self.shared, &chat.id).await;
        messages::after_turn(&self.shared, &chat.id).await?;
        notices::tell_chat(&self.shared, &chat.id).await;
        Ok(())
    }

    /// Whether the journal shows the prompt meanwhile.
    async fn taken(&self, work: &Work) -> Result<bool, StoreError> {
        let device = self.link.inner.device.clone();
        let now = self
            .shared
            .store
            .work(device, "prompt", work.key.clone())
            .await?;
        Ok(now.is_some_and(|w| w.state == "taken"))
    }

    async fn steer(&self, work: Work, chat: Chat) -> Result<(), StoreError> {
        let params = json!({
            "sessionId": chat.session, "key": work.key, "when": "next_step",
            "content": parts(&work.params),
        });
        let answer = self
            .peer
            .request_within("_lembas/steer", params, SMALL)
            .await;
        match answer {
            Ok(_) => self.done(&work, None).await?,
            Err(CallError::Rpc(_)) => {
                // No turn runs any more, or it takes none: it goes as the next message.
                self.shared.store.steer_back(work.id).await?;
                messages::after_turn(&self.shared, &chat.id).await?;
            }
            Err(_) => return Ok(()),
        }
        messages::tell_queue(&self.shared, &chat.id).await;
        Ok(())
    }

    async fn answer(&self, work: Work) -> Result<(), StoreError> {
        asks::moved(&self.shared, &work.key, "sent").await?;
        let answer = self
            .peer
            .request_within("_lembas/answer", work.params.clone(), SMALL)
            .await;
        match answer {
            Ok(taken) => {
                let at = taken
                    .get("at")
                    .and_then(Value::as_i64)
                    .unwrap_or_else(now_ms);
                asks::taken(&self.shared, &work, at).await
            }
            Err(CallError::Rpc(error)) if error.code == GONE => {
                asks::gone(&self.shared, &work, &error.data.unwrap_or_default()).await
            }
            Err(CallError::Rpc(error)) if error.code == RpcError::INTERNAL => {
                sleep(AGAIN).await;
                Ok(())
            }
            Err(CallError::Rpc(error)) => asks::not_taken(&self.shared, &work, &said(&error)).await,
            Err(_) => asks::moved(&self.shared, &work.key, "sending").await,
        }
    }

    async fn stop(&self, work: Work, chat: Chat) -> Result<(), StoreError> {
        let params = json!({
            "sessionId": chat.session, "turn": work.params.get("turn"), "key": work.key,
        });
        match self
            .peer
            .request_within("_lembas/stop", params, SMALL)
            .await
        {
            Ok(answer) => {
                self.done(&work, None).await?;
                let mut progress = json!({ "phase": "stopped", "since": now_ms(), "by": "you" });
                if answer.get("outcome").and_then(Value::as_str) == Some("stopped")
                    && let Some(map) = progress.as_object_mut()
                {
                    for key in ["ms", "commands"] {
                        if let Some(value) = answer.get(key) {
                            map.insert(key.to_owned(), value.clone());
                        }
                    }
                    let session = chat.session.clone();
                    // Where the link has ended, the chat's state is read anew.
                    let _ended = self.heard.send(Heard::Stopped { session, progress }).await;
                }
                notices::tell_chat(&self.shared, &chat.id).await;
            }
            Err(CallError::Rpc(error)) if error.code == BUSY => sleep(AGAIN).await,
            Err(CallError::Rpc(error)) => {
                self.shared
                    .store
                    .set_work(work.id, "failed", Some(said(&error)))
                    .await?;
                self.missing(&error, &chat).await?;
            }
            Err(_) => {}
        }
        Ok(())
    }

    async fn set(&self, work: Work, chat: Chat) -> Result<(), StoreError> {
        let mut now = Said::default();
        let mut lowered = None;
        for (option, value) in work.params.as_object().into_iter().flatten() {
            let Some(value) = value.as_str() else {
                continue;
            };
            let answer = if option == "mode" {
                let params = json!({ "sessionId": chat.session, "modeId": value });
                self.peer
                    .request_within("session/set_mode", params, SMALL)
                    .await
            } else {
                let params =
                    json!({ "sessionId": chat.session, "configId": option, "value": value });
                let method = "session/set_config_option";
                self.peer.request_within(method, params, SMALL).await
            };
            match answer {
                Ok(answer) if option == "mode" => {
                    let became = answer.pointer("/_meta/lembas/mode").and_then(Value::as_str);
                    let became = became.unwrap_or(value);
                    if became != value {
                        let device = self.shared.store.device(chat.device.clone()).await?;
                        let name = device.map(|d| d.name).unwrap_or_default();
                        let mode = view::mode_name(became);
                        lowered = Some(format!("lowered to {mode} by {name}"));
                    }
                    now.mode = Some(became.to_owned());
                }
                Ok(_) if option == "model" => now.model = Some(value.to_owned()),
                Ok(_) => now.level = Some(value.to_owned()),
                Err(CallError::Rpc(error)) if error.code == BUSY => {
                    sleep(AGAIN).await;
                    return Ok(());
                }
                Err(CallError::Rpc(error)) => lowered = Some(said(&error)),
                Err(_) => return Ok(()),
            }
        }
        self.shared
            .store
            .chat_took(chat.id.clone(), now, lowered)
            .await?;
        self.done(&work, None).await?;
        notices::tell_chat(&self.shared, &chat.id).await;
        Ok(())
    }

    async fn delete(&self, work: Work) -> Result<(), StoreError> {
        let params = json!({ "sessionId": work.params.get("session") });
        match self
            .peer
            .request_within("session/delete", params, SMALL)
            .await
        {
            Ok(_) | Err(CallError::Rpc(_)) => self.done(&work, None).await,
            Err(_) => Ok(()),
        }
    }

    /// Takes back what a computer allows always.
    async fn unrule(&self, work: Work) -> Result<(), StoreError> {
        let asked = self
            .peer
            .request_within("_lembas/rules/remove", work.params.clone(), SMALL);
        let why = match asked.await {
            Ok(_) => return rules::gone(&self.shared, &self.link, &work.key).await,
            Err(CallError::Rpc(error)) => match error.code {
                GONE => return rules::gone(&self.shared, &self.link, &work.key).await,
                BUSY | RpcError::INTERNAL => {
                    sleep(AGAIN).await;
                    return Ok(());
                }
                RpcError::METHOD_NOT_FOUND => {
                    "it takes nothing back from here: update lembas on it".to_owned()
                }
                _ => said(&error),
            },
            // Not known: it is said again with the next link.
            Err(_) => return Ok(()),
        };
        let store = &self.shared.store;
        store.set_work(work.id, "failed", Some(why)).await?;
        rules::tell(&self.shared, self.link.account(), self.link.device());
        Ok(())
    }

    /// Streams the chat before its prompt goes, so that nothing of the turn is missed.
    async fn follow(&self, chat: &Chat) -> Result<(), StoreError> {
        if !self.link.can("resume") {
            return Ok(());
        }
        let from = self.shared.store.follow_from(chat.id.clone()).await?;
        let params = json!({ "sessionId": chat.session, "seq": from.seq, "at": from.at });
        let followed = self
            .peer
            .request_within("_lembas/follow", params, SMALL)
            .await;
        if let Err(error) = followed {
            tracing::debug!(%error, "a session could not be followed before its prompt");
        }
        Ok(())
    }

    async fn missing(&self, error: &RpcError, chat: &Chat) -> Result<(), StoreError> {
        if error.code == RpcError::NOT_FOUND {
            let why = "this session is not on the computer any more".to_owned();
            self.shared.store.close_chat(chat.id.clone(), why).await?;
            asks::over_with_chat(&self.shared, &chat.id).await;
        }
        Ok(())
    }
}

/// What the device said, for a person: its text, else its message.
fn said(error: &RpcError) -> String {
    let text = error
        .data
        .as_ref()
        .and_then(|d| d.get("text"))
        .and_then(Value::as_str);
    text.unwrap_or(&error.message).chars().take(500).collect()
}

/// A message as ACP content.
fn parts(body: &Value) -> Value {
    let mut parts = Vec::new();
    if let Some(text) = body
        .get("text")
        .and_then(Value::as_str)
        .filter(|t| !t.is_empty())
    {
        parts.push(json!({ "type": "text", "text": text }));
    }
    let more = body.get("parts").and_then(Value::as_array);
    parts.extend(more.into_iter().flatten().cloned());
    Value::Array(parts)
}
