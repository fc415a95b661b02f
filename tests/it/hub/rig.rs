//! A hub on a free port with a browser that is signed in.

use std::time::Duration;

use futures_util::StreamExt as _;
use lembas::hub::{Hub, HubConfig};
use lembas::rt::Tasks;
use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// Whatever is awaited comes within this, or the test fails.
pub const SOON: Duration = Duration::from_secs(10);

pub struct Rig {
    pub hub: Hub,
    pub tasks: Tasks,
    pub http: Client,
    pub cookie: String,
    pub folder: tempfile::TempDir,
}

pub async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(SOON, future)
        .await
        .expect("nothing came in time")
}

impl Rig {
    pub async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let tasks = Tasks::new();
        let hub = serve(folder.path(), &tasks).await;
        let http = Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .unwrap();
        Self {
            hub,
            tasks,
            http,
            cookie: String::new(),
            folder,
        }
    }

    pub async fn signed() -> Self {
        let mut rig = Self::start().await;
        rig.cookie = rig.sign_in().await;
        rig
    }

    /// Another browser's cookie, by a one-time link.
    pub async fn sign_in(&self) -> String {
        let link = self.hub.one_time_link().await.unwrap();
        let answer = self.http.get(&link.url).send().await.unwrap();
        cookie_of(&answer)
    }

    /// The hub stops and starts again on another port, with the same data.
    pub async fn restart(&mut self) {
        self.tasks.end().await;
        self.tasks = Tasks::new();
        self.hub = serve(self.folder.path(), &self.tasks).await;
    }

    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.hub.url())
    }

    pub async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> (StatusCode, Value) {
        self.call_as(&self.cookie, method, path, body).await
    }

    pub async fn call_as(
        &self,
        cookie: &str,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> (StatusCode, Value) {
        let mut request = self
            .http
            .request(method, self.url(&format!("/api/v2{path}")))
            .header("cookie", cookie)
            .header("x-lembas", "1")
            .header("origin", self.hub.url());
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answer = soon(request.send()).await.unwrap();
        let status = answer.status();
        let text = answer.text().await.unwrap();
        (
            status,
            serde_json::from_str(&text).unwrap_or(Value::String(text)),
        )
    }

    pub async fn get(&self, path: &str) -> Value {
        let (status, body) = self.call(Method::GET, path, None).await;
        assert!(status.is_success(), "{path}: {status} {body}");
        body
    }

    pub async fn post(&self, path: &str, body: Value) -> Value {
        let (status, body) = self.call(Method::POST, path, Some(body)).await;
        assert!(status.is_success(), "{path}: {status} {body}");
        body
    }

    /// Pairs a computer as its program would, approved on the page. Answers id and token.
    pub async fn pair(&self, id: &str, name: &str) -> (String, String) {
        let grant = self.authorize(id, name).await;
        self.post("/link/approve", json!({ "code": grant["user_code"] }))
            .await;
        let (status, token) = self.poll(&grant).await;
        assert_eq!(status, 200, "{token}");
        (
            token["device_id"].as_str().unwrap().to_owned(),
            token["access_token"].as_str().unwrap().to_owned(),
        )
    }

    pub async fn authorize(&self, id: &str, name: &str) -> Value {
        let form = [
            ("client_id", "lembas"),
            ("scope", "link memory models"),
            ("device_id", id),
            ("device_name", name),
            ("device_os", "linux"),
            ("device_arch", "x86_64"),
            ("device_version", "0.1.0"),
        ];
        self.form("/oauth/device_authorization", &form).await.1
    }

    pub async fn poll(&self, grant: &Value) -> (u16, Value) {
        let code = grant["device_code"].as_str().unwrap();
        let form = [
            ("grant_type", "urn:ietf:params:oauth:grant-type:device_code"),
            ("device_code", code),
            ("client_id", "lembas"),
        ];
        self.form("/oauth/token", &form).await
    }

    pub async fn form(&self, path: &str, form: &[(&str, &str)]) -> (u16, Value) {
        let body = form
            .iter()
            .map(|(k, v)| format!("{k}={}", v.replace(' ', "+")))
            .collect::<Vec<_>>()
            .join("&");
        let answer = self
            .http
            .post(self.url(path))
            .header("content-type", "application/x-www-form-urlencoded")
            .body(body)
            .send()
            .await
            .unwrap();
        let status = answer.status().as_u16();
        (status, answer.json().await.unwrap_or_default())
    }

    pub async fn events(&self, after: Option<u64>) -> Events {
        self.events_as(&self.cookie, after).await
    }

    pub async fn events_as(&self, cookie: &str, after: Option<u64>) -> Events {
        let query = after.map(|n| format!("?after={n}")).unwrap_or_default();
        let answer = self
            .http
            .get(self.url(&format!("/api/v2/events{query}")))
            .header("cookie", cookie)
            .send()
            .await
            .unwrap();
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.headers()["content-type"], "text/event-stream");
        Events {
            stream: answer.bytes_stream().map(|c| c.map(|b| b.to_vec())).boxed(),
            text: String::new(),
            last: 0,
        }
    }
}

async fn serve(folder: &std::path::Path, tasks: &Tasks) -> Hub {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let config = HubConfig {
        data: folder.to_owned(),
        name: "home".to_owned(),
        ..HubConfig::default()
    };
    lembas::hub::serve(config, listener, tasks).await.unwrap()
}

pub fn cookie_of(answer: &reqwest::Response) -> String {
    let set = answer
        .headers()
        .get("set-cookie")
        .expect("a cookie")
        .to_str()
        .unwrap();
    set.split(';').next().unwrap().to_owned()
}

/// A page's stream of events.
pub struct Events {
    stream: futures_util::stream::BoxStream<'static, reqwest::Result<Vec<u8>>>,
    text: String,
    pub last: u64,
}

impl Events {
    /// The next event; none when the stream has ended.
    pub async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let mut data = Value::Null;
                for line in event.lines() {
                    if let Some(id) = line.strip_prefix("id: ") {
                        self.last = id.parse().unwrap();
                    } else if let Some(text) = line.strip_prefix("data: ") {
                        data = serde_json::from_str(text).unwrap();
                    }
                }
                self.text = rest.to_owned();
                return Some(data);
            }
            let chunk = soon(self.stream.next()).await?.ok()?;
            self.text.push_str(&String::from_utf8_lossy(&chunk));
        }
    }

    /// The next event that is one of these, as the closure sees it.
    pub async fn until<T>(&mut self, mut want: impl FnMut(&Value) -> Option<T>) -> T {
        let wait = async {
            loop {
                let event = self.next().await.expect("the stream ended");
                if let Some(found) = want(&event) {
                    return found;
                }
            }
        };
        soon(wait).await
    }

    pub async fn of(&mut self, kind: &str) -> Value {
        self.until(|e| (e["type"] == kind).then(|| e.clone())).await
    }
}
