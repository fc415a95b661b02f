//! JSON-RPC envelopes: reading one frame into a message, writing a message as one frame.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::RpcError;

/// The id of a request: an integer, also a negative one, or a string.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Id {
    Number(i64),
    Text(String),
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(n) => write!(f, "{n}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

impl Id {
    fn read(value: &Value) -> Option<Self> {
        match value {
            Value::Number(n) => n.as_i64().map(Self::Number),
            Value::String(text) => Some(Self::Text(text.clone())),
            _ => None,
        }
    }
}

/// What a frame says.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Message {
    Request {
        id: Id,
        method: String,
        params: Value,
    },
    Notice {
        method: String,
        params: Value,
    },
    /// `None`: neither a result nor an error that can be read.
    Answer {
        id: Id,
        outcome: Option<Result<Value, RpcError>>,
    },
    /// Not a message; what to answer, and to whom where that can be read.
    Bad {
        id: Option<Id>,
        error: RpcError,
    },
    /// An answer to nobody: an error with a null id, or one that cannot be read.
    Stray,
}

pub(super) fn read(frame: &str) -> Message {
    let bad = |id, text: &str| Message::Bad {
        id,
        error: RpcError::invalid_request(text),
    };
    let mut object = match serde_json::from_str(frame) {
        Ok(Value::Object(object)) => object,
        Ok(Value::Array(_)) => {
            return bad(
                None,
                "batches are not taken: send each message as a frame of its own",
            );
        }
        Ok(_) => return bad(None, "a message is an object with jsonrpc and method"),
        Err(_) => {
            return Message::Bad {
                id: None,
                error: RpcError::parse(),
            };
        }
    };
    let id = object.get("id").map(Id::read);
    let known = id.clone().flatten();
    let Some(method) = object.get("method") else {
        return match (id, known) {
            (_, Some(id)) => Message::Answer {
                id,
                outcome: outcome(&mut object),
            },
            (Some(None), None) => Message::Stray,
            (_, None) => bad(
                None,
                "a message has a method, or an id with a result or error",
            ),
        };
    };
    let Value::String(method) = method else {
        return bad(known, "a method is text: the name of what is asked");
    };
    let method = method.clone();
    if object.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return bad(known, "a message says \"jsonrpc\": \"2.0\"");
    }
    let params = object.remove("params").unwrap_or(Value::Null);
    if !matches!(params, Value::Null | Value::Object(_) | Value::Array(_)) {
        return bad(known, "params are an object or an array");
    }
    match id {
        None => Message::Notice { method, params },
        Some(Some(id)) => Message::Request { id, method, params },
        Some(None) => bad(None, "an id is a whole number or text"),
    }
}

fn outcome(object: &mut serde_json::Map<String, Value>) -> Option<Result<Value, RpcError>> {
    match (object.remove("result"), object.remove("error")) {
        (None, Some(error)) => serde_json::from_value(error).ok().map(Err),
        // Some peers send `"error": null` beside a result.
        (Some(result), None | Some(Value::Null)) => Some(Ok(result)),
        _ => None,
    }
}

/// The id in the beginning of a frame that is too long to be read: best effort, and only where it
/// stands outside of every nested value.
pub(super) fn id_in(head: &str) -> Option<Id> {
    let bytes = head.as_bytes();
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.checked_sub(1)?,
            b'"' => {
                let end = string_end(bytes, at)?;
                let word = head.get(at..end)?;
                let rest = head.get(end..)?.trim_start();
                if depth == 1
                    && word == "\"id\""
                    && let Some(value) = rest.strip_prefix(':')
                {
                    let mut values = serde_json::Deserializer::from_str(value).into_iter::<Value>();
                    let id = Id::read(&values.next()?.ok()?)?;
                    // A number that runs to the cut may go on behind it.
                    let whole = values.byte_offset() < value.len();
                    return whole.then_some(id);
                }
                at = end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// The place after the string that opens at `start`.
fn string_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        match bytes.get(at)? {
            b'\\' => at += 2,
            b'"' => return Some(at + 1),
            _ => at += 1,
        }
    }
}

#[derive(Serialize)]
struct Asking<'a> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<i64>,
    method: &'a str,
    #[serde(skip_serializing_if = "Value::is_null")]
    params: &'a Value,
}

#[derive(Serialize)]
struct Answer<'a> {
    jsonrpc: &'static str,
    id: Option<&'a Id>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a RpcError>,
}

/// A request, or a notification when `id` is none.
pub(super) fn asking(id: Option<i64>, method: &str, params: &Value) -> String {
    text(&Asking {
        jsonrpc: "2.0",
        id,
        method,
        params,
    })
}

/// An answer; a null id when the request's could not be read.
pub(super) fn answer(id: Option<&Id>, outcome: Result<&Value, &RpcError>) -> String {
    text(&Answer {
        jsonrpc: "2.0",
        id,
        result: outcome.ok(),
        error: outcome.err(),
    })
}

fn text(message: &impl Serialize) -> String {
    // Strings, integers and JSON values with string keys: there is nothing in them that fails.
    serde_json::to_string(message).unwrap_or_default()
}

#[cfg(test)]
mod tests;
