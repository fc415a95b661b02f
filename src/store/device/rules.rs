//! Rows of rules: the person's lasting answers. What a rule says is `permission`'s business.

use rusqlite::{Transaction, params};

use crate::ids::SessionId;
use crate::store::db::{Cached, Durability, StoreError};
use crate::store::device::{Store, json, read_json};

/// A rule as it is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct RuleRow {
    pub id: String,
    /// The origin whose sessions it counts for, and no other's.
    pub origin: String,
    /// Only this session; none: every session of the origin.
    pub session: Option<SessionId>,
    pub made: i64,
    pub by: String,
    pub data: serde_json::Value,
}

pub(crate) fn put(t: &Transaction<'_>, rule: &RuleRow) -> Result<(), rusqlite::Error> {
    t.execute_cached(
        "insert into rules (id, origin, session, made, by, data) values (?1, ?2, ?3, ?4, ?5, ?6)
         on conflict (id) do update set data = excluded.data, made = excluded.made, by = excluded.by",
        params![
            rule.id,
            rule.origin,
            rule.session.as_ref().map(SessionId::as_str),
            rule.made,
            rule.by,
            json(&rule.data)?
        ],
    )?;
    Ok(())
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
    })
}

impl Store {
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
                c.prepare_cached(
                    "select id, origin, session, made, by, data from rules
                     where origin = ?1 and (session is null or session = ?2) order by made, id",
                )?
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
                c.prepare_cached(
                    "select id, origin, session, made, by, data from rules order by made, id",
                )?
                .query_map([], row)?
                .collect()
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
            .await
    }

    /// Takes a rule back. Answers whether there was one.
    ///
    /// # Errors
    /// When it cannot be saved.
    pub async fn remove_rule(&self, id: &str) -> Result<bool, StoreError> {
        let id = id.to_owned();
        self.db()
            .write(Durability::Disk, move |t| {
                Ok(t.execute_cached("delete from rules where id = ?1", [id])? > 0)
            })
            .await
    }
}
