//! One socket: its peer, and the handshake that has to come in time.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::sync::oneshot;

use super::{Happened, ServiceFactory, ready};
use crate::clock::{self, Instant};
use crate::link::dial::Socket;
use crate::link::ws;
use crate::rpc::{self, Call, CloseReason, Limits, Peer, RpcError, Service};
use crate::rt::Tasks;

pub(super) struct Session {
    pub(super) peer: Peer,
    done: Option<BoxFuture<'static, CloseReason>>,
    /// Comes to pass when `initialize` was answered with a result.
    handshake: Option<BoxFuture<'static, bool>>,
    /// By when it has to; none when that is settled.
    until: Option<Instant>,
}

impl Session {
    pub(super) fn open(
        socket: Box<Socket>,
        factory: &Arc<dyn ServiceFactory>,
        limits: Limits,
        tasks: &Tasks,
    ) -> Self {
        let (tell, handshake) = oneshot::channel();
        let make = |peer: Peer| -> Arc<dyn Service> {
            Arc::new(Watched {
                service: factory.open(peer),
                tell: Arc::new(parking_lot::Mutex::new(Some(tell))),
            })
        };
        let frames = ws::frames(socket.stream, Some(socket.taken));
        let (peer, done) = rpc::start_with(frames, make, limits, tasks);
        Self {
            peer,
            done: Some(done.wait().boxed()),
            handshake: Some(handshake.map(|told| told.is_ok()).boxed()),
            until: Some(clock::instant() + ws::INITIALIZE),
        }
    }

    /// What happens next to the socket, when there is one.
    pub(super) async fn next(place: &mut Option<Self>) -> Happened {
        let Some(session) = place else {
            return std::future::pending().await;
        };
        let until = session.until;
        let late = async {
            match until {
                Some(until) => clock::sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        let happened = tokio::select! {
            reason = ready(&mut session.done) => Happened::Closed(reason),
            true = ready(&mut session.handshake) => Happened::Ready,
            () = late => Happened::Late,
        };
        if matches!(happened, Happened::Ready | Happened::Late) {
            session.until = None;
        }
        happened
    }

    /// Waits for the end.
    pub(super) async fn closed(mut self) -> CloseReason {
        ready(&mut self.done).await
    }
}

type Tell = Arc<parking_lot::Mutex<Option<oneshot::Sender<()>>>>;

/// A service whose answer to `initialize` is noticed.
struct Watched {
    service: Arc<dyn Service>,
    tell: Tell,
}

impl Service for Watched {
    fn call(&self, call: Call) -> BoxFuture<'static, Result<Value, RpcError>> {
        if call.method != "initialize" {
            return self.service.call(call);
        }
        let tell = Arc::clone(&self.tell);
        let answer = self.service.call(call);
        async move {
            let answer = answer.await;
            if answer.is_ok()
                && let Some(tell) = tell.lock().take()
            {
                // The link may be gone already; then nobody asks.
                let _ = tell.send(());
            }
            answer
        }
        .boxed()
    }

    fn notice(&self, method: &str, params: Value) {
        self.service.notice(method, params);
    }
}
