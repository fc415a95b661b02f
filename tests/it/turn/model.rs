//! Servers that are not well, and what they say about themselves.

use std::sync::Arc;

use lembas::ids::Position;
use lembas::session::{Event, Phase};
use lembas::store::item::{Body, Stop};
use lembas::testing::model::{Act, Reply, done, finish, say, think};
use serde_json::json;
use tokio::sync::Semaphore;

use super::home::{Home, bash, begin, journal, prompt, soon};

#[tokio::test]
async fn failures_that_pass_are_tried_again_and_told() {
    let home = Home::new().await;
    let (_registry, session) = home.local().await;
    let mut follow = session.follow(Position::default());
    home.model.play([
        Reply::error(
            429,
            "application/json",
            r#"{"error":{"message":"slow down"}}"#,
        )
        .header("retry-after", "0"),
        Reply::error(502, "text/html", "<html>bad gateway</html>"),
        Reply::stream(vec![Act::Cut]),
        Reply::text("at last"),
    ]);
    let turn = begin(&home.tasks, &session, prompt("k", "go"));
    assert_eq!(
        soon(turn).await.unwrap().unwrap().unwrap().stop,
        Stop::EndTurn
    );
    assert_eq!(home.model.requests().len(), 4);
    // The follower reads late and sees only the newest state; what was tried is not in the
    // journal, which has one step.
    let steps = journal(&session).await;
    let steps = steps.iter().filter(|i| matches!(i.body, Body::Step { .. }));
    assert_eq!(steps.count(), 1);
    assert!(soon(follow.next()).await.is_some());
    home.no_faults();
}

#[tokio::test]
async fn a_model_that_is_down_ends_the_turn_in_words_and_the_message_is_kept() {
    let home = Home::new().await;
    let (_registry, session) = home.local().await;
    home.model.play(
        (0..5).map(|_| Reply::error(503, "application/json", r#"{"error":"no GPU is free"}"#)),
    );
    let ended = session.prompt(prompt("k", "first words")).await.unwrap();
    assert_eq!(ended.stop, Stop::Failed);
    let reason = ended.reason.unwrap();
    assert!(
        reason.contains("503") && reason.contains("no GPU is free"),
        "{reason}"
    );
    assert!(
        reason.contains("did not answer 5 times") && reason.contains("Your message is kept"),
        "{reason}"
    );
    let progress = session.summary().await.progress.unwrap();
    assert_eq!(progress.phase, Phase::Failed);
    assert_eq!(progress.data["reason"], json!(reason));
    home.model.play([Reply::text("ok")]);
    session.prompt(prompt("k2", "more")).await.unwrap();
    let sent = home.model.requests()[5]["messages"].to_string();
    assert!(sent.contains("first words") && sent.contains("more"));
}

#[tokio::test]
async fn what_cannot_pass_is_not_tried_again() {
    let home = Home::new().await;
    let (_registry, session) = home.local().await;
    home.model.play([Reply::error(
        400,
        "application/json",
        r#"{"error":{"message":"the prompt is longer than the context"}}"#,
    )]);
    let ended = session.prompt(prompt("k", "go")).await.unwrap();
    assert_eq!(ended.stop, Stop::Failed);
    assert!(ended.reason.unwrap().contains("longer than the context"));
    assert_eq!(home.model.requests().len(), 1);
}

#[tokio::test]
async fn an_answer_cut_in_the_middle_is_asked_for_once_more() {
    let home = Home::new().await;
    let (_registry, session) = home.local().await;
    home.model.play([
        Reply::stream(vec![say("Once up"), Act::Cut]),
        Reply::text("Once upon a time"),
        Reply::stream(vec![say("a"), Act::Cut]),
        Reply::stream(vec![say("b"), Act::Cut]),
    ]);
    let ended = session.prompt(prompt("k", "go")).await.unwrap();
    assert_eq!(ended.stop, Stop::EndTurn);
    let ended = session.prompt(prompt("k2", "go")).await.unwrap();
    assert_eq!(ended.stop, Stop::Failed);
    assert!(ended.reason.unwrap().contains("broke off in the middle"));
    assert_eq!(home.model.requests().len(), 4);
    let second = home.model.requests()[2]["messages"].to_string();
    assert_eq!(second.matches("Once up").count(), 1);
    home.no_faults();
}

#[tokio::test]
async fn every_phase_has_its_cause_outside() {
    let home = Home::new().await;
    let (_registry, session) = home.local().await;
    let gate = Arc::new(Semaphore::new(0));
    let wait = || Act::Wait(gate.clone());
    let hint = |text: &str| Act::Line(format!(": {{\"lembas\":{text}}}\n\n"));
    home.model.play([Reply::stream(vec![
        wait(),
        hint(r#"{"phase":"queued","position":2}"#),
        wait(),
        Act::Data(r#"{"lembas":{"phase":"loading_model","percent":40}}"#.into()),
        wait(),
        Act::Data(r#"{"lembas":{"phase":"reading_prompt","tokens":5,"total":9}}"#.into()),
        wait(),
        think("hm"),
        wait(),
        Act::Dribble("data: {\"choices\":[{\"delta\":{\"content\":\"ä€\"}}]}\r\n\r\n".into()),
        wait(),
        finish("stop"),
        done(),
    ])]);
    let mut follow = session.follow(Position::default());
    let turn = begin(&home.tasks, &session, prompt("k", "go"));
    let mut phases = Vec::new();
    soon(async {
        while let Some(event) = follow.next().await {
            match event {
                Event::Progress(progress) => {
                    phases.push(serde_json::to_value(progress.phase).unwrap());
                    if progress.phase == Phase::LoadingModel {
                        assert_eq!(progress.data["percent"], 40);
                        assert_eq!(progress.data["model"], "m");
                    }
                    // Each phase is seen before the server goes on to the next.
                    gate.add_permits(1);
                }
                Event::Item(item) if matches!(item.body, Body::TurnEnd { .. }) => return,
                _ => {}
            }
        }
    })
    .await;
    assert_eq!(
        phases,
        [
            "waiting_for_model",
            "queued",
            "loading_model",
            "reading_prompt",
            "thinking",
            "writing"
        ]
    );
    soon(turn).await.unwrap().unwrap().unwrap();
    home.no_faults();
}

#[tokio::test]
async fn how_hard_to_think_is_sent_as_the_level_says() {
    let home = Home::new().await;
    let (_registry, session) = home.local().await;
    home.model
        .play([Reply::text("a"), Reply::text("b"), Reply::text("c")]);
    session.prompt(prompt("1", "x")).await.unwrap();
    session.set_level("high".into()).await.unwrap();
    session.set_model("other".into()).await.unwrap();
    session.prompt(prompt("2", "x")).await.unwrap();
    session.set_level("off".into()).await.unwrap();
    session.prompt(prompt("3", "x")).await.unwrap();
    let sent = home.model.requests();
    assert!(sent[0].get("reasoning_effort").is_none());
    assert_eq!(
        (&sent[1]["reasoning_effort"], &sent[1]["model"]),
        (&json!("high"), &json!("other"))
    );
    assert_eq!(sent[2]["chat_template_kwargs"]["enable_thinking"], false);
    assert!(sent[2].get("reasoning_effort").is_none());
}

#[tokio::test]
async fn reasoning_goes_back_within_its_turn() {
    let home = Home::new().await;
    let (_registry, session) = home.local().await;
    let thoughtful = || {
        Reply::stream(vec![
            think("secret plan"),
            lembas::testing::model::call(0, "bash", &bash("x").1.to_string()),
            finish("tool_calls"),
            done(),
        ])
    };
    home.model
        .play([thoughtful(), Reply::text("ok"), Reply::text("later")]);
    session.prompt(prompt("1", "x")).await.unwrap();
    session.prompt(prompt("2", "y")).await.unwrap();
    let sent = home.model.requests();
    assert_eq!(sent[1]["messages"][2]["reasoning_content"], "secret plan");
    assert!(sent[2]["messages"][2].get("reasoning_content").is_none());
    home.no_faults();
}
