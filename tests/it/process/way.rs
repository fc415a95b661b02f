//! The way to the instance changes while the daemon runs: the next dial goes by the new settings.

use lembas::link::http::Pin;
use lembas::link::instance::{Instance as Pairing, InstanceFile};
use serde_json::{Value, json};

use super::home::Home;
use crate::link::server::{Reply, Server, Tls};

/// A pairing with an instance at that host and port, as `link` leaves one.
async fn linked_to(home: &Home, host: &str) {
    let pairing: Pairing = serde_json::from_value(json!({
        "url": format!("https://{host}"), "instance": "i-1", "name": "home",
        "link": format!("wss://{host}/link"),
        "account": { "id": "a", "name": "ana" }, "device": "0f5b", "paired_at": 1,
        "token": "token-0123456789abcdef",
    }))
    .unwrap();
    InstanceFile::in_folder(&home.settings())
        .save(pairing)
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_setting_of_the_way_counts_without_a_restart() {
    let tls = Tls::new();
    let at = "127.0.0.1:0".parse().unwrap();
    let answer = |request: &crate::link::server::Request| match request.path.as_str() {
        "/link" => Reply::Upgrade,
        _ => Reply::Nothing,
    };
    let mut server = Server::start(at, Some(tls.acceptor.clone()), answer).await;
    let to = server.address;
    let home = Home::new();
    let authority = home.path("ca.pem");
    std::fs::write(&authority, &tls.authority).unwrap();
    linked_to(&home, &to.to_string()).await;
    let mut daemon = home.start("daemon --json");
    daemon.line().await;
    let because = |words: &'static str| {
        move |status: &Value| {
            let linked = &status["linked"];
            linked["state"] == "offline"
                && linked["reason"]
                    .as_str()
                    .unwrap_or_default()
                    .contains(words)
        }
    };
    home.status("that it is not trusted", because("UnknownIssuer"))
        .await;

    home.save(&format!("[link]\nca_file = {authority:?}\n"));
    server.dialled().await;

    let wrong = Pin::of(b"another");
    home.save(&format!("[link]\npin = \"{wrong}\"\n"));
    home.status("the wrong pin", because("not the pinned one"))
        .await;
    let right = Pin::of(&tls.certificate);
    home.save(&format!("[link]\npin = \"{right}\"\n"));
    server.dialled().await;

    home.save("");
    home.status("that it is not trusted again", because("UnknownIssuer"))
        .await;
    assert_eq!(daemon.end().await, Some(0));
}

/// This computer itself is never reached through a proxy, so the instance is elsewhere: it is not
/// dialled at all, for both proxies refuse.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_proxy_counts_without_a_restart() {
    let proxy = |answer: &'static str| {
        Server::plain(move |request| {
            assert_eq!(request.method, "CONNECT");
            Reply::Http(answer, vec![], String::new())
        })
    };
    let (first, second) = (
        proxy("403 Forbidden").await,
        proxy("407 Proxy Authentication Required").await,
    );
    let home = Home::new();
    let by = |proxy: &Server| format!("[link]\nproxy = \"{}\"\n", proxy.url());
    std::fs::create_dir_all(home.settings()).unwrap();
    home.save(&by(&first));
    linked_to(&home, "192.0.2.1").await;
    let mut daemon = home.start("daemon --json");
    daemon.line().await;
    let because = |words: &'static str| {
        move |status: &Value| {
            let reason = status["linked"]["reason"].as_str().unwrap_or_default();
            reason.contains(words)
        }
    };
    home.status(
        "the first proxy",
        because("does not let this computer through"),
    )
    .await;
    home.save(&by(&second));
    home.status("the second proxy", because("wants a name and password"))
        .await;
    assert_eq!(daemon.end().await, Some(0));
}
