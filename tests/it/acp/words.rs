//! Fields that hold something else than they should, over the link: the answers are in words.

use lembas::rpc::RpcError;
use serde_json::{Value, json};

use super::*;
use crate::refusals::words::{hostile, plain};

/// Every method that reads params, with every field there is, as the place of it.
fn asked(place: &Place) -> Vec<(&'static str, Value)> {
    let root = place.root();
    let ours = json!({ "lembas": {
        "model": "m", "mode": "edit", "level": "low", "agents": { "min": 1, "max": 2 },
        "said": "a", "context": "a", "key": "key-00000001",
        "scheduled": { "schedule": "s", "run": "r", "mode": "edit", "approval_wait": 60 } } });
    let open = json!({ "cwd": root, "mcpServers": [], "additionalDirectories": [] });
    let with = |mut base: Value, more: Value| {
        base.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        base
    };
    let of = |more: Value| with(json!({ "sessionId": "nobody" }), more);
    vec![
        ("session/new", with(open.clone(), json!({ "_meta": ours }))),
        (
            "session/load",
            with(open.clone(), json!({ "sessionId": "nobody" })),
        ),
        (
            "session/resume",
            with(open, json!({ "sessionId": "nobody" })),
        ),
        ("session/list", json!({ "cwd": root, "cursor": "c" })),
        (
            "session/prompt",
            of(json!({ "prompt": [{ "type": "text", "text": "a" }],
                       "_meta": { "lembas": { "key": "k", "machine": true,
                                              "agents": { "min": 1, "max": 1 } } } })),
        ),
        ("session/close", of(json!({}))),
        ("session/delete", of(json!({}))),
        ("session/set_mode", of(json!({ "modeId": "plan" }))),
        (
            "session/set_config_option",
            of(json!({ "configId": "mode", "value": "plan" })),
        ),
        ("_lembas/status", of(json!({}))),
        ("_lembas/sync", json!({ "after": 1, "limit": 2 })),
        ("_lembas/follow", of(json!({ "seq": 1, "at": 0 }))),
        ("_lembas/unfollow", of(json!({}))),
        (
            "_lembas/stop",
            of(json!({ "turn": 1, "key": "key-00000002" })),
        ),
        (
            "_lembas/answer",
            json!({ "ask": "a", "digest": "d", "outcome": "allow", "scope": "once", "note": "a",
                    "selected": ["a"], "by": "a", "key": "key-00000003" }),
        ),
        ("_lembas/extend", json!({ "ask": "a", "seconds": 60 })),
        ("_lembas/directories", json!({ "path": root })),
        (
            "_lembas/monitor",
            json!({ "schedule": "s", "run": "r", "cwd": root, "command": "ls", "mode": "edit",
                    "timeout": 5, "last": "a", "confirm": 0, "fail_on": "nonzero",
                    "excerpt": "full" }),
        ),
        ("_lembas/token", json!({ "token": "t" })),
    ]
}

/// All fields, those within fields too.
fn fields(value: &Value, at: &str, all: &mut Vec<String>) {
    let inner: Vec<(String, &Value)> = match value {
        Value::Object(map) => map.iter().map(|(k, v)| (k.clone(), v)).collect(),
        Value::Array(list) => list
            .iter()
            .enumerate()
            .map(|(n, v)| (n.to_string(), v))
            .collect(),
        _ => Vec::new(),
    };
    for (key, value) in inner {
        let at = format!("{at}/{key}");
        fields(value, &at, all);
        all.push(at);
    }
}

#[tokio::test]
async fn no_field_of_no_method_is_answered_in_a_parsers_words() {
    let place = Place::new();
    place.set(|remote| remote.scheduled = true);
    let client = place.instance().await;
    for (method, params) in asked(&place) {
        let mut all = Vec::new();
        fields(&params, "", &mut all);
        for field in all {
            for value in hostile() {
                let mut wrong = params.clone();
                *wrong.pointer_mut(&field).unwrap() = value.clone();
                let Err(error) = client.ask(method, wrong).await else {
                    continue;
                };
                let of = format!("{method} {field}: {value:.60}");
                plain(&of, &error.message);
                let text = error.data.as_ref().and_then(|data| data["text"].as_str());
                plain(&of, text.unwrap_or_default());
                assert_ne!(error.code, RpcError::INTERNAL, "{of}: {error:?}");
            }
        }
        for whole in hostile() {
            if let Err(error) = client.ask(method, whole).await {
                plain(method, &error.message);
            }
        }
    }
}

#[tokio::test]
async fn a_wrong_word_is_answered_with_the_words_there_are() {
    let place = Place::new();
    let client = place.instance().await;
    let mut said = String::new();
    let mut ask = async |method: &str, params: Value| {
        let error = client.ask(method, params).await.unwrap_err();
        assert_eq!(error.code, RpcError::INVALID_PARAMS);
        said.push_str(&format!("{method}: {}\n", error.message));
    };
    for mode in [
        json!("all"),
        json!("Edit"),
        json!(4),
        json!({}),
        json!(["edit"]),
        json!(true),
    ] {
        let meta = json!({ "model": "m", "mode": mode });
        ask("session/new", new_in(&place, meta)).await;
    }
    let level = json!({ "model": "m", "level": "much" });
    ask("session/new", new_in(&place, level)).await;
    let answer = json!({ "ask": "a", "digest": "d", "outcome": "allow" });
    for (field, value) in [
        ("outcome", json!("perhaps")),
        ("outcome", json!({})),
        ("scope", json!("for ever")),
        ("scope", json!(4)),
        ("selected", json!("a")),
    ] {
        let mut wrong = answer.clone();
        wrong[field] = value;
        ask("_lembas/answer", wrong).await;
    }
    let monitor = json!({ "schedule": "s", "run": "r", "cwd": "/", "command": "ls" });
    for (field, value) in [
        ("mode", json!(4)),
        ("fail_on", json!("zero")),
        ("excerpt", json!({})),
    ] {
        let mut wrong = monitor.clone();
        wrong[field] = value;
        let error = client.ask("_lembas/monitor", wrong).await.unwrap_err();
        said.push_str(&format!("_lembas/monitor: {}\n", error.message));
    }
    insta::assert_snapshot!(said, @r#"
    session/new: _meta.lembas: mode must be plan, manual, edit or auto, not "all"
    session/new: _meta.lembas: mode must be plan, manual, edit or auto, not "Edit"
    session/new: _meta.lembas: mode must be plan, manual, edit or auto, not 4
    session/new: _meta.lembas: mode must be plan, manual, edit or auto, not an object
    session/new: _meta.lembas: mode must be plan, manual, edit or auto, not a list
    session/new: _meta.lembas: mode must be plan, manual, edit or auto, not true
    session/new: the model m has no level "much": default, low, high
    _lembas/answer: outcome is "perhaps" and can be allow or refuse
    _lembas/answer: outcome must be allow or refuse, not an object
    _lembas/answer: scope is "for ever" and can be once, session or always
    _lembas/answer: scope must be once, session or always, not 4
    _lembas/answer: selected must be a list, not text
    _lembas/monitor: mode must be plan, manual, edit or auto, not 4
    _lembas/monitor: fail_on is "zero" and can be nonzero
    _lembas/monitor: excerpt must be none or full, not an object
    "#);
}
