//! Stop.

use std::sync::Arc;

use lembas::session::{Outcome, Phase, StopWhy, Stopped};
use lembas::store::item::{Body, CallStatus, Scope, Settled, Stop};
use lembas::testing::model::{Act, Reply, done, finish, say};
use tokio::sync::Semaphore;

use super::home::{Home, answer, asks, bash, begin, is, journal, prompt, result_of, soon, until};

#[tokio::test]
async fn stop_ends_the_models_stream_and_keeps_what_was_said() {
    let home = Home::new().await;
    let (_registry, session) = home.local().await;
    let never = Arc::new(Semaphore::new(0));
    home.model.play([
        Reply::stream(vec![
            say("Once upon"),
            Act::Wait(never),
            finish("stop"),
            done(),
        ]),
        Reply::text("ok"),
    ]);
    let turn = begin(&home.tasks, &session, prompt("k", "go"));
    until(&session, |i| matches!(i.body, Body::Message { .. })).await;
    assert_eq!(session.stop(Some(7), StopWhy::Asked).await, Stopped::Gone);
    assert_eq!(
        soon(session.stop(Some(1), StopWhy::Asked)).await,
        Stopped::Stopped
    );
    let ended = soon(turn).await.unwrap().unwrap().unwrap();
    assert_eq!(ended.stop, Stop::Cancelled);
    // The server notices that nobody listens.
    soon(home.model.hung_up(1)).await;
    assert_eq!(session.stop(None, StopWhy::Asked).await, Stopped::Gone);
    assert_eq!(
        session.summary().await.progress.unwrap().phase,
        Phase::Stopped
    );
    session.prompt(prompt("k2", "go on")).await.unwrap();
    assert!(
        home.model.requests()[1]["messages"]
            .to_string()
            .contains("Once upon")
    );
    home.no_faults();
}

#[tokio::test]
async fn stop_ends_the_command_and_every_open_question_and_call() {
    let home = Home::new().await;
    let (_registry, session) = home.local().await;
    home.model.play([
        Reply::calls(&[bash("hang"), bash("ask x"), bash("later")]),
        Reply::text("ok"),
    ]);
    let turn = begin(&home.tasks, &session, prompt("k", "go"));
    until(&session, |i| matches!(i.body, Body::Started { .. })).await;
    let open = asks(&session, 1).await;
    assert_eq!(
        soon(session.stop(None, StopWhy::Asked)).await,
        Stopped::Stopped
    );
    let ended = soon(turn).await.unwrap().unwrap().unwrap();
    assert_eq!((ended.stop, ended.reason), (Stop::Cancelled, None));
    let items = journal(&session).await;
    for call in ["0001", "0002", "0003"] {
        assert_eq!(result_of(&items, call).0, CallStatus::Cancelled);
    }
    assert!(items.iter().any(|i| matches!(
        i.body,
        Body::Answered {
            how: Settled::Cancelled,
            ..
        }
    )));
    assert!(matches!(items.last().unwrap().body, Body::TurnEnd { .. }));
    assert!(asks(&session, 0).await.is_empty());
    assert!(
        session
            .answer(answer(&open[0], Outcome::Allow, Scope::Once))
            .await
            .is_err()
    );
    assert_eq!((home.ran().len(), home.active()), (1, 0));
    session.prompt(prompt("k2", "again")).await.unwrap();
    home.no_faults();
}

#[tokio::test]
async fn a_limit_ends_the_turns_it_concerns_and_says_why() {
    let home = Home::new().await;
    let (registry, session) = home.local().await;
    home.model.play([Reply::calls(&[bash("hang")])]);
    let turn = begin(&home.tasks, &session, prompt("k", "go"));
    until(&session, |i| matches!(i.body, Body::Started { .. })).await;
    let why = StopWhy::Limit("folder no longer shared".into());
    let other = lembas::ids::SessionId::new("other");
    assert_eq!(registry.stop_where(is(&other), why.clone()).await, 0);
    assert_eq!(soon(registry.stop_where(is(session.id()), why)).await, 1);
    let ended = soon(turn).await.unwrap().unwrap().unwrap();
    assert_eq!(ended.stop, Stop::Cancelled);
    assert_eq!(
        ended.reason.as_deref(),
        Some("stopped: folder no longer shared")
    );
}

#[tokio::test]
async fn stop_during_the_pause_between_tries_is_at_once() {
    let home = Home::new().await;
    let (_registry, session) = home.local().await;
    home.model
        .play([Reply::error(429, "application/json", "{}").header("retry-after", "200")]);
    let turn = begin(&home.tasks, &session, prompt("k", "go"));
    soon(async {
        let mut follow = session.follow(lembas::ids::Position::default());
        loop {
            if let Some(lembas::session::Event::Progress(p)) = follow.next().await
                && p.phase == Phase::Retrying
            {
                return;
            }
        }
    })
    .await;
    assert_eq!(
        soon(session.stop(None, StopWhy::Asked)).await,
        Stopped::Stopped
    );
    assert_eq!(
        soon(turn).await.unwrap().unwrap().unwrap().stop,
        Stop::Cancelled
    );
}
