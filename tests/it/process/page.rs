//! A browser that is signed in, as far as HTTP goes: requests, and the stream of events.

use std::sync::Arc;

use futures_util::StreamExt as _;
use reqwest::{Client, Method, StatusCode};
use rustls::pki_types::CertificateDer;
use serde_json::Value;

use super::home::{LONG, within};

#[derive(Clone)]
pub(super) struct Page {
    http: Client,
    pub(super) url: String,
    cookie: String,
}

/// A client that trusts one authority and nobody else.
pub(super) fn client(authority: Option<&CertificateDer<'static>>) -> Client {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    // Another test of this process may have set it.
    let _there = rustls::crypto::ring::default_provider().install_default();
    let mut roots = rustls::RootCertStore::empty();
    if let Some(one) = authority {
        roots.add(one.clone()).unwrap();
    }
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .tls_backend_preconfigured(tls)
        .build()
        .unwrap()
}

impl Page {
    /// Signs in with the link that the hub printed.
    pub(super) async fn sign_in(http: Client, started: &Value) -> Self {
        let url = started["url"].as_str().unwrap().to_owned();
        let token = started["token"].as_str().unwrap();
        let answer = http.get(format!("{url}/in/{token}")).send().await.unwrap();
        let cookie = answer.headers()["set-cookie"].to_str().unwrap();
        let cookie = cookie.split(';').next().unwrap().to_owned();
        Self { http, url, cookie }
    }

    pub(super) async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> (StatusCode, Value) {
        let mut request = self
            .http
            .request(method, format!("{}/api/v2{path}", self.url))
            .header("cookie", &self.cookie)
            .header("x-lembas", "1")
            .header("origin", &self.url);
        if let Some(body) = body {
            request = request.json(body);
        }
        let answer = within(path, request.send()).await.unwrap();
        let status = answer.status();
        let text = answer.text().await.unwrap();
        (
            status,
            serde_json::from_str(&text).unwrap_or(Value::String(text)),
        )
    }

    pub(super) async fn get(&self, path: &str) -> Value {
        let (status, body) = self.call(Method::GET, path, None).await;
        assert!(status.is_success(), "{path}: {status} {body}");
        body
    }

    pub(super) async fn post(&self, path: &str, body: Value) -> Value {
        let (status, answer) = self.call(Method::POST, path, Some(&body)).await;
        assert!(status.is_success(), "{path}: {status} {answer}");
        answer
    }

    /// A post that must not go through: its status and its `error`.
    pub(super) async fn refused(&self, path: &str, body: Value) -> (u16, Value) {
        let (status, answer) = self.call(Method::POST, path, Some(&body)).await;
        assert!(!status.is_success(), "{path}: {answer}");
        (status.as_u16(), answer["error"].clone())
    }

    pub(super) async fn events(&self, after: Option<u64>) -> Events {
        let query = after.map(|n| format!("?after={n}")).unwrap_or_default();
        let request = self
            .http
            .get(format!("{}/api/v2/events{query}", self.url))
            .header("cookie", &self.cookie);
        let answer = within("the stream", request.send()).await.unwrap();
        assert_eq!(answer.status(), 200);
        Events {
            stream: answer
                .bytes_stream()
                .map(|piece| piece.map(|b| b.to_vec()))
                .boxed(),
            text: Vec::new(),
            last: 0,
        }
    }

    /// What an address answers once it is as wanted: looked at anew after every event.
    pub(super) async fn when<T>(
        &self,
        events: &mut Events,
        path: &str,
        what: &str,
        mut want: impl FnMut(&Value) -> Option<T>,
    ) -> T {
        let mut last = Value::Null;
        let wait = async {
            loop {
                last = self.get(path).await;
                if let Some(found) = want(&last) {
                    return found;
                }
                events.next().await;
            }
        };
        match tokio::time::timeout(LONG, wait).await {
            Ok(found) => found,
            Err(_) => panic!("{what}: {last}"),
        }
    }
}

/// The stream of events.
pub(super) struct Events {
    stream: futures_util::stream::BoxStream<'static, reqwest::Result<Vec<u8>>>,
    text: Vec<u8>,
    /// The number of the last event.
    pub(super) last: u64,
}

impl Events {
    pub(super) async fn next(&mut self) -> Value {
        loop {
            if let Some(end) = self.text.windows(2).position(|two| two == b"\n\n") {
                let event: Vec<u8> = self.text.drain(..end + 2).collect();
                let mut data = Value::Null;
                for line in String::from_utf8(event).unwrap().lines() {
                    if let Some(id) = line.strip_prefix("id: ") {
                        self.last = id.parse().unwrap();
                    } else if let Some(text) = line.strip_prefix("data: ") {
                        data = serde_json::from_str(text).unwrap();
                    }
                }
                return data;
            }
            let piece = within("an event", self.stream.next()).await;
            self.text.extend(piece.expect("the stream ended").unwrap());
        }
    }

    /// The first event that is wanted.
    pub(super) async fn until<T>(
        &mut self,
        what: &str,
        mut want: impl FnMut(&Value) -> Option<T>,
    ) -> T {
        within(what, async {
            loop {
                let event = self.next().await;
                if let Some(found) = want(&event) {
                    return found;
                }
            }
        })
        .await
    }
}
