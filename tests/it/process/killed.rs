//! `kill -9` of the daemon: with a question open, and with a command running.

use lembas::testing::model::Reply;
use serde_json::{Value, json};

use super::page::Events;
use super::tree::{self, Tree};
use super::world::{World, bash};

impl World {
    /// Kills the daemon and waits until the hub knows.
    async fn killed(&mut self, events: &mut Events) {
        self.daemon.kill().await;
        self.device(events, "that it is away", |device| {
            (device["state"] == "away").then_some(())
        })
        .await;
    }

    /// What the model heard of its calls with its last request.
    fn last_results(&self) -> Vec<String> {
        let requests = self.requests();
        let messages = requests.last().unwrap()["messages"].as_array().unwrap();
        let results = messages.iter().filter(|message| message["role"] == "tool");
        results
            .map(|message| message["content"].as_str().unwrap().to_owned())
            .collect()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_outlives_the_kill_and_what_was_asked_runs_exactly_once() {
    let mut world = World::new().await;
    let mut events = world.page.events(None).await;
    for (round, how) in ["page", "terminal", "page, while it is away"]
        .into_iter()
        .enumerate()
    {
        let words = format!("It was answered: {how}.");
        let script = [
            Reply::calls(&[bash("echo ran >> ran.txt")]),
            Reply::text(&words),
        ];
        let chat = world.chat("manual", script).await;
        let asked = world.asked(&mut events, &chat, 1).await;
        world.killed(&mut events).await;
        assert_eq!(world.ran(), round);
        let ask = asked[0]["ask"].as_str().unwrap();
        let path = format!("/asks/{ask}");
        let yes = json!({ "digest": asked[0]["digest"], "outcome": "allow" });
        if how.ends_with("away") {
            world.page.post(&path, yes).await;
            let open = world.page.get("/asks").await["asks"][0].clone();
            assert_eq!(open["state"], "sending", "{open}");
            assert_eq!(open["words"], "Not delivered yet. The command has not run.");
            world.start_again().await;
        } else {
            world.start_again().await;
            world
                .device(&mut events, "that it is back", |device| {
                    (device["state"] == "online").then_some(())
                })
                .await;
            let again = world.asked(&mut events, &chat, 1).await;
            assert_eq!(again[0]["ask"], asked[0]["ask"]);
            assert_eq!(again[0]["digest"], asked[0]["digest"]);
            if how == "page" {
                world.page.post(&path, yes).await;
            } else {
                world.home.well(&format!("answer {ask} allow")).await;
            }
        }
        world.said(&mut events, &chat, &words).await;
        assert_eq!(world.ran(), round + 1, "{how}");
    }
    world.no_faults();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_while_a_boxed_command_runs_its_whole_tree_is_gone_and_it_runs_no_second_time() {
    let mut world = World::new().await;
    let mut events = world.page.events(None).await;
    let mark = tree::mark();
    let script = [
        Reply::calls(&[bash(&tree::command(&mark))]),
        Reply::text("I looked at what is there."),
    ];
    let chat = world.chat("edit", script).await;
    world.ready(&mut events, &chat).await;
    let tree = Tree::marked(&mark);
    // The shell, its two, and whoever makes the box.
    assert!(tree.len() >= 3, "{}", tree.len());
    world.killed(&mut events).await;
    tree.gone();
    assert_eq!(Tree::marked(&mark).len(), 0);

    world.start_again().await;
    let shown = world
        .said(&mut events, &chat, "I looked at what is there.")
        .await;
    let items = shown["items"].as_array().unwrap();
    let step = items.iter().find(|item| item["kind"] == "step").unwrap();
    assert_eq!(step["status"], "unknown", "{step}");
    let heard = world.last_results();
    assert!(
        heard[0].contains("The computer stopped while this ran."),
        "{heard:?}"
    );
    assert_eq!(world.ran(), 1);
    assert_eq!(Tree::marked(&mark).len(), 0);
    let sessions: Value = world.home.json("status --json").await;
    assert_eq!(sessions["sessions"][0]["running"], false, "{sessions}");
    world.no_faults();
}
