//! Accounts, the browsers signed in to them, and the one-time links that sign one in.

use rusqlite::{OptionalExtension as _, Row, params};

use super::{HubStore, hash};
use crate::store::db::{Cached, Durability, StoreError};

/// Someone who may use this instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    pub id: String,
    pub name: String,
    /// The argon2 string; none until a password was chosen.
    pub password: Option<String>,
}

/// A browser that is or was signed in. Times are milliseconds since the epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Browser {
    pub id: String,
    pub account: String,
    pub made: i64,
    pub seen: i64,
    /// What it is, in words: `Firefox on Linux`.
    pub agent: String,
    pub address: String,
    pub ended: Option<i64>,
    pub ended_why: Option<String>,
}

const BROWSER: &str = "id, account, made, seen, agent, address, ended, ended_why";

impl Browser {
    fn read(row: &Row<'_>) -> Result<Self, rusqlite::Error> {
        Ok(Self {
            id: row.get(0)?,
            account: row.get(1)?,
            made: row.get(2)?,
            seen: row.get(3)?,
            agent: row.get(4)?,
            address: row.get(5)?,
            ended: row.get(6)?,
            ended_why: row.get(7)?,
        })
    }
}

fn account(row: &Row<'_>) -> Result<Account, rusqlite::Error> {
    Ok(Account {
        id: row.get(0)?,
        name: row.get(1)?,
        password: row.get(2)?,
    })
}

/// Browsers that may be signed in at once to one account; the oldest is ended beyond it.
const MAX_BROWSERS: i64 = 100;

impl HubStore {
    /// The first account, made with the instance. It has no password until its person sets one.
    ///
    /// # Errors
    /// When the store cannot write.
    pub async fn owner(&self) -> Result<Account, StoreError> {
        self.db
            .write(Durability::Disk, |t| {
                let found = t
                    .query_row_cached(
                        "select id, name, password from accounts order by created, id limit 1",
                        [],
                        account,
                    )
                    .optional()?;
                if let Some(found) = found {
                    return Ok(found);
                }
                let id = crate::ids::random_hex(8);
                t.execute_cached(
                    "insert into accounts (id, name, created) values (?1, 'you', ?2)",
                    params![id, crate::clock::now_ms()],
                )?;
                Ok(Account {
                    id,
                    name: "you".to_owned(),
                    password: None,
                })
            })
            .await
    }

    /// Another account, without a password until its person sets one. None when the name is taken.
    pub async fn add_account(&self, name: String) -> Result<Option<Account>, StoreError> {
        let id = crate::ids::random_hex(8);
        let now = crate::clock::now_ms();
        self.db
            .write(Durability::Disk, move |t| {
                let made = t.execute_cached(
                    "insert into accounts (id, name, created) values (?1, ?2, ?3)
                     on conflict do nothing",
                    params![id, name, now],
                )?;
                Ok((made == 1).then_some(Account {
                    id,
                    name,
                    password: None,
                }))
            })
            .await
    }

    /// All accounts, the first one first.
    ///
    /// # Errors
    /// When the store cannot read.
    pub async fn accounts(&self) -> Result<Vec<Account>, StoreError> {
        self.db
            .call(|c| {
                c.prepare_cached("select id, name, password from accounts order by created, id")?
                    .query_map([], account)?
                    .collect()
            })
            .await
    }

    pub async fn account(&self, id: String) -> Result<Option<Account>, StoreError> {
        self.db
            .call(move |c| {
                c.query_row_cached(
                    "select id, name, password from accounts where id = ?1",
                    [id],
                    account,
                )
                .optional()
            })
            .await
    }

    pub async fn account_named(&self, name: String) -> Result<Option<Account>, StoreError> {
        self.db
            .call(move |c| {
                c.query_row_cached(
                    "select id, name, password from accounts where name = ?1",
                    [name],
                    account,
                )
                .optional()
            })
            .await
    }

    /// Sets the name and the password's argon2 string of an account. False when another account
    /// has the name.
    pub async fn set_account(
        &self,
        id: String,
        name: String,
        password: String,
    ) -> Result<bool, StoreError> {
        self.db
            .write(Durability::Disk, move |t| {
                let taken: bool = t.query_row_cached(
                    "select exists (select 1 from accounts where name = ?1 and id <> ?2)",
                    [&name, &id],
                    |r| r.get(0),
                )?;
                if taken {
                    return Ok(false);
                }
                t.execute_cached(
                    "update accounts set name = ?1, password = ?2 where id = ?3",
                    [&name, &password, &id],
                )?;
                Ok(true)
            })
            .await
    }

    /// Keeps a one-time code until it is used or `expires`. Old ones go.
    pub async fn add_one_time(
        &self,
        code: &str,
        account: String,
        expires: i64,
    ) -> Result<(), StoreError> {
        let hash = hash(code);
        let now = crate::clock::now_ms();
        self.db
            .write(Durability::Disk, move |t| {
                t.execute_cached("delete from one_time where expires <= ?1", [now])?;
                t.execute_cached(
                    "insert into one_time (hash, account, expires) values (?1, ?2, ?3)",
                    params![hash, account, expires],
                )?;
                Ok(())
            })
            .await
    }

    /// Uses a one-time code up. Answers whose it was; it works once.
    pub async fn take_one_time(&self, code: &str) -> Result<Option<String>, StoreError> {
        let hash = hash(code);
        let now = crate::clock::now_ms();
        self.db
            .write(Durability::Disk, move |t| {
                let found: Option<(String, i64)> = t
                    .query_row_cached(
                        "delete from one_time where hash = ?1 returning account, expires",
                        [hash],
                        |r| Ok((r.get(0)?, r.get(1)?)),
                    )
                    .optional()?;
                Ok(found.filter(|f| f.1 > now).map(|f| f.0))
            })
            .await
    }

    /// Signs a browser in under the secret of its cookie.
    pub async fn add_browser(
        &self,
        secret: &str,
        account: String,
        agent: String,
        address: String,
    ) -> Result<String, StoreError> {
        let hash = hash(secret);
        let now = crate::clock::now_ms();
        self.db
            .write(Durability::Disk, move |t| {
                let id = crate::ids::random_hex(8);
                t.execute_cached(
                    "insert into browsers (id, hash, account, made, seen, agent, address)
                     values (?1, ?2, ?3, ?4, ?4, ?5, ?6)",
                    params![id, hash, account, now, agent, address],
                )?;
                t.execute_cached(
                    "update browsers set ended = ?1, ended_why = 'there were too many'
                     where account = ?2 and ended is null and id not in (
                       select id from browsers where account = ?2 and ended is null
                       order by seen desc, made desc limit ?3)",
                    params![now, account, MAX_BROWSERS],
                )?;
                t.execute_cached(
                    "delete from browsers where ended < ?1",
                    [now - 30 * 24 * 3_600_000],
                )?;
                Ok(id)
            })
            .await
    }

    /// The browser of a cookie's secret, signed in or ended.
    pub async fn browser(&self, secret: &str) -> Result<Option<Browser>, StoreError> {
        let hash = hash(secret);
        self.db
            .call(move |c| {
                c.query_row_cached(
                    &format!("select {BROWSER} from browsers where hash = ?1"),
                    [hash],
                    Browser::read,
                )
                .optional()
            })
            .await
    }

    /// Notes that a browser was here.
    pub async fn browser_seen(&self, id: String, now: i64) -> Result<(), StoreError> {
        self.db
            .write(Durability::Process, move |t| {
                t.execute_cached(
                    "update browsers set seen = ?1 where id = ?2",
                    params![now, id],
                )?;
                Ok(())
            })
            .await
    }

    /// Browsers signed in to an account, last seen first.
    pub async fn browsers(&self, account: String) -> Result<Vec<Browser>, StoreError> {
        self.db
            .call(move |c| {
                c.prepare_cached(&format!(
                    "select {BROWSER} from browsers where account = ?1 and ended is null
                     order by seen desc"
                ))?
                .query_map([account], Browser::read)?
                .collect()
            })
            .await
    }

    /// Ends one browser of an account, or with none all but `keep`. Answers the ids that ended.
    pub async fn end_browsers(
        &self,
        account: String,
        one: Option<String>,
        keep: Option<String>,
        why: String,
    ) -> Result<Vec<String>, StoreError> {
        let now = crate::clock::now_ms();
        self.db
            .write(Durability::Disk, move |t| {
                t.prepare_cached(
                    "update browsers set ended = ?1, ended_why = ?2
                     where account = ?3 and ended is null and (?4 is null or id = ?4)
                       and (?5 is null or id <> ?5) returning id",
                )?
                .query_map(params![now, why, account, one, keep], |r| r.get(0))?
                .collect()
            })
            .await
    }
}
