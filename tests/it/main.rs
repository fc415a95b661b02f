//! Scenarios.

mod exec;
