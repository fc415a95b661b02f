//! One session's journal: numbers, writes in order, and the live end that followers read.
//!
//! The journal is linear: only its last item may be open, and it is closed as soon as another
//! item follows (a command that writes on gets a further `Output` item). So one position, a number
//! and the bytes of that item's text, says all of what a follower has.
//! Everything but streamed text is on the disk before anyone can see it. Not here: what items
//! mean (`agent`, `context`), who may follow (`session`).

pub mod tail;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};

use crate::clock;
use crate::ids::{CallId, Position, Seq, SessionId};
use crate::rt::CancellationToken;
use crate::store::db::{Durability, StoreError};
use crate::store::device::Store;
use crate::store::device::items::{self, Also};
use crate::store::device::sessions::SessionRow;
use crate::store::item::{Body, Item};

use tail::{Read, Tail};

/// Numbers are taken in blocks; what a block had left when the daemon stopped is never used.
const BLOCK: u64 = 1_000;
/// How far streamed text may run ahead of the disk.
pub const AHEAD: Duration = Duration::from_millis(250);
/// One session's items may take this many bytes. At 80 % the person is told; at the cap its turn
/// ends and says so.
pub const SESSION_CAP: u64 = 256 * 1024 * 1024;
/// A streamed item is closed at this length and its text goes on in a further one.
const ITEM_CAP: usize = 1024 * 1024;
/// A follower reads at most this much text at once from the disk (one item is always read).
const READ_BYTES: usize = 256 * 1024;

/// Which streamed text grows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stream {
    Message,
    Thought,
    Output(CallId),
}

impl Stream {
    fn of(body: &Body) -> Option<Self> {
        match body {
            Body::Message { .. } => Some(Self::Message),
            Body::Thought { .. } => Some(Self::Thought),
            Body::Output { call, .. } => Some(Self::Output(call.clone())),
            _ => None,
        }
    }

    fn open(&self, text: String) -> Body {
        match self {
            Self::Message => Body::Message { text },
            Self::Thought => Body::Thought { text },
            Self::Output(call) => Body::Output {
                call: call.clone(),
                text,
            },
        }
    }
}

/// A cheap handle to one session's journal. There is one journal a session and process.
#[derive(Clone, Debug)]
pub struct Journal(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    store: Store,
    session: SessionId,
    writer: tokio::sync::Mutex<Writer>,
    tail: Mutex<Tail>,
    /// Changes whenever a follower may find something new.
    version: watch::Sender<u64>,
    /// Streamed text is in memory only: the flusher shall run.
    ahead: Notify,
    /// Changes whenever a session's row does; shared by all sessions of a registry.
    changes: watch::Sender<u64>,
}

#[derive(Debug)]
struct Writer {
    /// The next number.
    next: u64,
    /// The last number of the block that is taken on the disk.
    reserved: u64,
    turn: u32,
    calls: u32,
    bytes: u64,
    /// A write was begun and its end was not seen (its future was dropped): memory may lack
    /// what the disk has.
    in_flight: bool,
    /// Text of such a write, which goes with the next one.
    rescued: Vec<Item>,
}

impl Journal {
    /// The journal of a session as its row says it is.
    pub fn new(store: Store, row: &SessionRow, changes: watch::Sender<u64>) -> Self {
        Self(Arc::new(Inner {
            session: row.id.clone(),
            store,
            writer: tokio::sync::Mutex::new(Writer {
                // Never on from the head: text that was told may not have reached the disk.
                next: row.reserved + 1,
                reserved: row.reserved,
                turn: row.turn,
                calls: row.calls,
                bytes: row.bytes,
                in_flight: false,
                rescued: Vec::new(),
            }),
            tail: Mutex::new(Tail::new(Seq(row.reserved + 1))),
            version: watch::Sender::new(0),
            ahead: Notify::new(),
            changes,
        }))
    }

    pub fn session(&self) -> &SessionId {
        &self.0.session
    }

    pub fn store(&self) -> &Store {
        &self.0.store
    }

    /// Marked changed whenever there may be something new to read.
    pub fn version(&self) -> watch::Receiver<u64> {
        self.0.version.subscribe()
    }

    /// Tells everyone who lists sessions that this one changed.
    pub fn touch(&self) {
        self.0.changes.send_modify(|n| *n = n.wrapping_add(1));
    }

    /// How many bytes the session's items take.
    pub async fn bytes(&self) -> u64 {
        self.0.writer.lock().await.bytes
    }

    /// The id of the next tool call: its number in the session, in hex, at least four digits.
    /// The result of the call is known to the model under the same number (context.md, ids).
    pub async fn call_ids(&self, count: usize) -> Vec<CallId> {
        let calls = self.0.writer.lock().await.calls;
        (1..=u32::try_from(count).unwrap_or(u32::MAX))
            .map(|n| CallId::new(format!("{:04x}", calls + n)))
            .collect()
    }

    /// Commits items, in order, with what else must be kept together with them, and then shows
    /// them. A `Prompt` begins the next turn. Open text is closed and written before them.
    ///
    /// # Errors
    /// When nothing could be saved; the numbers are then never used.
    pub async fn append(
        &self,
        bodies: Vec<Body>,
        how: Durability,
        also: Also,
    ) -> Result<Vec<Item>, StoreError> {
        let mut writer = self.0.writer.lock().await;
        self.recover(&mut writer);
        let time = clock::now_ms();
        let mut turn = writer.turn;
        let mut next = writer.next;
        let mut calls = 0;
        let items: Vec<Item> = bodies
            .into_iter()
            .map(|body| {
                if matches!(body, Body::Prompt { .. }) {
                    turn += 1;
                }
                calls += u32::from(matches!(body, Body::Call { .. }));
                let seq = Seq(next);
                next += 1;
                Item {
                    seq,
                    turn,
                    time,
                    body,
                }
            })
            .collect();
        writer.next = next;
        self.write(&mut writer, &items, how, also).await?;
        writer.turn = turn;
        writer.calls += calls;
        let ends = items.iter().any(|i| matches!(i.body, Body::TurnEnd { .. }));
        {
            let mut tail = self.0.tail.lock();
            tail.close();
            tail.push(items.iter().cloned());
            if ends {
                tail.trim_idle();
            }
        }
        drop(writer);
        self.shown();
        self.touch();
        Ok(items)
    }

    /// Adds streamed text: seen at once, on the disk within [`AHEAD`].
    ///
    /// # Errors
    /// When an item had to be closed or a number taken, and that could not be saved. The text is
    /// then not in the journal.
    pub async fn text(&self, stream: &Stream, chunk: &str) -> Result<(), StoreError> {
        if chunk.is_empty() {
            return Ok(());
        }
        let mut writer = self.0.writer.lock().await;
        self.recover(&mut writer);
        if !self.0.tail.lock().grow(stream, chunk, ITEM_CAP) {
            let unsaved = self.0.tail.lock().unsaved().is_some();
            let seq = Seq(writer.next);
            writer.next += 1;
            if unsaved || seq.0 > writer.reserved {
                self.write(&mut writer, &[], Durability::Process, Also::default())
                    .await?;
            }
            let item = Item {
                seq,
                turn: writer.turn,
                time: clock::now_ms(),
                body: stream.open(chunk.to_owned()),
            };
            let mut tail = self.0.tail.lock();
            tail.close();
            tail.open(item);
        }
        drop(writer);
        self.0.ahead.notify_one();
        self.shown();
        Ok(())
    }

    /// Writes streamed text that is in memory only.
    ///
    /// # Errors
    /// When it cannot be saved; it stays in memory and is tried again with the next write.
    pub async fn flush(&self) -> Result<(), StoreError> {
        let mut writer = self.0.writer.lock().await;
        self.recover(&mut writer);
        if self.0.tail.lock().unsaved().is_none() {
            return Ok(());
        }
        self.write(&mut writer, &[], Durability::Process, Also::default())
            .await
    }

    /// Flushes streamed text in time, until told to stop and once more then.
    pub async fn keep_flushed(self, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                () = self.0.ahead.notified() => {}
            }
            tokio::select! {
                () = stop.cancelled() => break,
                () = clock::sleep(AHEAD) => {}
            }
            self.flush_or_say().await;
        }
        self.flush_or_say().await;
    }

    async fn flush_or_say(&self) {
        if let Err(error) = self.flush().await {
            tracing::warn!(session = %self.0.session, %error, "cannot save streamed text yet");
        }
    }

    /// Writes the open item as far as it is, the given items, and a further block of numbers when
    /// the present one is used up.
    async fn write(
        &self,
        writer: &mut Writer,
        items: &[Item],
        how: Durability,
        also: Also,
    ) -> Result<(), StoreError> {
        let (open, saved) = {
            let tail = self.0.tail.lock();
            (tail.unsaved(), tail.saved_bytes())
        };
        let open_end = open.as_ref().map(Item::position);
        let given = writer.next - 1;
        let reserved = if given > writer.reserved {
            given.max(writer.reserved + BLOCK)
        } else {
            writer.reserved
        };
        // Numbers may only be told once no later start can give them again.
        let how = if reserved > writer.reserved {
            Durability::Disk
        } else {
            how
        };
        let grown = open_end.map_or(0, |end| end.at.saturating_sub(saved as u64));
        let rows: Vec<Item> = std::mem::take(&mut writer.rescued)
            .into_iter()
            .chain(open)
            .chain(items.iter().cloned())
            .collect();
        let session = self.0.session.clone();
        let size = grown + items.iter().map(size).sum::<u64>();
        writer.in_flight = true;
        let written = self
            .0
            .store
            .db()
            .write(how, move |t| {
                items::put(t, &session, &rows, reserved, &also)
            })
            .await;
        writer.in_flight = false;
        if written? {
            self.0.store.rules_changed();
        }
        writer.reserved = reserved;
        writer.bytes += size;
        if let Some(end) = open_end {
            self.0.tail.lock().saved(end);
        }
        Ok(())
    }

    /// After a write whose end was not seen, followers read from the disk again, and text that
    /// they may have seen is written again with the next write.
    fn recover(&self, writer: &mut Writer) {
        if std::mem::take(&mut writer.in_flight) {
            let mut tail = self.0.tail.lock();
            writer.rescued.extend(tail.unsaved());
            *tail = Tail::new(Seq(writer.next));
        }
    }

    fn shown(&self) {
        self.0.version.send_modify(|n| *n = n.wrapping_add(1));
    }

    /// Ends every follower: the session is deleted.
    pub fn deleted(&self) {
        self.0.tail.lock().delete();
        self.shown();
        self.touch();
    }

    /// What follows a position, from memory where it is there, else from the disk: at most `limit`
    /// items, each whole as far as it is. Nothing yet: empty. None: the session was deleted.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn read(
        &self,
        after: Position,
        limit: usize,
    ) -> Result<Option<VecDeque<Item>>, StoreError> {
        loop {
            let read = self.0.tail.lock().read(after, limit);
            let before = match read {
                Read::Deleted => return Ok(None),
                Read::Items(items) => return Ok(Some(items)),
                Read::Older { before } => before,
            };
            let mut items: VecDeque<Item> = self
                .0
                .store
                .items(&self.0.session, after.seq, limit.max(2), READ_BYTES)
                .await?
                .into();
            items.retain(|i| i.seq < before && i.position() > after);
            if !items.is_empty() {
                return Ok(Some(items));
            }
            self.0.tail.lock().nothing_between(after, before);
        }
    }
}

/// What an item adds to the bytes of its session; near enough for a cap.
fn size(item: &Item) -> u64 {
    match items::text(&item.body) {
        Some(text) => text.len() as u64,
        None => serde_json::to_string(&item.body).map_or(0, |s| s.len() as u64),
    }
}

#[cfg(test)]
mod tests;
