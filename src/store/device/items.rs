//! Rows of items, and what an item changes in the other tables: one transaction for both.

use rusqlite::{Row, Transaction, params};

use crate::ids::{Position, Seq, SessionId};
use crate::store::db::{Cached, StoreError};
use crate::store::device::audit::{self, AuditLine};
use crate::store::device::keys::{self, KeyRow};
use crate::store::device::rewind::TakenBack;
use crate::store::device::rules::{self, RuleRow};
use crate::store::device::{Store, asks, json, read_json, sessions, signed, unsigned};
use crate::store::item::{Body, Item};

/// What is kept together with items, or not at all.
#[derive(Clone, Debug, Default)]
pub struct Also {
    pub rules: Vec<RuleRow>,
    /// Ids of rules that let through what begins now.
    pub used: Vec<String>,
    pub audit: Vec<AuditLine>,
    pub key: Option<KeyRow>,
    /// What the model was told of what can change.
    pub told: Option<String>,
}

/// The word of an item's kind, as in its JSON.
pub fn kind(body: &Body) -> &'static str {
    match body {
        Body::Prompt { .. } => "prompt",
        Body::Step { .. } => "step",
        Body::Message { .. } => "message",
        Body::Thought { .. } => "thought",
        Body::Call { .. } => "call",
        Body::Sampled { .. } => "sampled",
        Body::Ask(_) => "ask",
        Body::Answered { .. } => "answered",
        Body::Started { .. } => "started",
        Body::Output { .. } => "output",
        Body::Result { .. } => "result",
        Body::Plan { .. } => "plan",
        Body::Mode { .. } => "mode",
        Body::Model { .. } => "model",
        Body::Level { .. } => "level",
        Body::Title { .. } => "title",
        Body::Notice { .. } => "notice",
        Body::Rewound { .. } => "rewound",
        Body::TurnEnd { .. } => "turn_end",
    }
}

/// The text of a streamed item.
pub fn text(body: &Body) -> Option<&String> {
    match body {
        Body::Message { text } | Body::Thought { text } | Body::Output { text, .. } => Some(text),
        _ => None,
    }
}

/// The text of a streamed item, to be added to.
pub fn text_mut(body: &mut Body) -> Option<&mut String> {
    match body {
        Body::Message { text } | Body::Thought { text } | Body::Output { text, .. } => Some(text),
        _ => None,
    }
}

/// The same body with no text: what the `body` column of a streamed item holds.
fn bare(body: &Body) -> Option<Body> {
    Some(match body {
        Body::Message { .. } => Body::Message {
            text: String::new(),
        },
        Body::Thought { .. } => Body::Thought {
            text: String::new(),
        },
        Body::Output { call, .. } => Body::Output {
            call: call.clone(),
            text: String::new(),
        },
        _ => return None,
    })
}

/// Writes items (a streamed one again when it grew) and what follows from them. Answers whether a
/// rule changed with them.
pub(crate) fn put(
    t: &Transaction<'_>,
    session: &SessionId,
    items: &[Item],
    reserved: u64,
    also: &Also,
) -> Result<bool, rusqlite::Error> {
    let mut bytes = 0;
    for item in items {
        bytes += put_item(t, session, item)?;
        project(t, session, item)?;
    }
    let head = items.last().map_or(0, |i| i.seq.0);
    // Numbers that are reserved ahead are no change.
    let updated = match items.last() {
        Some(item) => Some(sessions::change_time(t, item.time)?),
        None => None,
    };
    t.prepare_cached(
        "update sessions set head = max(head, ?2), reserved = max(reserved, ?3),
             updated = coalesce(?4, updated), bytes = bytes + ?5, told = coalesce(?6, told)
         where id = ?1",
    )?
    .execute(params![
        session.as_str(),
        signed(head),
        signed(reserved),
        updated,
        bytes,
        also.told
    ])?;
    for rule in &also.rules {
        rules::put(t, rule)?;
    }
    let mut ruled = !also.rules.is_empty();
    if let Some(item) = items.last() {
        ruled |= rules::used(t, &also.used, item.time)?;
    }
    for line in &also.audit {
        audit::put(t, line)?;
    }
    if let Some(key) = &also.key {
        keys::put(t, key)?;
    }
    Ok(ruled)
}

/// Writes one item and answers by how many bytes its session grew.
fn put_item(t: &Transaction<'_>, session: &SessionId, item: &Item) -> Result<i64, rusqlite::Error> {
    let text = text(&item.body);
    let body = match bare(&item.body) {
        Some(bare) => json(&bare)?,
        None => json(&item.body)?,
    };
    let size = body.len() + text.map_or(0, String::len);
    let mut before = 0;
    if text.is_some() {
        // A streamed item is written again as it grows.
        before = t
            .prepare_cached(
                "select coalesce(sum(length(cast(text as blob)) + length(cast(body as blob))), 0)
                 from items where session = ?1 and seq = ?2",
            )?
            .query_row(params![session.as_str(), signed(item.seq.0)], |r| r.get(0))?;
    }
    t.prepare_cached(
        "insert into items (session, seq, turn, time, kind, body, text)
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7)
         on conflict (session, seq) do update set text = excluded.text",
    )?
    .execute(params![
        session.as_str(),
        signed(item.seq.0),
        item.turn,
        item.time,
        kind(&item.body),
        body,
        text,
    ])?;
    Ok(signed(size as u64) - before)
}

/// Keeps the columns and tables that an item changes in step with it.
fn project(t: &Transaction<'_>, session: &SessionId, item: &Item) -> Result<(), rusqlite::Error> {
    let id = session.as_str();
    match &item.body {
        Body::Prompt { run, .. } => {
            t.execute_cached(
                "update sessions set turn = ?2, running = 1 where id = ?1",
                params![id, item.turn],
            )?;
            if let Some((schedule, run)) = run_key(run.as_ref()) {
                t.execute_cached(
                    "insert or ignore into runs (schedule, run, session, turn)
                     values (?1, ?2, ?3, ?4)",
                    params![schedule, run, id, item.turn],
                )?;
            }
        }
        Body::TurnEnd { run, .. } => {
            t.execute_cached("update sessions set running = 0 where id = ?1", [id])?;
            if let (Some((schedule, name)), Some(outcome)) = (run_key(run.as_ref()), run) {
                t.execute_cached(
                    "update runs set outcome = ?3 where schedule = ?1 and run = ?2",
                    params![schedule, name, json(outcome)?],
                )?;
            }
        }
        Body::Call { .. } => {
            t.execute_cached("update sessions set calls = calls + 1 where id = ?1", [id])?;
        }
        Body::Title { title } => set(t, id, "title", title)?,
        Body::Mode { mode, .. } => set(t, id, "mode", mode)?,
        Body::Model { model } => set(t, id, "model", model)?,
        Body::Level { level } => set(t, id, "level", level)?,
        Body::Ask(body) => asks::put(t, session, item, body)?,
        Body::Answered {
            ask,
            how,
            scope,
            by,
            note,
            ..
        } => asks::settle(t, ask, *how, *scope, by, note.as_deref(), item.time)?,
        _ => {}
    }
    Ok(())
}

fn set(t: &Transaction<'_>, id: &str, column: &str, value: &str) -> Result<(), rusqlite::Error> {
    t.execute_cached(
        &format!("update sessions set {column} = ?2 where id = ?1"),
        [id, value],
    )?;
    Ok(())
}

fn run_key(run: Option<&serde_json::Value>) -> Option<(&str, &str)> {
    let run = run?;
    Some((run.get("schedule")?.as_str()?, run.get("run")?.as_str()?))
}

pub(crate) fn row(r: &Row<'_>) -> Result<Item, rusqlite::Error> {
    let body: String = r.get(3)?;
    let mut body: Body = read_json(3, &body)?;
    if let Some(text) = text_mut(&mut body) {
        *text = r.get::<_, Option<String>>(4)?.unwrap_or_default();
    }
    Ok(Item {
        seq: Seq(unsigned(r.get(0)?)),
        turn: r.get(1)?,
        time: r.get(2)?,
        body,
    })
}

impl Store {
    /// Items from a number on, in order: at most `limit` of them and, past the first, at most
    /// `bytes` of text.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn items(
        &self,
        session: &SessionId,
        from: Seq,
        limit: usize,
        bytes: usize,
    ) -> Result<Vec<Item>, StoreError> {
        let session = session.clone();
        self.db()
            .call(move |c| {
                let mut statement = c.prepare_cached(
                    "select seq, turn, time, body, text from items
                     where session = ?1 and seq >= ?2 order by seq limit ?3",
                )?;
                let mut rows = statement.query(params![
                    session.as_str(),
                    signed(from.0),
                    signed(limit as u64)
                ])?;
                let mut items: Vec<Item> = Vec::new();
                let mut size = 0;
                while let Some(r) = rows.next()? {
                    let item = row(r)?;
                    size += text(&item.body).map_or(256, String::len);
                    if !items.is_empty() && size > bytes {
                        break;
                    }
                    items.push(item);
                }
                Ok(items)
            })
            .await
    }

    /// What the model's history is made of, in order: no output, no states, the newest plan, and
    /// the reasoning of the last turn only. What a summary stands for is left out, but for items
    /// of the last turn and the prompt of the turn that it was made in; so is what was taken back.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn history(&self, session: &SessionId) -> Result<Vec<Item>, StoreError> {
        let session = session.clone();
        self.db()
            .call(move |c| {
                let back = TakenBack::of(c, &session)?;
                let (covered, turn) = back.summary().unwrap_or_default();
                let plan = back.plan(c, &session, None)?.map(signed);
                let items: Result<Vec<Item>, rusqlite::Error> = c
                    .prepare_cached(
                        "select seq, items.turn, time, body, text from items
                         join sessions on sessions.id = items.session
                         where session = ?1 and (seq > ?2 or items.turn = sessions.turn
                             or (kind = 'prompt' and items.turn = ?3))
                           and (kind in ('prompt', 'step', 'message', 'call', 'sampled', 'ask',
                             'answered', 'started', 'result', 'turn_end')
                             or (kind = 'thought' and items.turn = sessions.turn)
                             or (kind = 'notice'
                               and json_extract(body, '$.compacted') is not null))
                           or (session = ?1 and seq = ?4)
                         order by seq",
                    )?
                    .query_map(params![session.as_str(), covered, turn, plan], row)?
                    .filter(|item| item.as_ref().map_or(true, |item| back.counts(item.seq.0)))
                    .collect();
                items
            })
            .await
    }

    /// The text of a call's result, and where the whole of it is when that is only a part.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn result(
        &self,
        session: &SessionId,
        call: &str,
    ) -> Result<Option<(String, Option<String>)>, StoreError> {
        use rusqlite::OptionalExtension as _;
        let (session, call) = (session.clone(), call.to_owned());
        self.db()
            .call(move |c| {
                c.query_row_cached(
                    "select json_extract(body, '$.text'), json_extract(body, '$.spill') from items
                     where session = ?1 and kind = 'result' and json_extract(body, '$.call') = ?2",
                    params![session.as_str(), call],
                    |r| Ok((r.get(0)?, r.get(1)?)),
                )
                .optional()
            })
            .await
    }

    /// How a turn ended, if it has.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn turn_end(
        &self,
        session: &SessionId,
        turn: u32,
    ) -> Result<Option<Item>, StoreError> {
        use rusqlite::OptionalExtension as _;
        let session = session.clone();
        self.db()
            .call(move |c| {
                c.query_row_cached(
                    "select seq, turn, time, body, text from items
                     where session = ?1 and turn = ?2 and kind = 'turn_end'",
                    params![session.as_str(), turn],
                    row,
                )
                .optional()
            })
            .await
    }

    /// Where a session's journal ends on the disk.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn end(&self, session: &SessionId) -> Result<Position, StoreError> {
        let session = session.clone();
        self.db()
            .call(move |c| {
                use rusqlite::OptionalExtension as _;
                let found = c
                    .query_row_cached(
                        "select seq, coalesce(length(cast(text as blob)), 0) from items
                         where session = ?1 order by seq desc limit 1",
                        [session.as_str()],
                        |r| {
                            Ok(Position {
                                seq: Seq(unsigned(r.get(0)?)),
                                at: unsigned(r.get(1)?),
                            })
                        },
                    )
                    .optional()?;
                Ok(found.unwrap_or_default())
            })
            .await
    }

    /// The session and turn of a scheduled run that has begun here.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn run(
        &self,
        schedule: &str,
        run: &str,
    ) -> Result<Option<(SessionId, u32)>, StoreError> {
        use rusqlite::OptionalExtension as _;
        let (schedule, run) = (schedule.to_owned(), run.to_owned());
        self.db()
            .call(move |c| {
                c.query_row_cached(
                    "select session, turn from runs where schedule = ?1 and run = ?2",
                    params![schedule, run],
                    |r| Ok((SessionId::new(r.get::<_, String>(0)?), r.get(1)?)),
                )
                .optional()
            })
            .await
    }
}
