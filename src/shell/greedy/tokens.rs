//! The tokenizer of the wide reader: a text into simple commands, and the texts inside of them.

use std::borrow::Cow;
use std::collections::HashMap;

use super::super::word::Word;
use super::super::work::{self, Bound};
use super::super::{MAX_BYTES, Redirect, skip};
use super::{COMMAND, Inside, Simple, WORD};

/// The tokenizer.
pub(super) struct Tokens {
    chars: Vec<char>,
    at: usize,
    variables: HashMap<String, String>,
    /// Here-documents begun on this line: delimiter, quoted, tabs stripped, which command.
    pending: Vec<(String, bool, bool, usize)>,
    done: Vec<Simple>,
    current: Simple,
    /// Whether commands are only counted: their words are not read.
    counting: bool,
    bound: Bound,
}

impl Tokens {
    pub(super) fn new(text: &str, bound: Bound) -> Self {
        Self {
            chars: text.chars().collect(),
            at: 0,
            variables: HashMap::new(),
            pending: Vec::new(),
            done: Vec::new(),
            current: Simple::default(),
            counting: false,
            bound,
        }
    }

    pub(super) fn all(mut self, inside: &mut Inside) -> Vec<Simple> {
        self.run(inside, usize::MAX);
        self.done
    }

    pub(super) fn count(mut self, most: usize) -> usize {
        self.counting = true;
        self.run(&mut Inside::default(), most);
        self.done.len()
    }

    fn run(&mut self, inside: &mut Inside, most: usize) {
        while let Some(&c) = self.chars.get(self.at) {
            if self.bound.over() || self.done.len() >= most {
                inside.whole = false;
                return;
            }
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

    fn word(&mut self, inside: &mut Inside) {
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
                    let text = value.text().trim_start_matches(['|', '!']);
                    inside.extend([text.to_owned()]);
                }
                let text = value.text().to_owned();
                self.variables.insert(name.to_owned(), text);
                return;
            }
        }
        if self.counting {
            self.current.words.push(Word::plain(""));
            return;
        }
        match braces(&raw) {
            Some(several) => {
                for raw in several.split(',') {
                    let word = self.read(raw, inside);
                    self.current.words.push(word);
                }
            }
            None => {
                let word = self.read(&raw, inside);
                self.current.words.push(word);
            }
        }
    }

    fn read(&self, raw: &str, inside: &mut Inside) -> Word {
        if self.counting {
            return Word::plain("");
        }
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
    fn spelled<'r>(&self, raw: &'r str) -> Cow<'r, str> {
        if self.variables.is_empty() || !raw.contains('$') {
            return Cow::Borrowed(raw);
        }
        let once = self.put_in(raw);
        // A value may name another variable in turn.
        Cow::Owned(if once.contains('$') {
            self.put_in(&once)
        } else {
            once
        })
    }

    fn put_in(&self, raw: &str) -> String {
        let mut out = String::with_capacity(raw.len());
        let mut rest = raw;
        while let Some(at) = rest.find('$') {
            let (before, from) = rest.split_at(at);
            out.push_str(before);
            let braced = from.starts_with("${");
            let name = from.get(if braced { 2 } else { 1 }..).unwrap_or_default();
            let end = name
                .find(|c: char| c != '_' && !c.is_ascii_alphanumeric())
                .unwrap_or(name.len());
            let (name, behind) = name.split_at(end);
            let behind = if braced {
                behind.strip_prefix('}')
            } else {
                Some(behind)
            };
            match (self.variables.get(name), behind) {
                // A value put in a value again and again grows without end: past the length of a
                // whole text they stand as they are.
                (Some(value), Some(behind)) if out.len() <= MAX_BYTES => {
                    out.push_str(value);
                    rest = behind;
                }
                _ => {
                    out.push('$');
                    rest = from.get(1..).unwrap_or_default();
                }
            }
        }
        out.push_str(rest);
        work::add(out.len());
        out
    }

    /// A redirection operator and its target. `<<` keeps its delimiter for the end of the line.
    fn redirect(&mut self, inside: &mut Inside) {
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
    fn bodies(&mut self, inside: &mut Inside) {
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
            work::add(body.len());
            if !quoted && !self.counting {
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
        // The last that was begun is of the newest command.
        let waits = self.pending.last().is_some_and(|p| p.3 == self.done.len());
        if empty && simple.stdin.is_empty() && !waits {
            return;
        }
        simple.piped = piped;
        work::add(COMMAND + WORD * simple.words.len());
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
pub(in crate::shell) fn assignment(raw: &str) -> Option<(&str, &str)> {
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

/// `{a,b}` as a whole word is several words: these, with commas between them.
fn braces(raw: &str) -> Option<&str> {
    raw.strip_prefix('{')
        .and_then(|r| r.strip_suffix('}'))
        .filter(|inner| inner.contains(',') && !inner.contains(['{', '}', '\'', '"', '$']))
}
