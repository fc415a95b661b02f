//! Links that do not come to be, and one that is taken back: what is said, and how often it is tried.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use lembas::link::instance::{Instance, InstanceFile};
use serde_json::{Value, json};

use super::certificates::Authority;
use super::home::Home;
use super::page::{Page, client};
use super::world::World;
use crate::link::server::{Reply, Server};

/// Links a home by its file alone, with the instance whose base and link these are.
async fn linked(home: &Home, base: &str) {
    let instance: Instance = serde_json::from_value(json!({
        "url": base, "instance": "i-1", "name": "home",
        "link": format!("{}/link", base.replacen("http", "ws", 1)),
        "account": { "id": "a", "name": "ana" }, "device": "0f5b", "paired_at": 1,
        "token": "token-0123456789abcdef",
    }))
    .unwrap();
    let file = InstanceFile::in_folder(&home.settings());
    file.save(instance).await.unwrap();
}

fn minutes_to_next_try(status: &Value) -> f64 {
    let at = |text: &Value| text.as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    let next = at(&status["linked"]["next_try"]);
    (next.as_millisecond() - lembas::clock::now_ms()) as f64 / 60_000.0
}

const OLDER: &str = "This instance speaks link protocol 2 and this computer 3: update the instance to LLeMbas 2.0 or later.";
const NEWER: &str =
    "This instance speaks link protocol 4 and this computer 3: update lembas on this computer.";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_instance_of_another_protocol_is_refused_and_not_dialled_again_and_again() {
    for (protocol, text) in [(2, OLDER), (4, NEWER)] {
        let dials = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&dials);
        let server = Server::plain(move |request| match request.path.as_str() {
            "/.well-known/lembas" => Reply::json(&json!({
                "product": "llembas", "version": "9.0.0", "protocol": protocol,
                "instance": "i-1", "name": "home", "link": "elsewhere",
            })),
            "/link" => {
                count.fetch_add(1, Ordering::SeqCst);
                Reply::status(
                    "426 Upgrade Required",
                    &json!({ "product": "llembas", "instance": "i-1", "protocol": protocol, "text": "x" }),
                )
            }
            path => panic!("nobody asks for {path}"),
        })
        .await;
        let home = Home::new();
        let ran = home.run(&format!("link {}", server.url())).await;
        assert_eq!(ran.code, Some(1), "{}", ran.err);
        assert!(ran.err.contains(&format!("error: {text}\n")), "{}", ran.err);
        assert!(!home.settings().join("instance.json").exists());

        // One that was linked before the instance changed.
        linked(&home, &server.url()).await;
        let mut daemon = home.start("daemon --json");
        daemon.line().await;
        let is_version = |status: &Value| status["linked"]["state"] == "version";
        let status = home.status("the refusal", is_version).await;
        assert_eq!(status["linked"]["reason"], text);
        assert_eq!(status["ok"], false);
        let minutes = minutes_to_next_try(&status);
        assert!((58.0..=60.0).contains(&minutes), "{minutes}");
        let shown = home.run("status").await;
        assert_eq!(shown.code, Some(1));
        assert!(
            shown.out.contains("speaks another link protocol"),
            "{}",
            shown.out
        );
        assert!(shown.out.contains(&format!("why: {text}")), "{}", shown.out);
        assert_eq!(dials.load(Ordering::SeqCst), 1);
        assert_eq!(daemon.end().await, Some(0));
        server.end().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hub_tells_a_computer_of_another_protocol_what_to_update() {
    let home = Home::new();
    let mut hub = home.start("hub --listen 127.0.0.1:0 --json");
    let url = hub.line().await["url"].as_str().unwrap().to_owned();
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
        let dial = client(None)
            .get(format!("{url}/link/v3"))
            .header("connection", "Upgrade")
            .header("upgrade", "websocket")
            .header("sec-websocket-version", "13")
            .header("sec-websocket-key", "AAAAAAAAAAAAAAAAAAAAAA==")
            .header("sec-websocket-protocol", protocol)
            .header("authorization", "Bearer token-0123456789abcdef");
        let answer = dial.send().await.unwrap();
        assert_eq!(answer.status(), 426);
        let body: Value = answer.json().await.unwrap();
        assert_eq!(
            (&body["protocol"], &body["text"]),
            (&json!(3), &json!(text))
        );
    }
    assert_eq!(hub.end().await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn taken_back_the_computer_says_so_looks_seldom_and_can_be_linked_again() {
    let world = World::new().await;
    let mut events = world.page.events(None).await;
    let path = format!("/devices/{}", world.device);
    let (status, answer) = world.page.call(reqwest::Method::DELETE, &path, None).await;
    assert!(status.is_success(), "{answer}");
    let is_revoked = |status: &Value| status["linked"]["state"] == "revoked";
    let status = world.home.status("the end of the link", is_revoked).await;
    assert_eq!(status["ok"], false);
    let reason = status["linked"]["reason"].as_str().unwrap();
    assert!(
        reason.starts_with("Linked no more: run lembas link <url>."),
        "{reason}"
    );
    assert!(reason.contains("Access was taken back"), "{reason}");
    let minutes = minutes_to_next_try(&status);
    assert!((13.0..=15.0).contains(&minutes), "{minutes}");
    let shown = world.home.run("status").await;
    assert_eq!(shown.code, Some(1));
    assert!(
        shown.out.contains("linked no more to 127.0.0.1"),
        "{}",
        shown.out
    );
    let next = format!("run lembas link {}", world.page.url);
    assert!(
        format!("{}{}", shown.out, shown.err).contains(&next),
        "{}",
        shown.err
    );

    // Told to look, it looks once, and stands where it stood.
    world.home.well("link retry --json").await;
    world.home.status("the same", is_revoked).await;
    let log = world.daemon.log();
    let said = log.lines().filter(|line| line.contains("Linked no more"));
    assert_eq!(said.count(), 1, "{log}");
    let other = world.page.refused("/chats", world.new_chat("edit")).await;
    assert_eq!(other.0, 409, "{}", other.1);

    // Linked again, the daemon that runs goes on with the new token.
    let mut link = world.home.start(&format!("link {} --json", world.page.url));
    link.line().await;
    let code = json!({ "code": link.line().await["code"] });
    world.page.post("/link/approve", code).await;
    assert_eq!(link.line().await["event"], "linked");
    assert_eq!(link.wait().await, Some(0));
    super::world::online(&world.page, &mut events).await;
    let is_linked = |status: &Value| status["linked"]["state"] == "linked";
    assert_eq!(world.home.status("the link", is_linked).await["ok"], true);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_never_goes_out_unencrypted() {
    let home = Home::new();
    let ran = home.run("link http://192.0.2.1:8787").await;
    assert_eq!(ran.code, Some(64), "{}", ran.err);
    assert_eq!(
        ran.err,
        "error: http://192.0.2.1:8787 is not encrypted: anybody on the way could read this computer's token. \
         Use https://; plain http is taken only for this computer itself (localhost).\n  \
         try: lembas link https://192.0.2.1:8787\n"
    );
    // Nor to one that is linked so by a file that somebody changed.
    linked(&home, "http://192.0.2.1:8787").await;
    let mut daemon = home.start("daemon --json");
    daemon.line().await;
    let is_offline = |status: &Value| status["linked"]["state"] == "offline";
    let status = home.status("the refusal", is_offline).await;
    let reason = status["linked"]["reason"].as_str().unwrap();
    assert!(reason.contains("not encrypted"), "{reason}");
    assert_eq!(daemon.end().await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_that_nobody_vouches_for_is_refused_with_the_way_out() {
    let home = Home::new();
    let authority = Authority::new();
    let (cert, key) = authority.now().write(&home, "good");
    let mut hub = home.start(&format!(
        "hub --listen 127.0.0.1:0 --tls-cert {} --tls-key {} --json",
        cert.display(),
        key.display()
    ));
    let started = hub.line().await;
    let url = started["url"].as_str().unwrap();
    let host = url.trim_start_matches("https://");
    let ran = home.run(&format!("link {url}")).await;
    assert_eq!(ran.code, Some(69), "{}", ran.err);
    let lines: Vec<&str> = ran.err.lines().collect();
    assert_eq!(
        lines[0],
        format!("error: the certificate of {host} is not trusted")
    );
    assert!(
        lines[1].starts_with("  why: ") && lines[1].contains("[link] ca_file"),
        "{lines:?}"
    );
    assert_eq!(
        lines[2],
        "  try: lembas help config          [link] ca_file or pin"
    );

    // The link does not trust it either, whatever is in the file of the pairing.
    linked(&home, url).await;
    let mut daemon = home.start("daemon --json");
    daemon.line().await;
    let is_offline = |status: &Value| status["linked"]["state"] == "offline";
    let status = home.status("the refusal", is_offline).await;
    let reason = status["linked"]["reason"].as_str().unwrap();
    assert!(reason.contains("[link] ca_file"), "{reason}");
    assert_eq!(daemon.end().await, Some(0));

    // Plain HTTP at that port is no way around: nothing is answered.
    let plain = client(None)
        .get(url.replacen("https", "http", 1))
        .send()
        .await;
    assert!(plain.is_err());
    let page = Page::sign_in(client(Some(&authority.der)), &started).await;
    assert_eq!(page.get("/devices").await["devices"], json!([]));
    assert_eq!(hub.end().await, Some(0));
}
