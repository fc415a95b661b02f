//! Where the paths of a command lie, and what stands against reading or writing them.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::super::{git, paths};
use super::{Effect, Finding, Part};
use crate::shell::Word;
use crate::spec::permission::Access;

/// Where paths are looked at from.
#[derive(Debug)]
pub(in crate::permission) struct Ground<'a> {
    pub(in crate::permission) cwd: &'a Path,
    pub(in crate::permission) roots: &'a [PathBuf],
    pub(in crate::permission) home: &'a Path,
    pub(in crate::permission) own: &'a [PathBuf],
    pub(in crate::permission) free: &'a [PathBuf],
    pub(in crate::permission) private: &'a [PathBuf],
    pub(in crate::permission) released: &'a [PathBuf],
    /// Trusted folders of programs.
    pub(in crate::permission) path: &'a [PathBuf],
    pub(in crate::permission) looks: Looks,
}

/// Looks at the disk for one judgement. What was seen once is not looked at again.
#[derive(Debug)]
pub(in crate::permission) struct Looks {
    left: Cell<usize>,
    real: RefCell<HashMap<PathBuf, PathBuf>>,
    starts: RefCell<HashMap<PathBuf, Option<String>>>,
}

impl Default for Looks {
    fn default() -> Self {
        Self {
            left: Cell::new(MOST_LOOKS),
            real: RefCell::default(),
            starts: RefCell::default(),
        }
    }
}

/// So many looks at the disk are made for one command: one a path that is there, one more for each
/// of its parts that is missing. A command that names more is not understood in full, and paths
/// that are left are not looked at.
const MOST_LOOKS: usize = 1_000;

/// What looking for a repository and reading its settings counts for.
const REPOSITORY: usize = 10;

/// Where a literal path lies.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Lies {
    Inside(PathBuf),
    Free,
    /// In a folder that each boxed command has for itself.
    Private,
    Outside(PathBuf),
}

/// The folders that a relative path may be meant from: every `cd` adds to them.
pub(super) struct Places {
    pub(super) at: Vec<PathBuf>,
    /// A `cd` went where the text does not say.
    pub(super) unknown: bool,
    /// No more places are taken in.
    full: bool,
}

impl Places {
    pub(super) fn of(ground: &Ground<'_>) -> Self {
        Self {
            at: vec![ground.cwd.to_path_buf()],
            unknown: false,
            full: false,
        }
    }

    pub(super) fn enter(&mut self, word: Option<&Word>, ground: &Ground<'_>) {
        // Twice doubled is more than honest scripts need.
        const MOST: usize = 16;
        if self.full {
            return;
        }
        let Some(to) = word.and_then(|w| literal(w, ground)) else {
            self.unknown = true;
            return;
        };
        let more: Vec<_> = self
            .at
            .iter()
            .map(|at| paths::spelled(&at.join(&to)))
            .collect();
        for place in more {
            if !self.at.contains(&place) {
                self.at.push(place);
            }
        }
        if self.at.len() > MOST {
            self.at.truncate(MOST);
            self.unknown = true;
            self.full = true;
        }
    }
}

/// A word as a path, where it is known: `~`, `$HOME` and `$PWD` are put in.
pub(super) fn literal(word: &Word, ground: &Ground<'_>) -> Option<PathBuf> {
    if let Some(text) = word.literal() {
        return Some(if word.tilde {
            paths::at_home(text, ground.home)
        } else {
            PathBuf::from(text)
        });
    }
    if !word.raw.contains("HOME") && !word.raw.contains("PWD") {
        return None;
    }
    let home = ground.home.to_str()?;
    let cwd = ground.cwd.to_str()?;
    let raw = word
        .raw
        .replace("${HOME}", home)
        .replace("$HOME", home)
        .replace("${PWD}", cwd)
        .replace("$PWD", cwd);
    Word::read(&raw).literal().map(PathBuf::from)
}

impl Ground<'_> {
    /// Where a path really is. When too much was looked at already: as it is spelled.
    pub(super) fn real(&self, path: &Path) -> PathBuf {
        if let Some(known) = self.looks.real.borrow().get(path) {
            return known.clone();
        }
        let mut left = self.looks.left.get();
        let found = paths::resolve_within(path, &mut left);
        self.looks.left.set(left);
        let found = found.unwrap_or_else(|| paths::spelled(path));
        let mut real = self.looks.real.borrow_mut();
        real.insert(path.to_path_buf(), found.clone());
        found
    }

    /// What the settings of the repository around a folder start.
    pub(super) fn starts(&self, folder: &Path) -> Option<String> {
        if let Some(known) = self.looks.starts.borrow().get(folder) {
            return known.clone();
        }
        let left = self.looks.left.get();
        self.looks.left.set(left.saturating_sub(REPOSITORY));
        let found = if left == 0 { None } else { git::starts(folder) };
        let mut starts = self.looks.starts.borrow_mut();
        starts.insert(folder.to_path_buf(), found.clone());
        found
    }

    /// Whether more would have to be looked at than is: the command is then not understood.
    pub(super) fn overlooks(&self) -> bool {
        self.looks.left.get() == 0
    }

    fn lies(&self, path: &Path) -> Lies {
        let real = self.real(path);
        if paths::beneath(&real, self.roots) {
            Lies::Inside(real)
        } else if paths::beneath(path, self.private) && paths::beneath(&real, self.private) {
            Lies::Private
        } else if paths::beneath(&real, self.free) || real == Path::new("/") {
            Lies::Free
        } else {
            Lies::Outside(real)
        }
    }

    pub(super) fn released(&self, path: &Path) -> bool {
        paths::beneath(path, self.released) && !paths::beneath(path, self.own)
    }
}

/// Checks that a path may be read; what stands against it goes into the part.
pub(super) fn read(path: &Path, part: &mut Part, ground: &Ground<'_>) {
    let lies = ground.lies(path);
    let real = match &lies {
        Lies::Inside(real) | Lies::Outside(real) => real.clone(),
        _ => ground.real(path),
    };
    if let Some(hit) = paths::protected(&real, ground.home, ground.own)
        && hit.access == Access::All
        && !ground.released(&real)
    {
        part.findings.push(Finding::Protected {
            path: real,
            text: hit.text,
            read: true,
        });
        return;
    }
    match lies {
        Lies::Inside(real) if paths::secret_name(&real) => {
            part.findings.push(Finding::Secret { path: real });
        }
        Lies::Outside(real) => part.read_outside.push(real),
        _ => {}
    }
}

/// Checks that a path may be written.
pub(super) fn write(path: &Path, part: &mut Part, ground: &Ground<'_>) {
    let lies = ground.lies(path);
    let real = match &lies {
        Lies::Inside(real) | Lies::Outside(real) => real.clone(),
        _ => ground.real(path),
    };
    // Also by its spelling: a link at a protected name is still that name.
    let spelled = paths::spelled(path);
    for real in [&real, &spelled] {
        let Some(hit) = paths::protected(real, ground.home, ground.own) else {
            continue;
        };
        if ground.released(real) {
            continue;
        }
        // The temporary folder is private to the command, whatever names lie in it.
        if lies == Lies::Private {
            continue;
        }
        part.findings.push(match hit.access {
            Access::Instructions => Finding::Instructions { path: real.clone() },
            access => Finding::Protected {
                path: real.clone(),
                text: hit.text,
                read: access == Access::All,
            },
        });
        break;
    }
    part.raise(Effect::Boxed);
    match lies {
        Lies::Outside(real) => {
            part.write_outside = Some(real);
            part.raise(Effect::Open);
        }
        Lies::Free => {
            part.write_outside = Some(real);
            part.raise(Effect::Open);
        }
        Lies::Inside(_) | Lies::Private => {}
    }
}

/// Every place that a word can mean as a path.
pub(super) fn meant(word: &Word, ground: &Ground<'_>, places: &Places) -> Vec<PathBuf> {
    if ground.overlooks() {
        return Vec::new();
    }
    let path = literal(word, ground).or_else(|| {
        // Of a glob or a word with holes the known beginning, up to the last slash.
        let start = word.start();
        let end = start.rfind('/')?;
        let folder = start.get(..=end)?;
        Some(if word.tilde {
            paths::at_home(folder, ground.home)
        } else {
            PathBuf::from(folder)
        })
    });
    let Some(path) = path else { return Vec::new() };
    if path.is_absolute() {
        return vec![path];
    }
    places.at.iter().map(|at| at.join(&path)).collect()
}

pub(super) fn read_word(word: &Word, part: &mut Part, ground: &Ground<'_>, places: &Places) {
    let known = literal(word, ground);
    if known.is_none() && (word.dynamic.is_some()) {
        part.sealed = true;
    }
    if places.unknown && known.as_ref().is_none_or(|p| p.is_relative()) {
        part.sealed = true;
    }
    for path in meant(word, ground, places) {
        read(&path, part, ground);
    }
}

pub(super) fn write_word(word: &Word, part: &mut Part, ground: &Ground<'_>, places: &Places) {
    part.raise(Effect::Boxed);
    let names = word.text();
    for path in meant(word, ground, places) {
        write(&path, part, ground);
    }
    // A glob or hole in a protected name's place: `.git*`, `.git/$x`.
    if literal(word, ground).is_none() && names.contains(".git/") {
        part.findings.push(Finding::Protected {
            path: PathBuf::from(names),
            text: "the repository's own files",
            read: false,
        });
    }
}
