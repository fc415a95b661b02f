//! What the intake shows and says, each at its own pace: items as they are, streamed text, the tail
//! of an output, the chat's line, acknowledgements.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::super::notices;
use super::{ACK, HELD, Held, Intake, TAIL_LINES};
use crate::clock::{Instant, instant};
use crate::hub::events::{Audience, Body, Event};
use crate::hub::render::markdown;
use crate::hub::render::stream::Stream;
use crate::hub::view::item;
use crate::store::db::StoreError;

impl Intake {
    /// When something is to be shown or said next.
    pub(super) fn due(&self) -> Option<Instant> {
        let of_chat = |held: &Held| {
            let streams = held.streams.values().filter_map(Stream::due);
            let outs = held.outs.values().filter_map(|o| o.due);
            let thoughts = held.thoughts.values().copied();
            let ack = held
                .ack
                .map(|_| held.acked.map_or_else(instant, |a| a + ACK));
            streams
                .chain(outs)
                .chain(thoughts)
                .chain(held.chat_due)
                .chain(held.follow_due)
                .chain(ack)
                .min()
        };
        self.chats
            .values()
            .filter_map(of_chat)
            .chain(self.device_due)
            .min()
    }

    /// Tells items as they are now.
    pub(super) async fn tell_items(
        &self,
        chat: &str,
        seqs: BTreeSet<u64>,
    ) -> Result<(), StoreError> {
        let mut told = BTreeSet::new();
        for seq in seqs {
            let Some(item) = item::of_row(&self.shared, chat, seq).await? else {
                continue;
            };
            let root = item.get("seq").and_then(Value::as_u64).unwrap_or(seq);
            if told.insert(root) {
                self.emit(
                    "item",
                    format!("item:{chat}:{root}"),
                    json!({ "chat": chat, "item": item }),
                );
            }
        }
        Ok(())
    }

    fn emit(&self, kind: &'static str, key: String, data: Value) {
        let to = Audience::Account(self.link.inner.account.clone());
        self.shared
            .events
            .emit(to, Event::json(kind, Some(key), data));
    }

    /// Shows and says what is due.
    pub(super) async fn show(&mut self, all: bool) {
        let now = instant();
        let is_due = |at: Instant| all || at <= now;
        let mut chats = Vec::new();
        let mut follows = Vec::new();
        let mut acks = Vec::new();
        let mut thoughts = Vec::new();
        for (session, held) in &mut self.chats {
            for (seq, stream) in &mut held.streams {
                if stream.due().is_some_and(is_due)
                    && let Some(paint) = stream.paint(now)
                {
                    let event = Event {
                        kind: "md",
                        key: Some(format!("md:{}:{seq}", held.id)),
                        body: Body::Blocks {
                            chat: Arc::clone(&held.id),
                            seq: *seq,
                            keep: paint.keep,
                            html: paint.html,
                            at: paint.at,
                        },
                    };
                    let to = Audience::Account(self.link.inner.account.clone());
                    self.shared.events.emit(to, event);
                }
            }
            for out in held.outs.values_mut() {
                if out.due.is_some_and(is_due) {
                    out.due = None;
                    out.told = Some(now);
                    let html = item::tail(&out.tail, TAIL_LINES);
                    let data =
                        json!({ "chat": &*held.id, "seq": out.card, "html": html, "at": out.at });
                    let to = Audience::Account(self.link.inner.account.clone());
                    let key = Some(format!("out:{}:{}", held.id, out.card));
                    self.shared.events.emit(to, Event::json("out", key, data));
                }
            }
            held.thoughts.retain(|seq, due| {
                let show = is_due(*due);
                if show {
                    thoughts.push((Arc::clone(&held.id), *seq));
                }
                !show
            });
            if held.chat_due.is_some_and(is_due) {
                held.chat_due = None;
                held.chat_told = Some(now);
                chats.push(Arc::clone(&held.id));
            }
            if held.follow_due.is_some_and(is_due) {
                held.follow_due = None;
                follows.push(session.clone());
            }
            if let Some(position) = held.ack
                && held.acked.is_none_or(|a| is_due(a + ACK))
            {
                held.ack = None;
                held.acked = Some(now);
                acks.push((session.clone(), position));
            }
            if held.outs.len() > HELD {
                held.outs.retain(|_, o| o.due.is_some());
            }
        }
        for (chat, seq) in thoughts {
            self.tell_thought(&chat, seq).await;
        }
        for chat in chats {
            notices::tell_chat(&self.shared, &chat).await;
        }
        if self.device_due.is_some_and(is_due) {
            self.device_due = None;
            crate::hub::devices::tell(&self.shared, &self.link.inner.device).await;
        }
        for session in follows {
            if let Err(error) = self.follow(&session).await {
                tracing::warn!(%error, "what is missing could not be asked for");
            }
        }
        for (session, position) in acks {
            let params = json!({ "sessionId": session, "seq": position.seq, "at": position.at });
            let _closed = self.peer.notify("_lembas/ack", params).await;
        }
    }

    async fn tell_thought(&self, chat: &str, seq: u64) {
        if let Ok(Some(row)) = self.shared.store.item(chat.to_owned(), seq).await {
            let item = json!({ "seq": seq, "turn": row.turn, "time": row.time, "kind": "thought",
                               "html": markdown::whole(&row.text), "open": row.open });
            let data = json!({ "chat": chat, "item": item });
            self.emit("item", format!("item:{chat}:{seq}"), data);
        }
    }
}
