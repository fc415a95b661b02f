//! `_lembas/output`: every byte that a call put out, a piece a request.
//!
//! Whoever reads asks for the next piece when it has room for it, so a long output fills no queue.

use std::collections::VecDeque;

use base64::Engine as _;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Asked;
use crate::acp::error::{self, GONE, Refusal, bad};
use crate::acp::inbound;
use crate::ids::{CallId, SessionId};
use crate::rpc::RpcError;
use crate::session::{Output, OutputError};

/// Bytes in one answer: as base64 they fit a frame (F2).
const MOST: usize = 90 * 1024;
/// Outputs that a connection keeps open, so that not every piece looks the call up anew; the one
/// opened longest ago goes for the next.
const OPEN: usize = 4;

/// The outputs that a connection reads.
#[derive(Default)]
pub(crate) struct Outputs(Mutex<VecDeque<(SessionId, CallId, Output)>>);

impl Outputs {
    fn get(&self, session: &SessionId, call: &CallId) -> Option<Output> {
        let open = self.0.lock();
        let found = open.iter().find(|(s, c, _)| s == session && c == call);
        found.map(|(_, _, output)| output.clone())
    }

    fn keep(&self, session: SessionId, call: CallId, output: Output) {
        let mut open = self.0.lock();
        open.retain(|(s, c, _)| *s != session || *c != call);
        if open.len() >= OPEN {
            open.pop_front();
        }
        open.push_back((session, call, output));
    }
}

#[derive(Deserialize)]
struct Piece {
    #[serde(rename = "sessionId")]
    session: SessionId,
    call: CallId,
    #[serde(default)]
    from: u64,
    #[serde(default)]
    max: Option<usize>,
}

/// `_lembas/output`.
pub(super) async fn output(asked: Asked, params: Value) -> Result<Value, RpcError> {
    let piece: Piece = inbound::params(params)?;
    let connection = &asked.connection;
    let session = connection.session(&piece.session).await?;
    // The first piece looks anew: the same call is then read to its end from one state.
    let known = connection.outputs.get(&piece.session, &piece.call);
    let output = match known.filter(|_| piece.from > 0) {
        Some(output) => output,
        None => {
            let output = session.output(&piece.call).await.map_err(|e| refused(&e))?;
            let (session, call) = (piece.session, piece.call);
            connection.outputs.keep(session, call, output.clone());
            output
        }
    };
    if piece.from > output.total {
        let text = format!("the output has {} bytes: from is past them", output.total);
        return Err(bad("params", text));
    }
    let max = piece.max.unwrap_or(MOST).min(MOST);
    let bytes = output.read(piece.from, max).await;
    let bytes = bytes.map_err(|e| refused(&OutputError::File(e)))?;
    let end = piece.from.saturating_add(bytes.len() as u64) >= output.total;
    let mut answer = json!({
        "data": base64::engine::general_purpose::STANDARD.encode(&bytes),
        "from": piece.from, "total": output.total, "end": end,
    });
    if let (true, Some(answer)) = (output.missing > 0, answer.as_object_mut()) {
        answer.insert("missing".to_owned(), output.missing.into());
    }
    Ok(answer)
}

fn refused(why: &OutputError) -> RpcError {
    let text = error::whole(why);
    match why {
        OutputError::Unknown => Refusal::new(GONE, "unknown", text).into(),
        OutputError::Gone => Refusal::new(GONE, "gone", text).into(),
        OutputError::Running => error::busy("running", &text, 5),
        OutputError::File(_) | OutputError::Store(_) => {
            RpcError::internal(text.clone()).with_data(json!({ "reason": "store", "text": text }))
        }
    }
}
