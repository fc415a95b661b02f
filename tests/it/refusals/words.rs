//! Whatever stands in a field, the answer speaks of fields, and never in a parser's words.

use reqwest::Method;
use serde_json::{Value, json};

use super::{FOREIGN, hold};
use crate::hub::device::Device;
use crate::hub::rig::Rig;

/// A parser's words; [`FOREIGN`] has those that no text of ours may hold.
const PARSERS: [&str; 8] = [
    "expected ",
    "sequence",
    " map",
    "struct ",
    "variant",
    "untagged",
    "tuple",
    "deserial",
];

/// What may stand where something else is wanted.
pub(crate) fn hostile() -> Vec<Value> {
    vec![
        json!(4),
        json!(-1.5),
        json!(true),
        json!({}),
        json!([]),
        json!([[]]),
        json!([{}]),
        json!({ "a": { "b": 1 } }),
        json!("nonsense"),
        json!("\u{1b}[2J`x`"),
        json!(u64::MAX),
        json!("n".repeat(5000)),
    ]
}

/// Whether a text is free of a parser's words, and short.
pub(crate) fn plain(of: &str, text: &str) {
    let foreign: Vec<&&str> = PARSERS
        .iter()
        .chain(&FOREIGN)
        .filter(|w| text.contains(**w))
        .collect();
    assert!(foreign.is_empty(), "{of}: {foreign:?} in {text}");
    assert!(text.chars().count() < 2100, "{of}: {text}");
}

/// Every address that takes a body, with every field there is.
fn bodies() -> Vec<(Method, &'static str, Value)> {
    let chat = json!({ "device": "0123456789abcdef", "cwd": "/home/ana", "model": "practice",
        "mode": "edit", "level": "default", "text": "a", "parts": [], "key": "key-00000001" });
    vec![
        (
            Method::POST,
            "/signin",
            json!({ "name": "a", "password": "a" }),
        ),
        (
            Method::POST,
            "/setup",
            json!({ "token": "a", "name": "a", "password": "a" }),
        ),
        (
            Method::POST,
            "/account/password",
            json!({ "old": "a", "new": "a", "name": "a" }),
        ),
        (
            Method::PATCH,
            "/devices/0123456789abcdef",
            json!({ "name": "a" }),
        ),
        (
            Method::POST,
            "/devices/0123456789abcdef/scheduled",
            json!({ "cwd": "/", "text": "a", "model": "practice", "mode": "edit",
                    "approval_wait": 60, "key": "key-00000002" }),
        ),
        (
            Method::POST,
            "/devices/0123456789abcdef/monitor",
            json!({ "cwd": "/", "command": "ls", "mode": "edit", "timeout": 5, "last": "a",
                    "confirm": 0, "fail_on": "nonzero", "excerpt": "full" }),
        ),
        (Method::POST, "/link/lookup", json!({ "code": "a" })),
        (Method::POST, "/link/approve", json!({ "code": "a" })),
        (Method::POST, "/link/deny", json!({ "code": "a" })),
        (Method::POST, "/chats", chat),
        (
            Method::PATCH,
            "/chats/s1",
            json!({ "title": "a", "archived": false, "seen": 1, "mode": "edit",
                    "model": "practice", "level": "default" }),
        ),
        (
            Method::POST,
            "/chats/s1/messages",
            json!({ "key": "key-00000003", "text": "a", "when": "next", "parts": [] }),
        ),
        (
            Method::PATCH,
            "/chats/s1/queue/nobody",
            json!({ "text": "a", "when": "next" }),
        ),
        (
            Method::POST,
            "/chats/s1/queue/nobody/hold",
            json!({ "held": true }),
        ),
        (
            Method::POST,
            "/chats/s1/stop",
            json!({ "key": "key-00000004" }),
        ),
        (Method::PUT, "/chats/s1/draft", json!({ "text": "a" })),
        (
            Method::POST,
            "/asks/nobody",
            json!({ "digest": "a", "outcome": "allow", "scope": "once", "note": "a",
                    "selected": ["a"] }),
        ),
        (
            Method::POST,
            "/asks/nobody/extend",
            json!({ "seconds": 60 }),
        ),
        (
            Method::POST,
            "/models",
            json!({ "name": "a", "url": "nonsense", "key": "a", "model": "a", "context": 1,
                    "efforts": ["low"] }),
        ),
        (
            Method::POST,
            "/models/test",
            json!({ "name": "a", "url": "nonsense", "key": "a", "model": "a", "context": 1,
                    "efforts": ["low"] }),
        ),
    ]
}

async fn rig() -> (Rig, Device) {
    let rig = Rig::signed().await;
    let (id, token) = rig.pair("0123456789abcdef", "zephyr").await;
    let device = Device::linked(&rig, &id, &token).await;
    device.can(
        "session/new",
        Ok(json!({ "sessionId": "s1", "_meta": { "lembas": { "mode": "edit", "model": "practice" } } })),
    );
    let chat = json!({ "device": id, "cwd": "/home/ana/projects/api", "key": "key-0001" });
    rig.post("/chats", chat).await;
    (rig, device)
}

/// What an answer says in all its parts.
fn said(answer: &Value) -> String {
    let error = &answer["error"];
    let of = |key: &str| error[key].as_str().unwrap_or_default();
    format!("{}\n  {}", of("text"), of("why"))
}

#[tokio::test]
async fn no_field_of_no_body_is_answered_in_a_parsers_words() {
    let (rig, device) = rig().await;
    device.can("_lembas/monitor", Ok(json!({ "hash": "sha256:00" })));
    let chat = rig.get("/chats").await["chats"][0]["id"].clone();
    let chat = chat.as_str().unwrap();
    for (method, path, body) in bodies() {
        let path = path.replace("s1", chat);
        for field in body.as_object().unwrap().keys() {
            for value in hostile() {
                let mut wrong = body.clone();
                wrong[field] = value.clone();
                let (status, answer) = rig.call(method.clone(), &path, Some(wrong)).await;
                let of = format!("{method} {path} {field}: {value:.60}");
                assert!(status.as_u16() < 500, "{of}: {status} {answer}");
                assert!(
                    status.is_success() || answer["error"]["text"].is_string(),
                    "{of}: {status} {answer}"
                );
                plain(&of, &said(&answer));
            }
        }
    }
}

#[tokio::test]
async fn a_wrong_word_is_answered_with_the_words_there_are() {
    let (rig, _device) = rig().await;
    let chat = rig.get("/chats").await["chats"][0]["id"].clone();
    let chat = format!("/chats/{}", chat.as_str().unwrap());
    let messages = format!("{chat}/messages");
    let new = |field: &str, value: Value| {
        let mut body = json!({ "device": "0123456789abcdef", "cwd": "/home/ana",
                               "key": "key-00000009" });
        body[field] = value;
        body
    };
    let message = |field: &str, value: Value| {
        let mut body = json!({ "key": "key-00000008", "text": "a" });
        body[field] = value;
        body
    };
    let monitor = |field: &str, value: Value| {
        let mut body = json!({ "cwd": "/", "command": "ls" });
        body[field] = value;
        body
    };
    let check = "/devices/0123456789abcdef/monitor";
    let mut table = String::new();
    for (method, path, body) in [
        (Method::POST, "/chats", new("mode", json!("all"))),
        (Method::POST, "/chats", new("mode", json!({}))),
        (Method::POST, "/chats", new("mode", json!(4))),
        (Method::POST, "/chats", new("model", json!("nobody has it"))),
        (Method::POST, "/chats", new("level", json!("much"))),
        (Method::PATCH, &chat, json!({ "mode": "all" })),
        (Method::PATCH, &chat, json!({ "mode": ["edit"] })),
        (Method::PATCH, &chat, json!({ "model": "nobody has it" })),
        (Method::PATCH, &chat, json!({ "level": "much" })),
        (Method::POST, &messages, message("when", json!("later"))),
        (Method::POST, &messages, message("when", json!({}))),
        (Method::POST, &messages, message("parts", json!(["a"]))),
        (
            Method::POST,
            &messages,
            message("parts", json!([{ "type": "song" }])),
        ),
        (
            Method::POST,
            &messages,
            message("parts", json!([{ "type": 4 }])),
        ),
        (
            Method::POST,
            &messages,
            message(
                "parts",
                json!([{ "type": "image", "mimeType": "image/png", "data": "!" }]),
            ),
        ),
        (Method::POST, check, monitor("mode", json!("all"))),
        (Method::POST, check, monitor("mode", json!("plan"))),
        (Method::POST, check, monitor("fail_on", json!("zero"))),
        (Method::POST, check, monitor("excerpt", json!(1))),
        (
            Method::POST,
            "/asks/nobody",
            json!({ "digest": "d", "outcome": "perhaps" }),
        ),
        (
            Method::POST,
            "/asks/nobody",
            json!({ "digest": "d", "outcome": {} }),
        ),
        (
            Method::POST,
            "/asks/nobody",
            json!({ "digest": "d", "outcome": "allow", "scope": "for ever" }),
        ),
    ] {
        let shown = body.to_string();
        let (status, answer) = rig.call(method.clone(), path, Some(body)).await;
        let path = path.replace(&chat, "/chats/{id}");
        table.push_str(&format!(
            "{method} {path} {shown}\n  {status}\n  {}\n",
            said(&answer)
        ));
        assert!(status.is_client_error(), "{table}");
        assert!(answer["error"]["try"].is_string(), "{table}");
    }
    hold("words", &table);
}

#[tokio::test]
async fn an_address_that_is_no_text_is_refused_like_any_other() {
    let rig = Rig::signed().await;
    let mut table = String::new();
    for (method, path) in [
        (Method::GET, "/api/v2/chats/%ff"),
        (Method::GET, "/api/v2/chats/%ff/items"),
        (Method::GET, "/api/v2/chats/%c3%28/output/%ff"),
        (Method::DELETE, "/api/v2/devices/%ff"),
        (Method::POST, "/api/v2/models/%ff/default"),
        (Method::GET, "/api/v2/chats/%"),
        (Method::GET, "/api/v2/chats/%zz"),
        (Method::GET, "/api/v2/%ff"),
        (Method::GET, "/api/v2/chats?limit=%ff"),
        (Method::GET, "/api/v2/chats?device=%ff&limit=1"),
        (Method::GET, "/api/v2/events?after=%ff"),
        (Method::GET, "/v1/%ff"),
        (Method::GET, "/v1/models?a=%ff"),
        (Method::GET, "/c/%ff"),
        (Method::GET, "/in/%ff"),
        (Method::GET, "/assets/%ff"),
        (Method::GET, "/%ff"),
    ] {
        let answer = rig
            .http
            .request(method.clone(), rig.url(path))
            .header("cookie", &rig.cookie)
            .header("x-lembas", "1")
            .header("origin", rig.hub.url())
            .header("accept", "text/html")
            .send();
        if path.contains("/events") {
            // Refused before it streams.
            assert_eq!(crate::hub::rig::soon(answer).await.unwrap().status(), 400);
            continue;
        }
        let answer = crate::hub::rig::soon(answer).await.unwrap();
        let status = answer.status();
        let kind = answer.headers().get("content-type").cloned();
        let kind = kind
            .map(|k| k.to_str().unwrap().to_owned())
            .unwrap_or_default();
        let to = answer.headers().get("location").cloned();
        let text = answer.text().await.unwrap();
        let shown = match serde_json::from_str::<Value>(&text) {
            Ok(value) if value["error"].is_object() => said(&value),
            Ok(_) => "what it lists".to_owned(),
            Err(_) if text.contains("<html") => "the page".to_owned(),
            Err(_) => format!("{to:?}"),
        };
        table.push_str(&format!("{method} {path}\n  {status} {kind}\n  {shown}\n"));
    }
    hold("addresses", &table);
}
