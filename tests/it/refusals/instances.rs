//! `lembas link` against what is no instance, or does not pair.

use serde_json::{Value, json};

use super::{hold, sound};
use crate::cli::Home;
use crate::link::server::{Reply, Request, Server};

const TOKEN: &str = "q2vX0123456789012345678901234567890123456789";

fn says(base: &str) -> Value {
    json!({
        "product": "llembas", "version": "2.0.0", "protocol": 3, "spec": "3.6.0",
        "instance": "i-1", "name": "home", "link": format!("{}/link", base.replace("http", "ws")),
        "models": format!("{base}/v1"),
    })
}

fn metadata(base: &str) -> Value {
    json!({
        "issuer": base,
        "device_authorization_endpoint": format!("{base}/oauth/device"),
        "token_endpoint": format!("{base}/oauth/token"),
    })
}

fn code(base: &str) -> Value {
    json!({
        "device_code": "dc", "user_code": "BCDF-GHJK", "verification_uri": format!("{base}/link"),
        "expires_in": 600, "interval": 1,
    })
}

fn token() -> Value {
    json!({
        "access_token": TOKEN, "token_type": "Bearer", "scope": "link models",
        "device_id": "0f5b1f6b0c0e4a6f9a3f0f1f2d3c4b5a", "instance": "i-1",
        "account": {"id": "a-1", "name": "ana"},
    })
}

/// The four documents of a pairing, one of which a row makes wrong.
fn well(request: &Request, base: &str) -> Reply {
    match request.path.as_str() {
        "/.well-known/lembas" => Reply::json(&says(base)),
        "/.well-known/oauth-authorization-server" => Reply::json(&metadata(base)),
        "/oauth/device" => Reply::json(&code(base)),
        "/oauth/token" => Reply::json(&token()),
        _ => Reply::Http("404 Not Found", vec![], String::new()),
    }
}

type Row = (&'static str, &'static str, fn(&str) -> Reply);

fn html(status: &'static str) -> Reply {
    let kind = "content-type: text/html".to_owned();
    Reply::Http(status, vec![kind], "<p>hello".to_owned())
}

fn changed(mut document: Value, field: &str, value: Value) -> Reply {
    let object = document.as_object_mut().unwrap();
    match value {
        Value::Null => object.remove(field),
        value => object.insert(field.to_owned(), value),
    };
    Reply::json(&document)
}

fn refused(error: &str) -> Reply {
    Reply::status("400 Bad Request", &json!({ "error": error }))
}

const FOUND: &str = "/.well-known/lembas";
const OAUTH: &str = "/.well-known/oauth-authorization-server";
const DEVICE: &str = "/oauth/device";
const TAKEN: &str = "/oauth/token";

const ROWS: [Row; 29] = [
    ("a page of a web site", FOUND, |_| html("200 OK")),
    ("a web site without it", FOUND, |_| html("404 Not Found")),
    ("a server with a fault", FOUND, |_| html("502 Bad Gateway")),
    ("a list", FOUND, |_| Reply::json(&json!([1]))),
    ("too large", FOUND, |_| {
        Reply::json(&json!({ "product": "y".repeat(70_000) }))
    }),
    ("no answer", FOUND, |_| Reply::Nothing),
    ("sent on elsewhere", FOUND, |_| {
        let to = "location: https://other.example/.well-known/lembas".to_owned();
        Reply::Http("302 Found", vec![to], String::new())
    }),
    ("another product", FOUND, |b| {
        changed(says(b), "product", json!("other"))
    }),
    ("an older protocol", FOUND, |b| {
        changed(says(b), "protocol", json!(2))
    }),
    ("a newer protocol", FOUND, |b| {
        changed(says(b), "protocol", json!(4))
    }),
    ("no protocol", FOUND, |b| {
        changed(says(b), "protocol", Value::Null)
    }),
    ("a protocol in words", FOUND, |b| {
        changed(says(b), "protocol", json!("three"))
    }),
    ("no id", FOUND, |b| {
        changed(says(b), "instance", Value::Null)
    }),
    ("an id that is a path", FOUND, |b| {
        changed(says(b), "instance", json!("../x"))
    }),
    ("no link", FOUND, |b| changed(says(b), "link", Value::Null)),
    ("a link elsewhere", FOUND, |b| {
        changed(says(b), "link", json!("wss://evil.example/link"))
    }),
    ("models elsewhere", FOUND, |b| {
        changed(says(b), "models", json!("https://evil.example/v1"))
    }),
    ("no way to pair", OAUTH, |_| html("404 Not Found")),
    ("a way to pair elsewhere", OAUTH, |b| {
        changed(
            metadata(b),
            "token_endpoint",
            json!("https://evil.example/token"),
        )
    }),
    ("a way to pair without its end", OAUTH, |b| {
        changed(metadata(b), "token_endpoint", Value::Null)
    }),
    ("no codes are given", DEVICE, |_| refused("invalid_client")),
    ("too many codes", DEVICE, |_| {
        Reply::status("429 Too Many Requests", &json!({ "error": "slow_down" }))
            .with("retry-after: 600")
    }),
    ("a code that is none", DEVICE, |b| {
        changed(code(b), "user_code", Value::Null)
    }),
    ("somebody said no", TAKEN, |_| refused("access_denied")),
    ("nobody came", TAKEN, |_| refused("expired_token")),
    ("a refusal of its own", TAKEN, |_| refused("invalid_grant")),
    ("an empty token", TAKEN, |_| {
        changed(token(), "access_token", json!(""))
    }),
    ("a token that is none", TAKEN, |_| {
        changed(token(), "access_token", json!("a b\nc"))
    }),
    ("a token of another instance", TAKEN, |_| {
        changed(token(), "instance", json!("i-2"))
    }),
];

async fn linked(home: &std::sync::Arc<Home>, url: String) -> crate::cli::Ran {
    let home = std::sync::Arc::clone(home);
    let ran = tokio::task::spawn_blocking(move || home.run(&format!("link {url}")));
    ran.await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_way_not_to_be_an_instance() {
    let rows = ROWS.into_iter().map(|(what, path, reply)| async move {
        let home = std::sync::Arc::new(Home::new());
        let server = Server::plain(move |request| {
            let base = format!("http://{}", request.header("host").unwrap());
            if request.path == path {
                reply(&base)
            } else {
                well(request, &base)
            }
        })
        .await;
        let ran = linked(&home, server.url()).await;
        let host = server.address.to_string();
        server.end().await;
        let kept = home.config().with_file_name("instance.json").exists();
        assert!(!kept, "{what}: a pairing was kept");
        row(what, &ran, &host)
    });
    let mut all = futures_util::future::join_all(rows).await;
    // Nobody there at all.
    let gone = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let home = std::sync::Arc::new(Home::new());
    let ran = linked(&home, format!("http://{gone}")).await;
    all.push(row("nobody there", &ran, &gone.to_string()));
    hold("instances", &all.join("\n"));
}

fn row(what: &str, ran: &crate::cli::Ran, host: &str) -> String {
    let clean = |text: &str| text.replace(host, "HOST");
    let err = clean(&ran.err);
    // What was said before it was refused is progress.
    let from = err.find("error: ").unwrap_or_default();
    let err = &err[from..];
    let mut whole = format!("{what}\n");
    whole.extend(err.lines().map(|line| format!("! {line}\n")));
    whole.push_str(&format!("exit {}\n", ran.code));
    let (text, next) = err.split_once("\n  try: ").unwrap_or((err, ""));
    assert!(matches!(ran.code, 1 | 69), "{whole}");
    sound(&whole, text, next);
    whole
}
