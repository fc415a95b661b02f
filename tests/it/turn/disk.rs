//! A store that cannot be written.

use lembas::session::Phase;
use lembas::store::item::{Body, Stop};
use lembas::testing::model::Reply;
use serde_json::json;

use super::home::{Home, begin, prompt, soon, until};

#[tokio::test]
async fn a_full_disk_is_said_nothing_is_left_running_and_room_mends_it() {
    let home = Home::new().await;
    let (registry, session) = home.local().await;
    let look = |command: &str| ("look", json!({ "command": command }));
    home.model
        .play([Reply::calls(&[look("gate"), look("hang")])]);
    let turn = begin(&home.tasks, &session, prompt("k", "go"));
    until(&session, |i| matches!(i.body, Body::Started { .. })).await;
    soon(async {
        while home.active() < 2 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let limit = async |pages: &'static str| {
        let sql = format!("pragma max_page_count = {pages}");
        let set = registry
            .store()
            .db()
            .call(move |c| c.query_row(&sql, [], |r| r.get::<_, i64>(0)));
        set.await.unwrap();
    };
    limit("1").await;
    *home.world.says.lock() = "x".repeat(400_000);
    home.world.gate.add_permits(1);
    let said = soon(turn).await.unwrap().unwrap().unwrap_err();
    assert_eq!(said, "cannot save: the disk is full");
    assert_eq!(home.active(), 0);
    let failed = session.summary().await.progress.unwrap();
    assert_eq!(failed.phase, Phase::Failed);

    limit("1000000").await;
    home.model.play([Reply::text("ok")]);
    let done = soon(session.prompt(prompt("k3", "again"))).await.unwrap();
    assert_eq!(done.stop, Stop::EndTurn);
    assert_eq!(session.summary().await.turn, 2);
    home.no_faults();
}
