//! What is kept: SQLite (WAL) on its own thread, migrations, and the tables of each side.
//!
//! Ground for the device and the hub; neither side reads the other's tables. Not here: what the
//! rows mean beyond their shape, which is the business of `session`, `remote` and `hub`.

pub mod db;
pub mod device;
pub mod hub;
pub mod item;
pub mod journal;
