//! The audit log: who, what, when, verdict, origin, digest, and no content. The table refuses
//! changes; lines go after a year.

use rusqlite::{Transaction, params};

use crate::ids::{Digest, SessionId};
use crate::store::db::{Durability, StoreError};
use crate::store::device::{Store, signed};

/// How long a line is kept. The table's trigger holds the same number.
pub const KEPT_MS: i64 = 365 * 24 * 60 * 60 * 1000;

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditLine {
    pub time: i64,
    pub session: Option<SessionId>,
    pub origin: String,
    /// Who gave the word, in words; `lembas` when it was the program itself.
    pub who: String,
    /// `execute`, `write`, `read`, `limits` …: the kind of thing, never its content.
    pub what: String,
    /// `allowed once`, `refused`, `expired`, `ran`, `not run (why)` …
    pub verdict: String,
    pub digest: Option<Digest>,
}

pub(crate) fn put(t: &Transaction<'_>, line: &AuditLine) -> Result<(), rusqlite::Error> {
    t.prepare_cached(
        "insert into audit (time, session, origin, who, what, verdict, digest)
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?
    .execute(params![
        line.time,
        line.session.as_ref().map(SessionId::as_str),
        line.origin,
        line.who,
        line.what,
        line.verdict,
        line.digest.as_ref().map(Digest::as_str),
    ])?;
    Ok(())
}

impl Store {
    /// Adds a line of its own, where no item goes with it.
    ///
    /// # Errors
    /// When it cannot be saved.
    pub async fn audit(&self, line: AuditLine) -> Result<(), StoreError> {
        self.db()
            .write(Durability::Disk, move |t| put(t, &line))
            .await
    }

    /// The newest lines, oldest of them first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn audit_log(&self, limit: usize) -> Result<Vec<AuditLine>, StoreError> {
        self.db()
            .call(move |c| {
                let mut lines: Vec<AuditLine> = c
                    .prepare_cached(
                        "select time, session, origin, who, what, verdict, digest from audit
                         order by id desc limit ?1",
                    )?
                    .query_map([signed(limit as u64)], |r| {
                        Ok(AuditLine {
                            time: r.get(0)?,
                            session: r.get::<_, Option<String>>(1)?.map(SessionId::new),
                            origin: r.get(2)?,
                            who: r.get(3)?,
                            what: r.get(4)?,
                            verdict: r.get(5)?,
                            digest: r.get::<_, Option<String>>(6)?.map(Digest::read),
                        })
                    })?
                    .collect::<Result<_, _>>()?;
                lines.reverse();
                Ok(lines)
            })
            .await
    }
}
