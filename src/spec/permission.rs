//! `spec/permission/*.json` as types: the floor, the modes, arity, defaults, options.

use std::collections::{BTreeMap, HashSet};
use std::sync::LazyLock;

use serde::Deserialize;

/// Everything under `spec/permission/`.
#[derive(Debug)]
pub struct Permission {
    pub hardline: Hardline,
    pub modes: Modes,
    pub arity: Arity,
    pub options: Options,
    pub defaults: Defaults,
}

/// The data as it is embedded, parsed once.
pub fn permission() -> &'static Permission {
    static PARSED: LazyLock<Permission> = LazyLock::new(|| {
        tracing::debug!("permissions are parsed");
        Permission {
            hardline: parse(include_str!("../../spec/permission/hardline.json")),
            modes: parse(include_str!("../../spec/permission/modes.json")),
            arity: parse(include_str!("../../spec/permission/arity.json")),
            options: parse(include_str!("../../spec/permission/options.json")),
            defaults: parse(include_str!("../../spec/permission/defaults.json")),
        }
    });
    &PARSED
}

#[expect(
    clippy::panic,
    reason = "the text is part of the program, and a test parses it"
)]
fn parse<T: for<'a> Deserialize<'a>>(text: &str) -> T {
    match serde_json::from_str(text) {
        Ok(parsed) => parsed,
        Err(error) => panic!("spec/permission: {error}"),
    }
}

#[derive(Debug, Deserialize)]
pub struct Hardline {
    pub commands: Vec<Floor>,
    pub protected: Vec<Protected>,
    pub git: GitKept,
}

/// One class of commands that nothing releases. Patterns may end in `*`.
#[derive(Debug, Deserialize)]
pub struct Floor {
    pub id: String,
    #[serde(default)]
    pub programs: Vec<String>,
    /// Operands that are these paths in any spelling.
    #[serde(default)]
    pub paths: Vec<String>,
    /// Any argument.
    #[serde(default)]
    pub arguments: Vec<String>,
    /// The last argument.
    #[serde(default)]
    pub last: Vec<String>,
    /// Targets of redirections that write.
    #[serde(default)]
    pub redirects: Vec<String>,
    /// A function that starts itself in the background.
    #[serde(default)]
    pub bomb: bool,
    /// Why, as the end of a sentence.
    pub text: String,
}

#[derive(Debug, Deserialize)]
pub struct Protected {
    pub path: String,
    #[serde(rename = "where")]
    pub place: Place,
    pub access: Access,
    #[serde(default)]
    pub folder: bool,
    /// Covered in the box when it is missing.
    #[serde(default)]
    pub cover: bool,
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// At any depth of any folder.
    Anywhere,
    Absolute,
    Home,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// May be read, not written.
    Write,
    /// Neither read nor written.
    All,
    /// Written only after a question.
    Instructions,
    /// Only covered in the box when missing.
    None,
}

#[derive(Debug, Deserialize)]
pub struct GitKept {
    pub kept: Vec<String>,
}

#[derive(Debug, Deserialize)]
pub struct Modes {
    pub modes: BTreeMap<String, Row>,
    pub classes: BTreeMap<String, String>,
}

/// What one mode does with each class of risk.
#[derive(Clone, Debug, Deserialize)]
pub struct Row {
    pub name: String,
    pub read_inside: Does,
    pub read_outside: Does,
    pub write_inside: Does,
    pub write_outside: Does,
    pub execute_boxed: Does,
    pub execute_open: Does,
    pub interact: Does,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Does {
    Allow,
    Ask,
    Refuse,
    /// Allowed to a local session, asked about in one that came over the link.
    RemoteAsk,
}

#[derive(Debug, Deserialize)]
pub struct Arity {
    /// Number of naming words → prefixes.
    pub words: BTreeMap<String, Vec<String>>,
    pub exact_only: HashSet<String>,
    pub runs_changeable_code: HashSet<String>,
}

#[derive(Debug, Deserialize)]
pub struct Options {
    pub writers: BTreeMap<String, Writer>,
    pub open: OpenPrograms,
    pub git_writes: HashSet<String>,
    pub elevating: HashSet<String>,
}

#[derive(Debug, Deserialize)]
pub struct OpenPrograms {
    pub programs: BTreeMap<String, Vec<String>>,
}

/// Which words of a program's call name what it changes.
#[derive(Debug, Deserialize)]
pub struct Writer {
    pub operands: Operands,
    #[serde(default)]
    pub options: Vec<String>,
    /// Only when one of these options is there.
    #[serde(default)]
    pub when: Vec<String>,
    /// Options that take the place of the first operand; their value is the next word.
    #[serde(default)]
    pub script: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operands {
    All,
    Last,
    Rest,
    None,
}

#[derive(Debug, Deserialize)]
pub struct Defaults {
    /// Free to read; `~` is the home folder.
    pub free: Vec<String>,
    /// Private to each command that runs in the box.
    pub private: Vec<String>,
    pub secrets: Secrets,
    pub variables: Variables,
    pub read: BTreeMap<String, Reader>,
}

#[derive(Debug, Deserialize)]
pub struct Secrets {
    pub names: Vec<String>,
    pub except: Vec<String>,
}

#[derive(Debug, Deserialize)]
pub struct Variables {
    pub harmless: HashSet<String>,
    pub grave: HashSet<String>,
    pub grave_starts: Vec<String>,
}

/// A command that only reads, and what ends its innocence.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Reader {
    /// What its operands are.
    pub operands: ReaderOperands,
    /// Options with which it is no read; long ones in any abbreviation.
    pub gated: Vec<String>,
    /// The only options that it may have.
    pub only: Option<Vec<String>>,
    /// It is a read only with one of these.
    pub needs: Vec<String>,
    /// Options whose value is the next word.
    pub takes: Vec<String>,
    /// Of these the value is no path.
    pub text: Vec<String>,
    /// Options that give the pattern, so that the first operand is a path.
    pub pattern: Vec<String>,
    /// The most operands.
    pub most: Option<usize>,
    /// The program has a reader of its own in `permission::programs`.
    pub check: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReaderOperands {
    #[default]
    Paths,
    /// The first is a pattern, the others are paths.
    Pattern,
    /// None is a path.
    Text,
    /// Names of variables: no subscripts.
    Names,
    /// Expressions of `test`.
    Tests,
}
