//! lembas: one binary that links a computer to an instance and runs a coding agent on it.
//!
//! A prompt travels down the list of modules by calls; what happens travels back only through
//! channels that were handed in when a thing was made. An arrow (`use crate::…`) may only point
//! down the list; `tests/it/layers.rs` reads every import and fails on one that points up.
//! `docs/architecture.md` is the map.

pub mod cli;

pub mod daemon;
pub mod hub;

pub mod remote;

pub mod acp;
pub mod link;
pub mod rpc;

pub mod agent;
pub mod session;
pub mod tools;

pub mod permission;

pub mod exec;
pub mod fs;

pub mod context;
pub mod model;

pub mod store;

pub mod edit;
pub mod plan;
pub mod shell;
pub mod spec;

pub mod clock;
pub mod config;
pub mod ids;
pub mod rt;
pub mod secret;
pub mod text;

#[cfg(any(test, feature = "testing"))]
pub mod testing;
