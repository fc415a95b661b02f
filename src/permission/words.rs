//! The engine's sentences: why it asks, why it refuses, what a yes would cover.

use super::rule::Pattern;
use super::{BoxKind, Strength};
use crate::config::Mode;
use crate::spec::permission::permission;

/// A question of the agent where nobody is.
pub(super) const NOBODY_TO_ASK: &str =
    "Nobody is here to be asked. Decide as well as you can, and say in the end what you assumed.";

/// What an answered question was let through by.
pub(super) const ANSWERED: &str = "you answered";

/// What "always" would cover, whole.
pub(super) fn covers(patterns: &[Pattern], kind: &str, session: bool) -> String {
    let list: Vec<String> = patterns.iter().map(one).collect();
    let boxed = match kind {
        "open" => ", outside of the box",
        "watch" => ", as a watch command: it changes nothing",
        "" | "read" => "",
        _ => ", boxed",
    };
    let place = if session {
        "in this session"
    } else {
        "in this folder"
    };
    let mut text = format!("{}{boxed}, {place}.", list.join(" and "));
    let changeable = patterns.iter().any(|p| match p {
        Pattern::Prefix { words } | Pattern::Exact { words } => words.first().is_some_and(|w| {
            w.contains('/') || permission().arity.runs_changeable_code.contains(w)
        }),
        _ => false,
    });
    if changeable {
        text.push_str(" It runs code that the agent can change.");
    }
    text
}

/// What a no of the person refuses, whole.
pub(super) fn refuses(patterns: &[Pattern]) -> String {
    let list: Vec<String> = patterns.iter().map(one).collect();
    format!(
        "Refused: {}, in this folder and those in it.",
        list.join(" and ")
    )
}

fn one(pattern: &Pattern) -> String {
    match pattern {
        Pattern::Prefix { words } => format!("{} *", words.join(" ")),
        Pattern::Exact { words } => format!("exactly {}", words.join(" ")),
        Pattern::File { path } => format!("changes to {}", path.display()),
        Pattern::Folder { path } => format!("reading in {}", path.display()),
    }
}

/// The widest command that it would let through.
pub(super) fn widest(patterns: &[Pattern]) -> Option<String> {
    patterns.iter().find_map(|p| match p {
        Pattern::Prefix { words } => Some(format!("{} <anything>", words.join(" "))),
        Pattern::Exact { words } => Some(words.join(" ")),
        _ => None,
    })
}

/// A mode's name as people read it.
pub(super) fn mode(mode: Mode) -> &'static str {
    permission()
        .modes
        .modes
        .get(key(mode))
        .map_or("this", |row| row.name.as_str())
}

/// A mode's name in `spec/permission/modes.json`.
pub(super) fn key(mode: Mode) -> &'static str {
    match mode {
        Mode::Plan => "plan",
        Mode::Manual => "manual",
        Mode::Edit => "edit",
        Mode::Auto => "auto",
    }
}

/// Why a run outside of the box is asked about.
pub(super) fn open(program: &str, strength: Strength) -> String {
    match strength {
        Strength::Full => format!("{program} needs the network or what is outside of the box."),
        Strength::WritesOnly => {
            format!("{program} would run with the network: the box here only fences writes.")
        }
        Strength::None => format!("{program} would run unboxed: this computer has no box."),
    }
}

/// What let a command through, in words.
pub(super) fn allowed(mode_now: Mode, kind: BoxKind) -> String {
    let place = match kind {
        BoxKind::Read | BoxKind::Roots => "in the box",
        BoxKind::Open => "outside of the box",
    };
    format!("{} mode, {place}", mode(mode_now))
}
