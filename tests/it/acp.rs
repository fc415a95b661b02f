//! The wire, device side: a client on one end of a link in memory, played sessions on the other.

mod asks;
pub(crate) mod client;
mod fake;
mod handshake;
mod limits;
mod outputs;
mod rules;
mod scheduled;
mod sessions;
mod streams;
mod turns;
mod words;

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use lembas::acp::{About, Device, Epoch, Keys, Limits, MemoryKeys, Models, Named, Parts};
use lembas::config::{Config, Live, Mode, Remote};
use lembas::permission::Origin;
use lembas::remote;
use lembas::rt::Tasks;
use lembas::store::device::Store;
use parking_lot::Mutex;
use serde_json::{Value, json};

use client::Client;
use fake::Fakes;

/// A device with played sessions, a shared folder and settings that a test can change.
struct Place {
    folder: tempfile::TempDir,
    live: Live,
    sessions: Arc<Fakes>,
    device: Device,
    epoch: Arc<Numbers>,
    rules: Store,
    watch: Arc<scheduled::Played>,
    tokens: Arc<Tokens>,
    monitor: remote::Monitor,
    limits: remote::Limits,
    tasks: Tasks,
    _kept: tempfile::TempDir,
}

#[derive(Default)]
struct Numbers(Mutex<Vec<String>>);

impl Epoch for Numbers {
    fn current(&self) -> String {
        format!("e{}", self.0.lock().len())
    }

    fn renew(&self, why: &str) -> BoxFuture<'static, String> {
        self.0.lock().push(why.to_owned());
        std::future::ready(self.current()).boxed()
    }
}

struct Local;

impl Models for Local {
    fn default(&self, _origin: &Origin) -> BoxFuture<'static, Option<String>> {
        std::future::ready(Some("default-model".to_owned())).boxed()
    }

    fn named(&self, _origin: &Origin, model: &str) -> BoxFuture<'static, Named> {
        let named = match model {
            "nobody-has-it" => Named::NotServed,
            "away" => Named::Unknown,
            _ => Named::Served {
                levels: vec!["low".to_owned(), "high".to_owned()],
            },
        };
        std::future::ready(named).boxed()
    }
}

#[derive(Default)]
struct Tokens(Mutex<Vec<(String, String)>>);

impl remote::Tokens for Tokens {
    fn keep(&self, grant: &str, token: String) -> BoxFuture<'static, Result<(), String>> {
        self.0.lock().push((grant.to_owned(), token));
        std::future::ready(Ok(())).boxed()
    }
}

fn about() -> About {
    About {
        id: "d1".to_owned(),
        name: "zephyr".to_owned(),
        os: "linux".to_owned(),
        arch: "x86_64".to_owned(),
        version: "0.1.0".to_owned(),
        home: None,
        spec: "3.6.0".to_owned(),
    }
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut config = Config::default();
        config.remote.roots = vec![folder.path().canonicalize().unwrap()];
        config.remote.max_mode = Mode::Edit;
        let live = Live::new(config);
        let tasks = Tasks::new();
        let limits = remote::Limits::new(live.clone(), Arc::new(|| "zephyr".to_owned()), "full");
        let keys = Keys::new(Arc::new(MemoryKeys::default()), &tasks);
        let watch = Arc::new(scheduled::Played::default());
        let tokens = Arc::new(Tokens::default());
        let monitor = remote::Monitor::new(limits.clone(), keys.clone(), watch.clone());
        let work = remote::Remote::new(limits.clone(), monitor.clone(), tokens.clone());
        let sessions = Arc::new(Fakes::default());
        let epoch = Arc::new(Numbers::default());
        let kept = tempfile::tempdir().unwrap();
        let rules = Store::look(kept.path()).unwrap();
        let parts = Parts {
            sessions: sessions.clone(),
            limits: Arc::new(limits.clone()) as Arc<dyn Limits>,
            remote: Some(Arc::new(work)),
            keys,
            models: Arc::new(Local),
            epoch: epoch.clone(),
            rules: Arc::new(rules.clone()),
            about: Arc::new(about),
        };
        Self {
            device: Device::new(parts, &tasks),
            folder,
            live,
            sessions,
            epoch,
            rules,
            _kept: kept,
            watch,
            tokens,
            monitor,
            limits,
            tasks,
        }
    }

    fn root(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    fn set(&self, change: impl FnOnce(&mut Remote)) {
        let mut config = (*self.live.now()).clone();
        change(&mut config.remote);
        self.live.set(config);
    }

    /// A connection before its handshake.
    fn connect(&self, origin: Origin) -> Client {
        Client::connect(&self.device, origin, &self.tasks)
    }

    /// A plain client at this computer, after the handshake.
    async fn editor(&self) -> Client {
        let client = self.connect(Origin::Local);
        client
            .ask("initialize", json!({ "protocolVersion": 1 }))
            .await
            .unwrap();
        client
    }

    /// The linked instance with everything it could name, after the handshake.
    async fn instance(&self) -> Client {
        self.instance_of("g1").await
    }

    async fn instance_of(&self, grant: &str) -> Client {
        let client = self.connect(instance(grant));
        client.ask("initialize", hello(ALL)).await.unwrap();
        client
    }
}

const ALL: &[&str] = &[
    "resume",
    "asks",
    "directories",
    "scheduled",
    "progress",
    "agents",
    "token",
    "retry",
    "rewind",
    "rules",
    "output",
];

fn instance(grant: &str) -> Origin {
    Origin::Remote {
        instance: "i1".to_owned(),
        grant: grant.to_owned(),
    }
}

fn hello(capabilities: &[&str]) -> Value {
    json!({
        "protocolVersion": 1,
        "clientInfo": { "name": "hub", "version": "0.1.0" },
        "clientCapabilities": { "_meta": { "lembas": {
            "protocol": 3, "spec": "3.6.0", "instance": "i1", "capabilities": capabilities,
        } } },
    })
}

/// Params of `session/new` in the shared folder.
fn new_in(place: &Place, meta: Value) -> Value {
    let mut ours = json!({ "model": "m1" });
    if let (Value::Object(more), Some(ours)) = (meta, ours.as_object_mut()) {
        ours.extend(more);
    }
    json!({ "cwd": place.root(), "mcpServers": [], "_meta": { "lembas": ours } })
}

fn prompt(session: &str, text: &str, key: &str) -> Value {
    json!({
        "sessionId": session, "prompt": [{ "type": "text", "text": text }],
        "_meta": { "lembas": { "key": key } },
    })
}

/// Opens a session and gives its id.
async fn open(client: &Client, place: &Place) -> String {
    let new = client
        .ask("session/new", new_in(place, json!({})))
        .await
        .unwrap();
    new["sessionId"].as_str().unwrap().to_owned()
}

/// `code`, `data.reason` of an error that also has a text for people.
fn refused(answer: Result<Value, lembas::rpc::RpcError>) -> (i64, String) {
    let error = answer.unwrap_err();
    let data = error.data.unwrap_or_default();
    assert!(!error.message.is_empty());
    let reason = data["reason"].as_str().unwrap_or_default().to_owned();
    (error.code, reason)
}
