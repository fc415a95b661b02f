//! One binary for all integration tests: real sockets, processes and files, hermetic folders.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on fails, helpers of tests too"
)]

mod turn;
