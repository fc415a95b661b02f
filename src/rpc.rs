//! A symmetric JSON-RPC 2.0 peer: either side asks, either side answers.
//!
//! It knows no method names but `$/cancel_request`. What a socket or a pipe carries comes in as
//! [`Frames`]; what the other side asks for goes to a [`Service`]. Order on the wire is kept:
//! a notification that was sent before an answer is heard before it, in both directions.
//!
//! Not here: sockets and pings' wire form (`link::ws`), the methods (`acp`, `hub`).

mod core;
mod drive;
mod error;
mod frames;
mod limits;
pub mod lines;
mod message;
#[cfg(any(test, feature = "testing"))]
pub mod pair;
mod peer;

use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

pub use error::{CallError, CloseReason, Closed, RpcError};
pub use frames::{Frames, Incoming, Outgoing, Sink, Source};
pub use limits::{Keepalive, Limits};
pub use message::Id;
pub use peer::{Peer, PeerDone};

/// Starts a peer over `frames`: `service` gets what the other side asks and says.
///
/// The peer's tasks, and one for each incoming call, are children of `tasks`. When `tasks` is told
/// to end, the peer closes with 1001. Dropping every handle does not close it.
pub fn start(
    frames: impl Frames,
    service: std::sync::Arc<dyn Service>,
    limits: Limits,
    tasks: &crate::rt::Tasks,
) -> (Peer, PeerDone) {
    start_with(frames, |_| service, limits, tasks)
}

/// [`start`] for a service that needs the peer it serves: `make` gets it before any frame is read.
pub fn start_with(
    frames: impl Frames,
    make: impl FnOnce(Peer) -> std::sync::Arc<dyn Service>,
    limits: Limits,
    tasks: &crate::rt::Tasks,
) -> (Peer, PeerDone) {
    drive::start(frames, make, limits, tasks)
}

/// What the other side may ask for and tell.
pub trait Service: Send + Sync + 'static {
    /// A request. Called in the order of the wire and must return its future at once; the future
    /// runs as a task of its own. Its result is the answer; a panic is answered with -32603.
    ///
    /// The future goes on when the link closes: what it started is its own to end or keep
    /// (see [`Peer::closed`]); its answer is then dropped.
    fn call(&self, call: Call) -> BoxFuture<'static, Result<Value, RpcError>>;

    /// A notification, in the order of the wire and before any later answer is delivered. Must not
    /// block: no further frame is read until it returns. An unknown method is ignored.
    fn notice(&self, method: &str, params: Value);
}

/// One incoming request.
#[derive(Debug)]
pub struct Call {
    pub method: String,
    /// The object or array that came, or null when there was none.
    pub params: Value,
    pub id: Id,
    /// The peer that asked, to tell and ask it things meanwhile.
    pub peer: Peer,
    /// Set off when the asker sends `$/cancel_request` for this call. The call is still answered
    /// exactly once, by whatever its future returns.
    pub cancelled: CancellationToken,
    /// Set off when the answer stands in the queue: what is sent after that is heard after it.
    pub answered: CancellationToken,
    /// The place of the request in the stream of frames, counted from 1.
    pub order: u64,
}
