//! Dialling and coming back, against a server that does what instances do, and what they should
//! not.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::{BoxFuture, join_all};
use futures_util::{SinkExt as _, StreamExt as _};
use lembas::link::http::Http;
use lembas::link::instance::{Instance, InstanceFile};
use lembas::link::{Link, LinkConfig, LinkDone, LinkState, Phase, ServiceFactory};
use lembas::rpc::{Call, CloseReason, Peer, RpcError, Service};
use lembas::rt::Tasks;
use lembas::secret::Secret;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;

use super::finding::http;
use super::server::{Reply, Request, Server, Socket};

const TOKEN: &str = "token-0123456789abcdef";
const NEW: &str = "newer-0123456789abcdef";

/// A computer that is linked, on disk.
pub(super) struct Home {
    _folder: tempfile::TempDir,
    pub(super) file: InstanceFile,
}

impl Home {
    /// Linked with the instance whose link is at `<at>/link`.
    pub(super) async fn linked(at: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = InstanceFile::in_folder(&folder.path().join("config"));
        file.save(pairing(at)).await.unwrap();
        Self {
            _folder: folder,
            file,
        }
    }

    /// Starts the link.
    pub(super) fn link(&self, http: Http) -> (Linked, Arc<Services>) {
        let services = Arc::new(Services::default());
        let config = LinkConfig::new(self.file.clone(), http);
        let (link, done) = Link::start(config, Factory(Arc::clone(&services)), &Tasks::new());
        (Linked { link, done }, services)
    }
}

fn pairing(at: &str) -> Instance {
    serde_json::from_value(json!({
        "url": at.replace("ws", "http"), "instance": "i-1", "name": "home", "link": format!("{at}/link"),
        "account": {"id": "a", "name": "ana"}, "device": "0f5b", "paired_at": 1, "token": TOKEN,
    }))
    .unwrap()
}

pub(super) struct Linked {
    link: Link,
    done: LinkDone,
}

impl Linked {
    async fn until(&self, what: &str, want: impl FnMut(&LinkState) -> bool) -> LinkState {
        let mut state = self.link.state();
        let wait = Duration::from_secs(20);
        let found = tokio::time::timeout(wait, state.wait_for(want)).await;
        match found {
            Ok(state) => state.unwrap().clone(),
            Err(_) => panic!("{what} did not come: {:?}", self.link.state().borrow()),
        }
    }

    pub(super) async fn linked(&self) -> LinkState {
        self.until("linked", |state| state.phase == Phase::Linked)
            .await
    }

    async fn phase(&self, phase: Phase) -> LinkState {
        self.until("the phase", |state| state.phase == phase).await
    }

    /// Why it is offline.
    pub(super) async fn offline(&self) -> String {
        self.phase(Phase::Offline).await.reason
    }

    pub(super) async fn stop(self) {
        self.link.stop();
        self.done.wait().await;
    }
}

/// The services that were made, and how their sockets closed.
#[derive(Default)]
pub(super) struct Services {
    opened: AtomicUsize,
    closed: Mutex<Vec<CloseReason>>,
}

struct Factory(Arc<Services>);

impl ServiceFactory for Factory {
    fn open(&self, _: Peer) -> Arc<dyn Service> {
        let number = self.0.opened.fetch_add(1, Ordering::Relaxed);
        assert_eq!(
            self.0.closed.lock().len(),
            number,
            "the one before is closed first"
        );
        Arc::new(Fresh(number))
    }

    fn closed(&self, reason: &CloseReason) {
        self.0.closed.lock().push(reason.clone());
    }
}

/// A service that answers with its number.
struct Fresh(usize);

impl Service for Fresh {
    fn call(&self, _: Call) -> BoxFuture<'static, Result<Value, RpcError>> {
        let number = self.0;
        Box::pin(async move { Ok(json!(number)) })
    }

    fn notice(&self, _: &str, _: Value) {}
}

/// Does the handshake as the instance; what the service said.
pub(super) async fn initialize(socket: &mut Socket) -> Value {
    let ask = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}});
    socket.send(Message::text(ask.to_string())).await.unwrap();
    loop {
        match socket.next().await.unwrap().unwrap() {
            Message::Text(text) => {
                let answer: Value = serde_json::from_str(&text).unwrap();
                assert_eq!(answer["id"], 0);
                return answer["result"].clone();
            }
            Message::Ping(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

async fn close(socket: &mut Socket, code: u16, reason: &'static str) {
    let frame = CloseFrame {
        code: code.into(),
        reason: reason.into(),
    };
    socket.close(Some(frame)).await.unwrap();
    while let Some(Ok(_)) = socket.next().await {}
}

/// The close frame that comes.
async fn closed(socket: &mut Socket) -> (u16, String) {
    loop {
        match socket.next().await {
            Some(Ok(Message::Close(Some(frame)))) => {
                return (frame.code.into(), frame.reason.as_str().to_owned());
            }
            Some(Ok(_)) => {}
            other => panic!("no close frame: {other:?}"),
        }
    }
}

fn ws(server: &Server) -> String {
    format!("ws://{}", server.address)
}

#[tokio::test]
async fn it_dials_as_the_spec_says_and_is_linked_after_the_handshake() {
    let mut server = Server::plain(|_| Reply::Upgrade).await;
    let home = Home::linked(&ws(&server)).await;
    let (link, services) = home.link(http());
    let (request, mut socket) = server.dialled().await;
    let boot = request.header("lembas-boot").unwrap().to_owned();
    assert_eq!(boot.len(), 32);
    for (name, value) in [
        ("authorization", Some("Bearer token-0123456789abcdef")),
        ("sec-websocket-protocol", Some("lembas.link.3")),
        ("lembas-device", Some("0f5b")),
        ("lembas-take", None),
    ] {
        assert_eq!(request.header(name), value, "{name}");
    }
    link.until("dialling", |state| state.phase == Phase::Dialling)
        .await;
    assert_eq!(initialize(&mut socket).await, 0);
    let state = link.linked().await;
    assert!(state.since > 0 && state.last_linked == Some(state.since));
    link.link.stop();
    assert_eq!(closed(&mut socket).await, (1001, "stopping".into()));
    link.done.wait().await;
    assert_eq!(services.closed.lock()[0].code(), Some(1001));
    server.end().await;
}

#[tokio::test]
async fn it_comes_back_after_every_kind_of_drop_with_a_fresh_service() {
    let mut server = Server::plain(|_| Reply::Upgrade).await;
    let home = Home::linked(&ws(&server)).await;
    let (link, services) = home.link(http());
    let mut boot = None;
    for (number, drop) in [
        (0, "1012"),
        (1, "1000"),
        (2, "cut"),
        (3, "huge"),
        (4, "limits"),
        (5, ""),
    ] {
        let (request, mut socket) = server.dialled().await;
        let this = request.header("lembas-boot").unwrap().to_owned();
        assert_eq!(
            boot.get_or_insert(this.clone()),
            &this,
            "one process, one boot"
        );
        assert_eq!(initialize(&mut socket).await, number);
        link.linked().await;
        match drop {
            "1012" => close(&mut socket, 1012, "restart").await,
            "1000" => close(&mut socket, 1000, "").await,
            "huge" => {
                let ask = json!({"jsonrpc": "2.0", "id": 7, "method": "m", "params": ["x".repeat(4_300_000)]});
                socket.send(Message::text(ask.to_string())).await.unwrap();
                let answer = socket.next().await.unwrap().unwrap();
                let answer: Value = serde_json::from_str(answer.to_text().unwrap()).unwrap();
                assert_eq!(
                    (&answer["id"], &answer["error"]["code"]),
                    (&json!(7), &json!(-32600))
                );
                assert_eq!(closed(&mut socket).await, (1009, "too long".into()));
            }
            "limits" => {
                link.link.redial("a root was added");
                assert_eq!(closed(&mut socket).await, (1012, "limits".into()));
            }
            _ => std::mem::drop(socket),
        }
    }
    let codes: Vec<_> = services
        .closed
        .lock()
        .iter()
        .map(CloseReason::code)
        .collect();
    assert_eq!(
        codes[..5],
        [Some(1012), Some(1000), None, Some(1009), Some(1012)]
    );
    link.stop().await;
    server.end().await;
}

#[tokio::test]
async fn it_comes_back_when_the_server_does() {
    let server = Server::plain(|_| Reply::Upgrade).await;
    let address = server.address;
    let home = Home::linked(&ws(&server)).await;
    server.end().await;
    let (link, _services) = home.link(http());
    let reason = link.offline().await;
    assert!(
        reason.contains("cannot be reached") && reason.contains("refused"),
        "{reason}"
    );
    let mut server = Server::start(address, None, |_| Reply::Upgrade).await;
    let (_, mut socket) = server.dialled().await;
    initialize(&mut socket).await;
    link.linked().await;
    link.stop().await;
    server.end().await;
}

/// Answers the first `times` dials with `reply` and upgrades the later ones.
async fn first(times: usize, reply: impl Fn() -> Reply + Send + Sync + 'static) -> Server {
    let dials = AtomicUsize::new(0);
    Server::plain(move |_| {
        if dials.fetch_add(1, Ordering::Relaxed) < times {
            reply()
        } else {
            Reply::Upgrade
        }
    })
    .await
}

fn own(status: &'static str, more: Value) -> Reply {
    let mut body = json!({"product": "llembas", "instance": "i-1", "text": "words"});
    body.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    Reply::status(status, &body)
}

#[tokio::test]
async fn what_stops_dialling_is_taken_up_again_when_a_person_says_so() {
    let bearer = "www-authenticate: Bearer error=\"invalid_token\"";
    let revoked = move || own("401 Unauthorized", json!({"reason": "revoked"})).with(bearer);
    let held = || {
        own(
            "409 Conflict",
            json!({"reason": "held", "holder": {"address": "10.0.0.7"}}),
        )
    };
    let version = || own("426 Upgrade Required", json!({"protocol": 4}));
    for (mut server, phase, words) in [
        (
            first(1, revoked).await,
            Phase::Revoked,
            "Linked no more: run lembas link <url>",
        ),
        (first(1, held).await, Phase::Replaced, "10.0.0.7"),
        (
            first(1, version).await,
            Phase::Version,
            "update lembas on this computer",
        ),
    ] {
        let home = Home::linked(&ws(&server)).await;
        let (link, _services) = home.link(http());
        let state = link.phase(phase).await;
        assert!(state.reason.contains(words), "{}", state.reason);
        if phase == Phase::Replaced {
            assert_eq!(state.next_try, None);
            link.link.take();
        } else {
            assert!(state.next_try.is_some(), "a slow look goes on");
            link.link.reload();
        }
        let (request, mut socket) = server.dialled().await;
        let take = (phase == Phase::Replaced).then_some("1");
        assert_eq!(request.header("lembas-take"), take);
        initialize(&mut socket).await;
        link.linked().await;
        link.stop().await;
        server.end().await;
    }
}

#[tokio::test]
async fn anybody_elses_refusal_is_a_failed_dial() {
    let replies: [fn() -> Reply; 5] = [
        || Reply::status("401 Unauthorized", &json!({"product": "proxy"})),
        || {
            Reply::Http(
                "403 Forbidden",
                vec!["server: portal".into()],
                "<html>".into(),
            )
        },
        || Reply::Http("200 OK", vec![], String::new()),
        || Reply::Nothing,
        || Reply::Http("500 Oops", vec!["retry-after: 100".into()], String::new()),
    ];
    let cases = replies.map(|reply| async move {
        let mut server = first(1, reply).await;
        let home = Home::linked(&ws(&server)).await;
        let (link, _services) = home.link(http());
        let (_, mut socket) = server.dialled().await;
        initialize(&mut socket).await;
        link.linked().await;
        link.stop().await;
        server.end().await;
    });
    join_all(cases).await;
}

#[tokio::test]
async fn a_wait_that_is_asked_for_is_obeyed() {
    let later = || own("503 Service Unavailable", json!({})).with("retry-after: 600");
    let mut server = first(1, later).await;
    let home = Home::linked(&ws(&server)).await;
    let (link, _services) = home.link(http());
    let state = link.phase(Phase::Offline).await;
    let wait = state.next_try.unwrap() - state.since;
    assert!((599_000..=661_000).contains(&wait), "{wait}");
    link.link.retry();
    let (_, mut socket) = server.dialled().await;
    initialize(&mut socket).await;
    close(&mut socket, 1013, "retry_after=600").await;
    let state = link
        .until("the wait", |state| state.next_try.is_some())
        .await;
    assert_eq!(state.phase, Phase::Offline);
    link.stop().await;
    server.end().await;
}

#[tokio::test]
async fn a_successor_of_the_token_is_used_at_the_next_dial_and_then_is_the_token() {
    let mut server = Server::plain(|_| Reply::Upgrade).await;
    let home = Home::linked(&ws(&server)).await;
    let (link, _services) = home.link(http());
    let (_, mut socket) = server.dialled().await;
    initialize(&mut socket).await;
    home.file.succeed(Secret::new(NEW)).await.unwrap();
    link.linked().await;
    link.link.redial("test");
    closed(&mut socket).await;
    let (request, mut socket) = server.dialled().await;
    assert_eq!(
        request.header("authorization").unwrap(),
        format!("Bearer {NEW}")
    );
    initialize(&mut socket).await;
    link.linked().await;
    let there = home.file.load().await.unwrap().unwrap();
    assert_eq!((there.token.reveal(), &there.successor), (NEW, &None));
    link.stop().await;
    server.end().await;
}

#[tokio::test]
async fn a_successor_that_the_instance_does_not_know_gives_way_to_the_token() {
    let answer = |request: &Request| {
        if request.header("authorization") == Some("Bearer token-0123456789abcdef") {
            return Reply::Upgrade;
        }
        let bearer = "www-authenticate: Bearer error=\"invalid_token\"";
        own("401 Unauthorized", json!({"reason": "unknown"})).with(bearer)
    };
    let mut server = Server::plain(answer).await;
    let home = Home::linked(&ws(&server)).await;
    home.file.succeed(Secret::new(NEW)).await.unwrap();
    let (link, _services) = home.link(http());
    let (_, mut socket) = server.dialled().await;
    initialize(&mut socket).await;
    link.linked().await;
    assert_eq!(home.file.token().unwrap().reveal(), TOKEN);
    link.stop().await;
    server.end().await;
}

#[tokio::test]
async fn unlinking_and_linking_anew_are_noticed() {
    let mut server = Server::plain(|_| Reply::Upgrade).await;
    let home = Home::linked(&ws(&server)).await;
    let pairing = (*home.file.held().unwrap()).clone();
    home.file.forget().await.unwrap();
    let (link, services) = home.link(http());
    link.until("never", |state| !state.reason.is_empty()).await;
    assert_eq!(link.link.state().borrow().phase, Phase::Never);
    home.file.save(pairing.clone()).await.unwrap();
    link.link.reload();
    let (_, mut socket) = server.dialled().await;
    initialize(&mut socket).await;
    link.linked().await;
    // The same pairing again is no news for a link that is up.
    link.link.reload();
    let other = Instance {
        paired_at: 2,
        ..pairing
    };
    home.file.save(other).await.unwrap();
    link.link.reload();
    assert_eq!(closed(&mut socket).await, (1000, "paired".into()));
    let (_, mut socket) = server.dialled().await;
    initialize(&mut socket).await;
    link.linked().await;
    home.file.forget().await.unwrap();
    link.link.reload();
    assert_eq!(closed(&mut socket).await, (1000, "unlinked".into()));
    link.phase(Phase::Never).await;
    assert_eq!(services.opened.load(Ordering::Relaxed), 2);
    link.stop().await;
    server.end().await;
}

#[tokio::test]
async fn a_token_never_goes_over_plain_http_to_another_computer() {
    let home = Home::linked("ws://192.0.2.1").await;
    let (link, _services) = home.link(http());
    let reason = link.offline().await;
    assert!(reason.contains("is not encrypted"), "{reason}");
    link.stop().await;
}
