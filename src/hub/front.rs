//! The front: connections, what every request must pass, and the table of addresses.

mod conn;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
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
    proxied: bool,
    tasks: Tasks,
) {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let each = Arc::new(conn::Places::default());
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
        let Some(own) = each.take(remote.ip(), proxied) else {
            if tls.is_none() {
                let _as_far_as_it_takes = stream.try_write(conn::FULL.as_bytes());
            }
            tracing::debug!(%remote, "too many connections of one address");
            continue;
        };
        let (tls, router, stop) = (tls.clone(), router.clone(), tasks.stop().clone());
        tasks.spawn("hub connection", async move {
            let serve = connection(stream, tls, router, Remote(remote));
            tokio::select! {
                () = serve => {}
                // Streams and links end when we do.
                () = async { stop.cancelled().await; crate::clock::sleep(Duration::from_millis(300)).await; } => {}
            }
            drop((own, place));
        });
    }
    tasks.end().await;
}

async fn connection(stream: TcpStream, tls: Option<TlsAcceptor>, router: Router, remote: Remote) {
    let _kept = stream.set_nodelay(true);
    match tls {
        None => conn::serve(stream, router, remote).await,
        Some(tls) => {
            if let Ok(Ok(stream)) = timeout(TLS_WAIT, tls.accept(stream)).await {
                conn::serve(stream, router, remote).await;
            }
        }
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
    let host = asked(request.uri(), request.headers()).to_owned();
    let (parts, body) = request.into_parts();
    let (body, late) = conn::paced(body);
    let request = Request::from_parts(parts, body);
    let mut response = if host_is_ours(&shared, &host) {
        let response = next.run(request).await;
        if late.load(Ordering::Relaxed) {
            slow_body()
        } else {
            response
        }
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

/// A body that did not come in its time: the connection has what is left of it, and goes.
fn slow_body() -> Response {
    let mut response = ApiError::new(
        StatusCode::REQUEST_TIMEOUT,
        "slow_body",
        "The request's body came too slowly, and nothing was done.",
    )
    .into_response();
    let close = HeaderValue::from_static("close");
    response.headers_mut().insert(header::CONNECTION, close);
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

/// The host that a request is for, as it says.
fn asked<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> &'a str {
    let named = || headers.get(header::HOST)?.to_str().ok();
    uri.authority()
        .map(Authority::as_str)
        .or_else(named)
        .unwrap_or_default()
}

/// The base address for whoever asks: our own, or where we listen on every address and no name
/// was configured, the one that reached us. A computer takes only addresses of the origin that it
/// asked, so a made-up name here leads nobody astray but who made it up.
pub(super) fn base(shared: &Shared, uri: &Uri, headers: &HeaderMap) -> String {
    let facts = &shared.facts;
    if facts.proxied || !facts.addr.ip().is_unspecified() {
        return facts.url.clone();
    }
    at_host(&facts.url, asked(uri, headers))
}

/// An address with another host, where that is one.
fn at_host(url: &str, host: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b".-:[]".contains(&b);
    match url.split_once("://") {
        Some((scheme, _)) if (1..=255).contains(&host.len()) && host.bytes().all(plain) => {
            format!("{scheme}://{host}")
        }
        _ => url.to_owned(),
    }
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
        .map(Authority::as_str)
        .or_else(|| text(&header::HOST));
    let Some(origin) = text(&header::ORIGIN) else {
        return false;
    };
    let own = origin == shared.facts.url
        || (own_authority(origin) == host && host.is_some_and(|h| host_is_ours(shared, h)));
    asked && own
}

#[cfg(test)]
mod tests {
    use super::at_host;

    #[test]
    fn an_address_for_everywhere_is_said_with_the_name_that_was_asked_for() {
        let all = "https://0.0.0.0:8443";
        assert_eq!(at_host(all, "box.example:8443"), "https://box.example:8443");
        assert_eq!(
            at_host(all, "[2001:db8::1]:8443"),
            "https://[2001:db8::1]:8443"
        );
        for no_host in ["", "a/b", "u@h", "a b", "é"] {
            assert_eq!(at_host(all, no_host), all);
        }
    }
}
