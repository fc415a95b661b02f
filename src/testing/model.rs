//! A model server on loopback that plays a script, for whoever tests something with a model
//! behind it. It also plays bad servers: dribbling, stalling, cutting, 429, HTML.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, Semaphore};

use crate::model::{Bearer, Endpoint};
use crate::rt::Tasks;

/// Longest request taken.
const REQUEST: usize = 32 * 1024 * 1024;

/// One thing the server does within an answer.
#[derive(Clone, Debug)]
pub enum Act {
    /// An event with this data.
    Data(String),
    /// A line as it is, such as a comment.
    Line(String),
    /// The same bytes one at a time.
    Dribble(String),
    /// Says nothing until the gate gives a permit.
    Wait(Arc<Semaphore>),
    /// Closes the connection in the middle.
    Cut,
}

/// One answer.
#[derive(Clone, Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub acts: Vec<Act>,
}

impl Reply {
    /// A stream that begins well.
    pub fn stream(acts: Vec<Act>) -> Self {
        Self {
            status: 200,
            headers: vec![("content-type", "text/event-stream".to_owned())],
            acts,
        }
    }

    /// A whole answer: text and how it ended.
    pub fn text(text: &str) -> Self {
        Self::stream(vec![say(text), finish("stop"), usage(), done()])
    }

    /// An answer that makes calls: names and arguments.
    pub fn calls(calls: &[(&str, Value)]) -> Self {
        let mut acts: Vec<Act> = calls
            .iter()
            .enumerate()
            .map(|(n, (name, args))| call(n, name, &args.to_string()))
            .collect();
        acts.extend([finish("tool_calls"), usage(), done()]);
        Self::stream(acts)
    }

    /// An answer that is no stream.
    pub fn error(status: u16, kind: &str, body: &str) -> Self {
        Self {
            status,
            headers: vec![("content-type", kind.to_owned())],
            acts: vec![Act::Line(body.to_owned())],
        }
    }

    #[must_use]
    pub fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }
}

/// A piece of text.
pub fn say(text: &str) -> Act {
    delta(&json!({ "content": text }))
}

/// A piece of reasoning.
pub fn think(text: &str) -> Act {
    delta(&json!({ "reasoning_content": text }))
}

/// A whole call in one piece.
pub fn call(index: usize, name: &str, args: &str) -> Act {
    delta(&json!({ "tool_calls": [{
        "index": index,
        "id": format!("call_{index}_{name}"),
        "type": "function",
        "function": { "name": name, "arguments": args },
    }] }))
}

pub fn finish(reason: &str) -> Act {
    Act::Data(
        json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }] }).to_string(),
    )
}

pub fn usage() -> Act {
    Act::Data(
        json!({ "choices": [], "usage": {
            "prompt_tokens": 100, "completion_tokens": 10,
            "prompt_tokens_details": { "cached_tokens": 60 },
        } })
        .to_string(),
    )
}

pub fn done() -> Act {
    Act::Data("[DONE]".to_owned())
}

fn delta(delta: &Value) -> Act {
    Act::Data(json!({ "choices": [{ "index": 0, "delta": delta }] }).to_string())
}

/// A running server. Cheap to clone; it ends with the [`Tasks`] it was started on.
#[derive(Clone, Debug)]
pub struct ModelServer(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    base: String,
    client: reqwest::Client,
    script: Mutex<VecDeque<Reply>>,
    seen: Mutex<Seen>,
    news: Notify,
}

#[derive(Debug, Default)]
struct Seen {
    requests: Vec<Value>,
    bearers: Vec<String>,
    /// What was wrong with requests.
    faults: Vec<String>,
    /// Connections that the other side closed before the answer was whole.
    hung_up: usize,
}

impl ModelServer {
    /// Starts on a free port.
    ///
    /// # Errors
    /// When loopback has none.
    pub async fn start(tasks: &Tasks) -> std::io::Result<Self> {
        // A second provider is an error that says so; ours may be there already.
        let _there = rustls::crypto::ring::default_provider().install_default();
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let base = format!("http://{}/v1", listener.local_addr()?);
        let client = reqwest::Client::builder()
            .no_proxy()
            .build()
            .map_err(std::io::Error::other)?;
        let server = Self(Arc::new(Inner {
            base,
            client,
            script: Mutex::default(),
            seen: Mutex::default(),
            news: Notify::new(),
        }));
        let (serving, children) = (server.clone(), tasks.clone());
        let stop = tasks.stop().clone();
        tasks.spawn("model server", async move {
            loop {
                let socket = tokio::select! {
                    () = stop.cancelled() => return,
                    accepted = listener.accept() => accepted,
                };
                let Ok((socket, _)) = socket else { return };
                let (server, stop) = (serving.clone(), stop.clone());
                children.spawn("model answer", async move {
                    tokio::select! {
                        () = stop.cancelled() => {}
                        _closed = server.serve(socket) => {}
                    }
                });
            }
        });
        Ok(server)
    }

    /// Adds answers to the script. Without one left the server answers 500 and notes a fault.
    pub fn play(&self, replies: impl IntoIterator<Item = Reply>) {
        self.0.script.lock().extend(replies);
    }

    /// The bodies of all requests so far.
    pub fn requests(&self) -> Vec<Value> {
        self.0.seen.lock().requests.clone()
    }

    pub fn bearers(&self) -> Vec<String> {
        self.0.seen.lock().bearers.clone()
    }

    /// What was wrong: requests where a result has no call or a call no result, bodies that are
    /// no JSON, requests that the script did not expect.
    pub fn faults(&self) -> Vec<String> {
        self.0.seen.lock().faults.clone()
    }

    /// Waits until so many requests came.
    pub async fn asked(&self, count: usize) {
        self.until(|seen| seen.requests.len() >= count).await;
    }

    /// Waits until so many connections were closed by the other side in the middle.
    pub async fn hung_up(&self, count: usize) {
        self.until(|seen| seen.hung_up >= count).await;
    }

    async fn until(&self, enough: impl Fn(&Seen) -> bool) {
        loop {
            let news = self.0.news.notified();
            tokio::pin!(news);
            news.as_mut().enable();
            if enough(&self.0.seen.lock()) {
                return;
            }
            news.await;
        }
    }

    /// Where it is, for a client.
    pub fn endpoint(&self) -> Arc<dyn Endpoint> {
        Arc::new(self.clone())
    }

    async fn serve(&self, mut socket: TcpStream) -> std::io::Result<()> {
        let Some((head, body)) = read_request(&mut socket).await? else {
            return Ok(());
        };
        self.note(&head, &body);
        let reply = self.0.script.lock().pop_front().unwrap_or_else(|| {
            self.0
                .seen
                .lock()
                .faults
                .push("a request that the script did not expect".to_owned());
            Reply::error(400, "text/plain", "the script is over")
        });
        self.0.news.notify_waiters();
        let head: String = reply
            .headers
            .iter()
            .map(|(name, value)| format!("{name}: {value}\r\n"))
            .collect();
        let status = reply.status;
        // Without a length the body ends with the connection, which a cut then cannot be told
        // from; so it is chunked.
        let head = format!(
            "HTTP/1.1 {status} Scripted\r\n{head}transfer-encoding: chunked\r\nconnection: close\r\n\r\n"
        );
        socket.write_all(head.as_bytes()).await?;
        let played = self.play_out(&mut socket, reply.acts).await;
        if !matches!(played, Ok(true)) {
            if played.is_err() {
                self.0.seen.lock().hung_up += 1;
                self.0.news.notify_waiters();
            }
            return Ok(());
        }
        socket.write_all(b"0\r\n\r\n").await?;
        socket.shutdown().await
    }

    /// Plays the acts. False: it was cut as the script says. An error: the other side went away.
    async fn play_out(&self, socket: &mut TcpStream, acts: Vec<Act>) -> std::io::Result<bool> {
        for act in acts {
            match act {
                Act::Data(data) => chunk(socket, &format!("data: {data}\n\n")).await?,
                Act::Line(line) => chunk(socket, &line).await?,
                Act::Dribble(text) => {
                    for byte in text.as_bytes() {
                        chunk_bytes(socket, &[*byte]).await?;
                    }
                }
                Act::Wait(gate) => {
                    let mut byte = [0];
                    tokio::select! {
                        permit = gate.acquire() => {
                            if let Ok(permit) = permit {
                                permit.forget();
                            }
                        }
                        // The client sends nothing more: this ends when it goes away.
                        read = socket.read(&mut byte) => {
                            if read.unwrap_or(0) == 0 {
                                return Err(std::io::ErrorKind::ConnectionAborted.into());
                            }
                        }
                    }
                }
                Act::Cut => return Ok(false),
            }
        }
        Ok(true)
    }

    fn note(&self, head: &str, body: &[u8]) {
        let mut seen = self.0.seen.lock();
        if let Some(bearer) = head.lines().find_map(|l| {
            l.to_ascii_lowercase()
                .strip_prefix("authorization: bearer ")
                .map(ToOwned::to_owned)
        }) {
            seen.bearers.push(bearer);
        }
        match serde_json::from_slice::<Value>(body) {
            Ok(request) => {
                if let Err(fault) = paired(&request) {
                    seen.faults.push(fault);
                }
                seen.requests.push(request);
            }
            Err(error) => seen.faults.push(format!("a body that is no JSON: {error}")),
        }
    }
}

impl Endpoint for ModelServer {
    fn client(&self) -> reqwest::Client {
        self.0.client.clone()
    }
    fn base(&self) -> String {
        self.0.base.clone()
    }
    fn bearer(&self) -> Option<Bearer> {
        Some(Bearer("device-token".to_owned()))
    }
}

/// Whether each call is followed by its result, and each result has its call before it.
///
/// # Errors
/// What is wrong, in words.
pub fn paired(request: &Value) -> Result<(), String> {
    let messages = request
        .get("messages")
        .and_then(Value::as_array)
        .ok_or("a request without messages")?;
    let text = |value: &Value, name: &str| {
        value
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let mut open: VecDeque<String> = VecDeque::new();
    for message in messages {
        if text(message, "role") == "tool" {
            let id = text(message, "tool_call_id");
            if open.pop_front().as_ref() != Some(&id) {
                return Err(format!("the result {id} has no call, or not in its place"));
            }
        } else if let Some(id) = open.front() {
            return Err(format!("the call {id} has no result"));
        }
        for call in message
            .get("tool_calls")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            open.push_back(text(call, "id"));
        }
    }
    match open.front() {
        Some(id) => Err(format!("the call {id} has no result")),
        None => Ok(()),
    }
}

async fn chunk(socket: &mut TcpStream, text: &str) -> std::io::Result<()> {
    chunk_bytes(socket, text.as_bytes()).await
}

async fn chunk_bytes(socket: &mut TcpStream, bytes: &[u8]) -> std::io::Result<()> {
    let mut framed = format!("{:x}\r\n", bytes.len()).into_bytes();
    framed.extend_from_slice(bytes);
    framed.extend_from_slice(b"\r\n");
    socket.write_all(&framed).await
}

/// The head and the body of one request; none when the connection was only opened.
async fn read_request(socket: &mut TcpStream) -> std::io::Result<Option<(String, Vec<u8>)>> {
    let mut bytes = Vec::new();
    loop {
        let end = bytes.windows(4).position(|w| w == b"\r\n\r\n");
        if let Some(end) = end {
            let head = String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).into_owned();
            let length: usize = head
                .lines()
                .filter_map(|l| l.split_once(':'))
                .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
                .and_then(|(_, n)| n.trim().parse().ok())
                .unwrap_or(0);
            let mut body = bytes.split_off(end + 4);
            while body.len() < length.min(REQUEST) {
                if socket.read_buf(&mut body).await? == 0 {
                    return Ok(None);
                }
            }
            return Ok(Some((head, body)));
        }
        if bytes.len() > 64 * 1024 || socket.read_buf(&mut bytes).await? == 0 {
            return Ok(None);
        }
    }
}
