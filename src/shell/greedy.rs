//! The wide reader: every literal command that can be found in a text, understood or not.
//!
//! It never says that something is harmless. It works on the plain spelling, knows quotes,
//! here-documents and simple variables, follows every payload, and gives up only at its bounds.

use std::collections::{HashMap, VecDeque};

use super::payload::{Inner, inner, is_code};
use super::word::Word;
use super::{MAX_BYTES, MAX_DEPTH, Redirect, plain, segment, skip};

/// A command that the wide reader found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Never empty.
    pub words: Vec<Word>,
    pub redirects: Vec<Redirect>,
    pub segment: String,
    pub depth: u8,
}

/// The most commands it looks for in one text; at that bound it stops and says so.
const MOST: usize = 8_000;

/// One simple command as the tokenizer meets it.
#[derive(Default)]
struct Simple {
    words: Vec<Word>,
    redirects: Vec<Redirect>,
    /// What here-documents and here-strings give it to read.
    stdin: Vec<String>,
    /// Its output goes into the next one.
    piped: bool,
    segment: String,
}

/// Every command in the text at any depth, and whether all of it was looked at.
pub fn greedy(text: &str) -> (Vec<Found>, bool) {
    let mut work = VecDeque::from([(text.to_owned(), 0u8)]);
    let mut found = Vec::new();
    let mut whole = true;
    // Payloads are parts of the text, so following them costs a few times its length at most.
    let mut budget = MAX_BYTES * 8;
    while let Some((text, depth)) = work.pop_front() {
        if depth > MAX_DEPTH || found.len() > MOST || budget < text.len() {
            whole = false;
            continue;
        }
        budget -= text.len();
        let mut inside = Vec::new();
        let simples = Tokens::new(&plain(&text)).all(&mut inside);
        follow(&simples, &mut inside);
        work.extend(inside.into_iter().map(|t| (t, depth + 1)));
        for simple in simples {
            push(simple, depth, &mut found, &mut work);
        }
    }
    (found, whole)
}

/// How many commands stand on the first level of a text.
pub(super) fn commands(text: &str) -> usize {
    Tokens::new(text).all(&mut Vec::new()).len()
}

/// Adds a command, what it wraps, and queues what it would have a shell read.
fn push(simple: Simple, depth: u8, found: &mut Vec<Found>, work: &mut VecDeque<(String, u8)>) {
    let Simple {
        mut words,
        redirects,
        segment,
        ..
    } = simple;
    // Wrappers in wrappers; a longer chain than this is cut, the strict reader asks about it.
    for _ in 0..32 {
        if words.is_empty() {
            return;
        }
        let (inner, _) = inner(&words);
        found.push(Found {
            words,
            redirects: redirects.clone(),
            segment: segment.clone(),
            depth,
        });
        words = Vec::new();
        for inner in inner {
            match inner {
                Inner::Words { words: next, .. } if words.is_empty() => words = next,
                Inner::Words { words: next, .. } => found.push(Found {
                    words: next,
                    redirects: Vec::new(),
                    segment: segment.clone(),
                    depth,
                }),
                Inner::Text(text) | Inner::Command(text) => work.push_back((text, depth + 1)),
                Inner::Code(text) => {
                    work.extend(strings(&text).into_iter().map(|t| (t, depth + 1)));
                }
                Inner::Unknown => {}
            }
        }
    }
}

/// What flows between commands: text piped or redirected into a shell, scripts written and run.
fn follow(simples: &[Simple], inside: &mut Vec<String>) {
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
            inside.extend(simple.stdin.iter().flat_map(|t| strings(t)));
        }
    }
}

impl Simple {
    fn program(&self) -> &str {
        self.words.first().map(Word::text).unwrap_or_default()
    }

    /// Every text that this command may hand on: what it is given to read, what it echoes.
    fn said(&self, inside: &mut Vec<String>) {
        let words = self.words.iter().skip(1).map(Word::text);
        let joined = words.collect::<Vec<_>>().join(" ").replace("\\n", "\n");
        let inner = self.words.iter().flat_map(|w| w.commands.iter());
        let echoed = inner.filter_map(|c| c.split_once(' ').map(|(_, said)| said.to_owned()));
        let texts: Vec<_> = self
            .stdin
            .iter()
            .cloned()
            .chain(strings(&joined))
            .chain(echoed)
            .chain([joined])
            .collect();
        for text in texts {
            // `!command` of ed and its kind.
            inside.extend(
                text.lines()
                    .filter_map(|l| l.strip_prefix('!'))
                    .map(str::to_owned),
            );
            inside.push(text);
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

/// Strings inside of code of any language, and what stands behind `!`, `|`, `.shell`.
fn strings(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut chars = code.chars();
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
                found.push(line.to_owned());
            }
            _ => {}
        }
        if found.len() > 256 {
            break;
        }
    }
    for key in [".shell ", ".system "] {
        found.extend(code.split(key).skip(1).map(str::to_owned));
    }
    found
}

/// The tokenizer.
struct Tokens {
    chars: Vec<char>,
    at: usize,
    variables: HashMap<String, String>,
    /// Here-documents begun on this line: delimiter, quoted, tabs stripped, which command.
    pending: Vec<(String, bool, bool, usize)>,
    done: Vec<Simple>,
    current: Simple,
    started: usize,
}

impl Tokens {
    fn new(text: &str) -> Self {
        Self {
            chars: text.chars().collect(),
            at: 0,
            variables: HashMap::new(),
            pending: Vec::new(),
            done: Vec::new(),
            current: Simple::default(),
            started: 0,
        }
    }

    fn all(mut self, inside: &mut Vec<String>) -> Vec<Simple> {
        while let Some(&c) = self.chars.get(self.at) {
            let next = self.chars.get(self.at + 1).copied();
            match c {
                ' ' | '\t' => self.at += 1,
                '\\' if next == Some('\n') => self.at += 2,
                '#' if self.word_may_start() => {
                    while self.chars.get(self.at).is_some_and(|c| *c != '\n') {
                        self.at += 1;
                    }
                }
                '\n' => {
                    self.end(false);
                    self.at += 1;
                    self.bodies(inside);
                }
                '|' => {
                    self.end(next != Some('|'));
                    self.at += 1 + usize::from(matches!(next, Some('|' | '&')));
                }
                '&' if next == Some('>') => {
                    self.at += 1;
                    self.redirect(inside);
                }
                '[' if self.current.words.is_empty() && next.is_some_and(char::is_whitespace) => {
                    self.current.words.push(Word::plain("["));
                    self.at += 1;
                }
                ';' | '&' | '(' | ')' => {
                    self.end(false);
                    self.at += 1;
                }
                '<' | '>' if next != Some('(') => self.redirect(inside),
                _ => self.word(inside),
            }
        }
        self.end(false);
        self.done
    }

    /// A comment begins only where a word could.
    fn word_may_start(&self) -> bool {
        self.at == 0
            || self
                .chars
                .get(self.at - 1)
                .is_some_and(|c| c.is_whitespace() || ";&|()".contains(*c))
    }

    fn take_word(&mut self) -> String {
        let end = skip::word(&self.chars, self.at).max(self.at + 1);
        let raw: String = self
            .chars
            .get(self.at..end.min(self.chars.len()))
            .unwrap_or_default()
            .iter()
            .collect();
        self.at = end;
        raw
    }

    fn word(&mut self, inside: &mut Vec<String>) {
        let raw = self.take_word();
        if self.current.words.is_empty() {
            if keyword(&raw) {
                return;
            }
            if raw == "function" {
                while matches!(self.chars.get(self.at), Some(' ' | '\t')) {
                    self.at += 1;
                }
                self.take_word();
                return;
            }
            if let Some((name, value)) = assignment(&raw) {
                // `m[$(…)]=…`
                inside.extend(Word::read(&raw).commands);
                let value = self.read(value, inside);
                if may_run(name) || value.text().starts_with('!') {
                    inside.push(value.text().trim_start_matches(['|', '!']).to_owned());
                }
                let text = value.text().to_owned();
                self.variables.insert(name.to_owned(), text);
                return;
            }
            self.started = self.done.len();
        }
        for raw in braces(&raw) {
            let word = self.read(&raw, inside);
            self.current.words.push(word);
        }
    }

    fn read(&self, raw: &str, inside: &mut Vec<String>) -> Word {
        let word = Word::read(&self.spelled(raw));
        inside.extend(word.commands.iter().cloned());
        // Builtins and `[[` evaluate subscripts of quoted words again.
        if word.text().contains('[') && word.text().contains(['$', '`']) {
            let again = word.text().replace('"', "");
            inside.extend(Word::read(&format!("\"{again}\"")).commands);
        }
        word
    }

    /// The text with variables put in whose value was written out before.
    fn spelled(&self, raw: &str) -> String {
        if self.variables.is_empty() || !raw.contains('$') {
            return raw.to_owned();
        }
        let mut out = raw.to_owned();
        for (name, value) in &self.variables {
            if out.len() > MAX_BYTES {
                break;
            }
            out = out.replace(&format!("${{{name}}}"), value);
            let bare = format!("${name}");
            if let Some(at) = out.find(&bare) {
                let after = out.get(at + bare.len()..).and_then(|r| r.chars().next());
                if !after.is_some_and(|c| c == '_' || c.is_ascii_alphanumeric()) {
                    out = out.replacen(&bare, value, 1);
                }
            }
        }
        out
    }

    /// A redirection operator and its target. `<<` keeps its delimiter for the end of the line.
    fn redirect(&mut self, inside: &mut Vec<String>) {
        let from = self.at;
        while self
            .chars
            .get(self.at)
            .is_some_and(|c| "<>&|-".contains(*c) && self.at - from < 3)
        {
            self.at += 1;
        }
        let operator: String = self
            .chars
            .get(from..self.at)
            .unwrap_or_default()
            .iter()
            .collect();
        while self
            .chars
            .get(self.at)
            .is_some_and(|c| matches!(c, ' ' | '\t'))
        {
            self.at += 1;
        }
        if operator.ends_with("&-") || self.at >= self.chars.len() {
            return;
        }
        // A number before the operator is a descriptor, not an argument.
        if self.current.words.last().is_some_and(|w| {
            from > 0
                && self.chars.get(from - 1).is_some_and(char::is_ascii_digit)
                && w.raw.chars().all(|c| c.is_ascii_digit())
        }) {
            self.current.words.pop();
        }
        if operator.starts_with("<<<") {
            let raw = self.take_word();
            let word = self.read(&raw, inside);
            self.current.stdin.push(word.text().to_owned());
        } else if operator.starts_with("<<") {
            let raw = self.take_word();
            let quoted = raw.contains(['\'', '"', '\\']);
            let delimiter = Word::read(&raw).text().to_owned();
            let strips = operator.starts_with("<<-");
            self.pending
                .push((delimiter, quoted, strips, self.done.len()));
        } else if matches!(self.chars.get(self.at), Some('\n' | ';' | '|' | ')')) {
            // No target: left to the strict reader.
        } else {
            let raw = self.take_word();
            let target = self.read(&raw, inside);
            self.current.redirects.push(Redirect {
                target,
                writes: operator.contains('>'),
                segment: format!("{operator} {raw}"),
            });
        }
    }

    /// Reads the here-documents that were begun on the line that has just ended.
    fn bodies(&mut self, inside: &mut Vec<String>) {
        for (delimiter, quoted, strips, owner) in std::mem::take(&mut self.pending) {
            let mut body = String::new();
            while self.at < self.chars.len() {
                let end = self
                    .chars
                    .iter()
                    .skip(self.at)
                    .position(|c| *c == '\n')
                    .map_or(self.chars.len(), |n| self.at + n);
                let line: String = self
                    .chars
                    .get(self.at..end)
                    .unwrap_or_default()
                    .iter()
                    .collect();
                self.at = (end + 1).min(self.chars.len());
                let line = if strips {
                    line.trim_start_matches('\t')
                } else {
                    line.as_str()
                };
                if line == delimiter {
                    break;
                }
                body.push_str(line);
                body.push('\n');
            }
            if !quoted {
                inside.extend(Word::read(&format!("\"{}\"", body.replace('"', "\\\""))).commands);
            }
            if let Some(owner) = self.done.get_mut(owner) {
                owner.stdin.push(body);
            }
        }
    }

    /// A command has ended.
    fn end(&mut self, piped: bool) {
        let mut simple = std::mem::take(&mut self.current);
        let empty = simple.words.is_empty() && simple.redirects.is_empty();
        if empty && simple.stdin.is_empty() && self.pending.iter().all(|p| p.3 < self.done.len()) {
            return;
        }
        let raw: Vec<_> = simple.words.iter().map(|w| w.raw.as_str()).collect();
        simple.segment = segment(&raw.join(" "));
        simple.piped = piped;
        self.done.push(simple);
    }
}

/// Words after which a command begins.
fn keyword(raw: &str) -> bool {
    matches!(
        raw,
        "then"
            | "do"
            | "else"
            | "elif"
            | "if"
            | "while"
            | "until"
            | "!"
            | "{"
            | "}"
            | "fi"
            | "done"
            | "esac"
            | "in"
    )
}

/// `NAME=value`, `NAME+=value`, `NAME[…]=value`.
pub(super) fn assignment(raw: &str) -> Option<(&str, &str)> {
    let end = raw
        .find(|c: char| c != '_' && !c.is_ascii_alphanumeric())
        .filter(|end| *end > 0)?;
    if raw.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let name = raw.get(..end)?;
    let mut rest = raw.get(end..)?;
    if rest.starts_with('[') {
        rest = rest.get(rest.find("]=").or_else(|| rest.find("]+="))? + 1..)?;
    }
    let value = rest.strip_prefix("+=").or_else(|| rest.strip_prefix('='))?;
    Some((name, value))
}

/// Variables whose value some program runs.
fn may_run(name: &str) -> bool {
    matches!(
        name,
        "PS4" | "PROMPT_COMMAND" | "BASH_ENV" | "ENV" | "LESSOPEN" | "LESSCLOSE"
    ) || [
        "COMMAND", "PAGER", "EDITOR", "_CMD", "DIFF", "VISUAL", "ASKPASS", "WRAPPER", "SSH",
        "BROWSER",
    ]
    .iter()
    .any(|end| name.ends_with(end))
}

/// `{a,b}` as a whole word is several words.
fn braces(raw: &str) -> Vec<String> {
    let inner = raw
        .strip_prefix('{')
        .and_then(|r| r.strip_suffix('}'))
        .filter(|inner| inner.contains(',') && !inner.contains(['{', '}', '\'', '"', '$']));
    match inner {
        Some(inner) => inner.split(',').map(str::to_owned).collect(),
        None => vec![raw.to_owned()],
    }
}
