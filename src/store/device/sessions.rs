//! Rows of sessions.

use std::path::PathBuf;

use rusqlite::{OptionalExtension as _, Row, params};

use crate::config::Mode;
use crate::ids::{Seq, SessionId};
use crate::store::db::{Cached, Durability, StoreError};
use crate::store::device::keys::KeyRow;
use crate::store::device::{Store, json, keys, read_json, signed, unsigned};

/// One session, without its items. JSON columns are text here; their owners read them.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionRow {
    pub id: SessionId,
    /// As the session layer spells it; equal text means equal origin.
    pub origin: String,
    pub shared: bool,
    pub cwd: PathBuf,
    pub also: Vec<PathBuf>,
    pub model: String,
    pub mode: Mode,
    pub level: Option<String>,
    pub title: Option<String>,
    pub made: i64,
    pub updated: i64,
    pub said: Option<String>,
    pub context: Option<String>,
    pub agents: Option<String>,
    pub scheduled: Option<String>,
    pub prompt: Option<String>,
    pub told: Option<String>,
    pub reserved: u64,
    pub head: Seq,
    pub turn: u32,
    /// A turn has begun and not ended, also when the daemon stopped in between.
    pub running: bool,
    /// Tool calls made so far; the next one's id follows from it.
    pub calls: u32,
    /// Bytes of its items.
    pub bytes: u64,
    /// Open asks.
    pub asks: usize,
}

const COLUMNS: &str = "id, origin, shared, cwd, also, model, mode, level, title, made, updated, \
     said, context, agents, scheduled, prompt, told, reserved, head, turn, running, calls, bytes, \
     (select count(*) from asks where asks.session = sessions.id and settled is null)";

fn row(r: &Row<'_>) -> Result<SessionRow, rusqlite::Error> {
    let mode: String = r.get(6)?;
    let also: String = r.get(4)?;
    Ok(SessionRow {
        id: SessionId::new(r.get::<_, String>(0)?),
        origin: r.get(1)?,
        shared: r.get(2)?,
        cwd: PathBuf::from(r.get::<_, String>(3)?),
        also: read_json(4, &also)?,
        model: r.get(5)?,
        mode: read_json(6, &format!("\"{mode}\""))?,
        level: r.get(7)?,
        title: r.get(8)?,
        made: r.get(9)?,
        updated: r.get(10)?,
        said: r.get(11)?,
        context: r.get(12)?,
        agents: r.get(13)?,
        scheduled: r.get(14)?,
        prompt: r.get(15)?,
        told: r.get(16)?,
        reserved: unsigned(r.get(17)?),
        head: Seq(unsigned(r.get(18)?)),
        turn: r.get(19)?,
        running: r.get(20)?,
        calls: r.get(21)?,
        bytes: unsigned(r.get(22)?),
        asks: usize::try_from(r.get::<_, i64>(23)?).unwrap_or(0),
    })
}

/// The word a mode has in the store and in the spec.
pub fn mode_word(mode: Mode) -> &'static str {
    match mode {
        Mode::Plan => "plan",
        Mode::Manual => "manual",
        Mode::Edit => "edit",
        Mode::Auto => "auto",
    }
}

/// Which sessions a list shall have.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// Only this origin's and shared ones; none: all.
    pub origin: Option<String>,
    pub cwd: Option<PathBuf>,
    /// `(updated, id)` of the last one of the page before.
    pub after: Option<(i64, String)>,
    pub limit: usize,
}

impl Store {
    /// Makes a session, with the key that opened it in the same transaction.
    ///
    /// # Errors
    /// When it cannot be saved; nothing is kept then.
    pub async fn add_session(
        &self,
        new: SessionRow,
        key: Option<KeyRow>,
    ) -> Result<(), StoreError> {
        self.db()
            .write(Durability::Disk, move |t| {
                let updated = change_time(t, new.updated)?;
                t.execute_cached(
                    "insert into sessions (id, origin, cwd, also, model, mode, level, made, updated, \
                     said, context, agents, scheduled) \
                     values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
                    params![
                        new.id.as_str(),
                        new.origin,
                        new.cwd.to_string_lossy(),
                        json(&new.also)?,
                        new.model,
                        mode_word(new.mode),
                        new.level,
                        new.made,
                        updated,
                        new.said,
                        new.context,
                        new.agents,
                        new.scheduled,
                    ],
                )?;
                if let Some(key) = key {
                    keys::put(t, &key)?;
                }
                Ok(())
            })
            .await
    }

    /// One session's row.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn session(&self, id: &SessionId) -> Result<Option<SessionRow>, StoreError> {
        let id = id.clone();
        self.db()
            .call(move |c| {
                c.prepare_cached(&format!("select {COLUMNS} from sessions where id = ?1"))?
                    .query_row([id.as_str()], row)
                    .optional()
            })
            .await
    }

    /// A page of sessions, the one that changed last first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn sessions(&self, which: Listing) -> Result<Vec<SessionRow>, StoreError> {
        self.db()
            .call(move |c| {
                let cwd = which.cwd.map(|p| p.to_string_lossy().into_owned());
                let (time, id) = which
                    .after
                    .map_or((None, None), |(t, i)| (Some(t), Some(i)));
                c.prepare_cached(&format!(
                    "select {COLUMNS} from sessions
                     where (?1 is null or origin = ?1 or shared = 1)
                       and (?2 is null or cwd = ?2)
                       and (?3 is null or updated < ?3 or (updated = ?3 and id < ?4))
                     order by updated desc, id desc limit ?5"
                ))?
                .query_map(
                    params![which.origin, cwd, time, id, signed(which.limit as u64)],
                    row,
                )?
                .collect()
            })
            .await
    }

    /// At most two sessions whose id begins so: enough to tell whether it is clear which is meant.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn sessions_beginning(&self, id: &str) -> Result<Vec<SessionRow>, StoreError> {
        let id = id.to_owned();
        self.db()
            .call(move |c| {
                c.prepare_cached(&format!(
                    "select {COLUMNS} from sessions where substr(id, 1, length(?1)) = ?1 limit 2"
                ))?
                .query_map([id], row)?
                .collect()
            })
            .await
    }

    /// When a session that an origin may see (`None`: any) changed last; never less than it was
    /// before, also when that session is gone.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn newest_change(&self, origin: Option<String>) -> Result<i64, StoreError> {
        self.db()
            .call(move |c| {
                let listed: i64 = c.query_row_cached(
                    "select coalesce(max(updated), 0) from sessions
                     where ?1 is null or origin = ?1 or shared = 1",
                    params![origin],
                    |r| r.get(0),
                )?;
                Ok(listed.max(last_seen(c)?))
            })
            .await
    }

    /// Sessions whose turn has not ended.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn unfinished(&self) -> Result<Vec<SessionRow>, StoreError> {
        self.db()
            .call(|c| {
                c.prepare_cached(&format!(
                    "select {COLUMNS} from sessions where running = 1 order by updated"
                ))?
                .query_map([], row)?
                .collect()
            })
            .await
    }

    /// Keeps the system prompt and tools as first sent.
    ///
    /// # Errors
    /// When it cannot be saved.
    pub async fn keep_prompt(&self, id: &SessionId, prompt: String) -> Result<(), StoreError> {
        let id = id.clone();
        self.db()
            .write(Durability::Process, move |t| {
                t.execute_cached(
                    "update sessions set prompt = ?2 where id = ?1",
                    params![id.as_str(), prompt],
                )?;
                Ok(())
            })
            .await
    }

    /// Lets every origin see a session, or only its own again.
    ///
    /// # Errors
    /// When it cannot be saved.
    pub async fn share(&self, id: &SessionId, shared: bool) -> Result<bool, StoreError> {
        let id = id.clone();
        self.db()
            .write(Durability::Disk, move |t| {
                if !shared {
                    keep_last_seen(t, &id)?;
                }
                let changed = t.execute_cached(
                    "update sessions set shared = ?2 where id = ?1",
                    params![id.as_str(), shared],
                )?;
                Ok(changed > 0)
            })
            .await
    }

    /// Deletes a session with everything that hangs on it, also its spill files.
    ///
    /// # Errors
    /// When the rows cannot be deleted; the files are then kept too.
    pub async fn delete_session(&self, id: &SessionId) -> Result<(), StoreError> {
        let gone = id.clone();
        self.db()
            .write(Durability::Disk, move |t| {
                keep_last_seen(t, &gone)?;
                t.execute_cached("delete from sessions where id = ?1", [gone.as_str()])?;
                Ok(())
            })
            .await?;
        let spill = self.spill(id);
        crate::rt::blocking(move || match std::fs::remove_dir_all(&spill) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                tracing::warn!(%error, "cannot delete a session's output files");
            }
            _ => {}
        })
        .await;
        Ok(())
    }
}

/// The time of a change made at `now`: above that of every change before it, also when the clock
/// was set back, so that nobody who asks for what is newer misses it (Y2).
pub(crate) fn change_time(c: &rusqlite::Connection, now: i64) -> Result<i64, rusqlite::Error> {
    let listed: i64 =
        c.query_row_cached("select coalesce(max(updated), 0) from sessions", [], |r| {
            r.get(0)
        })?;
    Ok(now.max(listed.max(last_seen(c)?).saturating_add(1)))
}

/// What a session that an asker sees no more had last changed at: their `head` must not fall.
const LAST_SEEN: &str = "last_seen";

fn last_seen(c: &rusqlite::Connection) -> Result<i64, rusqlite::Error> {
    let kept = c
        .query_row_cached(
            "select value from state where name = ?1",
            [LAST_SEEN],
            |r| r.get::<_, String>(0),
        )
        .optional()?;
    Ok(kept.and_then(|text| text.parse().ok()).unwrap_or(0))
}

fn keep_last_seen(t: &rusqlite::Connection, id: &SessionId) -> Result<(), rusqlite::Error> {
    let updated: Option<i64> = t
        .query_row_cached(
            "select updated from sessions where id = ?1",
            [id.as_str()],
            |r| r.get(0),
        )
        .optional()?;
    let kept = last_seen(t)?.max(updated.unwrap_or(0)).to_string();
    super::set_state(t, LAST_SEEN, &kept)
}
