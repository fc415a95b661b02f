//! Frames that are wrong, on stdin of `lembas acp` and on the hub's link.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

use serde_json::{Value, json};

use super::{hold, sound};
use crate::cli::Home;
use crate::hub::rig::Rig;

/// Lines before the handshake, each with the answer that it gets.
const BEFORE: [&str; 14] = [
    "not JSON",
    "{\"jsonrpc\":\"2.0\",",
    "[]",
    "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\"}]",
    "4",
    "{}",
    r#"{"jsonrpc":"2.0","id":1,"method":4}"#,
    r#"{"jsonrpc":"1.0","id":1,"method":"initialize"}"#,
    r#"{"id":1,"method":"initialize"}"#,
    r#"{"jsonrpc":"2.0","id":{},"method":"initialize"}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":"text"}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{}}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"one"}}"#,
];

/// Methods and params behind it.
fn behind() -> Vec<(&'static str, Value)> {
    let new = |more: Value| {
        let mut params = json!({ "cwd": "/", "mcpServers": [] });
        params
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        params
    };
    let prompt = |prompt: Value| json!({ "sessionId": "nobody", "prompt": prompt });
    vec![
        ("initialize", json!({ "protocolVersion": 1 })),
        ("nonsense", json!({})),
        ("_nonsense", json!({})),
        ("authenticate", json!({ "methodId": "key" })),
        ("session/new", json!({})),
        ("session/new", json!([])),
        ("session/new", new(json!({ "cwd": 4 }))),
        ("session/new", new(json!({ "cwd": "projects" }))),
        ("session/new", new(json!({ "cwd": "/nowhere/at/all" }))),
        ("session/new", new(json!({ "cwd": "/etc/passwd" }))),
        (
            "session/new",
            new(
                json!({ "mcpServers": [{ "name": "x", "command": "/bin/x", "args": [], "env": [] }] }),
            ),
        ),
        ("session/new", new(json!({ "mcpServers": "none" }))),
        ("session/new", new(json!({ "_meta": { "lembas": 4 } }))),
        (
            "session/new",
            new(json!({ "_meta": { "lembas": { "mode": "all" } } })),
        ),
        (
            "session/new",
            new(json!({ "_meta": { "lembas": { "key": "x".repeat(300) } } })),
        ),
        (
            "session/new",
            new(json!({ "_meta": { "lembas": { "scheduled": { "schedule": "s" } } } })),
        ),
        ("session/load", json!({ "sessionId": "nobody" })),
        (
            "session/load",
            json!({ "sessionId": "nobody", "cwd": "/", "mcpServers": [] }),
        ),
        (
            "session/resume",
            json!({ "sessionId": "nobody", "cwd": "/" }),
        ),
        ("session/list", json!({ "cursor": "nonsense" })),
        ("session/prompt", json!({})),
        ("session/prompt", prompt(json!([]))),
        ("session/prompt", prompt(json!("hello"))),
        ("session/prompt", prompt(json!([{ "type": "text" }]))),
        (
            "session/prompt",
            prompt(json!([{ "type": "song", "text": "la" }])),
        ),
        (
            "session/prompt",
            prompt(json!([{ "type": "text", "text": "hello" }])),
        ),
        (
            "session/set_mode",
            json!({ "sessionId": "nobody", "modeId": "all" }),
        ),
        (
            "session/set_mode",
            json!({ "sessionId": "nobody", "modeId": "plan" }),
        ),
        (
            "session/set_config_option",
            json!({ "sessionId": "nobody" }),
        ),
        ("session/delete", json!({ "sessionId": 4 })),
    ]
}

fn row(sent: &str, answer: &str) -> String {
    let answer: Value = serde_json::from_str(answer).unwrap();
    let error = &answer["error"];
    let sent = sent.chars().take(160).collect::<String>();
    let data = match &error["data"] {
        Value::Null => String::new(),
        data => format!(" {data}"),
    };
    let text = error["message"].as_str().unwrap_or_default();
    let whole = format!("> {sent}\n< {} {text}{data}\n", error["code"]);
    assert!(error["code"].is_i64(), "{whole} {answer}");
    // A frame's next step stands in the same sentence; what is for people is `data.text`.
    sound(&whole, text, "is in it");
    if let Some(said) = error["data"]["text"].as_str() {
        sound(&whole, said, "is in it");
    }
    whole
}

#[test]
fn every_wrong_line_of_an_editor() {
    let home = Home::new();
    let mut acp = crate::tied::lembas()
        .env_clear()
        .env("HOME", home.home())
        .env("PATH", "/usr/bin:/bin")
        .arg("acp")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut to = acp.stdin.take().unwrap();
    let mut from = BufReader::new(acp.stdout.take().unwrap());
    let mut say = |line: &str| {
        writeln!(to, "{line}").unwrap();
        let mut answer = String::new();
        from.read_line(&mut answer).unwrap();
        answer
    };
    let mut all: Vec<String> = BEFORE.iter().map(|line| row(line, &say(line))).collect();
    let long = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{}\"}}",
        "x".repeat(5 * 1024 * 1024)
    );
    all.push(row(&long, &say(&long)));
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize",
                        "params": { "protocolVersion": 1 } });
    assert!(say(&hello.to_string()).contains("agentCapabilities"));
    for (n, (method, params)) in behind().into_iter().enumerate() {
        let line = json!({ "jsonrpc": "2.0", "id": n + 1, "method": method, "params": params });
        let sent = format!("{method} {params}");
        all.push(row(&sent, &say(&line.to_string())));
    }
    drop(to);
    assert!(acp.wait().unwrap().success());
    hold("frames", &all.join("\n"));
}

/// The hub's end of the link: what no frame may be closes it, with the reason.
#[tokio::test]
async fn every_wrong_dial_and_what_is_no_text() {
    use futures_util::{SinkExt as _, StreamExt as _};
    use lembas::link::ws;
    use tokio_tungstenite::tungstenite::{Message, client::IntoClientRequest as _};

    let rig = Rig::signed().await;
    let (id, token) = rig.pair("0123456789abcdef", "zephyr").await;
    let (other, gone) = rig.pair("fedcba9876543210", "gone").await;
    rig.call(reqwest::Method::DELETE, &format!("/devices/{other}"), None)
        .await;
    let url = rig.url("/link/v3").replacen("http", "ws", 1);
    let dial = |id: &str, token: &str, boot: &str, protocol: &str| {
        let mut request = url.clone().into_client_request().unwrap();
        let headers = request.headers_mut();
        if !token.is_empty() {
            headers.insert("authorization", format!("Bearer {token}").parse().unwrap());
        }
        headers.insert("sec-websocket-protocol", protocol.parse().unwrap());
        headers.insert(ws::HEADER_DEVICE, id.parse().unwrap());
        headers.insert(ws::HEADER_BOOT, boot.parse().unwrap());
        tokio_tungstenite::connect_async(request)
    };
    let mut all = Vec::new();
    let long = "b".repeat(200);
    for (what, id, token, boot, protocol) in [
        ("no token", id.as_str(), "", "b1", ws::SUBPROTOCOL),
        ("no such token", &id, "nonsense", "b1", ws::SUBPROTOCOL),
        (
            "a token taken back",
            &other,
            gone.as_str(),
            "b1",
            ws::SUBPROTOCOL,
        ),
        (
            "the token of another",
            "somebody",
            token.as_str(),
            "b1",
            ws::SUBPROTOCOL,
        ),
        ("no boot", &id, &token, "", ws::SUBPROTOCOL),
        ("a boot too long", &id, &token, &long, ws::SUBPROTOCOL),
        ("an older link", &id, &token, "b1", "lembas.link.2"),
        ("a newer link", &id, &token, "b1", "lembas.link.4"),
        ("no link", &id, &token, "b1", "chat"),
    ] {
        let Err(tokio_tungstenite::tungstenite::Error::Http(answer)) =
            dial(id, token, boot, protocol).await
        else {
            panic!("{what}: it was let in");
        };
        let body: Value = serde_json::from_slice(answer.body().as_ref().unwrap()).unwrap();
        let text = body["text"].as_str().unwrap();
        let whole = format!("{what}\n< {} {text}\n", answer.status().as_u16());
        sound(&whole, text, "is in it");
        all.push(whole);
    }
    for (what, frame) in [(
        "a frame too long",
        Message::text("x".repeat(5 * 1024 * 1024)),
    )] {
        let (mut socket, _) = dial(&id, &token, what, ws::SUBPROTOCOL).await.unwrap();
        // It may close while we write: what it said is read all the same.
        let _ = socket.send(frame).await;
        let close = loop {
            match crate::hub::rig::soon(socket.next()).await {
                Some(Ok(Message::Close(Some(close)))) => break Some(close),
                Some(Ok(_)) => {}
                Some(Err(_)) | None => break None,
            }
        };
        let close = close.map_or_else(
            || "closed without a word".to_owned(),
            |close| format!("{} {}", u16::from(close.code), close.reason),
        );
        all.push(format!("{what}\n< {close}\n"));
    }
    hold("dials", &all.join("\n"));
}
