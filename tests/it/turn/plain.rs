//! What a turn does when nothing goes wrong, and what a session is to those who list it.

use lembas::ids::{Position, SessionId};
use lembas::permission::Origin;
use lembas::session::{SessionError, TurnDone};
use lembas::store::item::{Body, CallStatus, Stop, Tokens};
use lembas::testing::model::{Reply, call, done, finish, say, think};
use serde_json::json;

use super::home::{Home, bash, begin, journal, prompt, remote, result_of, soon, until};

fn kinds(items: &[lembas::store::item::Item]) -> String {
    items
        .iter()
        .map(|i| lembas::store::device::items::kind(&i.body))
        .collect::<Vec<_>>()
        .join(" ")
}

#[tokio::test]
async fn a_prompt_is_answered() {
    let home = Home::new().await;
    let (_registry, session) = home.local().await;
    home.model.play([Reply::stream(vec![
        think("hm"),
        say("Hel"),
        say("lo"),
        finish("stop"),
        lembas::testing::model::usage(),
        done(),
    ])]);
    let done = session.prompt(prompt("k", "Hi there\nmore")).await.unwrap();
    let tokens = Tokens {
        input: 100,
        cached_input: 60,
        output: 10,
    };
    assert_eq!(
        done,
        TurnDone {
            turn: 1,
            stop: Stop::EndTurn,
            reason: None,
            tokens,
            run: None
        }
    );
    let items = journal(&session).await;
    assert_eq!(
        kinds(&items),
        "prompt title step thought message sampled turn_end"
    );
    assert!(matches!(&items[4].body, Body::Message { text } if text == "Hello"));
    let summary = session.summary().await;
    assert_eq!(summary.title.as_deref(), Some("Hi there"));
    assert!(!summary.running && summary.progress.is_none());
    let request = &home.model.requests()[0];
    assert_eq!(request["model"], "m");
    assert_eq!(request["stream"], true);
    assert_eq!(request["stream_options"]["include_usage"], true);
    assert_eq!(request["tools"].as_array().unwrap().len(), 2);
    assert_eq!(home.model.bearers(), ["device-token"]);
    home.no_faults();
}

#[tokio::test]
async fn calls_run_in_order_and_their_results_go_back_under_their_numbers() {
    let home = Home::new().await;
    let (_registry, session) = home.local().await;
    home.model.play([
        Reply::calls(&[bash("one"), bash("two"), bash("no way")]),
        Reply::calls(&[bash("three")]),
        Reply::text("Done."),
    ]);
    session.prompt(prompt("k", "go")).await.unwrap();
    assert_eq!(home.ran(), ["one", "two", "three"]);
    let items = journal(&session).await;
    assert_eq!(
        kinds(&items),
        "prompt title step call call call sampled started result started result result \
         step call sampled started result step message sampled turn_end"
    );
    assert_eq!(result_of(&items, "0003").0, CallStatus::Refused);
    let requests = home.model.requests();
    let tools: Vec<&str> = requests[2]["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|m| m["role"] == "tool")
        .map(|m| m["content"].as_str().unwrap())
        .collect();
    assert_eq!(
        tools,
        [
            "[#0001]\nran one",
            "[#0002]\nran two",
            "[#0003]\nRefused in every mode.",
            "[#0004]\nran three"
        ]
    );
    home.no_faults();
}

#[tokio::test]
async fn what_was_sent_is_sent_again_byte_for_byte() {
    let home = Home::new().await;
    let (registry, session) = home.local().await;
    home.model.play([
        Reply::calls(&[bash("one")]),
        Reply::text("a"),
        Reply::text("b"),
    ]);
    session.prompt(prompt("k1", "go")).await.unwrap();
    let id = session.id().clone();
    assert!(registry.park().await);
    drop((registry, session));
    let registry = home.start(&home.tasks).await;
    let session = registry.get(&id, &Origin::Local).await.unwrap();
    session
        .set_mode(lembas::config::Mode::Manual, "you")
        .await
        .unwrap();
    session.prompt(prompt("k2", "more")).await.unwrap();
    let sent: Vec<Vec<String>> = home
        .model
        .requests()
        .iter()
        .map(|r| {
            let messages = r["messages"].as_array().unwrap();
            messages.iter().map(ToString::to_string).collect()
        })
        .collect();
    for (before, after) in sent.iter().zip(sent.iter().skip(1)) {
        assert_eq!(*before, after[..before.len()]);
    }
    let last = sent[2].last().unwrap();
    assert!(
        last.contains("<session-note>") && last.contains("Manual"),
        "{last}"
    );
    assert!(!last.contains("Today"), "{last}");
    home.no_faults();
}

#[tokio::test]
async fn readers_run_together_and_others_wait_for_them() {
    let home = Home::new().await;
    let (_registry, session) = home.local().await;
    let look = ("look", json!({ "command": "meet" }));
    home.model.play([
        // Each of the two readers ends only when the other runs too.
        Reply::calls(&[look.clone(), look, bash("after")]),
        Reply::text("ok"),
    ]);
    soon(session.prompt(prompt("k", "go"))).await.unwrap();
    assert_eq!(home.ran(), ["meet", "meet", "after"]);
    home.no_faults();
}

#[tokio::test]
async fn the_model_is_told_of_calls_that_are_not_to_be_run() {
    let home = Home::new().await;
    let (_registry, session) = home.local().await;
    home.model.play([
        Reply::stream(vec![
            call(0, "fly", "{}"),
            call(1, "bash", "{\"command\": \"ls"),
            call(2, "bash", "[1]"),
            call(3, "bash", "{}"),
            call(4, "bash", "{\"command\":\"break\"}"),
            finish("tool_calls"),
            done(),
        ]),
        Reply::text("sorry"),
    ]);
    session.prompt(prompt("k", "go")).await.unwrap();
    let items = journal(&session).await;
    for (call, words) in [
        (
            "0001",
            "There is no tool called fly. There are: bash, look.",
        ),
        ("0002", "could not be read: EOF"),
        ("0003", "no JSON object"),
        ("0004", "command is missing"),
        ("0005", "broke down inside lembas"),
    ] {
        let (status, text) = result_of(&items, call);
        assert_eq!(status, CallStatus::Failed);
        assert!(text.contains(words), "{call}: {text}");
    }
    home.no_faults();
}

#[tokio::test]
async fn a_model_that_only_makes_bad_calls_is_stopped() {
    let home = Home::new().await;
    let (_registry, session) = home.local().await;
    home.model
        .play((0..20).map(|n| Reply::calls(&[("fly", json!({ "high": n }))])));
    let done = session.prompt(prompt("k", "go")).await.unwrap();
    assert_eq!(done.stop, Stop::EndTurn);
    assert!(done.reason.unwrap().contains("no call could run"));
    assert_eq!(home.model.requests().len(), 8);
}

#[tokio::test]
async fn steps_end_and_the_last_requests_say_so() {
    let mut home = Home::new().await;
    home.steps = 4;
    let (_registry, session) = home.local().await;
    home.model.play((0..9).map(|_| Reply::calls(&[bash("x")])));
    let done = session.prompt(prompt("k", "go")).await.unwrap();
    assert_eq!(done.stop, Stop::MaxTurnRequests);
    let told: Vec<bool> = home
        .model
        .requests()
        .iter()
        .map(|r| r["messages"].to_string().contains("WrapUp"))
        .collect();
    assert_eq!(told, [false, true, true, true]);
    assert_eq!(home.ran().len(), 3);
    home.no_faults();
}

#[tokio::test]
async fn keys_join_and_a_second_prompt_is_busy() {
    let home = Home::new().await;
    let (registry, session) = home.local().await;
    home.model
        .play([Reply::calls(&[bash("gate")]), Reply::text("one")]);
    let first = begin(&home.tasks, &session, prompt("k", "go"));
    until(&session, |i| matches!(i.body, Body::Started { .. })).await;
    let joined = begin(&home.tasks, &session, prompt("k", "go"));
    assert!(matches!(
        session.prompt(prompt("other", "go")).await,
        Err(SessionError::Busy)
    ));
    assert!(matches!(
        session.prompt(prompt("k", "something else")).await,
        Err(SessionError::Key(_))
    ));
    home.world.gate.add_permits(1);
    let first = soon(first).await.unwrap().unwrap().unwrap();
    assert_eq!(soon(joined).await.unwrap().unwrap().unwrap(), first);
    assert_eq!(session.prompt(prompt("k", "go")).await.unwrap(), first);
    let id = session.id().clone();
    drop((session, registry));
    let registry = home.start(&home.tasks).await;
    let session = registry.get(&id, &Origin::Local).await.unwrap();
    assert_eq!(session.prompt(prompt("k", "go")).await.unwrap(), first);
    assert_eq!(home.model.requests().len(), 2);
    home.no_faults();
}

#[tokio::test]
async fn sessions_are_opened_once_a_key_listed_shared_and_deleted() {
    let home = Home::new().await;
    home.share(|_| {});
    let registry = home.start(&home.tasks).await;
    let keyed = |text: &str| {
        let mut new = home.new_session(remote());
        new.key = Some("k".into());
        new.said = Some(text.into());
        new
    };
    let first = registry.open(keyed("a")).await.unwrap();
    assert_eq!(registry.open(keyed("a")).await.unwrap().id(), first.id());
    assert!(matches!(
        registry.open(keyed("b")).await,
        Err(SessionError::Key(_))
    ));
    let mut changes = registry.changes();
    let local = registry
        .open(home.new_session(Origin::Local))
        .await
        .unwrap();
    soon(changes.changed()).await.unwrap();
    let ids = async |asker: &Origin| {
        let (list, next) = registry.list(asker, None, None, 50).await.unwrap();
        assert_eq!(next, None);
        let mut ids: Vec<SessionId> = list.into_iter().map(|s| s.id).collect();
        ids.sort();
        ids
    };
    let mut both = vec![first.id().clone(), local.id().clone()];
    both.sort();
    assert_eq!(ids(&Origin::Local).await, both);
    assert_eq!(ids(&remote()).await, [first.id().clone()]);
    assert!(matches!(
        registry.get(local.id(), &remote()).await,
        Err(SessionError::Missing(_))
    ));
    registry.share(local.id(), true).await.unwrap();
    assert_eq!(ids(&remote()).await, both);
    let (page, next) = registry.list(&Origin::Local, None, None, 1).await.unwrap();
    let (rest, _) = registry.list(&Origin::Local, None, next, 1).await.unwrap();
    assert_ne!(page[0].id, rest[0].id);

    home.model.play([Reply::text("x")]);
    first.prompt(prompt("p", "hi")).await.unwrap();
    let mut follow = first.follow(Position::default());
    first.delete().await.unwrap();
    soon(async { while follow.next().await.is_some() {} }).await;
    assert!(matches!(
        registry.get(first.id(), &Origin::Local).await,
        Err(SessionError::Missing(_))
    ));
    assert!(matches!(
        first.prompt(prompt("q", "hi")).await,
        Err(SessionError::Missing(_))
    ));
    assert_eq!(ids(&Origin::Local).await, [local.id().clone()]);
}
