//! The table of our own methods (`_lembas/…`, spec/acp.md), one place for their names and forms.
//!
//! Whether a method exists for a client was judged before (`capabilities`), and whether anything
//! may be asked at all (`limits`). Not here: what `remote` answers, but its names.

mod asks;
mod back;
mod output;
mod state;

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use jsonrpsee_core::server::{Methods, RpcModule};
use jsonrpsee_types::ErrorObjectOwned;
use serde::Deserialize;
use serde_json::{Value, json};

use super::connection::Connection;
use super::error;
use super::inbound;
use super::limits::RemoteWork;
use super::rules;
use crate::clock;
use crate::ids::{Position, Seq, SessionId};
use crate::rpc::RpcError;
use crate::rt::CancellationToken;
use crate::session::{StopWhy, Stopped};
use crate::store::item::{Body, CallStatus};

pub(crate) use asks::ack;
pub(crate) use output::Outputs;

/// Who asked, and when the answer is on its way.
#[derive(Clone)]
pub(crate) struct Asked {
    pub(crate) connection: Arc<Connection>,
    pub(crate) answered: CancellationToken,
}

type Answer = BoxFuture<'static, Result<Value, RpcError>>;

type Method = fn(Asked, Value) -> Answer;

/// Numbers that a journal reserves at once: what a crash may leave given and not stored.
const RESERVED: u64 = 1000;

/// A stop answers within this; the asker repeats until it has an answer.
const STOP: std::time::Duration = std::time::Duration::from_secs(10);

pub(crate) fn table() -> Methods {
    let mut table = RpcModule::new(());
    let methods: [(&'static str, Method); 15] = [
        ("_lembas/status", |asked, params| {
            state::status(asked, params).boxed()
        }),
        ("_lembas/sync", |asked, params| {
            state::sync(asked, params).boxed()
        }),
        ("_lembas/follow", |asked, params| {
            follow(asked, params).boxed()
        }),
        ("_lembas/unfollow", |asked, params| {
            unfollow(asked, params).boxed()
        }),
        ("_lembas/stop", |asked, params| stop(asked, params).boxed()),
        ("_lembas/retry", |asked, params| {
            back::retry(asked, params).boxed()
        }),
        ("_lembas/rewind", |asked, params| {
            back::rewind(asked, params).boxed()
        }),
        ("_lembas/answer", |asked, params| {
            asks::answer(asked, params).boxed()
        }),
        ("_lembas/extend", |asked, params| {
            asks::extend(asked, params).boxed()
        }),
        ("_lembas/directories", |asked, params| {
            directories(asked, params).boxed()
        }),
        ("_lembas/monitor", |asked, params| {
            monitor(asked, params).boxed()
        }),
        ("_lembas/rules", |asked, params| {
            rules::list(asked.connection, params).boxed()
        }),
        ("_lembas/rules/remove", |asked, params| {
            rules::remove(asked.connection, params).boxed()
        }),
        ("_lembas/output", |asked, params| {
            output::output(asked, params).boxed()
        }),
        ("_lembas/token", |asked, params| {
            token(asked, params).boxed()
        }),
    ];
    for (name, method) in methods {
        let added = table.register_async_method(name, move |params, _, extensions| async move {
            let params = params.parse::<Option<Value>>().unwrap_or_default();
            let answer = match extensions.get::<Asked>() {
                Some(asked) => method(asked.clone(), params.unwrap_or_default()).await,
                None => Err(RpcError::internal("nobody asked")),
            };
            answer.map_err(|error| {
                let code = i32::try_from(error.code).unwrap_or(-32603);
                ErrorObjectOwned::owned(code, error.message, error.data)
            })
        });
        debug_assert!(added.is_ok(), "each name stands once in the table");
    }
    table.into()
}

#[derive(Deserialize)]
struct Named {
    #[serde(rename = "sessionId")]
    session: SessionId,
}

#[derive(Deserialize)]
struct Place {
    #[serde(rename = "sessionId")]
    session: SessionId,
    #[serde(default)]
    seq: Seq,
    #[serde(default)]
    at: u64,
}

/// `_lembas/follow`: answers, then streams from there.
async fn follow(asked: Asked, params: Value) -> Result<Value, RpcError> {
    let Place {
        session: id,
        seq,
        at,
    } = inbound::params(params)?;
    let connection = &asked.connection;
    let session = connection.session(&id).await?;
    let head = session.summary().await.head;
    if seq.0 > head.0.saturating_add(RESERVED) {
        let why = format!(
            "the instance knows item {} of session {id}, here the last is {}",
            seq.0, head.0
        );
        let epoch = connection.device.epoch.renew(&why).await;
        let text = "this computer has an older state than the instance has seen: what it had is closed, and a new epoch begins";
        // The handshake after the next dial says the epoch (Y8).
        let peer = connection.peer.clone();
        connection.tasks.spawn("epoch", async move {
            asked.answered.cancelled().await;
            peer.close(1012, "limits");
        });
        return Err(RpcError::invalid_params(text)
            .with_data(json!({ "reason": "epoch", "text": text, "epoch": epoch })));
    }
    let from = Position { seq, at };
    let view = connection.view(id.clone(), from);
    connection
        .streams
        .start(view, id, session.follow(from), asked.answered)?;
    Ok(json!({}))
}

/// `_lembas/unfollow`.
async fn unfollow(asked: Asked, params: Value) -> Result<Value, RpcError> {
    let Named { session } = inbound::params(params)?;
    // One that is not followed is not followed: asked twice is no error.
    let streams = &asked.connection.streams;
    if streams.stop(&session) {
        // What it was sending is in the queue before the answer, and nothing comes behind that.
        drop(streams.turn().await);
    }
    Ok(json!({}))
}

#[derive(Deserialize)]
struct Stop {
    #[serde(rename = "sessionId")]
    session: SessionId,
    turn: Option<u32>,
    key: Option<String>,
}

/// `_lembas/stop`: the turn's end, with every process gone.
async fn stop(asked: Asked, params: Value) -> Result<Value, RpcError> {
    let stop: Stop = inbound::params(params.clone())?;
    let connection = Arc::clone(&asked.connection);
    let subject = stop.session.as_str().to_owned();
    let work = async move {
        let session = connection.session(&stop.session).await?;
        let begun = clock::instant();
        let from = session.summary().await.head;
        let end = clock::timeout(STOP, session.stop(stop.turn, StopWhy::Asked)).await;
        let outcome = end.map_err(|_| error::busy("turn", "it is still being stopped", 1))?;
        let items = session
            .items(Seq(from.0.saturating_add(1)), 256)
            .await
            .unwrap_or_default();
        let ended = items.iter().filter(|item| {
            matches!(
                item.body,
                Body::Result {
                    status: CallStatus::Cancelled,
                    ..
                }
            )
        });
        let commands = if outcome == Stopped::Stopped {
            ended.count()
        } else {
            0
        };
        let ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok(json!({ "outcome": outcome, "ms": ms, "commands": commands }))
    };
    asked
        .connection
        .keyed("_lembas/stop", subject, stop.key, &params, work.boxed())
        .await
}

fn remote(asked: &Asked, method: &str) -> Result<Arc<dyn RemoteWork>, RpcError> {
    let remote = asked.connection.device.remote.clone();
    remote.ok_or_else(|| RpcError::method_not_found(method))
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Directories {
    path: Option<PathBuf>,
}

async fn directories(asked: Asked, params: Value) -> Result<Value, RpcError> {
    let params = if params.is_null() { json!({}) } else { params };
    let Directories { path } = inbound::params(params)?;
    remote(&asked, "_lembas/directories")?
        .directories(path)
        .await
}

async fn monitor(asked: Asked, params: Value) -> Result<Value, RpcError> {
    remote(&asked, "_lembas/monitor")?
        .monitor(&asked.connection.origin, params)
        .await
}

async fn token(asked: Asked, params: Value) -> Result<Value, RpcError> {
    remote(&asked, "_lembas/token")?
        .token(&asked.connection.origin, params)
        .await
}
