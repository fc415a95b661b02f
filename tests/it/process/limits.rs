//! Limits that change while a command runs (spec/acp.md, limits that change): each ends what it must, at once,
//! and nothing else.

use std::time::Duration;

use lembas::testing::model::Reply;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::page::Events;
use super::tree::{self, Tree};
use super::world::{World, bash};

/// What ends has this long on a machine that has other things to do; alone it takes a moment.
const AT_ONCE: Duration = Duration::from_secs(10);

/// A change that ends remote work, and the one that lets it go on.
struct Change {
    make: Make,
    back: Make,
    /// Of the turn that it ends, and of a new chat that is refused.
    words: &'static str,
    reason: &'static str,
    /// The device's limits, once the hub has heard of the change.
    heard: fn(&Value) -> bool,
}

enum Make {
    Command(&'static str),
    Edit(fn(&str) -> String),
}

impl World {
    async fn make(&self, change: &Make) {
        match change {
            Make::Command(line) => drop(self.home.well(line).await),
            Make::Edit(edit) => self.home.save(&edit(&self.home.config())),
        }
    }

    /// Has a watch command run that does not end: what the page will hear, and its processes.
    async fn watch(&self) -> (JoinHandle<(u16, Value)>, Tree) {
        let mark = tree::mark();
        let (page, path) = (
            self.page.clone(),
            format!("/devices/{}/monitor", self.device),
        );
        let asked =
            json!({ "cwd": self.project, "command": format!("sleep {mark}"), "timeout": 300 });
        let watched = tokio::spawn(async move { page.refused(&path, asked).await });
        (watched, Tree::begun(&mark).await)
    }

    async fn limits(&self, events: &mut Events, what: &str, want: impl Fn(&Value) -> bool) {
        self.device(events, what, |device| {
            (device["state"] == "online" && want(&device["limits"])).then_some(())
        })
        .await;
    }
}

const CHANGES: [Change; 3] = [
    Change {
        make: Make::Command("roots remove projects"),
        back: Make::Command("roots add projects"),
        words: "folder no longer shared",
        reason: "roots",
        heard: |limits| limits["roots"] == json!([]),
    },
    Change {
        make: Make::Command("pause"),
        back: Make::Command("resume-work"),
        words: "paused on this computer",
        reason: "paused",
        heard: |limits| limits["paused"] == true,
    },
    Change {
        make: Make::Edit(|config| config.replace("[remote]\n", "[remote]\nenabled = false\n")),
        back: Make::Edit(|config| config.replace("enabled = false\n", "")),
        words: "Remote work is off on",
        reason: "remote_off",
        heard: |limits| limits["remote"] == false,
    },
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_may_not_go_on_is_ended_at_once_with_its_processes_and_its_questions() {
    let world = World::new().await;
    let mut events = world.page.events(None).await;
    for change in &CHANGES {
        let why = change.reason;
        let mark = tree::mark();
        let script = [Reply::calls(&[bash(&tree::command(&mark))])];
        let running = world.chat("edit", script).await;
        world.ready(&mut events, &running).await;
        let script = [Reply::calls(&[bash("echo asked >> ran.txt")])];
        let asking = world.chat("manual", script).await;
        let asks = world.asked(&mut events, &asking, 1).await;
        let tree = Tree::marked(&mark);
        assert!(tree.len() >= 3, "{}", tree.len());
        let (watched, watching) = world.watch().await;
        let requests = world.requests().len();

        world.make(&change.make).await;
        let took = tree.gone() + watching.gone();
        assert!(took < AT_ONCE, "{why}: {took:?}");
        let (status, error) = watched.await.unwrap();
        let interrupted = (status, &error["number"], &error["reason"]);
        let expected = (422, &json!(-32051), &json!("interrupted"));
        assert_eq!(interrupted, expected, "{error}");
        for chat in [&running, &asking] {
            world
                .in_chat(&mut events, chat, why, |shown| {
                    let items = shown["items"].as_array().unwrap();
                    let last = items.last()?["html"].as_str()?;
                    let ended = last.starts_with("Stopped") && last.contains(change.words);
                    let over = shown["chat"]["running"] == false && shown["asks"] == json!([]);
                    (ended && over).then_some(())
                })
                .await;
        }
        let all = world.page.get("/asks").await;
        let settled = all["settled"].as_array().unwrap();
        let ask = settled.iter().find(|one| one["ask"] == asks[0]["ask"]);
        assert_eq!(ask.unwrap()["outcome"], "cancelled", "{why}");
        assert_eq!(world.home.json("asks --json").await["asks"], json!([]));

        // The link was dialled anew, so that the hub knows; what is new is refused, and why.
        world.limits(&mut events, why, change.heard).await;
        let (status, error) = world.page.refused("/chats", world.new_chat("edit")).await;
        assert_eq!((status, &error["reason"]), (422, &json!(why)), "{error}");

        world.make(&change.back).await;
        let shared = |limits: &Value| limits["roots"].as_array().is_some_and(|r| !r.is_empty());
        world.limits(&mut events, "the old limits", shared).await;
        let chat = world.chat("edit", [Reply::text("It works again.")]).await;
        world.said(&mut events, &chat, "It works again.").await;
        // What was ended asked the model nothing more.
        assert_eq!(world.requests().len(), requests + 1, "{why}");
    }
    assert_eq!(
        world.ran(),
        CHANGES.len(),
        "no question was taken for a yes"
    );
    world.no_faults();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lowered_mode_lets_the_command_end_and_asks_before_the_next() {
    let world = World::new().await;
    let mut events = world.page.events(None).await;
    let first = "echo ran >> ran.txt; echo ready; until [ -e go ]; do sleep 0.02; done";
    let script = [
        Reply::calls(&[bash(first)]),
        Reply::calls(&[bash("echo ran >> ran.txt")]),
        Reply::text("Both ran."),
    ];
    let chat = world.chat("edit", script).await;
    world.ready(&mut events, &chat).await;
    world.home.well("mode manual").await;
    world
        .limits(&mut events, "the new limit", |limits| {
            limits["max_mode"] == "manual"
        })
        .await;
    let shown = world.page.get(&format!("/chats/{chat}")).await;
    assert_eq!(shown["chat"]["running"], true, "{shown}");
    assert_eq!(
        (shown["asks"].as_array().unwrap().len(), world.ran()),
        (0, 1)
    );

    std::fs::write(world.project.join("go"), "").unwrap();
    let asks = world.asked(&mut events, &chat, 1).await;
    assert_eq!(asks[0]["command"], "echo ran >> ran.txt");
    assert_eq!(world.ran(), 1);
    let shown = world.page.get(&format!("/chats/{chat}")).await;
    let items = shown["items"].as_array().unwrap();
    let step = items.iter().find(|item| item["kind"] == "step").unwrap();
    assert_eq!(step["status"], "ok", "{step}");

    // Raised again, the question that is open stays one.
    world.home.well("mode edit").await;
    let path = format!("/asks/{}", asks[0]["ask"].as_str().unwrap());
    let yes = json!({ "digest": asks[0]["digest"], "outcome": "allow" });
    world.page.post(&path, yes).await;
    world.said(&mut events, &chat, "Both ran.").await;
    assert_eq!(world.ran(), 2);
    world.no_faults();
}
