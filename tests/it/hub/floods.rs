//! Computers that dial in loops, and ones that never come to a link.

use super::device::{Device, Dial};
use super::rig::Rig;

const ID: &str = "0123456789abcdef";

#[tokio::test]
async fn a_computer_that_dials_in_a_loop_waits_and_others_do_not() {
    let rig = Rig::signed().await;
    let (id, token) = rig.pair(ID, "zephyr").await;
    let (other, others) = rig.pair("fedcba9876543210", "linden").await;
    let mut let_in = 0;
    let refused = loop {
        match Dial::new(&id, &token).go(&rig).await {
            Ok(device) => {
                let_in += 1;
                drop(device);
            }
            Err(refused) => break refused,
        }
        assert!(let_in < 200, "nobody stops it");
    };
    assert!(let_in >= 8, "{let_in} {refused:?}");
    assert!([429, 503].contains(&refused.0), "{refused:?}");
    assert_eq!(
        refused.1["product"], "llembas",
        "a refusal of ours: {refused:?}"
    );
    // Somebody else links at once.
    Device::linked(&rig, &other, &others).await;
}

#[tokio::test]
async fn upgrades_that_never_answer_initialize_are_closed_and_counted() {
    let rig = Rig::signed().await;
    let (id, token) = rig.pair(ID, "zephyr").await;
    let silent = Dial {
        own: "initialize",
        ..Dial::new(&id, &token)
    };
    let mut silent = silent.go(&rig).await.unwrap();
    // `initialize` comes and is not answered; the hub ends it by itself (4002).
    let _asked = silent.next("initialize").await;
    let ended = tokio::time::timeout(
        std::time::Duration::from_secs(40),
        silent.done.take().unwrap().wait(),
    )
    .await;
    let reason = ended.expect("it stayed open");
    assert!(
        reason.to_string().contains("4002") || format!("{reason:?}").contains("4002"),
        "{reason:?}"
    );
}

#[tokio::test]
async fn questions_without_end_are_bounded_and_the_page_stays() {
    const MOST: usize = 200;
    let rig = Rig::signed().await;
    let (id, token) = rig.pair(ID, "zephyr").await;
    let device = Device::linked(&rig, &id, &token).await;
    let ask = |n: usize| {
        let peer = device.peer.clone();
        let ask = serde_json::json!({ "sessionId": "s1", "toolCall": { "toolCallId": "c" }, "options": [],
            "_meta": { "lembas": { "ask": format!("ask-{n}"), "digest": "sha256:d", "scopes": ["once"],
            "command": "x".repeat(20_000), "cwd": "/", "made": i64::MIN, "now": i64::MAX,
            "expires_in": i64::MAX } } });
        tokio::spawn(async move { peer.request("session/request_permission", ask).await })
    };
    let open: Vec<_> = (0..MOST).map(ask).collect();
    let asks = async || rig.get("/asks").await["asks"].as_array().unwrap().len();
    while asks().await < MOST {
        let ended = open.iter().filter(|asked| asked.is_finished()).count();
        assert_eq!(ended, 0, "each of them waits");
    }
    let refused = ask(MOST).await.unwrap().unwrap_err().to_string();
    assert!(refused.contains("200 questions"), "{refused}");
    assert_eq!(asks().await, MOST);
    let answer = serde_json::json!({ "digest": "sha256:d", "outcome": "refuse" });
    let (status, answer) = rig
        .call(reqwest::Method::POST, "/asks/ask-7", Some(answer))
        .await;
    assert_eq!(status, 202, "{answer}");
}
