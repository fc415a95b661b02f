//! Rows of keys: what was asked for once is done once (link.md, Keys).

use rusqlite::{OptionalExtension as _, Transaction, params};

use crate::ids::Digest;
use crate::store::db::{Cached, Durability, StoreError};
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
    t.execute_cached(
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

impl Store {
    /// What came of a key, when it is known.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn key(&self, scope: &str, key: &str) -> Result<Option<KeyRow>, StoreError> {
        let (scope, key) = (scope.to_owned(), key.to_owned());
        self.db()
            .call(move |c| {
                c.query_row_cached(
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

    /// Takes a key for work that begins now, with `outcome` until it has another. Answers what
    /// the key is known for already, and then changes nothing.
    ///
    /// # Errors
    /// When it cannot be saved.
    pub async fn take_key(&self, row: KeyRow) -> Result<Option<KeyRow>, StoreError> {
        self.db()
            .write(Durability::Disk, move |t| {
                let known = t
                    .query_row_cached(
                        "select digest, outcome, until from keys where scope = ?1 and key = ?2",
                        [&row.scope, &row.key],
                        |r| {
                            Ok(KeyRow {
                                scope: row.scope.clone(),
                                key: row.key.clone(),
                                digest: Digest::read(r.get::<_, String>(0)?),
                                outcome: r.get(1)?,
                                until: r.get(2)?,
                            })
                        },
                    )
                    .optional()?;
                if known.is_none() {
                    put(t, &row)?;
                }
                Ok(known)
            })
            .await
    }

    /// Records what came of a key's work; none: the work was refused, and the key is free again.
    ///
    /// # Errors
    /// When it cannot be saved.
    pub async fn end_key(
        &self,
        scope: &str,
        key: &str,
        outcome: Option<String>,
    ) -> Result<(), StoreError> {
        let (scope, key) = (scope.to_owned(), key.to_owned());
        self.db()
            .write(Durability::Disk, move |t| {
                match outcome {
                    Some(outcome) => t.execute_cached(
                        "update keys set outcome = ?3 where scope = ?1 and key = ?2",
                        params![scope, key, outcome],
                    )?,
                    None => t.execute_cached(
                        "delete from keys where scope = ?1 and key = ?2",
                        params![scope, key],
                    )?,
                };
                Ok(())
            })
            .await
    }
}
