//! Two people at one instance: nothing of the one is seen, changed or guessed by the other.

use reqwest::Method;
use serde_json::{Value, json};

use super::device::{Device, Dial};
use super::rig::{Rig, cookie_of};

const ANAS: &str = "0123456789abcdef";
const BENS: &str = "fedcba9876543210";

/// Every address of `/api/v2` with what it needs, the ids being Ana's. A new one that is not here
/// fails the test.
fn guesses(chat: &str, browser: &str) -> Vec<(Method, &'static str, String, Option<Value>)> {
    let key = "key-00000001";
    let rows: Vec<(Method, &'static str, Option<Value>)> = vec![
        (Method::DELETE, "/sessions/{id}", None),
        (
            Method::PATCH,
            "/devices/{id}",
            Some(json!({ "name": "mine" })),
        ),
        (Method::DELETE, "/devices/{id}", None),
        (Method::GET, "/devices/{id}/directories", None),
        (Method::GET, "/devices/{id}/rules", None),
        (Method::DELETE, "/devices/{id}/rules/{rule}", None),
        (Method::POST, "/devices/{id}/retry", None),
        (
            Method::POST,
            "/devices/{id}/scheduled",
            Some(json!({ "cwd": "/", "text": "a", "model": "practice", "key": key })),
        ),
        (
            Method::POST,
            "/devices/{id}/monitor",
            Some(json!({ "cwd": "/", "command": "ls" })),
        ),
        (
            Method::POST,
            "/chats",
            Some(json!({ "device": ANAS, "cwd": "/", "model": "practice", "key": key })),
        ),
        (Method::GET, "/chats/{id}", None),
        (
            Method::PATCH,
            "/chats/{id}",
            Some(json!({ "title": "mine", "mode": "auto" })),
        ),
        (Method::DELETE, "/chats/{id}", None),
        (Method::GET, "/chats/{id}/items", None),
        (Method::GET, "/chats/{id}/output/{call}", None),
        (
            Method::POST,
            "/chats/{id}/messages",
            Some(json!({ "key": key, "text": "a" })),
        ),
        (
            Method::PATCH,
            "/chats/{id}/queue/{key}",
            Some(json!({ "text": "a" })),
        ),
        (Method::DELETE, "/chats/{id}/queue/{key}", None),
        (Method::POST, "/chats/{id}/queue/{key}/send", None),
        (
            Method::POST,
            "/chats/{id}/queue/{key}/hold",
            Some(json!({ "held": true })),
        ),
        (
            Method::POST,
            "/chats/{id}/stop",
            Some(json!({ "key": key })),
        ),
        (Method::POST, "/chats/{id}/retry", None),
        (
            Method::POST,
            "/chats/{id}/rewind",
            Some(json!({ "seq": 1, "key": key })),
        ),
        (
            Method::PUT,
            "/chats/{id}/draft",
            Some(json!({ "text": "mine" })),
        ),
        (
            Method::POST,
            "/asks/{ask}",
            Some(json!({ "digest": "sha256:d", "outcome": "allow" })),
        ),
        (
            Method::POST,
            "/asks/{ask}/extend",
            Some(json!({ "seconds": 600 })),
        ),
        (Method::DELETE, "/models/{id}", None),
        (Method::POST, "/models/{id}/default", None),
    ];
    rows.into_iter()
        .map(|(method, path, body)| {
            let id = match path.split('/').nth(1).unwrap() {
                "sessions" => browser,
                "devices" => ANAS,
                "chats" => chat,
                _ => "anas-model",
            };
            let real = path
                .replace("{id}", id)
                .replace("{key}", "queued-0001")
                .replace("{ask}", "ask-1")
                .replace("{rule}", "rule-1")
                .replace("{call}", "call-1");
            (method, path, real, body)
        })
        .collect()
}

/// Addresses without an id: they speak of who asks, and are looked at below.
const OF_WHO_ASKS: [&str; 18] = [
    "/me",
    "/state",
    "/signin",
    "/signout",
    "/setup",
    "/account/password",
    "/sessions",
    "/devices",
    "/link/lookup",
    "/link/approve",
    "/link/deny",
    "/chats",
    "/asks",
    "/models",
    "/models/test",
    "/events",
    "/chats/{id}",
    "/devices/{id}",
];

fn is_whole(guesses: &[(Method, &'static str, String, Option<Value>)]) {
    let table =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/src/hub/api.rs")).unwrap();
    let missing: Vec<&str> = table
        .split("route(")
        .skip(1)
        .filter_map(|route| route.split('"').nth(1))
        .filter(|path| {
            !OF_WHO_ASKS.contains(path) && !guesses.iter().any(|(_, known, ..)| known == path)
        })
        .collect();
    assert!(missing.is_empty(), "nobody guesses at {missing:?}");
}

async fn other_account(rig: &Rig) -> String {
    let link = rig.hub.add_account("ben").await.unwrap().unwrap();
    cookie_of(&rig.http.get(&link.url).send().await.unwrap())
}

#[tokio::test]
async fn nothing_of_one_person_is_seen_or_changed_by_another() {
    let rig = Rig::signed().await;
    let ben = other_account(&rig).await;
    let (id, token) = rig.pair(ANAS, "anas-computer").await;
    let device = Device::linked(&rig, &id, &token).await;
    device.can(
        "session/new",
        Ok(json!({ "sessionId": "anas-chat", "_meta": { "lembas": { "mode": "edit", "model": "practice" } } })),
    );
    let new = json!({ "device": id, "cwd": "/home/ana/secret", "key": "key-0001" });
    let chat = rig.post("/chats", new).await["chat"]["id"].clone();
    let chat = chat.as_str().unwrap().to_owned();
    let up = super::upstream::start(|_| {
        super::upstream::Say::Whole(
            200,
            "",
            json!({ "choices": [{ "message": { "role": "assistant", "content": "a" } }] })
                .to_string(),
        )
    })
    .await;
    let model = json!({ "name": "anas-model", "url": up.url, "key": "anas-key", "model": "m" });
    rig.post("/models", model).await;
    // One message goes, one waits; a question is open; a command has its output.
    for key in ["went-0001", "queued-0001"] {
        let message = json!({ "key": key, "text": "anas-words" });
        rig.post(&format!("/chats/{chat}/messages"), message).await;
    }
    let mut anas = rig.events(None).await;
    let mut bens = rig.events_as(&ben, None).await;
    bens.of("hello").await;
    let asking = device.peer.clone();
    let ask = json!({ "sessionId": "anas-chat", "toolCall": { "toolCallId": "call-1" },
        "options": [], "_meta": { "lembas": { "ask": "ask-1", "digest": "sha256:d",
        "command": "anas-command", "cwd": "/home/ana", "scopes": ["once"] } } });
    let asked =
        tokio::spawn(async move { asking.request("session/request_permission", ask).await });
    anas.of("ask").await;

    let browser = rig.get("/sessions").await["sessions"][0]["id"].clone();
    let all = guesses(&chat, browser.as_str().unwrap());
    is_whole(&all);
    for (method, _, path, body) in &all {
        let (status, answer) = rig.call_as(&ben, method.clone(), path, body.clone()).await;
        assert_eq!(status, 404, "{method} {path}: {answer}");
        assert!(
            !answer.to_string().contains("anas-"),
            "{method} {path}: {answer}"
        );
    }
    for path in [
        "/me",
        "/state",
        "/devices",
        "/chats",
        "/asks",
        "/models",
        "/sessions",
    ] {
        let (status, answer) = rig.call_as(&ben, Method::GET, path, None).await;
        assert_eq!(status, 200, "{path}: {answer}");
        let text = answer.to_string();
        for own in ["anas-", "ask-1", &chat, ANAS, "/home/ana"] {
            assert!(!text.contains(own), "{path} says {own}: {text}");
        }
    }
    // Signing others out ends one's own browsers only.
    rig.call_as(&ben, Method::DELETE, "/sessions", None).await;
    rig.get("/me").await;
    // The model is there for who has it only, and two may be called alike.
    let uses = json!({ "model": "anas-model", "messages": [] });
    let answer = rig
        .http
        .post(rig.url("/v1/chat/completions"))
        .header("cookie", &ben)
        .header("x-lembas", "1")
        .json(&uses)
        .send()
        .await
        .unwrap();
    assert_eq!(answer.status(), 404);
    let before = up.heard.lock().len();
    let bens_own = json!({ "name": "anas-model", "url": up.url, "key": "bens-key", "model": "m" });
    let (status, answer) = rig
        .call_as(&ben, Method::POST, "/models", Some(bens_own))
        .await;
    assert_eq!(status, 200, "{answer}");
    assert!(
        up.heard.lock()[before..]
            .iter()
            .all(|r| !r.contains("anas-key")),
        "a key went with another's request"
    );
    let (status, _) = rig
        .call_as(&ben, Method::DELETE, "/models/anas-model", None)
        .await;
    assert_eq!(status, 200);
    let still = rig.get("/models").await;
    assert!(still.to_string().contains("anas-model"), "{still}");

    // A computer of Ben's that says how Ana's question ended is not believed.
    let grant = rig.authorize(BENS, "bens-computer").await;
    let code = json!({ "code": grant["user_code"] });
    rig.call_as(&ben, Method::POST, "/link/approve", Some(code))
        .await;
    let (status, paired) = rig.poll(&grant).await;
    assert_eq!(status, 200, "{paired}");
    let bens_token = paired["access_token"].as_str().unwrap();
    let mut theirs = Dial::new(BENS, bens_token).go(&rig).await.expect("linked");
    let online =
        |e: &Value| (e["type"] == "device" && e["device"]["state"] == "online").then_some(());
    bens.until(online).await;
    theirs
        .event(
            "bens-chat",
            1,
            "ask_settled",
            json!({ "ask": "ask-1", "how": "allowed", "by": "ben" }),
        )
        .await;
    theirs.text("bens-chat", 2, 0, "taken in").await;
    bens.until(|e| (e["type"] == "chat" && e["chat"]["id"] == "bens-chat").then_some(()))
        .await;
    // What it said is stored once it is acknowledged.
    while theirs.ack().await["seq"].as_u64().unwrap_or(0) < 1 {}
    let open = rig.get("/asks").await;
    assert_eq!(open["asks"][0]["ask"], "ask-1", "{open}");
    assert_eq!(open["asks"][0]["state"], "open", "{open}");

    // A computer that is Ana's is not paired to Ben.
    let grant = rig.authorize(ANAS, "bens-trick").await;
    let code = json!({ "code": grant["user_code"] });
    rig.call_as(&ben, Method::POST, "/link/approve", Some(code))
        .await;
    let (status, refused) = rig.poll(&grant).await;
    assert_eq!(status, 400, "{refused}");

    // And in all that time Ben's stream said nothing of Ana's.
    rig.call_as(
        &ben,
        Method::PATCH,
        &format!("/devices/{BENS}"),
        Some(json!({ "name": "the end" })),
    )
    .await;
    bens.until(|e| {
        let text = e.to_string();
        assert!(!text.contains("anas-") && !text.contains("ask-1"), "{text}");
        text.contains("the end").then_some(())
    })
    .await;
    asked.abort();
}
