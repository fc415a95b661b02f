//! The command line: clap types, one file a subcommand, exit codes.

use std::process::ExitCode;

/// Parses the arguments, runs the command and says how it ended.
pub fn main() -> ExitCode {
    ExitCode::SUCCESS
}
