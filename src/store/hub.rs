//! The hub's tables: accounts, browsers, devices and their tokens, chats and their transcripts,
//! what waits to be said to a device, models, usage.
//!
//! Rows and their transactions only; what they mean is the business of `hub`. The file is 0600: it
//! holds the keys of model servers and the hashes of everything that signs somebody in.

pub mod accounts;
pub mod asks;
pub mod chats;
pub mod devices;
pub mod items;
pub mod models;
pub mod outputs;
pub mod rules;
pub mod tokens;
pub mod work;

use std::path::Path;

use crate::ids::Digest;
use crate::store::db::{Cached, Db, Durability, Migration, StoreError};

/// The hub's database. Cheap to clone.
#[derive(Clone, Debug)]
pub struct HubStore {
    db: Db,
}

impl HubStore {
    /// Opens or makes `hub.db` in a folder that exists.
    ///
    /// # Errors
    /// When the file cannot be made, opened or brought forward.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        let path = folder.join("hub.db");
        Ok(Self {
            db: Db::open(&path, TABLES)?,
        })
    }

    /// A number that no earlier start of this hub has given out: event ids count up from it.
    ///
    /// # Errors
    /// When the store cannot write.
    pub async fn event_base(&self) -> Result<u64, StoreError> {
        self.db
            .write(Durability::Disk, |t| {
                let last: u64 = meta(t, "event_base")?
                    .and_then(|v| v.parse().ok())
                    .unwrap_or(0);
                // Room for four thousand million events a start; a page can still count them exactly.
                let base = last + (1 << 32);
                set_meta(t, "event_base", &base.to_string())?;
                Ok(base)
            })
            .await
    }

    /// This instance's own id, made at the first start.
    ///
    /// # Errors
    /// When the store cannot write.
    pub async fn instance(&self) -> Result<String, StoreError> {
        self.db
            .write(Durability::Disk, |t| match meta(t, "instance")? {
                Some(id) => Ok(id),
                None => {
                    let id = crate::ids::random_hex(16);
                    set_meta(t, "instance", &id)?;
                    Ok(id)
                }
            })
            .await
    }
}

/// What is stored of a secret: its hash. Secrets are 256 random bits, or one-time codes that live
/// ten minutes, so no slow hash is needed.
pub(crate) fn hash(secret: &str) -> String {
    Digest::of(secret.as_bytes()).as_str().to_owned()
}

pub(crate) fn meta(c: &rusqlite::Connection, key: &str) -> Result<Option<String>, rusqlite::Error> {
    use rusqlite::OptionalExtension as _;
    c.query_row_cached("select value from meta where key = ?1", [key], |r| r.get(0))
        .optional()
}

pub(crate) fn set_meta(
    c: &rusqlite::Connection,
    key: &str,
    value: &str,
) -> Result<(), rusqlite::Error> {
    c.execute_cached(
        "insert into meta (key, value) values (?1, ?2)
         on conflict (key) do update set value = excluded.value",
        [key, value],
    )?;
    Ok(())
}

/// All steps, oldest first. A step that shipped never changes.
const TABLES: &[Migration] = &[(1, FIRST), (2, HEADS), (3, ASKED), (4, RULES)];

/// The newest change of a device that was taken up (spec/acp.md Y2), of its present epoch.
const HEADS: &str = "alter table devices add column head integer";

/// What a key was used for, as the hash of what was asked with it: the same key for something else
/// is refused. And models by account: two people may name theirs alike.
const ASKED: &str = "
alter table chats add column asked text;
alter table queue add column asked text;
alter table work add column asked text;
create table models_of (
  id text not null, account text not null, name text not null, url text not null, key text,
  model text not null, is_default integer not null default 0, context integer, vision integer,
  tools integer, efforts text not null default '[]', tested integer, said text,
  primary key (account, id)
) strict;
insert into models_of (id, account, name, url, key, model, is_default, context, vision, tools,
  efforts, tested, said)
  select id, account, name, url, key, model, is_default, context, vision, tools, efforts, tested,
    said from models;
drop table models;
alter table models_of rename to models;
";

/// What computers allow always, as they last told it.
const RULES: &str = "
create table rules (
  device text not null references devices (id), id text not null, place integer not null,
  body text not null, primary key (device, id)
) strict, without rowid;
alter table devices add column rules_total integer;
alter table devices add column rules_heard integer;
";

const FIRST: &str = "
create table meta (key text primary key, value text not null) strict;

create table accounts (
  id text primary key, name text not null unique, password text, created integer not null
) strict;

create table browsers (
  id text primary key, hash text not null unique, account text not null references accounts (id),
  made integer not null, seen integer not null, agent text not null, address text not null,
  ended integer, ended_why text
) strict;

create table one_time (
  hash text primary key, account text not null references accounts (id), expires integer not null
) strict;

create table devices (
  id text primary key, account text not null references accounts (id), name text not null,
  os text not null, arch text not null, version text not null, address text not null,
  paired integer not null, since integer not null, heard integer, words text,
  revoked integer, revoked_why text, epoch text, limits text not null default '{}', home text,
  renamed integer not null default 0
) strict;

create table tokens (
  hash text primary key, device text not null references devices (id), scopes text not null,
  made integer not null, used integer not null, state text not null
) strict;
create index tokens_device on tokens (device);

create table chats (
  id text primary key, account text not null, device text not null, session text not null,
  epoch text not null, key text, cwd text not null, title text, mode text not null,
  wanted text, lowered text, modes text not null default '[]', model text not null, level text,
  origin text not null, created integer not null, updated integer not null,
  turn integer not null default 0, running integer not null default 0, progress text,
  seen integer not null default 0, head integer not null default 0,
  archived integer not null default 0, closed text, draft text not null default '',
  unique (device, epoch, session)
) strict;
create index chats_updated on chats (account, updated);
create unique index chats_key on chats (device, key) where key is not null;

create table items (
  chat text not null references chats (id) on delete cascade, seq integer not null,
  turn integer not null, time integer not null, kind text not null, call text,
  at integer not null, open integer not null, data text not null, text text not null default '',
  primary key (chat, seq)
) strict;
create index items_call on items (chat, call) where call is not null;
create index items_kind on items (chat, kind, seq);

create table tails (
  chat text not null, seq integer not null, start integer not null, text text not null,
  primary key (chat, seq, start)
) strict, without rowid;

create table queue (
  chat text not null references chats (id) on delete cascade, key text not null,
  place integer not null, text text not null, parts text not null, at text not null,
  held integer not null default 0, made integer not null, primary key (chat, key)
) strict;

create table work (
  id integer primary key autoincrement, device text not null, chat text, kind text not null,
  key text not null, params text not null, state text not null, made integer not null,
  note text, unique (device, kind, key)
) strict;
create index work_open on work (device, state);

create table asks (
  ask text primary key, chat text not null references chats (id) on delete cascade,
  device text not null, seq integer not null, call text, body text not null,
  state text not null, made integer not null, expires integer, outcome text, scope text,
  note text, by text, at integer, late integer not null default 0
) strict;
create index asks_state on asks (state, made);
create index asks_chat on asks (chat, state);

create table models (
  id text primary key, account text not null, name text not null, url text not null, key text,
  model text not null, is_default integer not null default 0, context integer, vision integer,
  tools integer, efforts text not null default '[]', tested integer, said text
) strict;

create table usage (
  month text not null, account text not null, model text not null,
  requests integer not null default 0, input integer not null default 0,
  cached integer not null default 0, output integer not null default 0,
  primary key (month, account, model)
) strict;
";
