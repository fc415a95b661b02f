//! Rows of rules: the person's lasting answers. What a rule says is `permission`'s business.

use rusqlite::{OptionalExtension as _, Transaction, params};
use tokio::sync::watch;

use crate::ids::SessionId;
use crate::store::db::{Cached, Durability, StoreError};
use crate::store::device::{Store, json, read_json};

/// How old the note of a rule's last use may be before it is written anew: whoever works fast costs
/// one changed row a minute and rule, and the list says minutes anyway.
const USED_MS: i64 = 60_000;

/// A rule as it is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct RuleRow {
    pub id: String,
    /// The origin whose sessions it counts for, and no other's. One that refuses counts for all.
    pub origin: String,
    /// Only this session; none: every session of the origin.
    pub session: Option<SessionId>,
    pub made: i64,
    pub by: String,
    pub data: serde_json::Value,
    /// When it last let something through, to the minute.
    pub used: Option<i64>,
}

/// A stretch of the list of an origin's lasting rules.
#[derive(Clone, Debug, PartialEq)]
pub struct Lasting {
    /// Newest first.
    pub rules: Vec<RuleRow>,
    /// How many there are in all.
    pub total: u64,
}

/// What became of taking a rule back for an origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakenBack {
    Removed,
    /// It refuses something: without it more would be allowed.
    Refuses,
    /// There is none of that id that counts for the origin.
    Gone,
}

const COLUMNS: &str = "id, origin, session, made, by, data, used";

/// What counts for an origin: its own yeses, and everybody's noes.
const COUNTS: &str = "(origin = ?1 or json_extract(data, '$.allow') = 0)";

pub(crate) fn put(t: &Transaction<'_>, rule: &RuleRow) -> Result<(), rusqlite::Error> {
    t.execute_cached(
        "insert into rules (id, origin, session, made, by, data, used)
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7)
         on conflict (id) do update set data = excluded.data, made = excluded.made, by = excluded.by",
        params![
            rule.id,
            rule.origin,
            rule.session.as_ref().map(SessionId::as_str),
            rule.made,
            rule.by,
            json(&rule.data)?,
            rule.used,
        ],
    )?;
    Ok(())
}

/// Notes that rules let something through. Answers whether anything was written.
pub(crate) fn used(
    t: &Transaction<'_>,
    rules: &[String],
    now: i64,
) -> Result<bool, rusqlite::Error> {
    let mut changed = 0;
    for rule in rules {
        changed += t
            .prepare_cached(
                "update rules set used = ?2 where id = ?1 and (used is null or used <= ?3)",
            )?
            .execute(params![rule, now, now - USED_MS])?;
    }
    Ok(changed > 0)
}

fn row(r: &rusqlite::Row<'_>) -> Result<RuleRow, rusqlite::Error> {
    let data: String = r.get(5)?;
    Ok(RuleRow {
        id: r.get(0)?,
        origin: r.get(1)?,
        session: r.get::<_, Option<String>>(2)?.map(SessionId::new),
        made: r.get(3)?,
        by: r.get(4)?,
        data: read_json(5, &data)?,
        used: r.get(6)?,
    })
}

impl Store {
    /// Marked changed whenever a rule is made, taken back, or used for the first time in a minute.
    pub fn rule_changes(&self) -> watch::Receiver<u64> {
        self.rules.subscribe()
    }

    pub(crate) fn rules_changed(&self) {
        self.rules.send_modify(|n| *n = n.wrapping_add(1));
    }

    /// The rules that count in a session, oldest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn rules_for(
        &self,
        origin: &str,
        session: &SessionId,
    ) -> Result<Vec<RuleRow>, StoreError> {
        let (origin, session) = (origin.to_owned(), session.clone());
        self.db()
            .call(move |c| {
                c.prepare_cached(&format!(
                    "select {COLUMNS} from rules
                     where {COUNTS} and (session is null or session = ?2) order by made, id",
                ))?
                .query_map(params![origin, session.as_str()], row)?
                .collect()
            })
            .await
    }

    /// Every stored rule, for the person's list.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn rules(&self) -> Result<Vec<RuleRow>, StoreError> {
        self.db()
            .call(|c| {
                c.prepare_cached(&format!("select {COLUMNS} from rules order by made, id"))?
                    .query_map([], row)?
                    .collect()
            })
            .await
    }

    /// The rules that count in every session of an origin, newest first, behind the rule `after`
    /// where one is given; one that is not there any more begins the list anew.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn lasting_rules(
        &self,
        origin: &str,
        after: Option<String>,
        limit: usize,
    ) -> Result<Lasting, StoreError> {
        let origin = origin.to_owned();
        self.db()
            .call(move |c| {
                let total = c.query_row(
                    &format!("select count(*) from rules where {COUNTS} and session is null"),
                    [&origin],
                    |r| r.get::<_, i64>(0),
                )?;
                let behind: Option<i64> = c
                    .query_row("select made from rules where id = ?1", [&after], |r| {
                        r.get(0)
                    })
                    .optional()?;
                let rules = c
                    .prepare_cached(&format!(
                        "select {COLUMNS} from rules where {COUNTS} and session is null
                           and (?2 is null or made < ?2 or (made = ?2 and id < ?3))
                         order by made desc, id desc limit ?4"
                    ))?
                    .query_map(params![origin, behind, after, limit as i64], row)?
                    .collect::<Result<_, _>>()?;
                Ok(Lasting {
                    rules,
                    total: total.unsigned_abs(),
                })
            })
            .await
    }

    /// Adds a rule that the person made without an ask.
    ///
    /// # Errors
    /// When it cannot be saved.
    pub async fn add_rule(&self, rule: RuleRow) -> Result<(), StoreError> {
        self.db()
            .write(Durability::Disk, move |t| put(t, &rule))
            .await?;
        self.rules_changed();
        Ok(())
    }

    /// Notes that rules let something through now, where nothing else is written with it.
    ///
    /// # Errors
    /// When it cannot be saved.
    pub async fn rules_used(&self, rules: Vec<String>, now: i64) -> Result<(), StoreError> {
        if rules.is_empty() {
            return Ok(());
        }
        let changed = self
            .db()
            .write(Durability::Process, move |t| used(t, &rules, now))
            .await?;
        if changed {
            self.rules_changed();
        }
        Ok(())
    }

    /// Takes a rule back. Answers whether there was one.
    ///
    /// # Errors
    /// When it cannot be saved.
    pub async fn remove_rule(&self, id: &str) -> Result<bool, StoreError> {
        let id = id.to_owned();
        let removed = self
            .db()
            .write(Durability::Disk, move |t| {
                Ok(t.execute_cached("delete from rules where id = ?1", [id])? > 0)
            })
            .await?;
        if removed {
            self.rules_changed();
        }
        Ok(removed)
    }

    /// Takes a yes back that counts in every session of an origin, as whoever speaks for it asks.
    ///
    /// # Errors
    /// When it cannot be saved.
    pub async fn take_rule_back(&self, origin: &str, id: &str) -> Result<TakenBack, StoreError> {
        let (origin, id) = (origin.to_owned(), id.to_owned());
        let taken = self
            .db()
            .write(Durability::Disk, move |t| {
                let refuses: Option<bool> = t
                    .query_row(
                        &format!(
                            "select json_extract(data, '$.allow') is 0 from rules
                             where {COUNTS} and session is null and id = ?2"
                        ),
                        params![origin, id],
                        |r| r.get(0),
                    )
                    .optional()?;
                Ok(match refuses {
                    None => TakenBack::Gone,
                    Some(true) => TakenBack::Refuses,
                    Some(false) => {
                        t.execute_cached("delete from rules where id = ?1", [&id])?;
                        TakenBack::Removed
                    }
                })
            })
            .await?;
        if taken == TakenBack::Removed {
            self.rules_changed();
        }
        Ok(taken)
    }
}
