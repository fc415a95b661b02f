//! One connection, from its upgrade to its end: handshake, what it missed, and the tasks that go
//! on while it lives.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::WebSocket;
use base64::Engine as _;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::intake::{Heard, Intake};
use super::service::Served;
use super::{Link, Ready, notices, work};
use crate::clock::now_ms;
use crate::hub::gate::What;
use crate::hub::{PROTOCOL, Shared, asks, devices, rules};
use crate::ids::random_bytes;
use crate::link::discovery::protocols;
use crate::link::ws;
use crate::rpc::{self, CloseReason, Limits, Peer};
use crate::store::hub::chats::Said;
use crate::store::hub::devices::Handshake;
use crate::text::escape;

/// What this instance can beyond plain ACP.
const CAPABILITIES: [&str; 12] = [
    "resume",
    "asks",
    "directories",
    "scheduled",
    "progress",
    "agents",
    "steer",
    "token",
    "retry",
    "rewind",
    "rules",
    "output",
];
/// What was heard and not yet stored. When a device says more than that ahead of our disk, its
/// link is closed and taken up again from what is stored.
const HEARD: usize = 8 * 1024;
/// Sessions asked for on one page of a sync, and pages at most.
const PAGE: u64 = 200;
const PAGES: usize = 500;
/// Between two looks at what a device allows always.
const RULES: Duration = Duration::from_millis(200);
/// How long an answer to something small may take.
const SMALL: Duration = Duration::from_secs(30);

pub(super) async fn run(shared: Arc<Shared>, link: Link, socket: WebSocket, old_token: bool) {
    let tasks = shared.tasks.child();
    let (heard, hear) = mpsc::channel(HEARD);
    let served = |peer: Peer| -> Arc<dyn rpc::Service> {
        Arc::new(Served {
            shared: Arc::clone(&shared),
            link: link.clone(),
            peer,
            heard: heard.clone(),
        })
    };
    let (peer, done) =
        rpc::start_with(ws::frames(socket, None), served, Limits::instance(), &tasks);
    *link.inner.peer.lock() = Some(peer.clone());
    if let Some((code, reason)) = link.inner.ended.lock().take() {
        peer.close(code, &reason);
    }
    match handshake(&shared, &link, &peer).await {
        Ok(ready) => {
            *link.inner.ready.write() = Some(ready);
            shared.links.let_in(&link.inner.device);
            let taking = Intake::new(Arc::clone(&shared), link.clone(), peer.clone());
            tasks.spawn("link intake", taking.run(hear));
            tasks.spawn(
                "link begin",
                begin(
                    Arc::clone(&shared),
                    link.clone(),
                    peer.clone(),
                    heard.clone(),
                    old_token,
                ),
            );
            tasks.spawn(
                "link rules",
                follow_rules(Arc::clone(&shared), link.clone(), peer.clone()),
            );
            tasks.spawn(
                "link work",
                work::run(
                    Arc::clone(&shared),
                    link.clone(),
                    peer.clone(),
                    heard,
                    tasks.clone(),
                ),
            );
            devices::tell(&shared, &link.inner.device).await;
        }
        Err(why) => {
            // An upgrade that comes to nothing counts like a dial that was refused.
            shared.gate.count(What::LinkDial, &link.inner.address);
            tracing::info!(device = link.inner.device, why, "a link did not come to be");
            devices::tell(&shared, &link.inner.device).await;
        }
    }
    let reason = done.wait().await;
    leave(&shared, &link, &reason).await;
    tasks.end().await;
}

/// `initialize` within its time, and whether this is a device we can work with.
async fn handshake(shared: &Shared, link: &Link, peer: &Peer) -> Result<Ready, String> {
    let known = shared.store.device(link.inner.device.clone()).await;
    let known = known
        .map_err(|e| e.to_string())?
        .ok_or("the device is unknown")?;
    let mut ours = json!({
        "protocol": PROTOCOL, "spec": crate::hub::spec_version(),
        "instance": shared.facts.instance, "capabilities": CAPABILITIES,
    });
    // H3: both, or it has not been heard to an end yet.
    let seen = known.epoch.zip(known.head);
    if let (Some((epoch, head)), Some(map)) = (&seen, ours.as_object_mut()) {
        map.insert("epoch".to_owned(), epoch.clone().into());
        map.insert("head".to_owned(), (*head).into());
    }
    let params = json!({
        "protocolVersion": 1,
        "clientCapabilities": {
            "fs": { "readTextFile": false, "writeTextFile": false },
            "terminal": false,
            "_meta": { "lembas": ours },
        },
        "clientInfo": { "name": "lembas-hub", "title": shared.facts.name,
                        "version": env!("CARGO_PKG_VERSION") },
    });
    let answer = peer
        .request_within("initialize", params, ws::INITIALIZE)
        .await;
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => {
            let reason = match error.rpc() {
                Some(rpc) => rpc.message.clone(),
                None => "initialize".to_owned(),
            };
            tracing::info!(
                device = link.inner.device,
                reason,
                "initialize was not answered well"
            );
            peer.close(ws::code::INITIALIZE, "initialize");
            return Err(error.to_string());
        }
    };
    let meta = answer
        .pointer("/agentCapabilities/_meta/lembas")
        .cloned()
        .unwrap_or_default();
    let protocol = meta.get("protocol").and_then(Value::as_u64);
    if protocol != Some(PROTOCOL) {
        let why = match protocol {
            Some(computer) => protocols(PROTOCOL, computer),
            None => format!(
                "This computer did not say which link protocol it speaks; this instance speaks {PROTOCOL}: update lembas on this computer."
            ),
        };
        shared.links.keep_out(&link.inner.device, &why);
        peer.close(ws::code::REFUSED, "protocol");
        return Err(why);
    }
    let text = |path: &str| meta.pointer(path).and_then(Value::as_str).map(clean);
    if text("/device/id").is_some_and(|id| id != link.inner.device) {
        peer.close(ws::code::INITIALIZE, "initialize");
        return Err("it is another device than its token's".to_owned());
    }
    let epoch = text("/epoch").unwrap_or_default();
    let said = Handshake {
        name: text("/device/name").filter(|n| !n.is_empty()),
        os: text("/device/os"),
        arch: text("/device/arch"),
        version: text("/device/version"),
        address: link.inner.address.clone(),
        epoch: epoch.clone(),
        limits: meta.get("limits").cloned().unwrap_or_default(),
        home: text("/device/home"),
    };
    let stored = shared.store.device_linked(link.inner.device.clone(), said);
    stored.await.map_err(|e| e.to_string())?;
    close_old(shared, &link.inner.device, &epoch).await;
    let theirs: Vec<String> = meta
        .get("capabilities")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .filter(|c| CAPABILITIES.contains(c))
        .map(str::to_owned)
        .collect();
    let head = seen
        .filter(|(known, _)| *known == epoch)
        .map(|(_, head)| head);
    Ok(Ready {
        capabilities: theirs,
        epoch,
        head,
    })
}

/// A word of the device as it may be shown: bounded, one line.
fn clean(text: &str) -> String {
    escape::label(text, 128)
}

/// The device counts anew: what it numbered before stays readable and closed.
pub(super) async fn close_old(shared: &Shared, device: &str, epoch: &str) {
    let why = "this computer's store was put back to an older state".to_owned();
    let closed = shared
        .store
        .close_other_epochs(device.to_owned(), epoch.to_owned(), why)
        .await;
    for chat in closed.unwrap_or_default() {
        asks::over_with_chat(shared, &chat).await;
        notices::tell_chat(shared, &chat).await;
    }
}

/// What is done once at the start: the device's changed sessions, then a new token when it is time.
async fn begin(
    shared: Arc<Shared>,
    link: Link,
    peer: Peer,
    heard: mpsc::Sender<Heard>,
    old_token: bool,
) {
    if link.can("resume") {
        if let Err(why) = sync(&shared, &link, &peer, &heard).await {
            tracing::warn!(
                device = link.inner.device,
                why,
                "the sessions could not be listed"
            );
        }
    } else {
        tracing::info!(device = link.inner.device, "no resume: live events only");
    }
    if old_token && link.can("token") {
        replace_token(&shared, &link, &peer).await;
    }
}

/// Takes up what changed since the head that is kept, and keeps the new one (Y2).
async fn sync(
    shared: &Shared,
    link: &Link,
    peer: &Peer,
    heard: &mpsc::Sender<Heard>,
) -> Result<(), String> {
    let mut after = Value::from(link.head().unwrap_or(0));
    let mut listed = HashSet::new();
    let mut head = None;
    let mut whole = false;
    for _ in 0..PAGES {
        let params = json!({ "after": after, "limit": PAGE });
        let answer = peer.request_within("_lembas/sync", params, SMALL).await;
        let answer = answer.map_err(|e| e.to_string())?;
        head = head.or_else(|| answer.get("head").and_then(Value::as_i64));
        let sessions = answer.get("sessions").and_then(Value::as_array);
        for session in sessions.into_iter().flatten() {
            if let Some(id) = session.get("id").and_then(Value::as_str) {
                listed.insert(id.to_owned());
                session_heard(shared, link, heard, id, session).await?;
            }
        }
        match answer.get("next") {
            Some(next) if !next.is_null() => after = next.clone(),
            _ => {
                whole = true;
                break;
            }
        }
    }
    // What goes on without having changed is not listed, and only what is followed is streamed.
    let busy = shared
        .store
        .busy_sessions(link.inner.device.clone(), link.epoch());
    for session in busy.await.map_err(|e| e.to_string())? {
        if !listed.contains(&session) {
            let wanted = Heard::Follow { session };
            heard.send(wanted).await.map_err(|_| "the link ended")?;
        }
    }
    if let Some(head) = head.filter(|_| whole) {
        let kept = shared
            .store
            .device_head(link.inner.device.clone(), link.epoch(), head);
        kept.await.map_err(|e| e.to_string())?;
    }
    Ok(())
}

async fn session_heard(
    shared: &Shared,
    link: &Link,
    heard: &mpsc::Sender<Heard>,
    id: &str,
    said: &Value,
) -> Result<(), String> {
    let text = |key: &str| said.get(key).and_then(Value::as_str).map(str::to_owned);
    let running = said.get("running").and_then(Value::as_bool);
    let chat = shared
        .store
        .say_chat(
            link.inner.account.clone(),
            link.inner.device.clone(),
            Said {
                session: id.to_owned(),
                epoch: link.epoch(),
                cwd: text("cwd"),
                title: text("title"),
                mode: text("mode"),
                model: text("model"),
                running,
                updated: said.get("updated").and_then(Value::as_i64),
                origin: said
                    .get("scheduled")
                    .is_some_and(|is| is == true)
                    .then(|| "schedule".to_owned()),
                ..Said::default()
            },
        )
        .await
        .map_err(|e| e.to_string())?;
    let mut progress = said.get("progress").filter(|p| !p.is_null()).cloned();
    if let Some(progress) = &mut progress {
        notices::keep_facts(chat.progress.as_ref(), progress);
    }
    if progress.is_some() {
        let set = shared
            .store
            .chat_progress(chat.id.clone(), progress, running, false);
        set.await.map_err(|e| e.to_string())?;
    }
    notices::tell_chat(shared, &chat.id).await;
    let seq = said.get("seq").and_then(Value::as_u64).unwrap_or(0);
    let asks = said.get("asks").and_then(Value::as_u64).unwrap_or(0);
    let from = shared.store.follow_from(chat.id.clone()).await;
    let behind = from.map_err(|e| e.to_string())?.seq.0 < seq;
    let unsure = shared
        .store
        .prompts_under_way(chat.id.clone())
        .await
        .is_ok_and(|w| !w.is_empty());
    if running == Some(true) || asks > 0 || behind || chat.running || unsure {
        let wanted = Heard::Follow {
            session: id.to_owned(),
        };
        heard.send(wanted).await.map_err(|_| "the link ended")?;
    }
    Ok(())
}

/// Reads what the device allows always, now and whenever it says that it changed.
async fn follow_rules(shared: Arc<Shared>, link: Link, peer: Peer) {
    if !link.can("rules") {
        return;
    }
    loop {
        if let Err(why) = rules::renew(&shared, &link, &peer).await {
            tracing::warn!(
                device = link.inner.device,
                why,
                "the rules of a computer could not be read"
            );
        }
        // However often it changes, it is read no more often than this.
        crate::clock::sleep(RULES).await;
        tokio::select! {
            () = link.inner.rules.notified() => {}
            _ = peer.closed() => return,
        }
    }
}

/// A successor of the device's token: stored before it is said, in force when it is used.
async fn replace_token(shared: &Shared, link: &Link, peer: &Peer) {
    let token = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(random_bytes(32));
    let device = link.inner.device.clone();
    if let Err(error) = shared.store.add_successor(device.clone(), &token).await {
        tracing::warn!(%error, "a new token could not be stored");
        return;
    }
    let params = json!({ "token": token });
    match peer.request_within("_lembas/token", params, SMALL).await {
        Ok(_) => tracing::info!(device, "a new token is with the device"),
        Err(error) => tracing::warn!(device, %error, "the device did not take a new token"),
    }
}

/// The connection is over: what was heard last is kept, what was on its way waits again.
async fn leave(shared: &Shared, link: &Link, reason: &CloseReason) {
    let was_ready = link.is_ready();
    if !shared.links.leave(link) || !was_ready {
        return;
    }
    let device = link.inner.device.clone();
    tracing::info!(device, %reason, "a link ended");
    let words = link.inner.words.lock().clone();
    let heard = link.heard().min(now_ms());
    if let Err(error) = shared.store.device_left(device.clone(), heard, words).await {
        tracing::warn!(%error, "could not note that a device left");
    }
    asks::undelivered(shared, &device).await;
    devices::tell(shared, &device).await;
}
