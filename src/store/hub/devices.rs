//! Linked computers, as this instance knows them.

use rusqlite::{OptionalExtension as _, Row, params};
use serde_json::Value;

use super::HubStore;
use crate::store::db::{Cached, Durability, StoreError};

/// One linked computer. Times are milliseconds since the epoch.
#[derive(Clone, Debug, PartialEq)]
pub struct Device {
    pub id: String,
    pub account: String,
    pub name: String,
    pub os: String,
    pub arch: String,
    pub version: String,
    /// Where it dialled from last.
    pub address: String,
    pub paired: i64,
    /// When it came or went last.
    pub since: i64,
    /// When it was last heard; none: never linked yet.
    pub heard: Option<i64>,
    /// What was last heard, in words: `running cargo test`.
    pub words: Option<String>,
    pub revoked: Option<i64>,
    pub revoked_why: Option<String>,
    pub epoch: Option<String>,
    /// As its last handshake said them.
    pub limits: Value,
    pub home: Option<String>,
    /// The newest change of its sessions that was taken up, of this epoch.
    pub head: Option<i64>,
}

const COLUMNS: &str = "id, account, name, os, arch, version, address, paired, since, heard, words,
    revoked, revoked_why, epoch, limits, home, head";

impl Device {
    fn read(row: &Row<'_>) -> Result<Self, rusqlite::Error> {
        let limits: String = row.get(14)?;
        Ok(Self {
            id: row.get(0)?,
            account: row.get(1)?,
            name: row.get(2)?,
            os: row.get(3)?,
            arch: row.get(4)?,
            version: row.get(5)?,
            address: row.get(6)?,
            paired: row.get(7)?,
            since: row.get(8)?,
            heard: row.get(9)?,
            words: row.get(10)?,
            revoked: row.get(11)?,
            revoked_why: row.get(12)?,
            epoch: row.get(13)?,
            limits: serde_json::from_str(&limits).unwrap_or_default(),
            home: row.get(15)?,
            head: row.get(16)?,
        })
    }
}

/// What a computer says of itself when it is paired.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NewDevice {
    pub id: String,
    pub account: String,
    pub name: String,
    pub os: String,
    pub arch: String,
    pub version: String,
    pub address: String,
    pub limits: Value,
}

/// What a computer says of itself in the handshake.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Handshake {
    pub name: Option<String>,
    pub os: Option<String>,
    pub arch: Option<String>,
    pub version: Option<String>,
    pub address: String,
    pub epoch: String,
    pub limits: Value,
    pub home: Option<String>,
}

impl HubStore {
    /// Adds a paired computer; one that was known to the account comes back with its chats.
    /// False when the id belongs to another account.
    pub(super) fn put_device(
        t: &rusqlite::Connection,
        new: &NewDevice,
        now: i64,
    ) -> Result<bool, rusqlite::Error> {
        let changed = t.execute_cached(
            "insert into devices (id, account, name, os, arch, version, address, paired, since,
               limits) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8, ?9)
             on conflict (id) do update set
               name = case when renamed then name else excluded.name end, os = excluded.os,
               arch = excluded.arch, version = excluded.version, address = excluded.address,
               paired = excluded.paired, revoked = null, revoked_why = null,
               limits = excluded.limits
             where account = excluded.account",
            params![
                new.id,
                new.account,
                new.name,
                new.os,
                new.arch,
                new.version,
                new.address,
                now,
                new.limits.to_string()
            ],
        )?;
        Ok(changed == 1)
    }

    pub async fn device(&self, id: String) -> Result<Option<Device>, StoreError> {
        self.db.call(move |c| one(c, &id)).await
    }

    /// The computers of an account by name; revoked ones too, their chats stay readable.
    pub async fn devices(&self, account: String) -> Result<Vec<Device>, StoreError> {
        self.db
            .call(move |c| {
                c.prepare_cached(&format!(
                    "select {COLUMNS} from devices where account = ?1 order by name, id"
                ))?
                .query_map([account], Device::read)?
                .collect()
            })
            .await
    }

    pub async fn rename_device(&self, id: String, name: String) -> Result<(), StoreError> {
        self.db
            .write(Durability::Disk, move |t| {
                t.execute_cached(
                    "update devices set name = ?1, renamed = 1 where id = ?2",
                    [name, id],
                )?;
                Ok(())
            })
            .await
    }

    /// Takes access back: the device and each of its tokens, in one step.
    pub async fn revoke_device(&self, id: String, why: String) -> Result<bool, StoreError> {
        let now = crate::clock::now_ms();
        self.db
            .write(Durability::Disk, move |t| revoke(t, &id, &why, now))
            .await
    }

    /// Forgets a revoked computer with all its chats.
    pub async fn forget_device(&self, id: String) -> Result<bool, StoreError> {
        self.db
            .write(Durability::Disk, move |t| {
                let gone: bool = t.query_row_cached(
                    "select exists (select 1 from devices where id = ?1 and revoked is not null)",
                    [&id],
                    |r| r.get(0),
                )?;
                if gone {
                    t.execute_cached(
                        "delete from tails where chat in (select id from chats where device = ?1)",
                        [&id],
                    )?;
                    for table in ["chats", "work", "tokens", "rules"] {
                        t.execute_cached(&format!("delete from {table} where device = ?1"), [&id])?;
                    }
                    t.execute_cached("delete from devices where id = ?1", [&id])?;
                }
                Ok(gone)
            })
            .await
    }

    /// The link is up: what the handshake said.
    pub async fn device_linked(&self, id: String, said: Handshake) -> Result<(), StoreError> {
        let now = crate::clock::now_ms();
        self.db
            .write(Durability::Process, move |t| {
                t.execute_cached(
                    "update devices set name = case when renamed then name
                         else coalesce(?2, name) end,
                       os = coalesce(?3, os), arch = coalesce(?4, arch),
                       version = coalesce(?5, version), address = ?6, limits = ?8,
                       head = case when epoch = ?7 then head else null end, epoch = ?7,
                       home = coalesce(?9, home), since = ?10, heard = ?10
                     where id = ?1",
                    params![
                        id,
                        said.name,
                        said.os,
                        said.arch,
                        said.version,
                        said.address,
                        said.epoch,
                        said.limits.to_string(),
                        said.home,
                        now
                    ],
                )?;
                Ok(())
            })
            .await
    }

    /// Everything up to a change is taken up; of another epoch than the present it says nothing.
    pub async fn device_head(
        &self,
        id: String,
        epoch: String,
        head: i64,
    ) -> Result<(), StoreError> {
        self.db
            .write(Durability::Process, move |t| {
                t.execute_cached(
                    "update devices set head = ?3 where id = ?1 and epoch = ?2",
                    params![id, epoch, head],
                )?;
                Ok(())
            })
            .await
    }

    /// The link is gone: when it was heard last, and what it said then.
    pub async fn device_left(
        &self,
        id: String,
        heard: i64,
        words: Option<String>,
    ) -> Result<(), StoreError> {
        let now = crate::clock::now_ms();
        self.db
            .write(Durability::Process, move |t| {
                t.execute_cached(
                    "update devices set since = ?2, heard = max(coalesce(heard, 0), ?3),
                       words = coalesce(?4, words) where id = ?1",
                    params![id, now, heard, words],
                )?;
                Ok(())
            })
            .await
    }

    /// What waits or runs on a device: chats with a running turn, open asks.
    pub async fn device_counts(&self, id: String) -> Result<(u64, u64), StoreError> {
        self.db
            .call(move |c| {
                c.query_row_cached(
                    "select (select count(*) from chats where device = ?1 and running = 1
                               and closed is null),
                            (select count(*) from asks where device = ?1 and state <> 'settled')",
                    [id],
                    |r| Ok((r.get(0)?, r.get(1)?)),
                )
            })
            .await
    }
}

fn one(c: &rusqlite::Connection, id: &str) -> Result<Option<Device>, rusqlite::Error> {
    c.query_row_cached(
        &format!("select {COLUMNS} from devices where id = ?1"),
        [id],
        Device::read,
    )
    .optional()
}

/// Revokes inside a transaction; also what a token used twice comes to.
pub(super) fn revoke(
    t: &rusqlite::Connection,
    id: &str,
    why: &str,
    now: i64,
) -> Result<bool, rusqlite::Error> {
    let done = t.execute_cached(
        "update devices set revoked = ?2, revoked_why = ?3 where id = ?1 and revoked is null",
        params![id, now, why],
    )?;
    t.execute_cached(
        "update tokens set state = 'revoked' where device = ?1",
        [id],
    )?;
    Ok(done == 1)
}
