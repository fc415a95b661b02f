//! The limits, over the wire: judged at every request, and what their change ends.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lembas::rpc::RpcError;
use lembas::session::StopWhy;
use lembas::store::item::Stop;
use serde_json::json;

use super::*;

#[tokio::test]
async fn with_remote_work_off_nothing_but_the_refusal_is_answered() {
    let place = Place::new();
    let client = place.instance().await;
    let id = open(&client, &place).await;
    let load = json!({ "sessionId": id, "cwd": place.root(), "mcpServers": [] });
    type Change = fn(&mut Remote);
    let switches: [(Change, Change, &str); 2] = [
        (|r| r.paused = true, |r| r.paused = false, "paused"),
        (|r| r.enabled = false, |r| r.enabled = true, "remote_off"),
    ];
    for (off, on, reason) in switches {
        place.set(off);
        for (method, params) in [
            ("session/new", new_in(&place, json!({}))),
            ("session/load", load.clone()),
            ("session/resume", load.clone()),
            ("session/list", json!({})),
            ("session/prompt", prompt(&id, "hi", "k")),
            (
                "session/set_mode",
                json!({ "sessionId": id, "modeId": "plan" }),
            ),
            ("session/close", json!({ "sessionId": id })),
            ("session/delete", json!({ "sessionId": id })),
            (
                "_lembas/follow",
                json!({ "sessionId": id, "seq": 0, "at": 0 }),
            ),
            (
                "_lembas/answer",
                json!({ "ask": "a", "digest": "d", "outcome": "allow" }),
            ),
            ("_lembas/directories", json!({})),
            ("_lembas/monitor", json!({})),
            ("_lembas/token", json!({ "token": "t" })),
        ] {
            let answer = client.ask(method, params).await;
            assert_eq!(refused(answer), (-32053, reason.to_owned()), "{method}");
        }
        let status = client.ask("_lembas/status", json!({})).await.unwrap();
        assert_eq!(status["limits"]["roots"], json!([]));
        assert_eq!(status["paused"], reason == "paused");
        client
            .ask("_lembas/sync", json!({ "after": 0 }))
            .await
            .unwrap();
        client
            .ask("_lembas/stop", json!({ "sessionId": id, "key": reason }))
            .await
            .unwrap();
        place.set(on);
        client.ask("session/list", json!({})).await.unwrap();
    }
    // Who sits at this computer is not a linked instance.
    place.set(|r| r.enabled = false);
    let editor = place.editor().await;
    editor
        .ask("session/new", new_in(&place, json!({})))
        .await
        .unwrap();
}

#[tokio::test]
async fn every_folder_is_judged_at_every_request() {
    let place = Place::new();
    let client = place.instance().await;
    let id = open(&client, &place).await;
    let outside = tempfile::tempdir().unwrap();
    let inside = place.root().join("in");
    std::fs::create_dir(&inside).unwrap();
    std::os::unix::fs::symlink(outside.path(), inside.join("link")).unwrap();
    for (cwd, also, reason, path) in [
        (
            outside.path().to_owned(),
            vec![],
            "outside",
            outside.path().to_owned(),
        ),
        (inside.join("link"), vec![], "outside", inside.join("link")),
        (inside.join("no"), vec![], "missing", inside.join("no")),
        (
            inside.clone(),
            vec![place.root(), outside.path().to_owned()],
            "outside",
            outside.path().to_owned(),
        ),
        (
            inside.clone(),
            vec![inside.join("no")],
            "missing",
            inside.join("no"),
        ),
        ("in".into(), vec![], "params", "in".into()),
    ] {
        let mut params = new_in(&place, json!({}));
        params["cwd"] = json!(cwd);
        params["additionalDirectories"] = json!(also);
        let error = client.ask("session/new", params).await.unwrap_err();
        let data = error.data.unwrap();
        assert_eq!(
            (error.code, data["reason"].as_str()),
            (RpcError::INVALID_PARAMS, Some(reason)),
            "{cwd:?}"
        );
        assert_eq!(data["path"], json!(path));
        assert!(
            error.message.contains(&path.display().to_string()),
            "{}",
            error.message
        );
    }
    let mut params = new_in(&place, json!({}));
    params["additionalDirectories"] = json!([inside]);
    client.ask("session/new", params).await.unwrap();
    assert_eq!(place.sessions.one().new.also, std::slice::from_ref(&inside));
    // The root goes: what was opened in it is not worked in any more.
    place.set(|remote| remote.roots = vec![inside]);
    let answer = client.ask("session/prompt", prompt(&id, "hi", "k")).await;
    assert_eq!(
        refused(answer),
        (RpcError::INVALID_PARAMS, "outside".to_owned())
    );
    place.set(|remote| remote.roots = Vec::new());
    for (method, params) in [
        ("session/prompt", prompt(&id, "hi", "k")),
        ("session/new", new_in(&place, json!({}))),
        ("_lembas/directories", json!({})),
    ] {
        assert_eq!(
            refused(client.ask(method, params).await),
            (-32053, "roots".to_owned()),
            "{method}"
        );
    }
}

#[tokio::test]
async fn as_many_turns_at_once_as_the_computer_takes() {
    let place = Place::new();
    *place.sessions.places.most.lock() = Some(2);
    let client = place.instance().await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(open(&client, &place).await);
    }
    let first = client.ask("session/prompt", prompt(&ids[0], "hi", "k"));
    let second = client.ask("session/prompt", prompt(&ids[1], "hi", "k"));
    let rest = async {
        for id in &ids[..2] {
            place.sessions.get(id).prompted(1).await;
        }
        let error = client
            .ask("session/prompt", prompt(&ids[2], "hi", "k"))
            .await
            .unwrap_err();
        let data = error.data.unwrap();
        assert_eq!(
            (error.code, data["reason"].as_str()),
            (-32052, Some("full"))
        );
        assert!(data["retry_after"].is_u64());
        place.sessions.get(&ids[0]).finish(Stop::EndTurn, None);
        let third = client.ask("session/prompt", prompt(&ids[2], "hi", "k"));
        let end = async {
            place.sessions.get(&ids[2]).prompted(1).await;
            place.sessions.get(&ids[2]).finish(Stop::EndTurn, None);
            place.sessions.get(&ids[1]).finish(Stop::EndTurn, None);
        };
        tokio::join!(third, end).0.unwrap();
    };
    let (first, second, ()) = tokio::join!(first, second, rest);
    assert!(first.is_ok() && second.is_ok());
}

/// The watcher of the settings, and how often it had the link dialled again.
fn watching(place: &Place) -> Arc<AtomicUsize> {
    let dialled = Arc::new(AtomicUsize::new(0));
    let count = dialled.clone();
    let redial = Arc::new(move || {
        count.fetch_add(1, Ordering::SeqCst);
    });
    let sessions = place.sessions.clone();
    let stop = place.tasks.stop().clone();
    let watch = remote::watch::run(
        place.limits.clone(),
        sessions,
        place.monitor.clone(),
        redial,
        stop,
    );
    place.tasks.spawn("watch", watch);
    dialled
}

#[tokio::test(start_paused = true)]
async fn a_change_ends_what_may_not_go_on_with_its_words() {
    type Change = fn(&mut Remote);
    let cases: [(Change, Option<&str>, usize); 6] = [
        (|r| r.roots.clear(), Some("folder no longer shared"), 1),
        (|r| r.paused = true, Some("paused on this computer"), 1),
        (
            |r| r.enabled = false,
            Some(
                "Remote work is off on zephyr. Turn it on there: enabled = true under [remote] in config.toml.",
            ),
            1,
        ),
        (|r| r.max_mode = Mode::Manual, None, 1),
        (|r| r.scheduled = !r.scheduled, None, 1),
        (|r| r.sudo = lembas::config::Sudo::Ask, None, 0),
    ];
    for (change, words, dials) in cases {
        let place = Place::new();
        let dialled = watching(&place);
        let client = place.instance().await;
        let id = open(&client, &place).await;
        let remote = place.sessions.one();
        let editor = place.editor().await;
        let here = open(&editor, &place).await;
        let local = place.sessions.one();
        let asked = client.ask("session/prompt", prompt(&id, "hi", "k"));
        let of_editor = editor.ask("session/prompt", prompt(&here, "hi", "k"));
        let rest = async {
            remote.prompted(1).await;
            local.prompted(1).await;
            place.set(change);
            if let Some(words) = words {
                remote.when("it is stopped", |state| !state.running).await;
                let stops = remote.state.lock().stops.clone();
                assert_eq!(stops, [(Some(1), StopWhy::Limit(words.to_owned()))]);
            }
            tokio::time::sleep(Duration::from_millis(1500)).await;
            assert_eq!(dialled.load(Ordering::SeqCst), dials, "{words:?}");
            assert!(local.state.lock().running, "what is done here goes on");
            assert_eq!(remote.state.lock().running, words.is_none());
            remote.finish(Stop::EndTurn, None);
            local.finish(Stop::EndTurn, None);
        };
        let (asked, of_editor, ()) = tokio::join!(asked, of_editor, rest);
        let ended = asked.unwrap();
        if let Some(words) = words {
            assert_eq!(ended["stopReason"], "cancelled");
            assert_eq!(ended["_meta"]["lembas"]["reason"], words);
        }
        of_editor.unwrap();
        place.tasks.stop().cancel();
    }
}

#[tokio::test(start_paused = true)]
async fn the_link_is_dialled_again_once_the_settings_are_still() {
    let place = Place::new();
    let dialled = watching(&place);
    for n in 0..5 {
        place.set(|remote| remote.max_sessions = 10 + n);
        tokio::time::sleep(Duration::from_millis(800)).await;
        assert_eq!(dialled.load(Ordering::SeqCst), 0);
    }
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert_eq!(dialled.load(Ordering::SeqCst), 1);
    // There and back again within the second is no change.
    place.live.hold(true);
    place.live.hold(false);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(dialled.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn folders_to_pick_are_those_under_the_roots() {
    let place = Place::new();
    std::fs::create_dir_all(place.root().join("api/.git")).unwrap();
    let client = place.instance().await;
    let roots = client.ask("_lembas/directories", json!({})).await.unwrap();
    assert_eq!(roots["folders"][0]["path"], json!(place.root()));
    let list = client
        .ask("_lembas/directories", json!({ "path": place.root() }))
        .await
        .unwrap();
    assert_eq!(
        list["folders"],
        json!([{ "name": "api", "path": place.root().join("api"), "git": true }])
    );
    let out = client
        .ask("_lembas/directories", json!({ "path": "/etc" }))
        .await;
    assert_eq!(
        refused(out),
        (RpcError::INVALID_PARAMS, "outside".to_owned())
    );
}
