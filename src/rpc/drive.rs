//! The task of one peer: reads frames into the core, does what the core says, writes the queue.
//!
//! One write is under way at a time and holds the sink; the task goes on reading meanwhile, so two
//! peers that both write much do not wait for each other.

mod act;
mod end;
mod write;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use self::write::Writer;
use super::Service;
use super::core::{Core, Event};
use super::error::{CallError, CloseReason};
use super::frames::{Frames, Incoming, Outgoing, Source};
use super::limits::Limits;
use super::message::Id;
use super::peer::{Kind, Peer, PeerDone, Probe, Queued};
use crate::clock::{self, Instant};
use crate::rt::Tasks;

/// Frames of the core's own (refusals, cancellations) that may wait to be written. A peer that
/// makes more while it takes none is closed with 1008.
const URGENT: usize = 4096;

pub(super) fn start(
    frames: impl Frames,
    make: impl FnOnce(Peer) -> Arc<dyn Service>,
    limits: Limits,
    tasks: &Tasks,
) -> (Peer, PeerDone) {
    let (peer, queue) = Peer::new(&limits);
    let service = make(peer.clone());
    let (source, sink) = frames.split();
    let driver = Driver {
        core: Core::new(limits.calls_in),
        service,
        peer: peer.clone(),
        tasks: tasks.clone(),
        queue,
        tokens: HashMap::new(),
        answers: HashMap::new(),
        probes: Vec::new(),
        closing: None,
        heard: clock::instant(),
        pinged: clock::instant(),
        writer: Writer::new(sink, limits.stall),
        limits,
    };
    let task = tasks.spawn("rpc", driver.run(source));
    let shared = Arc::clone(&peer.shared);
    (peer, PeerDone { task, shared })
}

struct Driver<W> {
    core: Core,
    service: Arc<dyn Service>,
    peer: Peer,
    tasks: Tasks,
    limits: Limits,
    queue: mpsc::Receiver<Queued>,
    writer: Writer<W>,
    /// Calls from the other side that are running.
    tokens: HashMap<Id, CancellationToken>,
    /// Requests of ours that wait.
    answers: HashMap<i64, oneshot::Sender<Result<Value, CallError>>>,
    probes: Vec<(Instant, Probe)>,
    closing: Option<Closing>,
    /// When anything was last heard, and when we last pinged.
    heard: Instant,
    pinged: Instant,
}

struct Closing {
    code: u16,
    reason: String,
    until: Instant,
}

impl<W: super::Sink> Driver<W> {
    async fn run(mut self, mut source: impl Source) {
        let reason = self.until_closed(&mut source).await;
        tracing::debug!(%reason, "a peer closed");
        // Nothing can be queued any more; what is queued was never sent.
        self.queue.close();
        self.peer.shared.shut(reason.clone());
        while let Ok(queued) = self.queue.try_recv() {
            if let Kind::Request(_, give) = queued.kind {
                let reason = reason.clone();
                let _ = give.send(Err(CallError::Closed {
                    sent: false,
                    reason,
                }));
            }
        }
        for (_, give) in self.answers.drain() {
            let reason = reason.clone();
            let _ = give.send(Err(CallError::Closed { sent: true, reason }));
        }
    }

    async fn until_closed(&mut self, source: &mut impl Source) -> CloseReason {
        let stop = self.tasks.stop().clone();
        let peer = self.peer.clone();
        loop {
            self.take_notes();
            if let Some(reason) = self.overdue(clock::instant()) {
                return reason;
            }
            if let Some(reason) = self.fill_writer() {
                return self.farewell(source, reason).await;
            }
            let wake = self.next_deadline();
            let reading = self.closing.is_none();
            let writing = self.writer.is_busy();
            let max = peer.shared.max_in.load(Ordering::Relaxed);
            tokio::select! {
                frame = source.next(max), if reading => match frame {
                    Ok(Some(frame)) => {
                        if let Some(reason) = self.take(frame, max) {
                            return reason;
                        }
                    }
                    Ok(None) => return CloseReason::Ended,
                    Err(error) => return CloseReason::Broken(error.to_string()),
                },
                result = self.writer.done(), if writing => {
                    if let Err(error) = result {
                        return self.broken(source, &error).await;
                    }
                }
                queued = self.queue.recv(), if !writing => {
                    if let Some(queued) = queued {
                        self.enqueue(queued);
                    }
                }
                () = peer.shared.wake.notified() => {}
                () = stop.cancelled(), if reading => self.close(1001, "stopping"),
                () = clock::sleep_until(wake) => {}
            }
        }
    }

    /// What handles left for us.
    fn take_notes(&mut self) {
        let (close, dropped, probes) = {
            let mut notes = self.peer.shared.notes.lock();
            let notes = &mut *notes;
            (
                notes.close.take(),
                std::mem::take(&mut notes.dropped),
                std::mem::take(&mut notes.probes),
            )
        };
        for id in dropped {
            self.answers.remove(&id);
            let actions = self.core.step(Event::Dropped(id));
            self.act(actions);
        }
        for probe in probes {
            if self.limits.keepalive.is_none() {
                let _ = probe.heard.send(true);
                continue;
            }
            self.writer.own(Outgoing::Ping);
            self.probes.push((clock::instant() + probe.within, probe));
        }
        if let Some((code, reason)) = close {
            self.close(code, &reason);
        }
    }

    fn close(&mut self, code: u16, reason: &str) {
        if self.closing.is_none() {
            // Nobody new gets in; what is queued already goes out first.
            self.queue.close();
            self.closing = Some(Closing {
                code,
                // A close frame carries at most 125 bytes, two of them the code.
                reason: head(reason, 123),
                until: clock::instant() + self.limits.closing,
            });
        }
    }

    /// Starts the next write when none is under way. Says how we closed when all is written.
    fn fill_writer(&mut self) -> Option<CloseReason> {
        if self.writer.waiting() > URGENT {
            self.close(1008, "too much to refuse");
        }
        if self.writer.is_busy() {
            return None;
        }
        while self.writer.has_room() {
            let Ok(queued) = self.queue.try_recv() else {
                break;
            };
            self.enqueue(queued);
        }
        if self.writer.start() {
            return None;
        }
        let closing = self.closing.as_ref()?;
        Some(CloseReason::Local {
            code: closing.code,
            reason: closing.reason.clone(),
        })
    }

    /// A frame leaves the queue.
    fn enqueue(&mut self, queued: Queued) {
        match queued.kind {
            Kind::Notice => {}
            Kind::Request(id, give) => {
                if give.is_closed() {
                    // Its asker went before it was sent.
                    return;
                }
                self.answers.insert(id, give);
                self.core.step(Event::Asked(id));
            }
            Kind::Answer { id, ok } => {
                self.tokens.remove(&id);
                let actions = self.core.step(Event::Answered { id, ok });
                self.act(actions);
            }
        }
        self.writer.add(queued.frame, queued.room);
    }

    fn take(&mut self, frame: Incoming, max: usize) -> Option<CloseReason> {
        self.heard = clock::instant();
        for (_, probe) in self.probes.drain(..) {
            let _ = probe.heard.send(true);
        }
        let event = match frame {
            Incoming::Text(text) if text.len() > max => Event::TooLong {
                bytes: text.len(),
                head: head(&text, 4096),
                over: true,
            },
            Incoming::Text(text) => Event::Frame(text),
            Incoming::TooLong { head, bytes, over } => Event::TooLong { head, bytes, over },
            Incoming::Alive => return None,
            Incoming::Close { code, reason } => return Some(CloseReason::Remote { code, reason }),
        };
        let actions = self.core.step(event);
        self.act(actions);
        None
    }

    /// Whether a deadline has passed that ends the link.
    fn overdue(&mut self, now: Instant) -> Option<CloseReason> {
        for (_, probe) in self.probes.extract_if(.., |(at, _)| *at <= now) {
            let _ = probe.heard.send(false);
        }
        if let Some(closing) = &self.closing
            && closing.until <= now
        {
            return Some(CloseReason::Local {
                code: closing.code,
                reason: closing.reason.clone(),
            });
        }
        if self.writer.is_stuck(now) {
            return Some(CloseReason::Stuck);
        }
        let keepalive = self.limits.keepalive?;
        if now >= self.heard + keepalive.dead {
            return Some(CloseReason::Dead);
        }
        if let Some(every) = keepalive.ping
            && now >= self.pinged + every
        {
            self.pinged = now;
            self.writer.own(Outgoing::Ping);
        }
        None
    }

    fn next_deadline(&self) -> Instant {
        let keepalive = self.limits.keepalive.as_ref();
        let candidates = [
            self.closing.as_ref().map(|closing| closing.until),
            self.writer.deadline(),
            keepalive.map(|keepalive| self.heard + keepalive.dead),
            keepalive.and_then(|keepalive| Some(self.pinged + keepalive.ping?)),
            self.probes.iter().map(|(at, _)| *at).min(),
        ];
        let far = clock::instant() + Duration::from_secs(24 * 60 * 60);
        candidates.into_iter().flatten().min().unwrap_or(far)
    }
}

/// At most `bytes` bytes of the beginning.
fn head(text: &str, bytes: usize) -> String {
    text.get(..text.floor_char_boundary(bytes))
        .unwrap_or_default()
        .to_owned()
}

#[cfg(test)]
mod tests;
