//! The daemon at work: lock, device, link, control socket; starting them in order, and ending them
//! in the other.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::sync::{Notify, watch as channel};

use super::control::{Methods, server};
use super::device::Device;
use super::lock::Lock;
use super::monitor::Here;
use super::status::{self, Linked};
use super::table::{self, Parts};
use super::{about, notify};
use crate::clock;
use crate::config::{Live, Paths, files, watch};
use crate::link::instance::InstanceFile;
use crate::link::{Link, LinkConfig, LinkDone, LinkState, Phase};
use crate::remote;
use crate::rt::{self, Tasks};

/// How long ending may take: commands are given their grace, then the process goes.
const DRAIN: Duration = Duration::from_secs(20);

/// What a daemon is started for.
pub struct Start {
    pub paths: Paths,
    pub live: Live,
    /// Taken by the caller, who can say who else has it.
    pub lock: Lock,
    /// `daemon`, `up` or `acp`.
    pub what: &'static str,
    /// Keeps a link up. An editor's own agent has none.
    pub link: bool,
    /// Methods of the hub in the same process, and where its page is.
    pub more: Option<(Methods, String)>,
}

/// A daemon that runs.
pub struct Daemon {
    device: Device,
    link: Option<(Link, LinkDone)>,
    look: Arc<Notify>,
    /// The socket first, then the link, then the sessions: three trees, ended in that order.
    control: Tasks,
    links: Tasks,
    sessions: Tasks,
    socket: std::path::PathBuf,
    _lock: Lock,
}

impl Daemon {
    /// Starts everything; commands are answered and the link is dialled when it returns.
    ///
    /// # Errors
    /// When something that it cannot work without is not there.
    pub async fn start(start: Start) -> anyhow::Result<Self> {
        let Start {
            paths,
            live,
            lock,
            what,
            link,
            more,
        } = start;
        let own = paths.clone();
        let look = move || {
            let whole = [own.data.join("spill"), own.hub()];
            files::private_tree(&own.made(), &|path| {
                whole.iter().any(|w| path.starts_with(w))
            })
        };
        let strange = rt::blocking(look).await;
        let strange = strange.unwrap_or_default();
        let (sessions, links, control) = (Tasks::new(), Tasks::new(), Tasks::new());
        let device = Device::build(&paths, &live, &sessions).await?;
        let look = Arc::new(Notify::new());
        watch::start(&paths, live.clone(), Arc::clone(&look), &control);

        let link = link.then(|| {
            let served = device.clone();
            Link::start(
                LinkConfig::new(device.file.clone(), device.http.clone()),
                move |peer| served.serve_link(peer),
                &links,
            )
        });
        if let Some((link, _)) = &link {
            follow_limits(&device, link, &links);
            follow_way(&device, &live, link, &links);
            notify::follow(link.state(), &control);
        }

        let (more, page) = more.map_or((None, None), |(more, page)| (Some(more), Some(page)));
        let named = live.clone();
        let (paired, handle) = (
            device.file.clone(),
            link.as_ref().map(|(link, _)| link.clone()),
        );
        let mut methods = table::methods(Parts {
            monitor: Arc::new(Here::new(Arc::new(device.watches.clone()), live.clone())),
            live,
            store: device.store.clone(),
            sessions: Arc::clone(&device.sessions),
            link: Arc::new(Handle {
                link: handle,
                file: device.file.clone(),
                state: link.as_ref().map(|(link, _)| link.state()),
                device: device.clone(),
            }),
            device: Arc::new(move || status::Device {
                id: paired.held().map(|held| held.device.to_string()),
                name: about::name(&named.now()),
                version: env!("CARGO_PKG_VERSION").to_owned(),
            }),
            paths: paths.clone(),
            what,
            r#box: device.shut.word(),
            page,
            strange,
            since: clock::now_ms(),
        })?;
        if let Some(more) = more {
            methods.merge(more)?;
        }
        let socket = paths.socket();
        let listener = server::bind(&socket)
            .with_context(|| format!("the control socket {} cannot be made", socket.display()))?;
        server::serve(listener, methods, Arc::new(device.clone()), &control);
        Ok(Self {
            device,
            link,
            look,
            control,
            links,
            sessions,
            socket,
            _lock: lock,
        })
    }

    pub fn device(&self) -> &Device {
        &self.device
    }

    /// How the link stands; none where there is none to keep.
    pub fn link_state(&self) -> Option<channel::Receiver<LinkState>> {
        self.link.as_ref().map(|(link, _)| link.state())
    }

    /// The pairing on disk is another one.
    pub fn reload(&self) {
        self.look.notify_one();
        if let Some((link, _)) = &self.link {
            link.reload();
        }
    }

    /// Ends everything in order: no more commands, the link says good-bye, turns park, what they
    /// ran is gone. What takes longer than the drain's time is left to the process's end.
    pub async fn stop(self) {
        notify::stopping();
        // The socket goes first, so that a command that comes now starts or finds another one.
        if let Err(error) = std::fs::remove_file(&self.socket) {
            tracing::debug!(%error, "the control socket was gone already");
        }
        let ordered = async {
            self.control.end().await;
            tracing::debug!("ending: no more commands");
            if let Some((link, done)) = self.link {
                link.stop();
                done.wait().await;
            }
            // A call that came over the link waits for its turn: turns park first.
            self.device.park().await;
            tracing::debug!("ending: turns are parked");
            self.links.end().await;
            self.sessions.end().await;
        };
        if clock::timeout(DRAIN, ordered).await.is_err() {
            tracing::error!("some work did not end in time");
        }
    }
}

/// Changes of the limits reach work that runs, and the instance.
fn follow_limits(device: &Device, link: &Link, tasks: &Tasks) {
    let link = link.clone();
    let redial = Arc::new(move || link.redial("limits"));
    let follow = remote::watch::run(
        device.limits.clone(),
        Arc::clone(&device.sessions),
        device.monitor.clone(),
        redial,
        tasks.stop().clone(),
    );
    tasks.spawn("limits", follow);
}

/// Changes of the way to the instance (`[link]`: certificates, pin, proxy) count for the next dial
/// and the next request, and there is a next dial now.
fn follow_way(device: &Device, live: &Live, link: &Link, tasks: &Tasks) {
    let (http, live, link) = (device.http.clone(), live.clone(), link.clone());
    let stop = tasks.stop().clone();
    let mut changes = live.changes();
    let mut counts = live.now().link.clone();
    tasks.spawn("way", async move {
        while let Some(Ok(())) = stop.run_until_cancelled(changes.changed()).await {
            let now = live.now().link.clone();
            if now == counts {
                continue;
            }
            match http.renew(&now, about::proxies()) {
                Ok(()) => {
                    counts = now;
                    link.redial("the way to the instance");
                    link.retry();
                }
                Err(error) => {
                    tracing::error!(%error, "the new settings of the way to the instance are not used");
                }
            }
        }
    });
}

/// The link as commands see it.
struct Handle {
    link: Option<Link>,
    state: Option<channel::Receiver<LinkState>>,
    file: InstanceFile,
    device: Device,
}

impl table::Link for Handle {
    fn state(&self) -> Linked {
        let held = self.file.held();
        let state = self.state.as_ref().map(|state| state.borrow().clone());
        let never = || Linked {
            state: "never".to_owned(),
            ..Linked::default()
        };
        let mut linked = state.map_or_else(never, linked);
        if let Some(held) = held {
            linked.instance = Some(held.url.clone());
            linked.account = Some(held.account.name.clone()).filter(|name| !name.is_empty());
        }
        linked
    }

    fn retry(&self, take: bool) {
        match &self.link {
            Some(link) if take => link.take(),
            Some(link) => link.retry(),
            None => {}
        }
    }

    fn reload(&self) -> BoxFuture<'static, ()> {
        let before = self.file.held();
        let (file, link, device) = (self.file.clone(), self.link.clone(), self.device.clone());
        async move {
            let now = file.load().await.ok().flatten();
            let same = |a: &crate::link::instance::Instance| {
                now.as_ref().is_some_and(|b| b.instance == a.instance)
            };
            if let Some(before) = before
                && !same(&before)
            {
                // Unlinked: what the instance had running ends now.
                let words = "not linked any more".to_owned();
                remote::watch::end(&*device.sessions, move |_| Some(words.clone())).await;
            }
            if let Some(link) = link {
                link.reload();
            }
        }
        .boxed()
    }
}

fn linked(state: LinkState) -> Linked {
    let word = match state.phase {
        Phase::Never => "never",
        Phase::Dialling => "dialling",
        Phase::Linked => "linked",
        Phase::Offline => "offline",
        Phase::Revoked => "revoked",
        Phase::Replaced => "replaced",
        Phase::Version => "version",
    };
    Linked {
        state: word.to_owned(),
        since: Some(state.since).filter(|since| *since > 0),
        last_linked: state.last_linked,
        reason: Some(state.reason).filter(|reason| !reason.is_empty()),
        next_try: state.next_try,
        ..Linked::default()
    }
}
