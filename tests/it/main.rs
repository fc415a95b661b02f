//! One binary for all integration tests: real sockets, processes and files, hermetic folders.

mod acp;
mod cli;
mod conformance;
mod deps;
mod exec;
mod files;
mod hub;
mod layers;
mod schema;
mod spec;
