//! The handshake's time, on a socket in memory with paused time.

use futures_util::StreamExt as _;
use serde_json::Value;
use tokio::io::duplex;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::*;
use crate::link::dial::Io;
use crate::link::ws;
use crate::rpc::{Call, Limits, Peer, RpcError, Service};

struct Yes;

impl Service for Yes {
    fn call(&self, call: Call) -> BoxFuture<'static, Result<Value, RpcError>> {
        Box::pin(async move {
            match call.method.as_str() {
                "initialize" if call.params.is_null() => Err(RpcError::invalid_params("protocol")),
                _ => Ok(Value::Null),
            }
        })
    }

    fn notice(&self, _: &str, _: Value) {}
}

type Far = WebSocketStream<tokio::io::DuplexStream>;

async fn session() -> (Option<Session>, Far) {
    let (near, far) = duplex(1000);
    let near: Box<dyn Io> = Box::new(near);
    let stream = WebSocketStream::from_raw_socket(near, Role::Client, Some(ws::config())).await;
    let socket = Socket {
        stream,
        taken: Arc::default(),
    };
    let factory: Arc<dyn ServiceFactory> = Arc::new(|_: Peer| Arc::new(Yes) as Arc<dyn Service>);
    let session = Session::open(Box::new(socket), &factory, Limits::device(), &Tasks::new());
    let far = WebSocketStream::from_raw_socket(far, Role::Server, None).await;
    (Some(session), far)
}

fn message(text: &str) -> Message {
    Message::text(text)
}

#[tokio::test(start_paused = true)]
async fn a_handshake_that_does_not_come_is_late_after_fifteen_seconds() {
    let (mut session, mut far) = session().await;
    let began = clock::instant();
    // Other calls, and a handshake that is refused, do not count.
    let other = r#"{"jsonrpc":"2.0","id":1,"method":"other"}"#;
    let refused = r#"{"jsonrpc":"2.0","id":2,"method":"initialize"}"#;
    for text in [other, refused] {
        futures_util::SinkExt::send(&mut far, message(text))
            .await
            .unwrap();
    }
    let happened = Session::next(&mut session).await;
    assert!(matches!(happened, Happened::Late));
    assert_eq!(began.elapsed().as_secs(), 15);
    session
        .as_ref()
        .unwrap()
        .peer
        .close(code::INITIALIZE, "initialize");
    let closed = async {
        while let Some(Ok(message)) = far.next().await {
            if let Message::Close(Some(frame)) = message {
                return u16::from(frame.code);
            }
        }
        0
    };
    let (code, happened) = tokio::join!(closed, Session::next(&mut session));
    assert_eq!(code, 4002);
    assert!(matches!(happened, Happened::Closed(reason) if reason.code() == Some(4002)));
}

#[tokio::test(start_paused = true)]
async fn a_handshake_in_time_is_all_there_is_to_hear() {
    let (mut session, mut far) = session().await;
    let good = r#"{"jsonrpc":"2.0","id":2,"method":"initialize","params":{}}"#;
    futures_util::SinkExt::send(&mut far, message(good))
        .await
        .unwrap();
    assert!(matches!(Session::next(&mut session).await, Happened::Ready));
    let keep_alive = async { while let Some(Ok(_)) = far.next().await {} };
    let quiet = clock::timeout(Duration::from_secs(600), Session::next(&mut session));
    tokio::select! {
        () = keep_alive => panic!("the link closed"),
        quiet = quiet => assert!(quiet.is_err(), "nothing happens on a healthy link"),
    }
}
