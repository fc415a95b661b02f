//! Rows of refused watch commands: what would have asked, by number, until somebody at this
//! computer says yes to it.

use rusqlite::{OptionalExtension as _, Row, params};

use crate::store::db::{Cached, Durability, StoreError};
use crate::store::device::{Store, json, read_json, signed, unsigned};
use crate::store::item::AskBody;

/// Commands that are kept; the oldest goes when there is one more.
const MOST: u64 = 50;

/// A refused command as it is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct RefusedRow {
    /// Counted from 1, and never given twice.
    pub number: u64,
    /// The origin that it was refused to.
    pub origin: String,
    pub made: i64,
    /// What it would have asked.
    pub body: AskBody,
    /// The rule that a yes makes: its id and what it says. None: its like cannot be remembered.
    pub rule: Option<(String, serde_json::Value)>,
}

fn row(r: &Row<'_>) -> Result<RefusedRow, rusqlite::Error> {
    let body: String = r.get(3)?;
    let rule: Option<String> = r.get(4)?;
    Ok(RefusedRow {
        number: unsigned(r.get(0)?),
        origin: r.get(1)?,
        made: r.get(2)?,
        body: read_json(3, &body)?,
        rule: rule.map(|text| read_json(4, &text)).transpose()?,
    })
}

impl Store {
    /// Keeps a refused command and gives its number. The same one again, of the same origin in the
    /// same folder, keeps the number it has. The number in `new` is not looked at.
    ///
    /// # Errors
    /// When it cannot be saved.
    pub async fn refuse(&self, new: RefusedRow) -> Result<u64, StoreError> {
        self.db()
            .write(Durability::Disk, move |t| {
                let known = t
                    .query_row_cached(
                        "select number from refused where origin = ?1 and command = ?2 and cwd = ?3",
                        params![new.origin, new.body.command, new.body.cwd],
                        |r| r.get::<_, i64>(0),
                    )
                    .optional()?;
                let rule = new.rule.as_ref().map(json).transpose()?;
                if let Some(number) = known {
                    // What is asked may have changed with the rules and the mode.
                    t.execute_cached(
                        "update refused set made = ?2, body = ?3, rule = ?4 where number = ?1",
                        params![number, new.made, json(&new.body)?, rule],
                    )?;
                    return Ok(unsigned(number));
                }
                t.execute_cached(
                    "insert into refused (origin, command, cwd, made, body, rule)
                     values (?1, ?2, ?3, ?4, ?5, ?6)",
                    params![
                        new.origin,
                        new.body.command,
                        new.body.cwd,
                        new.made,
                        json(&new.body)?,
                        rule
                    ],
                )?;
                let number = t.last_insert_rowid();
                t.execute_cached(
                    "delete from refused where number <= ?1",
                    [number.saturating_sub(signed(MOST))],
                )?;
                Ok(unsigned(number))
            })
            .await
    }

    /// The refused commands, oldest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn refused(&self) -> Result<Vec<RefusedRow>, StoreError> {
        self.db()
            .call(|c| {
                c.prepare_cached(
                    "select number, origin, made, body, rule from refused order by number",
                )?
                .query_map([], row)?
                .collect()
            })
            .await
    }

    /// Takes a refused command off the list. Answers whether it was there.
    ///
    /// # Errors
    /// When it cannot be saved.
    pub async fn take_refused(&self, number: u64) -> Result<bool, StoreError> {
        self.db()
            .write(Durability::Disk, move |t| {
                let gone =
                    t.execute_cached("delete from refused where number = ?1", [signed(number)])?;
                Ok(gone == 1)
            })
            .await
    }
}
