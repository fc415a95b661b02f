//! The server's end of the link: who is linked now, the upgrade, and one task a connection.

mod endpoint;
mod intake;
mod notices;
mod run;
mod service;
mod work;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use axum::Router;
use axum::routing::get;
use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;

pub(super) use notices::tell_chat;

use super::Shared;
use super::error::ApiError;
use crate::clock::now_ms;
use crate::link::ws;
use crate::rpc::Peer;

pub(super) fn routes() -> Router<Arc<Shared>> {
    Router::new()
        .route("/link/v3", get(endpoint::upgrade))
        .method_not_allowed_fallback(|| async { ApiError::wrong_method() })
}

/// One live connection of a device, from its upgrade on.
#[derive(Clone)]
pub(crate) struct Link {
    inner: Arc<Inner>,
}

struct Inner {
    /// Counts connections of this hub: a later one replaces an earlier one of its device.
    number: u64,
    device: String,
    account: String,
    boot: String,
    address: String,
    since: i64,
    peer: Mutex<Option<Peer>>,
    /// Set by the handshake: what both sides named, and the device's epoch.
    ready: RwLock<Option<Ready>>,
    heard: AtomicI64,
    /// Rings when there is work to say to the device.
    wake: Notify,
    /// Rings when the device says that its rules changed.
    rules: Notify,
    words: Mutex<Option<String>>,
    /// Why it was replaced or revoked, as a close: set when that happens before it has a peer.
    ended: Mutex<Option<(u16, String)>>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Ready {
    pub(crate) capabilities: Vec<String>,
    pub(crate) epoch: String,
    /// The newest change of this epoch that was taken up before.
    pub(crate) head: Option<i64>,
}

impl Link {
    /// Its list of rules reads otherwise, and is read anew.
    pub(crate) fn rules_changed(&self) {
        self.inner.rules.notify_one();
    }

    pub(crate) fn peer(&self) -> Option<Peer> {
        self.inner.peer.lock().clone()
    }

    pub(crate) fn device(&self) -> &str {
        &self.inner.device
    }

    pub(crate) fn account(&self) -> &str {
        &self.inner.account
    }

    /// When something was heard of it last.
    pub(crate) fn heard(&self) -> i64 {
        self.inner.heard.load(Ordering::Relaxed)
    }

    fn hear(&self) {
        self.inner.heard.store(now_ms(), Ordering::Relaxed);
    }

    pub(crate) fn can(&self, capability: &str) -> bool {
        self.inner
            .ready
            .read()
            .as_ref()
            .is_some_and(|r| r.capabilities.iter().any(|c| c == capability))
    }

    pub(crate) fn epoch(&self) -> String {
        self.inner
            .ready
            .read()
            .as_ref()
            .map(|r| r.epoch.clone())
            .unwrap_or_default()
    }

    fn head(&self) -> Option<i64> {
        self.inner.ready.read().as_ref().and_then(|r| r.head)
    }

    fn is_ready(&self) -> bool {
        self.inner.ready.read().is_some()
    }

    /// Ends it with a close frame.
    fn end(&self, code: u16, reason: &str) {
        match self.peer() {
            Some(peer) => peer.close(code, reason),
            None => *self.inner.ended.lock() = Some((code, reason.to_owned())),
        }
    }
}

/// Open sockets of links in all, those included that are about to end. A further dial is told to
/// come later (L4, 503).
const SOCKETS: usize = 1024;
/// Open sockets of one device: the one that has its place, and those that it replaced and that are
/// not closed yet.
const SOCKETS_EACH: usize = 8;

/// All live connections, one a device.
#[derive(Default)]
pub(crate) struct Links {
    map: Mutex<HashMap<String, Link>>,
    sockets: Arc<Mutex<HashMap<String, usize>>>,
    /// Why computers that dialled with their token were not let in: at most one a computer of ours,
    /// until it is linked again or this hub ends. It dials again, so nothing is lost with it.
    kept_out: Mutex<HashMap<String, String>>,
    count: AtomicU64,
}

/// An open socket, counted until it is dropped.
struct Socket {
    all: Arc<Mutex<HashMap<String, usize>>>,
    device: String,
}

impl Drop for Socket {
    fn drop(&mut self) {
        let mut all = self.all.lock();
        if let Some(count) = all.get_mut(&self.device) {
            *count -= 1;
            if *count == 0 {
                all.remove(&self.device);
            }
        }
    }
}

impl Links {
    /// The device's connection, when its handshake is done.
    pub(crate) fn get(&self, device: &str) -> Option<Link> {
        self.map
            .lock()
            .get(device)
            .filter(|l| l.is_ready())
            .cloned()
    }

    /// There is work to say to a device.
    pub(crate) fn wake(&self, device: &str) {
        if let Some(link) = self.map.lock().get(device) {
            link.inner.wake.notify_one();
        }
    }

    /// A computer of ours cannot be let in: its person is told why, and what to do (U37). False
    /// when that is what was told before.
    fn keep_out(&self, device: &str, why: &str) -> bool {
        let before = self
            .kept_out
            .lock()
            .insert(device.to_owned(), why.to_owned());
        before.as_deref() != Some(why)
    }

    /// It is linked, or not ours any more: what kept it out is over.
    fn let_in(&self, device: &str) {
        self.kept_out.lock().remove(device);
    }

    /// Why a computer that is not linked was not let in when it dialled last.
    pub(crate) fn why_out(&self, device: &str) -> Option<String> {
        self.kept_out.lock().get(device).cloned()
    }

    /// Access was taken back: the connection ends at once.
    pub(crate) fn revoke(&self, device: &str) {
        self.let_in(device);
        let link = self.map.lock().get(device).cloned();
        if let Some(link) = link {
            link.end(ws::code::REVOKED, "revoked");
        }
    }

    /// Room for another socket of a device.
    fn room(&self, device: &str) -> Option<Socket> {
        let mut all = self.sockets.lock();
        let own = all.get(device).copied().unwrap_or(0);
        if own >= SOCKETS_EACH || all.values().sum::<usize>() >= SOCKETS {
            return None;
        }
        all.insert(device.to_owned(), own + 1);
        Some(Socket {
            all: Arc::clone(&self.sockets),
            device: device.to_owned(),
        })
    }

    /// Whoever holds the device's place, also before its handshake.
    fn holder(&self, device: &str) -> Option<Link> {
        self.map.lock().get(device).cloned()
    }

    /// Takes the device's place. The one that had it ends with 4001.
    fn take(&self, device: &str, account: &str, boot: &str, address: String, why: &str) -> Link {
        let link = Link {
            inner: Arc::new(Inner {
                number: self.count.fetch_add(1, Ordering::Relaxed),
                device: device.to_owned(),
                account: account.to_owned(),
                boot: boot.to_owned(),
                address,
                since: now_ms(),
                peer: Mutex::default(),
                ready: RwLock::default(),
                heard: AtomicI64::new(now_ms()),
                wake: Notify::new(),
                rules: Notify::new(),
                words: Mutex::default(),
                ended: Mutex::default(),
            }),
        };
        let old = self.map.lock().insert(device.to_owned(), link.clone());
        if let Some(old) = old {
            old.end(ws::code::REPLACED, why);
        }
        link
    }

    /// Leaves the device's place. False when another connection has it by now.
    fn leave(&self, link: &Link) -> bool {
        let mut map = self.map.lock();
        let current = map
            .get(&link.inner.device)
            .is_some_and(|l| l.inner.number == link.inner.number);
        if current {
            map.remove(&link.inner.device);
        }
        current
    }
}
