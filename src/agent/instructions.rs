//! Instruction files: what the project's folders say about work in them (loop.json
//! `context.instructions`).
//!
//! They are read like any file, through the permission engine and the fs door, and only where no
//! question is needed. What they say are the person's wishes; they cannot allow anything. Not here:
//! how they stand in the prompt (`spec::prompts`), how a change is told (`context::texts`).

use std::path::{Path, PathBuf};

use crate::agent::gate::Gate;
use crate::agent::{limits, words};
use crate::fs;
use crate::text::cut;

/// A longer file is no instruction file and is left out.
const MAX_BYTES: u64 = 1024 * 1024;

/// The files that hold now: path relative to the session's folder and text, outermost first.
/// Blocking.
pub fn gather(gate: &Gate) -> Vec<(String, String)> {
    let numbers = &words::numbers().context.instructions;
    let boundary = limits::boundary(&gate.config.now(), &gate.facts);
    let mut left = numbers.total_chars;
    let mut found = Vec::new();
    let folders = gate.facts.cwd.ancestors().enumerate();
    let inside = folders.take_while(|(_, folder)| folder.starts_with(&boundary));
    // From the nearest on: where they are too many or too long, the farthest are left out.
    for (up, folder) in inside {
        if found.len() >= numbers.max_files || left == 0 {
            break;
        }
        let Some((name, text)) = in_folder(gate, folder, &numbers.names) else {
            continue;
        };
        let path = format!("{}{name}", "../".repeat(up));
        let text = shortened(&text, &path, numbers.max_chars.min(left));
        left = left.saturating_sub(text.chars().count());
        found.push((path, text));
    }
    found.reverse();
    found
}

/// The first of the names that is there, as text; one that may not be read counts as none.
fn in_folder<'a>(gate: &Gate, folder: &Path, names: &'a [String]) -> Option<(&'a str, String)> {
    let name = names
        .iter()
        .find(|name| folder.join(name).symlink_metadata().is_ok())?;
    let path: PathBuf = fs::open::real(&folder.join(name)).ok()?;
    if path.metadata().ok()?.len() > MAX_BYTES {
        tracing::info!(path = %path.display(), "too long for an instruction file");
        return None;
    }
    let grant = gate.may_read(&path)?;
    let content = fs::read::read(&grant, &path).ok()?;
    let text = content.text(&path).ok()?.text;
    (!text.trim().is_empty()).then_some((name, text))
}

fn shortened(text: &str, path: &str, most: usize) -> String {
    let text = text.trim();
    let count = text.chars().count();
    if count <= most {
        return text.to_owned();
    }
    let end = text
        .char_indices()
        .nth(most)
        .map_or(text.len(), |(at, _)| at);
    let more = (count - most).to_string();
    let texts = &words::numbers().context.instructions.texts;
    let marker = texts.say("cut", &[("count", &more), ("path", path)]);
    format!("{}\n{marker}", cut::prefix(text, end))
}
