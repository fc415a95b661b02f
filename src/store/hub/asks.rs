//! Questions of devices to the person, and how far an answer came.

use rusqlite::{OptionalExtension as _, Row, params};
use serde_json::Value;

use super::HubStore;
use crate::store::db::{Cached, Durability, StoreError};

/// The most questions of one computer that wait; one more is not kept, and the computer is told.
pub const OPEN: u32 = 200;

/// One question. Times are milliseconds since the epoch, of this instance's clock.
#[derive(Clone, Debug, PartialEq)]
pub struct Ask {
    pub ask: String,
    pub chat: String,
    pub device: String,
    pub seq: u64,
    pub call: Option<String>,
    /// As the device said it.
    pub body: Value,
    /// `open`, `sending` (stored here, not yet with the link), `sent` (on its way), `settled`.
    pub state: String,
    pub made: i64,
    pub expires: Option<i64>,
    /// `allow`/`refuse` while it is on its way; `allowed`, `refused`, `expired`, `cancelled`,
    /// `gone` once settled.
    pub outcome: Option<String>,
    pub scope: Option<String>,
    pub note: Option<String>,
    /// Who settled it, in words.
    pub by: Option<String>,
    pub at: Option<i64>,
    /// An answer from here came after it was settled otherwise.
    pub late: bool,
}

const COLUMNS: &str = "ask, chat, device, seq, call, body, state, made, expires, outcome, scope,
    note, by, at, late";

impl Ask {
    fn read(row: &Row<'_>) -> Result<Self, rusqlite::Error> {
        let body: String = row.get(5)?;
        Ok(Self {
            ask: row.get(0)?,
            chat: row.get(1)?,
            device: row.get(2)?,
            seq: row.get(3)?,
            call: row.get(4)?,
            body: serde_json::from_str(&body).unwrap_or_default(),
            state: row.get(6)?,
            made: row.get(7)?,
            expires: row.get(8)?,
            outcome: row.get(9)?,
            scope: row.get(10)?,
            note: row.get(11)?,
            by: row.get(12)?,
            at: row.get(13)?,
            late: row.get(14)?,
        })
    }
}

/// How an ask ended, as the device said it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ending {
    pub how: String,
    pub scope: Option<String>,
    pub by: Option<String>,
    pub note: Option<String>,
    /// Of a question of the agent: the ids of what was chosen.
    pub selected: Option<Value>,
    pub at: i64,
}

impl HubStore {
    /// Notes an ask as it was said; said again, it keeps its state. A settled one stays settled.
    ///
    /// None when the id is another computer's, or when [`OPEN`] of this one's wait already.
    pub async fn put_ask(&self, new: Ask) -> Result<Option<Ask>, StoreError> {
        self.db
            .write(Durability::Disk, move |t| {
                t.execute_cached(
                    "insert into asks (ask, chat, device, seq, call, body, state, made, expires)
                     select ?1, ?2, ?3, ?4, ?5, ?6, 'open', ?7, ?8
                     where exists (select 1 from asks where ask = ?1)
                       or (select count(*) from asks where device = ?3 and state <> 'settled') < ?9
                     on conflict (ask) do update set
                       body = json_patch(body, excluded.body),
                       seq = max(seq, excluded.seq), call = coalesce(excluded.call, call),
                       expires = coalesce(excluded.expires, expires)
                     where state <> 'settled' and device = excluded.device",
                    params![
                        new.ask,
                        new.chat,
                        new.device,
                        new.seq,
                        new.call,
                        new.body.to_string(),
                        new.made,
                        new.expires,
                        OPEN
                    ],
                )?;
                Ok(one(t, &new.ask)?.filter(|a| a.device == new.device))
            })
            .await
    }

    pub async fn ask(&self, ask: String) -> Result<Option<Ask>, StoreError> {
        self.db.call(move |c| one(c, &ask)).await
    }

    /// What waits for the person: what has a deadline first, then the oldest.
    pub async fn open_asks(
        &self,
        account: String,
        chat: Option<String>,
    ) -> Result<Vec<Ask>, StoreError> {
        self.db
            .call(move |c| {
                c.prepare_cached(&format!(
                    "select {COLUMNS} from asks where state <> 'settled' and (?2 is null or chat = ?2)
                     and device in (select id from devices where account = ?1)
                     order by expires is null, expires, made limit 500"
                ))?
                .query_map(params![account, chat], Ask::read)?
                .collect()
            })
            .await
    }

    /// The last settled ones, newest first.
    pub async fn settled_asks(&self, account: String, limit: u32) -> Result<Vec<Ask>, StoreError> {
        self.db
            .call(move |c| {
                c.prepare_cached(&format!(
                    "select {COLUMNS} from asks where state = 'settled'
                     and device in (select id from devices where account = ?1)
                     order by at desc limit ?2"
                ))?
                .query_map(params![account, limit], Ask::read)?
                .collect()
            })
            .await
    }

    /// Asks of some chat, of whatever state.
    pub async fn asks_of_device(&self, device: String) -> Result<Vec<Ask>, StoreError> {
        self.db
            .call(move |c| {
                c.prepare_cached(&format!(
                    "select {COLUMNS} from asks where device = ?1 and state <> 'settled'"
                ))?
                .query_map([device], Ask::read)?
                .collect()
            })
            .await
    }

    /// Keeps a person's answer and makes it work for the device, in one step. None when the ask
    /// is not open any more (or never was).
    pub async fn answer_ask(
        &self,
        ask: String,
        outcome: String,
        scope: Option<String>,
        note: Option<String>,
        body: Value,
    ) -> Result<Option<Ask>, StoreError> {
        self.db
            .write(Durability::Disk, move |t| {
                let changed = t.execute_cached(
                    "update asks set state = 'sending', outcome = ?2, scope = ?3, note = ?4
                     where ask = ?1 and state = 'open'",
                    params![ask, outcome, scope, note],
                )?;
                let Some(found) = one(t, &ask)?.filter(|_| changed == 1) else {
                    return Ok(None);
                };
                super::work::add(t, &found.device, Some(&found.chat), "answer", &ask, &body)?;
                Ok(Some(found))
            })
            .await
    }

    /// How far an answer is: `sending` or `sent`.
    pub async fn ask_state(
        &self,
        ask: String,
        state: &'static str,
    ) -> Result<Option<Ask>, StoreError> {
        self.db
            .write(Durability::Process, move |t| {
                t.execute_cached(
                    "update asks set state = ?2 where ask = ?1 and state in ('sending', 'sent')",
                    params![ask, state],
                )?;
                one(t, &ask)
            })
            .await
    }

    /// The device could not take the answer for a reason that leaves the ask open.
    pub async fn reopen_ask(&self, ask: String, why: String) -> Result<Option<Ask>, StoreError> {
        self.db
            .write(Durability::Disk, move |t| {
                t.execute_cached(
                    "update asks set state = 'open', outcome = null, scope = null, note = ?2
                     where ask = ?1 and state <> 'settled'",
                    [&ask, &why],
                )?;
                t.execute_cached(
                    "delete from work where kind in ('answer', 'extend') and key = ?1",
                    [&ask],
                )?;
                one(t, &ask)
            })
            .await
    }

    /// An ask of a device ended. The first ending holds; answers `None` when it had ended before,
    /// or is another device's.
    pub async fn settle_ask(
        &self,
        device: String,
        ask: String,
        ending: Ending,
        late: bool,
    ) -> Result<Option<Ask>, StoreError> {
        self.db
            .write(Durability::Disk, move |t| {
                let changed = t.execute_cached(
                    "update asks set state = 'settled', outcome = ?2, scope = ?3, by = ?4,
                       note = coalesce(?5, note), at = ?6, late = ?7,
                       body = case when ?8 is null then body
                                   else json_set(body, '$.selected', json(?8)) end
                     where ask = ?1 and device = ?9 and state <> 'settled'",
                    params![
                        ask,
                        ending.how,
                        ending.scope,
                        ending.by,
                        ending.note,
                        ending.at,
                        late,
                        ending.selected.map(|ids| ids.to_string()),
                        device
                    ],
                )?;
                t.execute_cached(
                    "update work set state = 'done'
                     where kind = 'answer' and key = ?1 and device = ?2",
                    [&ask, &device],
                )?;
                if changed == 0 {
                    return Ok(None);
                }
                one(t, &ask)
            })
            .await
    }

    pub async fn set_expiry(&self, ask: String, expires: i64) -> Result<Option<Ask>, StoreError> {
        self.db
            .write(Durability::Disk, move |t| {
                t.execute_cached(
                    "update asks set expires = ?2 where ask = ?1 and state <> 'settled'",
                    params![ask, expires],
                )?;
                one(t, &ask)
            })
            .await
    }

    /// Open asks of a chat, as a number.
    pub async fn ask_count(&self, chat: String) -> Result<u64, StoreError> {
        self.db
            .call(move |c| {
                c.prepare_cached(
                    "select count(*) from asks where chat = ?1 and state <> 'settled'",
                )?
                .query_row([chat], |r| r.get(0))
            })
            .await
    }
}

fn one(c: &rusqlite::Connection, ask: &str) -> Result<Option<Ask>, rusqlite::Error> {
    c.query_row_cached(
        &format!("select {COLUMNS} from asks where ask = ?1"),
        [ask],
        Ask::read,
    )
    .optional()
}
