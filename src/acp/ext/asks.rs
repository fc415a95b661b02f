//! Answers to open questions that come by themselves: `_lembas/answer`, `_lembas/extend`,
//! `_lembas/ack`.

use std::sync::Arc;

use futures_util::FutureExt as _;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Asked, Place};
use crate::acp::connection::Connection;
use crate::acp::error::{GONE, bad};
use crate::acp::inbound;
use crate::acp::port::OneSession;
use crate::clock;
use crate::ids::{AskId, Digest};
use crate::rpc::RpcError;
use crate::session::{Answer, AnswerError, Outcome};
use crate::store::item::Scope;
use crate::text::escape;

/// The longest words that a person sends along with an answer, in characters.
const NOTE: usize = 4000;

#[derive(Deserialize)]
struct Given {
    ask: AskId,
    digest: Digest,
    outcome: Outcome,
    scope: Option<Scope>,
    note: Option<String>,
    #[serde(default)]
    selected: Vec<String>,
    by: Option<String>,
    key: Option<String>,
}

/// `_lembas/answer`: taken, or why it does not count.
pub(super) async fn answer(asked: Asked, params: Value) -> Result<Value, RpcError> {
    let given: Given = inbound::params(params.clone())?;
    if given
        .note
        .as_ref()
        .is_some_and(|note| note.chars().count() > NOTE)
    {
        return Err(bad(
            "params",
            format!("a note has at most {NOTE} characters"),
        ));
    }
    let connection = Arc::clone(&asked.connection);
    let subject = given.ask.as_str().chars().take(200).collect();
    let key = given.key.clone();
    let work = async move {
        let session = session_of(&connection, &given.ask).await?;
        let answer = Answer {
            ask: given.ask,
            digest: given.digest,
            outcome: given.outcome,
            scope: given.scope.unwrap_or(Scope::Once),
            note: given.note.filter(|note| !note.trim().is_empty()),
            selected: given.selected,
            origin: connection.origin.clone(),
            by: given
                .by
                .and_then(|by| plain(&by))
                .unwrap_or_else(|| connection.who()),
        };
        let at = session
            .answer(answer)
            .await
            .map_err(|error| refused(&error))?;
        Ok(json!({ "taken": true, "at": at }))
    };
    asked
        .connection
        .keyed("_lembas/answer", subject, key, &params, work.boxed())
        .await
}

/// A name as one line. Over the link nobody is at this computer, whatever they call themselves.
fn plain(name: &str) -> Option<String> {
    let name = escape::label(name, 80);
    let poses = escape::read_as(&name)
        .to_lowercase()
        .contains("this computer");
    (!name.is_empty() && !poses).then_some(name)
}

/// The session of a question: of one that is open, or that was said on this connection.
async fn session_of(connection: &Connection, ask: &AskId) -> Result<Arc<dyn OneSession>, RpcError> {
    let open = connection.device.sessions.asks(&connection.origin).await;
    let id = open
        .into_iter()
        .find(|open| open.body.ask == *ask)
        .map(|open| open.session)
        .or_else(|| connection.asked.session(ask))
        .ok_or_else(|| gone("unknown", "no such question is open"))?;
    connection.session(&id).await
}

/// It ended before: `settled` says how, by whom and when (Q6).
fn gone(reason: &str, text: &str) -> RpcError {
    RpcError::new(GONE, text).with_data(json!({ "reason": reason, "text": text }))
}

fn refused(error: &AnswerError) -> RpcError {
    let text = error.to_string();
    match error {
        AnswerError::Settled { how, by, at } => RpcError::new(GONE, text.clone()).with_data(
            json!({ "reason": "settled", "text": text, "how": how, "by": by, "at": at }),
        ),
        AnswerError::Changed => gone("changed", &text),
        AnswerError::Unknown => gone("unknown", &text),
        AnswerError::LocalOnly | AnswerError::Scope(_) | AnswerError::Choice(_) => {
            bad("params", text)
        }
        AnswerError::Store(why) => {
            let text = format!("{text}: {why}");
            RpcError::internal(text.clone()).with_data(json!({ "reason": "store", "text": text }))
        }
    }
}

#[derive(Deserialize)]
struct Extend {
    ask: AskId,
    seconds: u64,
}

/// `_lembas/extend`: a longer wait, as far as this computer lets it (`remote.approval_max`).
pub(super) async fn extend(asked: Asked, params: Value) -> Result<Value, RpcError> {
    let Extend { ask, seconds } = inbound::params(params)?;
    let connection = &asked.connection;
    let session = session_of(connection, &ask).await?;
    let left = session
        .extend(&ask, seconds)
        .await
        .map_err(|error| refused(&error))?;
    let mut said = json!({ "now": clock::now_ms() });
    if let (Some(left), Some(said)) = (left, said.as_object_mut()) {
        let ms = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
        said.insert("expires_in".to_owned(), ms.into());
    }
    Ok(said)
}

/// `_lembas/ack`: the instance has everything up to there; the waits of asks among it begin.
pub(crate) async fn ack(connection: &Connection, params: Value) {
    let Ok(Place { session, seq, .. }) = inbound::params::<Place>(params) else {
        tracing::debug!("an acknowledgement could not be read");
        return;
    };
    let Ok(session) = connection.session(&session).await else {
        return;
    };
    for ask in session.asks().await {
        if ask.seq <= seq {
            session.ask_heard(&ask.body.ask).await;
        }
    }
}
