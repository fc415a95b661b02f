//! Changing `config.toml` by our own commands, with its comments, order and spacing kept.

mod draft;

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use toml_edit::{Array, DocumentMut, Item, Table, Value};

use super::{Approvals, Config, ConfigError, Mode, Paths, files, load};
use crate::text::path;

pub use draft::Draft;

/// A change to the settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    AddRoot(PathBuf),
    RemoveRoot(PathBuf),
    MaxMode(Mode),
    Approvals(Approvals),
    Scheduled(bool),
    Paused(bool),
}

/// Why the settings could not be changed.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("{} cannot be written", path.display())]
    Write {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{} has {key} in a form that cannot be changed by a command", path.display())]
    Form { path: PathBuf, key: &'static str },
    #[error("{} was changed by another while it was edited", path.display())]
    Moved { path: PathBuf, draft: PathBuf },
}

/// What a change came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edited {
    /// The settings as the file now says them.
    pub config: Config,
    /// False when the file said so already.
    pub changed: bool,
}

const HEADER: &str = "# What this computer allows. Only this file, on this computer, can widen it.\n\
                      # Changes count at once. lembas help config explains each line.\n\n";

/// Applies changes to the file, all or none. Two commands at once take turns.
pub fn edit(paths: &Paths, changes: &[Change]) -> Result<Edited, EditError> {
    let file = paths.config_file();
    let write = |source| EditError::Write {
        path: file.clone(),
        source,
    };
    files::private_dir(&paths.config).map_err(write)?;
    let _turn = take_turn(&paths.config.join(".config.lock")).map_err(write)?;

    let old = load::text(&file)?;
    let text = old.clone().unwrap_or_else(|| HEADER.to_owned());
    // A file that is wrong is not changed: the person mends it first.
    let wrong = |problems| ConfigError::Wrong {
        path: file.clone(),
        problems,
    };
    load::parse(&text, &paths.home).map_err(wrong)?;
    let mut document: DocumentMut = text
        .parse()
        .map_err(|_| wrong(vec![super::Problem::at(0, "This is not TOML.")]))?;
    for change in changes {
        apply(&mut document, change, &paths.home).map_err(|key| EditError::Form {
            path: file.clone(),
            key,
        })?;
    }
    let new = document.to_string();
    let config = load::parse(&new, &paths.home).map_err(wrong)?;
    let changed = old.as_deref() != Some(&new);
    if changed {
        put(&file, &new).map_err(write)?;
    }
    Ok(Edited { config, changed })
}

/// Replaces the file and keeps its mode.
fn put(file: &Path, text: &str) -> io::Result<()> {
    let mode = std::fs::metadata(file).map_or(0o600, |meta| meta.permissions().mode() & 0o777);
    files::replace(file, text.as_bytes(), mode)
}

/// Held until dropped: another command that edits waits for it.
fn take_turn(lock: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(lock)?;
    file.lock()?;
    Ok(file)
}

fn apply(document: &mut DocumentMut, change: &Change, home: &Path) -> Result<(), &'static str> {
    // Comments at the end of a file without tables would end up behind the new one.
    let behind = document.trailing().as_str().unwrap_or_default().to_owned();
    if document.get("remote").is_none() && !behind.trim().is_empty() {
        document.set_trailing("");
        let mut table = Table::new();
        table.decor_mut().set_prefix(behind);
        document.insert("remote", Item::Table(table));
    }
    let remote = document
        .entry("remote")
        .or_insert_with(|| Item::Table(Table::new()))
        .as_table_like_mut()
        .ok_or("remote")?;
    match change {
        Change::MaxMode(mode) => set(remote, "max_mode", mode.word().into()),
        Change::Approvals(whose) => set(remote, "approvals", whose.word().into()),
        Change::Scheduled(on) => set(remote, "scheduled", (*on).into()),
        Change::Paused(on) => set(remote, "paused", (*on).into()),
        Change::AddRoot(root) => {
            let roots = remote
                .entry("roots")
                .or_insert_with(|| Item::Value(Value::Array(Array::new())))
                .as_array_mut()
                .ok_or("roots")?;
            if !roots.iter().any(|value| same(value, root, home)) {
                push(roots, path::tilde(root, Some(home)));
            }
        }
        Change::RemoveRoot(root) => {
            if let Some(item) = remote.get_mut("roots") {
                let roots = item.as_array_mut().ok_or("roots")?;
                for at in (0..roots.len()).rev() {
                    if roots.get(at).is_some_and(|value| same(value, root, home)) {
                        remove(roots, at);
                    }
                }
            }
        }
    }
    Ok(())
}

/// Changes a value in place: what stands around it, a comment behind it too, stays.
fn set(table: &mut dyn toml_edit::TableLike, key: &str, mut new: Value) {
    match table.get_mut(key) {
        Some(Item::Value(old)) => {
            *new.decor_mut() = old.decor().clone();
            *old = new;
        }
        _ => {
            table.insert(key, Item::Value(new));
        }
    }
}

fn same(value: &Value, root: &Path, home: &Path) -> bool {
    value
        .as_str()
        .is_some_and(|text| path::expand(text, Some(home)) == root)
}

/// Adds an entry in the form the list has: on a line of its own where the others have theirs.
fn push(array: &mut Array, text: String) {
    let indent = array.iter().last().and_then(|last| {
        let before = last.decor().prefix()?.as_str()?;
        before
            .rsplit_once('\n')
            .map(|(_, indent)| indent.to_owned())
    });
    let Some(indent) = indent else {
        array.push(text);
        return;
    };
    // What stands behind the last comma may be a comment to the last entry: it stays with it.
    let behind = array
        .trailing()
        .as_str()
        .unwrap_or_default()
        .trim_end()
        .to_owned();
    let mut value = Value::from(text);
    value.decor_mut().set_prefix(format!("{behind}\n{indent}"));
    array.push_formatted(value);
    array.set_trailing("\n");
    array.set_trailing_comma(true);
}

/// Takes an entry out. A comment that stands before it belongs to the entry above and stays.
fn remove(array: &mut Array, at: usize) {
    let before = array
        .get(at)
        .and_then(|value| value.decor().prefix()?.as_str())
        .unwrap_or_default()
        .to_owned();
    array.remove(at);
    let Some((comment, _)) = before
        .split_once('\n')
        .filter(|(line, _)| line.contains('#'))
    else {
        return;
    };
    match array.get_mut(at) {
        Some(next) => {
            let own = next
                .decor()
                .prefix()
                .and_then(|p| p.as_str())
                .unwrap_or_default();
            let own = own
                .split_once('\n')
                .map_or(own, |(_, rest)| rest)
                .to_owned();
            next.decor_mut().set_prefix(format!("{comment}\n{own}"));
        }
        None => array.set_trailing(format!("{comment}\n")),
    }
}

#[cfg(test)]
mod tests;
