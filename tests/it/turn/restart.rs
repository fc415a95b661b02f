//! The daemon ends in the middle: told to, or not.

use lembas::ids::SessionId;
use lembas::permission::Origin;
use lembas::rt::Tasks;
use lembas::session::{Outcome, Session};
use lembas::store::item::{Body, CallStatus, Scope, Stop};
use lembas::testing::model::{Act, Reply, done, finish, say};
use std::sync::Arc;
use tokio::sync::Semaphore;

use super::home::{Home, answer, asks, bash, begin, journal, prompt, result_of, soon, until};

/// A daemon in a runtime of its own, which can be killed.
struct Daemon(Option<tokio::runtime::Runtime>);

impl Daemon {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        Self(Some(runtime))
    }

    /// Runs something in the daemon and gives its value back.
    async fn run<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> T {
        self.0.as_ref().unwrap().spawn(work).await.unwrap()
    }

    /// Nothing in it is told; whatever was not on the disk is lost.
    fn kill(mut self) {
        self.0.take().unwrap().shutdown_background();
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Starts a daemon with a session that was prompted, and waits for an item.
async fn killed_at(
    home: &Arc<Home>,
    fits: impl Fn(&Body) -> bool + Send + Sync + 'static,
) -> SessionId {
    let daemon = Daemon::new();
    let inside = home.clone();
    let id = daemon
        .run(async move {
            let tasks = Tasks::new();
            let registry = inside.start(&tasks).await;
            let session = registry
                .open(inside.new_session(Origin::Local))
                .await
                .unwrap();
            let _turn = begin(&tasks, &session, prompt("k", "go"));
            until(&session, |i| fits(&i.body)).await;
            let id = session.id().clone();
            // Kept until the kill: nothing here parks by being dropped.
            std::mem::forget((registry, session));
            id
        })
        .await;
    daemon.kill();
    id
}

async fn again(home: &Home, id: &SessionId) -> (lembas::session::Registry, Session) {
    let registry = home.start(&home.tasks).await;
    let session = registry.get(id, &Origin::Local).await.unwrap();
    (registry, session)
}

#[tokio::test]
async fn killed_between_intent_and_result_the_call_is_unknown_and_never_run_again() {
    let home = Arc::new(Home::new().await);
    home.model.play([
        Reply::calls(&[bash("hang"), bash("after")]),
        Reply::text("I looked."),
    ]);
    let world = home.world.clone();
    let id = killed_at(&home, move |body| {
        matches!(body, Body::Started { .. }) && !world.ran.lock().is_empty()
    })
    .await;
    assert_eq!(home.ran(), ["hang"]);
    let (_registry, session) = again(&home, &id).await;
    let done = soon(session.prompt(prompt("k", "go"))).await.unwrap();
    assert_eq!(done.stop, Stop::EndTurn);
    assert_eq!(home.ran(), ["hang", "after"]);
    let items = journal(&session).await;
    let (status, text) = result_of(&items, "0001");
    assert_eq!(status, CallStatus::Unknown);
    assert!(text.starts_with("The computer stopped while this ran"));
    let messages = home.model.requests()[1]["messages"].to_string();
    assert!(messages.contains("The computer stopped while this ran"));
    home.no_faults();
}

#[tokio::test]
async fn an_open_question_outlives_the_kill_and_its_answer_runs_the_command_once() {
    let home = Arc::new(Home::new().await);
    home.model
        .play([Reply::calls(&[bash("ask x")]), Reply::text("ok")]);
    let id = killed_at(&home, |body| matches!(body, Body::Ask(_))).await;
    let (registry, session) = again(&home, &id).await;
    let open = asks(&session, 1).await;
    assert_eq!(registry.asks(&Origin::Local).await.len(), 1);
    let yes = answer(&open[0], Outcome::Allow, Scope::Once);
    session.answer(yes.clone()).await.unwrap();
    assert!(session.answer(yes).await.is_err());
    let done = soon(session.prompt(prompt("k", "go"))).await.unwrap();
    assert_eq!(done.stop, Stop::EndTurn);
    assert_eq!(home.ran(), ["ask x"]);
    home.no_faults();
}

#[tokio::test]
async fn killed_between_the_yes_and_the_run_it_runs_once() {
    let home = Arc::new(Home::new().await);
    home.model.play([
        Reply::calls(&[bash("gate"), bash("ask x")]),
        Reply::text("ok"),
    ]);
    let daemon = Daemon::new();
    let inside = home.clone();
    let id = daemon
        .run(async move {
            let tasks = Tasks::new();
            let registry = inside.start(&tasks).await;
            let session = registry
                .open(inside.new_session(Origin::Local))
                .await
                .unwrap();
            let _turn = begin(&tasks, &session, prompt("k", "go"));
            until(&session, |i| matches!(i.body, Body::Started { .. })).await;
            let open = asks(&session, 1).await;
            session
                .answer(answer(&open[0], Outcome::Allow, Scope::Once))
                .await
                .unwrap();
            let id = session.id().clone();
            std::mem::forget((registry, session));
            id
        })
        .await;
    daemon.kill();
    assert_eq!(home.ran(), ["gate"]);
    let (_registry, session) = again(&home, &id).await;
    soon(session.prompt(prompt("k", "go"))).await.unwrap();
    assert_eq!(home.ran(), ["gate", "ask x"]);
    home.no_faults();
}

#[tokio::test]
async fn a_turn_that_was_being_answered_asks_the_model_again() {
    let home = Arc::new(Home::new().await);
    let never = Arc::new(Semaphore::new(0));
    home.model.play([
        Reply::stream(vec![say("half"), Act::Wait(never), finish("stop"), done()]),
        Reply::text("whole"),
    ]);
    let id = killed_at(&home, |body| matches!(body, Body::Message { .. })).await;
    let (_registry, session) = again(&home, &id).await;
    let done = soon(session.prompt(prompt("k", "go"))).await.unwrap();
    assert_eq!(done.stop, Stop::EndTurn);
    assert!(
        !home.model.requests()[1]["messages"]
            .to_string()
            .contains("half")
    );
    home.no_faults();
}

#[tokio::test]
async fn told_to_end_a_turn_parks_holds_no_process_and_goes_on() {
    let home = Home::new().await;
    let (registry, session) = home.local().await;
    home.model.play([
        Reply::calls(&[bash("hang"), bash("ask x")]),
        Reply::text("ok"),
    ]);
    let turn = begin(&home.tasks, &session, prompt("k", "go"));
    until(&session, |i| matches!(i.body, Body::Started { .. })).await;
    asks(&session, 1).await;
    assert!(registry.park().await);
    assert_eq!(home.active(), 0);
    let parked = soon(turn).await.unwrap().unwrap();
    assert!(parked.unwrap_err().contains("parked"));
    let summary = session.summary().await;
    assert!(summary.running);
    assert_eq!(summary.asks, 1);
    let id = session.id().clone();
    drop((registry, session));

    let (_registry, session) = again(&home, &id).await;
    let open = asks(&session, 1).await;
    session
        .answer(answer(&open[0], Outcome::Allow, Scope::Once))
        .await
        .unwrap();
    soon(session.prompt(prompt("k", "go"))).await.unwrap();
    let items = journal(&session).await;
    assert_eq!(result_of(&items, "0001").0, CallStatus::Unknown);
    assert_eq!(home.ran(), ["hang", "ask x"]);
    home.no_faults();
}
