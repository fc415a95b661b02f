//! The client for OpenAI-compatible chat completions, streaming, with what real servers do to
//! the format (quirks.json).

pub mod body;
pub mod read;

use std::collections::VecDeque;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;

use crate::clock;
use crate::model::sse::{Parser, Piece};
use crate::model::{Chunk, Endpoint, ModelError, Request};
use crate::spec;

use read::Reader;

/// How long a server may say nothing before its first byte, and between two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waits {
    /// Models are loaded and long prompts read in this time; servers that say so restart it.
    pub first: Duration,
    pub idle: Duration,
}

impl Default for Waits {
    /// As loop.json `retries` says.
    fn default() -> Self {
        let retries = &spec::numbers().retries;
        Self {
            first: retries.first_byte,
            idle: retries.idle,
        }
    }
}

/// An error's body is read up to here; of it the person is shown less.
const ERROR_BODY: usize = 16 * 1024;
const ERROR_SHOWN: usize = 500;

/// An answer as it comes. Dropping it closes the connection, which ends the model's work.
pub struct Answering {
    bytes: BoxStream<'static, Result<Vec<u8>, reqwest::Error>>,
    parser: Parser,
    reader: Reader,
    ready: VecDeque<Chunk>,
    waits: Waits,
    heard: bool,
    over: bool,
}

impl std::fmt::Debug for Answering {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Answering").finish_non_exhaustive()
    }
}

/// Sends a request and answers when the server has begun to answer.
///
/// # Errors
/// When it cannot be reached, refuses, or answers something that is no stream of events.
pub async fn ask(
    endpoint: &dyn Endpoint,
    request: &Request,
    waits: Waits,
) -> Result<Answering, ModelError> {
    let url = format!("{}/chat/completions", endpoint.base().trim_end_matches('/'));
    let mut http = endpoint
        .client()
        .post(url)
        .header("accept", "text/event-stream")
        .header("content-type", "application/json")
        .body(body::write(request));
    if let Some(bearer) = endpoint.bearer() {
        http = http.bearer_auth(bearer.0);
    }
    let response = clock::timeout(waits.first, http.send())
        .await
        .map_err(|_| ModelError::Idle(waits.first.as_secs()))?
        .map_err(|e| ModelError::Unreachable(plain(&e)))?;
    let status = response.status().as_u16();
    let header = |name: &str| {
        response
            .headers()
            .get(name)
            .and_then(|v| v.to_str().ok())
            .unwrap_or_default()
            .to_ascii_lowercase()
    };
    let kind = header("content-type");
    if kind.starts_with("text/html") {
        return Err(ModelError::Page { status });
    }
    if status != 200 {
        let after = retry_after(&header("retry-after"));
        let body = read_error(response).await;
        let text = read::error_text(&body, ERROR_SHOWN);
        if status != 429 && read::too_long(&body) {
            return Err(ModelError::TooLong(text));
        }
        // The instance says so of the key it has: asking again changes nothing.
        let status = if read::code(&body) == "model_key" {
            403
        } else {
            status
        };
        return Err(ModelError::Status {
            status,
            text,
            after,
        });
    }
    let json = kind.starts_with("application/json");
    Ok(Answering {
        bytes: response
            .bytes_stream()
            .map(|b| b.map(|b| b.to_vec()))
            .boxed(),
        parser: Parser::new(),
        reader: Reader::new(json),
        ready: VecDeque::new(),
        waits,
        heard: false,
        over: false,
    })
}

impl Answering {
    /// The next piece. After [`Chunk::Done`] or an error nothing comes. Cancel-safe.
    ///
    /// # Errors
    /// When the stream is cut, silent for too long, or not understood.
    pub async fn next(&mut self) -> Result<Option<Chunk>, ModelError> {
        loop {
            if let Some(chunk) = self.ready.pop_front() {
                return Ok(Some(chunk));
            }
            if self.over {
                return Ok(None);
            }
            let wait = if self.heard {
                self.waits.idle
            } else {
                self.waits.first
            };
            let came = clock::timeout(wait, self.bytes.next())
                .await
                .map_err(|_| ModelError::Idle(wait.as_secs()));
            let result = match came {
                Ok(Some(Ok(bytes))) => self.take(&bytes),
                Ok(Some(Err(_))) => Err(ModelError::Cut),
                Ok(None) => self.finish(),
                Err(idle) => Err(idle),
            };
            if let Err(error) = result {
                self.over = true;
                return Err(error);
            }
        }
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), ModelError> {
        if self.reader.whole() {
            return self.reader.collect(bytes);
        }
        let pieces = self
            .parser
            .push(bytes)
            .map_err(|e| ModelError::Garbled(e.to_string()))?;
        self.pieces(pieces)
    }

    fn pieces(&mut self, pieces: Vec<Piece>) -> Result<(), ModelError> {
        for piece in pieces {
            if self.over {
                break;
            }
            let chunks = self.reader.piece(piece)?;
            // A hint is no word of the model: the long wait for the first one starts anew.
            self.heard |= chunks.iter().any(|c| !matches!(c, Chunk::Hint(_)));
            self.over |= chunks.iter().any(|c| matches!(c, Chunk::Done(_)));
            self.ready.extend(chunks);
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), ModelError> {
        if !self.reader.whole() {
            let pieces = self
                .parser
                .end()
                .map_err(|e| ModelError::Garbled(e.to_string()))?;
            self.pieces(pieces)?;
        }
        if !self.over {
            let chunks = self.reader.end()?;
            self.ready.extend(chunks);
            self.over = true;
        }
        Ok(())
    }
}

/// The cause of a failed request without its address: that is the instance's, and known.
fn plain(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

/// Seconds, or a date of HTTP.
fn retry_after(text: &str) -> Option<Duration> {
    let text = text.trim();
    if let Ok(seconds) = text.parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let date = jiff::fmt::rfc2822::parse(text).ok()?;
    let wait = date.timestamp().as_millisecond() - clock::now_ms();
    Some(Duration::from_millis(u64::try_from(wait).unwrap_or(0)))
}

/// An error's body, as far as it came in time.
async fn read_error(response: reqwest::Response) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut stream = response.bytes_stream();
    // A body that does not end in time is shown as far as it came.
    let reading = async {
        while let Some(Ok(chunk)) = stream.next().await {
            bytes.extend_from_slice(&chunk);
            if bytes.len() > ERROR_BODY {
                break;
            }
        }
    };
    let _late = clock::timeout(Duration::from_secs(10), reading).await;
    bytes
}
