//! The device's store: one database, one spill folder, one epoch.
//!
//! The rows of sessions are projections of their items and are written in the same transaction
//! as the item (`device/items.rs`). Not here: the hub's tables (`store/hub`).

pub mod asks;
pub mod audit;
pub mod items;
pub mod keys;
pub mod outputs;
pub mod refused;
pub mod rewind;
pub mod rules;
pub mod sessions;
pub mod tables;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use rusqlite::{OptionalExtension as _, Transaction, params};
use tokio::sync::watch;

use crate::clock;
use crate::config::files;
use crate::ids::{SessionId, random_hex};
use crate::store::db::{Cached, Db, Durability, StoreError};

/// All sessions together may take this much disk, or 5 % of the disk when that is less. At the
/// cap no new turn begins, and the person is told to delete sessions.
pub const ALL_CAP: u64 = 4 * 1024 * 1024 * 1024;

/// A cheap handle to the device's store.
#[derive(Clone, Debug)]
pub struct Store {
    db: Db,
    folder: PathBuf,
    epoch: Arc<Mutex<String>>,
    /// Changes with every change of a rule.
    rules: watch::Sender<u64>,
}

impl Store {
    /// Opens or makes the store in a folder that exists and is this user's alone.
    ///
    /// `chain` is a file outside that folder. It and the store both carry a random mark made anew
    /// at every open: a store that lost step with it was put back from an older copy, its numbers
    /// cannot be trusted any more, and it gets a new epoch (link.md, Epoch).
    ///
    /// # Errors
    /// As [`Db::open`].
    pub async fn open(folder: &Path, chain: &Path) -> Result<Self, StoreError> {
        let db = Db::open(&folder.join("device.db"), tables::MIGRATIONS)?;
        let before = std::fs::read_to_string(chain).ok();
        let mark = random_hex(16);
        let next = mark.clone();
        // Not flushed: no start waits for the disk. Where the computer dies before this run's first
        // flushed write, the store may have lost the mark that the file has, which costs a new
        // epoch (the instance reads the chats anew) and never gives a number twice.
        let (epoch, made) = db
            .write(Durability::Process, move |t| {
                let last = state(t, "chain")?;
                let older = state(t, "chain_before")?;
                let in_step = match (&last, &before) {
                    // A new store, or one whose chain file was never written.
                    (None, _) => true,
                    // The file is the store's mark, or the one before it when the last start
                    // ended between the two writes.
                    (Some(_), Some(file)) => {
                        last.as_deref() == Some(file.trim())
                            || older.as_deref() == Some(file.trim())
                    }
                    (Some(_), None) => false,
                };
                if let Some(last) = last {
                    set_state(t, "chain_before", &last)?;
                }
                set_state(t, "chain", &next)?;
                match state(t, "epoch")? {
                    Some(epoch) if in_step => Ok((epoch, false)),
                    _ => {
                        let epoch = random_hex(8);
                        set_state(t, "epoch", &epoch)?;
                        Ok((epoch, true))
                    }
                }
            })
            .await?;
        if made {
            // A new one must not be forgotten once somebody has heard of it.
            let kept = epoch.clone();
            db.write(Durability::Disk, move |t| set_state(t, "epoch", &kept))
                .await?;
        }
        // A failed write here costs a new epoch at the next start, never a wrong one.
        if let Err(error) = files::write_private(chain, mark.as_bytes()) {
            tracing::warn!(%error, "cannot write the store's chain file");
        }
        Ok(Self {
            db,
            folder: folder.to_owned(),
            epoch: Arc::new(Mutex::new(epoch)),
            rules: watch::Sender::new(0),
        })
    }

    /// Opens the store for a command, while no daemon runs: what it holds is read, or a row is
    /// taken out, and no session goes on. The caller holds the store's lock.
    ///
    /// # Errors
    /// As [`Db::open`].
    pub fn look(folder: &Path) -> Result<Self, StoreError> {
        Ok(Self {
            db: Db::open(&folder.join("device.db"), tables::MIGRATIONS)?,
            folder: folder.to_owned(),
            epoch: Arc::default(),
            rules: watch::Sender::new(0),
        })
    }

    pub fn db(&self) -> &Db {
        &self.db
    }

    /// The epoch of the numbers in this store (link.md, Epoch).
    pub fn epoch(&self) -> String {
        self.epoch.lock().clone()
    }

    /// Begins a new epoch: an instance claimed numbers above the ones that this store gave.
    ///
    /// # Errors
    /// When it cannot be saved; the old epoch then stays.
    pub async fn renew_epoch(&self) -> Result<String, StoreError> {
        let epoch = random_hex(8);
        let next = epoch.clone();
        self.db
            .write(Durability::Disk, move |t| set_state(t, "epoch", &next))
            .await?;
        self.epoch.lock().clone_from(&epoch);
        Ok(epoch)
    }

    /// Where a session's long outputs are kept whole. Made by whoever writes there.
    pub fn spill(&self, session: &SessionId) -> PathBuf {
        self.folder.join("spill").join(session.as_str())
    }

    /// Whether all sessions together have reached the cap, and the words for it.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn full(&self) -> Result<Option<String>, StoreError> {
        let used: i64 = self
            .db
            .call(|c| {
                c.query_row_cached(
                    "select (page_count - freelist_count) * page_size
                     from pragma_page_count, pragma_freelist_count, pragma_page_size",
                    [],
                    |r| r.get(0),
                )
            })
            .await?;
        let spilled = outputs::spilled(self.folder.join("spill")).await;
        let cap = ALL_CAP.min(disk_size(&self.folder).map_or(ALL_CAP, |d| d / 20));
        Ok((unsigned(used).saturating_add(spilled) >= cap).then(|| {
            format!(
                "The sessions kept on this computer take {} MiB, which is all they may: delete some (lembas sessions delete ID).",
                cap / (1024 * 1024)
            )
        }))
    }

    /// Drops what has had its time: keys after their days, audit lines after a year.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn prune(&self) -> Result<(), StoreError> {
        let now = clock::now_ms();
        self.db
            .write(Durability::Process, move |t| {
                t.execute_cached("delete from keys where until < ?1", params![now])?;
                t.execute_cached(
                    "delete from audit where time < ?1",
                    params![now - audit::KEPT_MS],
                )?;
                Ok(())
            })
            .await
    }
}

fn state(t: &Transaction<'_>, name: &str) -> Result<Option<String>, rusqlite::Error> {
    t.query_row_cached("select value from state where name = ?1", [name], |r| {
        r.get(0)
    })
    .optional()
}

fn set_state(t: &rusqlite::Connection, name: &str, value: &str) -> Result<(), rusqlite::Error> {
    t.execute_cached(
        "insert into state (name, value) values (?1, ?2)
         on conflict (name) do update set value = excluded.value",
        [name, value],
    )?;
    Ok(())
}

fn disk_size(folder: &Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(folder).ok()?;
    stat.f_blocks.checked_mul(stat.f_frsize)
}

/// A number as SQLite keeps it.
pub(crate) fn signed(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// A number as it was kept.
pub(crate) fn unsigned(n: i64) -> u64 {
    u64::try_from(n).unwrap_or(0)
}

/// A value of ours as text; our own types always have one.
pub(crate) fn json<T: serde::Serialize>(value: &T) -> Result<String, rusqlite::Error> {
    serde_json::to_string(value).map_err(|e| rusqlite::Error::ToSqlConversionFailure(Box::new(e)))
}

/// Text of ours as a value; what cannot be read is an error that names the column.
pub(crate) fn read_json<T: serde::de::DeserializeOwned>(
    column: usize,
    text: &str,
) -> Result<T, rusqlite::Error> {
    serde_json::from_str(text).map_err(|e| {
        rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, Box::new(e))
    })
}

#[cfg(test)]
pub(crate) mod tests;
