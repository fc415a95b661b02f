use std::net::SocketAddr;

use axum::routing::{get, post};
use futures_util::StreamExt as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

use super::*;

/// A connection to a server that echoes bodies and streams for ever, with its end.
fn dial() -> (DuplexStream, tokio::task::JoinHandle<()>) {
    let beats = || {
        futures_util::stream::unfold((), |()| async {
            sleep(Duration::from_secs(10)).await;
            Some((Ok::<_, std::io::Error>(Bytes::from_static(b"beat\n")), ()))
        })
    };
    let echo = async |request: axum::extract::Request| {
        let (body, late) = paced(request.into_body());
        let read = axum::body::to_bytes(body, 1024 * 1024).await;
        format!("{} {}", read.is_ok(), late.load(Ordering::Relaxed))
    };
    let router = Router::new().route("/echo", post(echo)).route(
        "/beats",
        get(async move || Body::from_stream(beats().boxed())),
    );
    let (client, server) = tokio::io::duplex(64 * 1024);
    let remote = Remote(SocketAddr::from(([127, 0, 0, 1], 1)));
    #[expect(clippy::disallowed_methods, reason = "a test's own task")]
    let task = tokio::spawn(serve(server, router, remote));
    (client, task)
}

async fn ends_within(task: tokio::task::JoinHandle<()>, most: Duration) -> Duration {
    let begun = instant();
    tokio::time::timeout(most, task)
        .await
        .expect("it goes on")
        .unwrap();
    begun.elapsed()
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_says_nothing_is_closed() {
    let (client, task) = dial();
    let took = ends_within(task, HEAD_WAIT * 2).await;
    assert!(took >= HEAD_WAIT, "{took:?}");
    drop(client);
}

#[tokio::test(start_paused = true)]
async fn a_head_in_drops_is_closed() {
    let (mut client, task) = dial();
    let drip = async {
        for byte in b"GET /beats HTTP/1.1\r\nhost: a\r\nx-a: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" {
            if client.write_all(&[*byte]).await.is_err() {
                break;
            }
            sleep(Duration::from_secs(1)).await;
        }
    };
    let ended = ends_within(task, HEAD_WAIT * 3);
    let ((), took) = tokio::join!(drip, ended);
    assert!(took >= HEAD_WAIT, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_body_a_byte_a_minute_is_refused_and_one_that_comes_is_taken() {
    let (mut client, _task) = dial();
    let head =
        b"POST /echo HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: 100\r\n\r\n";
    client.write_all(head).await.unwrap();
    client.write_all(b"a").await.unwrap();
    let mut answer = vec![0; 4096];
    let got = tokio::time::timeout(BODY_WAIT * 2, client.read(&mut answer)).await;
    let text = String::from_utf8_lossy(&answer[..got.unwrap().unwrap()]).to_string();
    assert!(text.ends_with("false true"), "{text}");

    // Slow, but it comes: a megabyte over two minutes is more than the least rate, by far more
    // than the first wait.
    let (mut client, _task) = dial();
    let head =
        b"POST /echo HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: 983040\r\n\r\n";
    client.write_all(head).await.unwrap();
    for _ in 0..60 {
        client.write_all(&[b'a'; 16 * 1024]).await.unwrap();
        sleep(Duration::from_millis(900)).await;
    }
    let got = tokio::time::timeout(BODY_WAIT, client.read(&mut answer)).await;
    let text = String::from_utf8_lossy(&answer[..got.unwrap().unwrap()]).to_string();
    assert!(text.ends_with("true false"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_stream_is_never_cut_for_being_long_and_one_that_nobody_reads_is() {
    let (mut client, task) = dial();
    client
        .write_all(b"GET /beats HTTP/1.1\r\nhost: a\r\n\r\n")
        .await
        .unwrap();
    let mut piece = vec![0; 4096];
    for _ in 0..100 {
        // Each beat is heard: far longer than every limit.
        let got = tokio::time::timeout(Duration::from_secs(30), client.read(&mut piece)).await;
        assert!(got.unwrap().unwrap() > 0);
    }
    assert!(!task.is_finished());
    // From now on nobody reads: what fits between us is full some day, and then it ends.
    let took = ends_within(task, Duration::from_secs(365 * 24 * 3600)).await;
    assert!(took >= STUCK, "{took:?}");
}

#[test]
fn one_address_has_so_many_places_and_they_come_back() {
    let places = Arc::new(Places::default());
    let ip = |text: &str| text.parse::<IpAddr>().unwrap();
    let mut held: Vec<Place> = (0..EACH)
        .map(|_| places.take(ip("192.0.2.1"), false).unwrap())
        .collect();
    assert!(places.take(ip("192.0.2.1"), false).is_none());
    assert!(places.take(ip("::ffff:192.0.2.1"), false).is_none());
    assert!(places.take(ip("192.0.2.2"), false).is_some());
    held.pop();
    assert!(places.take(ip("192.0.2.1"), false).is_some());
    drop(held);
    assert!(places.taken.lock().is_empty());
    // One network of IPv6 is one address; behind a proxy nothing is counted.
    let first = places.take(ip("2001:db8::1"), false);
    let second = places.take(ip("2001:db8::2"), false);
    assert_eq!(places.taken.lock().len(), 1);
    drop((first, second));
    let _proxy = places.take(ip("127.0.0.1"), true);
    assert!(places.taken.lock().is_empty());
}
