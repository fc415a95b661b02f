//! Talking to a model: neutral requests and answers, and the clients of what servers speak.
//!
//! The keys of models stay at the instance: a client here has the instance's `/v1` and the
//! device's own token, both handed in ([`Endpoint`]) because the link that owns them lies above.
//! Not here: what a request says (`context`), what is done with an answer (`agent`).

pub mod openai;
pub mod practice;
pub mod retry;
pub mod sse;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::store::item::Tokens;

/// Where a model is reached, asked anew for every request: tokens are replaced while we run.
pub trait Endpoint: Send + Sync {
    /// The HTTP client that trusts what the link trusts.
    fn client(&self) -> reqwest::Client;
    /// The address that `/chat/completions` is put behind, such as `https://host/v1`.
    fn base(&self) -> String;
    /// What goes behind `Bearer`; none: no such header.
    fn bearer(&self) -> Option<Bearer>;
}

/// A credential. Shown nowhere.
#[derive(Clone)]
pub struct Bearer(pub String);

impl fmt::Debug for Bearer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bearer(…)")
    }
}

/// A conversation as a model is sent it.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    pub model: String,
    pub system: String,
    pub messages: Vec<Message>,
    pub tools: Arc<Vec<ToolDef>>,
    pub level: Level,
}

/// How hard the model shall think (models/schema.json, levels).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Level {
    /// Sends nothing.
    #[default]
    Default,
    /// The thinking switch is off; no effort is sent.
    Off,
    Effort(String),
}

impl Level {
    /// A level by its word over the link.
    pub fn named(word: Option<&str>) -> Self {
        match word {
            None | Some("" | "default") => Self::Default,
            Some("off") => Self::Off,
            Some(effort) => Self::Effort(effort.to_owned()),
        }
    }
}

/// A tool as a model is told of it: exactly the spec's description and schema, filled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolDef {
    pub name: String,
    pub description: String,
    /// JSON Schema.
    pub parameters: Value,
}

/// One message after the system prompt.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    User(Vec<Content>),
    Assistant {
        text: String,
        /// Sent back during its turn only (context.md §8).
        reasoning: Option<String>,
        calls: Vec<ToolCall>,
    },
    /// The result of a call.
    Tool {
        call: String,
        text: String,
    },
}

/// A part of the person's message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    Text(String),
    /// Base64.
    Image {
        mime: String,
        data: String,
    },
}

/// A call as the model made it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolCall {
    pub id: String,
    pub name: String,
    /// Verbatim, also when it is not JSON.
    pub args: String,
}

/// What comes while a model answers.
#[derive(Clone, Debug, PartialEq)]
pub enum Chunk {
    /// The server says what it does before or between its words.
    Hint(Hint),
    Thought(String),
    Text(String),
    /// The model writes a call; the whole call comes with [`Answer`].
    Calling,
    /// The answer is complete. Nothing comes after it.
    Done(Answer),
}

/// What a server said it is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hint {
    Queued {
        position: Option<u64>,
    },
    Loading {
        percent: Option<u64>,
    },
    Reading {
        tokens: Option<u64>,
        total: Option<u64>,
    },
}

/// A complete answer, besides its text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    pub calls: Vec<ToolCall>,
    /// `stop`, `tool_calls`, `length`, `content_filter`.
    pub finish: String,
    pub tokens: Tokens,
}

/// Why there is no answer. The text is for the person.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    #[error("the model's server cannot be reached: {0}")]
    Unreachable(String),
    #[error("the model's server answered {status}: {text}")]
    Status {
        status: u16,
        text: String,
        after: Option<Duration>,
    },
    #[error(
        "a web page came instead of the model's answer (HTTP {status}): something between this computer and the server answers for it"
    )]
    Page { status: u16 },
    #[error("the model's server reported an error: {0}")]
    Reported(String),
    #[error("the conversation is too long for it: {0}")]
    TooLong(String),
    #[error("the answer was cut off")]
    Cut,
    #[error("nothing came from the model's server for {0} s")]
    Idle(u64),
    #[error("the model's answer is not what this computer understands: {0}")]
    Garbled(String),
}

impl ModelError {
    /// Whether the same request may go through a little later.
    pub fn passes(&self) -> bool {
        match self {
            Self::Unreachable(_) | Self::Page { .. } | Self::Cut | Self::Idle(_) => true,
            Self::Status { status, .. } => {
                matches!(status, 408 | 409 | 425 | 429) || *status >= 500
            }
            Self::Reported(_) | Self::Garbled(_) | Self::TooLong(_) => false,
        }
    }

    /// When the server asked to be left alone, for how long.
    pub fn after(&self) -> Option<Duration> {
        match self {
            Self::Status { after, .. } => *after,
            _ => None,
        }
    }
}
