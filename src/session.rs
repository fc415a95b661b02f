//! Sessions: the journal, the task that owns one, the registry of all.
//!
//! A [`Session`] is a cheap handle; its task owns the state and is driven by one closed enum of
//! commands. Everything a session is can be read from its journal, so a turn that is parked, or
//! that the daemon left open when it stopped, goes on from there.

mod back;
mod begin;
mod follow;
mod handle;
mod output;
mod registry;
mod task;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::config::Mode;
use crate::ids::{Position, Seq, SessionId};
use crate::permission::Origin;
use crate::store::item::{AskBody, Item, Part, Source, Stop, Tokens};

pub use crate::agent::asks::{Answer, AnswerError, Outcome};
pub use crate::agent::progress::{Phase, Progress};
pub use crate::agent::stop::StopWhy;
pub use follow::Follow;
pub use handle::{Session, kept, kept_ask};
pub use output::{Output, OutputError};
pub use registry::{Registry, Setup};

/// What opens a session. Limits were judged by the caller (`remote`) where it is a remote one.
#[derive(Clone, Debug)]
pub struct NewSession {
    pub origin: Origin,
    /// Canonical.
    pub cwd: PathBuf,
    /// Further folders that count as inside, canonical.
    pub also: Vec<PathBuf>,
    /// The instance's served id; nothing else is used instead.
    pub model: String,
    pub mode: Mode,
    pub level: Option<String>,
    /// `{ min, max }` of the Subagents setting, the person's earlier words, further context.
    pub agents: Option<Value>,
    pub said: Option<String>,
    pub context: Option<String>,
    pub scheduled: Option<Scheduled>,
    /// Asked twice with the same key, opened once.
    pub key: Option<String>,
}

/// A scheduled run's own facts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scheduled {
    pub schedule: String,
    pub run: String,
    /// Seconds an ask waits before it counts as denied.
    pub approval_wait: u64,
}

/// A prompt for a session.
#[derive(Clone, Debug)]
pub struct Prompt {
    pub key: String,
    pub source: Source,
    pub parts: Vec<Part>,
    /// `{ schedule, run }` of a scheduled run.
    pub run: Option<Value>,
}

/// How a prompt's turn ended.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnDone {
    pub turn: u32,
    pub stop: Stop,
    pub reason: Option<String>,
    pub tokens: Tokens,
    /// `{ schedule, run, status, reply }` of a scheduled run.
    pub run: Option<Value>,
}

/// Why a session could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    #[error("there is no session {0}")]
    Missing(SessionId),
    #[error("a turn is running in this session")]
    Busy,
    #[error("at most {0} sessions may be open here at once")]
    TooMany(usize),
    #[error("the key {0} was used with other content")]
    Key(String),
    #[error("item {} is no message that can be taken back", .0.0)]
    NoPrompt(Seq),
    #[error("{0}")]
    Refused(String),
    #[error("cannot save: {0}")]
    Store(#[from] crate::store::db::StoreError),
}

/// A session in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    pub id: SessionId,
    pub cwd: PathBuf,
    pub title: Option<String>,
    /// `local`, or the instance it belongs to.
    pub origin: String,
    /// A schedule began it, and nobody at a page.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub scheduled: bool,
    pub model: String,
    pub mode: Mode,
    pub updated: i64,
    pub head: Seq,
    /// A turn has begun and not ended; it may be parked.
    pub running: bool,
    pub progress: Option<Progress>,
    pub asks: usize,
    pub turn: u32,
}

/// An open question, with the session it belongs to and what is left of its wait.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenAsk {
    pub session: SessionId,
    pub seq: Seq,
    pub made: i64,
    #[serde(flatten)]
    pub body: AskBody,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_ms: Option<u64>,
    pub remote: bool,
}

/// What a follower hears, in order. Pulled by the follower at its own pace; the journal waits on
/// the disk, not in memory, and a follower that fell behind gets joined chunks.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// An item: whole, or, of a streamed one, its text so far; more of it comes as `Text`.
    Item(Item),
    /// More text of a streamed item: it now ends at `to.at` bytes.
    Text {
        to: Position,
        kind: TextKind,
        chunk: String,
    },
    /// The state changed; always the newest, older ones are skipped.
    Progress(Progress),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextKind {
    Message,
    Thought,
    Output(crate::ids::CallId),
}

/// What Stop came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stopped {
    Stopped,
    /// That turn was not running any more.
    Gone,
}
