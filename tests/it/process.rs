//! The gates of the spine with real processes: `lembas hub`, `lembas daemon`, `lembas up` and the
//! commands, each in a home of its own, over real sockets, with real boxes and real signals.
//!
//! The model is a script of the test's. What a page does is done over the hub's HTTP, what a person
//! types is typed. Every process is ended by its number, whatever becomes of the test.

mod asks;
mod certificates;
mod crossing;
mod home;
mod instance;
mod killed;
mod limits;
mod memory;
mod page;
mod private;
mod refusals;
mod tree;
mod twice;
mod typed;
mod way;
mod world;
