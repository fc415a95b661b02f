//! HTTP requests to a hub that are wrong: every address, every way.

use reqwest::Method;
use serde_json::{Value, json};

use super::{hold, sound};
use crate::hub::device::Device;
use crate::hub::rig::{Rig, soon};

/// Every address of `/api/v2` that takes a body, with a body that is well-formed. `{}` in it is
/// replaced by what is there.
fn with_body() -> Vec<(Method, &'static str, Value)> {
    let key = "key-00000001";
    vec![
        (
            Method::POST,
            "/signin",
            json!({ "name": "nobody", "password": "nothing" }),
        ),
        (
            Method::POST,
            "/setup",
            json!({ "token": "AAAA-BBBB-CCCC", "name": "ana", "password": "correct horse" }),
        ),
        (Method::POST, "/account/password", json!({ "new": "short" })),
        (Method::PATCH, "/devices/{id}", json!({ "name": "\n" })),
        (
            Method::POST,
            "/devices/{id}/scheduled",
            json!({ "cwd": "/", "text": "a", "model": "practice", "key": "short" }),
        ),
        (
            Method::POST,
            "/devices/{id}/monitor",
            json!({ "cwd": "/", "command": "ls" }),
        ),
        (Method::POST, "/link/lookup", json!({ "code": "AAAA-AAAA" })),
        (Method::POST, "/link/approve", json!({ "code": "" })),
        (Method::POST, "/link/deny", json!({ "code": "nonsense" })),
        (
            Method::POST,
            "/chats",
            json!({ "device": "DEVICE", "cwd": "/", "key": "no" }),
        ),
        (Method::PATCH, "/chats/{id}", json!({ "title": "a" })),
        (
            Method::POST,
            "/chats/{id}/messages",
            json!({ "key": key, "text": " " }),
        ),
        (
            Method::PATCH,
            "/chats/{id}/queue/{key}",
            json!({ "text": "a" }),
        ),
        (
            Method::POST,
            "/chats/{id}/queue/{key}/hold",
            json!({ "held": true }),
        ),
        (Method::POST, "/chats/{id}/stop", json!({ "key": "no" })),
        (
            Method::POST,
            "/chats/{id}/rewind",
            json!({ "seq": 0, "key": "no" }),
        ),
        (Method::PUT, "/chats/{id}/draft", json!({ "text": "a" })),
        (
            Method::POST,
            "/asks/{ask}",
            json!({ "digest": "d", "outcome": "perhaps" }),
        ),
        (Method::POST, "/asks/{ask}/extend", json!({ "seconds": 60 })),
        (
            Method::POST,
            "/models",
            json!({ "name": "a", "url": "nonsense", "model": "a" }),
        ),
        (
            Method::POST,
            "/models/test",
            json!({ "name": "a", "url": "http://127.0.0.1:1/v1", "model": "a" }),
        ),
    ]
}

/// The addresses without one.
const WITHOUT: [(Method, &str); 20] = [
    (Method::GET, "/me"),
    (Method::GET, "/state"),
    (Method::POST, "/signout"),
    (Method::GET, "/sessions"),
    (Method::DELETE, "/sessions"),
    (Method::DELETE, "/sessions/{id}"),
    (Method::GET, "/devices"),
    (Method::GET, "/devices/{id}/directories"),
    (Method::GET, "/devices/{id}/rules"),
    (Method::DELETE, "/devices/{id}/rules/{rule}"),
    (Method::POST, "/devices/{id}/retry"),
    (Method::POST, "/chats/{id}/retry"),
    (Method::GET, "/chats"),
    (Method::GET, "/chats/{id}/items"),
    (Method::GET, "/chats/{id}/output/{call}"),
    (Method::POST, "/chats/{id}/queue/{key}/send"),
    (Method::GET, "/asks"),
    (Method::GET, "/models"),
    (Method::DELETE, "/models/{id}"),
    (Method::POST, "/models/{id}/default"),
];

struct Asked<'a> {
    rig: &'a Rig,
    all: Vec<String>,
}

/// A request with one thing wrong.
struct Wrong<'a> {
    method: Method,
    path: &'a str,
    what: &'a str,
    kind: Option<&'a str>,
    body: Option<String>,
    headers: Vec<(&'static str, String)>,
}

impl<'a> Wrong<'a> {
    fn new(method: &Method, path: &'a str, what: &'a str) -> Self {
        Self {
            method: method.clone(),
            path,
            what,
            kind: Some("application/json"),
            body: None,
            headers: Vec::new(),
        }
    }

    fn body(mut self, body: impl Into<String>) -> Self {
        self.body = Some(body.into());
        self
    }

    fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

impl Asked<'_> {
    async fn ask(&mut self, wrong: Wrong<'_>) {
        let own = self.rig.hub.url().to_owned();
        let mut headers = vec![("cookie", self.rig.cookie.clone())];
        if wrong.method != Method::GET {
            headers.push(("x-lembas", "1".to_owned()));
            headers.push(("origin", own.clone()));
        }
        for (name, value) in &wrong.headers {
            headers.retain(|(other, _)| other != name);
            if !value.is_empty() {
                headers.push((name, value.clone()));
            }
        }
        let mut request = self
            .rig
            .http
            .request(wrong.method.clone(), self.rig.url(wrong.path));
        for (name, value) in headers {
            request = request.header(name, value);
        }
        if let Some(body) = &wrong.body {
            if let Some(kind) = wrong.kind {
                request = request.header("content-type", kind);
            }
            request = request.body(body.clone());
        }
        let answer = soon(request.send()).await.unwrap();
        let status = answer.status().as_u16();
        let body = soon(answer.text()).await.unwrap();
        let said: Value = serde_json::from_str(&body).unwrap_or_default();
        let clean = |text: &str| text.replace(&own, "INSTANCE");
        let whole = if said["error"].is_object() {
            let error = &said["error"];
            let of = |key: &str| clean(error[key].as_str().unwrap_or_default());
            let mut whole = format!(
                "{} {}: {}\n  {status} {}\n  {}\n",
                wrong.method,
                wrong.path,
                wrong.what,
                of("code"),
                of("text"),
            );
            if !of("why").is_empty() {
                whole.push_str(&format!("  why: {}\n", of("why")));
            }
            whole.push_str(&format!("  try: {}\n", of("try")));
            sound(&whole, &of("text"), &of("try"));
            sound(
                &whole,
                &format!("because of this {}", of("why")),
                "is in it",
            );
            assert!(
                of("text").ends_with('.') || of("text").ends_with('!'),
                "no sentence:\n{whole}"
            );
            if wrong.path.starts_with("/v1") {
                assert_eq!(error["message"], error["text"], "{whole}");
            }
            whole
        } else {
            // The forms of RFC 6749: a word, and words for people.
            let word = said["error"].as_str().unwrap_or_default();
            let text = said["error_description"].as_str().unwrap_or_default();
            let whole = format!(
                "{} {}: {}\n  {status} {word}\n  {text}\n",
                wrong.method, wrong.path, wrong.what
            );
            assert!(!word.is_empty(), "{whole}{body}");
            sound(&whole, text, "is in it");
            whole
        };
        assert!((400..600).contains(&status), "{whole}");
        // What is random here is nobody's business there.
        self.all.push(whole);
    }
}

async fn rig() -> (Rig, Device, String) {
    let rig = Rig::signed().await;
    let (id, token) = rig.pair("0123456789abcdef", "zephyr").await;
    let device = Device::linked(&rig, &id, &token).await;
    device.can(
        "session/new",
        Ok(json!({ "sessionId": "s1", "_meta": { "lembas": { "mode": "edit", "model": "practice" } } })),
    );
    let chat = json!({ "device": id, "cwd": "/home/ana/projects/api", "key": "key-0001" });
    rig.post("/chats", chat).await;
    (rig, device, token)
}

/// A path with what is there, or with what nobody has.
fn at(path: &str, there: bool) -> String {
    let (device, chat) = if there {
        ("0123456789abcdef", "s1")
    } else {
        ("nobody", "nobody")
    };
    let path = if path.starts_with("/devices") {
        path.replace("{id}", device)
    } else if path.starts_with("/chats") {
        path.replace("{id}", chat)
    } else {
        path.replace("{id}", "nobody")
    };
    let path = path
        .replace("{key}", "nobody")
        .replace("{ask}", "nobody")
        .replace("{call}", "nobody");
    format!("/api/v2{path}")
}

#[tokio::test]
async fn every_wrong_body() {
    let (rig, device, _) = rig().await;
    let refused = lembas::rpc::RpcError::new(-32051, "the folder / is not shared")
        .with_data(json!({ "reason": "root", "text": "The folder / is not shared.", "path": "/" }));
    device.can("_lembas/monitor", Err(refused));
    let mut asked = Asked {
        rig: &rig,
        all: Vec::new(),
    };
    for (method, path, body) in with_body() {
        let there = at(path, true);
        for (what, wrong) in [
            ("no JSON", "name=ana".to_owned()),
            ("a list", "[]".to_owned()),
        ] {
            asked
                .ask(Wrong::new(&method, &there, what).body(wrong))
                .await;
        }
        // One field after the other is not there, and is of another kind.
        for (field, value) in body.as_object().unwrap() {
            let mut less = body.clone();
            less.as_object_mut().unwrap().remove(field);
            let mut other = body.clone();
            other[field] = if value.is_string() {
                json!(4)
            } else {
                json!("words")
            };
            for (what, wrong) in [
                (format!("without {field}"), less),
                (format!("{field} of another kind"), other),
            ] {
                // A field that need not be there changes nothing.
                if what.starts_with("without") && OPTIONAL.contains(&field.as_str()) {
                    continue;
                }
                asked
                    .ask(Wrong::new(&method, &there, &what).body(wrong.to_string()))
                    .await;
            }
        }
        let mut plain = Wrong::new(&method, &there, "as plain text").body(body.to_string());
        plain.kind = Some("text/plain");
        asked.ask(plain).await;
        let text = body.to_string().replace("DEVICE", "0123456789abcdef");
        if !FINE.contains(&path) {
            asked
                .ask(Wrong::new(&method, &there, "what it says").body(text))
                .await;
        }
    }
    hold("http_bodies", &asked.all.join("\n"));
}

/// Fields that need not be there.
const OPTIONAL: [&str; 2] = ["title", "text"];

/// Addresses whose well-formed body is taken.
const FINE: [&str; 2] = ["/chats/{id}", "/chats/{id}/draft"];

#[tokio::test]
async fn every_wrong_address_method_and_sender() {
    let (rig, device, token) = rig().await;
    let mut asked = Asked {
        rig: &rig,
        all: Vec::new(),
    };
    let mut addresses: Vec<(Method, &str, Option<Value>)> = with_body()
        .into_iter()
        .map(|(method, path, body)| (method, path, Some(body)))
        .collect();
    addresses.extend(WITHOUT.map(|(method, path)| (method, path, None)));
    addresses.push((Method::GET, "/events", None));
    addresses.push((Method::GET, "/chats/{id}", None));
    addresses.push((Method::DELETE, "/chats/{id}", None));
    addresses.push((Method::DELETE, "/devices/{id}", None));
    addresses.push((Method::DELETE, "/chats/{id}/queue/{key}", None));
    is_whole(&addresses);
    for (method, path, body) in &addresses {
        let mut signed_out = Wrong::new(method, path, "signed out").header("cookie", "");
        let nowhere = at(path, false);
        signed_out.path = &nowhere;
        signed_out.body = body.as_ref().map(Value::to_string);
        if !["/signin", "/setup"].contains(path) {
            asked.ask(signed_out).await;
        }
        if path.contains('{') {
            let mut unknown = Wrong::new(method, &nowhere, "an id that nobody has");
            unknown.body = body.as_ref().map(|body| {
                body.to_string()
                    .replace("short", "key-00000002")
                    .replace("\"no\"", "\"key-00000002\"")
            });
            asked.ask(unknown).await;
        }
        if *method != Method::GET {
            for (what, name, value) in [
                ("no header of the page", "x-lembas", ""),
                ("no origin", "origin", ""),
                ("another origin", "origin", "http://evil.example"),
            ] {
                asked
                    .ask(Wrong::new(method, &nowhere, what).header(name, value))
                    .await;
            }
        }
        asked
            .ask(Wrong::new(&Method::OPTIONS, &nowhere, "another method"))
            .await;
    }
    let api = |path: &str| format!("/api/v2{path}");
    for (what, path) in [
        ("no number", "/chats?limit=many"),
        ("no yes or no", "/chats?archived=perhaps"),
        ("no number", "/chats/s1/items?before=-1"),
        ("no number", "/events?after=x"),
        ("no address", "/nonsense"),
    ] {
        asked.ask(Wrong::new(&Method::GET, &api(path), what)).await;
    }
    asked
        .ask(Wrong::new(&Method::GET, "/nonsense", "no page"))
        .await;
    asked
        .ask(Wrong::new(&Method::GET, "/assets/nonsense", "no file"))
        .await;
    asked
        .ask(Wrong::new(&Method::POST, "/settings", "another method"))
        .await;
    asked
        .ask(Wrong::new(&Method::GET, "/api/v2/me", "another name").header("host", "evil.example"))
        .await;
    let big = json!({ "device": "d", "cwd": "/", "key": "key-00000003", "text": "x".repeat(2 * 1024 * 1024) });
    asked
        .ask(Wrong::new(&Method::POST, "/api/v2/chats", "too large").body(big.to_string()))
        .await;

    // A computer that is away, and what a signed-in person gets wrong too often.
    device.leaves(&rig, "0123456789abcdef").await;
    for (method, path, body) in [
        (Method::GET, "/devices/0123456789abcdef/directories", None),
        (
            Method::POST,
            "/devices/0123456789abcdef/monitor",
            Some(json!({ "cwd": "/", "command": "ls" })),
        ),
        (
            Method::POST,
            "/chats",
            Some(json!({ "device": "0123456789abcdef", "cwd": "/", "key": "key-00000004" })),
        ),
    ] {
        let path = api(path);
        let mut away = Wrong::new(&method, &path, "the computer is away");
        away.body = body.map(|body| body.to_string());
        asked.ask(away).await;
    }
    for _ in 0..6 {
        rig.call(
            Method::POST,
            "/link/lookup",
            Some(json!({ "code": "AAAA-AAAA" })),
        )
        .await;
    }
    asked
        .ask(
            Wrong::new(&Method::POST, "/api/v2/link/lookup", "too often")
                .body("{\"code\":\"AAAA-AAAA\"}"),
        )
        .await;

    models(&mut asked, &token).await;
    grants(&mut asked).await;
    hold("http_addresses", &folded(&asked.all));
}

/// What `/v1` is asked.
async fn models(asked: &mut Asked<'_>, token: &str) {
    let chat = "/v1/chat/completions";
    let post = |what| Wrong::new(&Method::POST, chat, what);
    for (what, body) in [
        ("no JSON", "nonsense"),
        ("a list", "[]"),
        ("no model", "{}"),
        ("a model that nobody has", "{\"model\":\"nobody\"}"),
        ("a model that is a number", "{\"model\":4}"),
    ] {
        asked.ask(post(what).body(body)).await;
    }
    let mut plain = post("as plain text").body("{}");
    plain.kind = Some("text/plain");
    asked.ask(plain).await;
    let big = format!("{{\"model\":\"{}\"}}", "x".repeat(33 * 1024 * 1024));
    asked.ask(post("too large").body(big)).await;
    asked
        .ask(post("not from the page").body("{}").header("x-lembas", ""))
        .await;
    asked
        .ask(post("signed out").body("{}").header("cookie", ""))
        .await;
    for (what, value) in [
        ("an unknown token", "Bearer nonsense".to_owned()),
        ("no token", format!("Basic {token}")),
    ] {
        let wrong = Wrong::new(&Method::GET, "/v1/models", what);
        asked
            .ask(wrong.header("authorization", value).header("cookie", ""))
            .await;
    }
    asked
        .ask(Wrong::new(&Method::DELETE, "/v1/models", "another method"))
        .await;
    asked
        .ask(Wrong::new(&Method::GET, "/v1/nonsense", "no address"))
        .await;
}

/// What a computer that pairs is refused.
async fn grants(asked: &mut Asked<'_>) {
    let token = "/oauth/token";
    for (path, what, kind, body) in [
        (
            "/oauth/device_authorization",
            "as JSON",
            "application/json",
            "{}",
        ),
        (
            "/oauth/device_authorization",
            "an unknown scope",
            FORM,
            "scope=everything",
        ),
        (token, "as JSON", "application/json", "{}"),
        (token, "another grant", FORM, "grant_type=password"),
        (token, "no code", FORM, GRANT),
        (
            token,
            "an unknown code",
            FORM,
            &format!("{GRANT}&device_code=nonsense"),
        ),
        ("/oauth/revoke", "as JSON", "application/json", "{}"),
        ("/oauth/revoke", "no token", FORM, "a=b"),
    ] {
        let mut wrong = Wrong::new(&Method::POST, path, what).body(body);
        wrong.kind = Some(kind);
        asked.ask(wrong).await;
    }
    asked
        .ask(Wrong::new(&Method::GET, token, "another method"))
        .await;
}

const FORM: &str = "application/x-www-form-urlencoded";
const GRANT: &str = "grant_type=urn:ietf:params:oauth:grant-type:device_code";

/// Every address of the table of the hub is asked here.
fn is_whole(addresses: &[(Method, &str, Option<Value>)]) {
    let table =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/src/hub/api.rs")).unwrap();
    let missing: Vec<&str> = table
        .split("route(")
        .skip(1)
        .filter_map(|route| route.split('"').nth(1))
        .filter(|path| !addresses.iter().any(|(_, asked, _)| asked == path))
        .collect();
    assert!(missing.is_empty(), "not asked: {missing:?}");
}

/// The same answer to several requests stands once, behind all of them.
fn folded(all: &[String]) -> String {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for one in all {
        let (request, answer) = one.split_once('\n').unwrap_or((one, ""));
        match groups.iter_mut().find(|(known, _)| *known == answer) {
            Some((_, requests)) => requests.push(request),
            None => groups.push((answer, vec![request])),
        }
    }
    let shown = groups
        .iter()
        .map(|(answer, requests)| format!("{}\n{answer}", requests.join("\n")));
    shown.collect::<Vec<_>>().join("\n")
}
