//! What a person took back (spec/acp.md, J4): it stays where it is, and counts no more for what
//! the model is sent. Not here: who may take back what, and when.

use rusqlite::{Connection, OptionalExtension as _, params};
use serde_json::Value;

use crate::ids::{Seq, SessionId};
use crate::store::db::StoreError;
use crate::store::device::{Store, read_json, signed, unsigned};

/// A summary of what came before: its number, the last item that it covers, and the turn that it
/// was made in.
type Summary = (u64, i64, u32);

/// Of one session: what was taken back, and the summaries that stand for its beginning.
#[derive(Debug, Default)]
pub(super) struct TakenBack {
    /// From a prompt up to the item that took it back, without that.
    ranges: Vec<(u64, u64)>,
    /// The newest first.
    summaries: Vec<Summary>,
}

impl TakenBack {
    pub(super) fn of(c: &Connection, session: &SessionId) -> Result<Self, rusqlite::Error> {
        let mut found = Self::default();
        let mut query = c.prepare(
            "select seq, json_extract(body, '$.to'), json_extract(body, '$.compacted.upto'), turn
             from items where session = ?1 and kind in ('notice', 'rewound') order by seq desc",
        )?;
        let rows = query.query_map([session.as_str()], |r| {
            let (seq, to, upto): (i64, Option<i64>, Option<i64>) =
                (r.get(0)?, r.get(1)?, r.get(2)?);
            Ok((unsigned(seq), to, upto, r.get(3)?))
        })?;
        for row in rows {
            let (seq, to, upto, turn) = row?;
            match (to, upto) {
                (Some(to), _) => found.ranges.push((unsigned(to), seq)),
                (None, Some(upto)) => found.summaries.push((seq, upto, turn)),
                (None, None) => {}
            }
        }
        Ok(found)
    }

    /// Whether the item with this number was not taken back.
    pub(super) fn counts(&self, seq: u64) -> bool {
        !self
            .ranges
            .iter()
            .any(|(to, end)| (*to..*end).contains(&seq))
    }

    /// The newest summary that counts: the last item that it covers, and its turn.
    pub(super) fn summary(&self) -> Option<(i64, u32)> {
        let newest = self.summaries.iter().find(|(seq, ..)| self.counts(*seq));
        newest.map(|(_, upto, turn)| (*upto, *turn))
    }

    /// The newest plan that counts, of all or of those before an item.
    pub(super) fn plan(
        &self,
        c: &Connection,
        session: &SessionId,
        before: Option<Seq>,
    ) -> Result<Option<u64>, rusqlite::Error> {
        let before = before.map_or(i64::MAX, |seq| signed(seq.0));
        let mut query = c.prepare(
            "select seq from items where session = ?1 and kind = 'plan' and seq < ?2
             order by seq desc",
        )?;
        let rows = query.query_map(params![session.as_str(), before], |r| {
            Ok(unsigned(r.get(0)?))
        })?;
        for seq in rows {
            let seq = seq?;
            if self.counts(seq) {
                return Ok(Some(seq));
            }
        }
        Ok(None)
    }
}

/// What changes when a session goes back to before a prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct Before {
    /// The plan as it was then; none: it is the same now.
    pub plan: Option<Value>,
}

impl Store {
    /// What going back to before the prompt `to` would change; none: that is no prompt, or it was
    /// taken back already.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn before_prompt(
        &self,
        session: &SessionId,
        to: Seq,
    ) -> Result<Option<Before>, StoreError> {
        let session = session.clone();
        self.db()
            .call(move |c| {
                let back = TakenBack::of(c, &session)?;
                let is_prompt: bool = c.query_row(
                    "select exists (select 1 from items where session = ?1 and seq = ?2
                       and kind = 'prompt')",
                    params![session.as_str(), signed(to.0)],
                    |r| r.get(0),
                )?;
                if !is_prompt || !back.counts(to.0) {
                    return Ok(None);
                }
                let then = back.plan(c, &session, Some(to))?;
                let now = back.plan(c, &session, None)?;
                if then == now {
                    return Ok(Some(Before { plan: None }));
                }
                let plan = match then {
                    Some(seq) => plan_at(c, &session, seq)?,
                    None => None,
                };
                Ok(Some(Before {
                    plan: Some(plan.unwrap_or(Value::Null)),
                }))
            })
            .await
    }
}

fn plan_at(
    c: &Connection,
    session: &SessionId,
    seq: u64,
) -> Result<Option<Value>, rusqlite::Error> {
    let body: Option<String> = c
        .query_row(
            "select body from items where session = ?1 and seq = ?2",
            params![session.as_str(), signed(seq)],
            |r| r.get(0),
        )
        .optional()?;
    let body: Option<Value> = body.map(|body| read_json(0, &body)).transpose()?;
    Ok(body.and_then(|body| body.get("plan").cloned()))
}
