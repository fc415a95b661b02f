//! What may run: a request is judged, and only a judgement makes a [`Grant`].
//!
//! `exec` and `fs` spend grants and nothing else runs a program or touches the person's files.
//! The grant holds the exact bytes, folder, environment and box that were judged: the text that
//! was judged is the text that runs. Not here: running (`exec`), asking a person (`session`).

use std::path::PathBuf;
use std::time::Duration;

use crate::config::{Approvals, Mode};
use crate::ids::{Digest, SessionId};
use crate::store::item::{Allowed, AskBody, Scope};

/// What a tool wants to do, in full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The tool's name, as in `spec/tools`.
    pub tool: String,
    pub action: Action,
    /// The session's folder: rules are bound to it, relative paths resolve against it.
    pub cwd: PathBuf,
}

/// The effect of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Reads files or folders (absolute, links not yet resolved).
    Read {
        paths: Vec<PathBuf>,
    },
    /// Changes one file (absolute). `digest` is of the bytes that will be there.
    Write {
        path: PathBuf,
        digest: Digest,
        diff: String,
    },
    Execute(Command),
    /// Touches nothing but the session: plan, questions.
    Interact,
}

/// A shell command, verbatim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    pub text: String,
    pub timeout: Duration,
    /// What the run is for: watch commands are boxed with a read-only disk in every mode.
    pub purpose: Purpose,
    /// Why it shall run outside the box (network, other folders); none: in the box where it can.
    pub open: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    Tool,
    Monitor,
}

/// On whose word the session runs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// Someone at this computer: a terminal, an editor.
    Local,
    /// A linked instance, under the grant of its token.
    Remote { instance: String, grant: String },
}

/// What is true at the moment of judging. Made anew for every judgement from the live config.
#[derive(Clone, Debug)]
pub struct Context {
    pub session: SessionId,
    pub origin: Origin,
    /// min(session mode, `max_mode` now).
    pub mode: Mode,
    /// Folders that count as inside, canonical.
    pub roots: Vec<PathBuf>,
    /// Whether anybody can be asked.
    pub attended: Attended,
    pub approvals: Approvals,
    pub sudo: crate::config::Sudo,
    /// Paths of the protected list that the person released (local sessions only).
    pub released: Vec<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attended {
    /// A person can answer now or later.
    Person,
    /// A scheduled run: a person may answer within its wait; sudo and floor doubts are refused.
    Scheduled,
    /// Nobody: what would ask is refused (monitor).
    Nobody,
}

/// How strong the box of this computer is, probed once by `exec` and told to the engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BoxStrength {
    /// Files, processes and network are fenced.
    Full,
    /// Writing alone is fenced.
    WritesOnly,
    #[default]
    None,
}

impl BoxStrength {
    /// As `doctor`, asks and the link's limits say it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::WritesOnly => "writes only",
            Self::None => "none",
        }
    }
}

/// What a command can reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BoxKind {
    /// The disk read-only, nothing writable, no network.
    Read,
    /// The roots and a private temporary folder writable, no network.
    Roots,
    /// No box.
    Open,
}

impl BoxKind {
    pub fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Roots => "roots",
            Self::Open => "open",
        }
    }
}

/// The box a command was judged in.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Fence {
    pub kind: BoxKind,
    /// Folders that are writable inside, canonical.
    pub writable: Vec<PathBuf>,
    pub network: bool,
    /// Whether a private temporary folder is writable inside.
    pub scratch: bool,
    /// Folders that are covered whole: the daemon's own (token, store).
    pub covered: Vec<PathBuf>,
}

/// Everything about a run that was judged: what is started is exactly this.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Launch {
    /// The bytes handed to `bash -c`.
    pub text: String,
    pub cwd: PathBuf,
    /// The whole environment of the command, sorted by name.
    pub env: Vec<(String, String)>,
    pub fence: Fence,
    pub timeout: Duration,
}

/// What the engine must know of this computer; `exec` finds it out.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// The environment a command gets, sorted by name, `PATH` among it.
    pub env: Vec<(String, String)>,
    /// The folders of `PATH`, absolute.
    pub path: Vec<PathBuf>,
    pub strength: BoxStrength,
    /// The daemon's own folders, covered in every box ([`Fence::covered`]).
    pub covered: Vec<PathBuf>,
}

/// The engine: the spec's floor and tables, the machine's facts (box, programs), the rules.
#[derive(Clone, Debug)]
pub struct Engine {}

/// What a judgement says.
#[derive(Debug)]
pub enum Verdict {
    Allow(Grant),
    Ask(Box<Pending>),
    Refuse(Refusal),
}

/// A refusal, in words for the model and the person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// `floor`, `protected`, `rule`, `mode`, `outside`, `unattended`, `unreadable`.
    pub layer: &'static str,
    pub segment: Option<String>,
    pub text: String,
}

/// A judgement that needs the person's word. Holds what was judged; only [`Pending::allowed`]
/// turns it into a grant.
#[derive(Debug)]
pub struct Pending {
    /// As it is stored and shown; `ask`, `call` and `wait_ms` are the session's to fill.
    pub body: AskBody,
    grant: Grant,
}

impl Pending {
    /// The person said yes to exactly this. A rule is made where the scope is wider than once.
    pub fn allowed(self, scope: Scope) -> (Grant, Option<Rule>) {
        let rule = (scope != Scope::Once).then(|| Rule {
            id: crate::ids::random_hex(8),
            data: serde_json::json!({ "command": self.body.command }),
        });
        (self.grant, rule)
    }
}

/// Permission to do one thing, once. Only this module makes one.
#[derive(Debug)]
pub struct Grant {
    request: Request,
    launch: Option<Launch>,
    digest: Digest,
    allowed: Allowed,
}

impl Grant {
    pub fn request(&self) -> &Request {
        &self.request
    }
    pub fn digest(&self) -> &Digest {
        &self.digest
    }
    /// What is started, where the request is to execute.
    pub fn launch(&self) -> Option<&Launch> {
        self.launch.as_ref()
    }
    /// What let it through, in words.
    pub fn decision(&self) -> &Allowed {
        &self.allowed
    }
}

/// A stored or session yes (or no), bound to a folder, an origin and the command it came from.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Rule {
    pub id: String,
    pub data: serde_json::Value,
}

/// Whoever judges: the engine, or a stand-in of a test.
pub trait Judge: Send + Sync {
    fn judge(&self, request: &Request, context: &Context, rules: &[Rule]) -> Verdict;
}

impl Judge for Engine {
    fn judge(&self, request: &Request, context: &Context, rules: &[Rule]) -> Verdict {
        Self::judge(self, request, context, rules)
    }
}

impl Engine {
    /// The engine for this computer.
    pub fn load() -> Self {
        todo!()
    }

    /// The engine with what was found out of this computer.
    pub fn with(_facts: Facts) -> Self {
        todo!()
    }

    /// Judges a request. Pure but for looking up programs and resolving links.
    pub fn judge(&self, _request: &Request, _context: &Context, _rules: &[Rule]) -> Verdict {
        todo!()
    }
}

/// What tests of other modules need: a grant without a judgement.
#[cfg(any(test, feature = "testing"))]
pub mod testing {
    use super::{Grant, Pending, Request};
    use crate::store::item::AskBody;

    /// A judgement that asks, with this question, about a request.
    pub fn pending_for(request: Request, body: AskBody) -> Pending {
        let grant = grant_for(request);
        Pending {
            body: AskBody {
                digest: grant.digest().clone(),
                ..body
            },
            grant,
        }
    }

    /// A grant to start exactly this, as if a person had said yes to it once.
    pub fn grant_to_launch(launch: super::Launch) -> Grant {
        let request = Request {
            tool: "bash".to_owned(),
            cwd: launch.cwd.clone(),
            action: super::Action::Execute(super::Command {
                text: launch.text.clone(),
                timeout: launch.timeout,
                purpose: super::Purpose::Tool,
                open: None,
            }),
        };
        Grant {
            launch: Some(launch),
            ..grant_for(request)
        }
    }

    /// A grant for a request, as if a person had said yes to it once.
    pub fn grant_for(request: Request) -> Grant {
        let digest = crate::ids::Digest::of(format!("{request:?}").as_bytes());
        Grant {
            request,
            launch: None,
            digest,
            allowed: crate::store::item::Allowed {
                source: "once".into(),
                text: "you allowed it".into(),
                r#box: String::new(),
            },
        }
    }
}

/// Whether a file is read only when it is asked for by name (project secrets).
pub fn is_private(path: &std::path::Path) -> bool {
    let name = path
        .file_name()
        .map(|n| n.to_string_lossy())
        .unwrap_or_default();
    name == ".env"
        || (name.starts_with(".env.") && name != ".env.example")
        || name.ends_with(".tfstate")
}
