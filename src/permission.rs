//! What may run: a request is judged, and only a judgement makes a [`Grant`].
//!
//! `exec` and `fs` spend grants and nothing else runs a program or touches the person's files.
//! The grant holds the exact bytes, folder, environment and box that were judged: the text that
//! was judged is the text that runs. Not here: running (`exec`), asking a person (`session`).

mod command;
mod engine;
mod facts;
mod floor;
mod git;
mod grant;
mod paths;
mod programs;
mod reader;
mod rule;
mod words;

use std::path::PathBuf;
use std::time::Duration;

use crate::config::{Approvals, Mode};
use crate::ids::{Digest, SessionId};
use crate::store::item::{AskBody, Question};

pub use engine::Engine;
pub use facts::{Facts, Strength};
pub use grant::{BoxKind, BoxPlan, Grant, Run, Sees};
pub use paths::{is_private, resolve, unshareable};
pub use rule::Rule;

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
    /// Touches nothing but the session: the plan.
    Interact,
    /// Asks the person something, which nobody but the person can settle.
    Question(Question),
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
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
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

/// What a judgement says.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "it is made once a call and taken apart at once"
)]
pub enum Verdict {
    Allow(Grant),
    Ask(Box<Pending>),
    Refuse(Refusal),
}

/// A refusal, in words for the model and the person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// `floor`, `protected`, `rule`, `mode`, `outside`, `unattended`, `unreadable`, `sudo`.
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
    rule: Option<Rule>,
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

/// Whether a file's name says that it holds secrets (`.env` and its kind).
pub fn is_secret_name(path: &std::path::Path) -> bool {
    paths::secret_name(path)
}

/// What tests of other modules need: a grant without a judgement.
#[cfg(any(test, feature = "testing"))]
pub mod testing {
    pub use super::facts::testing::Fixed;
    use super::{Grant, Pending, Request, Rule, Run};
    use crate::store::item::AskBody;

    /// A judgement that asks, with this question, about a request. A yes for longer than once makes
    /// a rule whose data is `{ command }`.
    pub fn pending_for(request: Request, body: AskBody) -> Pending {
        let grant = grant_for(request);
        let body = AskBody {
            digest: grant.digest().clone(),
            ..body
        };
        // A stand-in judge knows its rules by the command alone.
        let rule = Rule {
            id: crate::ids::random_hex(8),
            made: crate::clock::now_ms(),
            data: serde_json::json!({ "command": body.command }),
        };
        Pending::new(body, grant, Some(rule))
    }

    /// A grant to run exactly this, as if a person had said yes to it once.
    pub fn grant_to_run(run: Run) -> Grant {
        Grant::of_test_run(run)
    }

    /// A grant for a request, as if a person had said yes to it once: no box, the paths as given.
    pub fn grant_for(request: Request) -> Grant {
        Grant::of_test(request)
    }
}

#[cfg(test)]
mod tests;
