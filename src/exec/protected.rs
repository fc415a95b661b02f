//! Protected names in the writable folders of a box: those that are there are bound read-only,
//! those that are missing are covered while a command runs.
//!
//! A cover is an empty read-only folder. The box's maker leaves an empty folder of that name
//! behind in the real place; it is taken away when the last command that covers it has ended. An
//! empty folder is ignored by git and harmless where a crash leaves one.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use parking_lot::Mutex;

use crate::clock::{self, Instant};
use crate::spec::permission::{Access, Place, permission};

/// What is protected below the writable folders of one command.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// There, to be bound read-only.
    pub(super) there: Vec<PathBuf>,
    /// Repositories' own folders (or the files that point to them).
    pub(super) repositories: Vec<PathBuf>,
    /// Missing, to be covered.
    pub(super) missing: Covers,
    /// Folders on the way to what is protected, from the top down. Bound onto themselves, so that
    /// none can be renamed away and made anew without what was protected in it.
    pub(super) pins: Vec<PathBuf>,
}

/// A folder with more in it than is looked through: what is protected there is not all known, so
/// nothing can be made writable in it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooMany(pub(super) PathBuf);

/// Looks for protected names at any depth of the roots (bounded) and for missing ones at the
/// roots, the folder of work and those between. What is released is not covered. `own`: this
/// program's own folders, which are covered elsewhere as credential stores are.
///
/// # Errors
/// The first root that has more folders than are looked through.
pub(super) fn names(
    roots: &[PathBuf],
    cwd: &Path,
    home: &Path,
    own: &[PathBuf],
    released: &dyn Fn(&Path) -> bool,
) -> Result<Names, TooMany> {
    let mut names = Names::default();
    let mut missing = Vec::new();
    let mut pins = std::collections::BTreeSet::new();
    for root in roots {
        for found in walked(root)? {
            if found
                .file_name()
                .is_some_and(|n| n.eq_ignore_ascii_case(".git"))
            {
                pins.extend(between(root, &found));
                names.repositories.push(found);
            } else {
                // Of `.vscode/tasks.json` the folder of that name; others are not on anybody's way.
                let folder = found.parent().filter(|up| *up != root);
                let named = |up: &&Path| {
                    entries().any(|e| {
                        Path::new(e)
                            .parent()
                            .is_some_and(|p| !p.as_os_str().is_empty() && up.ends_with(p))
                    })
                };
                pins.extend(folder.filter(named).map(Path::to_path_buf));
                names.there.push(found);
            }
        }
        let mut at = Some(cwd).filter(|cwd| cwd.starts_with(root)).or(Some(root));
        while let Some(folder) = at {
            for entry in covered() {
                let path = folder.join(entry);
                if path.symlink_metadata().is_err() && !missing.contains(&path) && !released(&path)
                {
                    missing.push(path);
                }
            }
            at = folder.parent().filter(|up| up.starts_with(root));
        }
    }
    for path in fixed(roots, home) {
        let root = roots.iter().find(|root| path.starts_with(root));
        let Some(root) = root.filter(|root| path != **root && !released(&path)) else {
            continue;
        };
        // The topmost part that is missing stands for what would lie in it.
        let gone = between(root, &path)
            .chain([path.clone()])
            .find(|part| part.symlink_metadata().is_err());
        match gone {
            Some(gone) if !missing.contains(&gone) => missing.push(gone),
            Some(_) => {}
            None => {
                pins.extend(between(root, &path));
                names.there.push(path);
            }
        }
    }
    for path in covered_whole(home).chain(own.iter().cloned()) {
        let path = crate::permission::resolve(&path);
        let root = roots.iter().find(|root| path.starts_with(root));
        // Only what is there can be renamed away.
        pins.extend(
            root.into_iter()
                .flat_map(|root| between(root, &path))
                .filter(|p| p.is_dir()),
        );
    }
    names.missing = Covers::take(missing, &mut names.there);
    // A set of paths is in the order of their parts: what lies above comes first.
    names.pins = pins.into_iter().collect();
    Ok(names)
}

/// The folders strictly between a root and a path beneath it, from the top down.
fn between<'a>(root: &'a Path, path: &'a Path) -> impl Iterator<Item = PathBuf> + 'a {
    let mut up: Vec<PathBuf> = path
        .ancestors()
        .skip(1)
        .take_while(|folder| *folder != root && folder.starts_with(root))
        .map(Path::to_path_buf)
        .collect();
    up.reverse();
    up.into_iter()
}

/// What is protected at one place: in the home folder, or of the whole computer. What may not
/// even be read is covered elsewhere.
fn fixed(roots: &[PathBuf], home: &Path) -> Vec<PathBuf> {
    let listed = permission().hardline.protected.iter();
    let all = listed
        .filter(|e| e.access == Access::Write)
        .filter_map(|e| match e.place {
            Place::Anywhere => None,
            Place::Home => Some(home.join(&e.path)),
            _ => Some(PathBuf::from(&e.path)),
        });
    all.filter(|path| roots.iter().any(|root| path.starts_with(root)))
        .collect()
}

/// What may not even be read: covered as a whole.
fn covered_whole(home: &Path) -> impl Iterator<Item = PathBuf> + '_ {
    let listed = permission().hardline.protected.iter();
    let listed = listed.filter(|e| e.access == Access::All);
    listed.filter_map(move |e| match e.place {
        Place::Anywhere => None,
        Place::Home => Some(home.join(&e.path)),
        _ => Some(PathBuf::from(&e.path)),
    })
}

/// Names that are covered where they are missing.
fn covered() -> impl Iterator<Item = &'static str> {
    permission()
        .hardline
        .protected
        .iter()
        .filter(|e| e.place == Place::Anywhere && e.cover)
        .map(|e| e.path.as_str())
}

/// What a walk found, and when. A repository that appears between two walks is not bound until
/// the next; what a boxed command makes itself is its own.
type Walks = HashMap<PathBuf, (Instant, Vec<PathBuf>)>;

static WALKS: LazyLock<Mutex<Walks>> = LazyLock::new(|| Mutex::new(HashMap::new()));

/// How long a walk counts.
const FRESH: Duration = Duration::from_secs(5);

/// The most folders of one walk. In a larger tree nothing is boxed with a writable root.
pub(super) const MOST_FOLDERS: usize = 32_000;

/// The most walks that are remembered; then all are forgotten.
const MOST_WALKS: usize = 64;

fn walked(root: &Path) -> Result<Vec<PathBuf>, TooMany> {
    let now = clock::instant();
    if let Some((when, found)) = WALKS.lock().get(root)
        && now.duration_since(*when) < FRESH
    {
        // What was taken away since cannot be bound.
        return Ok(found
            .iter()
            .filter(|p| p.symlink_metadata().is_ok())
            .cloned()
            .collect());
    }
    let found = walk(root, MOST_FOLDERS)?;
    let mut walks = WALKS.lock();
    if walks.len() >= MOST_WALKS {
        walks.clear();
    }
    walks.insert(root.to_path_buf(), (now, found.clone()));
    Ok(found)
}

fn walk(root: &Path, most: usize) -> Result<Vec<PathBuf>, TooMany> {
    let single: Vec<&str> = entries().filter(|p| !p.contains('/')).collect();
    let double: Vec<(&str, &str)> = entries().filter_map(|p| p.split_once('/')).collect();
    let mut found = Vec::new();
    let mut work = std::collections::VecDeque::from([root.to_path_buf()]);
    let mut folders = 0;
    while let Some(folder) = work.pop_front() {
        folders += 1;
        if folders > most {
            return Err(TooMany(root.to_path_buf()));
        }
        let Ok(entries) = std::fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            let path = entry.path();
            if single.iter().any(|s| s.eq_ignore_ascii_case(name)) {
                found.push(path);
                continue;
            }
            for (first, second) in &double {
                if first.eq_ignore_ascii_case(name) && path.join(second).symlink_metadata().is_ok()
                {
                    found.push(path.join(second));
                }
            }
            // Links are not followed. Trees of packages are the same to everyone and large.
            if entry.file_type().is_ok_and(|t| t.is_dir())
                && !matches!(name, "node_modules" | "target" | "__pycache__" | ".venv")
            {
                work.push_back(path);
            }
        }
    }
    Ok(found)
}

fn entries() -> impl Iterator<Item = &'static str> {
    permission()
        .hardline
        .protected
        .iter()
        .filter(|e| e.place == Place::Anywhere && e.access != Access::None)
        .map(|e| e.path.as_str())
}

/// How many running commands cover a missing name.
static HELD: LazyLock<Mutex<HashMap<PathBuf, usize>>> =
    LazyLock::new(|| Mutex::new(HashMap::new()));

/// Missing names that one command covers. Dropping it takes the empty folders away again.
#[derive(Debug, Default)]
pub(super) struct Covers {
    pub(super) paths: Vec<PathBuf>,
}

impl Covers {
    /// Counts the covers. What another running command already covers is there by now, as an
    /// empty folder, and is counted too.
    fn take(mut missing: Vec<PathBuf>, there: &mut Vec<PathBuf>) -> Self {
        let mut held = HELD.lock();
        there.retain(|path| {
            let ours = held.contains_key(path);
            if ours {
                missing.push(path.clone());
            }
            !ours
        });
        for path in &missing {
            *held.entry(path.clone()).or_default() += 1;
        }
        Self { paths: missing }
    }
}

impl Drop for Covers {
    fn drop(&mut self) {
        let mut held = HELD.lock();
        for path in &self.paths {
            let last = match held.get_mut(path) {
                Some(count) if *count > 1 => {
                    *count -= 1;
                    false
                }
                _ => true,
            };
            if last {
                held.remove(path);
                // Only an empty folder goes; anything else is not ours.
                let _ = std::fs::remove_dir(path);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_that_is_shared_keeps_what_the_shell_and_the_desktop_run() {
        let base = tempfile::tempdir().unwrap();
        let home = base.path().canonicalize().unwrap();
        std::fs::write(home.join(".bashrc"), "").unwrap();
        std::fs::create_dir_all(home.join("a/b/.git")).unwrap();
        std::fs::create_dir_all(home.join("a/.vscode")).unwrap();
        std::fs::write(home.join("a/.vscode/tasks.json"), "").unwrap();
        let roots = [home.clone()];
        std::fs::create_dir_all(home.join("b/own")).unwrap();
        let own = [home.join("b/own")];
        let released = |path: &Path| path.ends_with(".profile");
        let names = names(&roots, &home, &home, &own, &released).unwrap();
        assert!(names.there.contains(&home.join(".bashrc")), "{names:?}");
        // What is missing cannot be made either, nor the folder in which it would lie.
        for missing in [".zshrc", ".config"] {
            let missing = home.join(missing);
            assert!(names.missing.paths.contains(&missing), "{names:?}");
        }
        let released = home.join(".profile");
        assert!(!names.missing.paths.contains(&released));
        // None of the folders above can be renamed away.
        for pin in ["a", "a/b", "a/.vscode", "b"] {
            assert!(names.pins.contains(&home.join(pin)), "{pin}: {names:?}");
        }
        let depth = |path: &PathBuf| path.components().count();
        let place = |name: &str| names.pins.iter().position(|p| *p == home.join(name));
        assert!(place("a") < place("a/b"), "{names:?}");
        assert!(names.pins.iter().all(|pin| depth(pin) > depth(&home)));
    }

    #[test]
    fn a_tree_that_is_not_looked_through_whole_is_told_from_one_that_is() {
        let base = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(base.path().join("a/b/c/.git")).unwrap();
        std::fs::create_dir(base.path().join("node_modules")).unwrap();
        // Itself and three more; what is the same to everyone is not counted.
        let found = walk(base.path(), 4).unwrap();
        assert_eq!(found, [base.path().join("a/b/c/.git")]);
        assert_eq!(
            walk(base.path(), 3),
            Err(TooMany(base.path().to_path_buf()))
        );
    }
}
