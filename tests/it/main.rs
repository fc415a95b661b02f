//! One binary for all integration tests: real sockets, processes and files, hermetic folders.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    unreachable_pub,
    reason = "a test that cannot go on fails, and so do the helpers of tests"
)]

mod acp;
mod cli;
mod conformance;
mod deps;
mod exec;
mod files;
mod hub;
mod layers;
mod link;
mod monitor;
mod oracle;
mod own;
mod process;
mod pty;
pub(crate) mod refusals;
mod schema;
mod spec;
mod texts;
mod tied;
mod turn;
mod up;
