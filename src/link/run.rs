//! Keeping one link up: the task that does what the machine says.

mod handle;
mod session;

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::sync::watch;

pub use self::handle::{Link, LinkConfig, LinkDone, ServiceFactory};

use self::handle::Wishes;
use self::session::Session;
use super::dial::{self, Socket};
use super::instance::Instance;
use super::machine::{Action, Event, Machine, Now, Refusal};
use super::state::{LinkState, Phase};
use super::stir::{self, Ground};
use super::words;
use super::ws::code;
use crate::clock;
use crate::ids;
use crate::rpc::CloseReason;
use crate::rt::Tasks;

/// How a dial ended.
enum Dialled {
    Up(Box<Socket>, Arc<Instance>),
    Refused(Refusal),
    /// There is no pairing on the disk.
    NotLinked,
}

/// What happened while the task waited.
enum Happened {
    Wished,
    Dialled(Dialled),
    Ready,
    Late,
    Closed(CloseReason),
    Alive(bool),
    Look,
    Tick,
    Stop,
}

struct Task {
    config: LinkConfig,
    factory: Arc<dyn ServiceFactory>,
    tasks: Tasks,
    wishes: Arc<Wishes>,
    tell: watch::Sender<LinkState>,
    boot: String,
    machine: Machine,
    dialling: Option<BoxFuture<'static, Dialled>>,
    session: Option<Session>,
    probe: Option<BoxFuture<'static, bool>>,
    /// The pairing that was last read.
    paired: Option<Arc<Instance>>,
    ground: Ground,
}

impl Task {
    fn new(
        config: LinkConfig,
        factory: Arc<dyn ServiceFactory>,
        wishes: Arc<Wishes>,
        tell: watch::Sender<LinkState>,
        tasks: &Tasks,
    ) -> Self {
        Self {
            config,
            factory,
            tasks: tasks.clone(),
            wishes,
            tell,
            boot: ids::random_hex(16),
            machine: Machine::new(),
            dialling: None,
            session: None,
            probe: None,
            paired: None,
            ground: Ground::now(),
        }
    }

    async fn run(mut self) {
        self.reload().await;
        let mut look = clock::instant() + stir::EVERY;
        loop {
            let tick = self.machine.wake_at();
            let far = clock::instant() + Duration::from_secs(24 * 60 * 60);
            let stop = self.tasks.stop().clone();
            let happened = tokio::select! {
                () = stop.cancelled() => Happened::Stop,
                () = self.wishes.wake.notified() => Happened::Wished,
                dialled = ready(&mut self.dialling) => Happened::Dialled(dialled),
                happened = Session::next(&mut self.session) => happened,
                alive = ready(&mut self.probe) => Happened::Alive(alive),
                () = clock::sleep_until(look) => Happened::Look,
                () = clock::sleep_until(tick.unwrap_or(far)) => Happened::Tick,
            };
            match happened {
                Happened::Stop => return self.end().await,
                Happened::Wished => {
                    let open = std::mem::take(&mut *self.wishes.open.lock());
                    if open.stop {
                        return self.end().await;
                    }
                    if open.reload {
                        self.reload().await;
                    }
                    if open.redial {
                        self.step(Event::Redial);
                    }
                    if open.retry || open.take {
                        self.step(Event::Retry { take: open.take });
                    }
                }
                Happened::Dialled(Dialled::Up(socket, instance)) => {
                    self.paired = Some(instance);
                    self.let_go(&CloseReason::Ended);
                    let opened = Session::open(
                        socket,
                        &self.factory,
                        self.config.limits.clone(),
                        &self.tasks,
                    );
                    self.session = Some(opened);
                    self.step(Event::Up);
                }
                Happened::Dialled(Dialled::Refused(refusal)) => self.step(Event::Refused(refusal)),
                Happened::Dialled(Dialled::NotLinked) => self.step(Event::Paired(false)),
                Happened::Ready => self.step(Event::Initialized),
                Happened::Late => {
                    if let Some(session) = &self.session {
                        session.peer.close(code::INITIALIZE, "initialize");
                    }
                }
                Happened::Closed(reason) => self.closed(&reason),
                Happened::Alive(alive) => self.step(Event::Alive(alive)),
                Happened::Look => {
                    look = clock::instant() + stir::EVERY;
                    if let Some(what) = self.ground.look() {
                        tracing::info!(what, "the link is looked after");
                        self.step(Event::Stirred);
                    }
                }
                Happened::Tick => self.step(Event::Tick),
            }
        }
    }

    fn step(&mut self, event: Event) {
        let now = Now {
            at: clock::instant(),
            wall: clock::now_ms(),
            draw: rand::random(),
        };
        for action in self.machine.step(event, now) {
            match action {
                Action::Dial { take } => {
                    let dial = dial(self.config.clone(), self.boot.clone(), take);
                    self.dialling = Some(dial.boxed());
                }
                Action::Abandon => self.dialling = None,
                Action::Close { code, reason } => {
                    if let Some(session) = &self.session {
                        session.peer.close(code, reason);
                    }
                }
                Action::Drop => self.let_go(&CloseReason::Dead),
                Action::Ask(within) => {
                    if let Some(session) = &self.session {
                        let peer = session.peer.clone();
                        self.probe = Some(async move { peer.probe(within).await }.boxed());
                    }
                }
                Action::Tell(state) => {
                    self.tell.send_replace(state);
                }
                Action::Log { text, bad: true } => tracing::warn!("{text}"),
                Action::Log { text, bad: false } => tracing::info!("{text}"),
            }
        }
    }

    fn closed(&mut self, reason: &CloseReason) {
        self.session = None;
        self.probe = None;
        self.factory.closed(reason);
        let (code, text) = match reason {
            CloseReason::Local { code, reason } => (Some(*code), reason.clone()),
            CloseReason::Remote { code, reason } => (*code, words::clean(reason, 123)),
            other => (None, other.to_string()),
        };
        self.step(Event::Closed { code, text });
    }

    /// Lets a socket go without waiting for its end.
    fn let_go(&mut self, reason: &CloseReason) {
        self.probe = None;
        if let Some(session) = self.session.take() {
            session.peer.close(code::GOING_AWAY, "stopping");
            self.factory.closed(reason);
        }
    }

    /// Reads the pairing. Another one is dialled at once; the same one is dialled when nothing is
    /// under way, unless another process holds the link: that takes a person's word.
    async fn reload(&mut self) {
        let there = match self.config.file.load().await {
            Ok(Some(there)) => there,
            Ok(None) => {
                self.paired = None;
                return self.step(Event::Paired(false));
            }
            // The dial reads it again and says what is wrong.
            Err(_) => return self.step(Event::Paired(true)),
        };
        let same = self.paired.as_ref().is_some_and(|before| {
            (
                &before.url,
                &before.instance,
                &before.device,
                before.paired_at,
            ) == (&there.url, &there.instance, &there.device, there.paired_at)
        });
        self.paired = Some(there);
        if !same {
            self.step(Event::Paired(true));
        } else if self.machine.state().phase != Phase::Replaced {
            self.step(Event::Retry { take: false });
        }
    }

    async fn end(mut self) {
        self.dialling = None;
        if let Some(session) = self.session.take() {
            session.peer.close(code::GOING_AWAY, "stopping");
            let reason = session.closed().await;
            self.factory.closed(&reason);
        }
    }
}

/// What a future that may be there comes to; the place is then empty. Waits for ever when it is.
async fn ready<T>(place: &mut Option<BoxFuture<'static, T>>) -> T {
    let Some(future) = place else {
        return std::future::pending().await;
    };
    let value = future.await;
    *place = None;
    value
}

/// Dials with the pairing that is on disk now.
async fn dial(config: LinkConfig, boot: String, take: bool) -> Dialled {
    let failed = |error: super::instance::InstanceError| {
        Dialled::Refused(Refusal::Failed {
            text: error.to_string(),
        })
    };
    let instance = match config.file.load().await {
        Ok(Some(instance)) => instance,
        Ok(None) => return Dialled::NotLinked,
        Err(error) => return failed(error),
    };
    let used = instance.current().clone();
    match dial::dial(&instance, &config.http, &boot, take).await {
        Ok(socket) => {
            if let Err(error) = config.file.confirm(used).await {
                // The new token stays the one that is used; only the old one is kept longer.
                tracing::warn!(%error, "the used token cannot be written down");
            }
            Dialled::Up(Box::new(socket), instance)
        }
        Err(refusal @ Refusal::Revoked { .. }) => match config.file.refuse(used).await {
            Ok(true) => Dialled::Refused(Refusal::Superseded),
            Ok(false) => Dialled::Refused(refusal),
            Err(error) => failed(error),
        },
        Err(refusal) => Dialled::Refused(refusal),
    }
}

#[cfg(test)]
mod tests;
