//! The write that is under way, and what goes into the next one.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::OwnedSemaphorePermit;

use crate::clock::{self, Instant};
use crate::rpc::frames::{Outgoing, Sink};

/// Bytes and frames of one write. More waits for the next.
const BATCH_BYTES: usize = 64 * 1024;
const BATCH_FRAMES: usize = 64;

/// Bytes a second that a socket which does not count what it takes must at least take.
const SLOWEST: u64 = 64 * 1024;

pub(super) struct Writer<W> {
    /// The sink, while no write is under way.
    sink: Option<W>,
    busy: Option<BoxFuture<'static, (W, io::Result<()>)>>,
    /// The next write, in order: frames of the queue with their room, and the peer's own.
    next: Vec<(Outgoing, Option<OwnedSemaphorePermit>)>,
    bytes: usize,
    taken: Option<Arc<AtomicU64>>,
    stall: Duration,
    /// When the write under way is dead, and what was taken when that was set.
    dead: Option<(Instant, u64)>,
}

impl<W: Sink> Writer<W> {
    pub(super) fn new(sink: W, stall: Duration) -> Self {
        Self {
            taken: sink.taken(),
            sink: Some(sink),
            busy: None,
            next: Vec::new(),
            bytes: 0,
            stall,
            dead: None,
        }
    }

    /// Puts a frame of the peer's own into the next write. It never waits for room.
    pub(super) fn own(&mut self, frame: Outgoing) {
        let twice = |(other, _): &(Outgoing, _)| *other == Outgoing::Ping;
        if frame == Outgoing::Ping && self.next.iter().any(twice) {
            return;
        }
        if let Outgoing::Text(text) = &frame {
            self.bytes += text.len();
        }
        self.next.push((frame, None));
    }

    /// Puts a frame of the queue into the next write.
    pub(super) fn add(&mut self, frame: String, room: OwnedSemaphorePermit) {
        self.bytes += frame.len();
        self.next.push((Outgoing::Text(frame), Some(room)));
    }

    /// Frames that wait for the next write.
    pub(super) fn waiting(&self) -> usize {
        self.next.len()
    }

    pub(super) fn has_room(&self) -> bool {
        self.bytes < BATCH_BYTES && self.next.len() < BATCH_FRAMES
    }

    pub(super) fn is_busy(&self) -> bool {
        self.busy.is_some()
    }

    /// Starts the next write; false when there is nothing to write or a write is under way.
    pub(super) fn start(&mut self) -> bool {
        if self.next.is_empty() {
            return false;
        }
        let Some(mut sink) = self.sink.take() else {
            return false;
        };
        let frames = std::mem::take(&mut self.next);
        let bytes = std::mem::take(&mut self.bytes);
        let now = clock::instant();
        self.dead = Some(if let Some(taken) = &self.taken {
            (now + self.stall, taken.load(Ordering::Relaxed))
        } else {
            let time = Duration::from_secs(bytes as u64 / SLOWEST);
            (now + self.stall + time, 0)
        });
        self.busy = Some(Box::pin(async move {
            let written = async {
                for (frame, room) in frames {
                    sink.send(frame).await?;
                    drop(room);
                }
                sink.flush().await
            };
            let result = written.await;
            (sink, result)
        }));
        true
    }

    /// Waits for the write under way. Safe to cancel; returns at once when there is none.
    pub(super) async fn done(&mut self) -> io::Result<()> {
        let Some(busy) = &mut self.busy else {
            return Ok(());
        };
        let (sink, result) = busy.await;
        self.busy = None;
        self.dead = None;
        self.sink = Some(sink);
        result
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.dead.map(|(at, _)| at)
    }

    /// Whether no byte was taken since the deadline was set. Sets a new one when some were.
    pub(super) fn is_stuck(&mut self, now: Instant) -> bool {
        let Some((at, before)) = self.dead else {
            return false;
        };
        if now < at {
            return false;
        }
        let after = self
            .taken
            .as_ref()
            .map_or(before, |taken| taken.load(Ordering::Relaxed));
        self.dead = Some((now + self.stall, after));
        after == before
    }
}
