//! Integration tests, one binary. Each module says what it shows.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on fails, helpers of tests too"
)]

mod conformance;
mod deps;
mod layers;
mod schema;
mod spec;
