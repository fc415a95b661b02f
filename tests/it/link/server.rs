//! A server that answers each request as the test says, and can upgrade to a WebSocket.

use std::sync::Arc;

use lembas::rt::Tasks;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;

pub(crate) trait Io: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Io for S {}

pub(crate) type Socket = WebSocketStream<Box<dyn Io>>;

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    lines: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let line = self.lines.iter().find(|(other, _)| other == name);
        line.map(|(_, value)| value.as_str())
    }

    /// A field of a form.
    pub(crate) fn field(&self, name: &str) -> Option<String> {
        let base = reqwest::Url::parse(&format!("http://x/?{}", self.body)).unwrap();
        let mut pairs = base.query_pairs();
        pairs
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.into_owned())
    }
}

/// What a request is answered with.
pub(crate) enum Reply {
    /// Status line, header lines, body.
    Http(&'static str, Vec<String>, String),
    /// 101, and the socket goes to the test.
    Upgrade,
    /// 200, then the connection is joined to this address: what a proxy does.
    Tunnel(std::net::SocketAddr),
    /// The connection is closed without a word.
    Nothing,
}

impl Reply {
    pub(crate) fn json(value: &serde_json::Value) -> Self {
        Self::status("200 OK", value)
    }

    pub(crate) fn status(status: &'static str, value: &serde_json::Value) -> Self {
        let kind = "content-type: application/json".to_owned();
        Self::Http(status, vec![kind], value.to_string())
    }

    /// The same with one more header line.
    pub(crate) fn with(self, line: &str) -> Self {
        match self {
            Self::Http(status, mut lines, body) => {
                lines.push(line.to_owned());
                Self::Http(status, lines, body)
            }
            other => other,
        }
    }
}

type Answer = dyn Fn(&Request) -> Reply + Send + Sync;

pub(crate) struct Server {
    pub(crate) address: std::net::SocketAddr,
    /// Upgraded sockets, in the order of their dials, with the request of each.
    pub(crate) sockets: mpsc::Receiver<(Request, Socket)>,
    tasks: Tasks,
}

impl Server {
    pub(crate) async fn plain(answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        Self::start("127.0.0.1:0".parse().unwrap(), None, answer).await
    }

    pub(crate) async fn start(
        at: std::net::SocketAddr,
        tls: Option<TlsAcceptor>,
        answer: impl Fn(&Request) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(at).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (give, sockets) = mpsc::channel(64);
        let tasks = Tasks::new();
        let answer: Arc<Answer> = Arc::new(answer);
        let connections = tasks.clone();
        tasks.spawn("test server", async move {
            let stop = connections.stop().clone();
            loop {
                let (tcp, _) = tokio::select! {
                    accepted = listener.accept() => accepted.unwrap(),
                    () = stop.cancelled() => return,
                };
                tcp.set_nodelay(true).unwrap();
                let (tls, answer, give) = (tls.clone(), Arc::clone(&answer), give.clone());
                let stop = stop.clone();
                connections.spawn("test connection", async move {
                    let serve = async {
                        let stream: Box<dyn Io> = match tls {
                            None => Box::new(tcp),
                            Some(tls) => match tls.accept(tcp).await {
                                Ok(stream) => Box::new(stream),
                                // The client does not trust us; the test looks at the client.
                                Err(_) => return,
                            },
                        };
                        serve(stream, &*answer, &give).await;
                    };
                    tokio::select! {
                        () = serve => {}
                        () = stop.cancelled() => {}
                    }
                });
            }
        });
        Self {
            address,
            sockets,
            tasks,
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The next dial.
    pub(crate) async fn dialled(&mut self) -> (Request, Socket) {
        let wait = std::time::Duration::from_secs(20);
        let dialled = tokio::time::timeout(wait, self.sockets.recv()).await;
        dialled.expect("a dial comes").expect("the server runs")
    }

    /// Stops to listen and lets every connection go.
    pub(crate) async fn end(self) {
        self.tasks.end().await;
    }
}

async fn serve(mut stream: Box<dyn Io>, answer: &Answer, give: &mpsc::Sender<(Request, Socket)>) {
    while let Some(request) = read(&mut stream).await {
        match answer(&request) {
            Reply::Http(status, lines, body) => {
                let lines: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
                let length = body.len();
                let text =
                    format!("HTTP/1.1 {status}\r\n{lines}content-length: {length}\r\n\r\n{body}");
                if stream.write_all(text.as_bytes()).await.is_err() {
                    return;
                }
            }
            Reply::Upgrade => {
                let key = request.header("sec-websocket-key").unwrap().to_owned();
                let accept = derive_accept_key(key.as_bytes());
                let text = format!(
                    "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\n\
                     sec-websocket-accept: {accept}\r\nsec-websocket-protocol: lembas.link.3\r\n\r\n"
                );
                stream.write_all(text.as_bytes()).await.unwrap();
                let socket = WebSocketStream::from_raw_socket(stream, Role::Server, None).await;
                // The test may be over.
                let _ = give.send((request, socket)).await;
                return;
            }
            Reply::Tunnel(to) => {
                let mut far = tokio::net::TcpStream::connect(to).await.unwrap();
                stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
                // Its end is the end of either side.
                let _ = tokio::io::copy_bidirectional(&mut stream, &mut far).await;
                return;
            }
            Reply::Nothing => return,
        }
    }
}

async fn read(stream: &mut Box<dyn Io>) -> Option<Request> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let mut body = bytes.split_off(end + 4);
    let mut lines = head.split("\r\n");
    let mut first = lines.next()?.split(' ');
    let mut request = Request {
        method: first.next()?.into(),
        path: first.next()?.into(),
        lines: lines
            .map(|line| line.split_once(": ").unwrap())
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect(),
        body: String::new(),
    };
    let length = request
        .header("content-length")
        .map_or(0, |text| text.parse().unwrap());
    while body.len() < length {
        if stream.read_buf(&mut body).await.ok()? == 0 {
            return None;
        }
    }
    request.body = String::from_utf8(body).unwrap();
    Some(request)
}

/// A certificate authority of the test's, as PEM, and a server's TLS with a certificate of its for
/// `localhost` and 127.0.0.1.
pub(crate) struct Tls {
    pub(crate) authority: String,
    pub(crate) certificate: Vec<u8>,
    pub(crate) acceptor: TlsAcceptor,
}

impl Tls {
    pub(crate) fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = params.self_signed(&key).unwrap().pem();
        let issuer = Issuer::new(params, key);
        let key = KeyPair::generate().unwrap();
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let certificate = CertificateParams::new(names)
            .unwrap()
            .signed_by(&key, &issuer)
            .unwrap();
        let chain = vec![CertificateDer::from(certificate.der().to_vec())];
        let private = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, private)
            .unwrap();
        Self {
            authority,
            certificate: certificate.der().to_vec(),
            acceptor: TlsAcceptor::from(Arc::new(config)),
        }
    }
}
