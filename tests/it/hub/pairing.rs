//! Pairing: discovery, the device grant, and taking access back.

use reqwest::Method;
use serde_json::{Value, json};

use super::rig::Rig;

#[tokio::test]
async fn discovery_names_one_origin() {
    let rig = Rig::start().await;
    let said: Value = rig
        .http
        .get(rig.url("/.well-known/lembas"))
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    assert_eq!(
        (&said["product"], &said["protocol"], &said["name"]),
        (&json!("llembas"), &json!(3), &json!("home"))
    );
    assert_eq!(said["instance"], rig.hub.instance());
    let base = rig.hub.url();
    assert_eq!(said["models"], format!("{base}/v1"));
    assert_eq!(
        said["link"],
        format!("{}/link/v3", base.replace("http", "ws"))
    );
    let oauth: Value = rig
        .http
        .get(rig.url("/.well-known/oauth-authorization-server"))
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    for end in [
        "device_authorization_endpoint",
        "token_endpoint",
        "revocation_endpoint",
    ] {
        assert!(oauth[end].as_str().unwrap().starts_with(base), "{oauth}");
    }
}

#[tokio::test]
async fn a_computer_is_paired_after_a_yes_and_only_once() {
    let rig = Rig::signed().await;
    let grant = rig.authorize("0123456789abcdef", "zephyr").await;
    assert_eq!(grant["expires_in"], 600);
    assert_eq!(rig.poll(&grant).await.1["error"], "authorization_pending");
    assert_eq!(rig.poll(&grant).await.1["error"], "slow_down");
    let code = grant["user_code"]
        .as_str()
        .unwrap()
        .to_lowercase()
        .replace('-', "");
    let seen = rig.post("/link/lookup", json!({ "code": code })).await;
    assert_eq!(
        (
            &seen["device"]["name"],
            &seen["device"]["os"],
            &seen["device"]["address"]
        ),
        (&json!("zephyr"), &json!("linux"), &json!("127.0.0.1"))
    );
    assert!(seen["limits"]["words"].is_string());
    rig.post("/link/approve", json!({ "code": code })).await;
    let (status, token) = rig.poll(&grant).await;
    assert_eq!(
        (status, &token["device_id"]),
        (200, &json!("0123456789abcdef")),
        "{token}"
    );
    assert_eq!(token["scope"], "link memory models");
    assert_eq!(
        rig.poll(&grant).await.1["error"],
        "expired_token",
        "used up"
    );
    let list = rig.get("/devices").await;
    assert_eq!(list["devices"][0]["state"], "never");
    assert_eq!(
        list["devices"][0]["limits"]["words"],
        "works in no folder yet · up to Manual · scheduled work off"
    );
}

#[tokio::test]
async fn five_wrong_codes_and_then_nothing_for_a_while() {
    let rig = Rig::signed().await;
    let grant = rig.authorize("0123456789abcdef", "zephyr").await;
    for n in 0..5 {
        let (status, body) = rig
            .call(
                Method::POST,
                "/link/lookup",
                Some(json!({ "code": "BCDF-GHJK" })),
            )
            .await;
        assert_eq!(
            (status.as_u16(), &body["error"]["code"]),
            (404, &json!("wrong_code")),
            "try {n}"
        );
    }
    for path in ["/link/lookup", "/link/approve"] {
        let (status, body) = rig
            .call(
                Method::POST,
                path,
                Some(json!({ "code": grant["user_code"] })),
            )
            .await;
        assert_eq!(
            (status.as_u16(), &body["error"]["code"]),
            (429, &json!("too_often")),
            "also the right one"
        );
    }
    assert_ne!(rig.poll(&grant).await.0, 200);
}

#[tokio::test]
async fn a_no_and_an_own_yes() {
    let rig = Rig::signed().await;
    let grant = rig.authorize("0123456789abcdef", "zephyr").await;
    rig.post("/link/deny", json!({ "code": grant["user_code"] }))
        .await;
    assert_eq!(rig.poll(&grant).await.1["error"], "access_denied");
    let grant = rig.authorize("0123456789abcdef", "zephyr").await;
    assert!(rig.hub.approve_own("BCDF-GHJK").await.is_err());
    rig.hub
        .approve_own(grant["user_code"].as_str().unwrap())
        .await
        .unwrap();
    assert_eq!(rig.poll(&grant).await.0, 200);
}

#[tokio::test]
async fn a_device_of_one_account_is_not_taken_by_a_scope_it_does_not_have() {
    let rig = Rig::signed().await;
    let (status, body) = rig
        .form(
            "/oauth/device_authorization",
            &[("scope", "link everything")],
        )
        .await;
    assert_eq!((status, &body["error"]), (400, &json!("invalid_scope")));
    let (status, body) = rig
        .form("/oauth/token", &[("grant_type", "password")])
        .await;
    assert_eq!(
        (status, &body["error"]),
        (400, &json!("unsupported_grant_type"))
    );
}
