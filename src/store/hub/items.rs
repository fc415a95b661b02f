//! Transcripts: a device's items as they came, each exactly once.
//!
//! Whole items are rows. Streamed text grows by position: what is known already is skipped, what
//! overlaps is cut, and what would leave a hole is refused so that the caller asks again from
//! where the store ends. Appended text waits in `tails` and is folded into its item from time to
//! time, so that a long answer is not written anew with every chunk.

use rusqlite::{OptionalExtension as _, Row as SqlRow, params};
use serde_json::Value;

use super::HubStore;
use crate::ids::{Position, Seq};
use crate::store::db::{Cached, Durability, StoreError};

/// Tails an item may have before they are folded into it.
const FOLD_AT: i64 = 64;

/// One stored item.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub seq: u64,
    pub turn: u32,
    pub time: i64,
    /// `prompt`, `text`, `thought`, `call`, `started`, `output`, `result`, `plan`, `mode`,
    /// `model`, `level`, `title`, `notice`, `step`, `usage`, `ask`, `ask_settled`, `turn_end`.
    pub kind: String,
    pub call: Option<String>,
    /// Bytes of streamed text.
    pub at: u64,
    /// More of its text may come.
    pub open: bool,
    pub data: Value,
    pub text: String,
}

/// What came for one item.
#[derive(Clone, Debug, PartialEq)]
pub struct Put {
    pub seq: u64,
    pub turn: u32,
    pub time: i64,
    pub kind: &'static str,
    pub call: Option<String>,
    pub what: Content,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// A whole item, or (for a prompt) one part of it.
    Whole(Value),
    /// Text that ends at `end` bytes of the item.
    Tail { text: String, end: u64 },
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Took {
    New,
    /// More text of an item that was there.
    More,
    Known,
    /// Text before it is missing.
    Gap,
}

/// What a batch did to a chat.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    pub took: Vec<Took>,
    /// Streamed items that ended with this batch.
    pub closed: Vec<u64>,
    /// Where the store ends now.
    pub head: Position,
}

const COLUMNS: &str = "i.seq, i.turn, i.time, i.kind, i.call, i.at, i.open, i.data, i.text ||
    coalesce((select group_concat(text, '') from (select text from tails where chat = i.chat
      and seq = i.seq order by start)), '')";

impl Row {
    fn read(row: &SqlRow<'_>) -> Result<Self, rusqlite::Error> {
        let data: String = row.get(7)?;
        Ok(Self {
            seq: row.get(0)?,
            turn: row.get(1)?,
            time: row.get(2)?,
            kind: row.get(3)?,
            call: row.get(4)?,
            at: row.get(5)?,
            open: row.get(6)?,
            data: serde_json::from_str(&data).unwrap_or_default(),
            text: row.get(8)?,
        })
    }
}

/// A stretch of a chat's page: its visible items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    Newest,
    Before(u64),
    After(u64),
}

impl HubStore {
    /// Takes a batch in one transaction, in its order.
    pub async fn put_items(&self, chat: String, puts: Vec<Put>) -> Result<Batch, StoreError> {
        self.db
            .write(Durability::Process, move |t| {
                let mut batch = Batch::default();
                for put in &puts {
                    let took = one(t, &chat, put, &mut batch.closed)?;
                    batch.took.push(took);
                }
                batch.head = position(t, &chat, u64::MAX >> 1)?;
                Ok(batch)
            })
            .await
    }

    /// Where to follow a chat from: the first streamed item that may lack text, else the last.
    pub async fn follow_from(&self, chat: String) -> Result<Position, StoreError> {
        self.db
            .call(move |c| {
                let open: Option<(u64, u64, String)> = c
                    .prepare_cached(
                        "select seq, at, kind from items where chat = ?1 and open = 1
                         order by seq limit 1",
                    )?
                    .query_row([&chat], |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?)))
                    .optional()?;
                match open {
                    // Parts of a whole item have no positions: all of it is asked for again.
                    Some((seq, _, kind)) if matches!(kind.as_str(), "prompt" | "plan") => {
                        position(c, &chat, seq)
                    }
                    Some((seq, at, _)) => Ok(Position { seq: Seq(seq), at }),
                    None => position(c, &chat, u64::MAX >> 1),
                }
            })
            .await
    }

    /// The rows that open visible items, in order, at most `limit`, and whether there are more.
    pub async fn roots(
        &self,
        chat: String,
        span: Span,
        limit: u32,
    ) -> Result<(Vec<Row>, bool), StoreError> {
        self.db
            .call(move |c| {
                let (low, high, order) = match span {
                    Span::Newest => (0, u64::MAX >> 1, "desc"),
                    Span::Before(seq) => (0, seq, "desc"),
                    Span::After(seq) => (seq + 1, u64::MAX >> 1, "asc"),
                };
                let mut rows: Vec<Row> = c
                    .prepare_cached(&format!(
                        "select {COLUMNS} from items i where chat = ?1 and seq >= ?2 and seq < ?3
                         and kind in ('prompt', 'text', 'thought', 'call', 'plan', 'mode',
                                      'notice', 'turn_end')
                         order by seq {order} limit ?4"
                    ))?
                    .query_map(params![chat, low, high, limit + 1], Row::read)?
                    .collect::<Result<_, _>>()?;
                let more = rows.len() > limit as usize;
                rows.truncate(limit as usize);
                if order == "desc" {
                    rows.reverse();
                }
                Ok((rows, more))
            })
            .await
    }

    pub async fn item(&self, chat: String, seq: u64) -> Result<Option<Row>, StoreError> {
        self.db
            .call(move |c| {
                c.prepare_cached(&format!(
                    "select {COLUMNS} from items i where chat = ?1 and seq = ?2"
                ))?
                .query_row(params![chat, seq], Row::read)
                .optional()
            })
            .await
    }

    /// Everything that belongs to some calls: the call, its start, output, asks and result.
    pub async fn call_rows(
        &self,
        chat: String,
        calls: Vec<String>,
    ) -> Result<Vec<Row>, StoreError> {
        self.db
            .call(move |c| {
                let mut statement = c.prepare_cached(&format!(
                    "select {COLUMNS} from items i where chat = ?1 and call = ?2 order by seq"
                ))?;
                let mut rows = Vec::new();
                for call in &calls {
                    for row in statement.query_map([&chat, call], Row::read)? {
                        rows.push(row?);
                    }
                }
                Ok(rows)
            })
            .await
    }

    /// The first and the newest plan of a turn.
    pub async fn plans_of(&self, chat: String, turn: u32) -> Result<Vec<Row>, StoreError> {
        self.db
            .call(move |c| {
                c.prepare_cached(&format!(
                    "select {COLUMNS} from items i where chat = ?1 and turn = ?2 and kind = 'plan'
                     and (seq = (select min(seq) from items where chat = ?1 and turn = ?2
                                 and kind = 'plan')
                       or seq = (select max(seq) from items where chat = ?1 and turn = ?2
                                 and kind = 'plan')) order by seq"
                ))?
                .query_map(params![chat, turn], Row::read)?
                .collect()
            })
            .await
    }

    /// The newest item of a kind, if any.
    pub async fn newest(
        &self,
        chat: String,
        kind: &'static str,
    ) -> Result<Option<Row>, StoreError> {
        self.db
            .call(move |c| {
                c.prepare_cached(&format!(
                    "select {COLUMNS} from items i where chat = ?1 and kind = ?2
                     order by seq desc limit 1"
                ))?
                .query_row(params![chat, kind], Row::read)
                .optional()
            })
            .await
    }
}

/// Where the last item before a number ends.
fn position(
    c: &rusqlite::Connection,
    chat: &str,
    before: u64,
) -> Result<Position, rusqlite::Error> {
    c.prepare_cached(
        "select seq, at from items where chat = ?1 and seq < ?2 order by seq desc limit 1",
    )?
    .query_row(params![chat, before], |r| {
        Ok(Position {
            seq: Seq(r.get(0)?),
            at: r.get(1)?,
        })
    })
    .optional()
    .map(Option::unwrap_or_default)
}

fn one(
    t: &rusqlite::Connection,
    chat: &str,
    put: &Put,
    closed: &mut Vec<u64>,
) -> Result<Took, rusqlite::Error> {
    let known: Option<(u64, bool, String)> = t
        .prepare_cached("select at, open, kind from items where chat = ?1 and seq = ?2")?
        .query_row(params![chat, put.seq], |r| {
            Ok((r.get(0)?, r.get(1)?, r.get(2)?))
        })
        .optional()?;
    match (&put.what, known) {
        (Content::Whole(data), None) => {
            let more = data.get("more").is_some_and(|m| m == true);
            insert(t, chat, put, data, "", more)?;
            close_before(t, chat, put, closed)?;
            Ok(Took::New)
        }
        (Content::Whole(data), Some((_, _, kind))) if kind == put.kind => {
            merge(t, chat, put.seq, &kind, data)
        }
        (Content::Tail { text, end }, None) => {
            if *end != text.len() as u64 {
                return Ok(Took::Gap);
            }
            insert(t, chat, put, &Value::Null, text, true)?;
            close_before(t, chat, put, closed)?;
            Ok(Took::New)
        }
        (Content::Tail { text, end }, Some((have, _, kind))) if kind == put.kind => {
            if *end <= have {
                return Ok(Took::Known);
            }
            let start = end.saturating_sub(text.len() as u64);
            if start > have {
                return Ok(Took::Gap);
            }
            let fresh = usize::try_from(have - start)
                .ok()
                .and_then(|skip| text.get(skip..));
            let Some(fresh) = fresh else {
                return Ok(Took::Gap);
            };
            append(t, chat, put.seq, have, fresh, *end)?;
            Ok(Took::More)
        }
        // Another kind under a number that is taken: the device numbers anew without saying so.
        _ => Ok(Took::Known),
    }
}

fn insert(
    t: &rusqlite::Connection,
    chat: &str,
    put: &Put,
    data: &Value,
    text: &str,
    open: bool,
) -> Result<(), rusqlite::Error> {
    let data = parts_of(data);
    t.prepare_cached(
        "insert into items (chat, seq, turn, time, kind, call, at, open, data, text)
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    )?
    .execute(params![
        chat,
        put.seq,
        put.turn,
        put.time,
        put.kind,
        put.call,
        text.len() as u64,
        open,
        data.to_string(),
        text
    ])?;
    t.prepare_cached(
        "update chats set head = max(head, ?2), turn = max(turn, ?3),
           updated = case when ?4 in ('prompt', 'turn_end', 'ask') then max(updated, ?5)
                     else updated end where id = ?1",
    )?
    .execute(params![chat, put.seq, put.turn, put.kind, put.time])?;
    Ok(())
}

/// An item may arrive in several words under one number: `more` says so and is not kept; a
/// prompt's `part` becomes the first of its `parts`.
fn parts_of(data: &Value) -> Value {
    let mut data = data.clone();
    if let Some(map) = data.as_object_mut() {
        map.remove("more");
        if let Some(part) = map.remove("part") {
            map.insert("parts".to_owned(), Value::Array(vec![part]));
        }
    }
    data
}

/// A second word on an item that is there: a further part of a prompt, the structure of a plan.
fn merge(
    t: &rusqlite::Connection,
    chat: &str,
    seq: u64,
    kind: &str,
    data: &Value,
) -> Result<Took, rusqlite::Error> {
    if !matches!(kind, "prompt" | "plan") {
        return Ok(Took::Known);
    }
    if data.get("more").is_none_or(|m| m != true) {
        t.execute_cached(
            "update items set open = 0 where chat = ?1 and seq = ?2",
            params![chat, seq],
        )?;
    }
    let old: String = t.query_row_cached(
        "select data from items where chat = ?1 and seq = ?2",
        params![chat, seq],
        |r| r.get(0),
    )?;
    let mut old: Value = serde_json::from_str(&old).unwrap_or_default();
    let before = old.clone();
    let (Some(map), Some(new)) = (old.as_object_mut(), data.as_object()) else {
        return Ok(Took::Known);
    };
    if kind == "prompt" {
        let Some(part) = new.get("part") else {
            return Ok(Took::Known);
        };
        if let Some(parts) = map.get_mut("parts").and_then(Value::as_array_mut)
            && !parts.contains(part)
        {
            parts.push(part.clone());
        }
    } else {
        for (key, value) in new.iter().filter(|(key, _)| *key != "more") {
            map.insert(key.clone(), value.clone());
        }
    }
    if old == before {
        return Ok(Took::Known);
    }
    t.execute_cached(
        "update items set data = ?3 where chat = ?1 and seq = ?2",
        params![chat, seq, old.to_string()],
    )?;
    Ok(Took::More)
}

fn append(
    t: &rusqlite::Connection,
    chat: &str,
    seq: u64,
    start: u64,
    text: &str,
    end: u64,
) -> Result<(), rusqlite::Error> {
    t.prepare_cached("insert into tails (chat, seq, start, text) values (?1, ?2, ?3, ?4)")?
        .execute(params![chat, seq, start, text])?;
    t.prepare_cached("update items set at = ?3 where chat = ?1 and seq = ?2")?
        .execute(params![chat, seq, end])?;
    let count: i64 = t
        .prepare_cached("select count(*) from tails where chat = ?1 and seq = ?2")?
        .query_row(params![chat, seq], |r| r.get(0))?;
    if count >= FOLD_AT {
        fold(t, chat, seq)?;
    }
    Ok(())
}

fn fold(t: &rusqlite::Connection, chat: &str, seq: u64) -> Result<(), rusqlite::Error> {
    t.prepare_cached(
        "update items set text = text || coalesce((select group_concat(text, '') from
           (select text from tails where chat = ?1 and seq = ?2 order by start)), '')
         where chat = ?1 and seq = ?2",
    )?
    .execute(params![chat, seq])?;
    t.prepare_cached("delete from tails where chat = ?1 and seq = ?2")?
        .execute(params![chat, seq])?;
    Ok(())
}

/// A later item ends the streamed text before it; a command's output ends with its call's result,
/// because several commands may run at once.
fn close_before(
    t: &rusqlite::Connection,
    chat: &str,
    put: &Put,
    closed: &mut Vec<u64>,
) -> Result<(), rusqlite::Error> {
    let ended: Vec<u64> = t
        .prepare_cached(
            "update items set open = 0 where chat = ?1 and open = 1 and seq < ?2 and (
               kind in ('text', 'thought') or ?3 = 'turn_end'
               or (kind = 'output' and ?3 = 'result' and call = ?4)) returning seq",
        )?
        .query_map(params![chat, put.seq, put.kind, put.call], |r| r.get(0))?
        .collect::<Result<_, _>>()?;
    for seq in &ended {
        fold(t, chat, *seq)?;
    }
    closed.extend(ended);
    Ok(())
}
