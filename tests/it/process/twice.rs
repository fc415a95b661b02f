//! `lembas up` while another one runs, or is just starting.

use std::time::{Duration, Instant};

use super::home::Home;

/// What a person waits for without wondering.
const PROMPT: Duration = Duration::from_secs(2);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_up_attaches_to_the_first_within_two_seconds() {
    let home = Home::new();
    let mut first = home.start("up --listen 127.0.0.1:0 --json");
    let one = first.line().await;
    assert_eq!(one["state"], "started");
    // The machine may have other things to do just then: a delay of ours would be there each time.
    let mut quickest = Duration::MAX;
    for _ in 0..5 {
        let began = Instant::now();
        let mut second = home.start("up --listen 127.0.0.1:0 --json");
        let two = second.line().await;
        quickest = quickest.min(began.elapsed());
        assert_eq!(two["state"], "running");
        assert_eq!((&two["url"], &two["pid"]), (&one["url"], &one["pid"]));
        assert_eq!(second.wait().await, Some(0));
        if quickest < PROMPT {
            break;
        }
    }
    assert!(quickest < PROMPT, "{quickest:?}");
    assert_eq!(first.end().await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_that_start_at_once_one_attaches_to_the_other() {
    let home = Home::new();
    let mut both = [
        home.start("up --listen 127.0.0.1:0 --json"),
        home.start("up --listen 127.0.0.1:0 --json"),
    ];
    let [a, b] = &mut both;
    let (a, b) = tokio::join!(a.line(), b.line());
    let mut states = [a["state"].as_str().unwrap(), b["state"].as_str().unwrap()];
    states.sort_unstable();
    assert_eq!(states, ["running", "started"]);
    assert_eq!((&a["url"], &a["pid"]), (&b["url"], &b["pid"]));
    for mut one in both {
        let first = one.pid() == a["pid"].as_u64().unwrap() as u32;
        let code = if first {
            one.end().await
        } else {
            one.wait().await
        };
        assert_eq!(code, Some(0));
    }
}
