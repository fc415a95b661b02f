//! What a person does about a turn that went wrong: asks the model at once, takes another, takes
//! the messages back.

use lembas::ids::{Position, Seq};
use lembas::permission::Origin;
use lembas::session::{Event, Phase, Progress, Session, SessionError};
use lembas::store::item::{Body, Stop};
use lembas::testing::model::Reply;
use serde_json::json;

use super::home::{Home, begin, journal, prompt, soon};

fn leave_me_alone() -> Reply {
    Reply::error(
        429,
        "application/json",
        r#"{"error":{"message":"slow down"}}"#,
    )
    .header("retry-after", "1800")
}

/// Waits until the next try is waited for.
async fn retrying(session: &Session) -> Progress {
    let mut follow = session.follow(Position::default());
    soon(async {
        loop {
            match follow.next().await {
                Some(Event::Progress(now)) if now.phase == Phase::Retrying => return now,
                Some(_) => {}
                None => panic!("the session is gone"),
            }
        }
    })
    .await
}

#[tokio::test]
async fn a_wait_for_the_next_try_ends_at_a_word() {
    let home = Home::new().await;
    let (_registry, session) = home.local().await;
    assert!(!session.retry(None).await, "nothing is waited for");
    home.model.play([leave_me_alone(), Reply::text("at last")]);
    let turn = begin(&home.tasks, &session, prompt("k", "go"));
    let waits = retrying(&session).await;
    assert_eq!(
        (
            &waits.data["model"],
            &waits.data["quota"],
            &waits.data["attempt"]
        ),
        (&json!("m"), &json!(true), &json!(2))
    );
    assert!(!session.retry(Some(7)).await, "another turn");
    assert!(session.retry(Some(1)).await);
    let ended = soon(turn).await.unwrap().unwrap().unwrap();
    assert_eq!(ended.stop, Stop::EndTurn);
    assert!(!session.retry(Some(1)).await);
    home.no_faults();
}

#[tokio::test]
async fn another_model_is_asked_at_once_and_its_tries_are_its_own() {
    let home = Home::new().await;
    let (_registry, session) = home.local().await;
    home.model.play([
        leave_me_alone(),
        Reply::error(503, "application/json", r#"{"error":"no"}"#),
        Reply::text("here I am"),
    ]);
    let turn = begin(&home.tasks, &session, prompt("k", "go"));
    retrying(&session).await;
    session.set_model("other".into()).await.unwrap();
    let ended = soon(turn).await.unwrap().unwrap().unwrap();
    assert_eq!(ended.stop, Stop::EndTurn);
    let asked: Vec<_> = home
        .model
        .requests()
        .iter()
        .map(|r| r["model"].clone())
        .collect();
    assert_eq!(asked, ["m", "other", "other"]);
    let steps = journal(&session)
        .await
        .into_iter()
        .filter_map(|i| match i.body {
            Body::Step { model, .. } => Some(model),
            _ => None,
        });
    assert_eq!(
        steps.collect::<Vec<_>>(),
        ["m", "other"],
        "who answers is said"
    );
}

#[tokio::test]
async fn what_is_taken_back_stays_and_is_sent_no_more() {
    let home = Home::new().await;
    let (registry, session) = home.local().await;
    home.model.play([
        Reply::text("first answer"),
        Reply::text("wrong answer"),
        Reply::text("worse answer"),
    ]);
    for (key, words) in [("a", "one"), ("b", "two"), ("c", "three")] {
        session.prompt(prompt(key, words)).await.unwrap();
    }
    let items = journal(&session).await;
    let prompts: Vec<Seq> = items
        .iter()
        .filter(|i| matches!(i.body, Body::Prompt { .. }))
        .map(|i| i.seq)
        .collect();
    let none = session.rewind(Seq(prompts[1].0 + 1), "ana").await;
    assert!(matches!(none, Err(SessionError::NoPrompt(_))));
    let said = session.rewind(prompts[1], "ana, in home").await.unwrap();
    let twice = session.rewind(prompts[2], "ana, in home").await;
    assert!(
        matches!(twice, Err(SessionError::NoPrompt(_))),
        "it was taken back already"
    );
    let after = journal(&session).await;
    assert_eq!(after[..items.len()], items[..], "nothing is deleted");
    assert_eq!(after.last().unwrap().seq, said);
    assert_eq!(
        after.last().unwrap().body,
        Body::Rewound {
            to: prompts[1],
            by: "ana, in home".into()
        }
    );
    assert_eq!(session.summary().await.progress, None);
    home.model
        .play([Reply::text("better"), Reply::text("again")]);
    // Also for a session that is read anew.
    let id = session.id().clone();
    drop(session);
    let session = registry.get(&id, &Origin::Local).await.unwrap();
    session.prompt(prompt("d", "four")).await.unwrap();
    let sent = home.model.requests()[3]["messages"].to_string();
    assert!(
        sent.contains("first answer") && sent.contains("four"),
        "{sent}"
    );
    for gone in ["two", "wrong answer", "three", "worse answer"] {
        assert!(!sent.contains(gone), "{gone} in {sent}");
    }
    // To before everything, over what was taken back before.
    session.rewind(prompts[0], "ana").await.unwrap();
    session.prompt(prompt("e", "five")).await.unwrap();
    let sent = home.model.requests()[4]["messages"].to_string();
    assert!(sent.contains("five") && !sent.contains("four") && !sent.contains("first"));
    home.no_faults();
}

#[tokio::test]
async fn nothing_is_taken_back_while_a_turn_runs() {
    let home = Home::new().await;
    let (_registry, session) = home.local().await;
    home.model.play([leave_me_alone(), Reply::text("done")]);
    let turn = begin(&home.tasks, &session, prompt("k", "go"));
    retrying(&session).await;
    let refused = session.rewind(Seq(1), "ana").await;
    assert!(matches!(refused, Err(SessionError::Busy)));
    assert!(session.retry(None).await);
    soon(turn).await.unwrap().unwrap().unwrap();
}
