//! What strangers send costs a hub memory only as long as it is worked on.

use serde_json::json;

use super::home::Home;
use super::page::{Page, client};

/// Memory that the process has of its own, in MiB, its files not counted.
fn own(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|l| l.starts_with("RssAnon:")).unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib / 1024
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_passwords_leave_no_memory_behind() {
    let home = Home::new();
    let mut hub = home.start("hub --listen 127.0.0.1:0 --json");
    let started = hub.line().await;
    let page = Page::sign_in(client(None), &started).await;
    page.get("/me").await;
    let before = own(hub.pid());
    // As many as are tried at all, all at once: each takes 19 MiB while it is hashed.
    let tries = (0..10).map(|n| {
        let page = page.clone();
        async move {
            let body = json!({ "name": "nobody", "password": format!("guess {n}") });
            page.refused("/signin", body).await.0
        }
    });
    let answers = futures_util::future::join_all(tries).await;
    assert_eq!(answers, [403; 10]);
    let after = own(hub.pid());
    assert!(after < before + 8, "{before} MiB before, {after} MiB after");
}
