//! Device tokens: given at pairing, replaced every 30 days, dead after 180 days unused.
//!
//! Only hashes are kept. A token is `live`, its `successor` (at most one, unconfirmed until it was
//! used), `replaced` by a confirmed successor, or `revoked`.

use rusqlite::{OptionalExtension as _, params};

use super::devices::{NewDevice, revoke};
use super::{HubStore, hash};
use crate::store::db::{Cached, Durability, StoreError};

/// A token that was not used for so long is dead.
const DEAD_AFTER_MS: i64 = 180 * 24 * 3_600_000;
/// A token that is older gets a successor over the live link.
const REPLACE_AFTER_MS: i64 = 30 * 24 * 3_600_000;

/// What a presented token is worth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenUse {
    Good {
        device: String,
        account: String,
        scopes: Vec<String>,
        /// It is time for a successor.
        old: bool,
    },
    /// Not good; when it is known since when and why, that is said.
    Refused {
        reason: &'static str,
        text: String,
        since: Option<i64>,
    },
    /// A replaced token came back: someone has a copy. Everything of the device is revoked now.
    Stolen { device: String, account: String },
}

/// Why access ended when the computer gave it up itself.
pub const UNLINKED: &str = "unlinked on that computer";

impl HubStore {
    /// Pairs: the device and its first token in one step. False when the id is another account's.
    pub async fn pair(
        &self,
        new: NewDevice,
        token: &str,
        scopes: Vec<String>,
    ) -> Result<bool, StoreError> {
        let hash = hash(token);
        let now = crate::clock::now_ms();
        self.db
            .write(Durability::Disk, move |t| {
                if !Self::put_device(t, &new, now)? {
                    return Ok(false);
                }
                t.execute_cached(
                    "update tokens set state = 'revoked' where device = ?1",
                    [&new.id],
                )?;
                t.execute_cached(
                    "insert into tokens (hash, device, scopes, made, used, state)
                     values (?1, ?2, ?3, ?4, ?4, 'live')",
                    params![hash, new.id, scopes.join(" "), now],
                )?;
                Ok(true)
            })
            .await
    }

    /// Judges a presented token and notes its use.
    pub async fn use_token(&self, token: &str) -> Result<TokenUse, StoreError> {
        let hash = hash(token);
        let now = crate::clock::now_ms();
        self.db
            .write(Durability::Process, move |t| judge(t, &hash, now))
            .await
    }

    /// Whether a token is good, without counting it as used: for requests beside the link.
    pub async fn token_good(
        &self,
        token: &str,
    ) -> Result<Option<(String, String, Vec<String>)>, StoreError> {
        let hash = hash(token);
        self.db
            .call(move |c| {
                c.query_row_cached(
                    "select d.id, d.account, t.scopes from tokens t join devices d on d.id = t.device
                     where t.hash = ?1 and t.state in ('live', 'successor') and d.revoked is null",
                    [hash],
                    |r| {
                        let scopes: String = r.get(2)?;
                        Ok((r.get(0)?, r.get(1)?, words(&scopes)))
                    },
                )
                .optional()
            })
            .await
    }

    /// Stores a successor before it is said to the device. An unconfirmed one before it goes:
    /// the device did not take it, or it would have used it.
    pub async fn add_successor(&self, device: String, token: &str) -> Result<(), StoreError> {
        let hash = hash(token);
        let now = crate::clock::now_ms();
        self.db
            .write(Durability::Disk, move |t| {
                t.execute_cached(
                    "delete from tokens where device = ?1 and state = 'successor'",
                    [&device],
                )?;
                t.execute_cached(
                    "insert into tokens (hash, device, scopes, made, used, state)
                     select ?1, device, scopes, ?3, ?3, 'successor' from tokens
                     where device = ?2 and state = 'live' limit 1",
                    params![hash, device, now],
                )?;
                Ok(())
            })
            .await
    }

    /// Revokes by token (RFC 7009). Answers the device it was of, where that ended its pairing: a
    /// token that is dead already takes nothing with it, least of all the pairing after its own.
    pub async fn revoke_token(&self, token: &str) -> Result<Option<String>, StoreError> {
        let hash = hash(token);
        let now = crate::clock::now_ms();
        self.db
            .write(Durability::Disk, move |t| {
                let device: Option<String> = t
                    .query_row_cached(
                        "select device from tokens
                         where hash = ?1 and state in ('live', 'successor')",
                        [hash],
                        |r| r.get(0),
                    )
                    .optional()?;
                if let Some(device) = &device {
                    revoke(t, device, UNLINKED, now)?;
                }
                Ok(device)
            })
            .await
    }
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

struct Found {
    device: String,
    scopes: String,
    made: i64,
    used: i64,
    state: String,
    account: String,
    revoked: Option<i64>,
    why: Option<String>,
}

fn judge(t: &rusqlite::Connection, hash: &str, now: i64) -> Result<TokenUse, rusqlite::Error> {
    let found = t
        .query_row_cached(
            "select t.device, t.scopes, t.made, t.used, t.state, d.account, d.revoked,
               d.revoked_why from tokens t join devices d on d.id = t.device where t.hash = ?1",
            [hash],
            |r| {
                Ok(Found {
                    device: r.get(0)?,
                    scopes: r.get(1)?,
                    made: r.get(2)?,
                    used: r.get(3)?,
                    state: r.get(4)?,
                    account: r.get(5)?,
                    revoked: r.get(6)?,
                    why: r.get(7)?,
                })
            },
        )
        .optional()?;
    let Some(f) = found else {
        return Ok(TokenUse::Refused {
            reason: "unknown",
            text: "This instance does not know this computer's token: link it anew.".to_owned(),
            since: None,
        });
    };
    if f.revoked.is_some() || f.state == "revoked" {
        let why = f.why.map(|w| format!(" ({w})")).unwrap_or_default();
        return Ok(TokenUse::Refused {
            reason: "revoked",
            text: format!("Access was taken back{why}. Nothing on this computer was deleted."),
            since: f.revoked,
        });
    }
    if f.state == "replaced" {
        revoke(
            t,
            &f.device,
            "its old token was used again: someone may have a copy",
            now,
        )?;
        return Ok(TokenUse::Stolen {
            device: f.device,
            account: f.account,
        });
    }
    if now - f.used > DEAD_AFTER_MS {
        revoke(t, &f.device, "not used for 180 days", now)?;
        return Ok(TokenUse::Refused {
            reason: "expired",
            text: "This computer did not link for 180 days.".to_owned(),
            since: Some(f.used + DEAD_AFTER_MS),
        });
    }
    if f.state == "successor" {
        t.execute_cached(
            "update tokens set state = 'replaced' where device = ?1 and state = 'live'",
            [&f.device],
        )?;
        t.execute_cached("update tokens set state = 'live' where hash = ?1", [hash])?;
    }
    t.execute_cached(
        "update tokens set used = ?2 where hash = ?1",
        params![hash, now],
    )?;
    Ok(TokenUse::Good {
        device: f.device,
        account: f.account,
        scopes: words(&f.scopes),
        old: now - f.made > REPLACE_AFTER_MS,
    })
}
