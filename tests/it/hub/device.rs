//! A small computer: dials the hub, answers what it is told to, and says what a test wants.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use lembas::link::ws;
use lembas::rpc::{self, Call, CloseReason, Limits, Peer, PeerDone, RpcError, Service};
use lembas::rt::Tasks;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio_tungstenite::tungstenite::{self, client::IntoClientRequest as _};

use super::rig::{Rig, soon};

type Answer = Result<Value, RpcError>;

/// A request of the hub that waits for the test's answer.
pub struct Asked {
    pub method: String,
    pub params: Value,
    pub answer: oneshot::Sender<Answer>,
}

pub struct Device {
    pub peer: Peer,
    pub done: Option<PeerDone>,
    pub asked: mpsc::Receiver<Asked>,
    pub told: mpsc::Receiver<(String, Value)>,
    canned: Canned,
}

type Canned = Arc<Mutex<HashMap<String, Answer>>>;

struct Plays {
    canned: Canned,
    asked: mpsc::Sender<Asked>,
    told: mpsc::Sender<(String, Value)>,
}

impl Service for Plays {
    fn call(&self, call: Call) -> BoxFuture<'static, Answer> {
        let canned = self.canned.lock().get(&call.method).cloned();
        let asked = self.asked.clone();
        async move {
            if let Some(answer) = canned {
                return answer;
            }
            let (answer, wait) = oneshot::channel();
            let one = Asked {
                method: call.method,
                params: call.params,
                answer,
            };
            asked
                .send(one)
                .await
                .map_err(|_| RpcError::internal("the test is over"))?;
            wait.await
                .unwrap_or_else(|_| Err(RpcError::internal("not answered")))
        }
        .boxed()
    }

    fn notice(&self, method: &str, params: Value) {
        let _full = self.told.try_send((method.to_owned(), params));
    }
}

/// What a dial came to.
pub type Dialled = Result<Device, (u16, Value, Option<String>)>;

pub struct Dial<'a> {
    pub device: &'a str,
    pub token: &'a str,
    pub boot: &'a str,
    pub protocol: &'a str,
    pub epoch: &'a str,
    pub sessions: Value,
    pub take: bool,
    /// A method that the test answers itself from the start.
    pub own: &'a str,
}

impl<'a> Dial<'a> {
    pub fn new(device: &'a str, token: &'a str) -> Self {
        Self {
            device,
            token,
            boot: "boot-1",
            protocol: ws::SUBPROTOCOL,
            epoch: "e1",
            sessions: json!([]),
            take: false,
            own: "",
        }
    }

    pub async fn go(self, rig: &Rig) -> Dialled {
        let url = rig.url("/link/v3").replacen("http", "ws", 1);
        let mut request = url.into_client_request().unwrap();
        let headers = request.headers_mut();
        if !self.token.is_empty() {
            headers.insert(
                "authorization",
                format!("Bearer {}", self.token).parse().unwrap(),
            );
        }
        headers.insert("sec-websocket-protocol", self.protocol.parse().unwrap());
        headers.insert(ws::HEADER_DEVICE, self.device.parse().unwrap());
        headers.insert(ws::HEADER_BOOT, self.boot.parse().unwrap());
        if self.take {
            headers.insert(ws::HEADER_TAKE, "1".parse().unwrap());
        }
        let stream = match soon(tokio_tungstenite::connect_async(request)).await {
            Ok((stream, _)) => stream,
            Err(tungstenite::Error::Http(answer)) => {
                let auth = answer
                    .headers()
                    .get("www-authenticate")
                    .map(|v| v.to_str().unwrap().to_owned());
                let body = answer
                    .body()
                    .as_ref()
                    .and_then(|b| serde_json::from_slice(b).ok());
                return Err((answer.status().as_u16(), body.unwrap_or_default(), auth));
            }
            Err(error) => panic!("{error}"),
        };
        let canned: Canned = Arc::default();
        canned.lock().extend([
            ("initialize".to_owned(), Ok(hello(self.device, self.epoch))),
            (
                "_lembas/sync".to_owned(),
                Ok(json!({ "sessions": self.sessions, "next": null, "head": 1 })),
            ),
            ("_lembas/follow".to_owned(), Ok(json!({}))),
            (
                "_lembas/rules".to_owned(),
                Ok(json!({ "rules": [], "total": 0, "now": 0 })),
            ),
        ]);
        canned.lock().remove(self.own);
        let (asked, asks) = mpsc::channel(64);
        let (told, tells) = mpsc::channel(1024);
        let plays = Plays {
            canned: Arc::clone(&canned),
            asked,
            told,
        };
        let (peer, done) = rpc::start(
            ws::frames(stream, None),
            Arc::new(plays),
            Limits::device(),
            &Tasks::new(),
        );
        Ok(Device {
            peer,
            done: Some(done),
            asked: asks,
            told: tells,
            canned,
        })
    }
}

pub fn hello(device: &str, epoch: &str) -> Value {
    json!({
        "protocolVersion": 1,
        "agentCapabilities": { "loadSession": true, "_meta": { "lembas": {
            "protocol": 3, "spec": "3.6.0", "epoch": epoch, "head": 0,
            "device": { "id": device, "name": "zephyr", "os": "linux", "arch": "x86_64", "version": "0.1.0" },
            "capabilities": ["resume", "asks", "directories", "scheduled", "progress", "token", "retry", "rewind", "rules", "output"],
            "limits": { "remote": true, "roots": ["/home/ana/projects"], "max_mode": "edit", "scheduled": false, "approvals": "once", "box": "full" },
        } } },
    })
}

impl Device {
    /// Linked, and the hub knows it.
    pub async fn linked(rig: &Rig, id: &str, token: &str) -> Self {
        let device = Dial::new(id, token).go(rig).await.expect("linked");
        device.known(rig, id).await;
        device
    }

    pub async fn known(&self, rig: &Rig, id: &str) {
        let wait = async {
            loop {
                let list = rig.get("/devices").await;
                let all = list["devices"].as_array().unwrap();
                if all.iter().any(|d| d["id"] == id && d["state"] == "online") {
                    return;
                }
                tokio::task::yield_now().await;
            }
        };
        soon(wait).await;
    }

    /// Answers a method always so.
    pub fn can(&self, method: &str, answer: Answer) {
        self.canned.lock().insert(method.to_owned(), answer);
    }

    /// The test answers this method itself.
    pub fn leave(&self, method: &str) {
        self.canned.lock().remove(method);
    }

    /// The next request that nothing answers by itself.
    pub async fn next(&mut self, method: &str) -> Asked {
        let asked = soon(self.asked.recv()).await.expect("the link ended");
        assert_eq!(asked.method, method, "{}", asked.params);
        asked
    }

    pub async fn update(&self, session: &str, seq: u64, at: u64, update: Value, more: Value) {
        let mut meta = json!({ "seq": seq, "at": at, "turn": 1, "time": 1000 + seq });
        meta.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let params = json!({ "sessionId": session, "update": update, "_meta": { "lembas": meta } });
        self.peer.notify("session/update", params).await.unwrap();
    }

    pub async fn prompt(&self, session: &str, seq: u64, key: &str, text: &str) {
        let update = json!({ "sessionUpdate": "user_message_chunk", "content": { "type": "text", "text": text } });
        self.update(
            session,
            seq,
            0,
            update,
            json!({ "key": key, "source": "person" }),
        )
        .await;
    }

    /// A piece of an answer that ends at `at`.
    pub async fn text(&self, session: &str, seq: u64, at: u64, text: &str) {
        let update = json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": text } });
        self.update(session, seq, at, update, json!({})).await;
    }

    pub async fn event(&self, session: &str, seq: u64, kind: &str, data: Value) {
        let params = json!({ "sessionId": session, "seq": seq, "type": kind, "data": data });
        self.peer.notify("_lembas/event", params).await.unwrap();
    }

    /// The next acknowledgement.
    pub async fn ack(&mut self) -> Value {
        loop {
            let (method, params) = soon(self.told.recv()).await.expect("the link ended");
            if method == "_lembas/ack" {
                return params;
            }
        }
    }

    pub async fn closed(&mut self) -> CloseReason {
        soon(self.done.take().unwrap().wait()).await
    }

    /// Goes without a word, and waits until the hub has seen it.
    pub async fn leaves(self, rig: &Rig, id: &str) {
        self.peer.close(1001, "going");
        soon(self.peer.closed()).await;
        let wait = async {
            loop {
                let list = rig.get("/devices").await;
                let all = list["devices"].as_array().unwrap();
                if all.iter().any(|d| d["id"] == id && d["state"] == "away") {
                    return;
                }
                tokio::task::yield_now().await;
            }
        };
        soon(wait).await;
    }
}
