//! Rows of asks: a question and its only end.

use rusqlite::{OptionalExtension as _, Row, Transaction, params};

use crate::ids::{AskId, Seq, SessionId};
use crate::store::db::{Cached, Durability, StoreError};
use crate::store::device::{Store, json, read_json, signed, unsigned};
use crate::store::item::{AskBody, Item, Scope, Settled};

/// A question as it is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct AskRow {
    pub session: SessionId,
    pub seq: Seq,
    pub made: i64,
    pub body: AskBody,
    /// What was left of its wait when it was last saved; none: no deadline.
    pub left_ms: Option<u64>,
    /// Its wait runs: the instance has acknowledged it.
    pub heard: bool,
    pub end: Option<AskEnd>,
}

/// How a question ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskEnd {
    pub how: Settled,
    pub by: String,
    pub at: i64,
}

fn word<T: serde::Serialize>(value: &T) -> Result<String, rusqlite::Error> {
    Ok(json(value)?.trim_matches('"').to_owned())
}

pub(crate) fn put(
    t: &Transaction<'_>,
    session: &SessionId,
    item: &Item,
    body: &AskBody,
) -> Result<(), rusqlite::Error> {
    t.execute_cached(
        "insert into asks (ask, session, seq, made, body, left_ms) values (?1, ?2, ?3, ?4, ?5, ?6)",
        params![
            body.ask.as_str(),
            session.as_str(),
            signed(item.seq.0),
            item.time,
            json(body)?,
            body.wait_ms.map(signed),
        ],
    )?;
    Ok(())
}

/// Ends an ask. One that has ended already makes the whole transaction fail.
pub(crate) fn settle(
    t: &Transaction<'_>,
    ask: &AskId,
    how: Settled,
    scope: Option<Scope>,
    by: &str,
    note: Option<&str>,
    at: i64,
) -> Result<(), rusqlite::Error> {
    let changed = t.execute_cached(
        "update asks set settled = ?2, scope = ?3, by = ?4, note = ?5, at = ?6
         where ask = ?1 and settled is null",
        params![
            ask.as_str(),
            word(&how)?,
            scope.map(|s| word(&s)).transpose()?,
            by,
            note,
            at
        ],
    )?;
    if changed == 1 {
        Ok(())
    } else {
        Err(rusqlite::Error::StatementChangedRows(changed))
    }
}

const COLUMNS: &str =
    "asks.session, asks.seq, asks.made, asks.body, left_ms, heard, settled, by, at";

fn row(r: &Row<'_>) -> Result<AskRow, rusqlite::Error> {
    let body: String = r.get(3)?;
    let settled: Option<String> = r.get(6)?;
    let end = match settled {
        Some(word) => Some(AskEnd {
            how: read_json(6, &format!("\"{word}\""))?,
            by: r.get::<_, Option<String>>(7)?.unwrap_or_default(),
            at: r.get::<_, Option<i64>>(8)?.unwrap_or_default(),
        }),
        None => None,
    };
    Ok(AskRow {
        session: SessionId::new(r.get::<_, String>(0)?),
        seq: Seq(unsigned(r.get(1)?)),
        made: r.get(2)?,
        body: read_json(3, &body)?,
        left_ms: r.get::<_, Option<i64>>(4)?.map(unsigned),
        heard: r.get(5)?,
        end,
    })
}

impl Store {
    /// One ask, open or ended.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn ask(&self, ask: &AskId) -> Result<Option<AskRow>, StoreError> {
        let ask = ask.clone();
        self.db()
            .call(move |c| {
                c.query_row_cached(
                    &format!("select {COLUMNS} from asks where ask = ?1"),
                    [ask.as_str()],
                    row,
                )
                .optional()
            })
            .await
    }

    /// Asks that have ended and whose ids begin so, newest first, at most two: enough to know
    /// whether one is meant.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn ended_asks(&self, start: &str) -> Result<Vec<AskRow>, StoreError> {
        let start = start.to_owned();
        self.db()
            .call(move |c| {
                c.prepare_cached(&format!(
                    "select {COLUMNS} from asks
                     where settled is not null and substr(ask, 1, length(?1)) = ?1
                     order by asks.made desc, asks.seq desc limit 2"
                ))?
                .query_map([start.as_str()], row)?
                .collect()
            })
            .await
    }

    /// Open asks, oldest first: of one session, or of all that an origin may see (`None`: all).
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn open_asks(
        &self,
        session: Option<&SessionId>,
        origin: Option<&str>,
    ) -> Result<Vec<(AskRow, String)>, StoreError> {
        let session = session.cloned();
        let origin = origin.map(ToOwned::to_owned);
        self.db()
            .call(move |c| {
                c.prepare_cached(&format!(
                    "select {COLUMNS}, sessions.origin from asks
                     join sessions on sessions.id = asks.session
                     where settled is null and (?1 is null or asks.session = ?1)
                       and (?2 is null or sessions.origin = ?2 or sessions.shared = 1)
                     order by asks.made, asks.seq"
                ))?
                .query_map(
                    params![session.as_ref().map(SessionId::as_str), origin],
                    |r| Ok((row(r)?, r.get(9)?)),
                )?
                .collect()
            })
            .await
    }

    /// Keeps what is left of an open ask's wait.
    ///
    /// # Errors
    /// When it cannot be saved.
    pub async fn keep_wait(
        &self,
        ask: &AskId,
        left_ms: Option<u64>,
        heard: bool,
    ) -> Result<(), StoreError> {
        let ask = ask.clone();
        self.db()
            .write(Durability::Disk, move |t| {
                t.execute_cached(
                    "update asks set left_ms = ?2, heard = ?3 where ask = ?1 and settled is null",
                    params![ask.as_str(), left_ms.map(signed), heard],
                )?;
                Ok(())
            })
            .await
    }
}
