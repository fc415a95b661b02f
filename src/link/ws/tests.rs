//! Two peers over real WebSocket framing on a pipe in memory.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::{SinkExt as _, StreamExt as _};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{DuplexStream, duplex};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::*;
use crate::clock;
use crate::rpc::{self, Call, CloseReason, Limits, Peer, PeerDone, RpcError, Service};
use crate::rt::Tasks;

type Stream = WebSocketStream<Counted<DuplexStream>>;

#[derive(Default)]
struct Echo(Mutex<Vec<Value>>);

impl Service for Echo {
    fn call(&self, call: Call) -> BoxFuture<'static, Result<Value, RpcError>> {
        Box::pin(async move { Ok(call.params) })
    }

    fn notice(&self, _: &str, params: Value) {
        self.0.lock().push(params);
    }
}

async fn raw(buffer: usize) -> (Stream, Stream) {
    let (a, b) = duplex(buffer);
    let device = WebSocketStream::from_raw_socket(Counted::new(a), Role::Client, Some(config()));
    let hub = WebSocketStream::from_raw_socket(Counted::new(b), Role::Server, Some(config()));
    tokio::join!(device, hub)
}

fn peer(stream: Stream, limits: Limits) -> (Peer, PeerDone, Arc<Echo>) {
    let taken = stream.get_ref().taken();
    let service = Arc::new(Echo::default());
    let frames = frames(stream, Some(taken));
    let (peer, done) = rpc::start(frames, service.clone(), limits, &Tasks::new());
    (peer, done, service)
}

#[tokio::test(start_paused = true)]
async fn messages_pass_in_both_directions_and_in_order() {
    let (device, hub) = raw(1000).await;
    let (device, _done, _) = peer(device, Limits::device());
    let (hub, _hub_done, heard) = peer(hub, Limits::instance());
    for n in 0..300 {
        device.notify("n", json!([n])).await.unwrap();
    }
    assert_eq!(hub.request("echo", json!(["ü"])).await, Ok(json!(["ü"])));
    assert_eq!(device.request("echo", json!([1])).await, Ok(json!([1])));
    assert!(
        heard
            .0
            .lock()
            .iter()
            .cloned()
            .eq((0..300).map(|n| json!([n])))
    );
    let long = json!(["x".repeat(3 * 1024 * 1024)]);
    assert_eq!(device.request("echo", long.clone()).await, Ok(long));
}

#[tokio::test(start_paused = true)]
async fn an_idle_link_lives_by_the_devices_pings() {
    let (device, hub) = raw(1000).await;
    let (device, _done, _) = peer(device, Limits::device());
    let (hub, _hub_done, _) = peer(hub, Limits::instance());
    clock::sleep(Duration::from_secs(3600)).await;
    assert!(!device.is_closed() && !hub.is_closed());
    assert!(hub.probe(Duration::from_secs(1)).await);
    assert!(device.probe(Duration::from_secs(1)).await);
}

#[tokio::test(start_paused = true)]
async fn a_close_carries_its_code_and_reason() {
    let (device, hub) = raw(1000).await;
    let (_device, done, _) = peer(device, Limits::device());
    let (hub, hub_done, _) = peer(hub, Limits::instance());
    hub.close(code::REPLACED, "taken");
    let reason = done.wait().await;
    let said = CloseReason::Remote {
        code: Some(4001),
        reason: "taken".into(),
    };
    assert_eq!(reason, said);
    assert_eq!(hub_done.wait().await.code(), Some(4001));
}

#[tokio::test(start_paused = true)]
async fn binary_messages_are_ignored() {
    let (device, mut hub) = raw(1000).await;
    let (_device, _done, service) = peer(device, Limits::device());
    hub.send(tungstenite::Message::binary(vec![123, 125]))
        .await
        .unwrap();
    let frame = r#"{"jsonrpc":"2.0","id":1,"method":"echo","params":[2]}"#;
    hub.send(tungstenite::Message::text(frame)).await.unwrap();
    let answer = hub.next().await.unwrap().unwrap();
    assert_eq!(
        answer.to_text().unwrap(),
        r#"{"jsonrpc":"2.0","id":1,"result":[2]}"#
    );
    assert!(service.0.lock().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_message_far_over_the_limit_closes_with_1009_unread() {
    let (device, mut hub) = raw(64 * 1024).await;
    let (_device, done, _) = peer(device, Limits::device());
    // Only its header is needed: nobody waits for the rest.
    let huge = tungstenite::Message::text("x".repeat(6 * 1024 * 1024));
    let send = clock::timeout(Duration::from_secs(5), hub.send(huge));
    let (_, reason) = tokio::join!(send, done.wait());
    assert_eq!(reason.code(), Some(1009));
}

#[tokio::test(start_paused = true)]
async fn a_slow_write_is_not_a_dead_one() {
    // The other side takes 4 KiB a second: each write takes long, and bytes go all the time.
    let (device, mut far) = {
        let (a, b) = duplex(1024);
        let device =
            WebSocketStream::from_raw_socket(Counted::new(a), Role::Client, Some(config()));
        (device.await, b)
    };
    let limits = Limits {
        keepalive: None,
        ..Limits::device()
    };
    let (device, done, _) = peer(device, limits);
    device.set_max_send(MAX_FRAME);
    device
        .notify("n", json!(["x".repeat(400 * 1024)]))
        .await
        .unwrap();
    let mut buffer = vec![0; 4096];
    for _ in 0..90 {
        clock::sleep(Duration::from_secs(1)).await;
        tokio::io::AsyncReadExt::read(&mut far, &mut buffer)
            .await
            .unwrap();
    }
    assert!(!device.is_closed());
    // And now it takes nothing any more.
    assert_eq!(done.wait().await, CloseReason::Stuck);
}

#[test]
fn a_wait_is_read_from_a_close_reason() {
    let wait = Duration::from_secs(90);
    assert_eq!(read_retry_after(&retry_after(wait)), Some(wait));
    for text in [
        "",
        "retry_after=",
        "retry_after=-1",
        "retry_after=x",
        "restart",
    ] {
        assert_eq!(read_retry_after(text), None, "{text}");
    }
}
