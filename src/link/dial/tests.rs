use super::*;

async fn head_of(text: &str) -> Head {
    head::read(&mut text.as_bytes()).await.unwrap().0
}

fn instance() -> Instance {
    serde_json::from_value(serde_json::json!({
        "url": "https://a.example", "instance": "i-1", "name": "home",
        "link": "wss://a.example/link", "account": {"id": "a", "name": "ana"},
        "device": "d", "paired_at": 1, "token": "token-0123456789abcdef",
    }))
    .unwrap()
}

async fn refused(head: &str, body: &str) -> Refusal {
    let head = head_of(&format!("HTTP/1.1 {head}\r\n\r\n")).await;
    refusal(&head, body.as_bytes(), &instance())
}

const BEARER: &str = "WWW-Authenticate: Bearer realm=\"x\", error=\"invalid_token\"";

#[tokio::test]
async fn only_the_paired_instances_own_word_stops_dialling() {
    let own = r#"{"product":"llembas","instance":"i-1","reason":"revoked","text":"Ana revoked\u001b[31m it.","since":1}"#;
    let revoked = refused(&format!("401 No\r\n{BEARER}"), own).await;
    let text = "Ana revoked[31m it.".to_owned();
    assert_eq!(revoked, Refusal::Revoked { text });
    for (head, body) in [
        // A proxy's own 401, one without the header, another instance, another product, a page.
        (format!("401 No\r\n{BEARER}"), "<html>".to_owned()),
        ("401 No".into(), own.into()),
        ("401 No\r\nWWW-Authenticate: Basic".into(), own.into()),
        (format!("401 No\r\n{BEARER}"), own.replace("i-1", "i-2")),
        (
            format!("401 No\r\n{BEARER}"),
            own.replace("llembas", "nginx"),
        ),
        (format!("403 No\r\n{BEARER}"), own.into()),
        ("409 Conflict".into(), "{}".into()),
        ("426 Upgrade".into(), "{}".into()),
        (
            "302 Found\r\nServer: portal\r\nContent-Type: text/html".into(),
            String::new(),
        ),
    ] {
        let failed = refused(&head, &body).await;
        assert!(
            matches!(failed, Refusal::Failed { .. }),
            "{head} {body}: {failed:?}"
        );
    }
}

#[tokio::test]
async fn the_other_refusals_are_read() {
    let held = r#"{"product":"llembas","instance":"i-1","reason":"held","text":"t","holder":{"address":"10.0.0.7","since":1764512345678}}"#;
    let holder = "10.0.0.7, since 2025-11-30T14:19:05Z".to_owned();
    assert_eq!(
        refused("409 Conflict", held).await,
        Refusal::Held { holder }
    );
    let version = r#"{"product":"llembas","protocol":4,"text":"t"}"#;
    assert_eq!(
        refused("426 Upgrade Required", version).await,
        Refusal::Version { theirs: Some(4) }
    );
    let later = refused(
        "503 Later\r\nRetry-After: 30",
        r#"{"product":"llembas","text":"busy"}"#,
    )
    .await;
    let wait = Duration::from_secs(30);
    assert_eq!(
        later,
        Refusal::Later {
            wait,
            text: "busy".into()
        }
    );
    let hour = refused("429 Slow\r\nRetry-After: 999999", "").await;
    assert!(matches!(hour, Refusal::Later { wait, .. } if wait == Duration::from_secs(3600)));
    for head in [
        "503 Down",
        "503 Down\r\nRetry-After: Fri, 31 Dec 1999 23:59:59 GMT",
    ] {
        assert!(matches!(refused(head, "").await, Refusal::Failed { .. }));
    }
    let who = refused("302 Found\r\nServer: portal\r\nContent-Type: text/html", "").await;
    let text = "a server that calls itself \"portal\" answered 302 Found (text/html): perhaps a proxy, a captive portal or another web site".to_owned();
    assert_eq!(who, Refusal::Failed { text });
}

#[tokio::test]
async fn an_upgrade_is_checked_whole() {
    let key = "dGhlIHNhbXBsZSBub25jZQ==";
    let good = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\nConnection: keep-alive, Upgrade\r\n\
         Sec-WebSocket-Accept: {}\r\nSec-WebSocket-Protocol: lembas.link.3\r\n\r\n",
        derive_accept_key(key.as_bytes())
    );
    assert_eq!(check_upgrade(&head_of(&good).await, key), Ok(()));
    for (from, to) in [
        ("Upgrade: WebSocket\r\n", ""),
        ("Connection: keep-alive, Upgrade", "Connection: close"),
        ("lembas.link.3", "lembas.link.2"),
        ("Sec-WebSocket-Protocol: lembas.link.3\r\n", ""),
        ("Accept: ", "Accept: x"),
        (
            "Connection:",
            "Sec-WebSocket-Extensions: permessage-deflate\r\nConnection:",
        ),
    ] {
        let bad = good.replace(from, to);
        assert_ne!(bad, good);
        assert!(check_upgrade(&head_of(&bad).await, key).is_err(), "{bad}");
    }
}

#[test]
fn the_request_says_what_the_spec_asks_for() {
    let url = Url::parse("wss://a.example:8443/x/link?y=1").unwrap();
    let text = request(&url, &instance(), "b00t", true, "k");
    let expected = [
        "GET /x/link?y=1 HTTP/1.1",
        "host: a.example:8443",
        "connection: Upgrade",
        "upgrade: websocket",
        "sec-websocket-version: 13",
        "sec-websocket-key: k",
        "sec-websocket-protocol: lembas.link.3",
        "authorization: Bearer token-0123456789abcdef",
        "lembas-device: d",
        "lembas-boot: b00t",
        "lembas-take: 1",
        concat!("user-agent: lembas/", env!("CARGO_PKG_VERSION")),
        "",
        "",
    ];
    assert_eq!(text, expected.join("\r\n"));
    assert!(!request(&url, &instance(), "b", false, "k").contains("take"));
}
