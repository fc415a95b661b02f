//! What a model can call: the trait, the registry, one file a tool.
//!
//! A tool describes what it wants ([`Tool::prepare`]), permission judges that, and only then does
//! it run, with the grant. A tool's failure is data for the model, never an error of ours.

mod args;
mod ask;
mod bash;
mod edit;
mod glob;
mod grep;
mod list;
mod plan;
mod read;
mod recall;
mod write;

pub use recall::kept;

use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::Value;

use crate::ids::{CallId, Digest, SessionId};
use crate::permission::{Grant, Request};
use crate::plan::Plan;
use crate::rt::CancellationToken;
use crate::store::device::Store;
use crate::store::item::{CallStatus, Saw};

/// What a tool knows of the session it works in.
#[derive(Clone, Debug)]
pub struct ToolContext {
    pub session: SessionId,
    /// The session's folder, canonical: relative paths resolve against it.
    pub cwd: PathBuf,
    /// Where whole outputs are kept when they are longer than what the model is shown.
    pub spill: PathBuf,
    /// What this session has read, by path and content hash (must-have-read-it for edits).
    pub seen: Seen,
    /// The plan as it is when the call is prepared.
    pub plan: Plan,
    /// Where results are kept; none: nowhere, nothing can be recalled.
    pub store: Option<Store>,
}

/// Files that one session is known to have seen. Past it the one seen longest ago is forgotten: it
/// must be read again before it is changed.
const SEEN: usize = 4_096;

/// Paths this session has read or written, with the hash of what was there. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Seen(Arc<Mutex<SeenFiles>>);

#[derive(Debug, Default)]
struct SeenFiles {
    files: HashMap<PathBuf, (u64, Digest)>,
    /// When each was seen, oldest first.
    order: BTreeMap<u64, PathBuf>,
    next: u64,
}

impl Seen {
    /// Notes what was at a path.
    pub fn note(&self, path: &Path, digest: Digest) {
        let mut seen = self.0.lock();
        let now = seen.next;
        seen.next += 1;
        if let Some((before, _)) = seen.files.insert(path.to_owned(), (now, digest)) {
            seen.order.remove(&before);
        }
        seen.order.insert(now, path.to_owned());
        if seen.order.len() > SEEN
            && let Some((_, oldest)) = seen.order.pop_first()
        {
            seen.files.remove(&oldest);
        }
    }

    /// What this session last saw at a path.
    pub fn at(&self, path: &Path) -> Option<Digest> {
        self.0
            .lock()
            .files
            .get(path)
            .map(|(_, digest)| digest.clone())
    }

    /// Takes up what the journal says was seen, when nothing is known yet: after a start.
    pub fn restore<'a>(&self, looks: impl Iterator<Item = &'a Saw>) {
        if self.0.lock().files.is_empty() {
            looks.for_each(|saw| self.note(Path::new(&saw.path), saw.digest.clone()));
        }
    }
}

/// A call, understood and described, ready to be judged and then run.
#[derive(Debug)]
pub struct Prepared {
    pub request: Request,
    /// One line for the person: the command, the path.
    pub title: String,
    pub locations: Vec<String>,
    /// Whatever the tool needs again when it runs.
    pub state: Box<dyn Any + Send>,
}

/// Why a call cannot even be judged: bad arguments, a file that is not there. Text for the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolFailure(pub String);

impl<E: std::error::Error> From<E> for ToolFailure {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

/// Receives a running command's output, already bounded. Never blocks.
pub trait OutputSink: Send + Sync {
    fn text(&self, chunk: &str);
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    pub status: CallStatus,
    /// What the model reads; the agent puts the result's id in front and cuts it (context.md).
    pub text: String,
    pub diff: Option<String>,
    pub path: Option<String>,
    pub exit: Option<i32>,
    pub bytes: u64,
    pub spill: Option<String>,
    /// The plan as it is afterwards, where the call changed it.
    pub plan: Option<Value>,
    /// What it saw of a file.
    pub saw: Option<Saw>,
}

impl Outcome {
    /// It ran and this is what it answers.
    pub fn ok(text: impl Into<String>) -> Self {
        let text = text.into();
        Self {
            status: CallStatus::Ok,
            bytes: text.len() as u64,
            text,
            diff: None,
            path: None,
            exit: None,
            spill: None,
            plan: None,
            saw: None,
        }
    }

    /// It ran, or tried to, and failed; the text tells the model.
    pub fn failed(text: impl Into<String>) -> Self {
        Self {
            status: CallStatus::Failed,
            ..Self::ok(text)
        }
    }
}

impl From<ToolFailure> for Outcome {
    fn from(failure: ToolFailure) -> Self {
        Self::failed(failure.0)
    }
}

/// One tool.
pub trait Tool: Send + Sync {
    /// As in `spec/tools`.
    fn name(&self) -> &'static str;

    /// Former names that still work as the tool.
    fn aliases(&self) -> &'static [&'static str] {
        &[]
    }

    /// Reads the arguments and says what is wanted. Touches nothing but what it must look at.
    fn prepare(&self, args: &Value, context: &ToolContext) -> Result<Prepared, ToolFailure>;

    /// Does it. `stop` ends it; everything it started is gone when this returns.
    fn run<'a>(
        &'a self,
        call: &'a CallId,
        prepared: Prepared,
        grant: Grant,
        context: &'a ToolContext,
        output: &'a dyn OutputSink,
        stop: CancellationToken,
    ) -> BoxFuture<'a, Outcome>;
}

/// The tools of an agent session, by name and alias.
#[derive(Clone, Default)]
pub struct Tools {
    list: Vec<Arc<dyn Tool>>,
}

impl std::fmt::Debug for Tools {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list()
            .entries(self.list.iter().map(|t| t.name()))
            .finish()
    }
}

impl Tools {
    /// A registry of these tools alone.
    pub fn of(list: Vec<Arc<dyn Tool>>) -> Self {
        Self { list }
    }

    /// Every tool of an agent session on a device.
    pub fn standard() -> Self {
        Self::of(vec![
            Arc::new(bash::Bash),
            Arc::new(read::Read),
            Arc::new(recall::Recall),
            Arc::new(list::List),
            Arc::new(glob::Glob),
            Arc::new(grep::Grep),
            Arc::new(write::Write),
            Arc::new(edit::Edit),
            Arc::new(plan::PlanWrite),
            Arc::new(plan::PlanUpdate),
            Arc::new(ask::AskUser),
        ])
    }

    pub fn get(&self, name: &str) -> Option<Arc<dyn Tool>> {
        self.list
            .iter()
            .find(|t| t.name() == name || t.aliases().contains(&name))
            .cloned()
    }

    pub fn names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.list.iter().map(|t| t.name())
    }
}
