//! A hub, a daemon that is linked with it, a model that plays a script, a page that is signed in,
//! and a project under git: what most gates begin with.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use lembas::config;
use lembas::link::discovery::discover;
use lembas::link::http::{Http, ProxyVars};
use lembas::link::instance::{InstanceFile, device_id};
use lembas::link::origin::Base;
use lembas::link::pair::{About, Progress, pair_when};
use lembas::rt::Tasks;
use lembas::testing::model::{ModelServer, Reply};
use serde_json::{Value, json};

use super::home::{Home, Running};
use super::page::{Events, Page, client};

pub(super) struct World {
    pub(super) project: PathBuf,
    _hub: Running,
    pub(super) daemon: Running,
    pub(super) page: Page,
    pub(super) device: String,
    pub(super) model: ModelServer,
    /// Requests that the model had before the test's own.
    before: usize,
    keys: AtomicU32,
    _tasks: Tasks,
    /// The last to go: the logs are in it.
    pub(super) home: Home,
}

impl World {
    /// With the projects shared, up to edit mode, and scheduled work on.
    pub(super) async fn new() -> Self {
        let home = Home::new();
        let project = project(&home);
        let shared = home.path("projects");
        home.save(&format!(
            "[remote]\nroots = [{shared:?}]\nmax_mode = \"edit\"\nscheduled = true\n"
        ));
        let mut hub = home.start("hub --listen 127.0.0.1:0 --json");
        let started = hub.line().await;
        let page = Page::sign_in(client(None), &started).await;
        let tasks = Tasks::new();
        let model = ModelServer::start(&tasks).await.unwrap();
        add(&home, &model).await;
        pair(&home, &page).await;
        let mut daemon = home.start("daemon --json");
        daemon.line().await;
        let mut events = page.events(None).await;
        let device = online(&page, &mut events).await;
        let before = model.requests().len();
        Self {
            home,
            project,
            _hub: hub,
            daemon,
            page,
            device,
            model,
            before,
            keys: AtomicU32::new(0),
            _tasks: tasks,
        }
    }

    fn key(&self) -> String {
        format!("key-{:06}", self.keys.fetch_add(1, Ordering::Relaxed))
    }

    /// What opens a chat in the project.
    pub(super) fn new_chat(&self, mode: &str) -> Value {
        json!({
            "device": self.device, "cwd": self.project, "model": "scripted",
            "mode": mode, "text": "go on", "key": self.key(),
        })
    }

    /// Opens a chat whose model plays this.
    pub(super) async fn chat(&self, mode: &str, script: impl IntoIterator<Item = Reply>) -> String {
        self.model.play(script);
        let made = self.page.post("/chats", self.new_chat(mode)).await;
        made["chat"]["id"].as_str().unwrap().to_owned()
    }

    /// The chat's address once it is as wanted.
    pub(super) async fn in_chat<T>(
        &self,
        events: &mut Events,
        chat: &str,
        what: &str,
        want: impl FnMut(&Value) -> Option<T>,
    ) -> T {
        let path = format!("/chats/{chat}");
        self.page.when(events, &path, what, want).await
    }

    /// So many open questions of a chat, in the order of their making.
    pub(super) async fn asked(&self, events: &mut Events, chat: &str, count: usize) -> Vec<Value> {
        let mut asks = self
            .in_chat(events, chat, "its questions", |shown| {
                let asks = shown["asks"].as_array().unwrap();
                let open = asks.iter().filter(|ask| ask["state"] == "open");
                (open.count() == count && asks.len() == count).then(|| asks.clone())
            })
            .await;
        asks.sort_by_key(|ask| ask["seq"].as_u64());
        asks
    }

    /// Waits until a turn has ended with these words of the model's; the chat.
    pub(super) async fn said(&self, events: &mut Events, chat: &str, words: &str) -> Value {
        self.in_chat(events, chat, words, |shown| {
            let items = shown["items"].as_array().unwrap();
            let said = items.iter().any(|item| item["text"] == words);
            (said && shown["chat"]["running"] == false).then(|| shown.clone())
        })
        .await
    }

    /// Waits until a command has said that it is ready.
    pub(super) async fn ready(&self, events: &mut Events, chat: &str) {
        self.in_chat(events, chat, "a command that is ready", |shown| {
            let items = shown["items"].as_array().unwrap();
            let step = items
                .iter()
                .rev()
                .find(|item| item["status"] == "running")?;
            step["tail_html"].as_str()?.contains("ready").then_some(())
        })
        .await;
    }

    /// The test's own requests to the model, as they came.
    pub(super) fn requests(&self) -> Vec<Value> {
        self.model.requests().split_off(self.before)
    }

    /// Starts the daemon again after it was killed.
    pub(super) async fn start_again(&mut self) {
        self.daemon = self.home.start("daemon --json");
        self.daemon.line().await;
    }

    /// Waits until the hub has heard from the device what is wanted.
    pub(super) async fn device<T>(
        &self,
        events: &mut Events,
        what: &str,
        mut want: impl FnMut(&Value) -> Option<T>,
    ) -> T {
        self.page
            .when(events, "/devices", what, |list| want(&list["devices"][0]))
            .await
    }

    /// The lines that commands of the project left.
    pub(super) fn ran(&self) -> usize {
        let lines = std::fs::read_to_string(self.project.join("ran.txt"));
        lines.unwrap_or_default().lines().count()
    }

    /// Nothing was wrong with what the model was asked.
    pub(super) fn no_faults(&self) {
        let faults = self.model.faults();
        // Two of the requests that try a model when it is added have no body.
        let ours: Vec<_> = faults.iter().filter(|f| !f.contains("no JSON")).collect();
        assert!(
            ours.iter().all(|f| f.contains("without messages")),
            "{faults:?}"
        );
    }
}

/// A command of the shell, as the model calls for it.
pub(super) fn bash(command: &str) -> (&'static str, Value) {
    ("bash", json!({ "command": command }))
}

/// Has the hub know the scripted model.
pub(super) async fn add(home: &Home, model: &ModelServer) {
    let answers =
        json!({ "choices": [{ "message": { "role": "assistant", "content": "ready" } }] });
    let nothing = || Reply::error(404, "application/json", "{}");
    model.play([
        Reply::error(200, "application/json", &answers.to_string()),
        nothing(),
        nothing(),
    ]);
    let base = model.endpoint().base();
    home.well(&format!("hub model add scripted --url {base}"))
        .await;
}

/// Links this computer by the ordinary pairing, approved on the page at once.
async fn pair(home: &Home, page: &Page) {
    let http = Http::new(&config::Link::default(), ProxyVars::default()).unwrap();
    let found = discover(&Base::read(&page.url).unwrap(), &http)
        .await
        .unwrap();
    let me = About {
        device: device_id(&home.settings()).await.unwrap(),
        name: "zephyr".to_owned(),
        os: "linux".to_owned(),
        arch: "x86_64".to_owned(),
        limits: json!({}),
    };
    let (give, code) = tokio::sync::oneshot::channel();
    let mut give = Some(give);
    let tell = |progress| {
        if let Progress::Code(code) = progress {
            give.take().unwrap().send(code.code).unwrap();
        }
    };
    let approved = async {
        let code = json!({ "code": code.await.unwrap() });
        page.post("/link/approve", code).await;
    };
    let instance = pair_when(&found, &me, &http, tell, approved).await.unwrap();
    let file = InstanceFile::in_folder(&home.settings());
    file.save(instance).await.unwrap();
}

/// Waits until the one computer is there; its id.
pub(super) async fn online(page: &Page, events: &mut Events) -> String {
    page.when(events, "/devices", "the computer", |list| {
        let device = &list["devices"][0];
        let id = device["id"]
            .as_str()
            .filter(|_| device["state"] == "online");
        id.map(str::to_owned)
    })
    .await
}

/// A project with a commit.
pub(super) fn project(home: &Home) -> PathBuf {
    let project = home.path("projects/api");
    std::fs::create_dir_all(&project).unwrap();
    std::fs::write(project.join("notes.txt"), "one\ntwo\n").unwrap();
    for line in ["init -q", "add -A", "commit -q -m first"] {
        let git = std::process::Command::new("git")
            .args(["-c", "user.name=Ana", "-c", "user.email=ana@example.org"])
            .args(line.split(' '))
            .current_dir(&project)
            .env("HOME", home.path(""))
            .output()
            .unwrap();
        assert!(git.status.success(), "{git:?}");
    }
    project
}
