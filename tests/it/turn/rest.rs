//! Sessions that nobody uses leave memory and come back as if they had not.

use std::time::Duration;

use lembas::ids::Position;
use lembas::permission::Origin;
use lembas::session::Event;
use lembas::store::item::Body;
use lembas::testing::model::Reply;

use super::home::{Home, bash, begin, prompt, soon, until};

#[tokio::test]
async fn idle_sessions_leave_memory_and_are_loaded_again() {
    let home = Home::new().await;
    let registry = home.start(&home.tasks).await;
    let mut ids = Vec::new();
    for n in 0..5 {
        let session = registry
            .open(home.new_session(Origin::Local))
            .await
            .unwrap();
        home.model.play([Reply::text("hello")]);
        session
            .prompt(prompt("k", &format!("chat {n}")))
            .await
            .unwrap();
        ids.push(session.id().clone());
    }
    assert_eq!(registry.loaded(), 5);
    assert_eq!(registry.rest(Duration::from_secs(600)).await, 0);
    let held = registry.get(&ids[0], &Origin::Local).await.unwrap();
    let followed = registry.get(&ids[1], &Origin::Local).await.unwrap();
    let mut follow = followed.follow(Position::default());
    drop(followed);
    assert_eq!(registry.rest(Duration::ZERO).await, 3);
    assert_eq!(registry.loaded(), 2);

    // The follower hears what a handle that is taken later does.
    home.model.play([Reply::text("more")]);
    let again = registry.get(&ids[1], &Origin::Local).await.unwrap();
    again.prompt(prompt("k2", "go")).await.unwrap();
    soon(async {
        let mut ends = 0;
        while ends < 2 {
            if let Some(Event::Item(item)) = follow.next().await {
                ends += usize::from(matches!(item.body, Body::TurnEnd { .. }));
            }
        }
    })
    .await;

    // One that left goes on with its whole history, and its numbers are never given again.
    home.model.play([Reply::text("back")]);
    let back = registry.get(&ids[4], &Origin::Local).await.unwrap();
    assert_eq!(registry.loaded(), 3);
    back.prompt(prompt("k2", "still there?")).await.unwrap();
    let sent = home.model.requests().last().unwrap()["messages"].to_string();
    assert!(sent.contains("chat 4") && sent.contains("still there?"));
    let items = super::home::journal(&back).await;
    assert!(items.windows(2).all(|pair| pair[0].seq < pair[1].seq));
    drop((held, back, again, follow));
    assert_eq!(registry.rest(Duration::ZERO).await, 3);
    assert_eq!(registry.loaded(), 0);
    home.no_faults();
}

#[tokio::test]
async fn a_session_with_a_turn_stays() {
    let home = Home::new().await;
    let (registry, session) = home.local().await;
    home.model
        .play([Reply::calls(&[bash("gate")]), Reply::text("ok")]);
    let turn = begin(&home.tasks, &session, prompt("k", "go"));
    until(&session, |i| matches!(i.body, Body::Started { .. })).await;
    let id = session.id().clone();
    turn.abort();
    let _aborted = turn.await;
    drop(session);
    assert_eq!(registry.rest(Duration::ZERO).await, 0);
    home.world.gate.add_permits(1);
    let session = registry.get(&id, &Origin::Local).await.unwrap();
    until(&session, |i| matches!(i.body, Body::TurnEnd { .. })).await;
    home.no_faults();
}
