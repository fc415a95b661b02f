//! What computers allow always, as they last told it, and what of it waits to be taken back.

use rusqlite::{OptionalExtension as _, params};
use serde_json::Value;

use super::HubStore;
use super::work::add;
use crate::store::db::{Durability, StoreError};

/// The work that takes a rule back; its key is the rule.
pub const REMOVE: &str = "unrule";

/// One rule of a computer.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    pub id: String,
    /// As the computer told it (spec/acp.md, Q16).
    pub body: Value,
    /// It is to be taken back, and the computer has not said yet that it was.
    pub waits: bool,
    /// Why the computer did not take it back.
    pub why: Option<String>,
}

/// The list of a computer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rules {
    /// Newest first.
    pub rules: Vec<Rule>,
    /// How many the computer has; there may be more than are kept here.
    pub total: u64,
    /// When it was told; none: never.
    pub heard: Option<i64>,
}

/// What became of a wish to take a rule back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// It is kept until the computer has taken it.
    Kept,
    /// It refuses something: only the computer itself takes it back.
    Refuses,
    Gone,
}

impl HubStore {
    /// Takes a list for the one that was there. A removal whose rule is not in it is done.
    pub async fn put_rules(
        &self,
        device: String,
        rules: Vec<(String, Value)>,
        total: u64,
        heard: i64,
    ) -> Result<(), StoreError> {
        self.db
            .write(Durability::Process, move |t| {
                t.execute("delete from rules where device = ?1", [&device])?;
                for (place, (id, body)) in rules.iter().enumerate() {
                    t.prepare(
                        "insert or ignore into rules (device, id, place, body)
                         values (?1, ?2, ?3, ?4)",
                    )?
                    .execute(params![
                        device,
                        id,
                        place as u64,
                        body.to_string()
                    ])?;
                }
                t.execute(
                    "update devices set rules_total = ?2, rules_heard = ?3 where id = ?1",
                    params![device, total, heard],
                )?;
                // More than is kept here may be on the computer: then nothing follows from the list.
                if total <= rules.len() as u64 {
                    t.execute(
                        "update work set state = 'done' where device = ?1 and kind = ?2
                         and state <> 'done'
                         and key not in (select id from rules where device = ?1)",
                        [&device, REMOVE],
                    )?;
                }
                Ok(())
            })
            .await
    }

    /// The list as it was told last.
    pub async fn rules(&self, device: String) -> Result<Rules, StoreError> {
        self.db
            .call(move |c| {
                let (total, heard): (Option<u64>, Option<i64>) = c.query_row(
                    "select rules_total, rules_heard from devices where id = ?1",
                    [&device],
                    |r| Ok((r.get(0)?, r.get(1)?)),
                )?;
                let rules = c
                    .prepare(
                        "select r.id, r.body, w.state, w.note from rules r left join work w
                           on w.device = r.device and w.kind = ?2 and w.key = r.id
                         where r.device = ?1 order by r.place",
                    )?
                    .query_map([&device, REMOVE], |r| {
                        let body: String = r.get(1)?;
                        let state: Option<String> = r.get(2)?;
                        let state = state.as_deref();
                        Ok(Rule {
                            id: r.get(0)?,
                            body: serde_json::from_str(&body).unwrap_or_default(),
                            waits: state == Some("waiting"),
                            why: r
                                .get::<_, Option<String>>(3)?
                                .filter(|_| state == Some("failed")),
                        })
                    })?
                    .collect::<Result<Vec<_>, _>>()?;
                Ok(Rules {
                    total: total.unwrap_or(0).max(rules.len() as u64),
                    rules,
                    heard,
                })
            })
            .await
    }

    /// Keeps the wish to take a rule back, as work for the computer. At most one a rule that is
    /// listed here, so there are never more of them than rules.
    pub async fn remove_rule(&self, device: String, id: String) -> Result<Removal, StoreError> {
        self.db
            .write(Durability::Disk, move |t| {
                let verdict: Option<Option<String>> = t
                    .query_row(
                        "select json_extract(body, '$.verdict') from rules
                         where device = ?1 and id = ?2",
                        [&device, &id],
                        |r| r.get(0),
                    )
                    .optional()?;
                let Some(verdict) = verdict else {
                    return Ok(Removal::Gone);
                };
                if verdict.as_deref() == Some("deny") {
                    return Ok(Removal::Refuses);
                }
                if !add(
                    t,
                    &device,
                    None,
                    REMOVE,
                    &id,
                    &serde_json::json!({ "id": id }),
                )? {
                    t.execute(
                        "update work set state = 'waiting', note = null
                         where device = ?1 and kind = ?2 and key = ?3",
                        [&device, REMOVE, &id],
                    )?;
                }
                Ok(Removal::Kept)
            })
            .await
    }

    /// The computer has taken a rule back, or had it no more.
    pub async fn rule_gone(&self, device: String, id: String) -> Result<(), StoreError> {
        self.db
            .write(Durability::Disk, move |t| {
                t.execute(
                    "update work set state = 'done' where device = ?1 and kind = ?2 and key = ?3",
                    [&device, REMOVE, &id],
                )?;
                let gone = t.execute(
                    "delete from rules where device = ?1 and id = ?2",
                    [&device, &id],
                )?;
                t.execute(
                    "update devices set rules_total = max(0, rules_total - ?2) where id = ?1",
                    params![device, gone as u64],
                )?;
                Ok(())
            })
            .await
    }
}
