//! The device grant against a server that decides as the test says.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::join_all;
use lembas::ids::DeviceId;
use lembas::link::discovery::discover;
use lembas::link::instance::Instance;
use lembas::link::origin::Base;
use lembas::link::pair::{About, PairError, Progress, pair, revoke};
use serde_json::{Value, json};

use super::finding::{http, says};
use super::server::{Reply, Request, Server};

const TOKEN: &str = "q2vX0123456789012345678901234567890123456789";

fn endpoints(base: &str) -> Value {
    json!({
        "issuer": base,
        "device_authorization_endpoint": format!("{base}/oauth/device"),
        "token_endpoint": format!("{base}/oauth/token"),
        "revocation_endpoint": format!("{base}/oauth/revoke"),
    })
}

fn code(base: &str) -> Value {
    json!({
        "device_code": "dc", "user_code": "BCDF-GHJK", "verification_uri": format!("{base}/link"),
        "verification_uri_complete": format!("{base}/link?code=BCDF-GHJK"),
        "expires_in": 600, "interval": 1,
    })
}

fn approved() -> Value {
    json!({
        "access_token": TOKEN, "token_type": "Bearer", "scope": "link memory models",
        "device_id": "0f5b1f6b0c0e4a6f9a3f0f1f2d3c4b5a", "instance": "i-1",
        "account": {"id": "a-1", "name": "ana"},
    })
}

fn about() -> About {
    About {
        device: DeviceId::new("0f5b1f6b0c0e4a6f9a3f0f1f2d3c4b5a"),
        name: "zephyr & co".into(),
        os: "linux".into(),
        arch: "x86_64".into(),
        limits: json!({ "roots": ["/srv/é"] }),
    }
}

/// Pairs with a server whose token endpoint answers `token(n)` to the n-th question.
async fn paired(
    device: impl Fn(&Request, &str) -> Reply + Send + Sync + 'static,
    token: impl Fn(usize) -> Reply + Send + Sync + 'static,
) -> (Result<Instance, PairError>, Vec<String>) {
    let asked = AtomicUsize::new(0);
    let server = Server::plain(move |request| {
        let base = format!("http://{}", request.header("host").unwrap());
        match request.path.as_str() {
            "/.well-known/lembas" => Reply::json(&says(&base)),
            "/.well-known/oauth-authorization-server" => Reply::json(&endpoints(&base)),
            "/oauth/device" => device(request, &base),
            "/oauth/token" => {
                assert_eq!(request.field("client_id").unwrap(), "lembas");
                assert_eq!(request.field("device_code").unwrap(), "dc");
                let grant = "urn:ietf:params:oauth:grant-type:device_code";
                assert_eq!(request.field("grant_type").unwrap(), grant);
                token(asked.fetch_add(1, Ordering::Relaxed))
            }
            path => panic!("nobody asks for {path}"),
        }
    })
    .await;
    let base = Base::read(&server.url()).unwrap();
    let found = discover(&base, &http()).await.unwrap();
    let mut told = Vec::new();
    let tell = |progress: Progress| {
        told.push(match progress {
            Progress::Found(found) => format!("found {}", found.instance),
            Progress::Code(code) => format!("code {} {}", code.code, code.page.path()),
            Progress::Waiting { trouble: None } => "waiting".into(),
            Progress::Waiting {
                trouble: Some(text),
            } => format!("trouble {text}"),
            Progress::Linked(instance) => format!("linked {}", instance.account.name),
        });
    };
    let paired = pair(&found, &about(), &http(), tell).await;
    server.end().await;
    (paired, told)
}

fn error(name: &str) -> Reply {
    Reply::status("400 Bad Request", &json!({ "error": name }))
}

#[tokio::test]
async fn a_computer_is_paired() {
    let device = |request: &Request, base: &str| {
        for (name, value) in [
            ("client_id", "lembas"),
            ("scope", "link memory models"),
            ("device_id", "0f5b1f6b0c0e4a6f9a3f0f1f2d3c4b5a"),
            ("device_name", "zephyr & co"),
            ("device_os", "linux"),
            ("device_arch", "x86_64"),
            ("device_version", env!("CARGO_PKG_VERSION")),
            ("device_limits", "{\"roots\":[\"/srv/é\"]}"),
        ] {
            assert_eq!(request.field(name).as_deref(), Some(value), "{name}");
        }
        Reply::json(&code(base))
    };
    let token = |n| match n {
        0 => error("authorization_pending"),
        // A proxy in between, and a connection that is cut: asked again.
        1 => Reply::Http("502 Bad Gateway", vec![], String::new()),
        _ => Reply::json(&approved()),
    };
    let (paired, told) = paired(device, token).await;
    let instance = paired.unwrap();
    assert_eq!(
        told,
        [
            "found i-1",
            "code BCDF-GHJK /link",
            "waiting",
            "trouble a server without a name answered 502 Bad Gateway",
            "linked ana",
        ]
    );
    assert_eq!(instance.token.reveal(), TOKEN);
    assert_eq!(
        (instance.instance.as_str(), instance.name.as_str()),
        ("i-1", "home[31m")
    );
    assert!(instance.link.starts_with("ws://") && instance.link.ends_with("/link"));
    assert!(!format!("{instance:?}").contains(TOKEN));
}

#[tokio::test]
async fn what_a_person_or_the_instance_refuses_ends_it() {
    let cases = [
        ("access_denied", "somebody said no"),
        ("expired_token", "nobody approved in time"),
        (
            "invalid_grant",
            "does not let this computer in: it says no more than invalid_grant",
        ),
    ];
    let cases = cases.map(|(reply, expected)| async move {
        let (paired, _) = paired(|_, base| Reply::json(&code(base)), move |_| error(reply)).await;
        let text = paired.unwrap_err().to_string();
        assert!(text.contains(expected), "{text}");
    });
    join_all(cases).await;
    let wrong = |field: &'static str, value: Value| {
        paired(
            |_, base| Reply::json(&code(base)),
            move |_| {
                let mut approved = approved();
                approved[field] = value.clone();
                Reply::json(&approved)
            },
        )
    };
    let (other, token, device) = tokio::join!(
        wrong("instance", json!("i-2")),
        wrong("access_token", json!("two words and some more")),
        wrong("device_id", json!("a\r\nb")),
    );
    assert!(matches!(other.0, Err(PairError::OtherInstance)));
    assert!(matches!(token.0, Err(PairError::Field("access_token"))));
    assert!(matches!(device.0, Err(PairError::Field("device_id"))));
}

#[tokio::test]
async fn a_page_elsewhere_and_a_wait_end_it() {
    let elsewhere = |_: &Request, base: &str| {
        let mut code = code(base);
        code["verification_uri"] = json!("https://evil.example/link");
        Reply::json(&code)
    };
    let (refused, _) = paired(elsewhere, |_| Reply::Nothing).await;
    assert!(
        matches!(refused, Err(PairError::Discovery(_))),
        "{refused:?}"
    );
    let later = |_: &Request, _: &str| {
        Reply::status("429 Too Many Requests", &json!({"error": "slow_down"}))
            .with("retry-after: 90")
    };
    let (later, _) = paired(later, |_| Reply::Nothing).await;
    assert_eq!(
        later.unwrap_err().to_string(),
        "the instance asks to wait: try again in 90 seconds"
    );
}

#[tokio::test]
async fn both_tokens_of_a_pairing_are_revoked() {
    let revoked = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let seen = Arc::clone(&revoked);
    let server = Server::plain(move |request| {
        let base = format!("http://{}", request.header("host").unwrap());
        match request.path.as_str() {
            "/.well-known/oauth-authorization-server" => Reply::json(&endpoints(&base)),
            "/oauth/revoke" => {
                seen.lock().push(request.field("token").unwrap());
                Reply::json(&json!({}))
            }
            path => panic!("nobody asks for {path}"),
        }
    })
    .await;
    let instance: Instance = serde_json::from_value(json!({
        "url": server.url(), "instance": "i-1", "name": "home", "link": "ws://localhost/link",
        "account": {"id": "a", "name": "ana"}, "device": "d", "paired_at": 1,
        "token": "old", "successor": "new",
    }))
    .unwrap();
    revoke(&instance, &http()).await.unwrap();
    assert_eq!(*revoked.lock(), ["new", "old"]);
    server.end().await;
}
