//! What comes first, who is let in, and what wrong frames come to.

use lembas::permission::Origin;
use lembas::rpc::{CloseReason, RpcError};
use serde_json::{Value, json};

use super::*;

#[tokio::test]
async fn nothing_comes_before_the_handshake() {
    let place = Place::new();
    let client = place.connect(instance("g1"));
    client
        .tell("session/cancel", json!({ "sessionId": "s1" }))
        .await;
    for method in [
        "session/new",
        "session/list",
        "_lembas/status",
        "nonsense",
        "authenticate",
    ] {
        let error = client.ask(method, json!({})).await.unwrap_err();
        assert_eq!(error.code, RpcError::INVALID_REQUEST, "{method}");
    }
    client.ask("initialize", hello(ALL)).await.unwrap();
    client.ask("session/list", json!({})).await.unwrap();
    let again = client.ask("initialize", hello(ALL)).await.unwrap_err();
    assert_eq!(again.code, RpcError::INVALID_REQUEST);
}

#[tokio::test]
async fn what_is_sent_right_behind_initialize_is_taken() {
    let place = Place::new();
    let client = place.connect(Origin::Local);
    let init = client
        .peer
        .request("initialize", json!({ "protocolVersion": 1 }));
    let list = client.peer.request("session/list", json!({}));
    let (init, list) = tokio::join!(init, list);
    assert!(init.is_ok() && list.is_ok());
}

#[tokio::test]
async fn the_answer_says_who_we_are_and_what_we_can() {
    let place = Place::new();
    place.set(|remote| remote.roots = vec!["/srv/api".into()]);
    let client = place.connect(instance("g1"));
    let answer = client.ask("initialize", hello(ALL)).await.unwrap();
    let ours = &answer["agentCapabilities"]["_meta"]["lembas"];
    assert_eq!(answer["protocolVersion"], 1);
    assert_eq!(
        (ours["protocol"].as_u64(), ours["epoch"].as_str()),
        (Some(3), Some("e0"))
    );
    assert_eq!(ours["capabilities"], json!(ALL));
    assert_eq!(ours["limits"]["roots"], json!(["/srv/api"]));
    assert_eq!(ours["device"]["name"], "zephyr");
    let local = place.connect(Origin::Local);
    let answer = local
        .ask("initialize", json!({ "protocolVersion": 7 }))
        .await
        .unwrap();
    assert_eq!(answer["protocolVersion"], 1, "ours, whatever was offered");
    let ours = &answer["agentCapabilities"]["_meta"]["lembas"];
    assert_eq!(ours["limits"], Value::Null);
    assert_eq!(
        ours["capabilities"],
        json!([
            "resume", "asks", "progress", "agents", "retry", "rewind", "rules", "output"
        ])
    );
}

#[tokio::test]
async fn who_cannot_work_with_us_hears_why_and_is_closed() {
    let place = Place::new();
    for (change, reason) in [
        (json!({ "protocol": 2 }), "protocol"),
        (json!({ "protocol": 4 }), "protocol"),
        (json!({ "instance": "i2" }), "instance"),
    ] {
        let client = place.connect(instance("g1"));
        let mut params = hello(ALL);
        let ours = params["clientCapabilities"]["_meta"]["lembas"]
            .as_object_mut()
            .unwrap();
        ours.extend(change.as_object().cloned().unwrap());
        let answer = client.ask("initialize", params).await;
        assert_eq!(
            refused(answer),
            (RpcError::INVALID_PARAMS, reason.to_owned())
        );
        let closed = client.closed().await;
        let expected = CloseReason::Remote {
            code: Some(4004),
            reason: reason.to_owned(),
        };
        assert_eq!(closed, expected);
    }
}

#[tokio::test]
async fn wrong_params_are_an_error_and_the_link_lives() {
    let place = Place::new();
    let client = place.instance().await;
    let id = open(&client, &place).await;
    let huge = "x".repeat(100_000);
    let cases = [
        ("session/new", json!({})),
        ("session/new", json!({ "cwd": 3, "mcpServers": [] })),
        (
            "session/new",
            json!({ "cwd": place.root(), "mcpServers": {} }),
        ),
        ("session/new", json!([place.root()])),
        ("session/new", new_in(&place, json!({ "mode": "all" }))),
        ("session/new", new_in(&place, json!({ "mode": ["edit"] }))),
        (
            "session/new",
            new_in(&place, json!({ "agents": { "min": 3, "max": 99 } })),
        ),
        ("session/new", new_in(&place, json!({ "key": "ü" }))),
        (
            "session/new",
            new_in(&place, json!({ "key": "k".repeat(129) })),
        ),
        ("session/load", json!({ "sessionId": id })),
        ("session/prompt", json!({ "sessionId": id })),
        ("session/prompt", json!({ "sessionId": id, "prompt": "hi" })),
        ("session/prompt", json!({ "sessionId": id, "prompt": [] })),
        ("session/prompt", prompt(&id, "hi", "")),
        ("session/prompt", prompt(&id, "hi", &"k".repeat(129))),
        (
            "session/prompt",
            json!({ "sessionId": id, "prompt": [{ "type": "hologram" }] }),
        ),
        (
            "session/set_mode",
            json!({ "sessionId": id, "modeId": "root" }),
        ),
        (
            "session/set_config_option",
            json!({ "sessionId": id, "configId": "x", "value": "y" }),
        ),
        ("session/list", json!({ "cursor": 3 })),
        ("_lembas/follow", json!({ "sessionId": id, "seq": -1 })),
        ("_lembas/follow", json!({ "seq": 1 })),
        ("_lembas/stop", json!({ "sessionId": id, "turn": "1" })),
        ("_lembas/sync", json!({ "after": "not a page" })),
        ("_lembas/sync", json!({ "after": {} })),
        (
            "_lembas/answer",
            json!({ "ask": "a", "digest": "d", "outcome": "maybe" }),
        ),
        (
            "_lembas/answer",
            json!({ "ask": "a", "digest": "d", "outcome": "allow", "note": huge }),
        ),
        ("_lembas/directories", json!({ "path": 3 })),
        ("_lembas/token", json!({ "token": "with space" })),
        ("_lembas/token", json!({})),
        ("_lembas/token", Value::Null),
    ];
    for (method, params) in cases {
        let shown: String = params.to_string().chars().take(200).collect();
        let error = client.ask(method, params).await.unwrap_err();
        assert_eq!(
            error.code,
            RpcError::INVALID_PARAMS,
            "{method} {shown}: {error:?}"
        );
    }
    for params in [
        json!({}),
        json!({ "sessionId": 3 }),
        json!([1]),
        json!({ "sessionId": huge }),
        Value::Null,
    ] {
        client.tell("session/cancel", params.clone()).await;
        client.tell("_lembas/ack", params).await;
        client.tell("_lembas/unknown", json!({})).await;
    }
    for method in [
        "_lembas/nothing",
        "session/fork",
        "fs/read_text_file",
        "terminal/create",
        "x",
    ] {
        let error = client.ask(method, json!({})).await.unwrap_err();
        assert_eq!(error.code, RpcError::METHOD_NOT_FOUND, "{method}");
    }
    assert!(client.ask("_lembas/status", json!({})).await.is_ok());
}

#[tokio::test]
async fn a_method_exists_only_where_both_named_its_capability() {
    let place = Place::new();
    let methods = [
        ("_lembas/sync", "resume"),
        ("_lembas/follow", "resume"),
        ("_lembas/answer", "asks"),
        ("_lembas/extend", "asks"),
        ("_lembas/directories", "directories"),
        ("_lembas/monitor", "scheduled"),
        ("_lembas/token", "token"),
        ("_lembas/retry", "retry"),
        ("_lembas/rewind", "rewind"),
    ];
    for (method, capability) in methods {
        let without: Vec<&str> = ALL.iter().copied().filter(|c| *c != capability).collect();
        let client = place.connect(instance("g1"));
        client.ask("initialize", hello(&without)).await.unwrap();
        let error = client.ask(method, json!({})).await.unwrap_err();
        assert_eq!(error.code, RpcError::METHOD_NOT_FOUND, "{method}");
    }
    let editor = place.editor().await;
    for method in ["_lembas/status", "_lembas/stop", "_lembas/follow"] {
        let error = editor.ask(method, json!({})).await.unwrap_err();
        assert_eq!(error.code, RpcError::METHOD_NOT_FOUND, "{method}");
    }
}

#[tokio::test]
async fn a_new_token_is_kept_before_it_is_answered() {
    let place = Place::new();
    let client = place.instance().await;
    let answer = client
        .ask("_lembas/token", json!({ "token": "Zr8-x.y~", "key": "t" }))
        .await;
    assert_eq!(answer, Ok(json!({ "kept": true })));
    assert_eq!(
        *place.tokens.0.lock(),
        [("g1".to_owned(), "Zr8-x.y~".to_owned())]
    );
}
