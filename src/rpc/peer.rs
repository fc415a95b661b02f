//! The handle of a peer: what others hold to ask, to tell and to close.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use super::error::{CallError, CloseReason, Closed};
use super::limits::Limits;
use super::message;
use crate::clock;

/// Questions for a sign of life that may be open at once. The next counts as not answered.
const PROBES: usize = 16;

/// An outgoing frame in the queue. It keeps its share of the queue's bytes until it is written.
#[derive(Debug)]
pub(super) struct Queued {
    pub(super) frame: String,
    pub(super) kind: Kind,
    pub(super) room: OwnedSemaphorePermit,
}

#[derive(Debug)]
pub(super) enum Kind {
    Notice,
    Request(i64, oneshot::Sender<Result<Value, CallError>>),
    Answer { id: message::Id, ok: bool },
}

/// A question for a sign of life.
#[derive(Debug)]
pub(super) struct Probe {
    pub(super) within: Duration,
    pub(super) heard: oneshot::Sender<bool>,
}

/// What a handle leaves for the driver without waiting.
#[derive(Debug, Default)]
pub(super) struct Notes {
    pub(super) close: Option<(u16, String)>,
    /// Ids of requests whose asker is gone; at most one for each pending request.
    pub(super) dropped: Vec<i64>,
    pub(super) probes: Vec<Probe>,
}

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) notes: Mutex<Notes>,
    pub(super) wake: Notify,
    pub(super) max_in: AtomicUsize,
    pub(super) max_out: AtomicUsize,
    pub(super) closed: watch::Sender<Option<CloseReason>>,
    next_id: AtomicI64,
    /// Room in the queue, in bytes.
    room: Arc<Semaphore>,
    room_size: usize,
    /// Requests that may wait for an answer.
    asking: Arc<Semaphore>,
}

/// A cheap handle of one peer. The peer lives until it is closed from either side, not until the
/// last handle is dropped.
#[derive(Clone, Debug)]
pub struct Peer {
    pub(super) shared: Arc<Shared>,
    queue: mpsc::Sender<Queued>,
}

impl Peer {
    pub(super) fn new(limits: &Limits) -> (Self, mpsc::Receiver<Queued>) {
        let (queue, queued) = mpsc::channel(limits.queue_frames);
        let room_size = limits.queue_bytes.min(u32::MAX as usize);
        let shared = Shared {
            notes: Mutex::default(),
            wake: Notify::new(),
            max_in: AtomicUsize::new(limits.first_frame),
            max_out: AtomicUsize::new(limits.first_frame),
            closed: watch::Sender::new(None),
            next_id: AtomicI64::new(1),
            room: Arc::new(Semaphore::new(room_size)),
            room_size,
            asking: Arc::new(Semaphore::new(limits.calls_out)),
        };
        let peer = Self {
            shared: Arc::new(shared),
            queue,
        };
        (peer, queued)
    }

    /// Asks and waits for the answer, however long it takes. Dropping the future tells the other
    /// side with `$/cancel_request` that the answer is no longer wanted.
    ///
    /// # Errors
    /// See [`CallError`]; `Closed { sent: false }` is the only one after which the request is
    /// surely unknown to the other side.
    pub async fn request(&self, method: &str, params: Value) -> Result<Value, CallError> {
        let unsent = || CallError::Closed {
            sent: false,
            reason: self.reason(),
        };
        let asking = Arc::clone(&self.shared.asking);
        let _turn = asking.acquire_owned().await.map_err(|_| unsent())?;
        let id = self.shared.next_id.fetch_add(1, Ordering::Relaxed);
        let frame = message::asking(Some(id), method, &params);
        drop(params);
        self.check(&frame)?;
        let room = self.room(frame.len()).await.map_err(|_| unsent())?;
        let (give, answer) = oneshot::channel();
        let mut wait = Wait {
            id,
            answer,
            shared: &self.shared,
        };
        let queued = Queued {
            frame,
            kind: Kind::Request(id, give),
            room,
        };
        self.queue.send(queued).await.map_err(|_| unsent())?;
        match (&mut wait.answer).await {
            Ok(outcome) => outcome,
            Err(_) => Err(unsent()),
        }
    }

    /// [`Peer::request`] with a bound on the wait, queueing included.
    pub async fn request_within(
        &self,
        method: &str,
        params: Value,
        within: Duration,
    ) -> Result<Value, CallError> {
        clock::timeout(within, self.request(method, params))
            .await
            .unwrap_or(Err(CallError::Timeout))
    }

    /// Tells. Waits while the queue is full; that it returns does not mean that it was written.
    ///
    /// A notification longer than the other side takes is dropped with a log line.
    pub async fn notify(&self, method: &str, params: Value) -> Result<(), Closed> {
        let frame = message::asking(None, method, &params);
        drop(params);
        if let Err(error) = self.check(&frame) {
            tracing::error!(method, %error, "a notification was not sent");
            return Ok(());
        }
        self.enqueue(frame, Kind::Notice).await
    }

    pub(super) async fn enqueue(&self, frame: String, kind: Kind) -> Result<(), Closed> {
        let room = self.room(frame.len()).await?;
        let queued = Queued { frame, kind, room };
        self.queue.send(queued).await.map_err(|_| Closed)
    }

    /// Closes the link: what is queued still goes out for a moment, then a close frame with this
    /// code and reason. The first call counts.
    pub fn close(&self, code: u16, reason: &str) {
        self.shared
            .notes
            .lock()
            .close
            .get_or_insert_with(|| (code, reason.into()));
        self.shared.wake.notify_one();
    }

    /// Waits until the link is closed, and says how.
    pub async fn closed(&self) -> CloseReason {
        let mut closed = self.shared.closed.subscribe();
        let reason = closed.wait_for(Option::is_some).await;
        reason
            .ok()
            .and_then(|reason| reason.clone())
            .unwrap_or(CloseReason::Ended)
    }

    pub fn is_closed(&self) -> bool {
        self.shared.closed.borrow().is_some()
    }

    /// Pings the other side; true when anything was heard of it in time. False does not close the
    /// link. Over a transport without pings nothing is asked and the answer is true.
    pub async fn probe(&self, within: Duration) -> bool {
        let (heard, answer) = oneshot::channel();
        {
            let mut notes = self.shared.notes.lock();
            if self.is_closed() || notes.probes.len() >= PROBES {
                return false;
            }
            notes.probes.push(Probe { within, heard });
        }
        self.shared.wake.notify_one();
        answer.await.unwrap_or(false)
    }

    /// The most bytes of an incoming frame from now on.
    pub fn set_max_frame(&self, bytes: usize) {
        self.shared.max_in.store(bytes, Ordering::Relaxed);
        self.shared.wake.notify_one();
    }

    /// The most bytes of an outgoing frame from now on.
    pub fn set_max_send(&self, bytes: usize) {
        self.shared.max_out.store(bytes, Ordering::Relaxed);
    }

    /// The most bytes of an outgoing frame.
    pub fn max_send(&self) -> usize {
        self.shared.max_out.load(Ordering::Relaxed)
    }

    fn check(&self, frame: &str) -> Result<(), CallError> {
        let limit = self.max_send();
        if frame.len() > limit {
            return Err(CallError::TooLong {
                bytes: frame.len(),
                limit,
            });
        }
        Ok(())
    }

    async fn room(&self, bytes: usize) -> Result<OwnedSemaphorePermit, Closed> {
        // A frame larger than the whole queue goes when the queue is empty.
        let bytes = u32::try_from(bytes.min(self.shared.room_size)).unwrap_or(u32::MAX);
        Arc::clone(&self.shared.room)
            .acquire_many_owned(bytes)
            .await
            .map_err(|_| Closed)
    }

    fn reason(&self) -> CloseReason {
        self.shared
            .closed
            .borrow()
            .clone()
            .unwrap_or(CloseReason::Ended)
    }
}

impl Shared {
    /// Lets nobody in any more: whoever waits for room or a turn hears that the link is closed.
    pub(super) fn shut(&self, reason: CloseReason) {
        self.closed.send_replace(Some(reason));
        self.room.close();
        self.asking.close();
        // Their askers hear `false`.
        self.notes.lock().probes.clear();
    }
}

/// A request on its way. When it is dropped unanswered the driver hears of it.
struct Wait<'a> {
    id: i64,
    answer: oneshot::Receiver<Result<Value, CallError>>,
    shared: &'a Shared,
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        // Closed before the note is left: a driver that takes the request after this does not
        // send it, one that took it before finds the note.
        self.answer.close();
        if self.answer.is_terminated() || self.answer.try_recv().is_ok() {
            return;
        }
        self.shared.notes.lock().dropped.push(self.id);
        self.shared.wake.notify_one();
    }
}

/// The end of a peer: resolves when its tasks, but for running calls, have ended.
#[derive(Debug)]
pub struct PeerDone {
    pub(super) task: JoinHandle<Option<()>>,
    pub(super) shared: Arc<Shared>,
}

impl PeerDone {
    /// Waits for the end and says how it came.
    pub async fn wait(self) -> CloseReason {
        // An error is the task's panic or abort; the reason below then stands for it.
        let _ = self.task.await;
        let reason = self.shared.closed.borrow().clone();
        reason.unwrap_or_else(|| CloseReason::Broken("the link's task ended early".into()))
    }
}
