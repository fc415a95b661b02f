//! The daemon's end of the control socket.

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use futures_util::{SinkExt as _, StreamExt as _};
use jsonrpsee_core::server::Methods;
use jsonrpsee_types::{ErrorCode, ErrorObject, Id, Request, Response, ResponsePayload};
use serde_json::value::RawValue;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio_util::codec::{Framed, LinesCodec, LinesCodecError};

use super::{MAX_REQUEST, STREAM_ACP, check_peer};
use crate::clock;
use crate::rt::Tasks;

/// Connections at once; one more is closed without an answer.
const CONNECTIONS: usize = 32;
/// A connection that says nothing at first is closed after this.
const FIRST: Duration = Duration::from_secs(10);

/// What a connection turns into when it asks for the stream `acp`.
pub trait Streams: Send + Sync + 'static {
    /// Serves the connection until it closes. `early` came in before the turn.
    fn acp(
        &self,
        stream: UnixStream,
        early: BytesMut,
    ) -> futures_util::future::BoxFuture<'static, ()>;
}

/// Binds the socket. The caller holds the store's lock, so whatever is there is left over.
pub fn bind(path: &Path) -> io::Result<UnixListener> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Takes connections until the tasks are told to end.
pub fn serve(listener: UnixListener, methods: Methods, streams: Arc<dyn Streams>, tasks: &Tasks) {
    let children = tasks.clone();
    let stop = tasks.stop().clone();
    tasks.spawn("control", async move {
        let places = Arc::new(Semaphore::new(CONNECTIONS));
        loop {
            let stream = tokio::select! {
                () = stop.cancelled() => return,
                taken = listener.accept() => match taken {
                    Ok((stream, _)) => stream,
                    Err(error) => {
                        // Out of file handles, mostly: others must end first.
                        tracing::warn!(%error, "the control socket could not take a connection");
                        clock::sleep(Duration::from_millis(100)).await;
                        continue;
                    }
                },
            };
            if let Err(error) = check_peer(&stream) {
                tracing::warn!(%error, "a connection to the control socket was refused");
                continue;
            }
            let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
                tracing::warn!("too many connections to the control socket: one was closed");
                continue;
            };
            let (methods, streams) = (methods.clone(), Arc::clone(&streams));
            let stop = children.stop().clone();
            children.spawn("control connection", async move {
                let _place = place;
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = connection(stream, &methods, &*streams) => {}
                }
            });
        }
    });
}

type Lines = Framed<UnixStream, LinesCodec>;

async fn connection(stream: UnixStream, methods: &Methods, streams: &dyn Streams) {
    let mut lines = Framed::new(stream, LinesCodec::new_with_max_length(MAX_REQUEST));
    let Ok(mut next) = clock::timeout(FIRST, lines.next()).await else {
        return;
    };
    loop {
        let line = match next {
            Some(Ok(line)) => line,
            Some(Err(LinesCodecError::MaxLineLengthExceeded)) => {
                let error = ErrorObject::owned(-32600, "the request is too long", None::<()>);
                // The connection ends either way.
                let _ = lines.send(answer(Id::Null, error)).await;
                return;
            }
            Some(Err(_)) | None => return,
        };
        let Ok(request) = serde_json::from_str::<Request<'_>>(&line) else {
            let error = ErrorObject::from(ErrorCode::ParseError);
            if lines.send(answer(Id::Null, error)).await.is_err() {
                return;
            }
            next = lines.next().await;
            continue;
        };
        if request.method == STREAM_ACP {
            let ok = ResponsePayload::success(serde_json::json!({}));
            let text = serde_json::to_string(&Response::new(ok, request.id)).unwrap_or_default();
            if lines.send(text).await.is_ok() {
                let parts = lines.into_parts();
                streams.acp(parts.io, parts.read_buf).await;
            }
            return;
        }
        let Some(after) = one(&mut lines, methods, &line).await else {
            return;
        };
        next = match after {
            After::Heard(next) => next,
            After::Nothing => lines.next().await,
        };
    }
}

enum After {
    /// What came while the call ran.
    Heard(Option<Result<String, LinesCodecError>>),
    Nothing,
}

/// Runs one call and sends its answer. A client that closes meanwhile ends the call.
async fn one(lines: &mut Lines, methods: &Methods, line: &str) -> Option<After> {
    // One message beside the answer has room; the table has no subscriptions.
    let call = methods.raw_json_request(line, 1);
    tokio::pin!(call);
    let mut after = After::Nothing;
    let answered: Option<Box<RawValue>> = loop {
        let waiting = matches!(after, After::Nothing);
        tokio::select! {
            done = &mut call => break done.ok().map(|(answer, _)| answer),
            // At most one further request is read; more wait in the socket.
            heard = lines.next(), if waiting => match heard {
                Some(Ok(line)) => after = After::Heard(Some(Ok(line))),
                Some(Err(_)) | None => return None,
            },
        }
    };
    if let Some(answer) = answered {
        lines.send(answer.get().to_owned()).await.ok()?;
    }
    Some(after)
}

fn answer(id: Id<'_>, error: ErrorObject<'_>) -> String {
    let payload = ResponsePayload::<()>::error(error.into_owned());
    serde_json::to_string(&Response::new(payload, id)).unwrap_or_default()
}
