//! A request goes on to the server that has the model; its answer comes back as it comes.
//!
//! While a local server loads a model, that is said in comments of the stream (`: {"lembas": …}`),
//! which are no events to a client that does not know them.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::answer;
use crate::clock::{Instant, instant, sleep, timeout, timeout_at};
use crate::hub::Shared;
use crate::hub::error::{ApiError, ApiResult};
use crate::hub::models::cause;
use crate::store::hub::models::Model;
use crate::store::item::Tokens;

/// Nothing from the server for so long, and it is given up.
const SILENT: Duration = Duration::from_secs(600);
/// How long a server that says that it loads the model is asked again.
const LOADING: Duration = Duration::from_secs(600);
/// How often it is asked, and how often the stream then says so.
const ASK_EVERY: Duration = Duration::from_secs(1);
/// Of an answer that is no success, or that is not streamed, at most so much is read.
const WHOLE: usize = 32 * 1024 * 1024;
const ERROR: usize = 64 * 1024;
/// Of a stream at most so much is passed on; a longer one ends with an error that says so.
const STREAM: usize = 64 * 1024 * 1024;
/// How long an answer in one piece may take from its head on, and the words of an error.
const WHOLE_WAIT: Duration = Duration::from_secs(30 * 60);
const ERROR_WAIT: Duration = Duration::from_secs(30);
/// Pieces between the server and a slow client; the server is read no further while it is full.
const PIECES: usize = 32;
/// A line of the stream longer than this is passed on unread.
const LINE: usize = 256 * 1024;

pub(super) async fn answer(
    shared: &Arc<Shared>,
    account: String,
    model: Model,
    mut body: Value,
) -> ApiResult<Response> {
    let streamed = body.get("stream").and_then(Value::as_bool) == Some(true);
    if let Some(map) = body.as_object_mut() {
        map.insert("model".to_owned(), model.model.clone().into());
        if streamed {
            let options = map.entry("stream_options").or_insert_with(|| json!({}));
            if let Some(options) = options.as_object_mut() {
                options.insert("include_usage".to_owned(), true.into());
            }
        }
    }
    let asked = Asked {
        shared: Arc::clone(shared),
        account,
        model,
        body,
    };
    if streamed {
        streaming(asked).await
    } else {
        whole(asked).await
    }
}

struct Asked {
    shared: Arc<Shared>,
    account: String,
    model: Model,
    body: Value,
}

/// What the server's first words are.
enum First {
    Answer(reqwest::Response),
    Loading,
}

impl Asked {
    async fn send(&self) -> ApiResult<First> {
        let mut request = self
            .shared
            .http
            .to(&self.model.url)
            .post(format!("{}/chat/completions", self.model.url))
            .json(&self.body);
        if let Some(key) = &self.model.key {
            request = request.bearer_auth(key);
        }
        let name = &self.model.name;
        let sent = timeout(SILENT, request.send()).await.map_err(|_| {
            ApiError::new(
                StatusCode::GATEWAY_TIMEOUT,
                "model_silent",
                format!("{name} said nothing for {} min.", SILENT.as_secs() / 60),
            )
        })?;
        let response = sent.map_err(|e| {
            ApiError::new(
                StatusCode::BAD_GATEWAY,
                "model_unreachable",
                format!("{name} does not answer ({}).", cause(&e)),
            )
        })?;
        let status = response.status();
        if status.is_success() && !is_page(&response) {
            return Ok(First::Answer(response));
        }
        if status.is_success() || status.is_redirection() {
            // Redirects are not followed: the key is for the host that it was given for.
            let what = if status.is_success() {
                "answered with a web page".to_owned()
            } else {
                format!("sends on to another address ({})", status.as_u16())
            };
            return Err(ApiError::new(
                StatusCode::BAD_GATEWAY,
                "model_failed",
                format!("The server of {name} {what} instead of a model's answer."),
            )
            .next("Look at its address under Settings, Models: it usually ends in /v1."));
        }
        let retry = response.headers().get(header::RETRY_AFTER).cloned();
        let said = bounded(response, ERROR, ERROR_WAIT).await;
        let text = String::from_utf8_lossy(&said).to_string();
        if status.as_u16() == 503 && text.to_lowercase().contains("loading model") {
            return Ok(First::Loading);
        }
        Err(refused(name, status.as_u16(), &text, retry.as_ref()))
    }

    fn count(&self, used: Tokens) {
        let store = self.shared.store.clone();
        let (account, id) = (self.account.clone(), self.model.id.clone());
        self.shared.tasks.spawn("usage", async move {
            let counted = store.count_usage(super::month(), account, id, used);
            if let Err(error) = counted.await {
                tracing::warn!(%error, "could not count what was used");
            }
        });
    }
}

/// Whether it is a page for people that answers.
fn is_page(response: &reqwest::Response) -> bool {
    let kind = response.headers().get(header::CONTENT_TYPE);
    kind.and_then(|v| v.to_str().ok())
        .is_some_and(|v| v.trim_start().to_ascii_lowercase().starts_with("text/html"))
}

/// What the server said, under a status that is about the server and not about who asks us: a 401
/// from it means its key, never the device's token.
fn refused(name: &str, status: u16, said: &str, retry: Option<&HeaderValue>) -> ApiError {
    let parsed: Value = serde_json::from_str(said).unwrap_or_default();
    let words = parsed
        .pointer("/error/message")
        .or_else(|| parsed.get("error"))
        .or_else(|| parsed.get("message"))
        .and_then(Value::as_str)
        .map_or_else(
            || said.split_whitespace().collect::<Vec<_>>().join(" "),
            str::to_owned,
        );
    let words: String = words.chars().take(500).collect();
    let (status, code, text) = match status {
        401 | 403 => (
            StatusCode::BAD_GATEWAY,
            "model_key",
            format!("The server of {name} refused this instance's key."),
        ),
        429 => (
            StatusCode::TOO_MANY_REQUESTS,
            "model_busy",
            format!("{name} takes no more requests now."),
        ),
        400..=499 => (
            StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST),
            "model_refused",
            format!("{name} refused the request: {words}"),
        ),
        _ => (
            StatusCode::BAD_GATEWAY,
            "model_failed",
            format!("{name} failed ({status})."),
        ),
    };
    let mut error = ApiError::new(status, code, text).why(words);
    let seconds = retry
        .and_then(|v| v.to_str().ok())
        .and_then(|v| v.trim().parse().ok());
    if let Some(seconds) = seconds {
        error = error.retry_after(seconds);
    }
    error
}

/// What comes of an answer's body within a size and a time; the rest is left.
async fn bounded(mut response: reqwest::Response, most: usize, within: Duration) -> Vec<u8> {
    let until = instant() + within;
    let mut body = Vec::new();
    loop {
        let next = instant() + SILENT;
        let Ok(Ok(Some(chunk))) = timeout_at(next.min(until), response.chunk()).await else {
            return body;
        };
        let room = most.saturating_sub(body.len());
        body.extend_from_slice(chunk.get(..room.min(chunk.len())).unwrap_or_default());
        if body.len() >= most {
            return body;
        }
    }
}

async fn whole(asked: Asked) -> ApiResult<Response> {
    let until = instant() + LOADING;
    let response = loop {
        match asked.send().await? {
            First::Answer(response) => break response,
            First::Loading if instant() < until => sleep(ASK_EVERY).await,
            First::Loading => return Err(still_loading(&asked.model.name)),
        }
    };
    let body = bounded(response, WHOLE, WHOLE_WAIT).await;
    let parsed: Value = serde_json::from_slice(&body).map_err(|_| {
        ApiError::new(
            StatusCode::BAD_GATEWAY,
            "model_failed",
            format!(
                "{} answered something that cannot be read.",
                asked.model.name
            ),
        )
    })?;
    asked.count(used(&parsed).unwrap_or_default());
    Ok(Json(parsed).into_response())
}

fn still_loading(name: &str) -> ApiError {
    ApiError::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "model_loading",
        format!("{name} is still being loaded."),
    )
    .retry_after(30)
}

/// The server's stream. Until its first words come it may be loading: then ours begins after a
/// moment and says so, because a person waits.
async fn streaming(asked: Asked) -> ApiResult<Response> {
    let asked = Arc::new(asked);
    let mut sending = sending(&asked);
    let first = match timeout(ASK_EVERY, &mut sending).await {
        Ok(first) => Some(first?),
        Err(_) => None,
    };
    let (pieces, out) = mpsc::channel::<Result<Vec<u8>, std::io::Error>>(PIECES);
    let tasks = asked.shared.tasks.clone();
    tasks.spawn("model relay", async move {
        let result = match first {
            Some(First::Answer(response)) => pass(&asked, response, &pieces).await,
            Some(First::Loading) => patient(&asked, None, &pieces).await,
            None => patient(&asked, Some(sending), &pieces).await,
        };
        if let Err(error) = result {
            let _client_gone = pieces.send(Ok(as_event(error).await)).await;
        }
    });
    Ok(answer::stream(futures_util::stream::unfold(
        out,
        |mut out| async move { out.recv().await.map(|piece| (piece, out)) },
    )))
}

type Sending = BoxFuture<'static, ApiResult<First>>;

fn sending(asked: &Arc<Asked>) -> Sending {
    let asked = Arc::clone(asked);
    async move { asked.send().await }.boxed()
}

/// An error after the stream has begun.
async fn as_event(error: ApiError) -> Vec<u8> {
    let response = answer::as_model_error(error.into_response()).await;
    let bytes = axum::body::to_bytes(response.into_body(), ERROR).await;
    let text = bytes.map(|b| String::from_utf8_lossy(&b).to_string());
    format!("event: error\ndata: {}\n\n", text.unwrap_or_default()).into_bytes()
}

type Pieces = mpsc::Sender<Result<Vec<u8>, std::io::Error>>;

/// Asks until the server has begun, and says meanwhile what it does.
async fn patient(asked: &Arc<Asked>, begun: Option<Sending>, pieces: &Pieces) -> ApiResult<()> {
    let until = instant() + LOADING;
    let mut send = match begun {
        Some(begun) => begun,
        None => {
            if say_loading(asked, pieces).await.is_err() {
                return Ok(());
            }
            sleep(ASK_EVERY).await;
            sending(asked)
        }
    };
    loop {
        let mut tick = instant() + ASK_EVERY;
        let first = loop {
            tokio::select! {
                first = &mut send => break first?,
                () = crate::clock::sleep_until(tick) => {
                    tick = instant() + ASK_EVERY;
                    if loads(asked).await && say_loading(asked, pieces).await.is_err() {
                        return Ok(());
                    }
                    if pieces.is_closed() {
                        return Ok(());
                    }
                }
            }
        };
        match first {
            First::Answer(response) => return pass(asked, response, pieces).await,
            First::Loading if instant() < until => {
                if say_loading(asked, pieces).await.is_err() {
                    return Ok(());
                }
                sleep(ASK_EVERY).await;
                send = sending(asked);
            }
            First::Loading => return Err(still_loading(&asked.model.name)),
        }
    }
}

async fn say_loading(asked: &Asked, pieces: &Pieces) -> Result<(), ()> {
    let said = json!({ "lembas": { "phase": "loading_model", "model": asked.model.name } });
    let text = format!(": {said}\n\n").into_bytes();
    pieces.send(Ok(text)).await.map_err(|_| ())
}

/// Whether an Ollama server has the model not in memory yet. Any other server says nothing here.
async fn loads(asked: &Asked) -> bool {
    let root = asked
        .model
        .url
        .strip_suffix("/v1")
        .unwrap_or(&asked.model.url);
    let ask = asked.shared.http.to(root).get(format!("{root}/api/ps"));
    let Ok(Ok(response)) = timeout(Duration::from_millis(500), ask.send()).await else {
        return false;
    };
    if !response.status().is_success() {
        return false;
    }
    let body = bounded(response, ERROR, Duration::from_millis(500)).await;
    let list: Value = serde_json::from_slice(&body).unwrap_or_default();
    list.get("models")
        .and_then(Value::as_array)
        .is_some_and(|models| {
            !models.iter().any(|m| {
                let name = m.get("name").and_then(Value::as_str).unwrap_or_default();
                name == asked.model.model
                    || name.strip_suffix(":latest") == Some(&asked.model.model)
            })
        })
}

/// Passes a stream on, piece by piece, and reads in passing what was used.
async fn pass(asked: &Asked, response: reqwest::Response, pieces: &Pieces) -> ApiResult<()> {
    let name = asked.model.name.clone();
    let mut reader = UsageReader::default();
    let mut stream = response.bytes_stream();
    let mut last: Instant;
    let mut passed = 0;
    loop {
        last = instant();
        let next = tokio::select! {
            next = timeout(SILENT, stream.next()) => next,
            // The client is gone: dropping the stream ends the model's work.
            () = pieces.closed() => break,
        };
        match next {
            Ok(Some(Ok(chunk))) => {
                reader.read(&chunk);
                passed += chunk.len();
                if passed > STREAM {
                    asked.count(reader.used);
                    return Err(ApiError::new(
                        StatusCode::BAD_GATEWAY,
                        "model_failed",
                        format!("{name} did not come to an end within {} MiB.", STREAM >> 20),
                    ));
                }
                if pieces.send(Ok(chunk.to_vec())).await.is_err() {
                    break;
                }
            }
            Ok(Some(Err(error))) => {
                asked.count(reader.used);
                return Err(ApiError::new(
                    StatusCode::BAD_GATEWAY,
                    "model_broke_off",
                    format!("{name} broke off in the middle ({}).", cause(&error)),
                ));
            }
            Ok(None) => break,
            Err(_) => {
                asked.count(reader.used);
                return Err(ApiError::new(
                    StatusCode::GATEWAY_TIMEOUT,
                    "model_silent",
                    format!(
                        "{name} said nothing for {} min.",
                        last.elapsed().as_secs() / 60
                    ),
                ));
            }
        }
    }
    asked.count(reader.used);
    Ok(())
}

/// Reads `usage` out of a stream of events without holding it.
#[derive(Default)]
struct UsageReader {
    line: Vec<u8>,
    used: Tokens,
}

impl UsageReader {
    fn read(&mut self, chunk: &[u8]) {
        for byte in chunk {
            if *byte != b'\n' {
                if self.line.len() < LINE {
                    self.line.push(*byte);
                }
                continue;
            }
            let line = std::mem::take(&mut self.line);
            let data = line.strip_prefix(b"data:".as_slice());
            let has = |d: &&[u8]| d.windows(7).any(|w| w == b"\"usage\"");
            if let Some(data) = data.filter(has)
                && let Ok(event) = serde_json::from_slice::<Value>(data)
                && let Some(used) = used(&event)
            {
                self.used = used;
            }
        }
    }
}

fn used(answer: &Value) -> Option<Tokens> {
    let usage = answer.get("usage").filter(|u| u.is_object())?;
    let number = |path: &str| usage.pointer(path).and_then(Value::as_u64).unwrap_or(0);
    Some(Tokens {
        input: number("/prompt_tokens"),
        cached_input: number("/prompt_tokens_details/cached_tokens"),
        output: number("/completion_tokens"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_is_read_however_the_stream_is_cut() {
        let stream = "data: {\"choices\":[{\"delta\":{\"content\":\"a \\\"usage\\\" b\"}}]}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":12,\"completion_tokens\":3,\"prompt_tokens_details\":{\"cached_tokens\":8}}}\n\ndata: [DONE]\n\n";
        for cut in 0..stream.len() {
            let mut reader = UsageReader::default();
            reader.read(&stream.as_bytes()[..cut]);
            reader.read(&stream.as_bytes()[cut..]);
            assert_eq!(
                (
                    reader.used.input,
                    reader.used.cached_input,
                    reader.used.output
                ),
                (12, 8, 3)
            );
        }
    }

    #[test]
    fn a_refused_key_of_the_server_is_not_the_devices() {
        let error = format!(
            "{:?}",
            refused("m", 401, "{\"error\":{\"message\":\"bad key\"}}", None)
        );
        assert!(
            error.contains("502") && error.contains("model_key"),
            "{error}"
        );
    }
}
