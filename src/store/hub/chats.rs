//! Chats: a device's sessions as this instance keeps them, also when the device is gone.

use rusqlite::{OptionalExtension as _, Row, params};
use serde_json::Value;

use super::HubStore;
use crate::store::db::{Cached, Durability, StoreError};

/// One chat. Times are milliseconds since the epoch.
#[derive(Clone, Debug, PartialEq)]
pub struct Chat {
    pub id: String,
    pub account: String,
    pub device: String,
    /// The device's id for it.
    pub session: String,
    /// The device's numbering it belongs to; another epoch is another chat.
    pub epoch: String,
    pub cwd: String,
    pub title: Option<String>,
    /// As applied by the device.
    pub mode: String,
    /// Asked for and not yet taken: `{ "mode": …, "model": …, "level": … }`.
    pub wanted: Option<Value>,
    /// Set when the device gave less than was asked for, in words.
    pub lowered: Option<String>,
    pub modes: Vec<String>,
    pub model: String,
    pub level: Option<String>,
    pub origin: String,
    pub created: i64,
    pub updated: i64,
    pub turn: u32,
    pub running: bool,
    pub progress: Option<Value>,
    /// The last number that was looked at by the person.
    pub seen: u64,
    /// The last number stored.
    pub head: u64,
    pub archived: bool,
    /// Why nothing can be written here any more, in words.
    pub closed: Option<String>,
    pub draft: String,
}

const COLUMNS: &str = "id, account, device, session, epoch, cwd, title, mode, wanted, lowered,
    modes, model, level, origin, created, updated, turn, running, progress, seen, head, archived,
    closed, draft";

impl Chat {
    pub(super) fn read(row: &Row<'_>) -> Result<Self, rusqlite::Error> {
        let json = |text: Option<String>| text.and_then(|t| serde_json::from_str(&t).ok());
        let modes: String = row.get(10)?;
        Ok(Self {
            id: row.get(0)?,
            account: row.get(1)?,
            device: row.get(2)?,
            session: row.get(3)?,
            epoch: row.get(4)?,
            cwd: row.get(5)?,
            title: row.get(6)?,
            mode: row.get(7)?,
            wanted: json(row.get(8)?),
            lowered: row.get(9)?,
            modes: serde_json::from_str(&modes).unwrap_or_default(),
            model: row.get(11)?,
            level: row.get(12)?,
            origin: row.get(13)?,
            created: row.get(14)?,
            updated: row.get(15)?,
            turn: row.get(16)?,
            running: row.get(17)?,
            progress: json(row.get(18)?),
            seen: row.get(19)?,
            head: row.get(20)?,
            archived: row.get(21)?,
            closed: row.get(22)?,
            draft: row.get(23)?,
        })
    }
}

/// What a device says of one of its sessions; what is none stays as it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Said {
    pub session: String,
    pub epoch: String,
    pub key: Option<String>,
    /// The hash of what was asked for with the key.
    pub asked: Option<String>,
    pub cwd: Option<String>,
    pub title: Option<String>,
    pub mode: Option<String>,
    pub modes: Option<Vec<String>>,
    pub model: Option<String>,
    pub level: Option<String>,
    pub origin: Option<String>,
    pub lowered: Option<String>,
    pub running: Option<bool>,
    pub updated: Option<i64>,
}

/// Which chats to list, newest change first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChatFilter {
    pub before: Option<i64>,
    pub device: Option<String>,
    pub archived: bool,
    pub limit: u32,
}

/// What of a chat a person changes at the hub itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChatEdit {
    pub title: Option<String>,
    pub archived: Option<bool>,
    pub seen: Option<u64>,
    pub draft: Option<String>,
    pub wanted: Option<Value>,
}

impl HubStore {
    /// Notes what a device says of a session, and makes the chat when it is new. The address of a
    /// chat is the device's id for it, unless another device has a chat of that id.
    pub async fn say_chat(
        &self,
        account: String,
        device: String,
        said: Said,
    ) -> Result<Chat, StoreError> {
        self.db
            .write(Durability::Process, move |t| {
                say(t, &account, &device, &said)
            })
            .await
    }

    pub async fn chat(&self, id: String) -> Result<Option<Chat>, StoreError> {
        self.db.call(move |c| by_id(c, &id)).await
    }

    pub async fn chat_of(
        &self,
        device: String,
        epoch: String,
        session: String,
    ) -> Result<Option<Chat>, StoreError> {
        self.db
            .call(move |c| find(c, &device, &epoch, &session))
            .await
    }

    /// The chat that a key made, and the hash of what was asked for with it.
    pub async fn chat_keyed(
        &self,
        device: String,
        key: String,
    ) -> Result<Option<(Chat, Option<String>)>, StoreError> {
        self.db
            .call(move |c| {
                c.query_row_cached(
                    &format!("select {COLUMNS}, asked from chats where device = ?1 and key = ?2"),
                    [device, key],
                    |row| Ok((Chat::read(row)?, row.get("asked")?)),
                )
                .optional()
            })
            .await
    }

    /// The chats of an account and how many match in all.
    pub async fn chats(
        &self,
        account: String,
        filter: ChatFilter,
    ) -> Result<(Vec<Chat>, u64), StoreError> {
        self.db
            .call(move |c| {
                let which = "account = ?1 and (?2 is null or device = ?2) and archived = ?3";
                let total = c.query_row_cached(
                    &format!("select count(*) from chats where {which}"),
                    params![account, filter.device, filter.archived],
                    |r| r.get(0),
                )?;
                let list = c
                    .prepare_cached(&format!(
                        "select {COLUMNS} from chats where {which}
                         and (?4 is null or updated < ?4) order by updated desc, id limit ?5"
                    ))?
                    .query_map(
                        params![
                            account,
                            filter.device,
                            filter.archived,
                            filter.before,
                            filter.limit
                        ],
                        Chat::read,
                    )?
                    .collect::<Result<_, _>>()?;
                Ok((list, total))
            })
            .await
    }

    /// A person's change of what is the hub's own.
    pub async fn edit_chat(&self, id: String, edit: ChatEdit) -> Result<(), StoreError> {
        self.db
            .write(Durability::Disk, move |t| {
                t.execute_cached(
                    "update chats set title = coalesce(?2, title),
                       archived = coalesce(?3, archived), seen = max(seen, coalesce(?4, 0)),
                       draft = coalesce(?5, draft), wanted = coalesce(?6, wanted)
                     where id = ?1",
                    params![
                        id,
                        edit.title,
                        edit.archived,
                        edit.seen,
                        edit.draft,
                        edit.wanted.map(|w| w.to_string())
                    ],
                )?;
                Ok(())
            })
            .await
    }

    /// The device took a change, or refused it: nothing is asked for any more.
    pub async fn chat_took(
        &self,
        id: String,
        said: Said,
        lowered: Option<String>,
    ) -> Result<(), StoreError> {
        self.db
            .write(Durability::Process, move |t| {
                t.execute_cached(
                    "update chats set wanted = null, lowered = ?2, mode = coalesce(?3, mode),
                       model = coalesce(?4, model), level = coalesce(?5, level) where id = ?1",
                    params![id, lowered, said.mode, said.model, said.level],
                )?;
                Ok(())
            })
            .await
    }

    /// Sets what the agent does now, as the device said it.
    pub async fn chat_progress(
        &self,
        id: String,
        progress: Option<Value>,
        running: Option<bool>,
        asks_updated: bool,
    ) -> Result<(), StoreError> {
        let now = crate::clock::now_ms();
        self.db
            .write(Durability::Process, move |t| {
                t.execute_cached(
                    "update chats set progress = ?2, running = coalesce(?3, running),
                       updated = case when ?4 then ?5 else updated end where id = ?1",
                    params![
                        id,
                        progress.map(|p| p.to_string()),
                        running,
                        asks_updated,
                        now
                    ],
                )?;
                Ok(())
            })
            .await
    }

    /// Nothing can be written in this chat any more.
    pub async fn close_chat(&self, id: String, why: String) -> Result<(), StoreError> {
        self.db
            .write(Durability::Disk, move |t| {
                t.execute_cached(
                    "update chats set closed = coalesce(closed, ?2), running = 0, progress = null
                     where id = ?1",
                    [id, why],
                )?;
                Ok(())
            })
            .await
    }

    /// A device counts anew: what it numbered before is kept, closed. Answers the chats' ids.
    pub async fn close_other_epochs(
        &self,
        device: String,
        epoch: String,
        why: String,
    ) -> Result<Vec<String>, StoreError> {
        self.db
            .write(Durability::Disk, move |t| {
                t.prepare_cached(
                    "update chats set closed = ?3, running = 0, progress = null
                     where device = ?1 and epoch <> ?2 and closed is null returning id",
                )?
                .query_map([device, epoch, why], |r| r.get(0))?
                .collect()
            })
            .await
    }

    /// Sessions of a device in which something is under way, as far as is known here.
    pub async fn busy_sessions(
        &self,
        device: String,
        epoch: String,
    ) -> Result<Vec<String>, StoreError> {
        self.db
            .call(move |c| {
                c.prepare_cached(
                    "select session from chats where device = ?1 and epoch = ?2 and closed is null
                       and (running = 1 or id in (select chat from work where device = ?1
                            and kind in ('prompt', 'steer') and state in ('waiting', 'failed')))
                     order by updated desc limit 1000",
                )?
                .query_map([device, epoch], |r| r.get(0))?
                .collect()
            })
            .await
    }

    pub async fn delete_chat(&self, id: String) -> Result<bool, StoreError> {
        self.db
            .write(Durability::Disk, move |t| {
                t.execute_cached("delete from tails where chat = ?1", [&id])?;
                t.execute_cached("delete from work where chat = ?1", [&id])?;
                Ok(t.execute_cached("delete from chats where id = ?1", [&id])? == 1)
            })
            .await
    }
}

pub(super) fn by_id(c: &rusqlite::Connection, id: &str) -> Result<Option<Chat>, rusqlite::Error> {
    c.prepare_cached(&format!("select {COLUMNS} from chats where id = ?1"))?
        .query_row([id], Chat::read)
        .optional()
}

fn find(
    c: &rusqlite::Connection,
    device: &str,
    epoch: &str,
    session: &str,
) -> Result<Option<Chat>, rusqlite::Error> {
    c.prepare_cached(&format!(
        "select {COLUMNS} from chats where device = ?1 and epoch = ?2 and session = ?3"
    ))?
    .query_row([device, epoch, session], Chat::read)
    .optional()
}

fn say(
    t: &rusqlite::Connection,
    account: &str,
    device: &str,
    said: &Said,
) -> Result<Chat, rusqlite::Error> {
    let now = crate::clock::now_ms();
    let modes = said
        .modes
        .as_ref()
        .and_then(|m| serde_json::to_string(m).ok());
    if let Some(known) = find(t, device, &said.epoch, &said.session)? {
        t.execute_cached(
            "update chats set cwd = coalesce(?2, cwd), title = coalesce(?3, title),
               mode = coalesce(?4, mode), modes = coalesce(?5, modes),
               model = coalesce(?6, model), level = coalesce(?7, level),
               origin = coalesce(?8, origin), running = coalesce(?9, running),
               lowered = coalesce(?10, lowered), key = coalesce(key, ?11),
               asked = coalesce(asked, ?12),
               progress = case when ?9 = 0 then null else progress end
             where id = ?1",
            params![
                known.id,
                said.cwd,
                said.title,
                said.mode,
                modes,
                said.model,
                said.level,
                said.origin,
                said.running,
                said.lowered,
                said.key,
                said.asked
            ],
        )?;
        return by_id(t, &known.id)?.ok_or(rusqlite::Error::QueryReturnedNoRows);
    }
    let taken = by_id(t, &said.session)?.is_some() || !plain(&said.session);
    let id = if taken {
        crate::ids::random_hex(16)
    } else {
        said.session.clone()
    };
    t.execute_cached(
        "insert into chats (id, account, device, session, epoch, key, cwd, title, mode, modes,
           model, level, origin, created, updated, running, lowered, asked)
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17,
           ?18)",
        params![
            id,
            account,
            device,
            said.session,
            said.epoch,
            said.key,
            said.cwd.as_deref().unwrap_or(""),
            said.title,
            said.mode.as_deref().unwrap_or("manual"),
            modes.as_deref().unwrap_or("[]"),
            said.model.as_deref().unwrap_or(""),
            said.level,
            said.origin.as_deref().unwrap_or("page"),
            said.updated.unwrap_or(now),
            said.updated.unwrap_or(now),
            said.running.unwrap_or(false),
            said.lowered,
            said.asked
        ],
    )?;
    by_id(t, &id)?.ok_or(rusqlite::Error::QueryReturnedNoRows)
}

/// Whether a device's id may stand in an address as it is.
fn plain(id: &str) -> bool {
    (1..=64).contains(&id.len())
        && id
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}
