//! One binary for all integration tests: real sockets, processes and files, hermetic folders.

mod exec;
mod files;
