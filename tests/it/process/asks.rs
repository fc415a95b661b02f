//! Questions on a real project, answered from the page and from the terminal.

use lembas::testing::model::Reply;
use reqwest::StatusCode;
use serde_json::{Value, json};

use super::page::{Events, Page};
use super::world::{World, bash};

fn yes(ask: &Value) -> Value {
    json!({ "digest": ask["digest"], "outcome": "allow" })
}

fn path(ask: &Value) -> String {
    format!("/asks/{}", ask["ask"].as_str().unwrap())
}

fn id(ask: &Value) -> &str {
    ask["ask"].as_str().unwrap()
}

/// How a question ended, as the page shows it.
async fn ended(page: &Page, events: &mut Events, ask: &Value) -> Value {
    page.when(events, "/asks", "the question's end", |all| {
        let all = all["settled"].as_array().unwrap();
        all.iter().find(|one| one["ask"] == ask["ask"]).cloned()
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edit_and_a_command_asked_at_once_each_with_its_own_answer() {
    let world = World::new().await;
    let mut events = world.page.events(None).await;
    let edit = json!({ "path": "notes.txt", "old": "two", "new": "three" });
    let script = [
        Reply::calls(&[("read", json!({ "path": "notes.txt" }))]),
        Reply::calls(&[("edit", edit), bash("echo ran >> ran.txt")]),
        Reply::text("Both are done."),
    ];
    let chat = world.chat("manual", script).await;
    let asks = world.asked(&mut events, &chat, 2).await;
    let [edit, command] = asks.as_slice() else {
        panic!("{asks:?}")
    };
    assert_eq!(edit["kind"], "edit");
    let diff = edit["diff_html"].as_str().unwrap();
    assert!(diff.contains("three"), "{diff}");
    assert_eq!(command["command"], "echo ran >> ran.txt");
    assert_ne!(edit["digest"], command["digest"]);

    // One's yes is not the other's.
    let (status, error) = world.page.refused(&path(edit), yes(command)).await;
    assert_eq!((status, &error["code"]), (409, &json!("changed")));
    assert_eq!(
        world.page.post(&path(edit), yes(edit)).await["state"],
        "sent"
    );
    let settled = ended(&world.page, &mut events, edit).await;
    assert_eq!(settled["outcome"], "allowed");
    let who = settled["by"].as_str().unwrap();
    let notes = world.project.join("notes.txt");
    world
        .in_chat(&mut events, &chat, "the edit", |shown| {
            let items = shown["items"].as_array().unwrap();
            let done = |item: &Value| item["tool"] == "edit" && item["status"] == "ok";
            items.iter().any(done).then_some(())
        })
        .await;
    assert_eq!(std::fs::read_to_string(&notes).unwrap(), "one\nthree\n");
    assert_eq!(world.ran(), 0);

    // The terminal shows the other alone, whole, and its answer counts.
    let shown = world.home.well("asks").await.out;
    assert!(shown.contains("echo ran >> ran.txt"), "{shown}");
    assert!(!shown.contains("notes.txt"), "{shown}");
    let line = format!("answer {} allow --json", &id(command)[..8]);
    assert_eq!(world.home.json(&line).await["state"], "allowed");
    world.said(&mut events, &chat, "Both are done.").await;
    assert_eq!(world.ran(), 1);

    // Who comes late hears who was first, here and there.
    let late = world.home.run(&format!("answer {} refuse", id(edit))).await;
    assert_eq!(late.code, Some(1));
    let text = format!("error: it was allowed already, by {who}");
    assert!(late.err.starts_with(&text), "{}", late.err);
    let (status, error) = world.page.refused(&path(command), yes(command)).await;
    assert_eq!((status, &error["code"]), (409, &json!("settled")));
    assert_eq!(error["how"], "allowed");
    assert_eq!(error["by"], "you, on this computer");

    let log = world.home.well("log --json").await.out;
    let lines: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let said = |who: &str| {
        let by = |line: &&Value| line["who"].as_str().is_some_and(|w| w.starts_with(who));
        lines
            .iter()
            .filter(by)
            .any(|line| line["verdict"] == "allowed once")
    };
    assert!(said(who) && said("you, on this computer"), "{log}");
    world.no_faults();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_answers_at_once_the_first_counts_and_the_other_hears_whose_it_was() {
    let world = World::new().await;
    let mut events = world.page.events(None).await;
    let mut expected = 0;
    for round in 0..4 {
        let words = format!("Round {round} is over.");
        let script = [
            Reply::calls(&[bash("echo ran >> ran.txt")]),
            Reply::text(&words),
        ];
        let chat = world.chat("manual", script).await;
        let asks = world.asked(&mut events, &chat, 1).await;
        let ask = &asks[0];
        let line = format!("answer {} refuse", id(ask));
        let (path, yes) = (path(ask), yes(ask));
        let (there, here) = tokio::join!(
            world.page.call(reqwest::Method::POST, &path, Some(&yes)),
            world.home.run(&line)
        );
        let end = ended(&world.page, &mut events, ask).await;
        world.said(&mut events, &chat, &words).await;
        match here.code {
            Some(0) => {
                assert_eq!(end["outcome"], "refused", "{end}");
                let by = end["by"].as_str().unwrap();
                // A page elsewhere is told which computer that is.
                assert!(by.starts_with("you, on ") && !by.contains("this"), "{end}");
                // The page's own answer came too late, unless it heard that before it was sent.
                let heard = there.0 == StatusCode::CONFLICT;
                assert!(heard || end["late"] == true, "{there:?} {end}");
            }
            code => {
                assert_eq!(code, Some(1), "{}", here.err);
                assert!(here.err.contains("allowed already, by"), "{}", here.err);
                assert_eq!(there.0, StatusCode::ACCEPTED, "{}", there.1);
                assert_eq!(end["outcome"], "allowed", "{end}");
                assert_eq!(end["late"], false, "{end}");
                expected += 1;
            }
        }
        assert_eq!(world.ran(), expected, "round {round}");
    }
    world.no_faults();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_with_a_word_reaches_the_model_from_both_places() {
    let world = World::new().await;
    let mut events = world.page.events(None).await;
    let script = [
        Reply::calls(&[
            bash("echo ran >> ran.txt"),
            bash("echo ran twice >> ran.txt"),
        ]),
        Reply::text("Understood."),
    ];
    let chat = world.chat("manual", script).await;
    let asks = world.asked(&mut events, &chat, 2).await;
    let note = "use the test database, naïve one";
    let no = json!({ "digest": asks[0]["digest"], "outcome": "refuse", "note": note });
    world.page.post(&path(&asks[0]), no).await;
    let there = ended(&world.page, &mut events, &asks[0]).await;
    assert_eq!(
        (&there["outcome"], &there["note"]),
        (&json!("refused"), &json!(note))
    );

    // From now on only answers of this computer count: the page is told so, and the question stays.
    world.home.well("approvals local").await;
    let no = json!({ "digest": asks[1]["digest"], "outcome": "refuse" });
    world
        .device(&mut events, "the new limits", |device| {
            let told = device["limits"]["approvals"] == "local" && device["state"] == "online";
            told.then_some(())
        })
        .await;
    let open = world.asked(&mut events, &chat, 1).await;
    world.page.post(&path(&open[0]), no).await;
    world
        .in_chat(&mut events, &chat, "why it does not count", |shown| {
            let ask = &shown["asks"][0];
            let words = ask["words"].as_str()?;
            (ask["state"] == "open" && words.contains("lembas asks")).then_some(())
        })
        .await;
    let words = ["answer", id(&asks[1]), "refuse", "--note", "never twice"];
    let here = world.home.run_words(&words).await;
    assert_eq!(here.code, Some(0), "{}", here.err);
    world.said(&mut events, &chat, "Understood.").await;
    assert_eq!(world.ran(), 0);
    let requests = world.requests();
    let results: Vec<&str> = requests[1]["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|message| message["role"] == "tool")
        .map(|message| message["content"].as_str().unwrap())
        .collect();
    assert!(
        results[0].ends_with(&format!("who says: {note}")),
        "{results:?}"
    );
    assert!(results[1].ends_with("who says: never twice"), "{results:?}");
    world.no_faults();
}
