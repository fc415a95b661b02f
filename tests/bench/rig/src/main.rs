//! The parts of the benchmarks that must be quick themselves. `tests/bench/run` starts them.

use std::process::ExitCode;

mod floor;
mod http;
mod model;
mod verdicts;
mod write;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match *words {
        ["model", log] => model::run(log),
        ["floor", address] => floor::run(address),
        ["write", bytes] => write::run(bytes),
        ["verdicts", commands, folder] => verdicts::run(commands, folder),
        _ => {
            say(
                "lembas-bench model LOG | floor HOST:PORT | write BYTES | verdicts COMMANDS FOLDER",
            );
            return ExitCode::from(64);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

fn say(words: &str) {
    use std::io::Write as _;
    // Nobody is there to be told that nobody listens.
    let _ = writeln!(std::io::stderr(), "lembas-bench: {words}");
}

/// Nanoseconds of the clock that `time.monotonic_ns()` of Python reads too.
fn now() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let (seconds, nanos) = (time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs());
    seconds * 1_000_000_000 + nanos
}
