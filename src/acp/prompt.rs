//! Prompts and their cancelling.
//!
//! A prompt answers when its turn has ended, and exactly once. `session/cancel` means the turn that
//! ran when the frame was read: never one that was prompted behind it. A cancelled prompt answers
//! `cancelled`, never an error. A link that drops ends no turn; a program on this computer that goes
//! takes its turn with it.

pub(crate) mod run;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol_schema::v1;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use super::connection::{Connection, subject};
use super::error;
use super::inbound::{self, PromptMeta};
use super::keys;
use super::port::OneSession;
use crate::ids::{SessionId, random_hex};
use crate::permission::Origin;
use crate::rpc::{Call, RpcError};
use crate::rt::CancellationToken;
use crate::session::{Prompt, Scheduled, SessionError, StopWhy, TurnDone};
use crate::store::item::{Source, Stop};

/// How long an answer waits behind updates of its turn that do not move. The updates then follow.
pub(crate) const BEHIND: Duration = Duration::from_secs(5);

/// The prompts of one connection that have no answer yet, and the cancels that look for a turn.
#[derive(Default)]
pub(crate) struct Turns {
    sessions: Mutex<HashMap<SessionId, Lane>>,
}

#[derive(Default)]
struct Lane {
    prompts: Vec<(u64, CancellationToken)>,
    /// Each set off when it has found the turn that it means.
    cancels: Vec<CancellationToken>,
}

/// A prompt's place among those of its connection. Gone when it is dropped.
struct Place {
    connection: Arc<Connection>,
    session: SessionId,
    order: u64,
    cancelled: CancellationToken,
    /// Cancels that were read before it and must not mean it.
    before: Vec<CancellationToken>,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut sessions = self.connection.turns.sessions.lock();
        if let Some(lane) = sessions.get_mut(&self.session) {
            lane.prompts.retain(|(order, _)| *order != self.order);
            if lane.prompts.is_empty() && lane.cancels.is_empty() {
                sessions.remove(&self.session);
            }
        }
    }
}

/// Takes a prompt at its place in the order of the wire; the future runs it.
pub(crate) fn begin(
    connection: Arc<Connection>,
    call: Call,
) -> BoxFuture<'static, Result<Value, RpcError>> {
    let session = SessionId::new(subject(&call.params));
    let cancelled = call.cancelled.child_token();
    let before = {
        let mut sessions = connection.turns.sessions.lock();
        let lane = sessions.entry(session.clone()).or_default();
        lane.prompts.push((call.order, cancelled.clone()));
        lane.cancels.clone()
    };
    let place = Place {
        connection,
        session,
        order: call.order,
        cancelled,
        before,
    };
    run(place, call.params).boxed()
}

/// `session/cancel`.
pub(crate) fn cancel(connection: &Arc<Connection>, params: &Value) {
    let id = SessionId::new(subject(params));
    let found = CancellationToken::new();
    {
        let mut sessions = connection.turns.sessions.lock();
        let lane = sessions.entry(id.clone()).or_default();
        if !lane.prompts.is_empty() {
            lane.prompts.iter().for_each(|(_, token)| token.cancel());
            return;
        }
        lane.cancels.push(found.clone());
    }
    // A turn of an earlier connection: its prompt has no answer here.
    let there = Arc::clone(connection);
    connection.tasks.spawn("cancel", async move {
        let session = there.session(&id).await.ok();
        let turn = match &session {
            Some(session) => Some(session.summary().await)
                .filter(|s| s.running)
                .map(|s| s.turn),
            None => None,
        };
        found.cancel();
        {
            let mut sessions = there.turns.sessions.lock();
            if let Some(lane) = sessions.get_mut(&id) {
                lane.cancels.retain(|cancel| !cancel.is_cancelled());
                if lane.prompts.is_empty() && lane.cancels.is_empty() {
                    sessions.remove(&id);
                }
            }
        }
        if let (Some(session), Some(turn)) = (session, turn) {
            session.stop(Some(turn), StopWhy::Asked).await;
        }
    });
}

/// The connection is gone. Over the link work goes on; a program's own turns end with it.
pub(crate) async fn leave(connection: &Arc<Connection>) {
    if connection.origin == Origin::Local {
        let sessions = connection.turns.sessions.lock();
        let prompts = sessions.values().flat_map(|lane| &lane.prompts);
        prompts.for_each(|(_, token)| token.cancel());
    }
}

async fn run(place: Place, params: Value) -> Result<Value, RpcError> {
    let connection = &place.connection;
    connection.limits.work()?;
    let request: v1::PromptRequest = inbound::params(params)?;
    let meta: PromptMeta = inbound::ours(request.meta.as_ref())?;
    meta.agents.map(inbound::Agents::check).transpose()?;
    meta.key.as_deref().map(keys::check).transpose()?;
    let parts = inbound::parts(request.prompt)?;
    let (session, _) = connection.workable(&place.session).await?;
    let scheduled = session.scheduled();
    // The key of a scheduled run's own prompt is the run. With another key a person goes on in
    // the run's session.
    let of_run =
        scheduled.filter(|scheduled| meta.key.as_ref().is_none_or(|key| *key == scheduled.run));
    let source = match (&of_run, meta.machine) {
        (Some(_), _) => Source::Scheduled,
        (None, true) => Source::Machine,
        (None, false) => Source::Person,
    };
    let key = match &of_run {
        Some(scheduled) => format!("run:{}", scheduled.run),
        None => meta
            .key
            .unwrap_or_else(|| format!("{}{}", connection.own, random_hex(8))),
    };
    for cancel in &place.before {
        cancel.cancelled().await;
    }
    let run = of_run
        .as_ref()
        .map(|scheduled| json!({ "schedule": scheduled.schedule, "run": scheduled.run }));
    let prompt = Prompt {
        key,
        source,
        parts,
        run,
    };
    let done = turn(&*session, prompt, &place.cancelled).await;
    let answer = answer(
        connection,
        &*session,
        done,
        &place.cancelled,
        of_run.as_ref(),
    )
    .await;
    // What happened in the turn is heard before its end.
    let head = session.summary().await.head;
    connection
        .streams
        .passed(&place.session, head, BEHIND)
        .await;
    answer
}

/// Runs the turn, and stops it when it is cancelled.
async fn turn(
    session: &dyn OneSession,
    prompt: Prompt,
    cancelled: &CancellationToken,
) -> Result<TurnDone, SessionError> {
    let mut work = session.prompt(prompt);
    // The work is looked at first: it is under way before it is cancelled, so that the message
    // stays in the journal, and a turn that has ended is not cancelled any more.
    tokio::select! {
        biased;
        done = &mut work => return done,
        () = cancelled.cancelled() => {}
    }
    // The turn that runs now is this one, or the work has an answer.
    let now = tokio::select! {
        biased;
        done = &mut work => return done,
        now = session.summary() => now,
    };
    let stop = async {
        if now.running {
            session.stop(Some(now.turn), StopWhy::Asked).await;
        }
    };
    futures_util::future::join(work, stop).await.0
}

/// As many turns run as this computer takes at once (S11). A scheduled run waits for a place.
fn full(connection: &Connection, most: usize) -> RpcError {
    error::busy("full", &connection.limits.max_sessions_words(most), 60)
}

async fn answer(
    connection: &Connection,
    session: &dyn OneSession,
    done: Result<TurnDone, SessionError>,
    cancelled: &CancellationToken,
    scheduled: Option<&Scheduled>,
) -> Result<Value, RpcError> {
    let done = match done {
        Ok(done) => done,
        Err(_) if cancelled.is_cancelled() => return Ok(json!({ "stopReason": "cancelled" })),
        Err(SessionError::TooMany(most)) => return Err(full(connection, most)),
        Err(error) => return Err(error::session(&error)),
    };
    let failed = done.stop == Stop::Failed && !cancelled.is_cancelled();
    let mut ours = Map::new();
    ours.insert("turn".to_owned(), done.turn.into());
    ours.insert("tokens".to_owned(), json!(done.tokens));
    if let Some(reason) = &done.reason {
        ours.insert("reason".to_owned(), reason.clone().into());
    }
    if let Some(scheduled) = scheduled {
        let reply = run::last_message(session, done.turn).await;
        let report = run::report(scheduled, done.stop, done.reason.as_deref(), &reply);
        ours.insert("run".to_owned(), report);
    }
    if failed {
        let text = done.reason.unwrap_or_else(|| "the turn failed".to_owned());
        ours.insert("reason".to_owned(), "failed".into());
        ours.insert("text".to_owned(), text.clone().into());
        return Err(RpcError::internal(text).with_data(Value::Object(ours)));
    }
    let stop = match done.stop {
        Stop::EndTurn => "end_turn",
        Stop::MaxTokens => "max_tokens",
        Stop::MaxTurnRequests => "max_turn_requests",
        Stop::Refusal => "refusal",
        Stop::Cancelled | Stop::Failed => "cancelled",
    };
    Ok(json!({ "stopReason": stop, "_meta": { "lembas": ours } }))
}
