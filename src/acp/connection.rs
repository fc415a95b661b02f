//! One connection: what it is and has, and which method is answered where.

mod serve;

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use jsonrpsee_core::traits::ToRpcParams;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::watch;

use super::asks::Asked;
use super::capabilities::{Capability, Client};
use super::error;
use super::keys::{Again, Did, Scope};
use super::limits::{Limits, Local};
use super::outbound::View;
use super::port::OneSession;
use super::prompt::Turns;
use super::stream::Streams;
use super::{Device, changing, ext, inbound, opening, prompt, replay};
use crate::ids::{Position, SessionId, random_hex};
use crate::permission::Origin;
use crate::rpc::{Call, Peer, RpcError, Service};
use crate::rt::{self, CancellationToken, Tasks};
use crate::session::Summary;

/// What one connection is and has. Its tasks end with its peer.
pub(crate) struct Connection {
    pub(crate) device: Device,
    pub(crate) peer: Peer,
    pub(crate) origin: Origin,
    pub(crate) limits: Arc<dyn Limits>,
    pub(crate) tasks: Tasks,
    pub(crate) streams: Streams,
    pub(crate) turns: Turns,
    pub(crate) asked: Asked,
    pub(crate) outputs: ext::Outputs,
    /// Keys of prompts that came without one begin with this.
    pub(crate) own: String,
    client: OnceLock<Client>,
    /// The sessions that this connection opened.
    opened: watch::Sender<HashSet<SessionId>>,
}

pub(crate) fn serve(device: &Device, peer: Peer, origin: Origin) -> Arc<dyn Service> {
    let limits: Arc<dyn Limits> = match origin {
        Origin::Local => Arc::new(Local),
        Origin::Remote { .. } => Arc::clone(&device.limits),
    };
    let tasks = device.tasks.child();
    let connection = Arc::new(Connection {
        streams: Streams::new(peer.clone(), tasks.clone()),
        turns: Turns::default(),
        asked: Asked::default(),
        outputs: ext::Outputs::default(),
        own: format!("{}-", random_hex(8)),
        client: OnceLock::new(),
        opened: watch::Sender::default(),
        device: device.clone(),
        peer,
        origin,
        limits,
        tasks,
    });
    let ending = Arc::clone(&connection);
    device.tasks.spawn("connection", async move {
        ending.peer.closed().await;
        prompt::leave(&ending).await;
        ending.tasks.end().await;
    });
    Arc::new(serve::Served(connection))
}

impl Connection {
    /// What the client said of itself. Before the handshake: a client that can nothing.
    pub(crate) fn client(&self) -> &Client {
        static NONE: OnceLock<Client> = OnceLock::new();
        self.client
            .get()
            .unwrap_or_else(|| NONE.get_or_init(Client::default))
    }

    /// Who answers a question here, in words.
    pub(crate) fn who(&self) -> String {
        let name = self.client().name.clone();
        match &self.origin {
            Origin::Local => format!("you, in {}", name.as_deref().unwrap_or("an editor")),
            Origin::Remote { .. } => {
                format!("you, in {}", name.as_deref().unwrap_or("the instance"))
            }
        }
    }

    async fn answer(self: Arc<Self>, call: Call) -> Result<Value, RpcError> {
        let method = call.method.as_str();
        // With remote work off a page still hears how things stand, may stop them and take yeses
        // back (F10).
        let narrows = matches!(method, "_lembas/rules" | "_lembas/rules/remove");
        if !narrows && !matches!(method, "_lembas/status" | "_lembas/sync" | "_lembas/stop") {
            self.limits.work()?;
        }
        match method {
            "authenticate" => Err(RpcError::invalid_params(
                "there is nothing to sign in to here: go on with session/new",
            )),
            "session/new" => opening::new(self, call).await,
            "session/load" => replay::load(self, call).await,
            "session/resume" => opening::resume(self, call).await,
            "session/list" => changing::list(&self, call.params).await,
            "session/close"
            | "session/delete"
            | "session/set_mode"
            | "session/set_config_option" => {
                let subject = subject(&call.params);
                let key = key(&call.params)?;
                let (name, params) = (call.method.clone(), call.params.clone());
                let connection = Arc::clone(&self);
                let work = async move { changing::change(&connection, &name, params).await };
                self.keyed(&call.method, subject, key, &call.params, work.boxed())
                    .await
            }
            _ if method.starts_with("_lembas/") && self.client().may_call(method) => {
                self.ours(call).await
            }
            _ => Err(RpcError::method_not_found(method)),
        }
    }

    /// A method of our own table.
    async fn ours(self: Arc<Self>, call: Call) -> Result<Value, RpcError> {
        let mut table = self.device.table.clone();
        let asked = ext::Asked {
            connection: Arc::clone(&self),
            answered: call.answered,
        };
        table.extensions_mut().insert(asked);
        let answer: Result<Value, _> = table.call(&call.method, Raw(call.params)).await;
        answer.map_err(|error| match error {
            jsonrpsee_core::server::MethodsError::JsonRpc(error) => RpcError {
                code: error.code().into(),
                message: error.message().to_owned(),
                data: error
                    .data()
                    .and_then(|data| serde_json::from_str(data.get()).ok()),
            },
            other => RpcError::internal(other.to_string()),
        })
    }

    /// Does work once for its key, or just does it when it has none.
    pub(crate) async fn keyed(
        &self,
        method: &str,
        subject: String,
        key: Option<String>,
        params: &Value,
        work: BoxFuture<'static, Result<Value, RpcError>>,
    ) -> Result<Value, RpcError> {
        let Some(key) = key else { return work.await };
        let scope = Scope {
            grant: grant(&self.origin).to_owned(),
            method: method.to_owned(),
            subject,
        };
        let work = work.map(Did::from).boxed();
        self.device
            .keys
            .once(scope, key, params, Again::Redo, work)
            .await
    }

    /// A session of the asker's.
    pub(crate) async fn session(&self, id: &SessionId) -> Result<Arc<dyn OneSession>, RpcError> {
        let session = self.device.sessions.get(id, &self.origin).await;
        session.map_err(|error| error::session(&error))
    }

    /// [`Connection::session`], when work may go on in it now: a scheduled one only while
    /// scheduled work is taken, and any only in a folder that is shared.
    pub(crate) async fn workable(
        &self,
        id: &SessionId,
    ) -> Result<(Arc<dyn OneSession>, Summary), RpcError> {
        let session = self.session(id).await?;
        self.may_run(&*session)?;
        let summary = session.summary().await;
        self.folder(summary.cwd.clone()).await?;
        Ok((session, summary))
    }

    /// Whether a scheduled session may be worked with (Z1).
    pub(crate) fn may_run(&self, session: &dyn OneSession) -> Result<(), RpcError> {
        if session.scheduled().is_some() {
            self.limits.scheduled()?;
        }
        Ok(())
    }

    /// Judges a folder, where looking at the disk may take its time.
    pub(crate) async fn folder(&self, path: PathBuf) -> Result<PathBuf, RpcError> {
        let limits = Arc::clone(&self.limits);
        let judged = rt::blocking(move || limits.folder(&path)).await;
        let judged =
            judged.ok_or_else(|| RpcError::internal("the folder could not be looked at"))?;
        Ok(judged?)
    }

    /// Streams a session that this connection opened, unless it says itself what it follows.
    pub(crate) fn opened(
        &self,
        session: &dyn OneSession,
        from: Position,
        answered: CancellationToken,
    ) -> Result<(), RpcError> {
        let id = session.id();
        self.opened
            .send_if_modified(|opened| opened.insert(id.clone()));
        if self.client().follows() {
            return Ok(());
        }
        self.streams.start(
            self.view(id.clone(), from),
            id,
            session.follow(from),
            answered,
        )
    }

    pub(crate) fn closed(&self, id: &SessionId) {
        self.streams.stop(id);
        self.opened.send_if_modified(|opened| opened.remove(id));
    }

    pub(crate) fn view(&self, session: SessionId, from: Position) -> View {
        View::new(session, self.client().clone(), self.own.clone(), from)
    }

    /// Whether a session's questions are asked here: an instance is asked all of its own, a
    /// program on this computer those of the sessions it opened.
    pub(crate) fn shows(&self, session: &SessionId) -> bool {
        let all = self.origin != Origin::Local || self.client().has(Capability::Asks);
        all || self.opened.borrow().contains(session)
    }

    /// Marked changed when a session is opened or closed here.
    pub(crate) fn opened_changes(&self) -> watch::Receiver<HashSet<SessionId>> {
        self.opened.subscribe()
    }

    /// Says what every working session is doing, before any stream begins.
    pub(crate) async fn states(&self) {
        let client = self.client();
        if !client.follows() || !client.has(Capability::Progress) {
            return;
        }
        // The working ones are the newest; a device has a few of them.
        let list = self
            .device
            .sessions
            .list(&self.origin, None, None, 64)
            .await;
        for summary in list.map(|(list, _)| list).unwrap_or_default() {
            let Some(progress) = summary.progress.filter(|_| summary.running) else {
                continue;
            };
            let from = Position {
                seq: summary.head,
                at: 0,
            };
            let mut view = self.view(summary.id, from);
            for frame in view.frames(crate::session::Event::Progress(progress)) {
                if self.peer.notify(frame.method, frame.params).await.is_err() {
                    return;
                }
            }
        }
    }
}

/// What keys are bound to.
pub(crate) fn grant(origin: &Origin) -> &str {
    match origin {
        Origin::Local => "local",
        Origin::Remote { grant, .. } => grant,
    }
}

/// The session that params name, for the scope of a key.
pub(crate) fn subject(params: &Value) -> String {
    let id = params.get("sessionId").and_then(Value::as_str);
    id.unwrap_or_default().chars().take(200).collect()
}

/// The key that an ACP method carries in its meta.
fn key(params: &Value) -> Result<Option<String>, RpcError> {
    let meta = params.get("_meta").and_then(Value::as_object);
    Ok(inbound::ours::<inbound::KeyMeta>(meta)?.key)
}

struct Raw(Value);

impl ToRpcParams for Raw {
    fn to_rpc_params(self) -> Result<Option<Box<RawValue>>, serde_json::Error> {
        to_raw_value(&self.0).map(Some)
    }
}
