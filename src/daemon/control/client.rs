//! A command's end of the control socket.

use std::io;
use std::path::Path;
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use jsonrpsee_types::ErrorObjectOwned;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::net::UnixStream;
use tokio_util::codec::{Framed, FramedParts, LinesCodec};

use super::{Detail, MAX_ANSWER, check_peer};
use crate::clock;
use crate::text::json;

/// A daemon that does not take a connection within this hangs.
const CONNECT: Duration = Duration::from_secs(5);

/// A connection to the daemon.
#[derive(Debug)]
pub struct Client {
    lines: Framed<UnixStream, LinesCodec>,
    next: u64,
}

/// Why the daemon could not be asked, or did not do it.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    #[error("the daemon on this computer is not running")]
    NotRunning,
    #[error("the daemon does not answer")]
    NoAnswer(#[source] Option<io::Error>),
    #[error("{text}")]
    Refused { text: String, detail: Detail },
    #[error("the daemon answered something this command does not understand")]
    Strange(Option<String>),
}

impl Client {
    /// Connects to the daemon of this user.
    pub async fn connect(path: &Path) -> Result<Self, ControlError> {
        let stream = match clock::timeout(CONNECT, UnixStream::connect(path)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error))
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
                ) =>
            {
                return Err(ControlError::NotRunning);
            }
            Ok(Err(error)) => return Err(ControlError::NoAnswer(Some(error))),
            Err(_) => return Err(ControlError::NoAnswer(None)),
        };
        // Nobody else may play our daemon, also where the socket lies in a shared folder.
        check_peer(&stream).map_err(|error| ControlError::NoAnswer(Some(error)))?;
        Ok(Self {
            lines: Framed::new(stream, LinesCodec::new_with_max_length(MAX_ANSWER)),
            next: 1,
        })
    }

    /// Asks and waits for the answer. Dropping the future and the client ends the call.
    pub async fn request<T: DeserializeOwned>(
        &mut self,
        method: &str,
        params: &impl Serialize,
    ) -> Result<T, ControlError> {
        let value = self.send(method, params).await?;
        json::read(value).map_err(|why| ControlError::Strange(Some(why)))
    }

    async fn send(&mut self, method: &str, params: &impl Serialize) -> Result<Value, ControlError> {
        let id = self.next;
        self.next += 1;
        let line = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.lines
            .send(line.to_string())
            .await
            .map_err(|error| ControlError::NoAnswer(Some(io::Error::other(error))))?;
        let line = match self.lines.next().await {
            Some(Ok(line)) => line,
            Some(Err(error)) => {
                return Err(ControlError::NoAnswer(Some(io::Error::other(error))));
            }
            None => return Err(ControlError::NoAnswer(None)),
        };
        read(&line)
    }

    /// Turns the connection into a stream of another kind; what came early is given with it.
    pub async fn stream(
        mut self,
        method: &str,
    ) -> Result<FramedParts<UnixStream, LinesCodec>, ControlError> {
        self.send(method, &json!({})).await?;
        Ok(self.lines.into_parts())
    }
}

/// Reads an answer line: its result, or the refusal in it.
///
/// # Errors
/// As [`Client::request`].
pub fn read(line: &str) -> Result<Value, ControlError> {
    let mut answer: Value = serde_json::from_str(line)
        .map_err(|error| ControlError::Strange(Some(json::about("", &error.to_string()))))?;
    if let Some(error) = answer.get("error") {
        let text = error.get("message").and_then(Value::as_str);
        return Err(refused(text.unwrap_or("it was refused"), error.get("data")));
    }
    match answer.get_mut("result") {
        Some(result) => Ok(result.take()),
        None => Err(ControlError::Strange(None)),
    }
}

fn refused(text: &str, data: Option<&Value>) -> ControlError {
    let detail = data
        .and_then(|data| serde_json::from_value(data.clone()).ok())
        .unwrap_or_default();
    ControlError::Refused {
        text: text.to_owned(),
        detail,
    }
}

/// What a daemon would have answered, of a command that did it by itself.
impl From<ErrorObjectOwned> for ControlError {
    fn from(error: ErrorObjectOwned) -> Self {
        let data = error
            .data()
            .and_then(|data| serde_json::from_str(data.get()).ok());
        refused(error.message(), data.as_ref())
    }
}
