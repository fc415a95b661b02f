//! The wide reader: every literal command that can be found in a text, understood or not.
//!
//! It never says that something is harmless. It works on the plain spelling, knows quotes,
//! here-documents and simple variables, follows every payload, and gives up only at its bound.

mod tokens;

use std::collections::VecDeque;

use self::tokens::Tokens;
pub(super) use self::tokens::assignment;
use super::payload::{Inner, inner, is_code};
use super::word::Word;
use super::work::{self, Bound};
use super::{MAX_BYTES, MAX_DEPTH, Redirect, plain, segment};

/// A command that the wide reader found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Never empty.
    pub words: Vec<Word>,
    pub redirects: Vec<Redirect>,
    pub depth: u8,
    /// The one that it is a part of: itself, or the wrapper around it.
    within: usize,
}

/// What a person is shown of the command at that place: all that stands around it too.
pub fn shown(found: &[Found], at: usize) -> String {
    let outer = found.get(at).and_then(|f| found.get(f.within));
    let mut text = String::new();
    for word in outer.map(|f| f.words.as_slice()).unwrap_or_default() {
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(&word.raw);
        // As many characters as are shown take no more bytes than these.
        if text.len() > 2_000 {
            break;
        }
    }
    segment(&text)
}

/// So many characters it goes over for one text, payloads and all, each time counted; commands and
/// words count as more. At that bound it stops and says that it has not seen everything: the
/// command is then asked about, once, and refused where nobody can be asked. A text of the greatest
/// length that is one command, or a file written out, keeps well below it, and so do a thousand
/// commands.
const MOST_STEPS: u64 = 12 * MAX_BYTES as u64;

/// What a command costs besides its characters, in steps.
const COMMAND: usize = 100;

/// What a word costs besides.
const WORD: usize = 20;

/// One simple command as the tokenizer meets it.
#[derive(Default)]
struct Simple {
    words: Vec<Word>,
    redirects: Vec<Redirect>,
    /// What here-documents and here-strings give it to read.
    stdin: Vec<String>,
    /// Its output goes into the next one.
    piped: bool,
}

/// Every command in the text at any depth, and whether all of it was looked at.
pub fn greedy(text: &str) -> (Vec<Found>, bool) {
    let bound = Bound::of(MOST_STEPS);
    let mut work = VecDeque::from([(text.to_owned(), 0u8)]);
    let mut found = Vec::new();
    let mut whole = true;
    while let Some((text, depth)) = work.pop_front() {
        if depth > MAX_DEPTH || bound.over() {
            whole = false;
            continue;
        }
        let mut inside = Inside::default();
        let simples = Tokens::new(&plain(&text), bound).all(&mut inside);
        follow(&simples, &mut inside);
        whole &= inside.whole;
        work.extend(inside.texts.into_iter().map(|t| (t, depth + 1)));
        for simple in simples {
            whole &= push(simple, depth, bound, &mut found, &mut work);
        }
        whole &= !bound.over();
    }
    (found, whole)
}

/// Texts that were found inside of one, and whether they are all that there are.
struct Inside {
    texts: Vec<String>,
    whole: bool,
}

impl Default for Inside {
    fn default() -> Self {
        Self {
            texts: Vec::new(),
            whole: true,
        }
    }
}

impl Inside {
    fn extend(&mut self, texts: impl IntoIterator<Item = String>) {
        self.texts.extend(texts);
    }

    /// Strings in code.
    fn code(&mut self, code: &str) {
        let (texts, whole) = strings(code);
        self.texts.extend(texts);
        self.whole &= whole;
    }
}

/// Adds a command, what it wraps, and queues what it would have a shell read. Answers whether
/// that is all.
fn push(
    simple: Simple,
    depth: u8,
    bound: Bound,
    found: &mut Vec<Found>,
    work: &mut VecDeque<(String, u8)>,
) -> bool {
    let Simple {
        mut words,
        mut redirects,
        ..
    } = simple;
    let within = found.len();
    let mut whole = true;
    // Wrappers in wrappers; a longer chain than this is cut, the strict reader asks about it.
    for _ in 0..32 {
        if words.is_empty() {
            return whole;
        }
        if bound.over() {
            return false;
        }
        // What is wrapped is read once more.
        work::add(words.iter().map(|w| w.raw.len() + WORD).sum());
        let (inner, _) = inner(&words);
        found.push(Found {
            words,
            // The first is the one that has them.
            redirects: std::mem::take(&mut redirects),
            depth,
            within,
        });
        words = Vec::new();
        for inner in inner {
            match inner {
                Inner::Words { words: next, .. } if words.is_empty() => words = next,
                Inner::Words { words: next, .. } => found.push(Found {
                    words: next,
                    redirects: Vec::new(),
                    depth,
                    within,
                }),
                Inner::Text(text) | Inner::Command(text) => {
                    work::add(text.len());
                    work.push_back((text, depth + 1));
                }
                Inner::Code(text) => {
                    let (texts, all) = strings(&text);
                    whole &= all;
                    work.extend(texts.into_iter().map(|t| (t, depth + 1)));
                }
                Inner::Unknown => {}
            }
        }
    }
    whole
}

/// How many commands stand on the first level of a text, counted no further than `most`.
pub(super) fn commands(text: &str, most: usize) -> usize {
    Tokens::new(text, Bound::of(u64::MAX)).count(most)
}

/// What flows between commands: text piped or redirected into a shell, scripts written and run.
fn follow(simples: &[Simple], inside: &mut Inside) {
    let runs_file = simples.iter().any(|s| {
        let program = s.program();
        reads_shell(program) || program.contains('/') || matches!(program, "." | "source")
    });
    // From the back: whether what a command writes ends in a shell.
    let mut next_reads = false;
    for simple in simples.iter().rev() {
        let reads = reads_stdin(&simple.words);
        let feeds = reads || (simple.piped && next_reads);
        next_reads = feeds;
        let written = !simple.redirects.is_empty() || simple.program() == "tee";
        if feeds || (runs_file && written) {
            simple.said(inside);
        } else if is_code(simple.program()) {
            for text in &simple.stdin {
                inside.code(text);
            }
        }
    }
}

impl Simple {
    fn program(&self) -> &str {
        self.words.first().map(Word::text).unwrap_or_default()
    }

    /// Every text that this command may hand on: what it is given to read, what it echoes.
    fn said(&self, inside: &mut Inside) {
        let words = self.words.iter().skip(1).map(Word::text);
        let joined = words.collect::<Vec<_>>().join(" ").replace("\\n", "\n");
        let inner = self.words.iter().flat_map(|w| w.commands.iter());
        let echoed = inner.filter_map(|c| c.split_once(' ').map(|(_, said)| said.to_owned()));
        let (strings, whole) = strings(&joined);
        inside.whole &= whole;
        let texts: Vec<_> = self
            .stdin
            .iter()
            .cloned()
            .chain(strings)
            .chain(echoed)
            .chain([joined])
            .collect();
        for text in texts {
            work::add(text.len());
            // `!command` of ed and its kind.
            inside.extend(
                text.lines()
                    .filter_map(|l| l.strip_prefix('!'))
                    .map(str::to_owned),
            );
            inside.extend([text]);
        }
    }
}

fn reads_shell(program: &str) -> bool {
    let base = program.rsplit('/').next().unwrap_or(program);
    matches!(
        base,
        "sh" | "bash" | "dash" | "zsh" | "ksh" | "ash" | "mksh" | "fish" | "rbash"
    )
}

/// Whether some word names a program that runs what it reads.
fn reads_stdin(words: &[Word]) -> bool {
    words.iter().any(|w| {
        reads_shell(w.text())
            || w.text()
                .split_ascii_whitespace()
                .next()
                .is_some_and(reads_shell)
    }) || words
        .first()
        .is_some_and(|w| matches!(w.text(), "ed" | "ex" | "at" | "batch" | "source" | "."))
}

/// Strings inside of code of any language, and what stands behind `!`, `|`, `.shell`; and whether
/// those are all.
fn strings(code: &str) -> (Vec<String>, bool) {
    // What is found may overlap, so it can be longer than the code: four times, and so many.
    const MOST: usize = 256;
    let most = 4 * code.len();
    work::add(code.len());
    let (mut found, mut length) = (Vec::new(), 0);
    let mut chars = code.chars();
    let mut whole = true;
    while let Some(c) = chars.next() {
        match c {
            '"' | '\'' | '`' => {
                let mut text = String::new();
                while let Some(next) = chars.next() {
                    match next {
                        '\\' => text.extend(chars.next()),
                        next if next == c => break,
                        next => text.push(next),
                    }
                }
                found.push(text);
            }
            '!' | '|' => {
                let rest = chars.as_str();
                let line = rest.lines().next().unwrap_or_default();
                work::add(line.len());
                found.push(line.to_owned());
            }
            _ => continue,
        }
        length += found.last().map_or(0, String::len);
        if found.len() > MOST || length > most {
            whole = false;
            break;
        }
    }
    for key in [".shell ", ".system "] {
        found.extend(code.split(key).skip(1).map(str::to_owned));
    }
    (found, whole)
}
