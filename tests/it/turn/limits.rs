//! Limits of remote work that change while it runs.

use lembas::config::Mode;
use lembas::permission::Origin;
use lembas::session::SessionError;
use lembas::store::item::{Body, Stop};
use lembas::testing::model::Reply;

use super::home::{Home, bash, begin, journal, prompt, remote, result_of, soon, until};

#[tokio::test]
async fn the_mode_of_each_judgement_is_capped_by_what_is_set_then() {
    let home = Home::new().await;
    home.share(|r| r.max_mode = Mode::Edit);
    let registry = home.start(&home.tasks).await;
    let mut new = home.new_session(remote());
    new.mode = Mode::Auto;
    let session = registry.open(new).await.unwrap();
    home.model.play([
        Reply::calls(&[bash("mode"), bash("gate"), bash("mode")]),
        Reply::text("ok"),
    ]);
    let turn = begin(&home.tasks, &session, prompt("k", "go"));
    until(&session, |i| matches!(i.body, Body::Started { .. })).await;
    home.share(|r| r.max_mode = Mode::Manual);
    home.world.gate.add_permits(1);
    soon(turn).await.unwrap().unwrap().unwrap();
    let items = journal(&session).await;
    assert_eq!(result_of(&items, "0001").1, "The mode is Edit.");
    assert_eq!(result_of(&items, "0003").1, "The mode is Manual.");
    session.set_mode(Mode::Plan, "you").await.unwrap();
    home.model
        .play([Reply::calls(&[bash("mode")]), Reply::text("ok")]);
    session.prompt(prompt("k2", "go")).await.unwrap();
    let items = journal(&session).await;
    assert_eq!(result_of(&items, "0004").1, "The mode is Plan.");
    home.no_faults();
}

#[tokio::test]
async fn a_paused_computer_runs_nothing_more_of_a_remote_turn() {
    let home = Home::new().await;
    home.share(|_| {});
    let registry = home.start(&home.tasks).await;
    let session = registry.open(home.new_session(remote())).await.unwrap();
    home.model
        .play([Reply::calls(&[bash("gate"), bash("after")])]);
    let turn = begin(&home.tasks, &session, prompt("k", "go"));
    until(&session, |i| matches!(i.body, Body::Started { .. })).await;
    home.share(|r| r.paused = true);
    home.world.gate.add_permits(1);
    let ended = soon(turn).await.unwrap().unwrap().unwrap();
    assert_eq!(ended.stop, Stop::Cancelled);
    assert_eq!(
        ended.reason.as_deref(),
        Some("stopped: paused on this computer")
    );
    assert_eq!(home.ran(), ["gate"]);
    assert!(matches!(
        session.prompt(prompt("k2", "go")).await,
        Err(SessionError::Refused(why)) if why == "paused on this computer"
    ));
    home.share(|r| r.roots.clear());
    assert!(session.prompt(prompt("k3", "go")).await.is_err());
    // The person's own sessions are not concerned.
    let local = registry
        .open(home.new_session(Origin::Local))
        .await
        .unwrap();
    home.model.play([Reply::text("ok")]);
    local.prompt(prompt("k", "go")).await.unwrap();
    home.no_faults();
}

#[tokio::test]
async fn so_many_remote_turns_run_at_once() {
    let home = Home::new().await;
    home.share(|r| r.max_sessions = 1);
    let registry = home.start(&home.tasks).await;
    let first = registry.open(home.new_session(remote())).await.unwrap();
    let second = registry.open(home.new_session(remote())).await.unwrap();
    home.model.play([
        Reply::calls(&[bash("gate")]),
        Reply::text("ok"),
        Reply::text("ok"),
    ]);
    let turn = begin(&home.tasks, &first, prompt("k", "go"));
    until(&first, |i| matches!(i.body, Body::Started { .. })).await;
    assert!(matches!(
        second.prompt(prompt("k", "go")).await,
        Err(SessionError::TooMany(1))
    ));
    home.world.gate.add_permits(1);
    soon(turn).await.unwrap().unwrap().unwrap();
    second.prompt(prompt("k", "go")).await.unwrap();
}
