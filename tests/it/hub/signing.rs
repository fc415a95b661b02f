//! Signing in, and what every request must pass.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::rig::{Rig, cookie_of, soon};

#[tokio::test]
async fn a_one_time_link_signs_in_once_and_in_one_browser() {
    let rig = Rig::start().await;
    let link = rig.hub.one_time_link().await.unwrap();
    let first = rig.http.get(&link.url).send().await.unwrap();
    assert_eq!(
        (
            first.status().as_u16(),
            first.headers()["location"].to_str().unwrap()
        ),
        (303, "/")
    );
    let set = first.headers()["set-cookie"].to_str().unwrap().to_owned();
    assert!(
        set.contains("HttpOnly") && set.contains("SameSite=Lax"),
        "{set}"
    );
    let cookie = cookie_of(&first);
    let (status, me) = rig.call_as(&cookie, Method::GET, "/me", None).await;
    assert_eq!(status, 200, "{me}");
    let second = rig.http.get(&link.url).send().await.unwrap();
    assert_eq!(second.headers()["location"], "/signin?why=link_used");
    assert!(second.headers().get("set-cookie").is_none());
    let (status, body) = rig.call_as("", Method::GET, "/me", None).await;
    assert_eq!(
        (status.as_u16(), &body["error"]["code"]),
        (401, &json!("signed_out"))
    );
}

#[tokio::test]
async fn the_first_account_is_set_up_and_its_password_counts() {
    let rig = Rig::start().await;
    assert!(!rig.hub.is_set_up().await.unwrap());
    let link = rig.hub.one_time_link().await.unwrap();
    let setup = json!({ "token": link.token.to_lowercase().replace('-', " "), "name": "ana", "password": "correct horse" });
    let (status, body) = rig.call(Method::POST, "/setup", Some(setup.clone())).await;
    assert_eq!(status, 200, "{body}");
    let (status, body) = rig.call(Method::POST, "/setup", Some(setup)).await;
    assert_eq!(
        (status.as_u16(), &body["error"]["code"]),
        (403, &json!("link_used"))
    );
    assert!(rig.hub.is_set_up().await.unwrap());
    let wrong = json!({ "name": "ana", "password": "WDJB-MJHT" });
    let (status, body) = rig.call(Method::POST, "/signin", Some(wrong)).await;
    assert_eq!(
        (status.as_u16(), &body["error"]["looks_like"]),
        (403, &json!("link_code"))
    );
    let (status, _) = rig
        .call(
            Method::POST,
            "/signin",
            Some(json!({ "name": "ana", "password": "correct horse" })),
        )
        .await;
    assert_eq!(status, 200);
    for _ in 0..10 {
        rig.call(
            Method::POST,
            "/signin",
            Some(json!({ "name": "bob", "password": "x" })),
        )
        .await;
    }
    let (status, body) = rig
        .call(
            Method::POST,
            "/signin",
            Some(json!({ "name": "ana", "password": "correct horse" })),
        )
        .await;
    assert_eq!(
        (status.as_u16(), &body["error"]["code"]),
        (429, &json!("too_often"))
    );
}

#[tokio::test]
async fn ending_the_others_ends_their_streams_with_words() {
    let rig = Rig::signed().await;
    let other = rig.sign_in().await;
    let mut stream = rig.events_as(&other, None).await;
    stream.of("hello").await;
    let list = rig.get("/sessions").await;
    let all = list["sessions"].as_array().unwrap();
    assert_eq!(all.iter().filter(|s| s["this"] == true).count(), 1);
    assert_eq!(all.len(), 2);
    let (status, body) = rig.call(Method::DELETE, "/sessions", None).await;
    assert_eq!((status.as_u16(), &body["ended"]), (200, &json!(1)));
    let told = stream.of("signed_out").await;
    assert!(
        told["text"]
            .as_str()
            .unwrap()
            .contains("You were signed out here"),
        "{told}"
    );
    assert_eq!(soon(stream.next()).await, None, "the stream ends");
    let (status, body) = rig.call_as(&other, Method::GET, "/me", None).await;
    assert_eq!(status, 401);
    assert!(
        body["error"]["since"].is_i64() && body["error"]["why"].is_string(),
        "{body}"
    );
    assert_eq!(rig.call(Method::GET, "/me", None).await.0, 200);
}

#[tokio::test]
async fn a_change_must_come_from_our_own_page() {
    let rig = Rig::signed().await;
    let url = rig.url("/api/v2/signout");
    let own = rig.hub.url().to_owned();
    for (name, origin, header) in [
        ("no header", Some(own.as_str()), None),
        ("another origin", Some("http://evil.example"), Some("1")),
        ("no origin", None, Some("1")),
        ("null origin", Some("null"), Some("1")),
    ] {
        let mut request = rig
            .http
            .post(&url)
            .header("cookie", &rig.cookie)
            .json(&json!({}));
        if let Some(origin) = origin {
            request = request.header("origin", origin);
        }
        if let Some(header) = header {
            request = request.header("x-lembas", header);
        }
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), 403, "{name}");
        let body: Value = answer.json().await.unwrap();
        assert_eq!(body["error"]["code"], "not_from_page", "{name}");
    }
    assert_eq!(
        rig.call(Method::GET, "/me", None).await.0,
        200,
        "still signed in"
    );
}

#[tokio::test]
async fn another_name_for_this_computer_is_not_answered() {
    let rig = Rig::signed().await;
    let port = rig.hub.addr().port();
    for (host, good) in [
        (format!("127.0.0.1:{port}"), true),
        (format!("localhost:{port}"), true),
        ("evil.example".to_owned(), false),
        (format!("evil.example:{port}"), false),
        ("127.0.0.1".to_owned(), false),
    ] {
        let answer = rig
            .http
            .get(rig.url("/api/v2/me"))
            .header("cookie", &rig.cookie)
            .header("host", &host)
            .send()
            .await
            .unwrap();
        let want = if good {
            StatusCode::OK
        } else {
            StatusCode::MISDIRECTED_REQUEST
        };
        assert_eq!(answer.status(), want, "{host}");
        assert!(
            answer.headers()["content-security-policy"]
                .to_str()
                .unwrap()
                .starts_with("default-src 'self';")
        );
        assert_eq!(answer.headers()["x-content-type-options"], "nosniff");
    }
}

#[tokio::test]
async fn a_body_over_its_bound_is_refused_in_words() {
    let rig = Rig::signed().await;
    let big = "x".repeat(2 * 1024 * 1024);
    let (status, body) = rig
        .call(Method::POST, "/chats", Some(json!({ "text": big })))
        .await;
    assert_eq!(
        (status.as_u16(), &body["error"]["code"]),
        (413, &json!("too_large"))
    );
    let (status, body) = rig
        .call(Method::POST, "/chats", Some(json!("no object")))
        .await;
    assert_eq!(
        (status.as_u16(), &body["error"]["code"]),
        (422, &json!("bad_request"))
    );
}

#[tokio::test]
async fn the_shell_is_served_everywhere_and_files_have_tags() {
    let rig = Rig::start().await;
    for path in [
        "/",
        "/c/abc",
        "/approvals",
        "/settings",
        "/schedules",
        "/link?code=A",
        "/signin",
    ] {
        let answer = rig.http.get(rig.url(path)).send().await.unwrap();
        assert_eq!(answer.status(), 200, "{path}");
        assert_eq!(answer.headers()["content-type"], "text/html; charset=utf-8");
    }
    let first = rig
        .http
        .get(rig.url("/assets/index.html"))
        .send()
        .await
        .unwrap();
    let tag = first.headers()["etag"].clone();
    let again = rig
        .http
        .get(rig.url("/assets/index.html"))
        .header("if-none-match", tag)
        .send()
        .await
        .unwrap();
    assert_eq!(again.status(), 304);
    for path in ["/assets/../Cargo.toml", "/assets/%2e%2e/hub.rs", "/nowhere"] {
        let answer = rig.http.get(rig.url(path)).send().await.unwrap();
        assert_eq!(answer.status(), 404, "{path}");
    }
}

#[tokio::test]
async fn over_tls_there_is_http_2_and_a_cookie_that_stays_there() {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (cert, key) = (folder.path().join("c.pem"), folder.path().join("k.pem"));
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let tasks = lembas::rt::Tasks::new();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let config = lembas::hub::HubConfig {
        data: folder.path().join("hub"),
        name: "home".to_owned(),
        url: Some(format!("https://localhost:{port}")),
        tls: Some(lembas::hub::TlsFiles { cert, key }),
        ..lembas::hub::HubConfig::default()
    };
    let hub = lembas::hub::serve(config, listener, &tasks).await.unwrap();
    let root = reqwest::Certificate::from_pem(made.cert.pem().as_bytes()).unwrap();
    let http = reqwest::Client::builder()
        .no_proxy()
        .tls_certs_only([root])
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .unwrap();
    let link = hub.one_time_link().await.unwrap();
    assert!(link.url.starts_with("https://localhost:"), "{}", link.url);
    let answer = soon(http.get(&link.url).send()).await.unwrap();
    assert_eq!(answer.version(), reqwest::Version::HTTP_2);
    let cookie = answer.headers()["set-cookie"].to_str().unwrap();
    assert!(cookie.ends_with("; Secure"), "{cookie}");
    assert!(answer.headers().contains_key("strict-transport-security"));
    soon(tasks.end()).await;
}

#[tokio::test]
async fn many_guesses_at_once_are_no_more_than_one_after_the_other() {
    let rig = Rig::signed().await;
    let guesses = (0..40).map(|n| {
        let body = json!({ "name": "somebody", "password": format!("guess number {n}") });
        rig.call(Method::POST, "/signin", Some(body))
    });
    let answers = futures_util::future::join_all(guesses).await;
    let told = |status: u16| answers.iter().filter(|(s, _)| s.as_u16() == status).count();
    assert_eq!((told(403), told(429)), (10, 30));
}
