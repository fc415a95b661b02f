//! A wait that is ended and messages that are taken back: `_lembas/retry` and `_lembas/rewind`.

use std::sync::Arc;

use futures_util::FutureExt as _;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Asked;
use crate::acp::error;
use crate::acp::inbound;
use crate::acp::prompt::BEHIND;
use crate::ids::{Seq, SessionId};
use crate::rpc::RpcError;

#[derive(Deserialize)]
struct Retry {
    #[serde(rename = "sessionId")]
    session: SessionId,
    turn: Option<u32>,
}

/// `_lembas/retry`: the model that failed is asked again now.
pub(super) async fn retry(asked: Asked, params: Value) -> Result<Value, RpcError> {
    let Retry { session, turn } = inbound::params(params)?;
    let session = asked.connection.session(&session).await?;
    let outcome = if session.retry(turn).await {
        "retried"
    } else {
        "gone"
    };
    Ok(json!({ "outcome": outcome }))
}

#[derive(Deserialize)]
struct Rewind {
    #[serde(rename = "sessionId")]
    session: SessionId,
    seq: Seq,
    key: Option<String>,
}

/// `_lembas/rewind`: back to before a message.
pub(super) async fn rewind(asked: Asked, params: Value) -> Result<Value, RpcError> {
    let Rewind { session, seq, key } = inbound::params(params.clone())?;
    let connection = Arc::clone(&asked.connection);
    let subject = session.as_str().to_owned();
    let work = async move {
        let open = connection.session(&session).await?;
        let said = open.rewind(seq, &connection.who()).await;
        let said = said.map_err(|error| error::session(&error))?;
        // It is heard before the answer.
        connection.streams.passed(&session, said, BEHIND).await;
        Ok(json!({ "seq": said }))
    };
    asked
        .connection
        .keyed("_lembas/rewind", subject, key, &params, work.boxed())
        .await
}
