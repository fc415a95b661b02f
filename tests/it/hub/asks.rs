//! Questions: shown whole, answered once, and never shown as done before the computer said so.

use lembas::rpc::RpcError;
use reqwest::Method;
use serde_json::{Value, json};

use super::device::Device;
use super::rig::Rig;

const ID: &str = "0123456789abcdef";

async fn linked() -> (Rig, Device, String, String) {
    let rig = Rig::signed().await;
    let (id, token) = rig.pair(ID, "zephyr").await;
    let device = Device::linked(&rig, &id, &token).await;
    device.can("session/new", Ok(json!({ "sessionId": "s1", "_meta": { "lembas": { "mode": "edit", "model": "practice" } } })));
    rig.post(
        "/chats",
        json!({ "device": ID, "cwd": "/home/ana/projects/api", "key": "key-0001" }),
    )
    .await;
    (rig, device, id, token)
}

fn body(ask: &str) -> Value {
    json!({
        "ask": ask, "call": "c1", "digest": "sha256:d1", "kind": "execute", "command": "git push origin main\u{200b}",
        "cwd": "/home/ana/projects/api", "reason": "it sends commits to another computer", "segment": "git push",
        "box": "open", "scopes": ["once", "session"], "programs": [], "variables": [],
    })
}

/// The device asks; the request itself stays open.
fn ask(device: &Device, ask: &str) -> tokio::task::JoinHandle<()> {
    let peer = device.peer.clone();
    let mut meta = body(ask);
    meta["now"] = json!(1_000_000);
    meta["made"] = json!(990_000);
    meta["expires_in"] = json!(600_000);
    meta["seq"] = json!(4);
    let params = json!({
        "sessionId": "s1", "toolCall": { "toolCallId": "c1", "title": "git push origin main", "kind": "execute", "status": "pending" },
        "options": [], "_meta": { "lembas": meta },
    });
    tokio::spawn(async move {
        let _taken_back = peer.request("session/request_permission", params).await;
    })
}

async fn open(rig: &Rig, events: &mut super::rig::Events) -> Value {
    let shown = events
        .until(|e| (e["type"] == "ask" && e["ask"]["state"] == "open").then(|| e["ask"].clone()))
        .await;
    assert_eq!(rig.get("/asks").await["asks"][0]["ask"], shown["ask"]);
    shown
}

#[tokio::test]
async fn a_question_is_shown_whole_and_its_answer_is_what_the_computer_took() {
    let (rig, mut device, ..) = linked().await;
    let mut events = rig.events(None).await;
    let _request = ask(&device, "ask-1");
    let shown = open(&rig, &mut events).await;
    assert_eq!(
        shown["command_html"],
        "<mark class=\"why\">git push</mark> origin main<span class=\"esc\">U+200B</span>"
    );
    assert_eq!(
        (&shown["device_name"], &shown["cwd_words"], &shown["scopes"]),
        (
            &json!("zephyr"),
            &json!("~/projects/api"),
            &json!(["once", "session"])
        )
    );
    let left = shown["expires"].as_i64().unwrap() - shown["now"].as_i64().unwrap();
    assert!((590_000..=600_000).contains(&left), "{left}");
    let ago = shown["now"].as_i64().unwrap() - shown["made"].as_i64().unwrap();
    assert!((10_000..11_000).contains(&ago), "{ago}");
    for wrong in [
        json!({ "digest": "sha256:other", "outcome": "allow" }),
        json!({ "digest": "sha256:d1", "outcome": "allow", "scope": "always" }),
        json!({ "digest": "sha256:d1", "outcome": "maybe" }),
    ] {
        let (status, _) = rig
            .call(Method::POST, "/asks/ask-1", Some(wrong.clone()))
            .await;
        assert!(status.is_client_error(), "{wrong}");
    }
    let (status, answer) = rig.call(Method::POST, "/asks/ask-1", Some(json!({ "digest": "sha256:d1", "outcome": "allow", "scope": "session", "note": "go" }))).await;
    assert_eq!((status.as_u16(), &answer["state"]), (202, &json!("sent")));
    let asked = device.next("_lembas/answer").await;
    assert_eq!(
        (
            &asked.params["ask"],
            &asked.params["outcome"],
            &asked.params["scope"],
            &asked.params["note"]
        ),
        (
            &json!("ask-1"),
            &json!("allow"),
            &json!("session"),
            &json!("go")
        )
    );
    events
        .until(|e| (e["ask"]["state"] == "sent").then_some(()))
        .await;
    assert_eq!(
        rig.get("/asks").await["asks"][0]["state"],
        "sent",
        "not done before the computer said so"
    );
    asked
        .answer
        .send(Ok(json!({ "taken": true, "at": 77 })))
        .unwrap();
    let done = events
        .until(|e| (e["ask"]["state"] == "settled").then(|| e["ask"].clone()))
        .await;
    assert_eq!(
        (&done["outcome"], &done["by"], &done["at"], &done["late"]),
        (&json!("allowed"), &json!("you"), &json!(77), &json!(false))
    );
    // A second press, anywhere, hears how it ended.
    let (status, late) = rig
        .call(
            Method::POST,
            "/asks/ask-1",
            Some(json!({ "digest": "sha256:d1", "outcome": "refuse" })),
        )
        .await;
    assert_eq!(
        (status.as_u16(), &late["error"]["how"]),
        (409, &json!("allowed"))
    );
}

#[tokio::test]
async fn an_answer_waits_for_the_link_and_is_delivered_once() {
    let (rig, device, id, token) = linked().await;
    let mut events = rig.events(None).await;
    let _request = ask(&device, "ask-1");
    open(&rig, &mut events).await;
    device.leaves(&rig, &id).await;
    rig.post(
        "/asks/ask-1",
        json!({ "digest": "sha256:d1", "outcome": "refuse", "note": "not now" }),
    )
    .await;
    let shown = rig.get("/asks").await["asks"][0].clone();
    assert_eq!(
        (&shown["state"], &shown["words"]),
        (
            &json!("sending"),
            &json!("Not delivered yet. The command has not run.")
        )
    );
    let mut device = Device::linked(&rig, &id, &token).await;
    let first = device.next("_lembas/answer").await;
    // The link drops before the answer comes: it is said again, the same.
    device.leaves(&rig, &id).await;
    assert_eq!(rig.get("/asks").await["asks"][0]["state"], "sending");
    let mut device = Device::linked(&rig, &id, &token).await;
    let again = device.next("_lembas/answer").await;
    assert_eq!(first.params, again.params);
    drop(first);
    again
        .answer
        .send(Ok(json!({ "taken": true, "at": 5 })))
        .unwrap();
    events
        .until(|e| {
            (e["ask"]["state"] == "settled" && e["ask"]["outcome"] == "refused").then_some(())
        })
        .await;
    device.leaves(&rig, &id).await;
    let mut device = Device::linked(&rig, &id, &token).await;
    rig.post(
        "/chats/s1/messages",
        json!({ "key": "key-next-1", "text": "next" }),
    )
    .await;
    device.next("session/prompt").await;
}

#[tokio::test]
async fn too_late_says_how_it_ended() {
    let (rig, mut device, ..) = linked().await;
    let mut events = rig.events(None).await;
    let _request = ask(&device, "ask-1");
    open(&rig, &mut events).await;
    rig.post(
        "/asks/ask-1",
        json!({ "digest": "sha256:d1", "outcome": "allow" }),
    )
    .await;
    let asked = device.next("_lembas/answer").await;
    let gone = RpcError::new(-32004, "gone")
        .with_data(json!({ "how": "refused", "by": "ana, on zephyr", "at": 33 }));
    asked.answer.send(Err(gone)).unwrap();
    let done = events
        .until(|e| (e["ask"]["state"] == "settled").then(|| e["ask"].clone()))
        .await;
    assert_eq!(
        (&done["outcome"], &done["by"], &done["late"], &done["words"]),
        (
            &json!("refused"),
            &json!("ana, on zephyr"),
            &json!(true),
            &json!("Too late: it ended as refused.")
        )
    );
}

#[tokio::test]
async fn settled_elsewhere_takes_the_buttons_everywhere() {
    let (rig, device, ..) = linked().await;
    let mut events = rig.events(None).await;
    device.event("s1", 4, "ask", body("ask-1")).await;
    open(&rig, &mut events).await;
    device
        .event(
            "s1",
            5,
            "ask_settled",
            json!({ "ask": "ask-1", "how": "expired", "by": "", "time": 9 }),
        )
        .await;
    let done = events
        .until(|e| (e["ask"]["state"] == "settled").then(|| e["ask"].clone()))
        .await;
    assert_eq!(
        (&done["outcome"], &done["words"]),
        (
            &json!("expired"),
            &json!("Nobody answered in time: not run.")
        )
    );
    // Said again after that, it stays over.
    let _request = ask(&device, "ask-1");
    device
        .event("s1", 6, "notice", json!({ "text": "marker" }))
        .await;
    events
        .until(|e| (e["item"]["html"] == "marker").then_some(()))
        .await;
    assert_eq!(rig.get("/asks").await["asks"], json!([]));
    assert_eq!(rig.get("/asks").await["settled"][0]["ask"], "ask-1");
}

#[tokio::test]
async fn what_the_computer_takes_only_from_itself_stays_open_with_its_words() {
    let (rig, mut device, ..) = linked().await;
    let mut events = rig.events(None).await;
    let _request = ask(&device, "ask-1");
    open(&rig, &mut events).await;
    rig.post(
        "/asks/ask-1",
        json!({ "digest": "sha256:d1", "outcome": "allow" }),
    )
    .await;
    let asked = device.next("_lembas/answer").await;
    let text = "answers to this question count only when given on this computer: lembas asks";
    asked
        .answer
        .send(Err(
            RpcError::new(-32053, "no").with_data(json!({ "reason": "approvals", "text": text }))
        ))
        .unwrap();
    let open = events
        .until(|e| {
            (e["ask"]["state"] == "open" && e["ask"]["words"] == text).then(|| e["ask"].clone())
        })
        .await;
    assert_eq!(open["ask"], "ask-1");
}

#[tokio::test]
async fn more_time_is_what_the_computer_gives() {
    let (rig, mut device, ..) = linked().await;
    let mut events = rig.events(None).await;
    let _request = ask(&device, "ask-1");
    open(&rig, &mut events).await;
    let url = rig.url("/api/v2/asks/ask-1/extend");
    let own = rig.hub.url().to_owned();
    let (http, cookie) = (rig.http.clone(), rig.cookie.clone());
    let pressed = tokio::spawn(async move {
        http.post(url)
            .header("cookie", cookie)
            .header("x-lembas", "1")
            .header("origin", own)
            .json(&json!({ "seconds": 1800 }))
            .send()
            .await
            .unwrap()
            .status()
    });
    let asked = device.next("_lembas/extend").await;
    assert_eq!(asked.params, json!({ "ask": "ask-1", "seconds": 1800 }));
    asked
        .answer
        .send(Ok(json!({ "expires_in": 1_200_000, "now": 1 })))
        .unwrap();
    assert_eq!(pressed.await.unwrap(), 200);
    let left = events
        .until(|e| {
            e["ask"]["expires"]
                .as_i64()
                .map(|x| x - e["ask"]["now"].as_i64().unwrap())
                .filter(|l| *l > 700_000)
        })
        .await;
    assert!((1_190_000..=1_200_000).contains(&left), "{left}");
}
