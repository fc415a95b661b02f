//! Running programs, and only with a `Grant`: exactly the bytes, folder, environment and box that
//! were judged.
//!
//! A command gets a session and process group of its own; when its call ends, everything it
//! started has ended too. Output is read into bounded memory with the whole in a file. Not here:
//! whether it may run (`permission`), what the model is told (`tools::bash`).

mod command;
mod fence;
mod kill;
mod output;

pub mod facts;
pub mod monitor;
pub mod run;
