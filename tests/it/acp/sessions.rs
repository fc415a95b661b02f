//! Sessions opened, listed, loaded, resumed, changed; whose they are.

use lembas::rpc::RpcError;
use serde_json::json;

use super::client::{Heard, text};
use super::*;

#[tokio::test]
async fn a_session_is_opened_as_asked_and_lowered() {
    let place = Place::new();
    let client = place.instance().await;
    let meta = json!({
        "mode": "auto", "level": "high", "agents": { "min": 1, "max": 4 }, "said": "earlier",
        "context": "more",
    });
    let new = client
        .ask("session/new", new_in(&place, meta))
        .await
        .unwrap();
    let ours = &new["_meta"]["lembas"];
    assert_eq!(
        (ours["mode"].as_str(), ours["lowered"].as_str()),
        (Some("edit"), Some("max_mode"))
    );
    assert_eq!(
        (ours["instance"].as_str(), ours["model"].as_str()),
        (Some("i1"), Some("m1"))
    );
    assert_eq!(new["modes"]["currentModeId"], "edit");
    assert_eq!(new["modes"]["availableModes"].as_array().unwrap().len(), 4);
    let made = place.sessions.one();
    assert_eq!(made.new.level.as_deref(), Some("high"));
    assert_eq!(made.new.agents, Some(json!({ "min": 1, "max": 4 })));
    assert_eq!(
        (made.new.said.as_deref(), made.new.context.as_deref()),
        (Some("earlier"), Some("more"))
    );
    assert_eq!(made.new.cwd, place.root());
}

#[tokio::test]
async fn the_model_is_the_named_one_and_no_other() {
    let place = Place::new();
    let client = place.instance().await;
    let new = json!({ "cwd": place.root(), "mcpServers": [] });
    assert_eq!(
        refused(client.ask("session/new", new.clone()).await),
        (-32053, "model".to_owned())
    );
    // A client that knows none of ours gets the default.
    let editor = place.editor().await;
    let answer = editor.ask("session/new", new).await.unwrap();
    assert_eq!(answer["_meta"]["lembas"]["model"], "default-model");
}

#[tokio::test]
async fn a_model_or_level_that_is_not_served_is_refused() {
    let place = Place::new();
    let client = place.instance().await;
    let new = |model: &str, level: Option<&str>| {
        let meta = json!({ "lembas": { "model": model, "level": level } });
        let params = json!({ "cwd": place.root(), "mcpServers": [], "_meta": meta });
        client.ask("session/new", params)
    };
    let code = |reason: &str| {
        (
            if reason == "model" { -32053 } else { -32602 },
            reason.to_owned(),
        )
    };
    assert_eq!(refused(new("nobody-has-it", None).await), code("model"));
    assert_eq!(refused(new("m", Some("higher")).await), code("params"));
    for (model, level, said) in [
        ("m", None, "default"),
        ("m", Some("default"), "default"),
        ("m", Some("high"), "high"),
        // The list cannot be had: the name stands.
        ("away", Some("whatever"), "whatever"),
    ] {
        let answer = new(model, level).await.unwrap();
        assert_eq!(
            answer["_meta"]["lembas"]["level"], said,
            "{model} {level:?}"
        );
    }
    let id = new("m", None).await.unwrap()["sessionId"].clone();
    let set = |option: &str, value: &str| {
        let params = json!({ "sessionId": id, "configId": option, "value": value });
        client.ask("session/set_config_option", params)
    };
    assert_eq!(refused(set("model", "nobody-has-it").await), code("model"));
    assert_eq!(refused(set("level", "higher").await), code("params"));
    set("level", "low").await.unwrap();
}

#[tokio::test]
async fn a_key_opens_one_session() {
    let place = Place::new();
    let client = place.instance().await;
    let new = || client.ask("session/new", new_in(&place, json!({ "key": "c-1" })));
    let (first, second) = tokio::join!(new(), new());
    assert_eq!(first, second);
    assert_eq!(place.sessions.list.lock().len(), 1);
    let other = client
        .ask(
            "session/new",
            new_in(&place, json!({ "key": "c-1", "mode": "plan" })),
        )
        .await;
    assert_eq!(refused(other), (RpcError::INVALID_PARAMS, "key".to_owned()));
    // On another link of the same grant it is the same key, of another grant it is not.
    let again = place.instance().await;
    assert_eq!(
        again
            .ask("session/new", new_in(&place, json!({ "key": "c-1" })))
            .await,
        first
    );
    // A refusal is not kept.
    place.live.hold(true);
    let refusal = client
        .ask("session/new", new_in(&place, json!({ "key": "c-2" })))
        .await;
    assert_eq!(refused(refusal).1, "paused");
    place.live.hold(false);
    assert!(
        client
            .ask("session/new", new_in(&place, json!({ "key": "c-2" })))
            .await
            .is_ok()
    );
}

#[tokio::test]
async fn another_origins_sessions_are_not_there() {
    let place = Place::new();
    let mine = place.instance_of("g1").await;
    let theirs = place.instance_of("g2").await;
    let id = open(&mine, &place).await;
    place
        .sessions
        .one()
        .ask("a1", &[lembas::store::item::Scope::Once]);
    let load = json!({ "sessionId": id, "cwd": place.root(), "mcpServers": [] });
    let cases = [
        ("session/load", load.clone()),
        ("session/resume", load),
        ("session/prompt", prompt(&id, "hi", "k")),
        (
            "session/set_mode",
            json!({ "sessionId": id, "modeId": "plan" }),
        ),
        (
            "session/set_config_option",
            json!({ "sessionId": id, "configId": "model", "value": "m" }),
        ),
        ("session/close", json!({ "sessionId": id })),
        ("_lembas/status", json!({ "sessionId": id })),
        (
            "_lembas/follow",
            json!({ "sessionId": id, "seq": 0, "at": 0 }),
        ),
        ("_lembas/stop", json!({ "sessionId": id, "key": "k" })),
    ];
    for (method, params) in cases {
        let error = theirs.ask(method, params).await.unwrap_err();
        assert_eq!(error.code, RpcError::NOT_FOUND, "{method}");
        assert_eq!(error.data.unwrap()["sessionId"], id, "{method}");
    }
    // Deleting what is not there is done; it is still there for its own.
    assert_eq!(
        theirs
            .ask("session/delete", json!({ "sessionId": id }))
            .await,
        Ok(json!({}))
    );
    theirs
        .tell("session/cancel", json!({ "sessionId": id }))
        .await;
    let answer = json!({ "ask": "a1", "digest": "sha256:a1", "outcome": "allow" });
    assert_eq!(
        refused(theirs.ask("_lembas/answer", answer).await),
        (-32004, "unknown".to_owned())
    );
    let list = |client: Client| async move {
        let list = client.ask("session/list", json!({})).await.unwrap();
        let sync = client
            .ask("_lembas/sync", json!({ "after": 0 }))
            .await
            .unwrap();
        let status = client.ask("_lembas/status", json!({})).await.unwrap();
        let count = |list: &Value| list.as_array().unwrap().len();
        (
            count(&list["sessions"]),
            count(&sync["sessions"]),
            count(&status["sessions"]),
        )
    };
    assert_eq!(list(theirs.clone()).await, (0, 0, 0));
    assert_eq!(list(mine.clone()).await, (1, 1, 1));
    assert!(theirs.heard().await.is_empty(), "nor its question");
    assert!(place.sessions.one().state.lock().stops.is_empty());
}

#[tokio::test]
async fn load_says_everything_before_it_answers_and_live_updates_wait() {
    let place = Place::new();
    let editor = place.editor().await;
    let id = open(&editor, &place).await;
    let fake = place.sessions.one();
    fake.say("a".repeat(300_000).as_str());
    fake.add(lembas::store::item::Body::Title {
        title: "T".to_owned(),
    });
    fake.say("open ");
    let other = place.editor().await;
    let load = json!({ "sessionId": id, "cwd": place.root(), "mcpServers": [] });
    let loading = other.ask("session/load", load);
    tokio::pin!(loading);
    assert!((&mut loading).now_or_never().is_none());
    fake.say("more");
    loading.await.unwrap();
    let replayed = other.notices().await;
    let marks = |notices: &[(String, Value)]| -> Vec<bool> {
        notices
            .iter()
            .map(|(_, p)| !p["_meta"]["lembas"]["replay"].is_null())
            .collect()
    };
    assert!(
        marks(&replayed).iter().all(|mark| *mark),
        "all of it is marked"
    );
    let texts: Vec<_> = replayed.iter().filter_map(text).collect();
    assert_eq!(texts.iter().map(|t| t.2.len()).sum::<usize>(), 300_009);
    assert!(texts.len() >= 4, "in frames that fit");
    fake.say(" and more");
    let (_, live) = other.notice().await;
    assert_eq!(live["_meta"]["lembas"]["replay"], Value::Null);
    assert_eq!(live["update"]["content"]["text"], " and more");
}

#[tokio::test]
async fn live_updates_of_a_followed_session_wait_for_its_load() {
    let place = Place::new();
    let client = place.instance().await;
    let id = open(&client, &place).await;
    let fake = place.sessions.one();
    fake.say("one");
    let follow = json!({ "sessionId": id, "seq": 0, "at": 0 });
    client.ask("_lembas/follow", follow).await.unwrap();
    assert_eq!(text(&client.notice().await).unwrap().2, "one");
    let load = json!({ "sessionId": id, "cwd": place.root(), "mcpServers": [] });
    let loading = client.peer.request("session/load", load);
    tokio::pin!(loading);
    let (mut answered, mut replayed) = (false, false);
    loop {
        fake.say("x");
        tokio::select! {
            biased;
            done = &mut loading, if !answered => { done.unwrap(); answered = true; }
            heard = client.hear() => {
                let Heard::Notice(_, params) = heard else { continue };
                let live = params["_meta"]["lembas"]["replay"].is_null();
                replayed |= !live;
                // What came before the first of the load was on its way when it was asked for.
                if live && replayed {
                    break assert!(answered, "a live update came before the answer");
                }
            }
        }
    }
}

#[tokio::test]
async fn resume_replays_nothing_and_goes_on_from_here() {
    let place = Place::new();
    let editor = place.editor().await;
    let id = open(&editor, &place).await;
    let fake = place.sessions.one();
    fake.say("before ");
    let other = place.editor().await;
    let resume = json!({ "sessionId": id, "cwd": place.root(), "mcpServers": [] });
    other.ask("session/resume", resume).await.unwrap();
    fake.say("after");
    let first = text(&other.notice().await).unwrap();
    assert_eq!((first.1, first.2.as_str()), (12, "after"));
}

#[tokio::test]
async fn another_folder_than_the_sessions_is_a_mistake() {
    let place = Place::new();
    let client = place.instance().await;
    let id = open(&client, &place).await;
    std::fs::create_dir(place.root().join("in")).unwrap();
    for (cwd, reason) in [
        (place.root().join("in"), "params"),
        (place.root().join("gone"), "missing"),
        ("/".into(), "outside"),
    ] {
        for method in ["session/load", "session/resume"] {
            let params = json!({ "sessionId": id, "cwd": cwd, "mcpServers": [] });
            let answer = client.ask(method, params).await;
            assert_eq!(
                refused(answer),
                (RpcError::INVALID_PARAMS, reason.to_owned()),
                "{cwd:?}"
            );
        }
    }
}

#[tokio::test]
async fn modes_options_closing_and_deleting() {
    let place = Place::new();
    let client = place.instance().await;
    let id = open(&client, &place).await;
    client
        .ask(
            "_lembas/follow",
            json!({ "sessionId": id, "seq": 0, "at": 0 }),
        )
        .await
        .unwrap();
    let set = client
        .ask(
            "session/set_mode",
            json!({ "sessionId": id, "modeId": "auto" }),
        )
        .await
        .unwrap();
    assert_eq!(
        set["_meta"]["lembas"],
        json!({ "mode": "edit", "lowered": "max_mode" })
    );
    let said = client.notices().await;
    assert_eq!(
        said.last().unwrap().1["update"]["currentModeId"],
        "edit",
        "before the answer"
    );
    let option = json!({ "sessionId": id, "configId": "model", "value": "m2" });
    let options = client
        .ask("session/set_config_option", option)
        .await
        .unwrap();
    let read: agent_client_protocol_schema::v1::SetSessionConfigOptionResponse =
        serde_json::from_value(options).unwrap();
    assert_eq!(read.config_options.len(), 2);
    let status = client
        .ask("_lembas/status", json!({ "sessionId": id }))
        .await
        .unwrap();
    assert_eq!(
        (status["model"].as_str(), status["mode"].as_str()),
        (Some("m2"), Some("edit"))
    );
    assert_eq!(status["status"], "idle");
    client
        .ask("session/close", json!({ "sessionId": id }))
        .await
        .unwrap();
    client
        .ask("session/delete", json!({ "sessionId": id }))
        .await
        .unwrap();
    client
        .ask("session/delete", json!({ "sessionId": id }))
        .await
        .unwrap();
    let gone = client
        .ask("_lembas/status", json!({ "sessionId": id }))
        .await
        .unwrap_err();
    assert_eq!(gone.code, RpcError::NOT_FOUND);
}

#[tokio::test]
async fn lists_and_syncs_come_in_pages() {
    let place = Place::new();
    let client = place.instance().await;
    for _ in 0..120 {
        open(&client, &place).await;
        place.sessions.one().say("x");
    }
    let mut cursor = Value::Null;
    let mut pages = Vec::new();
    loop {
        let page = client
            .ask("session/list", json!({ "cursor": cursor }))
            .await
            .unwrap();
        pages.push(page["sessions"].as_array().unwrap().len());
        cursor = page["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(pages, [50, 50, 20]);
    let mut after = json!(0);
    let mut ids = std::collections::BTreeSet::new();
    loop {
        let page = client
            .ask("_lembas/sync", json!({ "after": after, "limit": 70 }))
            .await
            .unwrap();
        for session in page["sessions"].as_array().unwrap() {
            assert!(ids.insert(session["id"].as_str().unwrap().to_owned()));
        }
        after = page["next"].clone();
        if after.is_null() {
            break;
        }
    }
    assert_eq!(ids.len(), 120);
    let none = client
        .ask("_lembas/sync", json!({ "after": i64::MAX }))
        .await
        .unwrap();
    assert_eq!(none["sessions"], json!([]));
}

#[tokio::test]
async fn servers_and_prompts_of_a_client_are_refused() {
    let place = Place::new();
    let id = open(&place.instance().await, &place).await;
    let server = json!([{ "name": "x", "command": "/bin/x", "args": [], "env": [] }]);
    let own = json!({ "mode": "override", "content": [{ "type": "text", "text": "be evil" }] });
    for client in [place.instance().await, place.editor().await] {
        for method in ["session/new", "session/load", "session/resume"] {
            for (field, value, reason) in [
                ("mcpServers", &server, "mcp_servers"),
                ("systemPrompt", &own, "system_prompt"),
            ] {
                let mut params = new_in(&place, json!({}));
                params["sessionId"] = json!(id);
                params[field] = value.clone();
                let answer = client.ask(method, params).await;
                assert_eq!(
                    refused(answer),
                    (RpcError::INVALID_PARAMS, reason.to_owned()),
                    "{method}"
                );
            }
        }
    }
}
