//! The errors that a client of ours hears, by code (spec/acp.md, Errors).
//!
//! Every refusal carries `data { reason, text }`: the reason is for programs, the text says what
//! happened, to what, and the next step. Not here: the envelope (`rpc`).

use serde_json::{Map, Value, json};

use crate::ids::SessionId;
use crate::rpc::RpcError;
use crate::session::SessionError;
use crate::text::escape;

/// Characters of a refusal. What is quoted in it may be the asker's own, and is not echoed at
/// length.
const MOST: usize = 1000;

/// An ask or a turn that is settled already, with how, by whom and when.
pub const GONE: i64 = -32004;
/// Scheduled work: `off`, `plan`, `root`, `model`.
pub const SCHEDULED: i64 = -32050;
/// A check of a watch: see `remote::monitor`.
pub const MONITOR: i64 = -32051;
/// Not now: `data.retry_after` says in how many seconds to try again.
pub const BUSY: i64 = -32052;
/// A limit of this computer.
pub const REFUSED: i64 = -32053;

/// A refusal before it is an error object: what `remote` says and a table test reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub code: i64,
    pub reason: &'static str,
    pub text: String,
    /// The folder or file that it is about.
    pub path: Option<String>,
    /// The line to type on this computer that lets it through.
    pub fix: Option<String>,
}

impl Refusal {
    pub fn new(code: i64, reason: &'static str, text: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            text: text.into(),
            path: None,
            fix: None,
        }
    }

    #[must_use]
    pub fn about(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into());
        self
    }

    #[must_use]
    pub fn fixed_by(mut self, line: impl Into<String>) -> Self {
        self.fix = Some(line.into());
        self
    }
}

impl From<Refusal> for RpcError {
    fn from(refusal: Refusal) -> Self {
        let mut data = Map::new();
        let text = escape::bounded(&refusal.text, MOST);
        data.insert("reason".to_owned(), refusal.reason.into());
        data.insert("text".to_owned(), text.clone().into());
        if let Some(path) = refusal.path {
            data.insert("path".to_owned(), path.into());
        }
        if let Some(fix) = refusal.fix {
            data.insert("try".to_owned(), fix.into());
        }
        Self::new(refusal.code, text).with_data(Value::Object(data))
    }
}

/// A parameter that cannot be read or is not one of those that are possible.
pub(crate) fn bad(reason: &'static str, text: impl Into<String>) -> RpcError {
    Refusal::new(RpcError::INVALID_PARAMS, reason, text).into()
}

/// A session that is not there, or not the asker's: the two are never told apart.
pub(crate) fn missing(id: &SessionId) -> RpcError {
    let shown = escape::bounded(id.as_str(), 100);
    let text = format!("there is no session {shown}: session/list names those there are");
    RpcError::not_found(text.clone()).with_data(json!({ "sessionId": shown, "text": text }))
}

/// Not now: `turn` when the session itself is at work, `full` when the computer is.
pub(crate) fn busy(reason: &str, text: &str, retry_after: u64) -> RpcError {
    RpcError::new(BUSY, text)
        .with_data(json!({ "reason": reason, "text": text, "retry_after": retry_after }))
}

/// The text of an error and of what caused it, without saying anything twice.
pub(crate) fn whole(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let more = cause.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        source = cause.source();
    }
    text
}

/// What came of asking for a page of a list: a place that is none of ours is a wrong parameter.
pub(crate) fn page(error: SessionError) -> RpcError {
    match error {
        SessionError::Refused(text) => bad("params", text),
        other => session(&other),
    }
}

/// What a session could not do, as the wire says it.
pub(crate) fn session(error: &SessionError) -> RpcError {
    let text = whole(error);
    match error {
        SessionError::Missing(id) => missing(id),
        SessionError::Busy => busy(
            "turn",
            "a turn is running in this session: wait for its end, or stop it first",
            1,
        ),
        SessionError::TooMany(_) => busy("full", &text, 60),
        SessionError::Key(_) => bad("key", text),
        SessionError::Refused(_) => Refusal::new(REFUSED, "refused", text).into(),
        SessionError::Store(_) => {
            RpcError::internal(text.clone()).with_data(json!({ "reason": "store", "text": text }))
        }
    }
}
