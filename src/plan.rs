//! The plan: one structure a session keeps (spec README, "The plan").
//!
//! Title, summary, findings, objectives, and phases of tasks with a status each. Ids are given
//! here and never by the model: `p1`… for phases, `t1`… for tasks, counted through the session and
//! not used twice. Pure: the tools and the page say what shall change, the session keeps it.

mod change;
mod show;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use change::{Change, PlanError};

/// Phases of a plan, tasks in all, and characters of any one text. More is refused with the number.
pub const MAX_PHASES: usize = 20;
pub const MAX_TASKS: usize = 200;
pub const MAX_TEXT: usize = 4_000;

/// How far a task is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    #[default]
    Todo,
    Doing,
    Done,
    Dropped,
}

impl Status {
    /// The word as it stands in the structure.
    pub fn word(self) -> &'static str {
        match self {
            Self::Todo => "todo",
            Self::Doing => "doing",
            Self::Done => "done",
            Self::Dropped => "dropped",
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    pub id: String,
    pub text: String,
    pub status: Status,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Phase {
    pub id: String,
    pub title: String,
    pub tasks: Vec<Task>,
}

/// A session's plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    #[serde(default)]
    pub title: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub summary: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objectives: Vec<String>,
    #[serde(default)]
    pub phases: Vec<Phase>,
    /// Ids given so far, so that none is used twice in a session.
    #[serde(default)]
    pub next: Next,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Next {
    pub phase: u32,
    pub task: u32,
}

impl Plan {
    /// The structure as it is stored and travels (`plan_state`).
    pub fn to_value(&self) -> Value {
        serde_json::to_value(self).unwrap_or(Value::Null)
    }

    /// Reads a stored plan; anything that is none is an empty one.
    pub fn from_value(value: &Value) -> Self {
        serde_json::from_value(value.clone()).unwrap_or_default()
    }

    pub fn is_empty(&self) -> bool {
        self.title.is_empty() && self.phases.is_empty()
    }

    /// All tasks in order.
    pub fn tasks(&self) -> impl Iterator<Item = &Task> {
        self.phases.iter().flat_map(|phase| phase.tasks.iter())
    }

    fn task_mut(&mut self, id: &str) -> Option<&mut Task> {
        self.phases
            .iter_mut()
            .flat_map(|phase| phase.tasks.iter_mut())
            .find(|task| task.id == id)
    }
}
