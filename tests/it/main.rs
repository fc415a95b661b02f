//! The one binary of integration tests.

mod link;
