//! Whole outputs: every byte or none, from the computer or from what is stored.

use base64::Engine as _;
use futures_util::StreamExt as _;
use lembas::ids::Digest;
use lembas::rpc::RpcError;
use reqwest::StatusCode;
use serde_json::{Value, json};

use super::device::{Asked, Device};
use super::rig::{Rig, soon};

const ID: &str = "0123456789abcdef";

/// A chat with a command that has ended: `stored` came as updates, `bytes` were written.
async fn ran(stored: &str, bytes: usize) -> (Rig, Device, String) {
    let rig = Rig::signed().await;
    let (id, token) = rig.pair(ID, "zephyr").await;
    let mut device = Device::linked(&rig, &id, &token).await;
    device
        .update("s1", 4, 0, json!({ "sessionUpdate": "tool_call", "toolCallId": "c1", "title": "make", "kind": "execute", "rawInput": {} }), json!({ "tool": "bash", "block": "shell" }))
        .await;
    // In two items, as a long output comes.
    let half = stored.floor_char_boundary(stored.len() / 2);
    let (first, second) = stored.split_at(half);
    for (seq, text) in [(5, first), (7, second)] {
        if !text.is_empty() {
            let update = json!({ "sessionUpdate": "tool_call_update", "toolCallId": "c1" });
            device
                .update(
                    "s1",
                    seq,
                    text.len() as u64,
                    update,
                    json!({ "output": text }),
                )
                .await;
        }
    }
    let result = json!({ "sessionUpdate": "tool_call_update", "toolCallId": "c1", "status": "completed",
                         "content": [{ "type": "content", "content": { "type": "text", "text": "what the model read" } }] });
    device
        .update(
            "s1",
            9,
            0,
            result,
            json!({ "status": "ok", "exit": 0, "bytes": bytes, "ms": 5 }),
        )
        .await;
    while device.ack().await["seq"] != 9 {}
    (rig, device, "/api/v2/chats/s1/output/c1".to_owned())
}

async fn get(rig: &Rig, path: &str) -> reqwest::Response {
    let request = rig.http.get(rig.url(path)).header("cookie", &rig.cookie);
    soon(request.send()).await.unwrap()
}

async fn refusal(rig: &Rig, path: &str) -> (StatusCode, Value) {
    let answer = get(rig, path).await;
    let status = answer.status();
    (status, answer.json().await.unwrap_or_default())
}

/// Answers one request for a piece of `whole`.
fn piece(asked: Asked, whole: &[u8], more: Value) {
    let from = usize::try_from(asked.params["from"].as_u64().unwrap()).unwrap();
    let max = usize::try_from(asked.params["max"].as_u64().unwrap()).unwrap();
    let end = (from + max).min(whole.len());
    let mut answer = json!({
        "data": base64::engine::general_purpose::STANDARD.encode(&whole[from..end]),
        "from": from, "total": whole.len(), "end": end == whole.len(),
    });
    answer
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    let _given_up = asked.answer.send(Ok(answer));
}

#[tokio::test]
async fn a_download_from_the_computer_is_every_byte() {
    let whole: Vec<u8> = (0..1_000_000_u32).flat_map(u32::to_be_bytes).collect();
    let (rig, mut device, path) = ran("its beginning\n", whole.len()).await;
    let served = {
        let whole = whole.clone();
        tokio::spawn(async move {
            let mut pieces = 0;
            while let Some(asked) = device.asked.recv().await {
                assert_eq!(asked.method, "_lembas/output");
                piece(asked, &whole, json!({}));
                pieces += 1;
                if pieces == whole.len().div_ceil(90 * 1024) {
                    break;
                }
            }
            device
        })
    };
    let answer = get(&rig, &path).await;
    assert_eq!(answer.status(), 200);
    assert_eq!(
        answer.headers()["content-length"],
        whole.len().to_string().as_str()
    );
    let got = soon(answer.bytes()).await.unwrap();
    assert_eq!(Digest::of(&got), Digest::of(&whole));
    let mut device = soon(served).await.unwrap();

    // Only as fast as it is taken: nobody reads, so a few pieces are asked for and no more.
    let reading = tokio::spawn({
        let (http, url, cookie) = (rig.http.clone(), rig.url(&path), rig.cookie.clone());
        async move { http.get(url).header("cookie", cookie).send().await.unwrap() }
    });
    let huge = vec![b'x'; 64 * 1024 * 1024];
    piece(device.next("_lembas/output").await, &huge, json!({}));
    let answer = soon(reading).await.unwrap();
    let mut asked = 0;
    while let Ok(Some(one)) =
        tokio::time::timeout(std::time::Duration::from_secs(2), device.asked.recv()).await
    {
        piece(one, &huge, json!({}));
        asked += 1;
    }
    // What the sockets between them hold, and no more: of 728 pieces.
    assert!(asked < 200, "{asked} pieces for nobody");
    // The computer goes in the middle: the download breaks off, and is not taken for the whole.
    device.peer.close(1001, "going");
    let mut stream = answer.bytes_stream();
    let broke = async {
        loop {
            match stream.next().await {
                Some(Ok(_)) => {}
                other => return other.is_some(),
            }
        }
    };
    assert!(soon(broke).await, "an error, and no quiet end");
}

#[tokio::test]
async fn what_is_not_all_there_is_said_before_the_first_byte() {
    let (rig, mut device, path) = ran("one\ntwo\n", 5_000_000).await;
    // It kept less than was written.
    let ask = refusal(&rig, &path);
    let serve = async {
        piece(
            device.next("_lembas/output").await,
            b"kept",
            json!({ "missing": 4_999_996 }),
        );
    };
    let ((status, body), ()) = tokio::join!(ask, serve);
    assert_eq!(
        (status.as_u16(), &body["error"]["code"]),
        (409, &json!("partial"))
    );
    let part = format!("{path}?part=here");
    let serve = async {
        piece(
            device.next("_lembas/output").await,
            b"kept",
            json!({ "missing": 4_999_996 }),
        );
    };
    let (answer, ()) = tokio::join!(get(&rig, &part), serve);
    let text = soon(answer.text()).await.unwrap();
    assert!(
        text.starts_with("kept\n[") && text.ends_with("that followed were not kept.]\n"),
        "{text}"
    );
    // It has nothing of it any more.
    device.can(
        "_lembas/output",
        Err(RpcError::new(-32004, "gone").with_data(json!({ "reason": "gone", "text": "gone" }))),
    );
    let (status, body) = refusal(&rig, &path).await;
    assert_eq!(
        (status.as_u16(), &body["error"]["code"]),
        (410, &json!("gone"))
    );
    // It is away.
    device.leaves(&rig, ID).await;
    let (status, body) = refusal(&rig, &path).await;
    assert_eq!(
        (status.as_u16(), &body["error"]["code"]),
        (409, &json!("away"))
    );
    let text = soon(get(&rig, &part).await.text()).await.unwrap();
    assert!(
        text.starts_with("one\ntwo\n\n[Of ") && text.contains("the whole is on zephyr"),
        "{text}"
    );
    let page: Value = get(&rig, &format!("{path}?from=4&max=100"))
        .await
        .json()
        .await
        .unwrap();
    assert_eq!(
        (&page["text"], &page["from"], &page["next"], &page["whole"]),
        (&json!("two\n"), &json!(4), &json!(8), &json!(false))
    );
    assert!(
        page["note"]
            .as_str()
            .unwrap()
            .starts_with("zephyr is away.")
    );
}

#[tokio::test]
async fn what_is_all_here_needs_no_computer() {
    let text = "grün ✓\n".repeat(20_000);
    let (rig, device, path) = ran(&text, text.len()).await;
    device.leaves(&rig, ID).await;
    let got = soon(get(&rig, &path).await.text()).await.unwrap();
    assert_eq!(Digest::of(got.as_bytes()), Digest::of(text.as_bytes()));
    // In stretches that end between characters.
    let (mut read, mut from) = (String::new(), 0);
    while from < text.len() as u64 {
        let page: Value = get(&rig, &format!("{path}?from={from}&max=10007"))
            .await
            .json()
            .await
            .unwrap();
        read.push_str(page["text"].as_str().unwrap());
        assert_eq!(
            (&page["whole"], &page["total"]),
            (&json!(true), &json!(text.len()))
        );
        from = page["next"].as_u64().unwrap();
    }
    assert_eq!(read, text);
    assert_eq!(refusal(&rig, "/api/v2/chats/s1/output/c9").await.0, 404);
}

#[tokio::test]
async fn a_wrong_frame_is_left_out_alone() {
    let (rig, device, _) = ran("x\n", 2).await;
    for (seq, kind, data) in [
        (u64::MAX, "notice", json!({ "text": "a" })),
        (11, "ask", json!({ "no": "id" })),
        (12, "turn_end", json!("over")),
    ] {
        device.event("s1", seq, kind, data).await;
    }
    device
        .peer
        .notify("session/update", json!({ "sessionId": 3 }))
        .await
        .unwrap();
    device
        .peer
        .notify("_lembas/event", json!([]))
        .await
        .unwrap();
    device
        .event("s1", 13, "notice", json!({ "text": "still here" }))
        .await;
    let wait = async {
        loop {
            let chat = rig.get("/chats/s1").await;
            let items = chat["items"].as_array().unwrap().clone();
            if items.iter().any(|item| item["html"] == "still here") {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    soon(wait).await;
    let devices = rig.get("/devices").await;
    assert_eq!(devices["devices"][0]["state"], "online");
}
