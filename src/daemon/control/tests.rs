use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::sync::mpsc;

use super::client::{Client, ControlError};
use super::server::{Streams, bind, serve};
use super::*;
use crate::clock;
use crate::rt::Tasks;

struct Echo;

impl Streams for Echo {
    fn acp(
        &self,
        mut stream: UnixStream,
        early: BytesMut,
    ) -> futures_util::future::BoxFuture<'static, ()> {
        Box::pin(async move {
            stream.write_all(&early).await.unwrap();
            let (mut from, mut to) = stream.split();
            tokio::io::copy(&mut from, &mut to).await.unwrap();
        })
    }
}

struct Rig {
    base: tempfile::TempDir,
    tasks: Tasks,
    /// Hears when a call to `wait` began, and when it was dropped.
    waits: mpsc::Receiver<&'static str>,
}

struct Dropped(mpsc::Sender<&'static str>);

impl Drop for Dropped {
    fn drop(&mut self) {
        let _ = self.0.try_send("dropped");
    }
}

impl Rig {
    fn start() -> Self {
        let base = tempfile::tempdir().unwrap();
        let (say, waits) = mpsc::channel(8);
        let mut module = RpcModule::new(say);
        module
            .register_async_method("add", |params, _, _| async move {
                let numbers: Vec<i64> = params.parse().unwrap();
                numbers.iter().sum::<i64>()
            })
            .unwrap();
        module
            .register_async_method("no", |_, _, _| async move {
                Err::<Value, _>(refusal(
                    "it is not allowed",
                    Detail {
                        code: "off".into(),
                        why: Some("it is off".into()),
                        fixes: vec!["lembas on".into()],
                        number: None,
                    },
                ))
            })
            .unwrap();
        module
            .register_async_method("wait", |_, say: Arc<mpsc::Sender<_>>, _| async move {
                say.send("began").await.unwrap();
                let _dropped = Dropped((*say).clone());
                std::future::pending::<()>().await;
            })
            .unwrap();
        let tasks = Tasks::new();
        let listener = bind(&base.path().join("s")).unwrap();
        serve(listener, module.into(), Arc::new(Echo), &tasks);
        Self { base, tasks, waits }
    }

    async fn client(&self) -> Client {
        Client::connect(&self.base.path().join("s")).await.unwrap()
    }

    async fn raw(&self) -> BufReader<UnixStream> {
        BufReader::new(
            UnixStream::connect(self.base.path().join("s"))
                .await
                .unwrap(),
        )
    }
}

#[tokio::test]
async fn it_answers_in_order_and_says_refusals_whole() {
    let rig = Rig::start();
    let mut client = rig.client().await;
    assert_eq!(client.request::<i64>("add", &[1, 2]).await.unwrap(), 3);
    let error = client.request::<Value>("no", &json!({})).await.unwrap_err();
    let ControlError::Refused { text, detail } = error else {
        panic!("{error:?}");
    };
    assert_eq!(text, "it is not allowed");
    assert_eq!(detail.fixes, ["lembas on"]);
    assert!(
        client
            .request::<Value>("nothing", &json!({}))
            .await
            .is_err()
    );
    assert_eq!(client.request::<i64>("add", &[4]).await.unwrap(), 4);
    rig.tasks.end().await;
}

#[tokio::test]
async fn only_this_user_may_talk() {
    assert!(may_talk(1000, 1000));
    assert!(may_talk(0, 1000));
    assert!(!may_talk(1001, 1000));
    assert!(!may_talk(1000, 0));
    let rig = Rig::start();
    let mode = std::fs::metadata(rig.base.path().join("s"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    rig.tasks.end().await;
}

#[tokio::test]
async fn what_is_no_request_is_answered_and_a_long_one_ends_it() {
    let rig = Rig::start();
    let mut raw = rig.raw().await;
    let mut line = String::new();
    raw.write_all(b"hello\n").await.unwrap();
    raw.read_line(&mut line).await.unwrap();
    assert!(line.contains("-32700"), "{line}");
    line.clear();
    raw.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"add\",\"params\":[5]}\n")
        .await
        .unwrap();
    raw.read_line(&mut line).await.unwrap();
    assert!(line.contains("\"result\":5"), "{line}");
    line.clear();
    // The server may close before the last of it is written.
    let _ = raw.write_all(&vec![b'x'; MAX_REQUEST + 2]).await;
    let _ = raw.read_line(&mut line).await;
    assert!(line.is_empty() || line.contains("-32600"), "{line}");
    let mut rest = Vec::new();
    let _ = raw.read_to_end(&mut rest).await;
    assert!(rest.is_empty());
    rig.tasks.end().await;
}

#[tokio::test]
async fn a_client_that_goes_ends_its_call() {
    let mut rig = Rig::start();
    let mut client = rig.client().await;
    {
        let nothing = json!({});
        let call = client.request::<Value>("wait", &nothing);
        tokio::pin!(call);
        tokio::select! {
            _ = &mut call => panic!("it never answers"),
            began = rig.waits.recv() => assert_eq!(began, Some("began")),
        }
    }
    drop(client);
    assert_eq!(rig.waits.recv().await, Some("dropped"));
    rig.tasks.end().await;
}

#[tokio::test]
async fn connections_are_bounded_and_places_are_given_back() {
    let rig = Rig::start();
    let mut held = Vec::new();
    for _ in 0..32 {
        let mut client = rig.client().await;
        client.request::<i64>("add", &[1]).await.unwrap();
        held.push(client);
    }
    let mut more = rig.client().await;
    assert!(more.request::<i64>("add", &[1]).await.is_err());
    held.pop();
    let again = async {
        loop {
            let mut client = rig.client().await;
            if client.request::<i64>("add", &[1]).await.is_ok() {
                break;
            }
        }
    };
    clock::timeout(Duration::from_secs(10), again)
        .await
        .unwrap();
    rig.tasks.end().await;
}

#[tokio::test(start_paused = true)]
async fn silence_at_first_is_not_waited_for_long() {
    let rig = Rig::start();
    let mut raw = rig.raw().await;
    let mut rest = Vec::new();
    // Time is paused and runs ahead while everyone waits.
    assert_eq!(raw.read_to_end(&mut rest).await.unwrap(), 0);
    rig.tasks.end().await;
}

#[tokio::test]
async fn a_stream_keeps_what_came_early() {
    let rig = Rig::start();
    let mut raw = rig.raw().await;
    raw.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"acp\"}\nearly\n")
        .await
        .unwrap();
    let mut line = String::new();
    raw.read_line(&mut line).await.unwrap();
    assert!(line.contains("result"), "{line}");
    line.clear();
    raw.read_line(&mut line).await.unwrap();
    assert_eq!(line, "early\n");
    raw.write_all(b"late\n").await.unwrap();
    line.clear();
    raw.read_line(&mut line).await.unwrap();
    assert_eq!(line, "late\n");
    rig.tasks.end().await;
}

#[tokio::test]
async fn where_no_daemon_runs_that_is_said() {
    let base = tempfile::tempdir().unwrap();
    let path = base.path().join("s");
    assert!(matches!(
        Client::connect(&path).await,
        Err(ControlError::NotRunning)
    ));
    // Left over by one that died.
    drop(bind(&path).unwrap());
    assert!(path.exists());
    assert!(matches!(
        Client::connect(&path).await,
        Err(ControlError::NotRunning)
    ));
    let _listener = bind(&path).unwrap();
    Client::connect(&path).await.unwrap();
}
