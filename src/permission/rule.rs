//! Rules: a stored or session yes (or a no), and what of a command one covers.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{BoxKind, Context, Origin};
use crate::clock;
use crate::ids::{self, SessionId};
use crate::shell::{Dynamic, Invocation};
use crate::spec::permission::permission;
use crate::store::device::rules::RuleRow;
use crate::store::item::Scope;

/// A stored or session yes (or no), bound to a folder, an origin and the command it came from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rule {
    pub id: String,
    /// When the person said it, milliseconds since the epoch.
    pub made: i64,
    /// What it says; the shape is this module's own.
    pub data: serde_json::Value,
}

impl From<RuleRow> for Rule {
    fn from(row: RuleRow) -> Self {
        Self {
            id: row.id,
            made: row.made,
            data: row.data,
        }
    }
}

/// What [`Rule::data`] holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Terms {
    pub(super) allow: bool,
    pub(super) cwd: PathBuf,
    pub(super) origin: Origin,
    /// Only in this session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) session: Option<SessionId>,
    /// `read`, `roots`, `open`: the widest box it speaks of.
    #[serde(rename = "box")]
    pub(super) kind: String,
    pub(super) patterns: Vec<Pattern>,
    /// The command or path it was made from.
    pub(super) from: String,
}

/// What one part of a request must be for a rule to cover it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum Pattern {
    /// Any call whose naming words are these.
    Prefix { words: Vec<String> },
    /// Exactly this call.
    Exact { words: Vec<String> },
    /// Changes to this file.
    File { path: PathBuf },
    /// Reads in this folder.
    Folder { path: PathBuf },
}

impl Rule {
    pub(super) fn of(terms: &Terms) -> Self {
        let data = serde_json::to_value(terms).unwrap_or_default();
        Self {
            id: ids::random_hex(8),
            made: clock::now_ms(),
            data,
        }
    }

    /// A no of the person: calls that begin with these words are refused in a folder, wherever
    /// the session comes from.
    pub fn refuse(words: &[String], cwd: &Path) -> Self {
        Self::of(&Terms {
            allow: false,
            cwd: cwd.to_path_buf(),
            origin: Origin::Local,
            session: None,
            kind: BoxKind::Open.word().to_owned(),
            patterns: vec![Pattern::Prefix {
                words: words.to_vec(),
            }],
            from: words.join(" "),
        })
    }

    pub(super) fn terms(&self) -> Option<Terms> {
        serde_json::from_value(self.data.clone()).ok()
    }

    /// Narrows a rule that was made for any scope to the one that was chosen.
    pub(super) fn of_scope(mut self, scope: Scope) -> Self {
        if scope == Scope::Always
            && let Some(object) = self.data.as_object_mut()
        {
            object.remove("session");
        }
        self
    }

    /// What it covers, in words.
    pub fn words(&self) -> String {
        self.terms()
            .map(|t| {
                if t.allow {
                    super::words::covers(&t.patterns, &t.kind, t.session.is_some())
                } else {
                    super::words::refuses(&t.patterns)
                }
            })
            .unwrap_or_default()
    }

    /// Whether it allows; one that refuses is a no of the person.
    pub fn allows(&self) -> bool {
        self.terms().is_some_and(|t| t.allow)
    }

    /// The command or path that it was made from.
    pub fn made_from(&self) -> String {
        self.terms().map(|t| t.from).unwrap_or_default()
    }

    /// Whether it counts only in the session it was made in.
    pub fn is_session(&self) -> bool {
        self.terms().is_some_and(|t| t.session.is_some())
    }

    /// The folder it is bound to.
    pub fn folder(&self) -> Option<PathBuf> {
        self.terms().map(|t| t.cwd)
    }

    /// On whose word it was made.
    pub fn origin(&self) -> Option<Origin> {
        self.terms().map(|t| t.origin)
    }
}

impl Terms {
    /// Whether an allowing rule speaks of requests from there.
    pub(super) fn applies(&self, cwd: &Path, context: &Context) -> bool {
        self.allow
            && self.cwd == cwd
            && self.origin == context.origin
            && self.session.as_ref().is_none_or(|s| *s == context.session)
    }

    /// Whether a yes to a box of that kind is a yes to this one. A yes to a watch command, whose
    /// disk is read-only whatever it needs, is one to watch commands alone.
    pub(super) fn covers_box(&self, kind: BoxKind, watch: bool) -> bool {
        if self.kind == WATCH {
            return watch;
        }
        let rank = |word: &str| match word {
            "read" => 0,
            "roots" => 1,
            _ => 2,
        };
        rank(kind.word()) <= rank(&self.kind)
    }
}

impl Pattern {
    /// Whether it covers everything that the wanted pattern stands for.
    pub(super) fn covers(&self, wanted: &Wanted) -> bool {
        match (self, wanted) {
            (Self::Exact { words }, Wanted::Call { argv, .. }) => argv.as_ref() == Some(words),
            (Self::Prefix { words }, Wanted::Call { naming, .. }) => naming.starts_with(words),
            (Self::File { path }, Wanted::File(file)) => path == file,
            (Self::Folder { path }, Wanted::Read(file)) => file.starts_with(path),
            _ => false,
        }
    }
}

/// The kind of a rule for watch commands.
pub(super) const WATCH: &str = "watch";

/// What a part of a request wants, as far as rules can speak of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    Call {
        /// All words, where none is made at run time.
        argv: Option<Vec<String>>,
        /// The words up to the first flag.
        naming: Vec<String>,
    },
    File(PathBuf),
    Read(PathBuf),
}

/// What an invocation wants, or none where only a yes to this once can be given: words made at
/// run time, settings of variables, code in the arguments, a payload.
pub(super) fn wanted(invocation: &Invocation) -> Option<Wanted> {
    let harmless = invocation
        .assignments
        .iter()
        .all(|a| permission().defaults.variables.harmless.contains(&a.name));
    if invocation.depth > 0 || invocation.open_ended || !harmless {
        return None;
    }
    let mut naming = Vec::new();
    let mut named = false;
    let mut argv = Some(Vec::new());
    for word in &invocation.words {
        // A glob is remembered as it is written.
        let text = word.dynamic.is_none().then(|| word.text().to_owned());
        match (&text, word.dynamic) {
            (None, Some(Dynamic::Parameter | Dynamic::Brace | Dynamic::Arithmetic)) => argv = None,
            (None, _) => return None,
            (Some(text), _) => {
                if let Some(argv) = &mut argv {
                    argv.push(text.clone());
                }
            }
        }
        named |= text
            .as_ref()
            .is_none_or(|t| t.starts_with(['-', '+']) || word.is_glob());
        if let Some(text) = text
            && !named
        {
            naming.push(text);
        }
    }
    let literal: Vec<String> = invocation
        .words
        .iter()
        .map(|w| w.text().to_owned())
        .collect();
    if code_argument(&literal) {
        return None;
    }
    let wanted = Wanted::Call { argv, naming };
    pattern(&wanted).map(|_| wanted)
}

/// An interpreter or shell with code among its arguments.
fn code_argument(argv: &[String]) -> bool {
    let name = argv.first().map(|p| p.rsplit('/').next().unwrap_or(p));
    let interprets = name.is_some_and(|n| {
        matches!(
            n,
            "sh" | "bash"
                | "dash"
                | "zsh"
                | "ksh"
                | "fish"
                | "node"
                | "nodejs"
                | "ruby"
                | "perl"
                | "php"
                | "lua"
                | "osascript"
                | "pwsh"
                | "awk"
                | "gawk"
                | "eval"
                | "trap"
                | "deno"
        ) || n.starts_with("python")
            || n.starts_with("pypy")
    });
    interprets
        && argv.iter().skip(1).any(|a| {
            a.starts_with('-') && !a.starts_with("--") && a.contains(['c', 'e', 'r', 'p', 'E'])
                || a == "--eval"
                || a == "--print"
        })
        || matches!(name, Some("eval" | "trap" | "source" | "." | "alias"))
}

/// The widest pattern that an "always" makes of what was wanted; none where its words are only
/// made at run time and no prefix of them names it.
pub(super) fn pattern(wanted: &Wanted) -> Option<Pattern> {
    match wanted {
        Wanted::File(path) => Some(Pattern::File { path: path.clone() }),
        Wanted::Read(path) => Some(Pattern::Folder {
            path: if path.is_dir() {
                path.clone()
            } else {
                path.parent().unwrap_or(path).to_path_buf()
            },
        }),
        Wanted::Call { argv, naming } => match arity(naming) {
            Some(count) => Some(Pattern::Prefix {
                words: naming.iter().take(count).cloned().collect(),
            }),
            None => argv.clone().map(|words| Pattern::Exact { words }),
        },
    }
}

/// How many of the words name the command; none where only the whole does.
fn arity(naming: &[String]) -> Option<usize> {
    let table = &permission().arity;
    for length in (1..=naming.len().min(3)).rev() {
        let key = naming.get(..length)?.join(" ");
        if table.exact_only.contains(&key) {
            return None;
        }
    }
    for length in (1..=naming.len().min(3)).rev() {
        let key = naming.get(..length)?.join(" ");
        for (count, prefixes) in table.words.iter().rev() {
            if prefixes.contains(&key) {
                let count: usize = count.parse().ok()?;
                // A flag stands before the last naming word: which command it is, is not told.
                return (naming.len() >= count).then_some(count);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(text: &str) -> Option<Pattern> {
        let script = crate::shell::read(text);
        wanted(script.invocations.first()?).and_then(|w| pattern(&w))
    }

    fn prefix(words: &str) -> Option<Pattern> {
        Some(Pattern::Prefix {
            words: words.split(' ').map(str::to_owned).collect(),
        })
    }

    #[test]
    fn always_covers_the_naming_words_and_no_more() {
        assert_eq!(
            made("cargo test parser::x -- --exact"),
            prefix("cargo test")
        );
        assert_eq!(made("npm run build"), prefix("npm run build"));
        assert_eq!(made("pytest -x tests"), prefix("pytest"));
        for exact in [
            "rtk git push",
            "git push origin main",
            "make -j4",
            "python3 manage.py migrate",
            "kubectl -n prod get pods",
            "cargo +nightly test",
            "./run.sh a",
            "npx tsc",
        ] {
            assert!(
                matches!(made(exact), Some(Pattern::Exact { .. })),
                "{exact}"
            );
        }
        for once in [
            "python3 -c 'x'",
            "cargo test $(x)",
            "make $X",
            "A=1 cargo test",
            "bash -lc 'x'",
            "eval x",
        ] {
            assert_eq!(made(once), None, "{once}");
        }
    }

    #[test]
    fn a_prefix_covers_only_calls_that_begin_so() {
        let rule = prefix("cargo test").unwrap();
        let covers = |text: &str| {
            let script = crate::shell::read(text);
            wanted(&script.invocations[0]).is_some_and(|w| rule.covers(&w))
        };
        assert!(covers("cargo test --lib"));
        assert!(!covers("cargo --config x test"));
        assert!(!covers("cargo testx"));
        assert!(!covers("cargo build"));
    }
}
