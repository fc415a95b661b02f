//! The intake of one link: what the device said is stored, exactly once, then shown, then
//! acknowledged.
//!
//! One task owns it. It takes whatever has come meanwhile as one batch, so that a fast device costs
//! fewer transactions, not more; what is shown of streamed text is drawn once a batch.

mod show;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::notices::{self, Fact, What};
use super::{Link, run};
use crate::clock::{Instant, instant, sleep_until};
use crate::hub::render::stream::Stream;
use crate::hub::{Shared, asks, messages};
use crate::ids::Position;
use crate::link::ws;
use crate::rpc::{CallError, Peer};
use crate::store::db::StoreError;
use crate::store::hub::chats::Said;
use crate::store::hub::items::{Content, Put, Took};

/// What is taken as one batch.
const BATCH: usize = 256;
/// An acknowledgement of a session goes at most so often.
const ACK: Duration = Duration::from_secs(1);
/// A chat's line, a thought and an output's tail are shown anew at most so often.
const CHAT: Duration = Duration::from_millis(250);
const THOUGHT: Duration = Duration::from_millis(500);
const OUT: Duration = Duration::from_millis(100);
/// What is missing of a session is asked for at most so often.
const FOLLOW: Duration = Duration::from_secs(1);
/// Bytes of an output's tail that are kept for drawing, and lines that are drawn.
const TAIL: usize = 32 * 1024;
const TAIL_LINES: usize = 20;
/// Chats and streamed items that are held for drawing; beyond it, those at rest go.
const HELD: usize = 256;

/// What the intake is told.
#[derive(Debug)]
pub(super) enum Heard {
    Update(Value),
    Event(Value),
    /// Follow a session from where the store ends.
    Follow {
        session: String,
    },
    /// A session asked something: its items are to be stored and acknowledged, so that the
    /// question's wait begins.
    Asked {
        session: String,
    },
    /// A stop was answered. It takes its turn behind the phases that came before the answer.
    Stopped {
        session: String,
        progress: Value,
    },
}

pub(super) struct Intake {
    shared: Arc<Shared>,
    link: Link,
    peer: Peer,
    chats: HashMap<String, Held>,
    device_due: Option<Instant>,
}

/// A chat with what is being drawn of it.
struct Held {
    id: Arc<str>,
    streams: HashMap<u64, Stream>,
    thoughts: HashMap<u64, Instant>,
    outs: HashMap<u64, Out>,
    /// The card that each call is shown as.
    cards: HashMap<String, u64>,
    chat_due: Option<Instant>,
    chat_told: Option<Instant>,
    ack: Option<Position>,
    acked: Option<Instant>,
    followed: Option<Instant>,
    follow_due: Option<Instant>,
    used: Instant,
}

struct Out {
    card: u64,
    tail: String,
    at: u64,
    due: Option<Instant>,
    told: Option<Instant>,
}

impl Intake {
    pub(super) fn new(shared: Arc<Shared>, link: Link, peer: Peer) -> Self {
        Self {
            shared,
            link,
            peer,
            chats: HashMap::new(),
            device_due: None,
        }
    }

    pub(super) async fn run(mut self, mut hear: mpsc::Receiver<Heard>) {
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            let due = self.due();
            tokio::select! {
                count = hear.recv_many(&mut batch, BATCH) => if count == 0 { break },
                () = async { match due { Some(due) => sleep_until(due).await, None => std::future::pending().await } } => {}
                _ = self.peer.closed() => {
                    // What came before the end is still taken.
                    while let Ok(heard) = hear.try_recv() {
                        batch.push(heard);
                    }
                    let _last = self.take(std::mem::take(&mut batch)).await;
                    self.show(true).await;
                    break;
                }
            }
            if let Err(error) = self.take(std::mem::take(&mut batch)).await {
                tracing::error!(%error, device = self.link.inner.device, "what a device said could not be stored");
                // Nothing was acknowledged: it is said again when there is space.
                let wait = ws::retry_after(Duration::from_secs(30));
                self.peer.close(ws::code::LATER, &wait);
                break;
            }
            self.show(false).await;
        }
    }

    async fn take(&mut self, batch: Vec<Heard>) -> Result<(), StoreError> {
        let mut session: Option<String> = None;
        let mut puts: Vec<Put> = Vec::new();
        for heard in batch {
            let fact = match &heard {
                Heard::Update(params) => self.read("session/update", params, notices::update),
                Heard::Event(params) => self.read("_lembas/event", params, notices::event),
                Heard::Asked { session } => {
                    if self.held(session).await?.followed.is_none() {
                        self.follow(session).await?;
                    }
                    continue;
                }
                Heard::Stopped {
                    session: of,
                    progress,
                } => {
                    self.store(session.take(), std::mem::take(&mut puts))
                        .await?;
                    let id = self.held(of).await?.id.to_string();
                    self.shared
                        .store
                        .chat_progress(id, Some(progress.clone()), Some(false), true)
                        .await?;
                    self.chat_changed(of).await?;
                    continue;
                }
                Heard::Follow { session } => {
                    let session = session.clone();
                    self.follow(&session).await?;
                    continue;
                }
            };
            let Some(Fact { session: of, what }) = fact else {
                continue;
            };
            if session.as_ref() != Some(&of) {
                self.store(session.take(), std::mem::take(&mut puts))
                    .await?;
                session = Some(of.clone());
            }
            match what {
                What::Item(put) => puts.push(put),
                What::Phase(phase) => {
                    self.store(session.clone(), std::mem::take(&mut puts))
                        .await?;
                    self.phase(&of, phase).await?;
                }
            }
        }
        self.store(session, puts).await
    }

    /// What a notification says. One of a wrong form is left out, alone, and said in the log (F11).
    fn read(
        &self,
        method: &str,
        params: &Value,
        read: fn(&Value) -> Result<Option<Fact>, String>,
    ) -> Option<Fact> {
        read(params).unwrap_or_else(|why| {
            tracing::warn!(
                device = self.link.inner.device,
                method,
                session = shown(params.get("sessionId")),
                seq = shown(
                    params
                        .get("seq")
                        .or_else(|| params.pointer("/_meta/lembas/seq"))
                ),
                why,
                "a computer sent a wrong frame: it is left out"
            );
            None
        })
    }

    /// The chat of a session; made when the device speaks of one that is not known yet.
    async fn held(&mut self, session: &str) -> Result<&mut Held, StoreError> {
        if self.chats.len() > HELD {
            let idle = instant() - Duration::from_secs(60);
            self.chats.retain(|_, h| h.used > idle || h.ack.is_some());
        }
        if !self.chats.contains_key(session) {
            let said = Said {
                session: session.to_owned(),
                epoch: self.link.epoch(),
                ..Said::default()
            };
            let (account, device) = (&self.link.inner.account, &self.link.inner.device);
            let chat = self
                .shared
                .store
                .say_chat(account.clone(), device.clone(), said)
                .await?;
            let held = Held {
                id: chat.id.into(),
                streams: HashMap::new(),
                thoughts: HashMap::new(),
                outs: HashMap::new(),
                cards: HashMap::new(),
                chat_due: None,
                chat_told: None,
                ack: None,
                acked: None,
                followed: None,
                follow_due: None,
                used: instant(),
            };
            self.chats.insert(session.to_owned(), held);
        }
        let held = self.chats.get_mut(session);
        let held = held.ok_or(StoreError::Closed)?;
        held.used = instant();
        Ok(held)
    }

    /// Asks for everything of a session that the store lacks.
    async fn follow(&mut self, session: &str) -> Result<(), StoreError> {
        if !self.link.can("resume") {
            return Ok(());
        }
        let id = self.held(session).await?.id.clone();
        let from = self.shared.store.follow_from(id.to_string()).await?;
        if let Some(held) = self.chats.get_mut(session) {
            held.followed = Some(instant());
        }
        let (peer, shared) = (self.peer.clone(), Arc::clone(&self.shared));
        let (link, session) = (self.link.clone(), session.to_owned());
        let tasks = self.shared.tasks.clone();
        tasks.spawn("follow", async move {
            follow(&shared, &link, &peer, &session, from).await;
        });
        Ok(())
    }

    /// Stores a batch of one session and notes what there is to show of it.
    async fn store(&mut self, session: Option<String>, puts: Vec<Put>) -> Result<(), StoreError> {
        let Some(session) = session.filter(|_| !puts.is_empty()) else {
            return Ok(());
        };
        let id = self.held(&session).await?.id.clone();
        let done = self
            .shared
            .store
            .put_items(id.to_string(), puts.clone())
            .await?;
        let mut items: BTreeSet<u64> = done.closed.iter().copied().collect();
        let mut gap = false;
        for (put, took) in puts.into_iter().zip(done.took) {
            match took {
                Took::New | Took::More => {
                    self.stored(&session, put, took, &mut items).await?;
                }
                Took::Known => {}
                Took::Gap => gap = true,
            }
        }
        if let Some(held) = self.chats.get_mut(&session) {
            held.ack = Some(done.head);
            for seq in &done.closed {
                held.streams.remove(seq);
                held.thoughts.remove(seq);
            }
        }
        self.tell_items(&id, items).await?;
        if gap && let Some(held) = self.chats.get_mut(&session) {
            tracing::warn!(
                device = self.link.inner.device,
                "text is missing: it is asked for again"
            );
            let at = held.followed.map_or_else(instant, |f| f + FOLLOW);
            held.follow_due.get_or_insert(at);
        }
        Ok(())
    }

    /// One stored piece: what it changes besides the transcript.
    async fn stored(
        &mut self,
        session: &str,
        put: Put,
        took: Took,
        items: &mut BTreeSet<u64>,
    ) -> Result<(), StoreError> {
        let id = self.held(session).await?.id.to_string();
        let shared = Arc::clone(&self.shared);
        match (put.kind, put.what) {
            ("text", Content::Tail { text, end }) => {
                self.text(session, put.seq, took, &text, end, items).await?;
            }
            ("thought", Content::Tail { .. }) => {
                let held = self.held(session).await?;
                held.thoughts
                    .entry(put.seq)
                    .or_insert_with(|| instant() + THOUGHT);
            }
            ("output", Content::Tail { text, end }) => {
                self.output(session, put.seq, put.call, &text, end).await?;
            }
            ("prompt", Content::Whole(data)) => {
                items.insert(put.seq);
                if took == Took::New {
                    let key = data.get("key").and_then(Value::as_str).unwrap_or_default();
                    shared
                        .store
                        .prompt_taken(id.clone(), key.to_owned())
                        .await?;
                    shared
                        .store
                        .chat_progress(id.clone(), None, Some(true), false)
                        .await?;
                    messages::tell_queue(&shared, &id).await;
                    self.chat_changed(session).await?;
                }
            }
            ("ask", Content::Whole(data)) => {
                let known = self.link.inner.device.clone();
                asks::stored(&shared, &known, &id, put.seq, &data, put.time).await?;
                items.insert(put.seq);
                self.chat_changed(session).await?;
            }
            ("ask_settled", Content::Whole(data)) => {
                asks::settled(&shared, self.link.device(), &data, put.time).await?;
                items.insert(put.seq);
                self.chat_changed(session).await?;
            }
            ("turn_end", Content::Whole(data)) => {
                items.insert(put.seq);
                // The phase may have come before the item or may never come: what was stopped is
                // never shown as done.
                let text = |key: &str| data.get(key).and_then(Value::as_str);
                let mut progress = (text("stop") == Some("cancelled")).then(|| {
                    let by = if text("reason").is_some() {
                        "a limit"
                    } else {
                        "you"
                    };
                    json!({ "phase": "stopped", "since": put.time, "by": by })
                });
                if let Some(stopped) = &mut progress {
                    self.keep_stop(&id, stopped).await?;
                }
                *self.link.inner.words.lock() = Some("nothing was running".to_owned());
                let running = Some(false);
                shared
                    .store
                    .chat_progress(id.clone(), progress, running, true)
                    .await?;
                self.chat_changed(session).await?;
                messages::after_turn(&shared, &id).await?;
            }
            (kind @ ("mode" | "model" | "level" | "title"), Content::Whole(data)) => {
                let text = |key: &str| data.get(key).and_then(Value::as_str).map(str::to_owned);
                let mut said = Said {
                    session: session.to_owned(),
                    epoch: self.link.epoch(),
                    ..Said::default()
                };
                match kind {
                    "mode" => said.mode = text("mode"),
                    "model" => said.model = text("model"),
                    "level" => said.level = text("level"),
                    _ => said.title = text("title"),
                }
                let (account, device) = (&self.link.inner.account, &self.link.inner.device);
                shared
                    .store
                    .say_chat(account.clone(), device.clone(), said)
                    .await?;
                items.insert(put.seq);
                self.chat_changed(session).await?;
            }
            ("rewound", _) => {
                items.insert(put.seq);
                // What was stopped or failed was taken back with it.
                if took == Took::New {
                    shared.store.chat_progress(id, None, None, true).await?;
                    self.chat_changed(session).await?;
                }
            }
            _ => {
                items.insert(put.seq);
            }
        }
        Ok(())
    }

    async fn text(
        &mut self,
        session: &str,
        seq: u64,
        took: Took,
        text: &str,
        end: u64,
        items: &mut BTreeSet<u64>,
    ) -> Result<(), StoreError> {
        let shared = Arc::clone(&self.shared);
        let held = self.held(session).await?;
        if took == Took::New {
            items.insert(seq);
        }
        if let Some(stream) = held.streams.get_mut(&seq) {
            // The store took what was new of it; the stream takes the same.
            let fresh = usize::try_from(end.saturating_sub(stream.len())).unwrap_or(0);
            let from = text.len().saturating_sub(fresh);
            if let Some(fresh) = text.get(from..) {
                stream.push(fresh);
            }
            return Ok(());
        }
        let id = held.id.to_string();
        let row = shared.store.item(id, seq).await?;
        let stream = Stream::new(row.map(|r| r.text).unwrap_or_default());
        // The page may know less than the whole: it gets the item as it is.
        items.insert(seq);
        self.held(session).await?.streams.insert(seq, stream);
        Ok(())
    }

    async fn output(
        &mut self,
        session: &str,
        seq: u64,
        call: Option<String>,
        text: &str,
        end: u64,
    ) -> Result<(), StoreError> {
        let shared = Arc::clone(&self.shared);
        let held = self.held(session).await?;
        let id = held.id.to_string();
        let call = call.unwrap_or_default();
        let card = match held.cards.get(&call) {
            Some(card) => *card,
            None => {
                let rows = shared.store.call_rows(id, vec![call.clone()]).await?;
                let Some(card) = rows.iter().find(|r| r.kind == "call").map(|r| r.seq) else {
                    return Ok(());
                };
                card
            }
        };
        let held = self.held(session).await?;
        if held.cards.len() > HELD {
            // Looked up again when one of them goes on.
            held.cards.clear();
        }
        held.cards.insert(call, card);
        let out = held.outs.entry(seq).or_insert_with(|| Out {
            card,
            tail: String::new(),
            at: 0,
            due: None,
            told: None,
        });
        out.tail.push_str(text);
        if out.tail.len() > 2 * TAIL {
            let cut = out.tail.len() - TAIL;
            let cut = (cut..out.tail.len()).find(|n| out.tail.is_char_boundary(*n));
            out.tail.drain(..cut.unwrap_or(0));
        }
        out.at = end;
        let at = out.told.map_or_else(instant, |t| t + OUT);
        out.due.get_or_insert(at);
        Ok(())
    }

    async fn phase(&mut self, session: &str, mut phase: Value) -> Result<(), StoreError> {
        let id = self.held(session).await?.id.to_string();
        if phase.get("phase").is_some_and(|p| p == "stopped") {
            self.keep_stop(&id, &mut phase).await?;
        }
        let name = phase
            .get("phase")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let ended = matches!(name, "stopped" | "failed");
        if let Some(words) = notices::phase_words(&phase) {
            *self.link.inner.words.lock() = Some(words);
        }
        let running = (!ended && name != "queued").then_some(true);
        self.shared
            .store
            .chat_progress(id, Some(phase).filter(|p| !p.is_null()), running, false)
            .await?;
        self.chat_changed(session).await
    }

    /// How long a stop took and what it ended is in its answer; the phase that comes beside it
    /// must not wipe that out.
    async fn keep_stop(&self, id: &str, phase: &mut Value) -> Result<(), StoreError> {
        let chat = self.shared.store.chat(id.to_owned()).await?;
        notices::keep_facts(chat.and_then(|c| c.progress).as_ref(), phase);
        Ok(())
    }

    /// The chat's line is to be told, soon.
    async fn chat_changed(&mut self, session: &str) -> Result<(), StoreError> {
        let held = self.held(session).await?;
        let at = held.chat_told.map_or_else(instant, |t| t + CHAT);
        held.chat_due.get_or_insert(at);
        self.device_due
            .get_or_insert_with(|| instant() + Duration::from_secs(1));
        Ok(())
    }
}

/// A word of a frame for the log.
fn shown(value: Option<&Value>) -> String {
    let text = value.map(Value::to_string).unwrap_or_default();
    text.chars().take(80).collect()
}

/// One `_lembas/follow`. A device that knows less than we do has begun a new epoch: its old chats
/// are closed and what it lists is followed anew with the next link.
async fn follow(shared: &Shared, link: &Link, peer: &Peer, session: &str, from: Position) {
    let params = json!({ "sessionId": session, "seq": from.seq, "at": from.at });
    let answer = peer
        .request_within("_lembas/follow", params, Duration::from_secs(30))
        .await;
    let Err(CallError::Rpc(error)) = answer else {
        return;
    };
    let data = error.data.unwrap_or_default();
    let epoch = data.get("epoch").and_then(Value::as_str);
    if data.get("reason").and_then(Value::as_str) == Some("epoch")
        && let Some(epoch) = epoch
    {
        run::close_old(shared, &link.inner.device, epoch).await;
        peer.close(ws::code::RESTART, "restart");
        return;
    }
    let known = shared
        .store
        .chat_of(link.inner.device.clone(), link.epoch(), session.to_owned())
        .await;
    if error.code == crate::rpc::RpcError::NOT_FOUND
        && let Ok(Some(chat)) = known
    {
        let why = "this session is not on the computer any more".to_owned();
        let _kept = shared.store.close_chat(chat.id.clone(), why).await;
        asks::over_with_chat(shared, &chat.id).await;
        notices::tell_chat(shared, &chat.id).await;
    } else {
        tracing::warn!(
            device = link.inner.device,
            code = error.code,
            "a session could not be followed"
        );
    }
}
