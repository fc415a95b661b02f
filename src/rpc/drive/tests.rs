//! The driving task, over two ends in memory with paused time.

use std::sync::atomic::AtomicUsize;

use parking_lot::Mutex;
use serde_json::json;

use super::*;
use crate::rpc::pair::{PairSink, PairSource, pair};
use crate::rpc::{Call, Closed, RpcError, Sink as _, start, start_with};

/// A service that notes what it hears and knows a few methods.
#[derive(Default)]
struct Echo {
    heard: Mutex<Vec<String>>,
    cancelled: AtomicUsize,
}

impl Service for Echo {
    fn call(
        &self,
        call: Call,
    ) -> futures_util::future::BoxFuture<'static, Result<Value, RpcError>> {
        self.heard
            .lock()
            .push(format!("{}#{}", call.method, call.order));
        assert!(call.method != "panic at once", "as asked");
        Box::pin(async move {
            match call.method.as_str() {
                "echo" => Ok(call.params),
                "tell then answer" => {
                    let tell = call.peer.notify("told", call.params).await;
                    tell.map_err(|_| RpcError::internal("closed"))?;
                    Ok(json!("answer"))
                }
                "forever" => std::future::pending().await,
                "until cancelled" => {
                    call.cancelled.cancelled().await;
                    Err(RpcError::cancelled())
                }
                "panic" => panic!("as asked"),
                "long" => Ok(json!("x".repeat(5 * 1024 * 1024))),
                method => Err(RpcError::method_not_found(method)),
            }
        })
    }

    fn notice(&self, method: &str, params: Value) {
        assert!(method != "panic", "as asked");
        if method == "count cancelled" {
            self.cancelled.fetch_add(1, Ordering::Relaxed);
        }
        self.heard.lock().push(format!("{method} {params}"));
    }
}

struct Two {
    left: Peer,
    right: Peer,
    left_done: PeerDone,
    right_done: PeerDone,
    left_service: Arc<Echo>,
    right_service: Arc<Echo>,
    tasks: Tasks,
}

fn two_with(room: usize, limits: &Limits) -> Two {
    let (a, b) = pair(room);
    let tasks = Tasks::new();
    let left_service = Arc::new(Echo::default());
    let right_service = Arc::new(Echo::default());
    let (left, left_done) = start(a, left_service.clone(), limits.clone(), &tasks);
    let (right, right_done) = start(b, right_service.clone(), limits.clone(), &tasks);
    Two {
        left,
        right,
        left_done,
        right_done,
        left_service,
        right_service,
        tasks,
    }
}

fn two() -> Two {
    two_with(8, &Limits::device())
}

/// One end driven by a peer, the other by the test.
fn half(limits: Limits) -> (Peer, PeerDone, PairSource, PairSink, Arc<Echo>) {
    let (a, (source, sink)) = pair(8);
    let service = Arc::new(Echo::default());
    let (peer, done) = start(a, service.clone(), limits, &Tasks::new());
    (peer, done, source, sink, service)
}

async fn next_text(source: &mut PairSource) -> Value {
    loop {
        match source.next(usize::MAX).await.unwrap() {
            Some(Incoming::Text(text)) => return serde_json::from_str(&text).unwrap(),
            Some(Incoming::Alive) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn either_side_asks() {
    let two = two();
    let params = json!({ "a": [1, "ü"] });
    assert_eq!(
        two.left.request("echo", params.clone()).await,
        Ok(params.clone())
    );
    assert_eq!(two.right.request("echo", params.clone()).await, Ok(params));
    let error = two.left.request("nothing", Value::Null).await.unwrap_err();
    assert_eq!(error.rpc().unwrap().code, -32601);
}

#[tokio::test(start_paused = true)]
async fn what_was_told_before_an_answer_is_heard_before_it() {
    let two = two();
    for n in 0..50 {
        let answer = two.left.request("tell then answer", json!(n)).await;
        // params of a bare number are refused; an array is what the wire takes
        assert!(answer.is_err());
        let answer = two.left.request("tell then answer", json!([n])).await;
        assert_eq!(answer, Ok(json!("answer")));
        let heard = two.left_service.heard.lock().last().cloned();
        assert_eq!(heard, Some(format!("told [{n}]")));
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_hurts_only_its_own_call() {
    let two = two();
    let forever = two.left.request("until cancelled", Value::Null);
    tokio::pin!(forever);
    assert!(futures_util::poll!(&mut forever).is_pending());
    for method in ["panic", "panic at once"] {
        let error = two.left.request(method, Value::Null).await.unwrap_err();
        assert_eq!(error.rpc().unwrap().code, -32603, "{method}");
    }
    two.left.notify("panic", Value::Null).await.unwrap();
    assert_eq!(two.left.request("echo", json!([1])).await, Ok(json!([1])));
    assert!(futures_util::poll!(&mut forever).is_pending());
}

#[tokio::test(start_paused = true)]
async fn a_slow_call_holds_up_nobody() {
    let two = two();
    let slow = two.left.request("forever", Value::Null);
    tokio::pin!(slow);
    assert!(futures_util::poll!(&mut slow).is_pending());
    assert_eq!(two.left.request("echo", json!([])).await, Ok(json!([])));
    assert!(futures_util::poll!(&mut slow).is_pending());
}

#[tokio::test(start_paused = true)]
async fn a_dropped_request_is_cancelled_and_still_answered_once() {
    let (peer, _done, mut source, mut sink, service) = half(Limits::device());
    let outcome = peer
        .request_within("slow", json!({}), Duration::from_secs(3))
        .await;
    assert_eq!(outcome, Err(CallError::Timeout));
    let asked = next_text(&mut source).await;
    let cancel = next_text(&mut source).await;
    assert_eq!(asked["method"], "slow");
    assert_eq!(cancel["method"], "$/cancel_request");
    assert_eq!(cancel["params"]["requestId"], asked["id"]);
    // And the other way round.
    let send = |value: Value| Outgoing::Text(value.to_string());
    let call = json!({"jsonrpc": "2.0", "id": "x", "method": "until cancelled"});
    let cancel =
        json!({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": "x"}});
    sink.send(send(call)).await.unwrap();
    sink.send(send(cancel.clone())).await.unwrap();
    sink.send(send(cancel)).await.unwrap();
    let answer = next_text(&mut source).await;
    assert_eq!(
        (&answer["id"], &answer["error"]["code"]),
        (&json!("x"), &json!(-32800))
    );
    let probe = json!({"jsonrpc": "2.0", "id": 1, "method": "echo"});
    sink.send(send(probe)).await.unwrap();
    assert_eq!(
        next_text(&mut source).await["id"],
        1,
        "there is no second answer"
    );
    assert!(
        service
            .heard
            .lock()
            .iter()
            .all(|heard| !heard.contains('$'))
    );
}

#[tokio::test(start_paused = true)]
async fn a_request_dropped_in_the_queue_is_never_sent() {
    let (peer, _done, mut source, _sink, _) = half(Limits::device());
    // The pipe holds 8 frames and one write is under way: what follows rests in the queue.
    for n in 0..90 {
        peer.notify("n", json!([n])).await.unwrap();
    }
    {
        let request = peer.request("dropped", Value::Null);
        tokio::pin!(request);
        assert!(futures_util::poll!(&mut request).is_pending());
    }
    peer.notify("last", Value::Null).await.unwrap();
    loop {
        let frame = next_text(&mut source).await;
        assert_ne!(frame["method"], "dropped");
        assert_ne!(frame["method"], "$/cancel_request");
        if frame["method"] == "last" {
            break;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn two_sides_that_both_write_much_do_not_wait_for_each_other() {
    let two = two_with(1, &Limits::device());
    let flood = |peer: Peer| async move {
        for n in 0..3000 {
            peer.notify("n", json!([n])).await.unwrap();
        }
        peer.request("echo", json!(["end"])).await.unwrap();
    };
    tokio::join!(flood(two.left.clone()), flood(two.right.clone()));
    for service in [&two.left_service, &two.right_service] {
        let heard = service.heard.lock();
        let expected = (0..3000).map(|n| format!("n [{n}]"));
        assert!(heard.iter().take(3000).cloned().eq(expected));
    }
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_makes_the_sender_wait_and_loses_nothing() {
    let (peer, _done, mut source, _sink, _) = half(Limits::device());
    let text = "x".repeat(60 * 1024);
    let mut sent = 0;
    loop {
        let notify = peer.notify("n", json!([sent, text]));
        tokio::pin!(notify);
        if tokio::time::timeout(Duration::from_secs(1), &mut notify)
            .await
            .is_err()
        {
            break;
        }
        sent += 1;
    }
    // 8 MiB of queue, and what the pipe and one write hold.
    assert!((136..160).contains(&sent), "{sent}");
    for n in 0..sent {
        assert_eq!(next_text(&mut source).await["params"][0], n);
    }
    peer.notify("after", Value::Null).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn it_pings_and_a_silent_link_is_dead_after_45_seconds() {
    let (peer, done, mut source, _sink, _) = half(Limits::device());
    let began = clock::instant();
    let mut pings = Vec::new();
    while let Some(Incoming::Alive) = source.next(9).await.unwrap() {
        pings.push(began.elapsed().as_secs());
    }
    assert_eq!(pings, [20, 40]);
    assert_eq!(done.wait().await, CloseReason::Dead);
    assert_eq!(began.elapsed().as_secs(), 45);
    assert_eq!(peer.closed().await, CloseReason::Dead);
}

#[tokio::test(start_paused = true)]
async fn any_frame_keeps_it_alive() {
    let (peer, _done, mut source, mut sink, _) = half(Limits::device());
    for _ in 0..10 {
        clock::sleep(Duration::from_secs(30)).await;
        sink.send(Outgoing::Ping).await.unwrap();
        while let Ok(frame) = clock::timeout(Duration::from_millis(1), source.next(9)).await {
            assert_eq!(frame.unwrap(), Some(Incoming::Alive));
        }
        assert!(!peer.is_closed());
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_that_nobody_takes_ends_the_link() {
    let (peer, done, _source, mut sink, _) = half(Limits::device());
    for n in 0..20 {
        peer.notify("n", json!([n])).await.unwrap();
    }
    let began = clock::instant();
    let alive = async {
        loop {
            // It still hears the other side: this is about writing.
            clock::sleep(Duration::from_secs(1)).await;
            if sink.send(Outgoing::Ping).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    };
    tokio::select! {
        () = alive => {}
        reason = done.wait() => assert_eq!(reason, CloseReason::Stuck),
    }
    assert_eq!(began.elapsed().as_secs(), 20);
}

#[tokio::test(start_paused = true)]
async fn a_probe_asks_for_a_sign_of_life() {
    let (peer, _done, mut source, mut sink, _) = half(Limits::device());
    let began = clock::instant();
    assert!(!peer.probe(Duration::from_secs(3)).await);
    assert_eq!(began.elapsed().as_secs(), 3);
    assert_eq!(source.next(9).await.unwrap(), Some(Incoming::Alive));
    assert!(
        !peer.is_closed(),
        "what follows from it is the asker's to say"
    );
    let answer = async {
        source.next(9).await.unwrap();
        sink.send(Outgoing::Ping).await.unwrap();
    };
    let (heard, ()) = tokio::join!(peer.probe(Duration::from_secs(3)), answer);
    assert!(heard);
    peer.close(1000, "");
    peer.closed().await;
    assert!(!peer.probe(Duration::from_secs(3)).await);
}

#[tokio::test(start_paused = true)]
async fn closing_sends_what_is_queued_and_says_how_it_ended() {
    let two = two();
    let waiting = two.left.request("forever", Value::Null);
    tokio::pin!(waiting);
    assert!(futures_util::poll!(&mut waiting).is_pending());
    for n in 0..200 {
        two.left.notify("n", json!([n])).await.unwrap();
    }
    two.left.close(4001, "replaced");
    two.left.close(1000, "the second close says nothing");
    let reason = two.right.closed().await;
    let said = CloseReason::Remote {
        code: Some(4001),
        reason: "replaced".into(),
    };
    assert_eq!(reason, said);
    assert_eq!(two.right_done.wait().await, said);
    assert_eq!(two.left_done.wait().await.code(), Some(4001));
    assert_eq!(two.right_service.heard.lock().len(), 201);
    let lost = waiting.await.unwrap_err();
    assert!(
        matches!(lost, CallError::Closed { sent: true, .. }),
        "{lost:?}"
    );
    let late = two.left.request("echo", Value::Null).await.unwrap_err();
    assert!(
        matches!(late, CallError::Closed { sent: false, .. }),
        "{late:?}"
    );
    assert_eq!(two.left.notify("n", Value::Null).await, Err(Closed));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_rested_in_the_queue_is_known_to_be_unsent() {
    let (peer, done, _source, sink, _) = half(Limits::device());
    for n in 0..90 {
        peer.notify("n", json!([n])).await.unwrap();
    }
    let request = peer.request("echo", Value::Null);
    tokio::pin!(request);
    assert!(futures_util::poll!(&mut request).is_pending());
    drop(sink);
    assert_eq!(done.wait().await, CloseReason::Ended);
    let error = request.await.unwrap_err();
    let unsent = CallError::Closed {
        sent: false,
        reason: CloseReason::Ended,
    };
    assert_eq!(error, unsent);
}

#[tokio::test(start_paused = true)]
async fn frames_are_small_until_the_first_call_was_answered() {
    let two = two();
    let long = json!(["x".repeat(100 * 1024)]);
    let refused = two.left.request("echo", long.clone()).await.unwrap_err();
    assert!(
        matches!(refused, CallError::TooLong { limit: 65536, .. }),
        "{refused:?}"
    );
    two.left.request("echo", json!([])).await.unwrap();
    assert_eq!(
        two.left.request("echo", long.clone()).await,
        Ok(long.clone())
    );
    assert_eq!(two.right.request("echo", long.clone()).await, Ok(long));
    let error = two.left.request("long", Value::Null).await.unwrap_err();
    assert_eq!(
        error.rpc().unwrap().code,
        -32603,
        "an answer over 4 MiB is an error"
    );
    assert_eq!(two.left.request("echo", json!([])).await, Ok(json!([])));
}

#[tokio::test(start_paused = true)]
async fn a_frame_over_the_limit_is_refused_and_closes_the_link() {
    let (_peer, done, mut source, mut sink, service) = half(Limits::device());
    let frame =
        json!({"jsonrpc": "2.0", "id": -9, "method": "echo", "params": ["x".repeat(70_000)]});
    sink.send(Outgoing::Text(frame.to_string())).await.unwrap();
    let answer = next_text(&mut source).await;
    assert_eq!(
        (&answer["id"], &answer["error"]["code"]),
        (&json!(-9), &json!(-32600))
    );
    let close = source.next(9).await.unwrap();
    assert!(
        matches!(
            close,
            Some(Incoming::Close {
                code: Some(1009),
                ..
            })
        ),
        "{close:?}"
    );
    assert_eq!(done.wait().await.code(), Some(1009));
    assert!(service.heard.lock().is_empty());
}

#[tokio::test(start_paused = true)]
async fn ending_the_tasks_closes_with_going_away() {
    let two = two();
    two.left.request("echo", json!([])).await.unwrap();
    two.tasks.end().await;
    assert_eq!(two.left.closed().await.code(), Some(1001));
}

#[tokio::test(start_paused = true)]
async fn a_service_may_hold_the_peer_it_serves() {
    struct Asks(Peer);
    impl Service for Asks {
        fn call(
            &self,
            _: Call,
        ) -> futures_util::future::BoxFuture<'static, Result<Value, RpcError>> {
            let peer = self.0.clone();
            Box::pin(async move {
                let answer = peer.request("echo", json!([7])).await;
                answer.map_err(|error| RpcError::internal(error.to_string()))
            })
        }
        fn notice(&self, _: &str, _: Value) {}
    }
    let (a, b) = pair(8);
    let tasks = Tasks::new();
    let (_asking, _done) = start_with(a, |peer| Arc::new(Asks(peer)), Limits::device(), &tasks);
    let (peer, _done) = start(b, Arc::new(Echo::default()), Limits::device(), &tasks);
    assert_eq!(peer.request("any", Value::Null).await, Ok(json!([7])));
}
