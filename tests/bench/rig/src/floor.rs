//! The least that an agent can do: what all ratios are held against. It passes each piece of the
//! model's text on as it comes and keeps nothing.

use std::io::{self, BufRead as _, BufReader, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::http;

pub(crate) fn run(address: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let asked: Value = serde_json::from_str(&line?)?;
        let text = |pointer: &str| asked.pointer(pointer).and_then(Value::as_str);
        let result = match text("/method").unwrap_or_default() {
            "initialize" => json!({ "protocolVersion": 1, "agentCapabilities": {} }),
            "session/new" => json!({ "sessionId": "floor" }),
            "session/prompt" => {
                turn(
                    address,
                    text("/params/prompt/0/text").unwrap_or_default(),
                    &mut out,
                )?;
                json!({ "stopReason": "end_turn" })
            }
            _ => json!({}),
        };
        if let Some(id) = asked.get("id") {
            let answer = json!({ "jsonrpc": "2.0", "id": id, "result": result });
            line_out(&mut out, &answer)?;
        }
    }
    Ok(())
}

fn line_out(out: &mut impl Write, value: &Value) -> io::Result<()> {
    writeln!(out, "{value}")?;
    out.flush()
}

fn turn(address: &str, prompt: &str, out: &mut impl Write) -> io::Result<()> {
    let body = json!({ "model": "bench", "stream": true,
        "messages": [{ "role": "user", "content": prompt }] })
    .to_string();
    let mut socket = TcpStream::connect(address)?;
    socket.set_nodelay(true)?;
    let length = body.len();
    socket.write_all(
        format!("POST /v1/chat/completions HTTP/1.1\r\nhost: {address}\r\ncontent-length: {length}\r\n\r\n{body}")
            .as_bytes(),
    )?;
    let mut from = BufReader::with_capacity(64 * 1024, socket);
    http::answer(&mut from)?;
    while let Some(chunk) = http::chunk(&mut from)? {
        let Some(data) = chunk.strip_prefix(b"data: ".as_slice()) else {
            continue;
        };
        // What is no JSON is the end mark.
        let Ok(event) = serde_json::from_slice::<Value>(data) else {
            continue;
        };
        let said = event.pointer("/choices/0/delta/content");
        let Some(said) = said.and_then(Value::as_str) else {
            continue;
        };
        let content = json!({ "type": "text", "text": said });
        let update = json!({ "sessionUpdate": "agent_message_chunk", "content": content });
        let params = json!({ "sessionId": "floor", "update": update });
        let notice = json!({ "jsonrpc": "2.0", "method": "session/update", "params": params });
        line_out(out, &notice)?;
    }
    Ok(())
}
