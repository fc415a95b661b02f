//! Sessions: the journal, the task that owns one, the registry of all.
//!
//! A [`Session`] is a cheap handle; its task owns the state and is driven by one closed enum of
//! events. Everything a session is can be read from its journal, so a turn that is parked, or
//! that the daemon left open when it stopped, goes on from there.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::config::Mode;
use crate::ids::{AskId, Digest, Position, Seq, SessionId};
use crate::permission::Origin;
use crate::store::item::{AskBody, Item, Part, Scope, Settled, Source, Stop, Tokens};

/// What a session is doing (progress.md): `phase`, `since` in milliseconds since the epoch, and
/// the phase's own fields.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    pub phase: Phase,
    pub since: i64,
    #[serde(flatten)]
    pub data: serde_json::Map<String, Value>,
}

/// The thirteen phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    Queued,
    WaitingForModel,
    LoadingModel,
    ReadingPrompt,
    Thinking,
    Writing,
    RunningTool,
    WaitingForPerson,
    WaitingForSubagents,
    Compacting,
    Retrying,
    Stopped,
    Failed,
}

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
    /// How the agent shall be told of what changed (mode, date); made by the session itself.
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

/// An answer to an ask.
#[derive(Clone, Debug)]
pub struct Answer {
    pub ask: AskId,
    /// Of what the person saw; must be what was judged.
    pub digest: Digest,
    pub outcome: Outcome,
    pub scope: Scope,
    pub note: Option<String>,
    /// Where it came from: an answer over the link counts only as far as `remote.approvals` says.
    pub origin: Origin,
    /// In words: `you, on this computer`, `ana, on the page`.
    pub by: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Allow,
    Refuse,
}

/// Why an answer did not count.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum AnswerError {
    #[error("it is settled already: {how:?} by {by}")]
    Settled { how: Settled, by: String, at: i64 },
    #[error("what would run is not what was shown")]
    Changed,
    #[error("no such question is open")]
    Unknown,
    #[error("answers to this question count only when given on this computer: lembas asks")]
    LocalOnly,
    #[error("this computer does not take \"{0:?}\" from an instance for this question")]
    Scope(Scope),
    #[error("cannot save")]
    Store(String),
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
    pub origin: String,
    pub model: String,
    pub mode: Mode,
    pub updated: i64,
    pub head: Seq,
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
    /// A whole item (also a streamed one when the follower starts behind it or it is complete).
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

/// A handle to one session. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Session {
    _private: (),
}

impl Session {
    pub fn id(&self) -> &SessionId {
        todo!()
    }
    pub async fn summary(&self) -> Summary {
        todo!()
    }
    /// Runs a prompt as a turn and answers when the turn has ended. The same key again joins the
    /// turn it started, or answers how it ended. Dropping the future does not stop the turn.
    pub async fn prompt(&self, _prompt: Prompt) -> Result<TurnDone, SessionError> {
        todo!()
    }
    /// Ends a turn: the one given, or the running one. Answers when every process is gone.
    pub async fn stop(&self, _turn: Option<u32>, _why: StopWhy) -> Stopped {
        todo!()
    }
    pub async fn answer(&self, _answer: Answer) -> Result<i64, AnswerError> {
        todo!()
    }
    pub async fn asks(&self) -> Vec<OpenAsk> {
        todo!()
    }
    /// The wait of an ask starts now: the instance has acknowledged it.
    pub async fn ask_heard(&self, _ask: &AskId) {
        todo!()
    }
    pub async fn extend(&self, _ask: &AskId, _seconds: u64) -> Result<u64, AnswerError> {
        todo!()
    }
    /// Changes the mode; the caller has lowered it to the limits. Answers what it is now.
    pub async fn set_mode(&self, _mode: Mode, _by: &str) -> Result<Mode, SessionError> {
        todo!()
    }
    pub async fn set_model(&self, _model: String) -> Result<(), SessionError> {
        todo!()
    }
    pub async fn set_level(&self, _level: String) -> Result<(), SessionError> {
        todo!()
    }
    /// Items in order from a number on, at most `limit`.
    pub async fn items(&self, _from: Seq, _limit: usize) -> Result<Vec<Item>, SessionError> {
        todo!()
    }
    /// Follows the journal from a position: first what is missing, then what happens.
    pub fn follow(&self, _from: Position) -> Follow {
        todo!()
    }
    pub async fn close(&self) -> Result<(), SessionError> {
        todo!()
    }
    pub async fn delete(&self) -> Result<(), SessionError> {
        todo!()
    }
}

/// Why a turn is stopped: the words of its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopWhy {
    /// The person, or the client on their behalf.
    Asked,
    /// A limit changed: "folder no longer shared", "paused on this computer", "not linked any more".
    Limit(String),
    /// The daemon ends; the turn parks and goes on after the restart.
    Shutdown,
}

/// A follower of one session.
#[derive(Debug)]
pub struct Follow {
    _private: (),
}

impl Follow {
    /// The next event; none when the session was deleted. Cancel-safe.
    pub async fn next(&mut self) -> Option<Event> {
        todo!()
    }
}

/// All sessions of this computer. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Registry {
    _private: (),
}

impl Registry {
    pub async fn open(&self, _new: NewSession) -> Result<Session, SessionError> {
        todo!()
    }
    /// A session the asker may see: its own; local askers see all.
    pub async fn get(&self, _id: &SessionId, _asker: &Origin) -> Result<Session, SessionError> {
        todo!()
    }
    /// Newest change first.
    pub async fn list(
        &self,
        _asker: &Origin,
        _cwd: Option<PathBuf>,
        _after: Option<String>,
        _limit: usize,
    ) -> Result<(Vec<Summary>, Option<String>), SessionError> {
        todo!()
    }
    pub async fn asks(&self, _asker: &Origin) -> Vec<OpenAsk> {
        todo!()
    }
    /// Marked changed whenever any session's summary changes; the value is a counter.
    pub fn changes(&self) -> tokio::sync::watch::Receiver<u64> {
        todo!()
    }
}
