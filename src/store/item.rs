//! Items: the facts a session's journal is made of.
//!
//! The journal is the session: the model's history, a replay, the transcript at an instance and
//! the page are projections of these rows. An item is committed before anyone outside hears of
//! it; only streamed text (`Message`, `Thought`, `Output`) may run 250 ms ahead of the disk.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::{AskId, CallId, Digest, Position, Seq};
use crate::spec::RunEnd;

/// One numbered fact of one session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Item {
    pub seq: Seq,
    /// The turn it belongs to, counted from 1; 0 outside of turns.
    pub turn: u32,
    /// When it was made, milliseconds since the epoch.
    pub time: i64,
    pub body: Body,
}

impl Item {
    /// Where this item ends so far: its number and the bytes of its streamed text.
    pub fn position(&self) -> Position {
        let at = match &self.body {
            Body::Message { text } | Body::Thought { text } | Body::Output { text, .. } => {
                text.len() as u64
            }
            _ => 0,
        };
        Position { seq: self.seq, at }
    }
}

/// Who made a prompt (link.md; `machine` is a job that ended).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    Person,
    Machine,
    Scheduled,
}

/// One part of a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    Text {
        text: String,
    },
    /// A file the person attached, by address.
    Link {
        uri: String,
        name: String,
    },
    /// An image, base64.
    Image {
        mime: String,
        data: String,
    },
}

/// How a turn ended. The wire's stop reasons, decided before anything is torn down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    EndTurn,
    MaxTokens,
    MaxTurnRequests,
    Refusal,
    Cancelled,
    /// The turn could not go on; `reason` of the item says why, in words.
    Failed,
}

impl Stop {
    /// What it means for a scheduled run; `reason`: why the turn ended, where the model did not
    /// simply stop.
    pub fn of_run(self, reason: Option<&str>) -> RunEnd {
        match self {
            Self::Cancelled => RunEnd::Cancelled,
            Self::EndTurn if reason.is_none() => RunEnd::Whole,
            _ => RunEnd::Cut,
        }
    }
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallStatus {
    Ok,
    /// It ran and failed, or could not run; the text says so to the model.
    Failed,
    /// Not run: refused by the person, the rules or the mode, or nobody answered.
    Refused,
    /// Ended by Stop.
    Cancelled,
    /// It was running when the computer or the daemon stopped; whether it finished is not known.
    Unknown,
}

/// What let a call run, as words a person reads ("plain read", "you allowed cargo test on 12 Nov").
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allowed {
    /// `read`, `mode`, `rule`, `session`, `once`, `interact`.
    pub source: String,
    pub text: String,
    /// `read`, `roots`, `open`, or empty where nothing is executed.
    #[serde(default)]
    pub r#box: String,
}

/// How an ask ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Settled {
    Allowed,
    Refused,
    /// Nobody answered in time: counts as a no to that one call.
    Expired,
    Cancelled,
    /// What was judged is not what would run any more; it is asked anew if still wanted.
    Gone,
}

/// For how long a yes counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    Once,
    Session,
    Always,
}

/// A question of the agent itself: no permission, but something it wants to know (Q13).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// One to three words that name the matter; may be empty.
    pub header: String,
    pub text: String,
    pub options: Vec<Choice>,
    /// Whether several may be chosen.
    pub multiple: bool,
    /// Whether the person may answer in their own words.
    pub custom: bool,
}

/// One choice of a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    pub id: String,
    pub label: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// A question to the person, as it is stored and said over the link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AskBody {
    pub ask: AskId,
    pub call: CallId,
    /// What was judged: program bytes, folder, environment, box.
    pub digest: Digest,
    /// `execute`, `write`, `read`, `question`, `plan`.
    pub kind: String,
    /// The exact bytes that would run, the path, or the text of a question.
    pub command: String,
    pub cwd: String,
    /// Why it asks, in one sentence.
    pub reason: String,
    /// The part of `command` that made it ask, verbatim, when there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segment: Option<String>,
    /// `read`, `roots`, `open`.
    pub r#box: String,
    /// What "always" would cover, in words, and the widest command it would let through.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub covers: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub widest: Option<String>,
    /// The yeses that would count, narrowest first.
    pub scopes: Vec<Scope>,
    /// Resolved programs and set variables, for the person who wants to know all.
    #[serde(default)]
    pub programs: Vec<String>,
    #[serde(default)]
    pub variables: Vec<String>,
    /// Unified diff of a write, bounded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// Milliseconds it waits, counted from when the instance acknowledged it; none: no deadline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
    /// Of kind `question`: what is asked, with its choices.
    #[serde(default, flatten, skip_serializing_if = "Option::is_none")]
    pub question: Option<Question>,
}

/// Tokens of one model request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokens {
    pub input: u64,
    pub cached_input: u64,
    pub output: u64,
}

/// What a call saw of a file: a later look may be answered by it (context.md §3), and a change of
/// the file be told from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Saw {
    /// Resolved.
    pub path: String,
    /// As the call gave it.
    pub given: String,
    pub digest: Digest,
    /// First and last of the lines that the result holds whole; none: it holds none of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<(usize, usize)>,
}

/// A part of the conversation that a summary stands for (context.md §7).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compacted {
    /// What the model is sent in its place.
    pub text: String,
    /// The last item that is covered. Of a turn that goes on its prompt is kept all the same.
    pub upto: Seq,
    /// Of the request that made the summary.
    pub tokens: Tokens,
}

/// What an item says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Body {
    /// A prompt opens a turn.
    Prompt {
        key: String,
        source: Source,
        parts: Vec<Part>,
        /// A note for the model about what changed since the last prompt (context.md §10).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
        /// `{ schedule, run }` of a scheduled run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run: Option<Value>,
    },
    /// A model request begins; the items up to its `Sampled` are its answer.
    Step {
        model: String,
        /// What the model is told before this request and keeps hearing after it (loop.json
        /// `steps`, `nudges`).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// Streamed text of the assistant.
    Message {
        text: String,
    },
    /// Streamed reasoning.
    Thought {
        text: String,
    },
    /// A tool call as the model made it.
    Call {
        call: CallId,
        /// The id the model's server gave, sent back with the result.
        model_call: String,
        tool: String,
        /// The arguments, verbatim, also when they are not JSON.
        args: String,
        title: String,
        /// `shell`, `edit`, `read`, `search`, `web`, `task`, `plan`, `hidden`, `tool`.
        block: String,
        #[serde(default)]
        locations: Vec<String>,
    },
    /// The model's answer is complete.
    Sampled {
        tokens: Tokens,
        /// `stop`, `tool_calls`, `length`, `content_filter`.
        finish: String,
        ms: u64,
    },
    Ask(Box<AskBody>),
    /// An ask's only end. Stored in one transaction with the rule it made and its audit line.
    Answered {
        ask: AskId,
        how: Settled,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        scope: Option<Scope>,
        /// Who and where, in words: `you, on this computer`, `ana, on the page`.
        by: String,
        /// The person's words for the agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
        /// Of a question of the agent: the ids of what was chosen.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        selected: Vec<String>,
    },
    /// Intent before act: committed and flushed before anything runs.
    Started {
        call: CallId,
        digest: Digest,
        allowed: Allowed,
    },
    /// Output of a running command, bounded; the rest is in the spill file.
    Output {
        call: CallId,
        text: String,
    },
    /// A call's only end.
    Result {
        call: CallId,
        status: CallStatus,
        /// Exactly what the model reads.
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        diff: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit: Option<i32>,
        /// Bytes of output in all; the whole is in `spill` when it is longer than what is here.
        #[serde(default)]
        bytes: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        spill: Option<String>,
        /// What it saw of a file.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        saw: Option<Saw>,
        ms: u64,
    },
    /// The plan as it now is (plan.json of the spec).
    Plan {
        plan: Value,
    },
    Mode {
        mode: String,
        by: String,
    },
    Model {
        model: String,
    },
    Level {
        level: String,
    },
    Title {
        title: String,
    },
    /// Something the person should know, in words.
    Notice {
        text: String,
        /// The conversation was shortened here.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        compacted: Option<Compacted>,
    },
    /// The person took the session back to before a prompt: what stands from `to` up to here stays
    /// in the journal and is not sent to the model any more (spec/acp.md, J4).
    Rewound {
        to: Seq,
        by: String,
    },
    /// A turn's only end.
    TurnEnd {
        stop: Stop,
        /// In words, where the stop reason alone does not say it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        tokens: Tokens,
        /// `{ schedule, run, status, reply }` of a scheduled run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run: Option<Value>,
    },
}
