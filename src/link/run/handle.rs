//! The handle of the link: what others hold to watch it and to say what they want of it.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

use super::Task;
use crate::link::http::Http;
use crate::link::instance::InstanceFile;
use crate::link::state::LinkState;
use crate::rpc::{CloseReason, Limits, Peer, Service};
use crate::rt::Tasks;

/// What a link is made of.
#[derive(Clone, Debug)]
pub struct LinkConfig {
    /// The pairing; read anew for every dial.
    pub file: InstanceFile,
    pub http: Http,
    pub limits: Limits,
}

impl LinkConfig {
    pub fn new(file: InstanceFile, http: Http) -> Self {
        Self {
            file,
            http,
            limits: Limits::device(),
        }
    }
}

/// Makes the service of each socket. A closure of a peer is one.
pub trait ServiceFactory: Send + Sync + 'static {
    /// A socket is there: what serves it. Nothing is remembered from an earlier one by the link.
    fn open(&self, peer: Peer) -> Arc<dyn Service>;

    /// That socket is gone. Called before the next is opened.
    fn closed(&self, reason: &CloseReason) {
        let _ = reason;
    }
}

impl<F> ServiceFactory for F
where
    F: Fn(Peer) -> Arc<dyn Service> + Send + Sync + 'static,
{
    fn open(&self, peer: Peer) -> Arc<dyn Service> {
        self(peer)
    }
}

/// The handle of the link. The link lives until [`Link::stop`] or the end of its tasks.
#[derive(Clone, Debug)]
pub struct Link {
    wishes: Arc<Wishes>,
    state: watch::Receiver<LinkState>,
}

/// The end of a link's task.
#[derive(Debug)]
pub struct LinkDone(JoinHandle<Option<()>>);

impl LinkDone {
    /// Waits until the link has closed its socket and ended.
    pub async fn wait(self) {
        // An error is an abort: it has ended either way.
        let _ = self.0.await;
    }
}

/// What is wished for and not yet done. Wishes of one kind are one.
#[derive(Debug, Default)]
pub(super) struct Wishes {
    pub(super) open: Mutex<Open>,
    pub(super) wake: Notify,
}

#[derive(Debug, Default)]
pub(super) struct Open {
    pub(super) retry: bool,
    pub(super) take: bool,
    pub(super) redial: bool,
    pub(super) reload: bool,
    pub(super) stop: bool,
}

impl Link {
    /// Starts to keep a link up with what is on disk. `factory` makes the service of each socket.
    pub fn start(
        config: LinkConfig,
        factory: impl ServiceFactory,
        tasks: &Tasks,
    ) -> (Self, LinkDone) {
        let (tell, state) = watch::channel(LinkState::default());
        let wishes = Arc::new(Wishes::default());
        let task = Task::new(config, Arc::new(factory), Arc::clone(&wishes), tell, tasks);
        let done = LinkDone(tasks.spawn("link", task.run()));
        (Self { wishes, state }, done)
    }

    /// The state as it changes.
    pub fn state(&self) -> watch::Receiver<LinkState> {
        self.state.clone()
    }

    /// Dials now, whatever the wait (`lembas link retry`).
    pub fn retry(&self) {
        self.wish(|open| open.retry = true);
    }

    /// Dials now, also in the place of another process that holds the link (`lembas link take`).
    pub fn take(&self) {
        self.wish(|open| open.take = true);
    }

    /// Closes with 1012 `limits` and dials again at once, so that the other side hears the limits
    /// as they are now. `why` goes into the log.
    pub fn redial(&self, why: &str) {
        tracing::info!(why, "the link is dialled anew");
        self.wish(|open| open.redial = true);
    }

    /// The pairing on disk may be another one, or gone; or settings changed that a stopped link
    /// looks again for.
    pub fn reload(&self) {
        self.wish(|open| open.reload = true);
    }

    /// Closes the link and ends its task.
    pub fn stop(&self) {
        self.wish(|open| open.stop = true);
    }

    fn wish(&self, wish: impl FnOnce(&mut Open)) {
        wish(&mut self.wishes.open.lock());
        self.wishes.wake.notify_one();
    }
}
