//! The link's server end: who may link, who holds the place, and what is said to the rest.

use std::time::Instant;

use reqwest::Method;
use serde_json::{Value, json};

use super::device::{Device, Dial};
use super::rig::{Rig, soon};

const ID: &str = "0123456789abcdef";

#[tokio::test]
async fn refusals_say_why() {
    let rig = Rig::signed().await;
    let (id, token) = rig.pair(ID, "zephyr").await;
    let (status, body, auth) = Dial::new(&id, "").go(&rig).await.err().unwrap();
    assert_eq!((status, auth.as_deref()), (401, Some("Bearer")), "{body}");
    let (status, body, auth) = Dial::new(&id, "nonsense").go(&rig).await.err().unwrap();
    assert_eq!(
        (status, auth.as_deref()),
        (401, Some("Bearer error=\"invalid_token\""))
    );
    assert_eq!(
        (&body["product"], &body["reason"]),
        (&json!("llembas"), &json!("unknown"))
    );
    for (protocol, text) in [
        (
            "lembas.link.2",
            "This instance speaks link protocol 3 and this computer 2: update lembas on this computer.",
        ),
        (
            "lembas.link.4",
            "This instance speaks link protocol 3 and this computer 4: update the instance to LLeMbas 2.0 or later.",
        ),
    ] {
        let (status, body, _) = Dial {
            protocol,
            ..Dial::new(&id, &token)
        }
        .go(&rig)
        .await
        .err()
        .unwrap();
        assert_eq!(
            (status, &body["protocol"], &body["text"]),
            (426, &json!(3), &json!(text))
        );
        // The person sees on the page why their computer is not there, and which side to update.
        assert_eq!(rig.get("/devices").await["devices"][0]["why"], text);
    }
    // Without its token nobody's computer is spoken of.
    let (status, ..) = Dial {
        protocol: "lembas.link.2",
        ..Dial::new(&id, "unknown")
    }
    .go(&rig)
    .await
    .err()
    .unwrap();
    let shown = rig.get("/devices").await["devices"][0]["why"].to_string();
    assert!(status == 426 && shown.contains("computer 4"), "{shown}");
    let device = Device::linked(&rig, &id, &token).await;
    assert_eq!(rig.get("/devices").await["devices"][0]["why"], Value::Null);
    device.leaves(&rig, &id).await;
    assert_eq!(rig.get("/devices").await["devices"][0]["why"], Value::Null);
    let (status, ..) = Dial::new("fedcba9876543210", &token)
        .go(&rig)
        .await
        .err()
        .unwrap();
    assert_eq!(status, 403, "a token is for its own device");
}

#[tokio::test]
async fn two_sockets_of_one_device() {
    let rig = Rig::signed().await;
    let (id, token) = rig.pair(ID, "zephyr").await;
    let mut first = Device::linked(&rig, &id, &token).await;
    // The same process dials anew: the new socket replaces the old at once.
    let second = Dial::new(&id, &token).go(&rig).await.ok().unwrap();
    assert_eq!(first.closed().await.code(), Some(4001));
    second.known(&rig, &id).await;
    // Another process: the holder answers, so the newcomer is told who holds it.
    let (status, body, _) = Dial {
        boot: "boot-2",
        ..Dial::new(&id, &token)
    }
    .go(&rig)
    .await
    .err()
    .unwrap();
    assert_eq!(
        (status, &body["holder"]["address"]),
        (409, &json!("127.0.0.1")),
        "{body}"
    );
    assert!(body["holder"]["since"].is_i64());
    // Its person says to take the place.
    let mut second = second;
    let mut events = rig.events(None).await;
    let third = Dial {
        boot: "boot-2",
        take: true,
        ..Dial::new(&id, &token)
    }
    .go(&rig)
    .await
    .ok()
    .unwrap();
    assert_eq!(second.closed().await.code(), Some(4001));
    let told = events.of("warning").await;
    assert!(
        told["text"].as_str().unwrap().contains("took over"),
        "{told}"
    );
    third.known(&rig, &id).await;
}

#[tokio::test]
async fn taking_access_back_closes_within_a_second_and_says_so_for_good() {
    let rig = Rig::signed().await;
    let (id, token) = rig.pair(ID, "zephyr").await;
    let mut device = Device::linked(&rig, &id, &token).await;
    let begun = Instant::now();
    let (status, body) = rig
        .call(Method::DELETE, &format!("/devices/{id}"), None)
        .await;
    assert_eq!((status.as_u16(), &body["state"]), (200, &json!("revoked")));
    assert_eq!(device.closed().await.code(), Some(4003));
    assert!(begun.elapsed().as_millis() < 1000);
    let (status, body, auth) = Dial::new(&id, &token).go(&rig).await.err().unwrap();
    assert_eq!(
        (status, auth.as_deref()),
        (401, Some("Bearer error=\"invalid_token\""))
    );
    assert_eq!(
        (&body["product"], &body["reason"]),
        (&json!("llembas"), &json!("revoked"))
    );
    assert!(
        body["since"].is_i64()
            && body["text"]
                .as_str()
                .unwrap()
                .contains("Access was taken back"),
        "{body}"
    );
    assert_eq!(rig.get("/devices").await["devices"][0]["state"], "revoked");
    // Once more forgets it; pairing anew works.
    let (_, body) = rig
        .call(Method::DELETE, &format!("/devices/{id}"), None)
        .await;
    assert_eq!(body["state"], "gone");
    let (id, token) = rig.pair(ID, "zephyr").await;
    Device::linked(&rig, &id, &token).await;
}

#[tokio::test]
async fn the_computer_itself_can_end_its_token() {
    let rig = Rig::signed().await;
    let (id, token) = rig.pair(ID, "zephyr").await;
    let mut device = Device::linked(&rig, &id, &token).await;
    assert_eq!(rig.form("/oauth/revoke", &[("token", &token)]).await.0, 200);
    assert_eq!(device.closed().await.code(), Some(4003));
    assert_eq!(
        rig.form("/oauth/revoke", &[("token", "unknown")]).await.0,
        200
    );
    assert_eq!(Dial::new(&id, &token).go(&rig).await.err().unwrap().0, 401);
    // Paired anew it ends the token before once more, and the new pairing stands.
    let (id, new) = rig.pair(ID, "zephyr").await;
    assert_eq!(rig.form("/oauth/revoke", &[("token", &token)]).await.0, 200);
    Device::linked(&rig, &id, &new).await;
}

#[tokio::test]
async fn a_device_that_says_the_wrong_hello_is_not_linked() {
    let rig = Rig::signed().await;
    let (id, token) = rig.pair(ID, "zephyr").await;
    for (hello, code, why) in [
        (
            super::device::hello("someone-else", "e1"),
            4002,
            Value::Null,
        ),
        (
            json!({ "protocolVersion": 1, "agentCapabilities": { "_meta": { "lembas": { "protocol": 2 } } } }),
            4004,
            json!(
                "This instance speaks link protocol 3 and this computer 2: update lembas on this computer."
            ),
        ),
        (
            json!({ "protocolVersion": 1 }),
            4004,
            json!(
                "This computer did not say which link protocol it speaks; this instance speaks 3: update lembas on this computer."
            ),
        ),
    ] {
        let mut device = Dial {
            own: "initialize",
            ..Dial::new(&id, &token)
        }
        .go(&rig)
        .await
        .ok()
        .unwrap();
        let asked = device.next("initialize").await;
        let ours = &asked.params["clientCapabilities"]["_meta"]["lembas"];
        assert_eq!(
            (&ours["protocol"], ours["instance"].as_str()),
            (&json!(3), Some(rig.hub.instance()))
        );
        asked.answer.send(Ok(hello)).unwrap();
        assert_eq!(device.closed().await.code(), Some(code));
        let shown = &rig.get("/devices").await["devices"][0];
        assert_eq!((&shown["state"], &shown["why"]), (&json!("never"), &why));
    }
}

#[tokio::test]
async fn an_old_token_is_replaced_and_its_reuse_revokes_all() {
    let rig = Rig::signed().await;
    let (id, token) = rig.pair(ID, "zephyr").await;
    // Thirty-one days go by.
    let db = rusqlite::Connection::open(rig.folder.path().join("hub.db")).unwrap();
    db.execute("update tokens set made = made - 31 * 86400000", [])
        .unwrap();
    let mut device = Device::linked(&rig, &id, &token).await;
    let asked = device.next("_lembas/token").await;
    asked.answer.send(Ok(json!({}))).unwrap();
    device.leaves(&rig, &id).await;
    // The old one works until the new one was used; an unconfirmed successor makes way for another.
    let mut device = Device::linked(&rig, &id, &token).await;
    let asked = device.next("_lembas/token").await;
    let next = asked.params["token"].as_str().unwrap().to_owned();
    assert!(next.len() >= 43 && next != token);
    asked.answer.send(Ok(json!({}))).unwrap();
    device.leaves(&rig, &id).await;
    let stored: String = db
        .query_row("select group_concat(hash) from tokens", [], |r| r.get(0))
        .unwrap();
    assert!(
        !stored.contains(&token) && !stored.contains(&next),
        "only hashes are kept"
    );
    let mut device = Device::linked(&rig, &id, &next).await;
    let mut events = rig.events(None).await;
    let (status, body, _) = Dial {
        boot: "boot-9",
        ..Dial::new(&id, &token)
    }
    .go(&rig)
    .await
    .err()
    .unwrap();
    assert_eq!((status, &body["reason"]), (401, &json!("reused")));
    assert_eq!(device.closed().await.code(), Some(4003));
    assert!(
        events.of("warning").await["text"]
            .as_str()
            .unwrap()
            .contains("copy")
    );
    assert_eq!(Dial::new(&id, &next).go(&rig).await.err().unwrap().0, 401);
}

#[tokio::test]
async fn a_frame_over_the_limit_ends_the_link_and_not_the_hub() {
    let rig = Rig::signed().await;
    let (id, token) = rig.pair(ID, "zephyr").await;
    let mut device = Device::linked(&rig, &id, &token).await;
    device.peer.set_max_send(64 * 1024 * 1024);
    let big = "x".repeat(4 * 1024 * 1024 + 4096);
    let _queued = device
        .peer
        .notify("session/update", json!({ "x": big }))
        .await;
    let reason = soon(device.done.take().unwrap().wait()).await;
    assert_ne!(reason.code(), Some(1000), "{reason}");
    Device::linked(&rig, &id, &token).await;
}

#[tokio::test]
async fn what_hides_in_a_computers_name_is_not_kept() {
    let rig = Rig::signed().await;
    let (id, token) = rig.pair(ID, "zep\u{200b}hyr\u{202e}").await;
    let _device = Device::linked(&rig, &id, &token).await;
    assert_eq!(rig.get("/devices").await["devices"][0]["name"], "zephyr");
    let path = format!("/devices/{id}");
    for (name, kept) in [
        ("the \u{2067}attic\u{a0}one", Some("the attic one")),
        ("\u{202e}", None),
    ] {
        let body = json!({ "name": name });
        let (status, answer) = rig.call(Method::PATCH, &path, Some(body)).await;
        assert_eq!(status.is_success(), kept.is_some(), "{answer}");
        if let Some(kept) = kept {
            assert_eq!(answer["device"]["name"], kept);
        }
    }
}
