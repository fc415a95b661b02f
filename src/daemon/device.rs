//! The device, put together: store, engine, tools, sessions, what instances and editors are served.
//!
//! This is the one place that knows how the parts fit. Not here: the link and the control socket,
//! which are started around it (`daemon::run`).

use std::sync::Arc;

use anyhow::Context as _;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use super::machine;
use super::models::InstanceModels;
use super::watches::Watches;
use super::{about, control};
use crate::acp::{self, Keys};
use crate::agent;
use crate::config::{Live, Paths};
use crate::context::from_spec::SpecTexts;
use crate::exec::Computer;
use crate::link::http::Http;
use crate::link::instance::{Instance, InstanceFile, device_id};
use crate::model::openai::Waits;
use crate::model::retry::Retry;
use crate::permission::{Engine, Judge, Origin, Strength};
use crate::remote::{Limits, Monitor, Remote, Tokens};
use crate::rpc::{self, Peer, Service};
use crate::rt::Tasks;
use crate::secret::Secret;
use crate::session::{Registry, Setup};
use crate::spec::{self, BoxKind};
use crate::store::device::Store;
use crate::tools::Tools;

/// The parts of a device that runs.
#[derive(Clone)]
pub struct Device {
    pub store: Store,
    registry: Registry,
    pub sessions: Arc<dyn acp::Sessions>,
    pub acp: acp::Device,
    pub limits: Limits,
    pub monitor: Monitor,
    pub watches: Watches,
    /// How strong the box of commands is.
    pub shut: Strength,
    pub file: InstanceFile,
    pub http: Http,
    tasks: Tasks,
}

impl Device {
    /// Puts the device together. The caller holds the store's lock. Turns that were left open by
    /// the last process go on.
    ///
    /// # Errors
    /// When the store, the spec's texts or the settings of the link cannot be used.
    pub async fn build(paths: &Paths, live: &Live, tasks: &Tasks) -> anyhow::Result<Self> {
        let config = live.now();
        let store = Store::open(&paths.data, &paths.state.join("chain"))
            .await
            .context("the store cannot be opened")?;
        let file = InstanceFile::in_folder(&paths.config);
        if let Err(error) = file.load().await {
            // The link says so too; chats on this computer go on.
            tracing::error!(%error, "the pairing cannot be read");
        }
        let http = Http::new(&config.link, about::proxies())
            .context("the settings for the way to the instance cannot be used")?;
        let id = device_id(&paths.config).await?;
        let models = Arc::new(InstanceModels::new(file.clone(), http.clone()));
        // Finds out what it must know of this computer when the first judgement needs it.
        let own = machine::own(paths);
        let machine = Arc::new(Computer::new(own.clone()));
        let shut = machine::strength(paths, &machine).await;
        let judge: Arc<dyn Judge> = Arc::new(Engine::with(machine));
        let tools = Tools::standard();
        let have: Vec<String> = tools.names().map(str::to_owned).collect();
        let registry = Registry::start(
            Setup {
                store: store.clone(),
                config: live.clone(),
                tools: Arc::new(tools),
                judge: Arc::clone(&judge),
                models: Arc::clone(&models) as Arc<dyn agent::Models>,
                texts: Arc::new(SpecTexts::new(spec_box(shut), have)),
                retry: Retry::default(),
                model_waits: Waits::default(),
            },
            tasks,
        )
        .await
        .context("the chats of this computer cannot be read")?;
        let sessions: Arc<dyn acp::Sessions> = Arc::new(registry.clone());
        let named = live.clone();
        let limits = Limits::new(
            live.clone(),
            Arc::new(move || about::name(&named.now())),
            shut.word(),
        )
        .without(&own);
        let keys = Keys::new(Arc::new(store.clone()), tasks);
        let watches = Watches::new(judge, store.clone(), live.clone(), paths.state.clone());
        let monitor = Monitor::new(limits.clone(), keys.clone(), Arc::new(watches.clone()));
        let remote = Remote::new(
            limits.clone(),
            monitor.clone(),
            Arc::new(Kept(file.clone())),
        );
        let (named, paired, home) = (live.clone(), file.clone(), paths.home.clone());
        let parts = acp::Parts {
            sessions: Arc::clone(&sessions),
            limits: Arc::new(limits.clone()),
            remote: Some(Arc::new(remote)),
            keys,
            models,
            epoch: Arc::new(store.clone()),
            rules: Arc::new(store.clone()),
            about: Arc::new(move || acp::About {
                id: paired
                    .held()
                    .map_or_else(|| id.to_string(), |held| held.device.to_string()),
                name: about::name(&named.now()),
                os: about::os().to_owned(),
                arch: about::arch().to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                home: Some(home.display().to_string()),
                spec: spec::version().to_owned(),
            }),
        };
        Ok(Self {
            store,
            registry,
            sessions,
            acp: acp::Device::new(parts, tasks),
            limits,
            monitor,
            watches,
            shut,
            file,
            http,
            tasks: tasks.clone(),
        })
    }

    /// Parks every turn: no process is held afterwards, and the next start goes on from there.
    pub async fn park(&self) {
        if !self.registry.park().await {
            tracing::error!("some turns did not park in time");
        }
    }

    /// The service of one socket of the link.
    pub fn serve_link(&self, peer: Peer) -> Arc<dyn Service> {
        let origin = match self.file.held() {
            Some(held) => origin_of(&held),
            // Unlinked while it was dialled: nobody's sessions.
            None => Origin::Remote {
                instance: String::new(),
                grant: String::new(),
            },
        };
        self.acp.serve(peer, origin)
    }

    /// Speaks ACP with a program of this computer over lines, until it goes.
    pub async fn serve_lines<R, W>(&self, read: R, write: W)
    where
        R: tokio::io::AsyncRead + Unpin + Send + 'static,
        W: tokio::io::AsyncWrite + Unpin + Send + 'static,
    {
        let device = self.acp.clone();
        let (peer, _done) = rpc::start_with(
            rpc::lines::new(read, write),
            move |peer| device.serve(peer, Origin::Local),
            rpc::Limits::stdio(),
            &self.tasks,
        );
        peer.closed().await;
    }
}

/// On whose word a linked instance asks: the instance, for one account there. A new token of the
/// same account is the same grant.
fn origin_of(instance: &Instance) -> Origin {
    let account = instance.account.id.as_str();
    Origin::Remote {
        instance: instance.instance.clone(),
        grant: if account.is_empty() {
            instance.device.to_string()
        } else {
            account.to_owned()
        },
    }
}

fn spec_box(strength: Strength) -> BoxKind {
    match strength {
        Strength::Full => BoxKind::Full,
        Strength::WritesOnly => BoxKind::WritesOnly,
        Strength::None => BoxKind::None,
    }
}

/// Keeps successors of the token in the file of the pairing.
struct Kept(InstanceFile);

impl Tokens for Kept {
    fn keep(&self, _grant: &str, token: String) -> BoxFuture<'static, Result<(), String>> {
        let file = self.0.clone();
        async move {
            let kept = file.succeed(Secret::new(token)).await;
            kept.map_err(|error| error.to_string())
        }
        .boxed()
    }
}

impl control::server::Streams for Device {
    fn acp(
        &self,
        stream: tokio::net::UnixStream,
        early: bytes::BytesMut,
    ) -> BoxFuture<'static, ()> {
        let device = self.clone();
        async move {
            use tokio::io::AsyncReadExt as _;
            let (read, write) = stream.into_split();
            let read = std::io::Cursor::new(early.freeze()).chain(read);
            device.serve_lines(read, write).await;
        }
        .boxed()
    }
}
