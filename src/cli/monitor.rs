//! `lembas monitor`: a watch command, run as a schedule would, and its hash.
//!
//! stdout holds the hash line alone, so that `$(lembas monitor …)` works; the rest is stderr.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use super::args::Monitor;
use super::failure::{Exit, Failure};
use super::out::{Out, put};
use super::{Ending, ask};
use crate::config::{Live, Mode, Paths};
use crate::text::words::quoted;
use crate::text::{escape, words};

/// The answer of `monitor` on the control socket.
#[derive(Debug, Deserialize)]
struct Seen {
    hash: String,
    exit: i64,
    bytes: u64,
    excerpt: String,
    truncated: bool,
    duration_ms: u64,
    mode: Mode,
}

pub(super) fn run(out: Out, paths: &Paths, args: &Monitor) -> Ending {
    if line(&args.command).trim().is_empty() {
        return Err(Failure::new(
            Exit::Usage,
            "usage",
            "the watch command is empty",
            "lembas monitor -- git ls-remote origin main",
        ));
    }
    let cwd = super::limits::existing_folder(
        paths,
        &format!("lembas monitor --cwd FOLDER -- {}", line(&args.command)),
        args.cwd.as_deref().unwrap_or(std::path::Path::new(".")),
    )?;
    let mode = match args.mode.as_deref() {
        None => None,
        Some("manual") => Some(Mode::Manual),
        Some("edit") => Some(Mode::Edit),
        Some("auto") => Some(Mode::Auto),
        Some(other) => {
            return Err(Failure::new(
                Exit::Usage,
                "usage",
                format!("a watch command cannot run in the mode {other}"),
                format!("lembas monitor --mode edit -- {}", line(&args.command)),
            )
            .why("it can be manual, edit or auto"));
        }
    };
    let params = json!({
        "cwd": cwd,
        "command": line(&args.command),
        "mode": mode,
        "timeout": args.timeout,
    });
    let seen: Value = match ask::if_running(paths, "monitor", &params)? {
        Some(seen) => seen,
        None => alone(paths, params)?,
    };
    if out.json {
        let mut object = seen;
        put(&mut object, "ok", true);
        put(&mut object, "cwd", cwd);
        out.object(&object);
        return Ok(Exit::Well);
    }
    let seen: Seen = serde_json::from_value(seen).map_err(anyhow::Error::from)?;
    out.line(&seen.hash);
    out.hint(format!(
        "exit {} · {} · {} · mode {}",
        seen.exit,
        words::bytes(seen.bytes),
        words::duration(Duration::from_millis(seen.duration_ms)),
        seen.mode.title(),
    ));
    if !seen.excerpt.is_empty() {
        out.hint(format!("\n{}", escape::visible(seen.excerpt.trim_end())));
        if seen.truncated {
            out.hint("(its middle is left out)");
        }
    }
    Ok(Exit::Well)
}

/// Runs it by itself: no daemon runs here.
fn alone(paths: &Paths, params: Value) -> Result<Value, Failure> {
    let runtime = super::daemon::runtime()?;
    let seen = runtime.block_on(async {
        let live = Live::new(super::limits::read(paths)?);
        let lock = super::daemon::lock(paths, "command").await?;
        let seen = crate::daemon::monitor::alone(paths, &live, lock, params).await?;
        seen.map_err(|error| ask::failure(error.into()))
    });
    runtime.shutdown_timeout(Duration::from_secs(1));
    seen
}

/// The words as one shell line. A single word is taken as it is: it may be a whole line.
fn line(command: &[String]) -> String {
    match command {
        [only] => only.clone(),
        many => many
            .iter()
            .map(|word| quoted(word))
            .collect::<Vec<_>>()
            .join(" "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_one_line() {
        let words = |all: &[&str]| line(&all.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(
            words(&["git", "ls-remote", "origin"]),
            "git ls-remote origin"
        );
        assert_eq!(words(&["echo", "a b", "$x"]), "echo 'a b' '$x'");
        assert_eq!(words(&["df -h | head -3"]), "df -h | head -3");
    }
}
