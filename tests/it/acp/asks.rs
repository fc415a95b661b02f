//! Questions: said once a connection, said again after a drop, answered once.

use lembas::session::Outcome;
use lembas::store::item::{Scope, Settled};
use serde_json::json;

use super::client::Heard;
use super::*;

const TWO: &[Scope] = &[Scope::Once, Scope::Session];

fn answer(ask: &str, outcome: &str) -> Value {
    json!({ "ask": ask, "digest": format!("sha256:{ask}"), "outcome": outcome, "by": "ana, on the page" })
}

#[tokio::test]
async fn an_answer_is_taken_once_and_the_request_taken_back() {
    let place = Place::new();
    let client = place.instance().await;
    open(&client, &place).await;
    let fake = place.sessions.one();
    fake.ask("a1", TWO);
    let asked = client.asked().await;
    assert_eq!(asked.method, "session/request_permission");
    let ours = &asked.params["_meta"]["lembas"];
    assert_eq!(
        (ours["ask"].as_str(), ours["digest"].as_str()),
        (Some("a1"), Some("sha256:a1"))
    );
    assert_eq!(asked.params["toolCall"]["title"], "git push");
    assert_eq!(
        asked.params["toolCall"]["rawInput"],
        json!({ "command": "git push" })
    );
    let taken = client
        .ask("_lembas/answer", answer("a1", "allow"))
        .await
        .unwrap();
    assert_eq!(taken, json!({ "taken": true, "at": 78 }));
    asked.cancelled.cancelled().await;
    let given = fake.state.lock().answers[0].clone();
    assert_eq!(
        (given.outcome, given.by.as_str()),
        (Outcome::Allow, "ana, on the page")
    );
    assert_eq!(given.origin, instance("g1"));
    // A second tab answers too.
    let error = client
        .ask("_lembas/answer", answer("a1", "refuse"))
        .await
        .unwrap_err();
    let data = error.data.unwrap();
    assert_eq!(
        (error.code, data["reason"].as_str()),
        (-32004, Some("settled"))
    );
    assert_eq!(
        (
            data["how"].as_str(),
            data["by"].as_str(),
            data["at"].as_i64()
        ),
        (Some("allowed"), Some("ana, on the page"), Some(77))
    );
}

#[tokio::test]
async fn what_does_not_count_says_why() {
    let place = Place::new();
    let client = place.instance().await;
    open(&client, &place).await;
    let fake = place.sessions.one();
    fake.ask("a1", TWO);
    let asked = client.asked().await;
    let mut changed = answer("a1", "allow");
    changed["digest"] = json!("sha256:other");
    assert_eq!(
        refused(client.ask("_lembas/answer", changed).await),
        (-32004, "changed".to_owned())
    );
    let mut wider = answer("a1", "allow");
    wider["scope"] = json!("always");
    assert_eq!(
        refused(client.ask("_lembas/answer", wider).await),
        (-32602, "params".to_owned())
    );
    let unknown = client.ask("_lembas/answer", answer("zz", "allow")).await;
    assert_eq!(refused(unknown), (-32004, "unknown".to_owned()));
    let extended = client
        .ask("_lembas/extend", json!({ "ask": "a1", "seconds": 1800 }))
        .await
        .unwrap();
    assert_eq!(extended["expires_in"], 1_800_000);
    assert!(!asked.cancelled.is_cancelled(), "it is still open");
}

#[tokio::test]
async fn an_open_ask_is_said_again_after_a_drop_and_ends_everywhere() {
    let place = Place::new();
    let first = place.instance().await;
    open(&first, &place).await;
    let fake = place.sessions.one();
    fake.ask("a1", TWO);
    fake.ask("a2", TWO);
    let (one, two) = (first.asked().await, first.asked().await);
    assert_ne!(one.id, two.id);
    first.peer.close(1001, "drop");
    fake.settle("a2", Settled::Refused, "you, on this computer");
    let second = place.instance().await;
    let again = second.asked().await;
    assert_eq!(again.params["_meta"]["lembas"]["ask"], "a1");
    let third = place.instance().await;
    let both = third.asked().await;
    fake.settle("a1", Settled::Allowed, "you, on this computer");
    again.cancelled.cancelled().await;
    both.cancelled.cancelled().await;
    let rest = second.heard().await;
    assert!(
        !rest.iter().any(|heard| matches!(heard, Heard::Asked(_))),
        "a settled one is no ghost"
    );
}

#[tokio::test]
async fn a_wait_begins_when_the_ask_was_acknowledged() {
    let place = Place::new();
    let client = place.instance().await;
    let id = open(&client, &place).await;
    let fake = place.sessions.one();
    fake.ask("a1", TWO);
    client.asked().await;
    let seq = fake.head().0;
    client
        .tell(
            "_lembas/ack",
            json!({ "sessionId": id, "seq": seq - 1, "at": 0 }),
        )
        .await;
    client.ask("_lembas/status", json!({})).await.unwrap();
    assert!(fake.state.lock().heard.is_empty());
    client
        .tell(
            "_lembas/ack",
            json!({ "sessionId": id, "seq": seq, "at": 0 }),
        )
        .await;
    fake.when("it was heard", |state| state.heard.len() == 1)
        .await;
}

#[tokio::test]
async fn a_plain_client_answers_the_request_itself() {
    let place = Place::new();
    let editor = place.editor().await;
    open(&editor, &place).await;
    let fake = place.sessions.one();
    let selected = |id: &str| json!({ "outcome": { "outcome": "selected", "optionId": id } });
    for (n, (reply, outcome, scope)) in [
        (Ok(selected("once")), Outcome::Allow, Scope::Once),
        (Ok(selected("session")), Outcome::Allow, Scope::Session),
        (Ok(selected("refuse")), Outcome::Refuse, Scope::Once),
        (
            Ok(json!({ "outcome": { "outcome": "cancelled" } })),
            Outcome::Cancel,
            Scope::Once,
        ),
        (Ok(selected("everything")), Outcome::Cancel, Scope::Once),
        (Ok(json!("yes")), Outcome::Cancel, Scope::Once),
        (
            Err(lembas::rpc::RpcError::method_not_found("x")),
            Outcome::Cancel,
            Scope::Once,
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let id = format!("a{n}");
        fake.ask(&id, TWO);
        let asked = editor.asked().await;
        let names: Vec<_> = asked.params["options"]
            .as_array()
            .unwrap()
            .iter()
            .map(|o| o["optionId"].clone())
            .collect();
        assert_eq!(names, ["once", "session", "refuse"]);
        asked.answer(reply);
        fake.when("it is answered", |state| state.answers.len() == n + 1)
            .await;
        let given = fake.state.lock().answers[n].clone();
        assert_eq!(
            (given.ask.as_str(), given.outcome, given.scope),
            (id.as_str(), outcome, scope)
        );
        assert!(
            fake.state.lock().heard.len() > n,
            "its wait began when it was said"
        );
    }
}

#[tokio::test]
async fn the_call_is_heard_before_its_question() {
    let place = Place::new();
    let editor = place.editor().await;
    open(&editor, &place).await;
    let fake = place.sessions.one();
    fake.say(&"x".repeat(500_000));
    fake.ask("a1", TWO);
    let mut call = false;
    loop {
        match editor.hear().await {
            Heard::Notice(_, params) => call |= params["update"]["sessionUpdate"] == "tool_call",
            Heard::Asked(_) => break assert!(call, "a question about nothing"),
        }
    }
}

#[tokio::test]
async fn an_editor_is_asked_about_its_own_sessions() {
    let place = Place::new();
    let (one, two) = (place.editor().await, place.editor().await);
    open(&one, &place).await;
    place.sessions.one().ask("a1", TWO);
    // Kept: to drop it is to answer it with an error.
    let asked = one.asked().await;
    let id = asked.params["sessionId"].as_str().unwrap().to_owned();
    two.ask("session/list", json!({})).await.unwrap();
    assert!(two.heard().await.is_empty());
    let load = json!({ "sessionId": id, "cwd": place.root(), "mcpServers": [] });
    two.ask("session/load", load).await.unwrap();
    assert_eq!(two.asked().await.params["_meta"]["lembas"]["ask"], "a1");
}

#[tokio::test]
async fn yeses_that_do_not_count_from_there_are_not_offered() {
    use lembas::config::Approvals;
    let place = Place::new();
    let all = &[Scope::Once, Scope::Session, Scope::Always];
    for (approvals, expected) in [
        (Approvals::Once, json!(["once", "session"])),
        (Approvals::Full, json!(["once", "session", "always"])),
        (Approvals::Local, json!([])),
    ] {
        place.set(|remote| remote.approvals = approvals);
        let client = place.instance().await;
        open(&client, &place).await;
        place.sessions.one().ask(&format!("{approvals:?}"), all);
        let asked = loop {
            let asked = client.asked().await;
            if asked.params["_meta"]["lembas"]["ask"] == format!("{approvals:?}") {
                break asked;
            }
        };
        assert_eq!(asked.params["_meta"]["lembas"]["scopes"], expected);
        let options = asked.params["options"].as_array().unwrap().len();
        assert_eq!(options, expected.as_array().unwrap().len() + 1);
    }
}

#[tokio::test]
async fn a_scheduled_runs_question_says_so() {
    let place = Place::new();
    place.set(|remote| remote.scheduled = true);
    let client = place.instance().await;
    let meta = json!({ "scheduled": { "schedule": "w", "run": "r1" } });
    client
        .ask("session/new", new_in(&place, meta))
        .await
        .unwrap();
    place.sessions.one().ask("a1", TWO);
    let asked = client.asked().await;
    assert_eq!(
        asked.params["_meta"]["lembas"]["scheduled"],
        json!({ "schedule": "w", "run": "r1" })
    );
}
