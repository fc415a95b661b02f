//! Bash text, read into what it would run: invocations, assignments, redirections, doubts.
//!
//! Two readers with opposite bias. [`read`] is the strict one: tree-sitter gives the structure,
//! an own dequoter gives the words, and whatever it does not understand in full is a [`Doubt`]; a
//! yes may rest only on it. [`greedy`] is the wide one: an own tokenizer that finds every literal
//! command at any depth, also in text that the strict reader refuses; a no may rest on either.
//! Not here: what any of it means (`permission`).

mod greedy;
mod lower;
mod payload;
mod plain;
mod screen;
mod skip;
mod word;
pub(crate) mod work;
mod wrappers;

pub use greedy::{Found, greedy, shown};
pub use lower::read;
pub use payload::{Inner, inner};
pub use plain::plain;
pub use screen::{MAX_BYTES, MAX_NESTING, nesting, screen};
pub use word::{Dynamic, Word};

/// How deep payloads (`sh -c`, `eval`, …) are followed. Deeper is a doubt.
pub const MAX_DEPTH: u8 = 8;

/// How many invocations one text may come to. More is a doubt (and the rest is not looked at by
/// the strict reader).
pub const MAX_INVOCATIONS: usize = 2_000;

/// What one text would run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// In source order; what one runs stands behind it and names it in `by`.
    pub invocations: Vec<Invocation>,
    /// Assignments that stand alone: `X=1`.
    pub assignments: Vec<Assignment>,
    pub redirects: Vec<Redirect>,
    /// Functions and aliases that the text itself defines: their names mean nothing any more.
    pub defined: Vec<String>,
    pub doubts: Vec<Doubt>,
}

/// One simple command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invocation {
    /// The program and its arguments. Never empty.
    pub words: Vec<Word>,
    pub assignments: Vec<Assignment>,
    /// As written, cut to what a person can read.
    pub segment: String,
    /// How many payloads deep it stands.
    pub depth: u8,
    /// The invocation that would run this one (a wrapper, a shell, `find -exec`).
    pub by: Option<usize>,
    /// Whether other arguments follow that the text does not say (`xargs`, `find -exec … +`).
    pub open_ended: bool,
    /// Whether it runs something else that was found in full (it is then judged by that).
    pub transparent: bool,
}

impl Invocation {
    /// The program's name where it is literal.
    pub fn program(&self) -> Option<&str> {
        self.words.first().and_then(Word::literal)
    }
}

/// `NAME=value`, `NAME+=value`, `NAME[…]=value`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    pub name: String,
    pub value: Word,
    pub segment: String,
}

/// A redirection to or from a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirect {
    pub target: Word,
    pub writes: bool,
    pub segment: String,
}

/// Why a text is not understood in full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doubt {
    pub kind: DoubtKind,
    pub segment: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DoubtKind {
    /// Characters that are not what they look like.
    Hidden,
    /// Not bash that we can read.
    Syntax,
    /// Nothing in it would run.
    Empty,
    /// Nested or repeated past the bound.
    Bound,
    /// The program's name is made at run time.
    Program,
    /// The text of a command is made at run time (`eval "$x"`, `sh -c "$x"`).
    Payload,
    /// A builtin evaluates a subscript in an operand: `test -v 'a[$(…)]'`.
    Subscript,
    /// An expansion that evaluates its value: `${x@P}`, `${!x}`.
    Transform,
}

impl DoubtKind {
    /// The doubt in words for a person.
    pub fn words(self) -> &'static str {
        match self {
            Self::Hidden => "it holds characters that are not what they look like",
            Self::Syntax => "it cannot be read in full",
            Self::Empty => "nothing in it is a command",
            Self::Bound => "it is nested or repeated too often to be read",
            Self::Program => "the name of a program in it is only made when it runs",
            Self::Payload => "a command in it is only made when it runs",
            Self::Subscript => "it may run what stands inside square brackets",
            Self::Transform => "it uses an expansion that can run what it expands",
        }
    }
}

/// A text cut to what fits in a question: at most 400 characters.
pub(crate) fn segment(text: &str) -> String {
    const MOST: usize = 400;
    let text = text.trim();
    match text.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
