//! One connection: how many there may be, how long each part of it may take, and when it is given
//! up. Streams, downloads and links are never cut for being long: a connection ends when nothing
//! is asked on it any more, or when its other end takes nothing.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use futures_util::future::BoxFuture;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use hyper::service::Service as _;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::Remote;
use crate::clock::{Instant, instant, sleep};

/// Connections of one address at once, where no reverse proxy stands before us. A further one is
/// told so and closed: a browser has a handful, a whole house behind one address some dozens.
const EACH: usize = 256;
/// How long the head of a request may take, the first one from the connection's begin on.
const HEAD_WAIT: Duration = Duration::from_secs(15);
/// A connection on which nothing is asked is closed after this.
const IDLE: Duration = Duration::from_secs(120);
/// One whose other end takes nothing of what is sent to it is closed after this.
const STUCK: Duration = Duration::from_secs(60);
/// How often that is looked at.
const LOOK: Duration = Duration::from_secs(5);
/// A body may take this long at first, and then as long as so many bytes a second take. One that
/// comes slower is answered 408.
const BODY_WAIT: Duration = Duration::from_secs(30);
const BODY_RATE: u64 = 16 * 1024;

/// Who has how many connections.
#[derive(Debug, Default)]
pub(super) struct Places {
    taken: Mutex<HashMap<IpAddr, usize>>,
}

/// A place of an address, free again when it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    places: Arc<Places>,
    of: Option<IpAddr>,
}

impl Places {
    /// A place for a connection from there; none when that address has as many as one may have.
    /// Behind a reverse proxy all come from one address: nothing is counted then.
    pub(super) fn take(self: &Arc<Self>, ip: IpAddr, proxied: bool) -> Option<Place> {
        let of = (!(proxied && ip.is_loopback())).then(|| network(ip));
        if let Some(of) = of {
            let mut taken = self.taken.lock();
            let count = taken.entry(of).or_default();
            if *count >= EACH {
                return None;
            }
            *count += 1;
        }
        Some(Place {
            places: Arc::clone(self),
            of,
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Some(of) = self.of else { return };
        let mut taken = self.places.taken.lock();
        if let Some(count) = taken.get_mut(&of) {
            *count -= 1;
            if *count == 0 {
                taken.remove(&of);
            }
        }
    }
}

/// What counts as one address: of IPv6 the network, of which each customer has a whole one.
fn network(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & (u128::MAX << 64)).into(),
        v4 => v4,
    }
}

/// What a connection too many hears, where there is no TLS to say it in.
pub(super) const FULL: &str = "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\n\
retry-after: 5\r\nconnection: close\r\n\r\n{\"error\":{\"code\":\"too_many\",\"text\":\"There are too \
many connections from this address.\",\"try\":\"Close some, then try again.\"}}\n";

/// What is going on on one connection.
struct Activity {
    now: Mutex<Now>,
}

struct Now {
    asked: bool,
    /// Requests that are answered, until the last byte of their answer is on its way.
    running: usize,
    /// Since when none is.
    idle: Instant,
    /// Since when the other end takes nothing.
    stuck: Option<Instant>,
}

impl Activity {
    fn new() -> Self {
        Self {
            now: Mutex::new(Now {
                asked: false,
                running: 0,
                idle: instant(),
                stuck: None,
            }),
        }
    }

    fn begins(self: &Arc<Self>) -> Running {
        let mut now = self.now.lock();
        now.asked = true;
        now.running += 1;
        Running(Arc::clone(self))
    }

    /// Ends when the connection is of no use.
    async fn useless(&self) -> &'static str {
        loop {
            {
                let now = self.now.lock();
                let wait = if now.asked { IDLE } else { HEAD_WAIT };
                if now.running == 0 && now.idle.elapsed() >= wait {
                    return "nothing was asked on it";
                }
                if now.stuck.is_some_and(|since| since.elapsed() >= STUCK) {
                    return "its other end takes nothing";
                }
            }
            sleep(LOOK).await;
        }
    }
}

/// One request that is answered.
struct Running(Arc<Activity>);

impl Drop for Running {
    fn drop(&mut self) {
        let mut now = self.0.now.lock();
        now.running -= 1;
        now.idle = instant();
    }
}

/// A stream of bytes of which is known whether its other end takes what is written.
struct Watched<S> {
    io: S,
    activity: Arc<Activity>,
}

impl<S> Watched<S> {
    fn wrote<T>(&self, poll: Poll<T>) -> Poll<T> {
        let mut now = self.activity.now.lock();
        match poll {
            Poll::Pending => {
                now.stuck.get_or_insert_with(instant);
            }
            Poll::Ready(_) => now.stuck = None,
        }
        poll
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        let poll = Pin::new(&mut self.io).poll_write(cx, bytes);
        self.wrote(poll)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        let poll = Pin::new(&mut self.io).poll_write_vectored(cx, parts);
        self.wrote(poll)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        let poll = Pin::new(&mut self.io).poll_flush(cx);
        self.wrote(poll)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

/// An answer's body, with the request that it belongs to.
struct Answer {
    body: Body,
    _running: Running,
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Serves one connection until it ends, or is of no use any more.
pub(super) async fn serve<S>(stream: S, router: Router, remote: Remote)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let activity = Arc::new(Activity::new());
    let io = TokioIo::new(Watched {
        io: stream,
        activity: Arc::clone(&activity),
    });
    let inner = TowerToHyperService::new(router);
    let asked = Arc::clone(&activity);
    let service = hyper::service::service_fn(move |mut request: hyper::Request<_>| {
        request.extensions_mut().insert(remote);
        let running = asked.begins();
        let answer = inner.call(request);
        async move {
            let wrap = |body| Answer {
                body,
                _running: running,
            };
            answer.await.map(|response| response.map(wrap))
        }
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
    tokio::select! {
        ended = server.serve_connection_with_upgrades(io, service) => {
            if let Err(error) = ended {
                tracing::debug!(%error, "a connection ended early");
            }
        }
        why = activity.useless() => tracing::debug!(why, "a connection was closed"),
    }
}

/// A request's body that may not take for ever.
struct Paced {
    body: Body,
    since: Option<Instant>,
    got: u64,
    timer: Option<BoxFuture<'static, ()>>,
    late: Arc<AtomicBool>,
}

#[derive(Debug, thiserror::Error)]
#[error("the body came too slowly")]
struct TooSlow;

impl HttpBody for Paced {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) {
            if let Some(Ok(frame)) = &frame {
                let more = frame.data_ref().map_or(0, Bytes::len);
                self.got += u64::try_from(more).unwrap_or(u64::MAX);
            }
            return Poll::Ready(frame);
        }
        let since = *self.since.get_or_insert_with(instant);
        loop {
            let allowed = BODY_WAIT + Duration::from_secs(self.got / BODY_RATE);
            let taken = since.elapsed();
            if taken >= allowed {
                self.late.store(true, Ordering::Relaxed);
                return Poll::Ready(Some(Err(axum::Error::new(TooSlow))));
            }
            let timer = self
                .timer
                .get_or_insert_with(|| Box::pin(sleep(allowed - taken)));
            ready!(timer.as_mut().poll(cx));
            self.timer = None;
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A body with its time limit, and whether that was reached.
pub(super) fn paced(body: Body) -> (Body, Arc<AtomicBool>) {
    let late = Arc::new(AtomicBool::new(false));
    let paced = Paced {
        body,
        since: None,
        got: 0,
        timer: None,
        late: Arc::clone(&late),
    };
    (Body::new(paced), late)
}

#[cfg(test)]
mod tests;
