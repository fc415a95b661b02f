//! A computer for tests: a store, a registry, tools and a judge that do as a command's words say,
//! and a model server with a script.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use lembas::agent::{About, Models, SessionFacts};
use lembas::config::{Config, Live, Mode, Remote};
use lembas::context::{Facts, Note, SpecTexts, Texts};
use lembas::ids::{AskId, CallId, Digest, Position, SessionId};
use lembas::model::openai::Waits as ModelWaits;
use lembas::model::retry::Retry;
use lembas::model::{Endpoint, ToolDef};
use lembas::permission::testing::{grant_for, pending_for};
use lembas::permission::{
    Action, Command, Context, Grant, Judge, Origin, Purpose, Refusal, Request, Rule, Verdict,
};
use lembas::rt::{CancellationToken, Tasks};
use lembas::session::{
    Answer, Event, NewSession, OpenAsk, Outcome as Word, Prompt, Registry, Session, Setup,
};
use lembas::spec::BoxKind;
use lembas::store::device::Store;
use lembas::store::item::{AskBody, Body, CallStatus, Item, Part, Scope, Source};
use lembas::testing::model::ModelServer;
use lembas::tools::{Outcome, OutputSink, Prepared, Tool, ToolContext, ToolFailure, Tools};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

/// What the tools do and did.
#[derive(Debug)]
pub(super) struct World {
    /// Every command that ran, when it began.
    pub(super) ran: Mutex<Vec<String>>,
    /// Put behind every command when it is understood: changing it changes what would run.
    pub(super) version: Mutex<String>,
    /// Put behind every result.
    pub(super) says: Mutex<String>,
    /// Permits let `gate` commands go on.
    pub(super) gate: Semaphore,
    pub(super) readers: tokio::sync::Barrier,
    /// Commands that run now.
    pub(super) active: AtomicUsize,
}

/// Counts a command while it runs, however it ends.
struct Active<'a>(&'a AtomicUsize);

impl<'a> Active<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }
}

impl Drop for Active<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

pub(super) struct Home {
    pub(super) folder: tempfile::TempDir,
    pub(super) world: Arc<World>,
    pub(super) model: ModelServer,
    pub(super) config: Live,
    pub(super) tasks: Tasks,
    pub(super) steps: u32,
    /// The tools and texts of a real computer instead of scripted ones.
    pub(super) real: bool,
    pub(super) about: Arc<Mutex<About>>,
}

impl Home {
    pub(super) async fn new() -> Self {
        let tasks = Tasks::new();
        Self {
            folder: tempfile::tempdir().unwrap(),
            world: Arc::new(World {
                ran: Mutex::default(),
                version: Mutex::default(),
                says: Mutex::default(),
                gate: Semaphore::new(0),
                readers: tokio::sync::Barrier::new(2),
                active: AtomicUsize::new(0),
            }),
            model: ModelServer::start(&tasks).await.unwrap(),
            config: Live::new(Config::default()),
            tasks,
            steps: 200,
            real: false,
            about: Arc::default(),
        }
    }

    pub(super) fn cwd(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    pub(super) async fn store(&self) -> Store {
        Store::open(self.folder.path(), &self.folder.path().join("chain"))
            .await
            .unwrap()
    }

    /// A registry over the folder's store, as at a start of the daemon.
    pub(super) async fn start(&self, tasks: &Tasks) -> Registry {
        let tools: Vec<Arc<dyn Tool>> = vec![
            Arc::new(Fake("bash", self.world.clone())),
            Arc::new(Fake("look", self.world.clone())),
        ];
        let tools = if self.real {
            Tools::standard()
        } else {
            Tools::of(tools)
        };
        let names: Vec<String> = tools.names().map(str::to_owned).collect();
        let texts: Arc<dyn Texts> = if self.real {
            Arc::new(SpecTexts::new(BoxKind::Full, names))
        } else {
            Arc::new(Plain(self.steps))
        };
        let setup = Setup {
            store: self.store().await,
            config: self.config.clone(),
            tools: Arc::new(tools),
            judge: Arc::new(Script),
            models: Arc::new(One(self.model.clone(), self.about.clone())),
            texts,
            retry: Retry {
                first: Duration::ZERO,
                ..Retry::default()
            },
            model_waits: ModelWaits::default(),
        };
        Registry::start(setup, tasks).await.unwrap()
    }

    pub(super) fn new_session(&self, origin: Origin) -> NewSession {
        NewSession {
            origin,
            cwd: self.cwd(),
            also: vec![],
            model: "m".into(),
            mode: Mode::Edit,
            level: None,
            agents: None,
            said: None,
            context: None,
            scheduled: None,
            key: None,
        }
    }

    /// A registry and a local session in it.
    pub(super) async fn local(&self) -> (Registry, Session) {
        let registry = self.start(&self.tasks).await;
        let session = registry
            .open(self.new_session(Origin::Local))
            .await
            .unwrap();
        (registry, session)
    }

    pub(super) fn share(&self, change: impl FnOnce(&mut Remote)) {
        let mut config = Config::default();
        config.remote.roots = vec![self.cwd()];
        config.remote.max_mode = Mode::Edit;
        change(&mut config.remote);
        self.config.set(config);
    }

    pub(super) fn active(&self) -> usize {
        self.world.active.load(Ordering::SeqCst)
    }

    pub(super) fn ran(&self) -> Vec<String> {
        self.world.ran.lock().clone()
    }

    /// The text that the model was sent as the last result.
    pub(super) fn last_result(&self) -> String {
        let requests = self.model.requests();
        let messages = requests.last().unwrap()["messages"].as_array().unwrap();
        let last = messages.iter().rev().find(|m| m["role"] == "tool");
        last.unwrap()["content"].as_str().unwrap().to_owned()
    }

    /// Every request paired each call with its result, and nothing was asked unexpectedly.
    pub(super) fn no_faults(&self) {
        assert_eq!(self.model.faults(), Vec::<String>::new());
    }
}

pub(super) fn remote() -> Origin {
    Origin::Remote {
        instance: "hub".into(),
        grant: "g".into(),
    }
}

pub(super) fn prompt(key: &str, text: &str) -> Prompt {
    Prompt {
        key: key.into(),
        source: Source::Person,
        parts: vec![Part::Text { text: text.into() }],
        run: None,
    }
}

pub(super) fn bash(command: &str) -> (&'static str, Value) {
    ("bash", json!({ "command": command }))
}

pub(super) fn answer(ask: &OpenAsk, outcome: Word, scope: Scope) -> Answer {
    Answer {
        ask: ask.body.ask.clone(),
        digest: ask.body.digest.clone(),
        outcome,
        scope,
        note: None,
        selected: Vec::new(),
        origin: Origin::Local,
        by: "you, on this computer".into(),
    }
}

/// Starts a prompt and does not wait for its end.
pub(super) fn begin(
    tasks: &Tasks,
    session: &Session,
    prompt: Prompt,
) -> tokio::task::JoinHandle<Option<Result<lembas::session::TurnDone, String>>> {
    let session = session.clone();
    tasks.spawn("prompt", async move {
        session.prompt(prompt).await.map_err(|e| e.to_string())
    })
}

/// Fails instead of hanging; long enough for a machine that is busy.
pub(super) async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), what)
        .await
        .expect("it did not happen")
}

/// Waits until a session's journal has an item that fits, from its beginning.
pub(super) async fn until(session: &Session, fits: impl Fn(&Item) -> bool) -> Item {
    let mut follow = session.follow(Position::default());
    soon(async {
        loop {
            match follow.next().await {
                Some(Event::Item(item)) if fits(&item) => return item,
                Some(_) => {}
                None => panic!("the session is gone"),
            }
        }
    })
    .await
}

/// Waits until so many questions are open.
pub(super) async fn asks(session: &Session, count: usize) -> Vec<OpenAsk> {
    let mut follow = session.follow(Position::default());
    soon(async {
        loop {
            let open = session.asks().await;
            if open.len() == count {
                return open;
            }
            follow.next().await;
        }
    })
    .await
}

/// All items of a session.
pub(super) async fn journal(session: &Session) -> Vec<Item> {
    let mut all: Vec<Item> = Vec::new();
    loop {
        let from = all.last().map_or(0, |i| i.seq.0 + 1);
        let more = session.items(lembas::ids::Seq(from), 50).await.unwrap();
        if more.is_empty() {
            return all;
        }
        all.extend(more);
    }
}

pub(super) fn result_of(items: &[Item], call: &str) -> (CallStatus, String) {
    items
        .iter()
        .find_map(|i| match &i.body {
            Body::Result {
                call: c,
                status,
                text,
                ..
            } if c.as_str() == call => Some((*status, text.clone())),
            _ => None,
        })
        .unwrap()
}

#[derive(Clone)]
struct One(ModelServer, Arc<Mutex<About>>);

impl Models for One {
    fn endpoint(&self, _origin: &Origin, _model: &str) -> Result<Arc<dyn Endpoint>, String> {
        Ok(self.0.endpoint())
    }
    fn about(&self, _origin: &Origin, _model: &str) -> BoxFuture<'static, About> {
        Box::pin(std::future::ready(*self.1.lock()))
    }
}

struct Plain(u32);

impl Texts for Plain {
    fn system(&self, facts: &Facts) -> String {
        format!("You work on {}.", facts.project)
    }
    fn tools(&self, _facts: &Facts) -> Vec<ToolDef> {
        ["bash", "look"]
            .map(|name| ToolDef {
                name: name.into(),
                description: "d".into(),
                parameters: json!({ "type": "object" }),
            })
            .into()
    }
    fn note(&self, note: &Note) -> String {
        match note {
            Note::Date(_) => "Today is some day.".to_owned(),
            other => format!("{other:?}"),
        }
    }
    fn block(&self, _tool: &str) -> String {
        "shell".into()
    }
    fn steps(&self) -> u32 {
        self.0
    }
}

/// Judges by the first word of what would run.
struct Script;

impl Judge for Script {
    fn judge(&self, request: &Request, context: &Context, rules: &[Rule]) -> Verdict {
        let Action::Execute(command) = &request.action else {
            return Verdict::Allow(grant_for(request.clone()));
        };
        let known = rules.iter().any(|r| r.data["command"] == command.text);
        match command.text.split(' ').next() {
            Some("ask") if !known => Verdict::Ask(Box::new(pending_for(
                request.clone(),
                AskBody {
                    ask: AskId::new(""),
                    call: CallId::new(""),
                    digest: Digest::of(b""),
                    kind: "execute".into(),
                    command: command.text.clone(),
                    cwd: request.cwd.display().to_string(),
                    reason: "it says so".into(),
                    segment: None,
                    r#box: "open".into(),
                    covers: None,
                    widest: None,
                    scopes: vec![Scope::Once, Scope::Session, Scope::Always],
                    programs: vec![],
                    variables: vec![],
                    diff: None,
                    wait_ms: None,
                    question: None,
                },
            ))),
            Some("no") => Verdict::Refuse(Refusal {
                layer: "floor",
                segment: None,
                text: "Refused in every mode.".into(),
            }),
            Some("mode") => Verdict::Refuse(Refusal {
                layer: "mode",
                segment: None,
                text: format!("The mode is {:?}.", context.mode),
            }),
            _ => Verdict::Allow(grant_for(request.clone())),
        }
    }
}

struct Fake(&'static str, Arc<World>);

impl Tool for Fake {
    fn name(&self) -> &'static str {
        self.0
    }

    fn prepare(&self, args: &Value, context: &ToolContext) -> Result<Prepared, ToolFailure> {
        let Some(command) = args["command"].as_str() else {
            return Err(ToolFailure("command is missing".into()));
        };
        let text = format!("{command}{}", self.1.version.lock());
        let action = if self.0 == "look" {
            Action::Read {
                paths: vec![context.cwd.clone()],
            }
        } else {
            Action::Execute(Command {
                text: text.clone(),
                timeout: Duration::from_secs(60),
                purpose: Purpose::Tool,
                open: None,
            })
        };
        Ok(Prepared {
            request: Request {
                tool: self.0.into(),
                action,
                cwd: context.cwd.clone(),
            },
            title: text.clone(),
            locations: vec![],
            state: Box::new(text),
        })
    }

    fn run<'a>(
        &'a self,
        call: &'a CallId,
        prepared: Prepared,
        _grant: Grant,
        _context: &'a ToolContext,
        output: &'a dyn OutputSink,
        stop: CancellationToken,
    ) -> BoxFuture<'a, Outcome> {
        let text = *prepared.state.downcast::<String>().unwrap();
        Box::pin(async move {
            let _active = Active::new(&self.1.active);
            self.1.ran.lock().push(text.clone());
            let mut words = text.split(' ');
            let status = match words.find(|w| *w != "ask") {
                Some("hang") => {
                    stop.cancelled().await;
                    CallStatus::Cancelled
                }
                Some("gate") => {
                    tokio::select! {
                        () = stop.cancelled() => CallStatus::Cancelled,
                        permit = self.1.gate.acquire() => {
                            permit.unwrap().forget();
                            CallStatus::Ok
                        }
                    }
                }
                Some("meet") => {
                    self.1.readers.wait().await;
                    CallStatus::Ok
                }
                Some("chatty") => {
                    for n in 0..200 {
                        output.text(&format!("line {n} of {call}\n"));
                        if n % 50 == 0 {
                            tokio::task::yield_now().await;
                        }
                    }
                    CallStatus::Ok
                }
                Some("break") => panic!("as scripted"),
                _ => CallStatus::Ok,
            };
            Outcome {
                plan: None,
                saw: None,
                status,
                text: format!("ran {text}{}", self.1.says.lock()),
                diff: None,
                path: None,
                exit: Some(0),
                bytes: 0,
                spill: None,
            }
        })
    }
}

/// Picks a session for `stop_where`.
pub(super) fn is(id: &SessionId) -> impl Fn(&SessionFacts) -> bool + '_ {
    move |facts| facts.id == *id
}
