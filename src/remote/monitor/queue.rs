//! Turns at checking: one a schedule, a few a computer.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::rt::CancellationToken;

/// The queue. Cheap to clone. How long one waits in it is for the one who waits to say; how many
/// wait is bounded by the calls that a link may have open.
#[derive(Clone)]
pub(super) struct Queue {
    device: Arc<Semaphore>,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    schedules: HashMap<String, Weak<Semaphore>>,
    next: u64,
    /// Checks that run, to be ended when a limit changes.
    running: HashMap<u64, (PathBuf, CancellationToken)>,
}

/// A turn. Given back when it is dropped.
pub(super) struct Place {
    id: u64,
    queue: Queue,
    _schedule: OwnedSemaphorePermit,
    _device: OwnedSemaphorePermit,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.queue.state.lock().running.remove(&self.id);
    }
}

impl Queue {
    pub(super) fn new(parallel: usize) -> Self {
        Self {
            device: Arc::new(Semaphore::new(parallel)),
            state: Arc::default(),
        }
    }

    /// Waits for a turn. `None` never comes: the semaphores are not closed.
    pub(super) async fn enter(
        &self,
        schedule: &str,
        cwd: &Path,
        stop: &CancellationToken,
    ) -> Option<Place> {
        let one = {
            let mut state = self.state.lock();
            state.schedules.retain(|_, one| one.strong_count() > 0);
            let place = state.schedules.entry(schedule.to_owned()).or_default();
            place.upgrade().unwrap_or_else(|| {
                let one = Arc::new(Semaphore::new(1));
                *place = Arc::downgrade(&one);
                one
            })
        };
        let schedule = one.acquire_owned().await.ok()?;
        let device = Arc::clone(&self.device).acquire_owned().await.ok()?;
        let mut state = self.state.lock();
        let id = state.next;
        state.next += 1;
        state.running.insert(id, (cwd.to_owned(), stop.clone()));
        drop(state);
        Some(Place {
            id,
            queue: self.clone(),
            _schedule: schedule,
            _device: device,
        })
    }

    pub(super) fn end(&self, gone: impl Fn(&Path) -> bool) {
        let state = self.state.lock();
        let running = state.running.values();
        running
            .filter(|(cwd, _)| gone(cwd))
            .for_each(|(_, stop)| stop.cancel());
    }
}
