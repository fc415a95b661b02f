//! A model server that says what the prompt tells it to, and notes when.
//!
//! The last user message with `bench {…}` in it is the script: `chunks` pieces of text, `rate` of
//! them a second (0: as fast as it goes), and before them, when it has one, a `call` (name and
//! arguments), answered by the text once a tool's result is there. Each request leaves a line of
//! JSON in the log: when it had come whole, when its first and its last piece were written, and
//! when the answer was over. Its address is the first line of stdout.

use std::fs::File;
use std::io::{self, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::{http, now};

pub(crate) fn run(log: &str) -> io::Result<()> {
    let log = Arc::new(Mutex::new(File::create(log)?));
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    writeln!(io::stdout(), "{}", listener.local_addr()?)?;
    for socket in listener.incoming() {
        let (socket, log) = (socket?, Arc::clone(&log));
        // The client closed: nothing is left to be said to it.
        std::thread::spawn(move || serve(socket, &log));
    }
    Ok(())
}

/// What a prompt asks for.
#[derive(Debug, Default)]
struct Script {
    chunks: u64,
    rate: f64,
    call: Option<(String, String)>,
}

impl Script {
    fn find(request: &Value) -> Option<Self> {
        let messages = request.get("messages")?.as_array()?;
        let (at, text) = messages
            .iter()
            .enumerate()
            .rev()
            .find_map(|(at, message)| {
                let user = message.get("role").and_then(Value::as_str) == Some("user");
                let content = message.get("content")?.to_string();
                let said: String = if let Some(text) = message.get("content")?.as_str() {
                    text.to_owned()
                } else {
                    let parts = message.get("content")?.as_array()?.iter();
                    let texts = parts.filter_map(|part| part.get("text")?.as_str());
                    texts.collect::<Vec<_>>().join("\n")
                };
                (user && content.contains("bench {")).then_some((at, said))
            })?;
        let (_, script) = text.split_once("bench ")?;
        let script = serde_json::Deserializer::from_str(script)
            .into_iter::<Value>()
            .next()?
            .ok()?;
        let answered = messages.iter().skip(at).any(|message| {
            let role = message.get("role").and_then(Value::as_str);
            role == Some("tool")
        });
        let call = script.get("call").filter(|_| !answered).and_then(|call| {
            let name = call.get(0)?.as_str()?.to_owned();
            Some((name, call.get(1)?.to_string()))
        });
        Some(Self {
            chunks: script.get("chunks").and_then(Value::as_u64).unwrap_or(1),
            rate: script.get("rate").and_then(Value::as_f64).unwrap_or(0.0),
            call,
        })
    }
}

fn serve(mut socket: TcpStream, log: &Mutex<File>) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let mut from = BufReader::new(socket.try_clone()?);
    while let Some(request) = http::request(&mut from)? {
        let came = now();
        if !request.first.contains("/chat/completions") {
            let list = json!({ "object": "list", "data": [{ "id": "bench", "object": "model" }] });
            http::write_json(&mut socket, &list.to_string())?;
            continue;
        }
        let asked: Value = serde_json::from_slice(&request.body)?;
        let script = Script::find(&asked);
        let scripted = script.is_some();
        let script = script.unwrap_or(Script {
            chunks: 1,
            ..Script::default()
        });
        if asked.get("stream").and_then(Value::as_bool) != Some(true) {
            let message = json!({ "role": "assistant", "content": "yes" });
            let whole = json!({ "id": "b", "object": "chat.completion", "model": "bench",
                "choices": [{ "index": 0, "message": message, "finish_reason": "stop" }] });
            http::write_json(&mut socket, &whole.to_string())?;
            continue;
        }
        let (first, last) = answer(&mut socket, &script)?;
        let line = json!({ "scripted": scripted, "came": came, "first": first, "last": last,
            "over": now(), "call": script.call.is_some(), "bytes": request.body.len() });
        let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
        writeln!(log, "{line}")?;
    }
    Ok(())
}

/// Plays the script; when its first and its last piece were written.
fn answer(socket: &mut TcpStream, script: &Script) -> io::Result<(u64, u64)> {
    let piece = |delta: &Value, finish: Option<&str>| {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
        let piece = json!({ "id": "b", "object": "chat.completion.chunk", "model": "bench",
            "choices": [choice] });
        format!("data: {piece}\n\n")
    };
    socket.write_all(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
    )?;
    http::write_chunk(socket, &piece(&json!({ "role": "assistant" }), None))?;
    let first = now();
    let mut last = first;
    if let Some((name, arguments)) = &script.call {
        let function = json!({ "name": name, "arguments": arguments });
        let call = json!({ "index": 0, "id": format!("call_{first}"), "type": "function",
            "function": function });
        http::write_chunk(socket, &piece(&json!({ "tool_calls": [call] }), None))?;
        last = now();
    } else {
        let start = Instant::now();
        for n in 0..script.chunks {
            if script.rate > 0.0 {
                #[expect(clippy::cast_precision_loss, reason = "a handful of chunks")]
                let due = Duration::from_secs_f64(n as f64 / script.rate);
                std::thread::sleep(due.saturating_sub(start.elapsed()));
            }
            last = now();
            // The piece says when it was written, so that whoever gets it knows its way's length.
            // Twenty make a paragraph, as text that is written for people has them.
            let end = if n % 20 == 19 { "\n\n" } else { " " };
            let text = format!("w{n}@{last}{end}");
            http::write_chunk(socket, &piece(&json!({ "content": text }), None))?;
        }
    }
    let finish = script.call.as_ref().map_or("stop", |_| "tool_calls");
    http::write_chunk(socket, &piece(&json!({}), Some(finish)))?;
    let usage = json!({ "prompt_tokens": 100, "completion_tokens": script.chunks });
    let usage =
        json!({ "id": "b", "object": "chat.completion.chunk", "choices": [], "usage": usage });
    http::write_chunk(socket, &format!("data: {usage}\n\n"))?;
    http::write_chunk(socket, "data: [DONE]\n\n")?;
    socket.write_all(b"0\r\n\r\n")?;
    Ok((first, last))
}
