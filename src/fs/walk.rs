//! Walking folders: what the project ignores is left out, links are not followed.

use std::path::{Path, PathBuf};

use ignore::WalkBuilder;

use super::FsError;
use crate::permission::{Action, Grant};

/// Entries that one walk looks at. Past it the walk ends and says that it did.
pub const MAX_SEEN: usize = 1_000_000;

/// A folder that may be walked, and what of it stays unseen.
#[derive(Clone, Copy)]
pub struct Scope<'a> {
    folder: &'a Path,
    /// Files whose content asks on reading (secrets): a search passes them by.
    private: fn(&Path) -> bool,
    /// What lies beneath the folder and is not entered.
    closed: &'a [PathBuf],
}

impl std::fmt::Debug for Scope<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Scope").field(&self.folder).finish()
    }
}

impl<'a> Scope<'a> {
    /// What the grant lets be walked.
    ///
    /// # Errors
    /// When the grant does not name the folder.
    pub fn new(
        grant: &'a Grant,
        folder: &'a Path,
        private: fn(&Path) -> bool,
    ) -> Result<Self, FsError> {
        match &grant.request().action {
            Action::Read { paths } if paths.iter().any(|named| folder.starts_with(named)) => {
                Ok(Self {
                    folder,
                    private,
                    closed: grant.closed(),
                })
            }
            _ => Err(FsError::NotJudged(folder.to_owned())),
        }
    }

    pub fn folder(&self) -> &Path {
        self.folder
    }

    pub(super) fn hides(&self, path: &Path) -> bool {
        (self.private)(path)
    }

    /// The walk: hidden files are in, `.git`, what is ignored and what is closed are out.
    pub(super) fn builder(&self, depth: Option<usize>) -> WalkBuilder {
        let mut builder = WalkBuilder::new(self.folder);
        let closed = self.closed.to_vec();
        builder
            .hidden(false)
            .follow_links(false)
            .require_git(false)
            .max_depth(depth)
            .filter_entry(move |entry| {
                entry.file_name() != ".git" && !closed.iter().any(|path| path == entry.path())
            });
        builder
    }
}

/// One line of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub depth: usize,
    pub name: String,
    pub kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    Folder,
    File { size: u64 },
    Link { to: PathBuf },
    Other,
}

/// The tree under a folder, folders before files, by name; and how many entries were left out.
pub fn tree(scope: Scope<'_>, depth: usize, most: usize) -> Result<(Vec<Entry>, usize), FsError> {
    if !scope.folder.is_dir() {
        return Err(if scope.folder.exists() {
            FsError::NotFolder(scope.folder.to_owned())
        } else {
            FsError::Missing(scope.folder.to_owned())
        });
    }
    let mut builder = scope.builder(Some(depth));
    builder
        .sort_by_file_path(|a, b| (!a.is_dir(), a.file_name()).cmp(&(!b.is_dir(), b.file_name())));
    let mut entries = Vec::new();
    let mut left_out = 0;
    for found in builder
        .build()
        .filter_map(Result::ok)
        .skip(1)
        .take(MAX_SEEN)
    {
        if entries.len() == most {
            left_out += 1;
            continue;
        }
        let kind = match found.file_type() {
            Some(t) if t.is_dir() => Kind::Folder,
            Some(t) if t.is_symlink() => Kind::Link {
                to: found.path().read_link().unwrap_or_default(),
            },
            Some(t) if t.is_file() => Kind::File {
                size: found.metadata().map_or(0, |about| about.len()),
            },
            _ => Kind::Other,
        };
        entries.push(Entry {
            depth: found.depth() - 1,
            name: found.file_name().to_string_lossy().into_owned(),
            kind,
        });
    }
    Ok((entries, left_out))
}

/// Files whose path under the folder matches the glob, newest change first; and how many matched
/// beyond `most`.
///
/// # Errors
/// In words, when the glob cannot be read.
pub fn glob(scope: Scope<'_>, pattern: &str, most: usize) -> Result<(Vec<PathBuf>, usize), String> {
    let matcher = matcher(pattern)?;
    let mut found = Vec::new();
    for entry in scope
        .builder(None)
        .build()
        .filter_map(Result::ok)
        .take(MAX_SEEN)
    {
        if !entry.file_type().is_some_and(|t| t.is_file()) {
            continue;
        }
        let Ok(under) = entry.path().strip_prefix(scope.folder) else {
            continue;
        };
        if matcher.is_match(under) {
            let changed = entry
                .metadata()
                .ok()
                .and_then(|about| about.modified().ok());
            found.push((changed, under.to_owned()));
        }
    }
    found.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    let left_out = found.len().saturating_sub(most);
    found.truncate(most);
    Ok((found.into_iter().map(|(_, path)| path).collect(), left_out))
}

/// A glob in which `*` stays inside a folder. One without a slash matches at any depth.
pub(super) fn matcher(pattern: &str) -> Result<globset::GlobMatcher, String> {
    let pattern = pattern.trim_start_matches("./");
    let pattern = if pattern.contains('/') {
        pattern.to_owned()
    } else {
        format!("**/{pattern}")
    };
    globset::GlobBuilder::new(&pattern)
        .literal_separator(true)
        .build()
        .map(|glob| glob.compile_matcher())
        .map_err(|error| format!("the glob cannot be read: {error}"))
}
