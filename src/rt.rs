//! Tasks: every one has a parent that awaits it and a token that ends it. No detached spawn.

use std::future::Future;

use tokio::task::JoinHandle;
pub use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// A parent's children. Dropping it ends nothing: call [`Tasks::end`].
#[derive(Clone, Debug, Default)]
pub struct Tasks {
    tracker: TaskTracker,
    stop: CancellationToken,
}

impl Tasks {
    pub fn new() -> Self {
        Self::default()
    }

    /// The children of a child: ended with this one, and on their own.
    pub fn child(&self) -> Self {
        Self {
            tracker: TaskTracker::new(),
            stop: self.stop.child_token(),
        }
    }

    /// The token that says these tasks shall end.
    pub fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    /// Starts a child. A panic in it is logged and hurts only itself.
    pub fn spawn<F>(&self, name: &'static str, future: F) -> JoinHandle<Option<F::Output>>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.tracker.spawn(guarded(name, future))
    }

    /// Tells the children to end and waits until the last has.
    pub async fn end(&self) {
        self.stop.cancel();
        self.wait().await;
    }

    /// Waits until the last child has ended, without telling them to.
    pub async fn wait(&self) {
        self.tracker.close();
        self.tracker.wait().await;
    }
}

async fn guarded<F: Future>(name: &'static str, future: F) -> Option<F::Output> {
    use futures_util::FutureExt as _;
    match std::panic::AssertUnwindSafe(future).catch_unwind().await {
        Ok(output) => Some(output),
        Err(panic) => {
            let what = panic
                .downcast_ref::<&str>()
                .map(ToString::to_string)
                .or_else(|| panic.downcast_ref::<String>().cloned())
                .unwrap_or_default();
            tracing::error!(task = name, what, "a task panicked");
            None
        }
    }
}

/// Runs blocking work on the blocking pool. `None` when it panicked.
#[expect(clippy::disallowed_methods, reason = "this is the spawn module")]
pub async fn blocking<F, T>(work: F) -> Option<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    tokio::task::spawn_blocking(work).await.ok()
}
