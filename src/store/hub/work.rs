//! What waits to be said to a device: the queue of a chat, and the work that is under way.
//!
//! A message waits in `queue` until it may go; then it becomes `work`, which is repeated with the
//! same key until the device has answered. Answers, stops and changes are work from the start.

use rusqlite::{OptionalExtension as _, Row, params};
use serde_json::Value;

use super::HubStore;
use crate::store::db::{Cached, Durability, StoreError};

/// One thing to say to a device until it is answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Work {
    pub id: i64,
    pub device: String,
    pub chat: Option<String>,
    /// `prompt`, `steer`, `answer`, `extend`, `stop`, `set`, `delete`, `unrule`.
    pub kind: String,
    pub key: String,
    pub params: Value,
    /// `waiting`, `taken` (the journal shows it), `done`, `failed`.
    pub state: String,
    pub made: i64,
    /// Why it failed, in words.
    pub note: Option<String>,
}

const COLUMNS: &str = "id, device, chat, kind, key, params, state, made, note";

impl Work {
    fn read(row: &Row<'_>) -> Result<Self, rusqlite::Error> {
        let params: String = row.get(5)?;
        Ok(Self {
            id: row.get(0)?,
            device: row.get(1)?,
            chat: row.get(2)?,
            kind: row.get(3)?,
            key: row.get(4)?,
            params: serde_json::from_str(&params).unwrap_or_default(),
            state: row.get(6)?,
            made: row.get(7)?,
            note: row.get(8)?,
        })
    }
}

/// One message that waits for its turn.
#[derive(Clone, Debug, PartialEq)]
pub struct Queued {
    pub key: String,
    pub text: String,
    pub parts: Vec<Value>,
    /// `after` this turn, or at the `next` step.
    pub when: String,
    /// It stays until a person lets it go.
    pub held: bool,
    /// It was waiting when the person stopped the turn; what is written after that does not wait
    /// for it.
    pub stopped: bool,
    pub made: i64,
}

/// What the column `held` says of a message that Stop held.
const BY_STOP: i64 = 2;

fn queued(row: &Row<'_>) -> Result<Queued, rusqlite::Error> {
    let parts: String = row.get(2)?;
    Ok(Queued {
        key: row.get(0)?,
        text: row.get(1)?,
        parts: serde_json::from_str(&parts).unwrap_or_default(),
        when: row.get(3)?,
        held: row.get(4)?,
        stopped: row.get::<_, i64>(4)? == BY_STOP,
        made: row.get(5)?,
    })
}

/// Messages that may wait in one chat.
pub const MAX_QUEUED: i64 = 50;

/// What became of a message that was handed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enqueued {
    Queued,
    /// This key was handed in before, with the same; nothing was added.
    Known,
    /// This key was used for something else.
    Used,
    /// There are [`MAX_QUEUED`] already.
    Full,
}

impl HubStore {
    /// Adds work; the same kind and key again changes nothing.
    pub async fn add_work(
        &self,
        device: String,
        chat: Option<String>,
        kind: &'static str,
        key: String,
        body: Value,
    ) -> Result<bool, StoreError> {
        self.db
            .write(Durability::Disk, move |t| {
                add(t, &device, chat.as_deref(), kind, &key, &body)
            })
            .await
    }

    /// Adds a stop of a chat's turn and holds what waits for its end: who stops a turn does not
    /// want the next to begin. The same again changes nothing. False where the key stands for
    /// something else.
    pub async fn add_stop(
        &self,
        device: String,
        chat: String,
        key: String,
        body: Value,
    ) -> Result<bool, StoreError> {
        self.db
            .write(Durability::Disk, move |t| {
                if add(t, &device, Some(&chat), "stop", &key, &body)? {
                    t.execute(
                        "update queue set held = ?2 where chat = ?1 and held = 0",
                        params![chat, BY_STOP],
                    )?;
                    return Ok(true);
                }
                t.query_row(
                    "select chat is ?3 from work where device = ?1 and kind = 'stop' and key = ?2",
                    params![device, key, chat],
                    |r| r.get(0),
                )
            })
            .await
    }

    /// Work of a device that is not answered yet, oldest first.
    pub async fn open_work(&self, device: String) -> Result<Vec<Work>, StoreError> {
        self.db
            .call(move |c| {
                c.prepare_cached(&format!(
                    "select {COLUMNS} from work where device = ?1
                     and state in ('waiting', 'taken') order by id limit 1000"
                ))?
                .query_map([device], Work::read)?
                .collect()
            })
            .await
    }

    /// Work of a chat by kind and key.
    pub async fn work(
        &self,
        device: String,
        kind: &'static str,
        key: String,
    ) -> Result<Option<Work>, StoreError> {
        self.db
            .call(move |c| {
                c.query_row_cached(
                    &format!(
                        "select {COLUMNS} from work where device = ?1 and kind = ?2 and key = ?3"
                    ),
                    params![device, kind, key],
                    Work::read,
                )
                .optional()
            })
            .await
    }

    /// Prompts of a chat that the journal does not show yet, or that failed.
    pub async fn prompts_under_way(&self, chat: String) -> Result<Vec<Work>, StoreError> {
        self.db
            .call(move |c| {
                c.prepare_cached(&format!(
                    "select {COLUMNS} from work where chat = ?1 and kind in ('prompt', 'steer')
                     and state in ('waiting', 'failed') order by id"
                ))?
                .query_map([chat], Work::read)?
                .collect()
            })
            .await
    }

    /// How a piece of work ended or how far it is. Done work is kept a week, for its key.
    pub async fn set_work(
        &self,
        id: i64,
        state: &'static str,
        note: Option<String>,
    ) -> Result<(), StoreError> {
        let week = crate::clock::now_ms() - 7 * 24 * 3_600_000;
        self.db
            .write(Durability::Disk, move |t| {
                t.execute_cached(
                    "update work set state = ?2, note = ?3 where id = ?1 and state <> 'done'",
                    params![id, state, note],
                )?;
                t.execute_cached(
                    "delete from work where state = 'done' and made < ?1",
                    [week],
                )?;
                Ok(())
            })
            .await
    }

    /// The journal shows a prompt: the device has it.
    pub async fn prompt_taken(&self, chat: String, key: String) -> Result<bool, StoreError> {
        self.db
            .write(Durability::Process, move |t| {
                Ok(t.execute_cached(
                    "update work set state = 'taken' where chat = ?1 and key = ?2
                     and kind in ('prompt', 'steer') and state in ('waiting', 'failed')",
                    [chat, key],
                )? > 0)
            })
            .await
    }

    /// Takes a failed or unsent piece of work away.
    pub async fn drop_work(&self, chat: String, key: String) -> Result<bool, StoreError> {
        self.db
            .write(Durability::Disk, move |t| {
                Ok(t.execute_cached(
                    "delete from work where chat = ?1 and key = ?2 and state = 'failed'",
                    [chat, key],
                )? > 0)
            })
            .await
    }

    /// Tries failed work again with its key.
    pub async fn retry_work(&self, chat: String, key: String) -> Result<bool, StoreError> {
        self.db
            .write(Durability::Disk, move |t| {
                Ok(t.execute_cached(
                    "update work set state = 'waiting', note = null
                     where chat = ?1 and key = ?2 and state = 'failed'",
                    [chat, key],
                )? > 0)
            })
            .await
    }

    /// Puts a message at the end of a chat's queue. `asked` is the hash of what was handed in.
    pub async fn enqueue(
        &self,
        device: String,
        chat: String,
        message: Queued,
        asked: String,
    ) -> Result<Enqueued, StoreError> {
        self.db
            .write(Durability::Disk, move |t| {
                // A key is one message of the computer, in whichever chat it waits or went.
                let known: Option<bool> = t
                    .query_row_cached(
                        "select min(same) from (
                           select q.chat = ?1 and coalesce(q.asked, ?4) = ?4 as same
                             from queue q join chats c on c.id = q.chat
                             where q.key = ?2 and c.device = ?3
                           union all
                           select chat is ?1 and coalesce(asked, ?4) = ?4 from work
                             where device = ?3 and key = ?2 and kind in ('prompt', 'steer'))",
                        params![chat, message.key, device, asked],
                        |r| r.get(0),
                    )?;
                match known {
                    Some(true) => return Ok(Enqueued::Known),
                    Some(false) => return Ok(Enqueued::Used),
                    None => {}
                }
                let count: i64 =
                    t.query_row_cached("select count(*) from queue where chat = ?1", [&chat], |r| {
                        r.get(0)
                    })?;
                if count >= MAX_QUEUED {
                    return Ok(Enqueued::Full);
                }
                t.execute_cached(
                    "insert into queue (chat, key, place, text, parts, at, held, made, asked)
                     values (?1, ?2, (select coalesce(max(place), 0) + 1 from queue where chat = ?1),
                             ?3, ?4, ?5, ?6, ?7, ?8)",
                    params![
                        chat,
                        message.key,
                        message.text,
                        serde_json::to_string(&message.parts).unwrap_or_default(),
                        message.when,
                        message.held,
                        message.made,
                        asked
                    ],
                )?;
                Ok(Enqueued::Queued)
            })
            .await
    }

    /// What waits in a chat, in order.
    pub async fn queue(&self, chat: String) -> Result<Vec<Queued>, StoreError> {
        self.db
            .call(move |c| {
                c.prepare_cached(
                    "select key, text, parts, at, held, made from queue where chat = ?1
                     order by place",
                )?
                .query_map([chat], queued)?
                .collect()
            })
            .await
    }

    /// Changes a waiting message. False when it is not waiting any more.
    pub async fn edit_queued(
        &self,
        chat: String,
        key: String,
        text: Option<String>,
        when: Option<String>,
        held: Option<bool>,
        first: bool,
    ) -> Result<bool, StoreError> {
        self.db
            .write(Durability::Disk, move |t| {
                Ok(t.execute_cached(
                    "update queue set text = coalesce(?3, text), at = coalesce(?4, at),
                       held = coalesce(?5, held),
                       place = case when ?6 then
                         (select min(place) - 1 from queue where chat = ?1) else place end
                     where chat = ?1 and key = ?2",
                    params![chat, key, text, when, held, first],
                )? == 1)
            })
            .await
    }

    pub async fn drop_queued(&self, chat: String, key: String) -> Result<bool, StoreError> {
        self.db
            .write(Durability::Disk, move |t| {
                Ok(t.execute_cached(
                    "delete from queue where chat = ?1 and key = ?2",
                    [chat, key],
                )? == 1)
            })
            .await
    }

    /// Turns the first waiting message into work when it may go: none is under way, none is held
    /// before it. Answers whether there is something to say now.
    pub async fn send_next(&self, device: String, chat: String) -> Result<bool, StoreError> {
        self.db
            .write(Durability::Disk, move |t| {
                let busy: bool = t.query_row_cached(
                    "select exists (select 1 from work where chat = ?1 and kind = 'prompt'
                       and state in ('waiting', 'taken'))
                     or exists (select 1 from chats where id = ?1
                       and (running = 1 or closed is not null))",
                    [&chat],
                    |r| r.get(0),
                )?;
                if busy {
                    return Ok(false);
                }
                take_first(t, &device, &chat, "prompt", None)
            })
            .await
    }

    /// Turns a waiting message into a steer of the running turn.
    pub async fn steer_now(
        &self,
        device: String,
        chat: String,
        key: String,
    ) -> Result<bool, StoreError> {
        self.db
            .write(Durability::Disk, move |t| {
                take_first(t, &device, &chat, "steer", Some(&key))
            })
            .await
    }

    /// A steer that the device does not take becomes an ordinary waiting message again, held when
    /// its turn was stopped meanwhile.
    pub async fn steer_back(&self, id: i64) -> Result<(), StoreError> {
        self.db
            .write(Durability::Disk, move |t| {
                type Sent = (String, String, String, i64, Option<String>);
                let (chat, key, body, made, asked): Sent = t.query_row_cached(
                    "delete from work where id = ?1 returning chat, key, params, made, asked",
                    [id],
                    |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?, r.get(3)?, r.get(4)?)),
                )?;
                let body: Value = serde_json::from_str(&body).unwrap_or_default();
                t.execute_cached(
                    "insert or ignore into queue (chat, key, place, text, parts, at, held, made, asked)
                     values (?1, ?2, (select coalesce(min(place), 1) - 1 from queue
                       where chat = ?1), ?3, ?4, 'after',
                       case when exists (select 1 from work where chat = ?1 and kind = 'stop'
                         and made >= ?5) then ?7 else 0 end, ?5, ?6)",
                    params![
                        chat,
                        key,
                        body.get("text").and_then(Value::as_str).unwrap_or(""),
                        body.get("parts").cloned().unwrap_or_default().to_string(),
                        made,
                        asked,
                        BY_STOP
                    ],
                )?;
                Ok(())
            })
            .await
    }

    /// Chats of a device in which something waits.
    pub async fn chats_with_queue(&self, device: String) -> Result<Vec<String>, StoreError> {
        self.db
            .call(move |c| {
                c.prepare_cached(
                    "select distinct q.chat from queue q join chats c on c.id = q.chat
                     where c.device = ?1",
                )?
                .query_map([device], |r| r.get(0))?
                .collect()
            })
            .await
    }

    pub async fn queue_length(&self, chat: String) -> Result<u64, StoreError> {
        self.db
            .call(move |c| {
                c.prepare_cached("select count(*) from queue where chat = ?1")?
                    .query_row([chat], |r| r.get(0))
            })
            .await
    }
}

pub(super) fn add(
    t: &rusqlite::Connection,
    device: &str,
    chat: Option<&str>,
    kind: &str,
    key: &str,
    body: &Value,
) -> Result<bool, rusqlite::Error> {
    Ok(t.execute_cached(
        "insert into work (device, chat, kind, key, params, state, made)
         values (?1, ?2, ?3, ?4, ?5, 'waiting', ?6) on conflict do nothing",
        params![
            device,
            chat,
            kind,
            key,
            body.to_string(),
            crate::clock::now_ms()
        ],
    )? == 1)
}

fn take_first(
    t: &rusqlite::Connection,
    device: &str,
    chat: &str,
    kind: &str,
    key: Option<&str>,
) -> Result<bool, rusqlite::Error> {
    let first = t
        .query_row_cached(
            "select key, text, parts, at, held, made from queue
             where chat = ?1 and (?2 is null or key = ?2) and held != ?3 order by place limit 1",
            params![chat, key, BY_STOP],
            queued,
        )
        .optional()?;
    let Some(first) = first.filter(|f| !f.held) else {
        return Ok(false);
    };
    let asked: Option<String> = t.query_row_cached(
        "delete from queue where chat = ?1 and key = ?2 returning asked",
        params![chat, first.key],
        |r| r.get(0),
    )?;
    let body = serde_json::json!({ "text": first.text, "parts": first.parts });
    let added = add(t, device, Some(chat), kind, &first.key, &body)?;
    t.execute(
        "update work set asked = ?4 where device = ?1 and kind = ?2 and key = ?3",
        params![device, kind, first.key, asked],
    )?;
    Ok(added)
}
