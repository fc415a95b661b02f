//! Reads the events of a chat completion stream. Pure.
//!
//! What servers do besides the format: calls without an index, or all with index 0; arguments in
//! pieces, or whole, or as an object; reasoning under three names; usage in a chunk of its own,
//! or with the last; no `[DONE]`; errors as events; one JSON object instead of a stream.

use serde_json::Value;

use crate::model::sse::Piece;
use crate::model::{Answer, Chunk, Hint, ModelError, ToolCall};
use crate::store::item::Tokens;

/// Calls in one answer; more is an error.
const CALLS: usize = 64;
/// Bytes of arguments of all calls of one answer; more is an error.
const ARGS: usize = 8 * 1024 * 1024;
/// Bytes of an answer that comes as one object.
const WHOLE: usize = 16 * 1024 * 1024;

/// What was read so far.
#[derive(Debug)]
pub struct Reader {
    calls: Vec<Building>,
    finish: Option<String>,
    tokens: Tokens,
    args: usize,
    /// The answer comes as one JSON object: its bytes.
    object: Option<Vec<u8>>,
    anything: bool,
}

#[derive(Debug, Default)]
struct Building {
    index: Option<u64>,
    call: ToolCall,
}

impl Reader {
    pub fn new(one_object: bool) -> Self {
        Self {
            calls: Vec::new(),
            finish: None,
            tokens: Tokens::default(),
            args: 0,
            object: one_object.then(Vec::new),
            anything: false,
        }
    }

    /// Whether the answer comes as one object.
    pub fn whole(&self) -> bool {
        self.object.is_some()
    }

    /// Takes bytes of an answer that comes as one object.
    ///
    /// # Errors
    /// When it is too long.
    pub fn collect(&mut self, bytes: &[u8]) -> Result<(), ModelError> {
        let object = self.object.get_or_insert_default();
        if object.len() + bytes.len() > WHOLE {
            return Err(ModelError::Garbled("it is too long".into()));
        }
        object.extend_from_slice(bytes);
        Ok(())
    }

    /// Reads one piece of the stream.
    ///
    /// # Errors
    /// When the server reports one, or the piece is not understood.
    pub fn piece(&mut self, piece: Piece) -> Result<Vec<Chunk>, ModelError> {
        let data = match piece {
            Piece::Comment(text) => {
                let hint = serde_json::from_str(&text).ok().and_then(|v| hint(&v));
                return Ok(hint.map(Chunk::Hint).into_iter().collect());
            }
            Piece::Event(event) => {
                if event.name == "error" {
                    return Err(reported(event.data.as_bytes()));
                }
                event.data
            }
        };
        let data = data.trim();
        if data == "[DONE]" {
            return self.done().map(|done| vec![done]);
        }
        if data.is_empty() {
            return Ok(Vec::new());
        }
        let value: Value = serde_json::from_str(data)
            .map_err(|_| ModelError::Garbled("an event is not JSON".into()))?;
        self.value(&value, "delta")
    }

    fn value(&mut self, value: &Value, part: &str) -> Result<Vec<Chunk>, ModelError> {
        if let Some(error) = value.get("error").filter(|e| !e.is_null()) {
            return Err(reported(error.to_string().as_bytes()));
        }
        let mut chunks: Vec<Chunk> = hint(value).map(Chunk::Hint).into_iter().collect();
        if let Some(usage) = value.get("usage").filter(|u| u.is_object()) {
            self.usage(usage);
        }
        let Some(choice) = value.get("choices").and_then(|c| c.get(0)) else {
            return Ok(chunks);
        };
        if let Some(delta) = choice.get(part) {
            for name in ["reasoning_content", "reasoning", "thinking"] {
                if let Some(text) = delta.get(name).and_then(Value::as_str) {
                    if !text.is_empty() {
                        chunks.push(Chunk::Thought(text.to_owned()));
                    }
                    break;
                }
            }
            match delta.get("content") {
                Some(Value::String(text)) if !text.is_empty() => {
                    chunks.push(Chunk::Text(text.clone()));
                }
                Some(Value::Array(parts)) => {
                    let text: String = parts
                        .iter()
                        .filter_map(|p| p.get("text").and_then(Value::as_str))
                        .collect();
                    if !text.is_empty() {
                        chunks.push(Chunk::Text(text));
                    }
                }
                _ => {}
            }
            for call in delta
                .get("tool_calls")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
            {
                self.call(call)?;
                chunks.push(Chunk::Calling);
            }
        }
        self.anything |= !chunks.is_empty();
        if let Some(finish) = choice.get("finish_reason").and_then(Value::as_str) {
            self.finish = Some(match finish {
                "function_call" => "tool_calls".to_owned(),
                "max_tokens" => "length".to_owned(),
                other => other.to_owned(),
            });
        }
        Ok(chunks)
    }

    /// Puts a piece of a call where it belongs: by index, and where indices are missing or all
    /// the same, by whether it brings an id and a name of its own.
    fn call(&mut self, piece: &Value) -> Result<(), ModelError> {
        let index = piece.get("index").and_then(Value::as_u64);
        let id = piece.get("id").and_then(Value::as_str).unwrap_or_default();
        let function = piece.get("function").unwrap_or(&Value::Null);
        let name = function
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let args = match function.get("arguments") {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Null) | None => String::new(),
            Some(object) => object.to_string(),
        };
        let fits = |b: &Building| {
            let same_index = index.is_none() || b.index == index;
            let other_id = !id.is_empty() && !b.call.id.is_empty() && b.call.id != id;
            same_index && !other_id
        };
        let begins = !name.is_empty();
        let at = match index {
            Some(_) => self.calls.iter().rposition(|b| b.index == index && fits(b)),
            // No index: a name without a known id begins a call, anything else goes on with the
            // call of that id, or the last.
            None if !id.is_empty() => self.calls.iter().rposition(|b| b.call.id == id),
            None if begins => None,
            None => self.calls.len().checked_sub(1),
        };
        let at = match at {
            Some(at) => at,
            None => {
                if self.calls.len() >= CALLS {
                    return Err(ModelError::Garbled(format!("more than {CALLS} calls")));
                }
                self.calls.push(Building {
                    index,
                    ..Building::default()
                });
                self.calls.len() - 1
            }
        };
        self.args += args.len();
        if self.args > ARGS {
            return Err(ModelError::Garbled("the calls are too long".into()));
        }
        if let Some(building) = self.calls.get_mut(at) {
            if building.call.id.is_empty() {
                id.clone_into(&mut building.call.id);
            }
            if building.call.name.is_empty() {
                name.clone_into(&mut building.call.name);
            }
            building.call.args.push_str(&args);
        }
        Ok(())
    }

    fn usage(&mut self, usage: &Value) {
        let number = |v: Option<&Value>| v.and_then(Value::as_u64).unwrap_or(0);
        self.tokens = Tokens {
            input: number(usage.get("prompt_tokens")),
            cached_input: number(
                usage
                    .get("prompt_tokens_details")
                    .and_then(|d| d.get("cached_tokens")),
            ),
            output: number(usage.get("completion_tokens")),
        };
    }

    /// The stream ended without `[DONE]`: complete when it said how the answer finished.
    ///
    /// # Errors
    /// When it was cut.
    pub fn end(&mut self) -> Result<Vec<Chunk>, ModelError> {
        if let Some(object) = self.object.take() {
            let value: Value = serde_json::from_slice(&object)
                .map_err(|_| ModelError::Garbled("it is not JSON".into()))?;
            let mut chunks = self.value(&value, "message")?;
            chunks.push(self.done()?);
            return Ok(chunks);
        }
        if self.finish.is_none() {
            return Err(ModelError::Cut);
        }
        self.done().map(|done| vec![done])
    }

    fn done(&mut self) -> Result<Chunk, ModelError> {
        if self.finish.is_none() && !self.anything {
            return Err(ModelError::Cut);
        }
        let mut calls: Vec<ToolCall> = std::mem::take(&mut self.calls)
            .into_iter()
            .map(|b| b.call)
            .collect();
        let mut seen = std::collections::HashSet::new();
        for (n, call) in calls.iter_mut().enumerate() {
            // A result is paired with its call by this id, so each needs its own.
            if call.id.is_empty() || !seen.insert(call.id.clone()) {
                call.id = format!("call_{n}_{}", crate::ids::random_hex(4));
                seen.insert(call.id.clone());
            }
            if call.args.trim().is_empty() {
                "{}".clone_into(&mut call.args);
            }
        }
        let finish = self.finish.take().unwrap_or_else(|| "stop".to_owned());
        Ok(Chunk::Done(Answer {
            calls,
            finish,
            tokens: self.tokens,
        }))
    }
}

/// What a server says about loading and reading: our own `lembas` object, and llama.cpp's
/// `prompt_progress`.
fn hint(value: &Value) -> Option<Hint> {
    if let Some(own) = value.get("lembas") {
        let number = |name: &str| own.get(name).and_then(Value::as_u64);
        return match own.get("phase").and_then(Value::as_str)? {
            "queued" => Some(Hint::Queued {
                position: number("position"),
            }),
            "loading_model" => Some(Hint::Loading {
                percent: number("percent"),
            }),
            "reading_prompt" => Some(Hint::Reading {
                tokens: number("tokens"),
                total: number("total"),
            }),
            _ => None,
        };
    }
    let progress = value.get("prompt_progress")?;
    Some(Hint::Reading {
        tokens: progress.get("processed").and_then(Value::as_u64),
        total: progress.get("total").and_then(Value::as_u64),
    })
}

/// An error that came within an answer.
fn reported(body: &[u8]) -> ModelError {
    let text = error_text(body, 500);
    if too_long(body) {
        ModelError::TooLong(text)
    } else {
        ModelError::Reported(text)
    }
}

/// The code of an error's body; empty when it has none.
pub fn code(body: &[u8]) -> String {
    let value: Value = serde_json::from_slice(body).unwrap_or_default();
    let code = value.pointer("/error/code").and_then(Value::as_str);
    code.unwrap_or_default().to_owned()
}

/// Whether an error says that the conversation does not fit into the model, in the words that
/// servers have for it. There is no status for it.
pub fn too_long(body: &[u8]) -> bool {
    let text = String::from_utf8_lossy(body).to_lowercase();
    [
        "context_length_exceeded",
        "exceed_context_size",
        "context length",
        "context window",
        "context size",
        "maximum context",
        "than the context",
        "prompt is too long",
        "input is too long",
        "too many tokens",
        "string_above_max_length",
    ]
    .iter()
    .any(|words| text.contains(words))
}

/// The words of an error object in the shapes servers use.
fn words(error: &Value) -> String {
    match error {
        Value::String(text) => text.clone(),
        other => other
            .get("message")
            .or_else(|| other.get("text"))
            .or_else(|| other.get("detail"))
            .and_then(Value::as_str)
            .map_or_else(|| other.to_string(), ToOwned::to_owned),
    }
}

/// The words of an error's body: those of its JSON, else its first characters, on one line.
pub fn error_text(body: &[u8], longest: usize) -> String {
    let text = match serde_json::from_slice::<Value>(body) {
        Ok(value) => words(value.get("error").unwrap_or(&value)),
        Err(_) => String::from_utf8_lossy(body).into_owned(),
    };
    let line: String = text
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .chars()
        .filter(|c| !c.is_control())
        .take(longest)
        .collect();
    if line.is_empty() {
        "no words with it".to_owned()
    } else {
        line
    }
}

#[cfg(test)]
mod tests;
