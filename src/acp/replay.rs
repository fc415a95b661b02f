//! `session/load`: the whole journal said again, before the answer.
//!
//! Its updates are marked with the id of the request; live updates of that session wait until the
//! load has answered. A long journal takes its turns at the link like any stream.

use std::sync::Arc;

use agent_client_protocol_schema::v1;
use serde_json::{Value, json};

use super::connection::Connection;
use super::error;
use super::inbound;
use super::opening::{given, modes, same_folder, state};
use super::stream::TURN;
use crate::ids::{Position, Seq, SessionId};
use crate::rpc::{Call, RpcError};
use crate::session::Event;

/// Items that are read from the store at once.
const BATCH: usize = 64;

pub(crate) async fn load(connection: Arc<Connection>, call: Call) -> Result<Value, RpcError> {
    let request: v1::LoadSessionRequest = inbound::params(call.params)?;
    given(
        &connection,
        &request.mcp_servers,
        request.system_prompt.is_some(),
    )?;
    let id = SessionId::new(request.session_id.0.as_ref());
    let (session, summary) = connection.workable(&id).await?;
    same_folder(&connection, &summary, request.cwd).await?;
    connection.streams.hold(&id, call.answered.clone()).await;
    let start = connection.view(id.clone(), Position::default());
    let mut view = start.replaying(json!(call.id));
    // What comes behind this is live, and said after the answer.
    let head = summary.head;
    let mut from = Seq(0);
    while from <= head {
        let items = session.items(from, BATCH).await;
        let items = items.map_err(|error| error::session(&error))?;
        if items.is_empty() {
            break;
        }
        let mut turn = connection.streams.turn().await;
        let mut left = TURN;
        for item in items {
            from = Seq(item.seq.0 + 1);
            for frame in view.frames(Event::Item(item)) {
                if left == 0 {
                    drop(turn);
                    turn = connection.streams.turn().await;
                    left = TURN;
                }
                left = left.saturating_sub(frame.size);
                let sent = connection.peer.notify(frame.method, frame.params).await;
                sent.map_err(|closed| RpcError::internal(closed.to_string()))?;
            }
        }
        drop(turn);
    }
    connection.opened(&*session, view.sent(), call.answered)?;
    Ok(json!({
        "modes": modes(summary.mode),
        "_meta": { "lembas": state(&connection, &summary) },
    }))
}
