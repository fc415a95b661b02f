//! The front: connections, what every request must pass, and the table of addresses.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use hyper::service::Service as _;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;

use super::error::ApiError;
use super::{Shared, api, link, oauth, pages, v1};
use crate::clock::timeout;
use crate::rt::Tasks;

/// Connections at once. A further one waits in the system's queue until one ends.
const MAX_CONNECTIONS: usize = 4096;
/// How long a connection may take to say its TLS hello.
const TLS_WAIT: Duration = Duration::from_secs(10);
/// How long the head of a request may take.
const HEAD_WAIT: Duration = Duration::from_secs(15);
/// Bytes of a request's body where nothing else is said; more is answered 413.
const BODY: usize = 1024 * 1024;

/// Files of a certificate chain and its key, PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    pub cert: PathBuf,
    pub key: PathBuf,
}

/// Who dialled: put on every request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Remote(pub(crate) SocketAddr);

impl Remote {
    /// The address alone, for tables and for people.
    pub(crate) fn words(self) -> String {
        self.0.ip().to_string()
    }
}

/// Accepts until the tasks end, then lets what runs finish for a moment.
pub(super) async fn run(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    router: Router,
    tasks: Tasks,
) {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            break;
        };
        let accepted = tokio::select! {
            () = tasks.stop().cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        let (stream, remote) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Out of file descriptors, or a connection that was gone at once.
                tracing::warn!(%error, "could not accept a connection");
                crate::clock::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let (tls, router, stop) = (tls.clone(), router.clone(), tasks.stop().clone());
        tasks.spawn("hub connection", async move {
            let serve = connection(stream, tls, router, Remote(remote));
            tokio::select! {
                () = serve => {}
                // Streams and links end when we do.
                () = async { stop.cancelled().await; crate::clock::sleep(Duration::from_millis(300)).await; } => {}
            }
            drop(place);
        });
    }
    tasks.end().await;
}

async fn connection(stream: TcpStream, tls: Option<TlsAcceptor>, router: Router, remote: Remote) {
    let _kept = stream.set_nodelay(true);
    match tls {
        None => http(stream, router, remote).await,
        Some(tls) => {
            if let Ok(Ok(stream)) = timeout(TLS_WAIT, tls.accept(stream)).await {
                http(stream, router, remote).await;
            }
        }
    }
}

async fn http<S>(stream: S, router: Router, remote: Remote)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let inner = TowerToHyperService::new(router);
    let service = hyper::service::service_fn(move |mut request: hyper::Request<_>| {
        request.extensions_mut().insert(remote);
        inner.call(request)
    });
    let mut server = auto::Builder::new(TokioExecutor::new());
    server
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WAIT)
        .max_buf_size(64 * 1024);
    server
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(Duration::from_secs(20))
        .keep_alive_timeout(Duration::from_secs(20))
        .max_concurrent_streams(128)
        .max_header_list_size(32 * 1024);
    if let Err(error) = server
        .serve_connection_with_upgrades(TokioIo::new(stream), service)
        .await
    {
        tracing::debug!(%error, "a connection ended early");
    }
}

/// All addresses.
pub(super) fn router(shared: &Arc<Shared>) -> Router {
    Router::new()
        .nest("/api/v2", api::routes(shared))
        .nest("/v1", v1::routes())
        .merge(oauth::routes())
        .merge(link::routes())
        .merge(pages::routes())
        .layer(DefaultBodyLimit::max(BODY))
        .layer(from_fn_with_state(Arc::clone(shared), guard))
        .with_state(Arc::clone(shared))
}

/// What every request passes: on loopback the `Host` must be ours (a page elsewhere whose name was
/// pointed at this computer is refused), and every answer carries the same careful headers.
async fn guard(State(shared): State<Arc<Shared>>, mut request: Request, next: Next) -> Response {
    if let Some(Remote(from)) = request.extensions().get::<Remote>().copied()
        && let Some(real) = behind_proxy(&shared, from, request.headers())
    {
        request.extensions_mut().insert(Remote(real));
    }
    let host = request
        .uri()
        .authority()
        .map(ToString::to_string)
        .or_else(|| {
            let host = request.headers().get(header::HOST)?;
            host.to_str().ok().map(str::to_owned)
        })
        .unwrap_or_default();
    let mut response = if host_is_ours(&shared, &host) {
        next.run(request).await
    } else {
        ApiError::new(
            StatusCode::MISDIRECTED_REQUEST,
            "wrong_host",
            "This instance does not answer under that name.",
        )
        .next(format!("Open {}", shared.facts.url))
        .into_response()
    };
    let headers = response.headers_mut();
    for (name, value) in CAREFUL {
        headers
            .entry(HeaderName::from_static(name))
            .or_insert(HeaderValue::from_static(value));
    }
    if shared.facts.secure {
        headers.insert(
            header::STRICT_TRANSPORT_SECURITY,
            HeaderValue::from_static("max-age=15552000"),
        );
    }
    response
}

/// Who dialled a reverse proxy on this computer: the last address it names is the one that it saw
/// itself. Believed only where an address of our own was configured, which is what a proxy needs.
fn behind_proxy(shared: &Shared, from: SocketAddr, headers: &HeaderMap) -> Option<SocketAddr> {
    if !shared.facts.proxied || !from.ip().is_loopback() {
        return None;
    }
    let named = headers.get_all("x-forwarded-for").iter().next_back()?;
    let last = named.to_str().ok()?.rsplit(',').next()?.trim();
    let ip: std::net::IpAddr = last.trim_matches(['[', ']']).parse().ok()?;
    Some(SocketAddr::new(ip, from.port()))
}

const CAREFUL: [(&str, &str); 6] = [
    (
        "content-security-policy",
        "default-src 'self'; img-src 'self' data: blob:; object-src 'none'; base-uri 'none'; \
         form-action 'self'; frame-ancestors 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cache-control", "no-store"),
];

fn host_is_ours(shared: &Shared, host: &str) -> bool {
    if own_authority(&shared.facts.url).is_some_and(|own| own.eq_ignore_ascii_case(host)) {
        return true;
    }
    let addr = shared.facts.addr;
    if !addr.ip().is_loopback() {
        return true;
    }
    let port = addr.port();
    ["127.0.0.1", "localhost", "[::1]"].iter().any(|name| {
        host.eq_ignore_ascii_case(&format!("{name}:{port}"))
            || (port == 80 && host.eq_ignore_ascii_case(name))
    })
}

/// `host:port` of an address.
pub(super) fn own_authority(url: &str) -> Option<&str> {
    url.split_once("://").map(|(_, rest)| {
        rest.split_once('/')
            .map_or(rest, |(authority, _)| authority)
    })
}

/// Whether a request that changes something was made by our own page: browsers set `Origin`
/// themselves, and other sites cannot set our header.
pub(super) fn from_own_page(shared: &Shared, request: &Request) -> bool {
    if matches!(*request.method(), Method::GET | Method::HEAD) {
        return true;
    }
    let headers = request.headers();
    let text = |name: &HeaderName| headers.get(name).and_then(|v| v.to_str().ok());
    let asked = headers
        .get("x-lembas")
        .is_some_and(|v| v.as_bytes() == b"1");
    let host = request
        .uri()
        .authority()
        .map(axum::http::uri::Authority::as_str)
        .or_else(|| text(&header::HOST));
    let Some(origin) = text(&header::ORIGIN) else {
        return false;
    };
    let own = origin == shared.facts.url
        || (own_authority(origin) == host && host.is_some_and(|h| host_is_ours(shared, h)));
    asked && own
}
