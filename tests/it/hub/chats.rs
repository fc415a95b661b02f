//! Chats: what a device says is stored once and shown as it is; what a person says arrives once.

use reqwest::Method;
use serde_json::{Value, json};

use lembas::rpc::RpcError;

use super::device::{Device, Dial};
use super::rig::{Rig, soon};

const ID: &str = "0123456789abcdef";

async fn linked() -> (Rig, Device, String, String) {
    let rig = Rig::signed().await;
    let (id, token) = rig.pair(ID, "zephyr").await;
    let device = Device::linked(&rig, &id, &token).await;
    (rig, device, id, token)
}

fn opened(session: &str, mode: &str) -> Value {
    json!({ "sessionId": session,
            "modes": { "currentModeId": mode, "availableModes": [{ "id": "plan" }, { "id": "manual" }, { "id": "edit" }] },
            "_meta": { "lembas": { "model": "practice", "mode": mode, "seq": 0 } } })
}

async fn chat(rig: &Rig, device: &Device, text: &str) -> Value {
    device.can("session/new", Ok(opened("s1", "edit")));
    let body = json!({ "device": ID, "cwd": "/home/ana/projects/api", "mode": "edit", "text": text, "key": "key-0001" });
    rig.post("/chats", body).await["chat"].clone()
}

/// Waits until a chat's items are as wanted.
async fn items(rig: &Rig, chat: &str, want: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    let wait = async {
        loop {
            let got = rig.get(&format!("/chats/{chat}")).await;
            let list = got["items"].as_array().unwrap().clone();
            if want(&list) {
                return list;
            }
            tokio::task::yield_now().await;
        }
    };
    soon(wait).await
}

#[tokio::test]
async fn a_chat_goes_its_way() {
    let (rig, mut device, ..) = linked().await;
    let mut events = rig.events(None).await;
    let made = chat(&rig, &device, "Fix the login test").await;
    assert_eq!(
        (&made["id"], &made["title"], &made["cwd_words"]),
        (
            &json!("s1"),
            &json!("Fix the login test"),
            &json!("~/projects/api")
        )
    );
    assert_eq!(made["modes"], json!(["plan", "manual", "edit"]));
    let prompt = device.next("session/prompt").await;
    assert_eq!(prompt.params["prompt"][0]["text"], "Fix the login test");
    let key = prompt.params["_meta"]["lembas"]["key"]
        .as_str()
        .unwrap()
        .to_owned();
    device.prompt("s1", 1, &key, "Fix the login test").await;
    let said = events
        .until(|e| (e["type"] == "item" && e["item"]["kind"] == "said").then(|| e["item"].clone()))
        .await;
    assert_eq!(
        (&said["state"], &said["html"], &said["key"]),
        (
            &json!("taken"),
            &json!("<p>Fix the login test</p>"),
            &json!(key)
        )
    );
    device
        .event("s1", 1, "phase", json!({ "phase": "writing", "since": 5 }))
        .await;
    events
        .until(|e| {
            (e["type"] == "chat" && e["chat"]["progress"]["phase"] == "writing").then_some(())
        })
        .await;
    device.text("s1", 2, 10, "I read it.").await;
    let call = json!({ "sessionUpdate": "tool_call", "toolCallId": "c1", "title": "cargo test", "kind": "execute", "status": "pending", "rawInput": { "command": "cargo test" } });
    device
        .update(
            "s1",
            3,
            0,
            call,
            json!({ "tool": "bash", "block": "shell" }),
        )
        .await;
    let started =
        json!({ "sessionUpdate": "tool_call_update", "toolCallId": "c1", "status": "in_progress" });
    device
        .update(
            "s1",
            4,
            0,
            started,
            json!({ "allowed": { "source": "mode", "text": "mode Edit, boxed", "box": "roots" } }),
        )
        .await;
    let output = json!({ "sessionUpdate": "tool_call_update", "toolCallId": "c1" });
    device
        .update(
            "s1",
            5,
            20,
            output,
            json!({ "output": "\u{1b}[32mok\u{1b}[0m <b>\nx\ny\n" }),
        )
        .await;
    let tail = events.of("out").await;
    assert_eq!(
        (&tail["seq"], &tail["html"]),
        (
            &json!(3),
            &json!("<span class=\"a-green\">ok</span> &lt;b&gt;\nx\ny")
        )
    );
    let result = json!({ "sessionUpdate": "tool_call_update", "toolCallId": "c1", "status": "failed", "content": [{ "type": "content", "content": { "type": "text", "text": "exit 101" } }] });
    device
        .update(
            "s1",
            6,
            0,
            result,
            json!({ "status": "failed", "exit": 101, "ms": 1200, "bytes": 20 }),
        )
        .await;
    let card = events
        .until(|e| {
            (e["type"] == "item" && e["item"]["status"] == "failed").then(|| e["item"].clone())
        })
        .await;
    assert_eq!(
        (
            &card["seq"],
            &card["exit"],
            &card["lines"],
            &card["ran"]["text"]
        ),
        (
            &json!(3),
            &json!(101),
            &json!(3),
            &json!("mode Edit, boxed")
        )
    );
    let whole = rig
        .http
        .get(rig.url(card["download"].as_str().unwrap()))
        .header("cookie", &rig.cookie)
        .send()
        .await
        .unwrap();
    assert_eq!(
        whole.text().await.unwrap(),
        "\u{1b}[32mok\u{1b}[0m <b>\nx\ny\n"
    );
    device
        .event(
            "s1",
            7,
            "turn_end",
            json!({ "turn": 1, "stop": "cancelled", "tokens": {} }),
        )
        .await;
    prompt
        .answer
        .send(Ok(json!({ "stopReason": "cancelled" })))
        .unwrap();
    events
        .until(|e| (e["type"] == "chat" && e["chat"]["running"] == false).then_some(()))
        .await;
    let list = items(&rig, "s1", |l| l.len() == 4).await;
    let kinds: Vec<&str> = list.iter().map(|i| i["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["said", "text", "step", "mid"]);
    assert_eq!(list[3]["html"], "Stopped");
}

#[tokio::test]
async fn every_chunk_counts_once_however_it_is_repeated() {
    let (rig, mut device, id, token) = linked().await;
    chat(&rig, &device, "").await;
    let text = "Häuser: one, two,\n\n- three\n- four\n\nEnd — really.";
    let mut at = 0;
    let mut places = Vec::new();
    for c in text.chars() {
        at += c.len_utf8() as u64;
        places.push((at, c.to_string()));
    }
    let half = places.len() / 2;
    for (at, c) in &places[..half] {
        device.text("s1", 5, *at, c).await;
        device.text("s1", 5, *at, c).await;
    }
    while device.ack().await["at"] != places[half - 1].0 {}
    device.leaves(&rig, &id).await;
    // It comes back and says again more than is missing, in other pieces, as it is asked to.
    let sessions = json!([{ "id": "s1", "seq": 6, "running": true, "asks": 0 }]);
    let own = "_lembas/follow";
    let mut device = Dial {
        sessions,
        own,
        ..Dial::new(&id, &token)
    }
    .go(&rig)
    .await
    .ok()
    .unwrap();
    let follow = device.next("_lembas/follow").await;
    assert_eq!(
        follow.params,
        json!({ "sessionId": "s1", "seq": 5, "at": places[half - 1].0 })
    );
    follow.answer.send(Ok(json!({}))).unwrap();
    device.can("_lembas/follow", Ok(json!({})));
    let whole = text.len() as u64;
    device
        .text("s1", 5, whole - 8, &text[..text.len() - 8])
        .await;
    device.text("s1", 5, whole, &text[text.len() - 30..]).await;
    device
        .text("s1", 5, places[3].0, &text[..places[3].0 as usize])
        .await;
    device
        .event(
            "s1",
            6,
            "turn_end",
            json!({ "turn": 1, "stop": "end_turn", "tokens": {} }),
        )
        .await;
    let list = items(&rig, "s1", |l| l.iter().any(|i| i["open"] == false)).await;
    assert_eq!(list[0]["text"], text);
    assert_eq!(
        list[0]["blocks"],
        json!([
            "<p>Häuser: one, two,</p>",
            "<ul>\n<li>three</li>\n<li>four</li>\n</ul>",
            "<p>End — really.</p>"
        ])
    );
    // A hole is not filled with what comes after it: what is missing is asked for.
    device.leave("_lembas/follow");
    device.text("s1", 9, 4, "abcd").await;
    device.text("s1", 9, 9, "i").await;
    let follow = device.next("_lembas/follow").await;
    assert_eq!(
        follow.params,
        json!({ "sessionId": "s1", "seq": 9, "at": 4 })
    );
    follow.answer.send(Ok(json!({}))).unwrap();
    device.text("s1", 9, 9, "efghi").await;
    items(&rig, "s1", |l| l.last().unwrap()["text"] == "abcdefghi").await;
}

/// What a page shows of one item after the events of its stream.
async fn page(events: &mut super::rig::Events, seq: u64) -> Vec<String> {
    let mut blocks: Vec<String> = Vec::new();
    loop {
        let event = soon(events.next()).await.unwrap();
        let strings = |v: &Value| {
            v.as_array()
                .unwrap()
                .iter()
                .map(|h| h.as_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        if event["type"] == "item" && event["item"]["seq"] == seq {
            blocks = strings(&event["item"]["blocks"]);
            if event["item"]["open"] == false {
                return blocks;
            }
        } else if event["type"] == "md" && event["seq"] == seq {
            let keep = event["keep"].as_u64().unwrap() as usize;
            assert!(keep <= blocks.len(), "{event} after {blocks:?}");
            blocks.truncate(keep);
            blocks.extend(strings(&event["html"]));
        }
    }
}

#[tokio::test]
async fn a_streamed_answer_ends_as_it_is_stored() {
    let (rig, device, ..) = linked().await;
    chat(&rig, &device, "").await;
    let mut early = rig.events(None).await;
    early.of("hello").await;
    let begin = early.last;
    let mut begun = rig.events(None).await;
    let text = "# Title\n\nSome *words* here.\n\n```rust\nfn main() {\n    let x = 1;\n}\n```\n\n1. a\n2. b\n\nThe end.".repeat(4);
    let mut at = 0;
    for piece in text.as_bytes().chunks(7) {
        at += piece.len() as u64;
        device
            .text("s1", 3, at, std::str::from_utf8(piece).unwrap())
            .await;
        if at == 7 {
            begun
                .until(|e| (e["item"]["seq"] == 3).then_some(()))
                .await;
        }
    }
    // Shown while it is written, not only when it is done.
    let mut live = rig.events(Some(begin)).await;
    live.until(|e| {
        let blocks = e["html"].as_array().filter(|_| e["type"] == "md")?;
        blocks.iter().any(|b| b == "<p>The end.</p>").then_some(())
    })
    .await;
    device
        .event(
            "s1",
            4,
            "turn_end",
            json!({ "turn": 1, "stop": "end_turn", "tokens": {} }),
        )
        .await;
    let streamed = page(&mut early, 3).await;
    let list = items(&rig, "s1", |l| !l.is_empty()).await;
    assert_eq!(json!(streamed), list[0]["blocks"]);
    assert_eq!(list[0]["text"], text);
    // A page that looks away and comes back gets what it missed.
    let late = early.last;
    device.text("s1", 5, 2, "ok").await;
    device
        .event("s1", 6, "notice", json!({ "text": "a <notice>" }))
        .await;
    let mut again = rig.events(Some(late)).await;
    let hello = again.of("hello").await;
    assert_eq!(hello["resumed"], true);
    let note = again
        .until(|e| {
            (e["type"] == "item" && e["item"]["kind"] == "mid").then(|| e["item"]["html"].clone())
        })
        .await;
    assert_eq!(note, "a &lt;notice&gt;");
}

#[tokio::test]
async fn numbers_go_on_across_a_restart_and_old_ones_are_told() {
    let mut rig = Rig::signed().await;
    let mut events = rig.events(None).await;
    let hello = events.of("hello").await;
    assert_eq!(hello["resumed"], false);
    let head = rig.get("/state").await["head"].as_u64().unwrap();
    rig.pair(ID, "zephyr").await;
    events.of("device").await;
    let last = events.last;
    assert!(last > head);
    rig.restart().await;
    let mut events = rig.events(Some(last)).await;
    let hello = events.of("hello").await;
    assert_eq!(
        (&hello["resumed"], hello["head"].as_u64().unwrap() > last),
        (&json!(false), true)
    );
}

#[tokio::test]
async fn a_prompt_is_said_with_its_key_until_it_is_answered() {
    let (rig, mut device, id, token) = linked().await;
    chat(&rig, &device, "do it").await;
    let first = device.next("session/prompt").await;
    drop(first.answer);
    // "not answered" is an internal error; the hub must not take a dropped link for one.
    device.leaves(&rig, &id).await;
    let mut device = Device::linked(&rig, &id, &token).await;
    let queue = rig.get("/chats/s1").await["queue"].clone();
    let again = if queue.as_array().unwrap().is_empty() {
        device.next("session/prompt").await
    } else {
        let key = queue[0]["key"].as_str().unwrap();
        rig.post(&format!("/chats/s1/queue/{key}/send"), json!({}))
            .await;
        device.next("session/prompt").await
    };
    assert_eq!(first.params["_meta"], again.params["_meta"], "the same key");
    again
        .answer
        .send(Ok(json!({ "stopReason": "end_turn" })))
        .unwrap();
}

#[tokio::test]
async fn a_dropped_link_in_the_middle_of_a_turn_asks_again_with_the_same_key() {
    let (rig, mut device, id, token) = linked().await;
    chat(&rig, &device, "do it").await;
    let first = device.next("session/prompt").await;
    device.leaves(&rig, &id).await;
    let mut device = Device::linked(&rig, &id, &token).await;
    let again = device.next("session/prompt").await;
    assert_eq!(first.params["_meta"], again.params["_meta"], "the same key");
    drop(first);
    let mut events = rig.events(None).await;
    device
        .prompt(
            "s1",
            1,
            again.params["_meta"]["lembas"]["key"].as_str().unwrap(),
            "do it",
        )
        .await;
    device
        .event(
            "s1",
            2,
            "turn_end",
            json!({ "turn": 1, "stop": "end_turn", "tokens": {} }),
        )
        .await;
    events.of("queue").await;
    again
        .answer
        .send(Ok(json!({ "stopReason": "end_turn" })))
        .unwrap();
    events.of("queue").await;
    // Answered: it is not said a third time.
    device.leaves(&rig, &id).await;
    let mut device = Device::linked(&rig, &id, &token).await;
    let sent = rig
        .post(
            "/chats/s1/messages",
            json!({ "key": "key-two-2", "text": "and this" }),
        )
        .await;
    assert_eq!(sent["state"], "sent");
    let next = device.next("session/prompt").await;
    assert_eq!(next.params["prompt"][0]["text"], "and this");
    next.answer
        .send(Ok(json!({ "stopReason": "end_turn" })))
        .unwrap();
}

#[tokio::test]
async fn messages_wait_for_the_turn_in_order_and_go_once_each() {
    let (rig, mut device, ..) = linked().await;
    chat(&rig, &device, "one").await;
    let one = device.next("session/prompt").await;
    device
        .prompt(
            "s1",
            1,
            one.params["_meta"]["lembas"]["key"].as_str().unwrap(),
            "one",
        )
        .await;
    items(&rig, "s1", |l| l.len() == 1).await;
    for (key, text) in [("key-a-01", "a"), ("key-b-02", "b"), ("key-c-03", "c")] {
        let answer = rig
            .post("/chats/s1/messages", json!({ "key": key, "text": text }))
            .await;
        assert_eq!(answer["state"], "queued");
        let again = rig
            .post("/chats/s1/messages", json!({ "key": key, "text": text }))
            .await;
        assert_eq!(again["state"], "queued", "the same key adds nothing");
    }
    assert_eq!(
        rig.get("/chats/s1").await["queue"]
            .as_array()
            .unwrap()
            .len(),
        3
    );
    let (status, _) = rig
        .call(
            Method::PATCH,
            "/chats/s1/queue/key-b-02",
            Some(json!({ "text": "b, better" })),
        )
        .await;
    assert_eq!(status, 200);
    let (status, _) = rig
        .call(Method::DELETE, "/chats/s1/queue/key-a-01", None)
        .await;
    assert_eq!(status, 200);
    rig.post("/chats/s1/queue/key-b-02/hold", json!({ "held": true }))
        .await;
    device
        .event(
            "s1",
            2,
            "turn_end",
            json!({ "turn": 1, "stop": "end_turn", "tokens": {} }),
        )
        .await;
    one.answer
        .send(Ok(json!({ "stopReason": "end_turn" })))
        .unwrap();
    items(&rig, "s1", |_| true).await;
    let mut events = rig.events(None).await;
    assert!(
        device.asked.try_recv().is_err(),
        "what is held holds the queue"
    );
    rig.post("/chats/s1/queue/key-b-02/hold", json!({ "held": false }))
        .await;
    events.of("queue").await;
    let mut seq = 3;
    for (key, text) in [("key-b-02", "b, better"), ("key-c-03", "c")] {
        let asked = device.next("session/prompt").await;
        assert_eq!(
            (
                &asked.params["prompt"][0]["text"],
                &asked.params["_meta"]["lembas"]["key"]
            ),
            (&json!(text), &json!(key))
        );
        device.prompt("s1", seq, key, text).await;
        device
            .event(
                "s1",
                seq + 1,
                "turn_end",
                json!({ "turn": 2, "stop": "end_turn", "tokens": {} }),
            )
            .await;
        seq += 2;
        asked
            .answer
            .send(Ok(json!({ "stopReason": "end_turn" })))
            .unwrap();
    }
    let (status, body) = rig
        .call(Method::DELETE, "/chats/s1/queue/key-c-03", None)
        .await;
    assert_eq!(
        (status.as_u16(), &body["error"]["code"]),
        (409, &json!("sent"))
    );
}

#[tokio::test]
async fn a_message_waits_for_a_computer_that_is_away() {
    let (rig, device, id, token) = linked().await;
    chat(&rig, &device, "").await;
    device.leaves(&rig, &id).await;
    let answer = rig
        .post(
            "/chats/s1/messages",
            json!({ "key": "key-a-01", "text": "later" }),
        )
        .await;
    assert_eq!(
        (&answer["state"], &answer["queue"][0]["text"]),
        (&json!("queued"), &json!("later"))
    );
    let (status, body) = rig
        .call(
            Method::POST,
            "/chats",
            Some(json!({ "device": ID, "cwd": "/x", "key": "key-9999" })),
        )
        .await;
    assert_eq!(
        (status.as_u16(), &body["error"]["code"]),
        (409, &json!("away"))
    );
    let mut device = Device::linked(&rig, &id, &token).await;
    let asked = device.next("session/prompt").await;
    assert_eq!(asked.params["prompt"][0]["text"], "later");
    asked
        .answer
        .send(Ok(json!({ "stopReason": "end_turn" })))
        .unwrap();
}

#[tokio::test]
async fn what_a_computer_refuses_is_told_in_its_words() {
    let (rig, device, ..) = linked().await;
    let error = RpcError::new(-32602, "no").with_data(json!({ "reason": "roots", "text": "zephyr does not allow work in /etc/nginx.", "path": "/etc/nginx" }));
    device.can("session/new", Err(error));
    let (status, body) = rig
        .call(
            Method::POST,
            "/chats",
            Some(json!({ "device": ID, "cwd": "/etc/nginx", "key": "key-0001" })),
        )
        .await;
    assert_eq!(status, 422);
    assert_eq!(
        (&body["error"]["text"], &body["error"]["try"]),
        (
            &json!("zephyr does not allow work in /etc/nginx."),
            &json!("lembas roots add /etc/nginx")
        )
    );
}

#[tokio::test]
async fn a_stop_is_repeated_until_it_is_answered() {
    let (rig, mut device, id, token) = linked().await;
    chat(&rig, &device, "").await;
    let (status, _) = rig
        .call(
            Method::POST,
            "/chats/s1/stop",
            Some(json!({ "key": "stop-001" })),
        )
        .await;
    assert_eq!(status, 202);
    let first = device.next("_lembas/stop").await;
    device.leaves(&rig, &id).await;
    let mut device = Device::linked(&rig, &id, &token).await;
    let again = device.next("_lembas/stop").await;
    assert_eq!(first.params, again.params);
    drop(first);
    let mut events = rig.events(None).await;
    again
        .answer
        .send(Ok(
            json!({ "outcome": "stopped", "ms": 900, "commands": 2 }),
        ))
        .unwrap();
    let progress = events
        .until(|e| {
            (e["chat"]["progress"]["phase"] == "stopped").then(|| e["chat"]["progress"].clone())
        })
        .await;
    assert_eq!(
        (&progress["ms"], &progress["commands"]),
        (&json!(900), &json!(2))
    );
}

#[tokio::test]
async fn a_mode_is_what_the_computer_applied() {
    let (rig, mut device, ..) = linked().await;
    chat(&rig, &device, "").await;
    let (_, body) = rig
        .call(Method::PATCH, "/chats/s1", Some(json!({ "mode": "auto" })))
        .await;
    assert_eq!(
        (&body["chat"]["mode"], &body["chat"]["wanted"]),
        (&json!("edit"), &json!({ "mode": "auto" }))
    );
    let asked = device.next("session/set_mode").await;
    assert_eq!(asked.params["modeId"], "auto");
    let mut events = rig.events(None).await;
    asked
        .answer
        .send(Ok(
            json!({ "_meta": { "lembas": { "mode": "edit", "lowered": "max_mode" } } }),
        ))
        .unwrap();
    let chat = events
        .until(|e| {
            (e["type"] == "chat" && e["chat"]["wanted"].is_null()).then(|| e["chat"].clone())
        })
        .await;
    assert_eq!(
        (&chat["mode"], &chat["lowered"]),
        (&json!("edit"), &json!("lowered to Edit by zephyr"))
    );
}

#[tokio::test]
async fn another_epoch_closes_what_was_and_begins_anew() {
    let (rig, device, id, token) = linked().await;
    chat(&rig, &device, "").await;
    device.text("s1", 7, 3, "old").await;
    items(&rig, "s1", |l| l.len() == 1).await;
    device.leaves(&rig, &id).await;
    let sessions = json!([{ "id": "s1", "seq": 2, "running": false, "asks": 0, "cwd": "/home/ana/projects/api" }]);
    let device = Dial {
        epoch: "e2",
        sessions,
        ..Dial::new(&id, &token)
    }
    .go(&rig)
    .await
    .ok()
    .unwrap();
    device.known(&rig, &id).await;
    let wait = async {
        loop {
            let list = rig.get("/chats").await;
            if list["total"] == 2 {
                return list;
            }
            tokio::task::yield_now().await;
        }
    };
    let list = soon(wait).await;
    let all = list["chats"].as_array().unwrap();
    let old = all.iter().find(|c| c["id"] == "s1").unwrap();
    assert!(old["closed"].is_string());
    assert!(all.iter().any(|c| c["id"] != "s1" && c["closed"].is_null()));
    assert_eq!(
        items(&rig, "s1", |_| true).await[0]["text"],
        "old",
        "it stays readable"
    );
    let (status, body) = rig
        .call(
            Method::POST,
            "/chats/s1/messages",
            Some(json!({ "key": "key-a-01", "text": "x" })),
        )
        .await;
    assert_eq!(
        (status.as_u16(), &body["error"]["code"]),
        (409, &json!("closed"))
    );
}

#[tokio::test]
async fn long_chats_load_from_their_end() {
    let (rig, device, ..) = linked().await;
    chat(&rig, &device, "").await;
    for seq in 1..=120_u64 {
        device
            .event("s1", seq, "notice", json!({ "text": format!("n{seq}") }))
            .await;
    }
    let list = items(&rig, "s1", |l| l.last().is_some_and(|i| i["seq"] == 120)).await;
    assert_eq!((list.len(), &list[0]["seq"]), (50, &json!(71)));
    let before = rig.get("/chats/s1/items?before=71&limit=50").await;
    assert_eq!(
        (&before["items"][0]["seq"], &before["more"]),
        (&json!(21), &json!(true))
    );
    let before = rig.get("/chats/s1/items?before=21&limit=50").await;
    assert_eq!(
        (before["items"].as_array().unwrap().len(), &before["more"]),
        (20, &json!(false))
    );
    let after = rig.get("/chats/s1/items?after=118").await;
    assert_eq!(after["items"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn drafts_are_kept_and_told() {
    let (rig, device, ..) = linked().await;
    chat(&rig, &device, "").await;
    let mut events = rig.events(None).await;
    let (status, _) = rig
        .call(
            Method::PUT,
            "/chats/s1/draft",
            Some(json!({ "text": "half a thought" })),
        )
        .await;
    assert_eq!(status, 200);
    let told = events.of("draft").await;
    assert_eq!(
        (&told["chat"], &told["text"]),
        (&json!("s1"), &json!("half a thought"))
    );
    assert_eq!(
        rig.get("/chats/s1").await["chat"]["draft"],
        "half a thought"
    );
}
