//! Where a command writes: results to stdout, progress, hints and errors to stderr.

use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write as _};
use std::os::fd::AsFd;

use serde::Serialize;
use serde_json::Value;

use super::failure::Failure;
use crate::config::env;
use crate::text::table::Table;
use crate::text::wrap::wrap;

/// The two streams, and how they may be written to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Out {
    /// Only JSON on stdout.
    pub(super) json: bool,
    colour: bool,
    colour_err: bool,
    /// Whether a person sits at the terminal and can answer.
    pub(super) person: bool,
    width: Option<usize>,
    width_err: Option<usize>,
}

/// Verbs are right-aligned to this column.
const VERB: usize = 12;
/// Where further lines of an error begin: under its first word.
const HANGING: usize = 7;

impl Out {
    pub(super) fn new(json: bool) -> Self {
        let plain = env::os(&env::NO_COLOR).is_some()
            || env::text(&env::TERM).is_some_and(|term| term == "dumb");
        let stdout = io::stdout();
        let terminal = stdout.is_terminal();
        Self {
            json,
            colour: !json && !plain && terminal,
            colour_err: !plain && io::stderr().is_terminal(),
            person: !json && io::stdin().is_terminal() && io::stderr().is_terminal(),
            width: columns(&stdout),
            width_err: columns(&io::stderr()),
        }
    }

    /// A line of the result for reading: on a narrow terminal it is broken between its words.
    pub(super) fn text(&self, text: impl Display) {
        say(
            &mut io::stdout().lock(),
            &broken(&text.to_string(), self.width, 0),
        );
    }

    /// As [`Out::text`], further lines under `indent` spaces.
    pub(super) fn hanging(&self, text: impl Display, indent: usize) {
        say(
            &mut io::stdout().lock(),
            &broken(&text.to_string(), self.width, indent),
        );
    }

    /// A line of the result, whole: it may be pasted.
    pub(super) fn line(&self, text: impl Display) {
        say(&mut io::stdout().lock(), &format!("{text}\n"));
    }

    /// An address that signs in, on a line of its own where the terminal is narrow: an address that
    /// runs into words cannot be opened or copied.
    pub(super) fn sign_in(&self, url: &str) {
        let (open, once) = (format!("Open  {url}"), "(once, within 10 minutes)");
        let gap = 6;
        let wide = open.len() + gap + once.len();
        if self.width.is_none_or(|width| wide <= width) {
            self.line(format!("{open}{}{once}", " ".repeat(gap)));
        } else {
            self.line(open);
            self.line(format!("      {once}"));
        }
    }

    /// A line of the result in the form `     Started  fact`.
    pub(super) fn verb(&self, verb: &str, fact: impl Display) {
        say(
            &mut io::stdout().lock(),
            &verb_line(self.colour, self.width, verb, &fact),
        );
    }

    /// As [`Out::verb`], where it is progress and not the result.
    pub(super) fn step(&self, verb: &str, fact: impl Display) {
        if !self.json {
            say(
                &mut io::stderr().lock(),
                &verb_line(self.colour_err, self.width_err, verb, &fact),
            );
        }
    }

    /// As [`Out::step`], only for a person who waits: what takes longer than a moment.
    pub(super) fn waiting(&self, verb: &str, fact: impl Display) {
        if self.person {
            self.step(verb, fact);
        }
    }

    /// A hint, only for a person.
    pub(super) fn hint(&self, text: impl Display) {
        if !self.json {
            say(&mut io::stderr().lock(), &format!("{text}\n"));
        }
    }

    /// A table of the result.
    pub(super) fn table(&self, table: &Table) {
        for line in table.lines(self.width) {
            self.line(line);
        }
    }

    /// One object, one line, flushed.
    pub(super) fn object(&self, value: &impl Serialize) {
        if let Ok(line) = serde_json::to_string(value) {
            self.line(line);
        }
    }

    /// Bytes as they are.
    pub(super) fn bytes(&self, bytes: &[u8]) {
        let mut out = io::stdout().lock();
        // A reader that is gone wants no more; there is nobody to tell.
        let _ = out.write_all(bytes).and_then(|()| out.flush());
    }

    /// A warning: the rest went as wished.
    pub(super) fn warning(&self, text: &str, fix: &str) {
        if !self.json {
            let word = paint(self.colour_err, "33;1", "warning:");
            say(
                &mut io::stderr().lock(),
                &format!("{word} {text}\n  try: {fix}\n"),
            );
        }
    }

    /// How a command failed: three lines on stderr, or JSON on stdout.
    pub(super) fn failure(&self, failure: &Failure) {
        if self.json {
            self.object(&failure.json());
            return;
        }
        let mut text = String::new();
        for line in failure.lines() {
            // What is pasted stays whole.
            let pasted = line.starts_with("  try:") || line.starts_with("  or:");
            let line = match pasted {
                true => format!("{line}\n"),
                false => broken(&line, self.width_err, HANGING),
            };
            match line.strip_prefix("error:") {
                Some(rest) => {
                    text.push_str(&paint(self.colour_err, "31;1", "error:"));
                    text.push_str(rest);
                }
                None => text.push_str(&line),
            }
        }
        say(&mut io::stderr().lock(), &text);
    }

    /// A question, with the answer to be typed behind it.
    pub(super) fn prompt(&self, question: &str) {
        say(&mut io::stderr().lock(), question);
    }

    /// Asks a person a yes-or-no question; no where nobody sits there or the answer is not yes.
    pub(super) fn yes(&self, question: &str) -> bool {
        if !self.person {
            return false;
        }
        // What is neither yes nor no is asked for again, a few times.
        for _ in 0..3 {
            self.prompt(&format!("{question} [y/N] "));
            let mut answer = String::new();
            if io::stdin().read_line(&mut answer).is_err() {
                return false;
            }
            match answer.trim().to_lowercase().as_str() {
                "y" | "yes" => return true,
                "" | "n" | "no" => return false,
                _ => self.hint("Type y for yes or n for no."),
            }
        }
        false
    }
}

/// Puts a field into an object of `--json`.
pub(super) fn put(object: &mut Value, key: &str, value: impl Serialize) {
    if let Value::Object(fields) = object
        && let Ok(value) = serde_json::to_value(value)
    {
        fields.insert(key.to_owned(), value);
    }
}

fn verb_line(colour: bool, width: Option<usize>, verb: &str, fact: &dyn Display) -> String {
    let pad = VERB.saturating_sub(verb.chars().count());
    let line = broken(&format!("{:pad$}{verb}  {fact}", ""), width, VERB + 2);
    line.replacen(verb, &paint(colour, "32;1", verb), 1)
}

/// The columns of a terminal; none of a pipe.
fn columns(stream: &(impl io::IsTerminal + AsFd)) -> Option<usize> {
    if !stream.is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(stream).ok()?;
    Some(usize::from(size.ws_col)).filter(|width| *width > 0)
}

/// A text with its line ends, broken between words where it is wider than the terminal.
fn broken(text: &str, width: Option<usize>, indent: usize) -> String {
    let mut all = String::new();
    for line in text.split('\n') {
        let lines = match width {
            Some(width) => wrap(line, width, indent),
            None => vec![line.to_owned()],
        };
        for line in lines {
            all.push_str(&line);
            all.push('\n');
        }
    }
    all
}

fn paint(colour: bool, code: &str, text: &str) -> String {
    if colour {
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    } else {
        text.to_owned()
    }
}

fn say(out: &mut dyn io::Write, text: &str) {
    // A reader that is gone wants no more; there is nobody to tell.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
