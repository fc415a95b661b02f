//! The client's end: asks, hears in order, and answers what it is asked when the test says so.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use lembas::acp::Device;
use lembas::permission::Origin;
use lembas::rpc::{self, Call, CallError, CloseReason, Limits, Peer, RpcError, Service, pair};
use lembas::rt::{CancellationToken, Tasks};
use serde_json::Value;
use tokio::sync::{Mutex, mpsc, oneshot};

/// What the device said, in the order of the wire.
pub(crate) enum Heard {
    Notice(String, Value),
    Asked(Asked),
}

/// A request of the device.
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) params: Value,
    pub(crate) id: rpc::Id,
    /// Set off by `$/cancel_request`.
    pub(crate) cancelled: CancellationToken,
    answer: oneshot::Sender<Result<Value, RpcError>>,
}

impl Asked {
    pub(crate) fn answer(self, answer: Result<Value, RpcError>) {
        let _ = self.answer.send(answer);
    }
}

#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) peer: Peer,
    heard: Arc<Mutex<mpsc::Receiver<Heard>>>,
}

struct Ears(mpsc::Sender<Heard>);

impl Service for Ears {
    fn call(&self, call: Call) -> BoxFuture<'static, Result<Value, RpcError>> {
        let (answer, answered) = oneshot::channel();
        let cancelled = call.cancelled.clone();
        let asked = Asked {
            method: call.method,
            params: call.params,
            id: call.id,
            cancelled: call.cancelled,
            answer,
        };
        self.0.try_send(Heard::Asked(asked)).ok().unwrap();
        async move {
            tokio::select! {
                answer = answered => answer.unwrap_or_else(|_| Err(RpcError::internal("not answered"))),
                () = cancelled.cancelled() => Err(RpcError::cancelled()),
            }
        }
        .boxed()
    }

    fn notice(&self, method: &str, params: Value) {
        self.0
            .try_send(Heard::Notice(method.to_owned(), params))
            .ok()
            .unwrap();
    }
}

/// How long a test waits for something that must come.
const SOON: Duration = Duration::from_secs(20);

impl Client {
    pub(crate) fn connect(device: &Device, origin: Origin, tasks: &Tasks) -> Self {
        let (here, there) = pair::pair(64);
        let limits = |limits: Limits| Limits {
            keepalive: None,
            ..limits
        };
        let device = device.clone();
        rpc::start_with(
            there,
            |peer| device.serve(peer, origin),
            limits(Limits::device()),
            tasks,
        );
        let (heard, ears) = mpsc::channel(100_000);
        let (peer, _) = rpc::start(
            here,
            Arc::new(Ears(heard)),
            limits(Limits::instance()),
            tasks,
        );
        Self {
            peer,
            heard: Arc::new(Mutex::new(ears)),
        }
    }

    pub(crate) async fn ask(&self, method: &str, params: Value) -> Result<Value, RpcError> {
        match self.peer.request_within(method, params, SOON).await {
            Ok(value) => Ok(value),
            Err(CallError::Rpc(error)) => Err(error),
            Err(error) => panic!("{method}: {error}"),
        }
    }

    pub(crate) async fn tell(&self, method: &str, params: Value) {
        self.peer.notify(method, params).await.unwrap();
    }

    pub(crate) async fn hear(&self) -> Heard {
        let mut heard = self.heard.lock().await;
        let next = tokio::time::timeout(SOON, heard.recv()).await;
        next.expect("nothing was said").expect("the link is closed")
    }

    /// What was said until now and not heard yet.
    pub(crate) async fn heard(&self) -> Vec<Heard> {
        let mut heard = self.heard.lock().await;
        std::iter::from_fn(|| heard.try_recv().ok()).collect()
    }

    /// The next notification.
    pub(crate) async fn notice(&self) -> (String, Value) {
        match self.hear().await {
            Heard::Notice(method, params) => (method, params),
            Heard::Asked(asked) => panic!("asked {} {}", asked.method, asked.params),
        }
    }

    /// The next request, what is said before it left out.
    pub(crate) async fn asked(&self) -> Asked {
        loop {
            if let Heard::Asked(asked) = self.hear().await {
                return asked;
            }
        }
    }

    /// The notifications until now.
    pub(crate) async fn notices(&self) -> Vec<(String, Value)> {
        let notice = |heard| match heard {
            Heard::Notice(method, params) => Some((method, params)),
            Heard::Asked(_) => None,
        };
        self.heard().await.into_iter().filter_map(notice).collect()
    }

    pub(crate) async fn closed(&self) -> CloseReason {
        tokio::time::timeout(SOON, self.peer.closed())
            .await
            .unwrap()
    }
}

/// The text of an update, and its position.
pub(crate) fn text((method, params): &(String, Value)) -> Option<(u64, u64, String)> {
    let meta = &params["_meta"]["lembas"];
    let text = params["update"]["content"]["text"].as_str()?;
    assert_eq!(method, "session/update");
    Some((meta["seq"].as_u64()?, meta["at"].as_u64()?, text.to_owned()))
}
