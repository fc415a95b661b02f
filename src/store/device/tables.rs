//! The device's tables, as steps from one version to the next. A step that shipped never changes.

use crate::store::db::Migration;

/// All steps, oldest first.
pub const MIGRATIONS: &[Migration] = &[(1, FIRST), (2, REFUSED), (3, USED)];

/// When a rule last let something through.
const USED: &str = "alter table rules add column used integer;";

const FIRST: &str = "
create table state (
    name  text primary key,
    value text not null
) strict, without rowid;

-- One row a session. What its items say too (title, mode, head, turn …) is kept here for lists
-- and is written in the transaction of the item.
create table sessions (
    id        text primary key,
    origin    text not null,
    shared    integer not null default 0,
    cwd       text not null,
    also      text not null,
    model     text not null,
    mode      text not null,
    level     text,
    title     text,
    made      integer not null,
    updated   integer not null,
    said      text,
    context   text,
    agents    text,
    scheduled text,
    -- The system prompt and the tools, as first sent: resent byte for byte.
    prompt    text,
    -- What the model was last told of what can change (mode, date).
    told      text,
    -- Numbers up to and with this one may have been given out.
    reserved  integer not null default 0,
    head      integer not null default 0,
    turn      integer not null default 0,
    running   integer not null default 0,
    calls     integer not null default 0,
    bytes     integer not null default 0
) strict;
create index sessions_updated on sessions (updated desc, id desc);
create index sessions_running on sessions (running) where running = 1;

create table items (
    session text not null references sessions on delete cascade,
    seq     integer not null,
    turn    integer not null,
    time    integer not null,
    kind    text not null,
    body    text not null,
    -- The text of a streamed item, which grows while it is open.
    text    text,
    primary key (session, seq)
) strict;
create index items_turn on items (session, turn, seq);

create table asks (
    ask     text primary key,
    session text not null references sessions on delete cascade,
    seq     integer not null,
    made    integer not null,
    body    text not null,
    -- What is left of its wait; null: no deadline.
    left_ms integer,
    heard   integer not null default 0,
    settled text,
    scope   text,
    by      text,
    note    text,
    at      integer
) strict;
create index asks_session on asks (session, seq);
create index asks_open on asks (session) where settled is null;

create table rules (
    id      text primary key,
    origin  text not null,
    -- Null: for every session of this origin.
    session text references sessions on delete cascade,
    made    integer not null,
    by      text not null,
    data    text not null
) strict;
create index rules_origin on rules (origin, session);

create table keys (
    scope   text not null,
    key     text not null,
    digest  text not null,
    outcome text not null,
    until   integer not null,
    primary key (scope, key)
) strict, without rowid;

create table runs (
    schedule text not null,
    run      text not null,
    session  text not null references sessions on delete cascade,
    turn     integer not null,
    outcome  text,
    primary key (schedule, run)
) strict, without rowid;

create table audit (
    id      integer primary key autoincrement,
    time    integer not null,
    session text,
    origin  text not null,
    who     text not null,
    what    text not null,
    verdict text not null,
    digest  text
) strict;
create trigger audit_fixed before update on audit begin
    select raise(abort, 'the audit log is append-only');
end;
create trigger audit_kept before delete on audit
when old.time > (unixepoch() - 31536000) * 1000 begin
    select raise(abort, 'the audit log is kept for a year');
end;
";

const REFUSED: &str = "
create table refused (
    number  integer primary key autoincrement,
    origin  text not null,
    command text not null,
    cwd     text not null,
    made    integer not null,
    body    text not null,
    -- The rule that a yes makes; null: its like cannot be remembered.
    rule    text,
    unique (origin, command, cwd)
) strict;
";
