//! Trying a model before it is saved: a few small requests, all bounded, and a text of its own for
//! each way in which they can fail. Its server may be anything that answers under that address.

use std::time::Duration;

use axum::http::StatusCode;
use reqwest::Client;
use serde_json::{Value, json};

use super::{ModelHttp, NewModel};
use crate::clock::{instant, timeout};
use crate::hub::error::ApiError;
use crate::hub::front::own_authority;

/// A whole test, all its requests together.
const TEST: Duration = Duration::from_secs(10);
/// Of a server's answer to a test at most so much is read.
const ANSWER: usize = 256 * 1024;
/// The end of a stream of events.
const DONE: &[u8] = b"data: [DONE]";

/// A model that answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tested {
    /// The id it is served under here.
    pub id: String,
    pub ms: u64,
    pub tools: bool,
    pub vision: Option<bool>,
    pub context: Option<u64>,
    /// All of it in one line.
    pub text: String,
}

/// How a test can fail: six ways, six texts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TestError {
    #[error("the address {0} is not one of a model server")]
    Address(String),
    #[error("{host} cannot be reached: {why}")]
    Unreachable { host: String, why: String },
    #[error("{host} did not answer within {seconds} s")]
    Silent { host: String, seconds: u64 },
    #[error("{host} refused the key")]
    Key { host: String },
    #[error("{host} does not know a model called {model}")]
    Name {
        host: String,
        model: String,
        has: Vec<String>,
    },
    #[error("{host} answers, but not as a model server: {why}")]
    NotAServer { host: String, why: String },
}

impl TestError {
    fn code(&self) -> &'static str {
        match self {
            Self::Address(_) => "address",
            Self::Unreachable { .. } => "unreachable",
            Self::Silent { .. } => "silent",
            Self::Key { .. } => "key_refused",
            Self::Name { .. } => "name_unknown",
            Self::NotAServer { .. } => "not_a_server",
        }
    }

    /// The next step.
    pub fn step(&self) -> String {
        match self {
            Self::Address(_) => {
                "Give the part before /chat/completions, as in http://127.0.0.1:11434/v1".to_owned()
            }
            Self::Unreachable { .. } => {
                "Is it running, and is the port right? From inside a container another name is needed than 127.0.0.1.".to_owned()
            }
            Self::Silent { .. } => {
                "It may be loading the model: try again in a minute, or look at its log.".to_owned()
            }
            Self::Key { .. } => "Copy the key again; some servers want none at all.".to_owned(),
            Self::Name { has, .. } if has.is_empty() => {
                "Its list of models is empty or hidden: look up the exact name there.".to_owned()
            }
            Self::Name { has, .. } => format!("It has: {}", has.join(", ")),
            Self::NotAServer { .. } => {
                "The address usually ends in /v1. A web page or a proxy may be answering instead.".to_owned()
            }
        }
    }
}

/// Tries a model: its list, then one tiny request with a tool.
pub(in crate::hub) async fn test(http: &ModelHttp, new: &NewModel) -> Result<Tested, TestError> {
    let url = base(&new.url)?;
    let http = http.to(&url);
    let host = own_authority(&url).unwrap_or("it").to_owned();
    let silent = TestError::Silent {
        host: host.clone(),
        seconds: TEST.as_secs(),
    };
    timeout(TEST, attempt(http, new, &url, &host))
        .await
        .unwrap_or(Err(silent))
}

pub(super) fn base(url: &str) -> Result<String, TestError> {
    let url = url.trim().trim_end_matches('/');
    let url = url.strip_suffix("/chat/completions").unwrap_or(url);
    match reqwest::Url::parse(url) {
        Ok(parsed) if matches!(parsed.scheme(), "http" | "https") && parsed.has_host() => {
            Ok(url.to_owned())
        }
        _ => Err(TestError::Address(url.to_owned())),
    }
}

async fn attempt(
    http: &Client,
    new: &NewModel,
    url: &str,
    host: &str,
) -> Result<Tested, TestError> {
    let started = instant();
    let body = json!({
        "model": new.model, "max_tokens": 64, "stream": false,
        "messages": [{ "role": "user", "content": "Call the tool `ready`." }],
        "tools": [{ "type": "function", "function": {
            "name": "ready", "description": "Says that you are ready.",
            "parameters": { "type": "object", "properties": {} } } }],
    });
    let request = http.post(format!("{url}/chat/completions")).json(&body);
    let (status, answer) = send(with_key(request, new), host).await?;
    let has = names(http, new, url).await;
    match status.as_u16() {
        200..=299 => {}
        401 | 403 => {
            return Err(TestError::Key {
                host: host.to_owned(),
            });
        }
        400 | 404 | 422
            if !has.iter().any(|n| n == &new.model) && (!has.is_empty() || says_model(&answer)) =>
        {
            return Err(TestError::Name {
                host: host.to_owned(),
                model: new.model.clone(),
                has: has.into_iter().take(20).collect(),
            });
        }
        code => {
            return Err(TestError::NotAServer {
                host: host.to_owned(),
                why: format!("it said {code} {}", short(&answer))
                    .trim()
                    .to_owned(),
            });
        }
    }
    let Some(message) = message(&answer) else {
        return Err(TestError::NotAServer {
            host: host.to_owned(),
            why: format!("it said {}", short(&answer)),
        });
    };
    let ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let tools = message
        .get("tool_calls")
        .and_then(Value::as_array)
        .is_some_and(|c| !c.is_empty());
    let (vision, context) = facts(http, new, url).await;
    let context = new.context.or(context);
    let mut words = vec![format!("answers in {:.1} s", ms as f64 / 1000.0)];
    words.push(
        if tools {
            "calls tools"
        } else {
            "called no tool when asked to"
        }
        .to_owned(),
    );
    match vision {
        Some(true) => words.push("sees images".to_owned()),
        Some(false) => words.push("sees no images".to_owned()),
        None => {}
    }
    Ok(Tested {
        id: new
            .name
            .clone()
            .filter(|n| !n.trim().is_empty())
            .unwrap_or_else(|| new.model.clone()),
        ms,
        tools,
        vision,
        context,
        text: words.join(", "),
    })
}

/// The message of an answer: of one object, or put together from a stream of events, which some
/// servers send whatever they are asked for.
fn message(answer: &[u8]) -> Option<Value> {
    if let Ok(whole) = serde_json::from_slice::<Value>(answer) {
        return whole.pointer("/choices/0/message").cloned();
    }
    let text = String::from_utf8_lossy(answer);
    let deltas: Vec<Value> = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data:")?.trim()).ok())
        .filter_map(|event| event.pointer("/choices/0/delta").cloned())
        .collect();
    let calls: Vec<&Value> = deltas
        .iter()
        .filter_map(|delta| delta.get("tool_calls")?.as_array())
        .flatten()
        .collect();
    (!deltas.is_empty()).then(|| json!({ "tool_calls": calls }))
}

fn with_key(request: reqwest::RequestBuilder, new: &NewModel) -> reqwest::RequestBuilder {
    match new.key.as_deref().map(str::trim).filter(|k| !k.is_empty()) {
        Some(key) => request.bearer_auth(key),
        None => request,
    }
}

async fn send(
    request: reqwest::RequestBuilder,
    host: &str,
) -> Result<(StatusCode, Vec<u8>), TestError> {
    let unreachable = |e: reqwest::Error| TestError::Unreachable {
        host: host.to_owned(),
        why: cause(&e),
    };
    let mut response = request.send().await.map_err(unreachable)?;
    let status = response.status();
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
        let room = ANSWER.saturating_sub(body.len());
        body.extend_from_slice(chunk.get(..room.min(chunk.len())).unwrap_or_default());
        // A server that streams whatever it was asked may keep its stream open behind the end.
        if body.len() >= ANSWER || body.windows(DONE.len()).any(|w| w == DONE) {
            break;
        }
    }
    Ok((status, body))
}

/// The deepest cause of a failed request, which is the one that helps.
pub(in crate::hub) fn cause(error: &reqwest::Error) -> String {
    let mut at: &dyn std::error::Error = error;
    while let Some(source) = at.source() {
        at = source;
    }
    if error.is_timeout() && error.is_connect() {
        return "nothing answered there".to_owned();
    }
    let text = at.to_string();
    match text.split_once(" (os error") {
        Some((words, _)) => words.to_lowercase(),
        None => text,
    }
}

fn says_model(answer: &[u8]) -> bool {
    String::from_utf8_lossy(answer)
        .to_lowercase()
        .contains("model")
}

fn short(answer: &[u8]) -> String {
    let text = String::from_utf8_lossy(answer);
    let one: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let said = serde_json::from_slice::<Value>(answer).ok().and_then(|v| {
        let message = v.pointer("/error/message").or_else(|| v.get("error"));
        message.and_then(Value::as_str).map(str::to_owned)
    });
    said.unwrap_or(one).chars().take(120).collect()
}

/// The names a server lists, when it does.
async fn names(http: &Client, new: &NewModel, url: &str) -> Vec<String> {
    let request = with_key(http.get(format!("{url}/models")), new);
    let Ok((_, body)) = send(request, "").await else {
        return Vec::new();
    };
    let list: Value = serde_json::from_slice(&body).unwrap_or_default();
    list.get("data")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|m| m.get("id").and_then(Value::as_str))
        .map(str::to_owned)
        .collect()
}

/// What servers say about a model besides its name: whether it sees, how much it reads.
async fn facts(http: &Client, new: &NewModel, url: &str) -> (Option<bool>, Option<u64>) {
    let root = url.strip_suffix("/v1").unwrap_or(url);
    let ask = http
        .post(format!("{root}/api/show"))
        .json(&json!({ "model": new.model }));
    let Ok((status, body)) = send(ask, "").await else {
        return (None, None);
    };
    if !status.is_success() {
        return (None, None);
    }
    let said: Value = serde_json::from_slice(&body).unwrap_or_default();
    let vision = said
        .get("capabilities")
        .and_then(Value::as_array)
        .map(|c| c.iter().any(|c| c == "vision"));
    let context = said
        .get("model_info")
        .and_then(Value::as_object)
        .and_then(|info| info.iter().find(|(k, _)| k.ends_with(".context_length")))
        .and_then(|(_, v)| v.as_u64());
    (vision, context)
}

impl From<TestError> for ApiError {
    fn from(error: TestError) -> Self {
        let mut text = error.to_string();
        if let Some(first) = text.get(..1) {
            text = format!(
                "{}{}.",
                first.to_uppercase(),
                text.get(1..).unwrap_or_default()
            );
        }
        let answer =
            Self::new(StatusCode::UNPROCESSABLE_ENTITY, error.code(), text).next(error.step());
        match error {
            TestError::Name { has, .. } => answer.with("has", has),
            _ => answer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_read_out_of_one_object_or_of_a_stream() {
        let whole = br#"{"choices":[{"message":{"content":"a","tool_calls":[{"id":"1"}]}}]}"#;
        assert_eq!(message(whole).unwrap()["tool_calls"][0]["id"], "1");
        let stream = b": hello\n\ndata: {\"choices\":[{\"delta\":{\"role\":\"assistant\"}}]}\n\n\
            data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"id\":\"1\"}]}}]}\n\ndata: [DONE]\n\n";
        assert_eq!(message(stream).unwrap()["tool_calls"][0]["id"], "1");
        for none in [&b"<html>"[..], b"{}", b"data: x\n\n", b""] {
            assert_eq!(message(none), None);
        }
    }
}
