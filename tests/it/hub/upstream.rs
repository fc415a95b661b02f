//! A model server that behaves as a test wants: well, badly, slowly, or not at all.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// What it answers to one request: raw bytes, written piece by piece.
#[derive(Clone, Debug)]
pub enum Say {
    /// Status line and headers are made; the body is one piece.
    Whole(u16, &'static str, String),
    /// A stream of events, then the end.
    Events(Vec<String>),
    /// A stream that begins and then says nothing until the client goes.
    Stalls(String),
    /// A stream that breaks off.
    Breaks(String),
    /// Nothing at all.
    Nothing,
    Raw(String),
}

pub struct Upstream {
    pub url: String,
    /// Heads and bodies of requests, in order.
    pub heard: Arc<Mutex<Vec<String>>>,
    /// Told when a client goes while a stream stalls.
    pub gone: tokio::sync::mpsc::Receiver<()>,
}

pub async fn start(say: impl Fn(&str) -> Say + Send + Sync + 'static) -> Upstream {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let heard: Arc<Mutex<Vec<String>>> = Arc::default();
    let (tell, gone) = tokio::sync::mpsc::channel(8);
    let (say, log) = (Arc::new(say), Arc::clone(&heard));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (say, log, tell) = (Arc::clone(&say), Arc::clone(&log), tell.clone());
            tokio::spawn(async move { serve(stream, &*say, &log, tell).await });
        }
    });
    Upstream { url, heard, gone }
}

async fn serve(
    mut stream: TcpStream,
    say: &(dyn Fn(&str) -> Say + Send + Sync),
    log: &Mutex<Vec<String>>,
    gone: tokio::sync::mpsc::Sender<()>,
) {
    let mut bytes = Vec::new();
    let mut buffer = [0; 8192];
    let request = loop {
        let Ok(count) = stream.read(&mut buffer).await else {
            return;
        };
        if count == 0 {
            return;
        }
        bytes.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8_lossy(&bytes).to_string();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|l| {
                    l.to_lowercase()
                        .strip_prefix("content-length: ")
                        .map(|n| n.parse::<usize>().unwrap())
                })
                .unwrap_or(0);
            if body.len() >= length {
                break text;
            }
        }
    };
    log.lock().push(request.clone());
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    match say(&request) {
        Say::Whole(status, headers, body) => {
            let text = format!(
                "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n{headers}\r\n{body}",
                body.len()
            );
            let _gone = stream.write_all(text.as_bytes()).await;
        }
        Say::Events(events) => {
            let _gone = stream.write_all(head.as_bytes()).await;
            for event in events {
                let _gone = stream.write_all(event.as_bytes()).await;
            }
        }
        Say::Stalls(text) => {
            let _gone = stream.write_all(format!("{head}{text}").as_bytes()).await;
            let _until_gone = stream.read(&mut buffer).await;
            let _told = gone.send(()).await;
        }
        Say::Breaks(text) => {
            let chunked = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{text}\r\n",
                text.len()
            );
            let _gone = stream.write_all(chunked.as_bytes()).await;
        }
        Say::Nothing => {
            let _until_gone = stream.read(&mut buffer).await;
        }
        Say::Raw(text) => {
            let _gone = stream.write_all(text.as_bytes()).await;
        }
    }
    let _closed = stream.shutdown().await;
}
