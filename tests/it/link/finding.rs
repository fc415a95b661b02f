//! Discovery: what is an instance, and every way not to be one.

use lembas::config;
use lembas::link::discovery::{DiscoveryError, discover};
use lembas::link::http::{Http, ProxyVars};
use lembas::link::origin::Base;
use serde_json::{Value, json};

use super::server::{Reply, Server};

pub(super) fn http() -> Http {
    Http::new(&config::Link::default(), ProxyVars::default()).unwrap()
}

/// What an instance at `base` says of itself.
pub(super) fn says(base: &str) -> Value {
    json!({
        "product": "llembas", "version": "2.0.0", "protocol": 3, "spec": "3.6.0",
        "instance": "i-1", "name": "home\u{1b}[31m", "link": format!("{}/link", base.replace("http", "ws")),
        "models": format!("{base}/v1"),
    })
}

/// Asks a server that answers `reply` to the request for discovery.
async fn found(reply: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Result<String, String> {
    let server = Server::plain(move |request| {
        let base = format!("http://{}", request.header("host").unwrap());
        match request.path.as_str() {
            "/.well-known/lembas" => reply(&base),
            "/moved" => Reply::json(&says(&base)),
            path => panic!("nobody asks for {path}"),
        }
    })
    .await;
    let base = Base::read(&server.url()).unwrap();
    let found = discover(&base, &http()).await;
    server.end().await;
    match found {
        Ok(found) => Ok(found.name),
        Err(error) => Err(error.to_string().replace(&base.to_string(), "BASE")),
    }
}

async fn with(change: impl Fn(&mut Value) + Send + Sync + 'static) -> Result<String, String> {
    found(move |base| {
        let mut says = says(base);
        change(&mut says);
        Reply::json(&says)
    })
    .await
}

#[tokio::test]
async fn an_instance_is_found_and_its_name_is_harmless() {
    assert_eq!(with(|_| ()).await, Ok("home[31m".into()));
    let models_are_not_needed = with(|says| says["models"] = Value::Null).await;
    assert!(models_are_not_needed.is_ok());
}

#[tokio::test]
async fn another_protocol_says_what_to_update() {
    assert_eq!(
        with(|says| says["protocol"] = json!(2)).await.unwrap_err(),
        "This instance speaks link protocol 2 and this computer 3: update the instance to LLeMbas 2.0 or later."
    );
    assert_eq!(
        with(|says| says["protocol"] = json!(4)).await.unwrap_err(),
        "This instance speaks link protocol 4 and this computer 3: update lembas on this computer."
    );
}

#[tokio::test]
async fn what_is_no_instance_is_told_with_who_answered() {
    let html = |status| {
        Reply::Http(
            status,
            vec!["content-type: text/html".into(), "server: ngx".into()],
            "<p>".into(),
        )
    };
    let page = found(move |_| html("404 Not Found")).await.unwrap_err();
    assert_eq!(
        page,
        "BASE is not an instance: a server that calls itself \"ngx\" answered 404 Not Found (text/html): \
         perhaps a proxy, a captive portal or another web site. Check the address."
    );
    for reply in [
        found(move |_| html("200 OK")).await,
        found(|_| Reply::json(&json!([1]))).await,
        found(|_| Reply::json(&json!({"x": "y".repeat(70_000)}))).await,
        with(|says| says["product"] = json!("other")).await,
    ] {
        let error = reply.unwrap_err();
        assert!(error.starts_with("BASE is not an instance: "), "{error}");
    }
    for field in ["protocol", "instance", "link"] {
        let error = with(|says| {
            says.as_object_mut().unwrap().remove(field);
        })
        .await
        .unwrap_err();
        assert!(error.contains(&format!("\"{field}\"")), "{error}");
    }
    let id = with(|says| says["instance"] = json!("../x"))
        .await
        .unwrap_err();
    assert!(id.contains("\"instance\""), "{id}");
}

#[tokio::test]
async fn addresses_of_other_origins_end_it() {
    for (field, url) in [
        ("link", "ws://127.0.0.1:1/link"),
        ("link", "wss://evil.example/link"),
        ("models", "https://evil.example/v1"),
        ("models", "/v1"),
    ] {
        let error = with(move |says| says[field] = json!(url))
            .await
            .unwrap_err();
        assert!(
            error.contains("not its own") && error.contains(url),
            "{error}"
        );
    }
}

#[tokio::test]
async fn redirects_are_followed_inside_the_origin_only() {
    let moved = |to: &str| Reply::Http("302 Found", vec![format!("location: {to}")], String::new());
    assert!(found(move |_| moved("/moved")).await.is_ok());
    let error = found(move |_| moved("https://other.example/.well-known/lembas"))
        .await
        .unwrap_err();
    assert!(
        error.starts_with("BASE sends this computer on to https://other.example,"),
        "{error}"
    );
    let round = found(move |_| moved("/.well-known/lembas"))
        .await
        .unwrap_err();
    assert!(round.contains("sends this computer on"), "{round}");
}

#[tokio::test]
async fn nobody_there_is_said_plainly() {
    let server = Server::plain(|_| Reply::Nothing).await;
    let base = Base::read(&server.url()).unwrap();
    server.end().await;
    let error = discover(&base, &http()).await.unwrap_err();
    assert!(matches!(error, DiscoveryError::Unreachable { .. }));
    assert!(error.to_string().contains("refused"), "{error}");
}
