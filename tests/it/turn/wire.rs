//! The same sessions over the wire: a device with a real registry and store behind it.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use lembas::acp::{About, Device, Keys, Models, Named, Parts};
use lembas::permission::Origin;
use lembas::remote::{self, Check, Seen, Tokens, Unseen, Watch};
use lembas::rt::Tasks;
use lembas::session::Registry;
use lembas::store::item::{Body, CallStatus, Item};
use lembas::testing::model::Reply;
use serde_json::{Value, json};

use super::home::{Home, bash, journal, soon};
use crate::acp::client::{Client, Heard};

struct Played;

impl Watch for Played {
    fn check(&self, _check: Check) -> BoxFuture<'static, Result<Seen, Unseen>> {
        std::future::ready(Err(Unseen::Timeout)).boxed()
    }
}

impl Tokens for Played {
    fn keep(&self, _grant: &str, _token: String) -> BoxFuture<'static, Result<(), String>> {
        std::future::ready(Ok(())).boxed()
    }
}

impl Models for Played {
    fn default(&self, _origin: &Origin) -> BoxFuture<'static, Option<String>> {
        std::future::ready(Some("m".to_owned())).boxed()
    }

    fn named(&self, _origin: &Origin, _model: &str) -> BoxFuture<'static, Named> {
        std::future::ready(Named::Unknown).boxed()
    }
}

/// One start of the daemon: what of it lives until [`Daemon::stop`].
pub(super) struct Daemon {
    pub(super) registry: Registry,
    device: Device,
    pub(super) tasks: Tasks,
}

impl Daemon {
    pub(super) async fn start(home: &Home) -> Self {
        let tasks = Tasks::new();
        let registry = home.start(&tasks).await;
        let store = registry.store().clone();
        let limits = remote::Limits::new(home.config.clone(), Arc::new(|| "z".into()), "full");
        let keys = Keys::new(Arc::new(store.clone()), &tasks);
        let monitor = remote::Monitor::new(limits.clone(), keys.clone(), Arc::new(Played));
        let work = remote::Remote::new(limits.clone(), monitor.clone(), Arc::new(Played));
        let watch = remote::watch::run(
            limits.clone(),
            Arc::new(registry.clone()),
            monitor,
            Arc::new(|| ()),
            tasks.stop().clone(),
        );
        tasks.spawn("limits", watch);
        let parts = Parts {
            sessions: Arc::new(registry.clone()),
            limits: Arc::new(limits),
            remote: Some(Arc::new(work)),
            keys,
            models: Arc::new(Played),
            epoch: Arc::new(store.clone()),
            rules: Arc::new(store),
            about: Arc::new(|| About {
                id: "d".to_owned(),
                name: "z".to_owned(),
                os: "linux".to_owned(),
                arch: "x86_64".to_owned(),
                version: "0".to_owned(),
                home: None,
                spec: "3.6.0".to_owned(),
            }),
        };
        Self {
            device: Device::new(parts, &tasks),
            registry,
            tasks,
        }
    }

    pub(super) async fn instance(&self) -> Client {
        let origin = Origin::Remote {
            instance: "hub".into(),
            grant: "g".into(),
        };
        let client = Client::connect(&self.device, origin, &self.tasks);
        let ours = json!({
            "protocol": 3, "instance": "hub",
            "capabilities": ["resume", "asks", "progress", "scheduled"],
        });
        let hello = json!({
            "protocolVersion": 1, "clientCapabilities": { "_meta": { "lembas": ours } },
        });
        client.ask("initialize", hello).await.unwrap();
        client
    }

    pub(super) async fn stop(self) {
        self.registry.park().await;
        soon(self.tasks.end()).await;
    }

    async fn items(&self, id: &str) -> Vec<Item> {
        let id = lembas::ids::SessionId::new(id);
        journal(&self.registry.get(&id, &Origin::Local).await.unwrap()).await
    }
}

pub(super) async fn open(client: &Client, home: &Home, meta: Value) -> String {
    let mut ours = json!({ "model": "m", "mode": "edit" });
    ours.as_object_mut()
        .unwrap()
        .extend(meta.as_object().cloned().unwrap());
    let params = json!({ "cwd": home.cwd(), "mcpServers": [], "_meta": { "lembas": ours } });
    let new = client.ask("session/new", params).await.unwrap();
    new["sessionId"].as_str().unwrap().to_owned()
}

pub(super) fn prompt(id: &str, key: &str, text: &str) -> Value {
    json!({
        "sessionId": id, "prompt": [{ "type": "text", "text": text }],
        "_meta": { "lembas": { "key": key } },
    })
}

#[tokio::test]
async fn an_editor_sees_a_whole_turn_and_answers_its_question() {
    let home = Home::new().await;
    let daemon = Daemon::start(&home).await;
    let editor = Client::connect(&daemon.device, Origin::Local, &daemon.tasks);
    let init = json!({ "protocolVersion": 1 });
    editor.ask("initialize", init).await.unwrap();
    let new = json!({ "cwd": home.cwd(), "mcpServers": [] });
    let new = editor.ask("session/new", new).await.unwrap();
    let id = new["sessionId"].as_str().unwrap();
    home.model
        .play([Reply::calls(&[bash("ask one")]), Reply::text("All done.")]);
    let text = json!({ "sessionId": id, "prompt": [{ "type": "text", "text": "go" }] });
    let asked = editor.ask("session/prompt", text);
    let answers = async {
        let asked = editor.asked().await;
        assert_eq!(
            asked.params["toolCall"]["rawInput"],
            json!({ "command": "ask one" })
        );
        let once = json!({ "outcome": { "outcome": "selected", "optionId": "once" } });
        asked.answer(Ok(once));
    };
    let (answer, ()) = tokio::join!(asked, answers);
    assert_eq!(answer.unwrap()["stopReason"], "end_turn");
    assert_eq!(home.ran(), ["ask one"]);
    let kinds: Vec<String> = editor
        .notices()
        .await
        .iter()
        .map(|(method, params)| {
            assert_eq!(method, "session/update");
            params["update"]["sessionUpdate"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    assert!(
        kinds.ends_with(&["agent_message_chunk".to_owned()]),
        "{kinds:?}"
    );
    assert!(kinds.contains(&"tool_call_update".to_owned()), "{kinds:?}");
    home.no_faults();
}

/// Texts by item, as a reader puts them together, and where it is.
#[derive(Default)]
struct Reader {
    texts: BTreeMap<u64, String>,
    seq: u64,
    at: u64,
    done: bool,
}

impl Reader {
    fn read(&mut self, heard: Heard) {
        let Heard::Notice(method, params) = heard else {
            return;
        };
        if method == "_lembas/event" {
            if params["type"] != "phase" {
                (self.seq, self.at) = (params["seq"].as_u64().unwrap(), 0);
            }
            self.done |= params["type"] == "turn_end";
            return;
        }
        let meta = &params["_meta"]["lembas"];
        let (seq, at) = (meta["seq"].as_u64().unwrap(), meta["at"].as_u64().unwrap());
        let content = params["update"]["content"]["text"].as_str();
        let growing = content
            .filter(|_| at > 0)
            .or_else(|| meta["output"].as_str());
        if let Some(text) = growing {
            let known = self.texts.entry(seq).or_default();
            known.push_str(text);
            assert_eq!(known.len() as u64, at);
        }
        if meta["more"] != true {
            (self.seq, self.at) = (seq, at);
        }
    }
}

#[tokio::test]
async fn links_that_drop_all_the_time_lose_nothing() {
    let home = Home::new().await;
    home.share(|_| ());
    let daemon = Daemon::start(&home).await;
    let first = daemon.instance().await;
    let id = open(&first, &home, json!({})).await;
    let long = "wörd ".repeat(3000);
    home.model.play([
        Reply::calls(&[bash("chatty one"), bash("chatty two")]),
        Reply::text(&long),
    ]);
    let asked = first.peer.request("session/prompt", prompt(&id, "k", "go"));
    let reading = async {
        let mut reader = Reader::default();
        for drop_after in 1.. {
            if reader.done {
                break;
            }
            let client = daemon.instance().await;
            let from = json!({ "sessionId": id, "seq": reader.seq, "at": reader.at });
            client.ask("_lembas/follow", from).await.unwrap();
            for _ in 0..drop_after {
                reader.read(client.hear().await);
                if reader.done {
                    break;
                }
            }
            client.peer.close(1001, "drop");
        }
        reader
    };
    let (answer, reader) = soon(async { tokio::join!(asked, reading) }).await;
    assert_eq!(answer.unwrap()["stopReason"], "end_turn");
    let mut compared = 0;
    for item in daemon.items(&id).await {
        if let Some(text) = lembas::store::device::items::text(&item.body) {
            assert_eq!(
                reader.texts.get(&item.seq.0),
                Some(text),
                "item {}",
                item.seq.0
            );
            compared += 1;
        }
    }
    assert!(compared >= 3, "two outputs and a message");
    home.no_faults();
}

#[tokio::test]
async fn an_open_question_and_its_prompt_outlive_a_restart() {
    let home = Home::new().await;
    home.share(|_| ());
    home.model
        .play([Reply::calls(&[bash("ask one")]), Reply::text("Done.")]);
    let daemon = Daemon::start(&home).await;
    let client = daemon.instance().await;
    let id = open(&client, &home, json!({ "key": "c-1" })).await;
    let asked = client
        .peer
        .request("session/prompt", prompt(&id, "k", "go"));
    let before = tokio::select! {
        _ = asked => panic!("it has an answer"),
        before = client.asked() => before.params["_meta"]["lembas"]["ask"].clone(),
    };
    daemon.stop().await;

    let daemon = Daemon::start(&home).await;
    let client = daemon.instance().await;
    assert_eq!(
        open(&client, &home, json!({ "key": "c-1" })).await,
        id,
        "the key is kept"
    );
    let again = client.asked().await;
    let ours = again.params["_meta"]["lembas"].clone();
    assert_eq!(ours["ask"], before);
    let joined = client.ask("session/prompt", prompt(&id, "k", "go"));
    let answer = async {
        let answer = json!({
            "ask": ours["ask"], "digest": ours["digest"], "outcome": "allow", "by": "ana",
        });
        let taken = client.ask("_lembas/answer", answer.clone()).await.unwrap();
        assert_eq!(taken["taken"], true);
        again.cancelled.cancelled().await;
        let twice = client.ask("_lembas/answer", answer).await.unwrap_err();
        assert_eq!(twice.data.unwrap()["how"], "allowed");
    };
    let (joined, ()) = soon(async { tokio::join!(joined, answer) }).await;
    assert_eq!(joined.unwrap()["stopReason"], "end_turn");
    assert_eq!(home.ran(), ["ask one"]);
    home.no_faults();
}

#[tokio::test]
async fn a_scheduled_run_runs_once_also_across_a_restart() {
    let home = Home::new().await;
    home.share(|remote| remote.scheduled = true);
    home.model.play([
        Reply::calls(&[bash("one")]),
        Reply::text("[SILENT]\nas before"),
    ]);
    let meta = || json!({ "scheduled": { "schedule": "w", "run": "r1" } });
    let text =
        |id: &str| json!({ "sessionId": id, "prompt": [{ "type": "text", "text": "look" }] });
    let daemon = Daemon::start(&home).await;
    let client = daemon.instance().await;
    let id = open(&client, &home, meta()).await;
    let first = client.ask("session/prompt", text(&id)).await.unwrap();
    let report = json!({ "schedule": "w", "run": "r1", "status": "silent", "reply": "as before" });
    assert_eq!(first["_meta"]["lembas"]["run"], report);
    daemon.stop().await;

    let daemon = Daemon::start(&home).await;
    let client = daemon.instance().await;
    assert_eq!(open(&client, &home, meta()).await, id);
    assert_eq!(
        client.ask("session/prompt", text(&id)).await.unwrap(),
        first
    );
    assert_eq!(home.ran(), ["one"]);
}

#[tokio::test]
async fn a_folder_that_is_no_longer_shared_ends_the_command_that_runs_in_it() {
    let home = Home::new().await;
    home.share(|_| ());
    let daemon = Daemon::start(&home).await;
    let client = daemon.instance().await;
    let id = open(&client, &home, json!({})).await;
    home.model.play([Reply::calls(&[bash("hang")])]);
    let asked = client.ask("session/prompt", prompt(&id, "k", "go"));
    let unshare = async {
        while home.ran().is_empty() {
            tokio::task::yield_now().await;
        }
        home.share(|remote| remote.roots.clear());
    };
    let (answer, ()) = soon(async { tokio::join!(asked, unshare) }).await;
    let answer = answer.unwrap();
    assert_eq!(answer["stopReason"], "cancelled");
    assert_eq!(
        answer["_meta"]["lembas"]["reason"],
        "stopped: folder no longer shared"
    );
    let items = daemon.items(&id).await;
    let ended = |item: &Item| match item.body {
        Body::Result { status, .. } => Some(status),
        _ => None,
    };
    let ended: Vec<_> = items.iter().filter_map(ended).collect();
    assert_eq!(ended, [CallStatus::Cancelled]);
    assert!(
        items
            .iter()
            .any(|item| matches!(item.body, Body::TurnEnd { .. }))
    );
}

#[tokio::test]
async fn stop_ends_a_command_and_the_session_goes_on() {
    let home = Home::new().await;
    home.share(|_| ());
    let daemon = Daemon::start(&home).await;
    let client = daemon.instance().await;
    let id = open(&client, &home, json!({})).await;
    for round in 0..3 {
        home.model.play([Reply::calls(&[bash("hang")])]);
        let key = format!("k{round}");
        let asked = client.ask("session/prompt", prompt(&id, &key, "go"));
        let stop = async {
            while home.ran().len() <= round {
                tokio::task::yield_now().await;
            }
            let stop = json!({ "sessionId": id, "key": key });
            client.ask("_lembas/stop", stop).await.unwrap()
        };
        let (answer, stopped) = soon(async { tokio::join!(asked, stop) }).await;
        assert_eq!(answer.unwrap()["stopReason"], "cancelled");
        assert_eq!(
            (&stopped["outcome"], &stopped["commands"]),
            (&json!("stopped"), &json!(1))
        );
    }
}
