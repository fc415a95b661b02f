//! Questions to the person.

use lembas::permission::Origin;
use lembas::session::{AnswerError, Outcome, Phase, Scheduled};
use lembas::store::item::{Body, CallStatus, Scope, Settled, Stop};
use lembas::testing::model::Reply;
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand::{Rng as _, SeedableRng as _};
use serde_json::json;

use super::home::{
    Home, answer, asks, bash, begin, journal, prompt, remote, result_of, soon, until,
};

#[tokio::test]
async fn two_questions_are_open_at_once_and_the_refusal_reaches_the_model() {
    let home = Home::new().await;
    let (registry, session) = home.local().await;
    home.model.play([
        Reply::calls(&[bash("ask one"), bash("plain"), bash("ask two")]),
        Reply::text("ok"),
    ]);
    let turn = begin(&home.tasks, &session, prompt("k", "go"));
    let open = asks(&session, 2).await;
    assert_eq!(open[0].body.command, "ask one");
    assert_eq!(open[1].body.command, "ask two");
    assert_eq!(registry.asks(&Origin::Local).await.len(), 2);
    assert_eq!(registry.asks(&remote()).await.len(), 0);
    assert_eq!(home.ran(), Vec::<String>::new());
    let summary = session.summary().await;
    assert_eq!(summary.asks, 2);
    let progress = summary.progress.unwrap();
    assert_eq!(progress.phase, Phase::WaitingForPerson);
    assert_eq!(progress.data["ask"], json!(open[0].body.ask));
    // The second is answered first; the order of the runs stays that of the calls.
    let mut yes = answer(&open[1], Outcome::Allow, Scope::Once);
    yes.note = Some("be quick".into());
    let at = session.answer(yes).await.unwrap();
    assert!(at > 0);
    let mut no = answer(&open[0], Outcome::Refuse, Scope::Once);
    no.note = Some("use the other one".into());
    session.answer(no.clone()).await.unwrap();
    let done = soon(turn).await.unwrap().unwrap().unwrap();
    assert_eq!(done.stop, Stop::EndTurn);
    assert_eq!(home.ran(), ["plain", "ask two"]);
    let items = journal(&session).await;
    let (status, text) = result_of(&items, "0001");
    assert_eq!(status, CallStatus::Refused);
    assert!(text.contains("use the other one"), "{text}");
    let messages = home.model.requests()[1]["messages"].to_string();
    assert!(messages.contains("use the other one"));
    assert!(result_of(&items, "0003").1.contains("be quick"));
    assert!(matches!(
        session.answer(no).await,
        Err(AnswerError::Settled { how: Settled::Refused, by, .. }) if by == "you, on this computer"
    ));
    let verdicts: Vec<String> = registry
        .store()
        .audit_log(99)
        .await
        .unwrap()
        .into_iter()
        .map(|l| l.verdict)
        .collect();
    assert_eq!(verdicts, ["allowed once", "refused", "ran", "ran"]);
    home.no_faults();
}

/// Many people answer several questions at once, some twice, some to what was never asked: each
/// question is settled by one of them, and its command runs once, or never.
#[tokio::test]
async fn of_any_answers_in_any_order_one_counts_and_a_yes_is_spent_once() {
    for seed in 0..12 {
        let mut random = StdRng::seed_from_u64(seed);
        let home = Home::new().await;
        let (_registry, session) = home.local().await;
        home.model.play([
            Reply::calls(&[bash("ask 0"), bash("ask 1"), bash("ask 2")]),
            Reply::text("ok"),
        ]);
        let turn = begin(&home.tasks, &session, prompt("k", "go"));
        let open = asks(&session, 3).await;
        let mut said = Vec::new();
        for (at, ask) in open.iter().enumerate() {
            for _ in 0..random.random_range(1..6) {
                // Not all refused: the third refusal ends the turn.
                let yes = at == 0 || random.random_bool(0.6);
                let outcome = if yes { Outcome::Allow } else { Outcome::Refuse };
                let scope = if random.random_bool(0.3) {
                    Scope::Session
                } else {
                    Scope::Once
                };
                let mut one = answer(ask, outcome, scope);
                let real = random.random_bool(0.7);
                if !real {
                    one.digest = lembas::ids::Digest::of(b"another command");
                }
                said.push((at, yes, real, one));
            }
            said.push((at, true, true, answer(ask, Outcome::Allow, Scope::Once)));
        }
        said.shuffle(&mut random);
        let answers = said.iter().map(|(at, yes, real, one)| {
            let (session, one) = (session.clone(), one.clone());
            async move { (*at, *yes, *real, session.answer(one).await.is_ok()) }
        });
        let taken = soon(futures_util::future::join_all(answers)).await;
        soon(turn).await.unwrap().unwrap().unwrap();
        let mut expected = Vec::new();
        for at in 0..3 {
            let counted: Vec<_> = taken.iter().filter(|t| t.0 == at && t.3).collect();
            assert_eq!(counted.len(), 1, "seed {seed}, question {at}: {taken:?}");
            assert!(counted[0].2, "seed {seed}: a yes to something else counted");
            if counted[0].1 {
                expected.push(format!("ask {at}"));
            }
        }
        assert_eq!(home.ran(), expected, "seed {seed}: {taken:?}");
        home.no_faults();
    }
}

#[test]
fn a_grant_cannot_be_copied() {
    trait Unless {
        const CLONES: bool = false;
    }
    struct Is<T>(std::marker::PhantomData<T>);
    impl<T> Unless for Is<T> {}
    impl<T: Clone> Is<T> {
        const CLONES: bool = true;
    }
    const { assert!(Is::<lembas::permission::Run>::CLONES, "the test sees it") };
    const { assert!(!Is::<lembas::permission::Grant>::CLONES) };
    const { assert!(!Is::<lembas::permission::Pending>::CLONES) };
}

#[tokio::test]
async fn a_yes_for_the_session_is_a_rule_of_that_session_and_answers_its_equals() {
    let home = Home::new().await;
    let (registry, session) = home.local().await;
    home.model.play([
        Reply::calls(&[bash("ask x"), bash("ask x")]),
        Reply::calls(&[bash("ask x")]),
        Reply::text("ok"),
    ]);
    let turn = begin(&home.tasks, &session, prompt("k", "go"));
    let open = asks(&session, 2).await;
    session
        .answer(answer(&open[0], Outcome::Allow, Scope::Session))
        .await
        .unwrap();
    soon(turn).await.unwrap().unwrap().unwrap();
    assert_eq!(home.ran(), ["ask x"; 3]);
    let rules = registry.store().rules().await.unwrap();
    assert_eq!(rules.len(), 1);
    assert_eq!(rules[0].session.as_ref(), Some(session.id()));

    // Another session is asked anew.
    let other = registry
        .open(home.new_session(Origin::Local))
        .await
        .unwrap();
    home.model.play([Reply::calls(&[bash("ask x")])]);
    let _turn = begin(&home.tasks, &other, prompt("k", "go"));
    asks(&other, 1).await;
    home.no_faults();
}

#[tokio::test]
async fn at_most_three_are_open_and_the_next_follows_an_answer() {
    let home = Home::new().await;
    let (_registry, session) = home.local().await;
    let five: Vec<_> = (0..5).map(|n| bash(&format!("ask {n}"))).collect();
    home.model.play([Reply::calls(&five), Reply::text("ok")]);
    let turn = begin(&home.tasks, &session, prompt("k", "go"));
    for n in 0..5 {
        let open = asks(&session, 3.min(5 - n)).await;
        // Answered from the back, so that the first call waits longest.
        let last = open.last().unwrap();
        session
            .answer(answer(last, Outcome::Allow, Scope::Once))
            .await
            .unwrap();
    }
    soon(turn).await.unwrap().unwrap().unwrap();
    assert_eq!(home.ran(), ["ask 0", "ask 1", "ask 2", "ask 3", "ask 4"]);
    home.no_faults();
}

#[tokio::test]
async fn after_three_refusals_the_next_ends_the_turn() {
    let home = Home::new().await;
    let (_registry, session) = home.local().await;
    home.model
        .play((0..9).map(|n| Reply::calls(&[bash(&format!("ask {n}")), bash("fine")])));
    let turn = begin(&home.tasks, &session, prompt("k", "go"));
    for n in 0..4 {
        until(
            &session,
            |i| matches!(&i.body, Body::Ask(a) if a.command == format!("ask {n}")),
        )
        .await;
        let open = asks(&session, 1).await;
        session
            .answer(answer(&open[0], Outcome::Refuse, Scope::Once))
            .await
            .unwrap();
    }
    let done = soon(turn).await.unwrap().unwrap().unwrap();
    assert_eq!(done.stop, Stop::EndTurn);
    assert!(done.reason.unwrap().contains("After 3 refused calls"));
    assert_eq!(home.ran().len(), 3);
    let items = journal(&session).await;
    assert_eq!(result_of(&items, "0008").0, CallStatus::Cancelled);
}

#[tokio::test]
async fn what_would_run_changed_so_the_answer_does_not_count() {
    let home = Home::new().await;
    let (_registry, session) = home.local().await;
    home.model
        .play([Reply::calls(&[bash("ask rm")]), Reply::text("ok")]);
    let turn = begin(&home.tasks, &session, prompt("k", "go"));
    let open = asks(&session, 1).await;
    let mut wrong = answer(&open[0], Outcome::Allow, Scope::Once);
    wrong.digest = lembas::ids::Digest::of(b"something else");
    assert_eq!(session.answer(wrong).await, Err(AnswerError::Changed));
    *home.world.version.lock() = " everything".into();
    let yes = answer(&open[0], Outcome::Allow, Scope::Once);
    assert_eq!(session.answer(yes.clone()).await, Err(AnswerError::Changed));
    until(
        &session,
        |i| matches!(&i.body, Body::Ask(a) if a.command == "ask rm everything"),
    )
    .await;
    assert!(matches!(
        session.answer(yes).await,
        Err(AnswerError::Settled {
            how: Settled::Gone,
            ..
        })
    ));
    assert_eq!(home.ran(), Vec::<String>::new());
    let open = asks(&session, 1).await;
    session
        .answer(answer(&open[0], Outcome::Allow, Scope::Once))
        .await
        .unwrap();
    soon(turn).await.unwrap().unwrap().unwrap();
    assert_eq!(home.ran(), ["ask rm everything"]);
    home.no_faults();
}

#[tokio::test]
async fn a_yes_is_to_what_was_shown_also_when_its_turn_comes_later() {
    let home = Home::new().await;
    let (registry, session) = home.local().await;
    home.model.play([
        Reply::calls(&[bash("gate"), bash("ask rm")]),
        Reply::text("ok"),
    ]);
    let turn = begin(&home.tasks, &session, prompt("k", "go"));
    let open = asks(&session, 1).await;
    until(&session, |i| matches!(i.body, Body::Started { .. })).await;
    session
        .answer(answer(&open[0], Outcome::Allow, Scope::Once))
        .await
        .unwrap();
    *home.world.version.lock() = " everything".into();
    home.world.gate.add_permits(1);
    until(
        &session,
        |i| matches!(&i.body, Body::Ask(a) if a.command == "ask rm everything"),
    )
    .await;
    let open = asks(&session, 1).await;
    session
        .answer(answer(&open[0], Outcome::Refuse, Scope::Once))
        .await
        .unwrap();
    soon(turn).await.unwrap().unwrap().unwrap();
    assert_eq!(home.ran(), ["gate"]);
    let log = registry.store().audit_log(99).await.unwrap();
    let verdicts: Vec<&str> = log.iter().map(|l| l.verdict.as_str()).collect();
    assert_eq!(
        verdicts,
        [
            "ran",
            "allowed once",
            "not run (what would run has changed)",
            "refused"
        ]
    );
    home.no_faults();
}

#[tokio::test]
async fn a_scheduled_question_expires_once_heard_and_the_turn_goes_on() {
    let home = Home::new().await;
    home.share(|_| {});
    let registry = home.start(&home.tasks).await;
    let mut new = home.new_session(remote());
    new.scheduled = Some(Scheduled {
        schedule: "s".into(),
        run: "r".into(),
        approval_wait: 0,
    });
    let session = registry.open(new).await.unwrap();
    home.model.play([
        Reply::calls(&[bash("ask x")]),
        Reply::text("Could not.\n[SILENT]"),
    ]);
    let mut run = prompt("r", "go");
    run.run = Some(json!({ "schedule": "s", "run": "r" }));
    let turn = begin(&home.tasks, &session, run.clone());
    let open = asks(&session, 1).await;
    assert_eq!(open[0].expires_in_ms, Some(0));
    assert!(open[0].remote);
    // It is not over before the instance has heard of it; an extension holds it open.
    session.extend(&open[0].body.ask, 3600).await.unwrap();
    session.ask_heard(&open[0].body.ask).await;
    let left = asks(&session, 1).await[0].expires_in_ms.unwrap();
    assert!(left > 3_500_000, "{left}");
    session
        .answer(answer(&open[0], Outcome::Refuse, Scope::Once))
        .await
        .unwrap();
    let done = soon(turn).await.unwrap().unwrap().unwrap();
    let reported = done.run.clone().unwrap();
    assert_eq!(reported["status"], "silent");
    assert_eq!(reported["reply"], "Could not.");
    // The key of a run is the run.
    run.key = "another".into();
    assert_eq!(session.prompt(run).await.unwrap(), done);

    home.model
        .play([Reply::calls(&[bash("ask y")]), Reply::text("went on")]);
    let mut second = prompt("r2", "go");
    second.run = Some(json!({ "schedule": "s", "run": "r2" }));
    let turn = begin(&home.tasks, &session, second);
    let open = asks(&session, 1).await;
    session.ask_heard(&open[0].body.ask).await;
    let done = soon(turn).await.unwrap().unwrap().unwrap();
    assert_eq!(done.run.unwrap()["status"], "ok");
    assert!(home.last_result().contains("Nobody answered within"));
    assert!(matches!(
        session
            .answer(answer(&open[0], Outcome::Allow, Scope::Once))
            .await,
        Err(AnswerError::Settled {
            how: Settled::Expired,
            ..
        })
    ));
    assert_eq!(home.ran(), Vec::<String>::new());
    home.no_faults();
}

#[tokio::test]
async fn answers_over_the_link_count_as_far_as_the_person_set() {
    use lembas::config::Approvals;
    let home = Home::new().await;
    home.share(|r| r.approvals = Approvals::Local);
    let registry = home.start(&home.tasks).await;
    let session = registry.open(home.new_session(remote())).await.unwrap();
    home.model
        .play([Reply::calls(&[bash("ask x")]), Reply::text("ok")]);
    let turn = begin(&home.tasks, &session, prompt("k", "go"));
    let open = asks(&session, 1).await;
    let from_there = |scope| {
        let mut answer = answer(&open[0], Outcome::Allow, scope);
        answer.origin = remote();
        answer
    };
    let said = session.answer(from_there(Scope::Once)).await;
    assert_eq!(said, Err(AnswerError::LocalOnly));
    home.share(|r| r.approvals = Approvals::Once);
    let said = session.answer(from_there(Scope::Always)).await;
    assert_eq!(said, Err(AnswerError::Scope(Scope::Always)));
    home.share(|r| r.approvals = Approvals::Full);
    session.answer(from_there(Scope::Always)).await.unwrap();
    soon(turn).await.unwrap().unwrap().unwrap();
    assert_eq!(home.ran(), ["ask x"]);
    let rules = registry.store().rules().await.unwrap();
    assert_eq!((rules.len(), rules[0].session.clone()), (1, None));

    // What a linked instance was allowed is no rule for this computer's own sessions.
    let local = registry
        .open(home.new_session(Origin::Local))
        .await
        .unwrap();
    home.model.play([Reply::calls(&[bash("ask x")])]);
    let _turn = begin(&home.tasks, &local, prompt("k", "go"));
    asks(&local, 1).await;
}
