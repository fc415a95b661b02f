//! One word of bash as it is written, and what it says: quotes taken away as bash does it.

use std::sync::Arc;

use super::{skip, work};

/// Stands in [`Word::text`] for a piece that is only known when it runs.
pub(crate) const HOLE: char = '\u{fffc}';

/// A word. `text` is what it says with every piece that is only known at run time as one hole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// As it is written. Shared: a wrapper's command is a part of the wrapper's words.
    pub raw: Arc<str>,
    text: Arc<str>,
    /// Why it is not known before it runs.
    pub dynamic: Option<Dynamic>,
    /// Where the first unquoted `*`, `?` or `[` stands in the text, in bytes.
    glob: Option<usize>,
    /// Begins with an unquoted `~`.
    pub tilde: bool,
    /// Commands inside of it, as text: `$(…)`, backticks, `<(…)`.
    pub commands: Vec<String>,
}

/// What makes a word dynamic. Of several the gravest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dynamic {
    Brace,
    Arithmetic,
    Parameter,
    Substitution,
    Process,
    /// `${x@P}`, `${!x}`, `${x:=…}`: the value itself is evaluated or assigned.
    Transform,
}

impl Word {
    /// A word that is meant as it stands.
    pub fn plain(text: impl Into<Arc<str>>) -> Self {
        let text = text.into();
        Self {
            raw: text.clone(),
            text,
            dynamic: None,
            glob: None,
            tilde: false,
            commands: Vec::new(),
        }
    }

    /// What it says, where that is known before it runs. A glob is not literal.
    pub fn literal(&self) -> Option<&str> {
        (self.dynamic.is_none() && self.glob.is_none()).then_some(&*self.text)
    }

    /// What it says with holes; globs stand as written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What it says up to the first piece that is not known.
    pub fn start(&self) -> &str {
        let hole = self.text.find(HOLE).unwrap_or(self.text.len());
        let end = self.glob.map_or(hole, |g| g.min(hole));
        self.text.get(..end).unwrap_or_default()
    }

    pub fn is_glob(&self) -> bool {
        self.glob.is_some()
    }

    /// Whether it could turn out to be an option: it begins with a piece that is not known.
    pub fn may_be_option(&self) -> bool {
        self.literal().is_none() && self.start().is_empty() && !self.tilde
    }

    /// The word without its first bytes (`of=` of dd, the `=` part of an option).
    pub fn after(&self, bytes: usize) -> Self {
        Self {
            raw: self.raw.clone(),
            text: self.text.get(bytes..).unwrap_or_default().into(),
            dynamic: self.dynamic,
            glob: self.glob.map(|g| g.saturating_sub(bytes)),
            tilde: self.text.get(bytes..).is_some_and(|t| t.starts_with('~')),
            commands: self.commands.clone(),
        }
    }

    /// Reads one word as it is written.
    pub fn read(raw: &str) -> Self {
        work::add(raw.len());
        if !raw.contains(MEANS) {
            return Self::plain(raw);
        }
        let chars: Vec<char> = raw.chars().collect();
        let mut reading = Reading {
            text: String::with_capacity(raw.len()),
            dynamic: None,
            glob: None,
            commands: Vec::new(),
        };
        reading.unquoted(&chars);
        Self {
            raw: raw.into(),
            text: reading.text.into(),
            dynamic: reading.dynamic,
            glob: reading.glob,
            tilde: chars.first() == Some(&'~'),
            commands: reading.commands,
        }
    }
}

/// Characters that mean something in a word. One without them says what is written.
const MEANS: &[char] = &['\\', '\'', '"', '$', '`', '<', '>', '{', '*', '?', '[', '~'];

/// A word that is being read.
struct Reading {
    text: String,
    dynamic: Option<Dynamic>,
    glob: Option<usize>,
    commands: Vec<String>,
}

impl Reading {
    fn unquoted(&mut self, chars: &[char]) {
        let mut i = 0;
        let mut braces = None;
        while let Some(&c) = chars.get(i) {
            i = match c {
                '\\' => {
                    match chars.get(i + 1) {
                        Some('\n') => {}
                        Some(&next) => self.text.push(next),
                        None => self.text.push('\\'),
                    }
                    i + 2
                }
                '\'' => {
                    let end = skip::single(chars, i);
                    self.text.extend(
                        chars
                            .get(i + 1..end.saturating_sub(1))
                            .into_iter()
                            .flatten(),
                    );
                    end
                }
                '"' => {
                    let end = skip::double(chars, i);
                    self.double(chars.get(i + 1..end.saturating_sub(1)).unwrap_or_default());
                    end
                }
                '$' if chars.get(i + 1) == Some(&'\'') => {
                    let end = skip::ansi(chars, i + 1);
                    let inner = chars.get(i + 2..end.saturating_sub(1)).unwrap_or_default();
                    self.text.push_str(&ansi_c(inner));
                    end
                }
                // A translated string says what it says unless a catalogue is set, which our
                // environment does not.
                '$' if chars.get(i + 1) == Some(&'"') => i + 1,
                '$' | '`' => self.expansion(chars, i),
                '<' | '>' if chars.get(i + 1) == Some(&'(') => {
                    let end = skip::bracketed(chars, i);
                    self.command(chars.get(i + 2..end.saturating_sub(1)));
                    self.hole(Dynamic::Process);
                    end
                }
                '{' => {
                    let pairs = braces.get_or_insert_with(|| pairs(chars, i));
                    if let Some(end) = end_of(pairs, i) {
                        self.expansions_in(chars.get(i..end).unwrap_or_default());
                        self.hole(Dynamic::Brace);
                        end
                    } else {
                        self.text.push(c);
                        i + 1
                    }
                }
                '*' | '?' | '[' => {
                    self.glob.get_or_insert(self.text.len());
                    self.text.push(c);
                    i + 1
                }
                _ => {
                    self.text.push(c);
                    i + 1
                }
            };
        }
    }

    fn double(&mut self, chars: &[char]) {
        let mut i = 0;
        while let Some(&c) = chars.get(i) {
            i = match c {
                '\\' => {
                    match chars.get(i + 1) {
                        Some('\n') => {}
                        Some(&next @ ('$' | '`' | '"' | '\\')) => self.text.push(next),
                        Some(&next) => {
                            self.text.push('\\');
                            self.text.push(next);
                        }
                        None => self.text.push('\\'),
                    }
                    i + 2
                }
                '$' | '`' => self.expansion(chars, i),
                _ => {
                    self.text.push(c);
                    i + 1
                }
            };
        }
    }

    /// An expansion begins at `i`; answers the place behind it.
    fn expansion(&mut self, chars: &[char], i: usize) -> usize {
        let next = chars.get(i + 1).copied();
        match (chars.get(i), next) {
            (Some('`'), _) => {
                let end = skip::bracketed(chars, i);
                let inner: String = chars
                    .get(i + 1..end.saturating_sub(1))
                    .unwrap_or_default()
                    .iter()
                    .collect();
                self.commands.push(unescape_ticks(&inner));
                self.hole(Dynamic::Substitution);
                end
            }
            (_, Some('(')) => {
                let end = skip::bracketed(chars, i);
                let inner = chars.get(i + 2..end.saturating_sub(1)).unwrap_or_default();
                if inner.first() == Some(&'(') {
                    self.expansions_in(inner);
                    // `$( (a) )` and `$((1+2))` are told apart by the parser; here both are
                    // looked into.
                    self.command(Some(inner));
                    self.hole(Dynamic::Arithmetic);
                } else {
                    self.command(Some(inner));
                    self.hole(Dynamic::Substitution);
                }
                end
            }
            (_, Some('{')) => {
                let end = skip::bracketed(chars, i);
                let inner = chars.get(i + 2..end.saturating_sub(1)).unwrap_or_default();
                self.expansions_in(inner);
                self.hole(if transforms(inner) {
                    Dynamic::Transform
                } else {
                    Dynamic::Parameter
                });
                end
            }
            (_, Some('[')) => {
                self.hole(Dynamic::Arithmetic);
                i + 2
            }
            (_, Some(c)) if c == '_' || c.is_ascii_alphabetic() => {
                self.hole(Dynamic::Parameter);
                let mut end = i + 1;
                while chars
                    .get(end)
                    .is_some_and(|c| *c == '_' || c.is_ascii_alphanumeric())
                {
                    end += 1;
                }
                end
            }
            (_, Some(c)) if c.is_ascii_digit() || "@*#?-$!".contains(c) => {
                self.hole(Dynamic::Parameter);
                i + 2
            }
            _ => {
                self.text.push('$');
                i + 1
            }
        }
    }

    fn hole(&mut self, why: Dynamic) {
        self.text.push(HOLE);
        self.dynamic = self.dynamic.max(Some(why));
    }

    fn command(&mut self, inner: Option<&[char]>) {
        if let Some(inner) = inner {
            work::add(inner.len());
            self.commands.push(inner.iter().collect());
        }
    }

    /// Commands inside of an expansion that is itself one hole: `${x:-$(…)}`.
    fn expansions_in(&mut self, chars: &[char]) {
        work::add(chars.len());
        let mut i = 0;
        while let Some(&c) = chars.get(i) {
            let next = chars.get(i + 1);
            i = match (c, next) {
                ('\\', _) => i + 2,
                ('$', Some('(')) | ('<' | '>', Some('(')) => {
                    let end = skip::bracketed(chars, i);
                    self.command(chars.get(i + 2..end.saturating_sub(1)));
                    end
                }
                ('`', _) => {
                    let end = skip::bracketed(chars, i);
                    let inner = chars.get(i + 1..end.saturating_sub(1)).unwrap_or_default();
                    self.commands
                        .push(unescape_ticks(&inner.iter().collect::<String>()));
                    end
                }
                _ => i + 1,
            };
        }
    }
}

/// Inside backticks a backslash hides only `$`, a backtick and itself.
fn unescape_ticks(inner: &str) -> String {
    work::add(inner.len());
    let mut out = String::with_capacity(inner.len());
    let mut chars = inner.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('\\', Some(&next @ ('$' | '`' | '\\'))) => {
                out.push(next);
                chars.next();
            }
            _ => out.push(c),
        }
    }
    out
}

/// `${x@…}` and `${!x}` (but not the lists `${!x[@]}`, `${!x*}`) evaluate a value;
/// `${x=…}` and `${x:=…}` assign.
fn transforms(inner: &[char]) -> bool {
    work::add(inner.len());
    let text: String = inner.iter().collect();
    if let Some(rest) = text.strip_prefix('!') {
        return !(rest.ends_with("[@]")
            || rest.ends_with("[*]")
            || rest.ends_with('@')
            || rest.ends_with('*'));
    }
    let name = text
        .find(|c: char| c != '_' && !c.is_ascii_alphanumeric())
        .unwrap_or(text.len());
    let rest = text.get(name..).unwrap_or_default();
    let subscript = rest.starts_with('[') && rest.contains("$(");
    let rest = match rest.find(']') {
        Some(end) if rest.starts_with('[') => rest.get(end + 1..).unwrap_or_default(),
        _ => rest,
    };
    subscript || rest.starts_with('@') || rest.starts_with('=') || rest.starts_with(":=")
}

/// The brace expansions (`{a,b}`, `{1..9}`) of a word from its first `{` on, each with the place
/// behind it, by where they begin. One look finds all: braces that are never closed are many.
fn pairs(chars: &[char], from: usize) -> Vec<(usize, usize)> {
    work::add(chars.len().saturating_sub(from));
    // What is open: where, and whether it says several things.
    let mut open: Vec<(usize, bool)> = Vec::new();
    let mut found = Vec::new();
    let mut i = from;
    while let Some(&c) = chars.get(i) {
        let next = chars.get(i + 1);
        i = match (c, next) {
            ('\\', _) => i + 2,
            ('\'', _) => skip::single(chars, i),
            ('"', _) => skip::double(chars, i),
            ('$', Some('\'')) => skip::ansi(chars, i + 1),
            ('$' | '`', _) | ('<' | '>', Some('(')) => skip::bracketed(chars, i),
            ('{', _) => {
                open.push((i, false));
                i + 1
            }
            ('}', _) => {
                if let Some((at, several)) = open.pop()
                    && several
                {
                    found.push((at, i + 1));
                    if let Some(around) = open.last_mut() {
                        around.1 = true;
                    }
                }
                i + 1
            }
            (',', _) | ('.', Some('.')) => {
                if let Some(innermost) = open.last_mut() {
                    innermost.1 = true;
                }
                i + if c == '.' { 2 } else { 1 }
            }
            _ => i + 1,
        };
    }
    found.sort_unstable();
    found
}

fn end_of(pairs: &[(usize, usize)], at: usize) -> Option<usize> {
    let found = pairs.binary_search_by_key(&at, |pair| pair.0).ok()?;
    pairs.get(found).map(|pair| pair.1)
}

/// What stands between `$'` and `'`.
fn ansi_c(chars: &[char]) -> String {
    let mut out = String::new();
    let mut i = 0;
    // Bytes above 0x7f by escape are rare and never part of a program's name; they stand as the
    // character of that number.
    while let Some(&c) = chars.get(i) {
        if c != '\\' {
            out.push(c);
            i += 1;
            continue;
        }
        let (value, width) = match chars.get(i + 1) {
            Some('x') => number(chars, i + 2, 16, 2),
            Some('u') => number(chars, i + 2, 16, 4),
            Some('U') => number(chars, i + 2, 16, 8),
            Some('0'..='7') => {
                let (value, digits) = number(chars, i + 1, 8, 3);
                (value, digits.saturating_sub(1))
            }
            Some('c') => (chars.get(i + 2).map(|c| (*c as u32) & 0x1f), 1),
            Some(&c) => (Some(simple(c) as u32), 0),
            None => (Some('\\' as u32), 0),
        };
        match value.and_then(char::from_u32) {
            Some(c) => out.push(c),
            None => out.extend(chars.get(i + 1)),
        }
        i += 2 + width;
    }
    out
}

fn number(chars: &[char], at: usize, radix: u32, most: usize) -> (Option<u32>, usize) {
    let (mut value, mut digits) = (0u32, 0usize);
    while digits < most {
        let Some(d) = chars.get(at + digits).and_then(|c| c.to_digit(radix)) else {
            break;
        };
        value = value.saturating_mul(radix).saturating_add(d);
        digits += 1;
    }
    ((digits > 0).then_some(value), digits)
}

fn simple(c: char) -> char {
    match c {
        'a' => '\x07',
        'b' => '\x08',
        'e' | 'E' => '\x1b',
        'f' => '\x0c',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\x0b',
        other => other,
    }
}
