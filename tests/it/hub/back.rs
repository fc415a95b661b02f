//! A turn that goes wrong: Stop holds what waits, a model is tried at once, messages are taken
//! back.

use reqwest::Method;
use serde_json::{Value, json};

use lembas::rpc::RpcError;

use super::device::{Asked, Device};
use super::rig::{Rig, soon};

const ID: &str = "0123456789abcdef";

/// A chat whose first turn runs.
async fn running() -> (Rig, Device, Asked) {
    let rig = Rig::signed().await;
    let (id, token) = rig.pair(ID, "zephyr").await;
    let mut device = Device::linked(&rig, &id, &token).await;
    let opened = json!({ "sessionId": "s1",
        "modes": { "currentModeId": "edit", "availableModes": [{ "id": "edit" }] },
        "_meta": { "lembas": { "model": "practice", "mode": "edit", "seq": 0 } } });
    device.can("session/new", Ok(opened));
    let body = json!({ "device": ID, "cwd": "/home/ana/projects/api", "mode": "edit", "text": "one", "key": "key-0001" });
    rig.post("/chats", body).await;
    let asked = device.next("session/prompt").await;
    let key = asked.params["_meta"]["lembas"]["key"].as_str().unwrap();
    device.prompt("s1", 1, key, "one").await;
    chat(&rig, |c| c["chat"]["running"] == true).await;
    (rig, device, asked)
}

/// The chat's page, once it is as wanted.
async fn chat(rig: &Rig, want: impl Fn(&Value) -> bool) -> Value {
    let wait = async {
        loop {
            let got = rig.get("/chats/s1").await;
            if want(&got) {
                return got;
            }
            tokio::task::yield_now().await;
        }
    };
    soon(wait).await
}

async fn end(rig: &Rig, device: &Device, asked: Asked, seq: u64, stop: &str) {
    let data = json!({ "turn": 1, "stop": stop, "tokens": {} });
    device.event("s1", seq, "turn_end", data).await;
    asked
        .answer
        .send(Ok(json!({ "stopReason": stop })))
        .unwrap();
    chat(rig, |c| c["chat"]["running"] == false).await;
}

#[tokio::test]
async fn stop_holds_what_waits_and_what_is_written_next_goes_before_it() {
    let (rig, mut device, asked) = running().await;
    for (key, text) in [("key-a-01", "a"), ("key-b-02", "b")] {
        rig.post("/chats/s1/messages", json!({ "key": key, "text": text }))
            .await;
    }
    rig.post("/chats/s1/stop", json!({ "key": "stop-0001" }))
        .await;
    let stop = device.next("_lembas/stop").await;
    stop.answer
        .send(Ok(json!({ "outcome": "stopped", "ms": 3, "commands": 0 })))
        .unwrap();
    end(&rig, &device, asked, 2, "cancelled").await;
    let held = chat(&rig, |c| c["chat"]["progress"]["phase"] == "stopped").await;
    let queue = held["queue"].as_array().unwrap();
    assert_eq!(queue.len(), 2);
    assert!(
        queue
            .iter()
            .all(|q| q["held"] == true && q["stopped"] == true)
    );
    assert!(device.asked.try_recv().is_err(), "nothing goes by itself");
    // The same press again holds nothing that was let go.
    rig.post("/chats/s1/queue/key-b-02/hold", json!({ "held": false }))
        .await;
    let next = device.next("session/prompt").await;
    assert_eq!(
        next.params["prompt"][0]["text"], "b",
        "what was let go, goes"
    );
    device.prompt("s1", 3, "key-b-02", "b").await;
    chat(&rig, |c| c["chat"]["running"] == true).await;
    end(&rig, &device, next, 4, "end_turn").await;
    let answer = rig
        .post(
            "/chats/s1/messages",
            json!({ "key": "key-c-03", "text": "c" }),
        )
        .await;
    assert_eq!(
        answer["state"], "sent",
        "what is written next does not wait"
    );
    let next = device.next("session/prompt").await;
    assert_eq!(next.params["prompt"][0]["text"], "c");
    device.prompt("s1", 5, "key-c-03", "c").await;
    chat(&rig, |c| c["chat"]["running"] == true).await;
    end(&rig, &device, next, 6, "end_turn").await;
    let queue = rig.get("/chats/s1").await["queue"].clone();
    assert_eq!(queue[0]["key"], "key-a-01", "it waits on");
    rig.post("/chats/s1/queue/key-a-01/send", json!({})).await;
    let next = device.next("session/prompt").await;
    assert_eq!(next.params["prompt"][0]["text"], "a");
}

#[tokio::test]
async fn a_wait_is_ended_and_messages_are_taken_back_by_the_computer() {
    let (rig, mut device, asked) = running().await;
    let (retry, ()) = tokio::join!(rig.post("/chats/s1/retry", json!({})), async {
        let asked = device.next("_lembas/retry").await;
        assert_eq!(asked.params["sessionId"], "s1");
        asked
            .answer
            .send(Ok(json!({ "outcome": "retried" })))
            .unwrap();
    });
    assert_eq!(retry["state"], "retried");
    let back = json!({ "seq": 1, "key": "back-0001" });
    let (status, said) = rig
        .call(Method::POST, "/chats/s1/rewind", Some(back.clone()))
        .await;
    assert_eq!(
        (status.as_u16(), &said["error"]["code"]),
        (409, &json!("running"))
    );
    end(&rig, &device, asked, 2, "cancelled").await;
    let (answer, ()) = tokio::join!(rig.post("/chats/s1/rewind", back.clone()), async {
        let asked = device.next("_lembas/rewind").await;
        assert_eq!(
            asked.params,
            json!({ "sessionId": "s1", "seq": 1, "key": "back-0001" })
        );
        let data = json!({ "to": 1, "by": "ana, in home" });
        device.event("s1", 3, "rewound", data).await;
        asked.answer.send(Ok(json!({ "seq": 3 }))).unwrap();
    });
    assert_eq!(answer["seq"], 3);
    let got = chat(&rig, |c| {
        c["items"].as_array().is_some_and(|l| l.len() == 3)
    })
    .await;
    assert_eq!(got["items"][0]["text"], "one", "it stays readable");
    let last = &got["items"][2];
    assert_eq!((&last["kind"], &last["to"]), (&json!("rewound"), &json!(1)));
    assert_eq!(
        got["chat"]["progress"],
        Value::Null,
        "nothing is stopped any more"
    );
    // What the computer refuses is said in its words.
    let refused = RpcError::invalid_params("no").with_data(
        json!({ "reason": "prompt", "text": "item 1 is no message that can be taken back" }),
    );
    device.can("_lembas/rewind", Err(refused));
    let again = json!({ "seq": 1, "key": "back-0002" });
    let (status, said) = rig
        .call(Method::POST, "/chats/s1/rewind", Some(again))
        .await;
    assert_eq!(status.as_u16(), 422);
    assert_eq!(
        said["error"]["text"],
        "item 1 is no message that can be taken back"
    );
}
