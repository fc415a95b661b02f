//! One dial: connect, TLS, upgrade; each within its time. What comes of it is a socket, or a refusal
//! that says what to do next (spec/acp.md L1–L5).
//!
//! Not here: when to dial (`link::machine`).

mod connect;
mod head;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use base64::Engine as _;
use reqwest::Url;
use serde_json::{Map, Value};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;

use self::head::Head;
use super::http::{Http, USER_AGENT, read_retry_after};
use super::instance::{Instance, is_token};
use super::machine::Refusal;
use super::{origin, words, ws};
use crate::clock;
use crate::ids;

/// How long the upgrade may take, and TLS, and connecting: each.
const PHASE: Duration = Duration::from_secs(10);

/// A stream to the instance.
pub(super) trait Io: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Io for S {}

/// An upgraded socket, and the count of bytes that its TCP socket took.
pub(super) struct Socket {
    pub(super) stream: WebSocketStream<Box<dyn Io>>,
    pub(super) taken: Arc<AtomicU64>,
}

/// Dials the link of `instance` with its current token.
pub(super) async fn dial(
    instance: &Instance,
    http: &Http,
    boot: &str,
    take: bool,
) -> Result<Socket, Refusal> {
    let damaged =
        || failed("the file instance.json is damaged: run lembas link https://your.address");
    let url = Url::parse(&instance.link).map_err(|_| damaged())?;
    origin::check_credential(&url).map_err(|error| failed(error.to_string()))?;
    let device = instance.device.as_str();
    if !is_token(instance.current().reveal()) || !device.bytes().all(|b| b.is_ascii_graphic()) {
        return Err(damaged());
    }
    let (mut stream, taken) = connect::connect(&url, http).await?;
    let key = base64::engine::general_purpose::STANDARD.encode(ids::random_bytes(16));
    let request = request(&url, instance, boot, take, &key);
    let place = url.host_str().unwrap_or_default();
    let upgrade = async {
        stream.write_all(request.as_bytes()).await?;
        stream.flush().await?;
        let (head, rest) = head::read(&mut stream).await?;
        if head.status == 101 {
            return Ok((head, rest, Vec::new()));
        }
        let body = head::body(&mut stream, &head, rest).await;
        Ok::<_, std::io::Error>((head, Vec::new(), body))
    };
    let answer = clock::timeout(PHASE, upgrade).await;
    let answer = answer.map_err(|_| failed(format!("{place} did not answer within 10 seconds")))?;
    let (head, rest, body) = answer.map_err(|error| {
        let cause = words::cause(&error);
        failed(format!(
            "{place} did not answer as a web server does: {cause}"
        ))
    })?;
    if head.status != 101 {
        return Err(refusal(&head, &body, instance));
    }
    check_upgrade(&head, &key).map_err(|what| {
        failed(format!(
            "{place} upgraded to something else: {what}. Perhaps a proxy is between"
        ))
    })?;
    let stream =
        WebSocketStream::from_partially_read(stream, rest, Role::Client, Some(ws::config())).await;
    Ok(Socket { stream, taken })
}

fn request(url: &Url, instance: &Instance, boot: &str, take: bool, key: &str) -> String {
    let host = url.host_str().unwrap_or_default();
    let port = url
        .port()
        .map(|port| format!(":{port}"))
        .unwrap_or_default();
    let path = url.path();
    let query = url
        .query()
        .map(|query| format!("?{query}"))
        .unwrap_or_default();
    let token = instance.current().reveal();
    let device = &instance.device;
    let take = if take {
        format!("{}: 1\r\n", ws::HEADER_TAKE)
    } else {
        String::new()
    };
    format!(
        "GET {path}{query} HTTP/1.1\r\n\
         host: {host}{port}\r\n\
         connection: Upgrade\r\n\
         upgrade: websocket\r\n\
         sec-websocket-version: 13\r\n\
         sec-websocket-key: {key}\r\n\
         sec-websocket-protocol: {}\r\n\
         authorization: Bearer {token}\r\n\
         {}: {device}\r\n\
         {}: {boot}\r\n\
         {take}\
         user-agent: {USER_AGENT}\r\n\
         \r\n",
        ws::SUBPROTOCOL,
        ws::HEADER_DEVICE,
        ws::HEADER_BOOT,
    )
}

fn check_upgrade(head: &Head, key: &str) -> Result<(), &'static str> {
    let has = |name, value: &str| {
        let list = head.get(name).unwrap_or_default();
        list.split(',')
            .any(|item| item.trim().eq_ignore_ascii_case(value))
    };
    if !has("upgrade", "websocket") || !has("connection", "upgrade") {
        return Err("it is no WebSocket");
    }
    if head.get("sec-websocket-accept") != Some(derive_accept_key(key.as_bytes()).as_str()) {
        return Err("it answers another request");
    }
    if head.get("sec-websocket-protocol") != Some(ws::SUBPROTOCOL) {
        return Err("it does not speak lembas.link.3");
    }
    if head.get("sec-websocket-extensions").is_some() {
        return Err("it uses an extension that was not asked for");
    }
    Ok(())
}

/// What an answer that is no upgrade means. Only the paired instance's own word stops dialling.
fn refusal(head: &Head, body: &[u8], instance: &Instance) -> Refusal {
    let own = own_body(body, &instance.instance);
    let text = |own: &Map<String, Value>| {
        let text = own.get("text").and_then(Value::as_str);
        words::clean(text.unwrap_or_default(), 300)
    };
    match (head.status, own) {
        (401, Some(own)) if invalid_token(head) => Refusal::Revoked { text: text(&own) },
        (409, Some(own)) => Refusal::Held {
            holder: holder(&own),
        },
        (426, Some(own)) => Refusal::Version {
            theirs: own.get("protocol").and_then(Value::as_u64),
        },
        (429 | 503, own) => {
            let text = own.as_ref().map(text).filter(|text| !text.is_empty());
            let text = text.unwrap_or_else(|| who(head));
            match head.get("retry-after").and_then(read_retry_after) {
                Some(wait) => Refusal::Later { wait, text },
                None => failed(text),
            }
        }
        _ => failed(who(head)),
    }
}

/// The body, when it is the paired instance's own.
fn own_body(body: &[u8], instance: &str) -> Option<Map<String, Value>> {
    let own: Map<String, Value> = serde_json::from_slice(body).ok()?;
    let product = own.get("product").and_then(Value::as_str) == Some("llembas");
    let same = own
        .get("instance")
        .is_none_or(|id| id.as_str() == Some(instance));
    (product && same).then_some(own)
}

fn invalid_token(head: &Head) -> bool {
    let challenge = head.get("www-authenticate").unwrap_or_default();
    let challenge = challenge.to_ascii_lowercase();
    challenge.starts_with("bearer") && challenge.contains("error=\"invalid_token\"")
}

fn holder(own: &Map<String, Value>) -> String {
    let Some(holder) = own.get("holder") else {
        return String::new();
    };
    let address = holder
        .get("address")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let mut words = words::clean(address, 60);
    let since = holder.get("since").and_then(Value::as_i64);
    if let Some(since) = since.and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok()) {
        if !words.is_empty() {
            words.push_str(", ");
        }
        words.push_str(&format!("since {since:.0}"));
    }
    words
}

fn who(head: &Head) -> String {
    words::who(head.status, head.get("server"), head.get("content-type"))
}

fn failed(text: impl Into<String>) -> Refusal {
    Refusal::Failed { text: text.into() }
}

#[cfg(test)]
mod tests;
