//! What happens in sessions, on its way to one connection.
//!
//! Each followed session has a pump that pulls from its journal as fast as the link takes it, and
//! no faster: the model never waits for a link, the journal does. Pumps take turns of 128 KiB, so
//! a session with much to say does not hold up another (link.md, Order). Not here: what an event
//! looks like (`outbound`).

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, SemaphorePermit, watch};

use super::error::bad;
use super::outbound::{Frame, View};
use super::port::Journal;
use crate::clock;
use crate::ids::{Position, Seq, SessionId};
use crate::rpc::{Closed, Peer, RpcError};
use crate::rt::{CancellationToken, Tasks};

/// Bytes that one session sends before the next has its turn.
pub(crate) const TURN: usize = 128 * 1024;

/// Sessions that one connection follows at once. More is refused: an instance shows a few.
const MOST: usize = 512;

/// The pumps of one connection.
pub(crate) struct Streams {
    peer: Peer,
    tasks: Tasks,
    pumps: Mutex<HashMap<SessionId, Pump>>,
    /// One turn at a time, first come first served.
    turns: Arc<Semaphore>,
    /// Whether what comes before all streams (the open asks) has been said.
    open: watch::Sender<bool>,
}

struct Pump {
    stop: CancellationToken,
    hold: watch::Sender<bool>,
    sent: watch::Receiver<Position>,
}

impl Streams {
    pub(crate) fn new(peer: Peer, tasks: Tasks) -> Self {
        Self {
            peer,
            tasks,
            pumps: Mutex::default(),
            turns: Arc::new(Semaphore::new(1)),
            open: watch::Sender::new(false),
        }
    }

    /// Lets the pumps begin.
    pub(crate) fn open(&self) {
        self.open.send_replace(true);
    }

    /// Streams a session from where `journal` and `view` begin, once `after` is set off. One that
    /// was streamed already goes on from there instead.
    pub(crate) fn start(
        &self,
        view: View,
        session: SessionId,
        journal: Box<dyn Journal>,
        after: CancellationToken,
    ) -> Result<(), RpcError> {
        let stop = self.tasks.stop().child_token();
        let (sent, seen) = watch::channel(view.sent());
        let mut pumps = self.pumps.lock();
        pumps.retain(|_, pump| !pump.stop.is_cancelled());
        if pumps.len() >= MOST && !pumps.contains_key(&session) {
            return Err(bad(
                "too_many",
                format!("at most {MOST} sessions are followed on one connection"),
            ));
        }
        let hold = watch::Sender::new(false);
        let flow = Flow {
            peer: self.peer.clone(),
            turns: Arc::clone(&self.turns),
            open: self.open.subscribe(),
            hold: hold.subscribe(),
            sent,
        };
        let pump = Pump {
            stop: stop.clone(),
            hold,
            sent: seen,
        };
        if let Some(old) = pumps.insert(session, pump) {
            old.stop.cancel();
        }
        drop(pumps);
        self.tasks.spawn("stream", async move {
            let run = async {
                after.cancelled().await;
                flow.run(view, journal).await;
            };
            // An end of the stream by itself: the session is gone, or the link.
            stop.run_until_cancelled(run).await;
            stop.cancel();
        });
        Ok(())
    }

    /// Ends a session's stream; says whether there was one.
    pub(crate) fn stop(&self, session: &SessionId) -> bool {
        let pump = self.pumps.lock().remove(session);
        pump.inspect(|pump| pump.stop.cancel()).is_some()
    }

    /// Keeps a session's updates back until `until` is set off: while it is loaded. When this
    /// returns none is on its way.
    pub(crate) async fn hold(&self, session: &SessionId, until: CancellationToken) {
        let hold = self.pumps.lock().get(session).map(|pump| pump.hold.clone());
        let Some(hold) = hold else { return };
        hold.send_replace(true);
        // Whoever had a turn has ended it when this one begins.
        drop(self.turn().await);
        self.tasks.spawn("hold", async move {
            until.cancelled().await;
            hold.send_replace(false);
        });
    }

    /// A turn at the link, for whoever sends much that is not streamed by a pump.
    pub(crate) async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        self.turns.acquire().await.ok()
    }

    /// Waits until everything up to an item has been sent, where its session is streamed at all;
    /// gives up when nothing moved for `patience`.
    pub(crate) async fn passed(&self, session: &SessionId, seq: Seq, patience: Duration) {
        let pump = self
            .pumps
            .lock()
            .get(session)
            .map(|p| (p.sent.clone(), p.stop.clone()));
        let Some((mut sent, stop)) = pump else { return };
        if !*self.open.borrow() {
            // Nothing moves yet: what waits here may be what the streams wait for.
            return;
        }
        let moving = async {
            while sent.borrow_and_update().seq < seq {
                match clock::timeout(patience, sent.changed()).await {
                    Ok(Ok(())) => {}
                    Ok(Err(_)) | Err(_) => return,
                }
            }
        };
        stop.run_until_cancelled(moving).await;
    }
}

/// What one pump works with.
struct Flow {
    peer: Peer,
    turns: Arc<Semaphore>,
    open: watch::Receiver<bool>,
    hold: watch::Receiver<bool>,
    sent: watch::Sender<Position>,
}

impl Flow {
    async fn run(mut self, mut view: View, mut journal: Box<dyn Journal>) {
        if self.open.wait_for(|open| *open).await.is_err() {
            return;
        }
        let turns = Arc::clone(&self.turns);
        // Frames of the event that was read last and are not sent yet: a long item takes several
        // turns.
        let mut frames = VecDeque::new();
        loop {
            if frames.is_empty() {
                match journal.next().await {
                    Some(event) => frames.extend(view.frames(event)),
                    None => return,
                }
            }
            let Ok(turn) = turns.acquire().await else {
                return;
            };
            if *self.hold.borrow() {
                drop(turn);
                if self.hold.wait_for(|hold| !*hold).await.is_err() {
                    return;
                }
                continue;
            }
            if self
                .burst(&mut frames, &mut view, &mut *journal)
                .await
                .is_err()
            {
                return;
            }
            drop(turn);
            // While the queue has room nothing above waits: the others come to stand in line here.
            tokio::task::yield_now().await;
        }
    }

    /// One turn: what waits, and what more there is now, up to the share.
    async fn burst(
        &self,
        frames: &mut VecDeque<Frame>,
        view: &mut View,
        journal: &mut dyn Journal,
    ) -> Result<(), Closed> {
        let mut left = TURN;
        loop {
            while let Some(frame) = frames.pop_front() {
                left = left.saturating_sub(frame.size);
                self.peer.notify(frame.method, frame.params).await?;
                if left == 0 && !frames.is_empty() {
                    return Ok(());
                }
            }
            self.sent.send_if_modified(|sent| {
                let moved = *sent < view.sent();
                *sent = view.sent();
                moved
            });
            if left == 0 || *self.hold.borrow() {
                return Ok(());
            }
            match journal.next().now_or_never() {
                Some(Some(event)) => frames.extend(view.frames(event)),
                // Nothing more now; that the session is gone is read again.
                Some(None) | None => return Ok(()),
            }
        }
    }
}
