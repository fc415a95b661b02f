//! What goes wrong: errors that travel on the wire, and errors of a call or of the link itself.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A JSON-RPC error object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{message} ({code})")]
pub struct RpcError {
    pub code: i64,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl RpcError {
    pub const PARSE: i64 = -32700;
    pub const INVALID_REQUEST: i64 = -32600;
    pub const METHOD_NOT_FOUND: i64 = -32601;
    pub const INVALID_PARAMS: i64 = -32602;
    pub const INTERNAL: i64 = -32603;
    /// Busy; `data.retry_after` may say for how many seconds (spec/acp.md F8).
    pub const BUSY: i64 = -32052;
    /// ACP: a thing that was named does not exist.
    pub const NOT_FOUND: i64 = -32002;
    /// ACP: the call was cancelled by its asker.
    pub const CANCELLED: i64 = -32800;

    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }

    /// The same error with `data`.
    #[must_use]
    pub fn with_data(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }

    pub fn parse() -> Self {
        Self::new(
            Self::PARSE,
            "this is not JSON: a frame is one JSON-RPC message",
        )
    }

    pub fn invalid_request(text: impl Into<String>) -> Self {
        Self::new(Self::INVALID_REQUEST, text)
    }

    pub fn method_not_found(method: &str) -> Self {
        let name: String = method.chars().take(100).collect();
        Self::new(
            Self::METHOD_NOT_FOUND,
            format!("there is no method {name}: the answer to initialize says what can be asked"),
        )
    }

    pub fn invalid_params(text: impl Into<String>) -> Self {
        Self::new(Self::INVALID_PARAMS, text)
    }

    pub fn internal(text: impl Into<String>) -> Self {
        Self::new(Self::INTERNAL, text)
    }

    /// Too many calls are open at once.
    pub fn busy(text: impl Into<String>) -> Self {
        let text = text.into();
        let data = serde_json::json!({ "reason": "full", "text": text });
        Self::new(Self::BUSY, text).with_data(data)
    }

    pub fn not_found(text: impl Into<String>) -> Self {
        Self::new(Self::NOT_FOUND, text)
    }

    pub fn cancelled() -> Self {
        Self::new(Self::CANCELLED, "cancelled")
    }
}

/// Why a request of ours has no result.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CallError {
    /// The other side answered with an error.
    #[error(transparent)]
    Rpc(#[from] RpcError),
    /// The link closed first. When `sent` is false no byte of the request was handed to the
    /// socket, so it may be repeated; when it is true its fate is unknown.
    #[error("the link closed before the answer came: {reason}")]
    Closed { sent: bool, reason: CloseReason },
    /// No answer within the time given; the other side was told to cancel.
    #[error("no answer came in time")]
    Timeout,
    /// Longer than the other side takes; it was not sent.
    #[error("a request of {bytes} bytes is too long: {limit} is the most the other side takes")]
    TooLong { bytes: usize, limit: usize },
    /// The answer was neither a result nor an error.
    #[error("the answer was not a valid one")]
    BadAnswer,
}

impl CallError {
    /// The error object, when the other side answered with one.
    pub fn rpc(&self) -> Option<&RpcError> {
        match self {
            Self::Rpc(error) => Some(error),
            _ => None,
        }
    }
}

/// The link is closed; nothing more can be sent on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the link is closed")]
pub struct Closed;

/// How a link ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CloseReason {
    /// We closed it.
    #[error("closed from here ({code} {reason})")]
    Local { code: u16, reason: String },
    /// The other side closed it. No code: it sent a close frame without one.
    #[error("closed by the other side ({}{reason})", code.map(|c| format!("{c} ")).unwrap_or_default())]
    Remote { code: Option<u16>, reason: String },
    /// The stream ended without a close frame.
    #[error("the connection ended")]
    Ended,
    /// Nothing was heard for too long.
    #[error("nothing was heard for too long")]
    Dead,
    /// A write made no progress for too long.
    #[error("the other side took no byte for too long")]
    Stuck,
    /// Reading or writing failed.
    #[error("the connection broke: {0}")]
    Broken(String),
}

impl CloseReason {
    /// The code of the close frame, from whichever side it came.
    pub fn code(&self) -> Option<u16> {
        match self {
            Self::Local { code, .. } => Some(*code),
            Self::Remote { code, .. } => *code,
            _ => None,
        }
    }
}
