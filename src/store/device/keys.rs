//! Rows of keys: what was asked for once is done once (link.md, Keys).

use rusqlite::{OptionalExtension as _, Transaction, params};

use crate::ids::Digest;
use crate::store::db::{Durability, StoreError};
use crate::store::device::Store;

/// How long a key is kept.
pub const KEPT_MS: i64 = 7 * 24 * 60 * 60 * 1000;
/// How long the key of a scheduled run is kept.
pub const RUN_KEPT_MS: i64 = 90 * 24 * 60 * 60 * 1000;

/// A key and what came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRow {
    /// Origin, method and session.
    pub scope: String,
    pub key: String,
    /// Of the parameters: the same key with others is refused.
    pub digest: Digest,
    pub outcome: String,
    /// Kept until then, milliseconds since the epoch.
    pub until: i64,
}

pub(crate) fn put(t: &Transaction<'_>, row: &KeyRow) -> Result<(), rusqlite::Error> {
    t.execute(
        "insert into keys (scope, key, digest, outcome, until) values (?1, ?2, ?3, ?4, ?5)",
        params![
            row.scope,
            row.key,
            row.digest.as_str(),
            row.outcome,
            row.until
        ],
    )?;
    Ok(())
}

/// What is known of a key when it is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is new, and kept as begun now.
    New,
    /// It was begun with the same parameters and has no outcome.
    Begun,
    /// Its outcome.
    Done(String),
    /// It was used with other parameters.
    Other,
}

/// The outcome of a key that was begun and has none yet.
const BEGUN: &str = "";

impl Store {
    /// Takes a key, flushed before it answers. The row's outcome is not looked at.
    ///
    /// # Errors
    /// When the store cannot be read or written; the key is then not taken.
    pub async fn take_key(&self, row: KeyRow) -> Result<Taken, StoreError> {
        self.db()
            .write(Durability::Disk, move |t| {
                let known: Option<(String, String)> = t
                    .query_row(
                        "select digest, outcome from keys where scope = ?1 and key = ?2",
                        [&row.scope, &row.key],
                        |r| Ok((r.get(0)?, r.get(1)?)),
                    )
                    .optional()?;
                Ok(match known {
                    Some((digest, _)) if digest != row.digest.as_str() => Taken::Other,
                    Some((_, outcome)) if outcome == BEGUN => Taken::Begun,
                    Some((_, outcome)) => Taken::Done(outcome),
                    None => {
                        let outcome = BEGUN.to_owned();
                        put(t, &KeyRow { outcome, ..row })?;
                        Taken::New
                    }
                })
            })
            .await
    }

    /// Keeps what came of a key that was taken.
    ///
    /// # Errors
    /// When it cannot be saved; the key then stays begun.
    pub async fn end_key(
        &self,
        scope: String,
        key: String,
        outcome: String,
    ) -> Result<(), StoreError> {
        self.db()
            .write(Durability::Disk, move |t| {
                t.execute(
                    "update keys set outcome = ?3 where scope = ?1 and key = ?2",
                    [&scope, &key, &outcome],
                )?;
                Ok(())
            })
            .await
    }

    /// Forgets a key of which nothing came.
    ///
    /// # Errors
    /// When it cannot be saved; the key then stays begun.
    pub async fn drop_key(&self, scope: String, key: String) -> Result<(), StoreError> {
        self.db()
            .write(Durability::Process, move |t| {
                t.execute(
                    "delete from keys where scope = ?1 and key = ?2",
                    [&scope, &key],
                )?;
                Ok(())
            })
            .await
    }

    /// What came of a key, when it is known.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn key(&self, scope: &str, key: &str) -> Result<Option<KeyRow>, StoreError> {
        let (scope, key) = (scope.to_owned(), key.to_owned());
        self.db()
            .call(move |c| {
                c.query_row(
                    "select digest, outcome, until from keys where scope = ?1 and key = ?2",
                    [&scope, &key],
                    |r| {
                        Ok(KeyRow {
                            scope: scope.clone(),
                            key: key.clone(),
                            digest: Digest::read(r.get::<_, String>(0)?),
                            outcome: r.get(1)?,
                            until: r.get(2)?,
                        })
                    },
                )
                .optional()
            })
            .await
    }

    /// Keeps a key of work that has no items of its own.
    ///
    /// # Errors
    /// When it cannot be saved, or is there already.
    pub async fn keep_key(&self, row: KeyRow) -> Result<(), StoreError> {
        self.db()
            .write(Durability::Disk, move |t| put(t, &row))
            .await
    }
}
