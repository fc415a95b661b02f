//! A key stands for one request: the same again is answered as before, anything else is refused.

use reqwest::Method;
use serde_json::{Value, json};

use super::device::Device;
use super::rig::Rig;

const ID: &str = "0123456789abcdef";

async fn rig() -> (Rig, Device) {
    let rig = Rig::signed().await;
    let (id, token) = rig.pair(ID, "zephyr").await;
    let device = Device::linked(&rig, &id, &token).await;
    device.can(
        "session/new",
        Ok(json!({ "sessionId": "s1", "_meta": { "lembas": { "mode": "edit", "model": "practice" } } })),
    );
    (rig, device)
}

async fn refused(rig: &Rig, path: &str, body: Value) {
    let (status, answer) = rig.call(Method::POST, path, Some(body.clone())).await;
    assert_eq!(status, 409, "{path} {body}: {answer}");
    let error = &answer["error"];
    assert_eq!(error["code"], "key_used", "{answer}");
    for part in ["text", "why", "try"] {
        assert!(error[part].is_string(), "{answer}");
    }
}

#[tokio::test]
async fn a_used_key_of_a_chat_with_anything_else_is_refused() {
    let (rig, _device) = rig().await;
    let chat = json!({ "device": ID, "cwd": "/home/ana", "key": "key-0001", "mode": "edit" });
    let first = rig.post("/chats", chat.clone()).await;
    let again = rig.post("/chats", chat.clone()).await;
    assert_eq!(first["chat"]["id"], again["chat"]["id"]);
    for (field, value) in [
        ("cwd", json!("/home/ben")),
        ("mode", json!("plan")),
        ("model", json!("practice")),
        ("level", json!("default")),
        ("text", json!("do it")),
        ("parts", json!([{ "type": "text", "text": "a" }])),
    ] {
        let mut other = chat.clone();
        other[field] = value;
        refused(&rig, "/chats", other).await;
    }
    assert_eq!(rig.get("/chats").await["total"], 1);
}

#[tokio::test]
async fn a_used_key_of_a_message_or_a_stop_with_anything_else_is_refused() {
    let (rig, device) = rig().await;
    let chat = json!({ "device": ID, "cwd": "/home/ana", "key": "key-0001" });
    let one = rig.post("/chats", chat).await["chat"]["id"].clone();
    device.can(
        "session/new",
        Ok(json!({ "sessionId": "s2", "_meta": { "lembas": { "mode": "edit", "model": "practice" } } })),
    );
    let chat = json!({ "device": ID, "cwd": "/home/ana", "key": "key-0002" });
    let two = rig.post("/chats", chat).await["chat"]["id"].clone();
    let at = |chat: &Value, what: &str| format!("/chats/{}/{what}", chat.as_str().unwrap());
    // The first goes, the second waits behind it: the same holds for both.
    for key in ["key-00000001", "key-00000002"] {
        let message = json!({ "key": key, "text": "a" });
        rig.post(&at(&one, "messages"), message.clone()).await;
        rig.post(&at(&one, "messages"), message.clone()).await;
        for (field, value) in [
            ("text", json!("b")),
            ("when", json!("next")),
            ("parts", json!([{ "type": "text", "text": "a" }])),
        ] {
            let mut other = message.clone();
            other[field] = value;
            refused(&rig, &at(&one, "messages"), other).await;
        }
        refused(&rig, &at(&two, "messages"), message).await;
    }
    // What a person changed afterwards is still the message of its key.
    let queued = at(&one, "queue/key-00000002");
    let (status, _) = rig
        .call(Method::PATCH, &queued, Some(json!({ "text": "changed" })))
        .await;
    assert_eq!(status, 200);
    let same = json!({ "key": "key-00000002", "text": "a" });
    let answer = rig.post(&at(&one, "messages"), same).await;
    assert_eq!(answer["queue"][0]["text"], "changed", "{answer}");
    // A stop is one chat's.
    rig.post(&at(&one, "stop"), json!({ "key": "key-00000003" }))
        .await;
    rig.post(&at(&one, "stop"), json!({ "key": "key-00000003" }))
        .await;
    refused(&rig, &at(&two, "stop"), json!({ "key": "key-00000003" })).await;
}

#[tokio::test]
async fn a_used_key_of_a_scheduled_run_with_anything_else_is_refused() {
    let (rig, device) = rig().await;
    device.can("_lembas/sync", Ok(json!({ "sessions": [], "head": 1 })));
    let path = format!("/devices/{ID}/scheduled");
    let run =
        json!({ "cwd": "/home/ana", "text": "look", "model": "practice", "key": "key-00000001" });
    let first = rig.post(&path, run.clone()).await;
    let again = rig.post(&path, run.clone()).await;
    assert_eq!(first["chat"]["id"], again["chat"]["id"]);
    assert_eq!(first["chat"]["origin"], "schedule");
    let mut other = run;
    other["text"] = json!("look again");
    refused(&rig, &path, other).await;
}
