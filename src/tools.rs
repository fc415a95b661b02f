//! What a model can call: the trait, the registry, one file a tool.
//!
//! A tool describes what it wants ([`Tool::prepare`]), permission judges that, and only then does
//! it run, with the grant. A tool's failure is data for the model, never an error of ours.

use std::any::Any;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::Value;

use crate::ids::{CallId, SessionId};
use crate::permission::{Grant, Request};
use crate::rt::CancellationToken;
use crate::store::item::CallStatus;

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
}

/// Paths this session has read or written, with the hash of what was there. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Seen(pub Arc<parking_lot::Mutex<std::collections::HashMap<PathBuf, crate::ids::Digest>>>);

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

/// Receives a running command's output, already bounded. Never blocks.
pub trait OutputSink: Send + Sync {
    fn text(&self, chunk: &str);
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    pub status: CallStatus,
    /// Exactly what the model reads, already cut to the context rules.
    pub text: String,
    pub diff: Option<String>,
    pub path: Option<String>,
    pub exit: Option<i32>,
    pub bytes: u64,
    pub spill: Option<String>,
}

/// One tool.
pub trait Tool: Send + Sync {
    /// As in `spec/tools`.
    fn name(&self) -> &'static str;

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
    /// The tools every agent session has: read, list, glob, grep, write, edit, bash.
    pub fn standard() -> Self {
        todo!()
    }

    /// These tools; of two with one name the first is taken.
    pub fn of(list: Vec<Arc<dyn Tool>>) -> Self {
        Self { list }
    }

    /// All of them, in the order in which they are offered.
    pub fn all(&self) -> &[Arc<dyn Tool>] {
        &self.list
    }

    pub fn get(&self, name: &str) -> Option<Arc<dyn Tool>> {
        self.list.iter().find(|t| t.name() == name).cloned()
    }
}
