//! Paths: where they really are, what is protected, what is inside, what is free to read.

use std::path::{Component, Path, PathBuf};

use crate::spec::permission::{Access, Place, Protected, permission};

/// A protected entry that a path falls under.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hit {
    pub(super) access: Access,
    pub(super) text: &'static str,
    /// It is this program's own: nothing releases it, and nobody is asked.
    pub(super) own: bool,
}

impl Hit {
    /// Whether the person released it beforehand.
    pub(super) fn released(&self, path: &Path, released: &[PathBuf]) -> bool {
        !self.own && beneath(path, released)
    }
}

/// The path with `.`, `..` and doubled slashes taken out by spelling alone.
pub(super) fn spelled(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
                if out.as_os_str().is_empty() {
                    out.push("/");
                }
            }
            other => out.push(other),
        }
    }
    out
}

/// Where a path really is: links of every existing part followed, the missing rest spelled out.
pub fn resolve(path: &Path) -> PathBuf {
    resolve_within(path, &mut { MOST_PARTS }).unwrap_or_else(|| spelled(path))
}

/// A path with more missing parts, or links that lead nowhere, is left as it stands.
const MOST_PARTS: usize = 4_096;

/// The same with so many looks at the disk, which are counted down; none when they do not suffice.
pub(super) fn resolve_within(path: &Path, looks: &mut usize) -> Option<PathBuf> {
    let mut missing = Vec::new();
    let mut at = path.to_path_buf();
    while *looks > 0 {
        *looks -= 1;
        match at.canonicalize() {
            Ok(mut found) => {
                for part in missing.iter().rev() {
                    match part {
                        Part::Up => {
                            found.pop();
                        }
                        Part::Name(name) => found.push(name),
                    }
                }
                return Some(found);
            }
            Err(_) => {
                // A link that leads nowhere: what would be made is its target.
                if let Ok(target) = at.read_link() {
                    let base = at.parent().map(Path::to_path_buf).unwrap_or_default();
                    at = base.join(target);
                    if missing.len() < 64 {
                        continue;
                    }
                }
                let mut parts = at.components();
                match parts.next_back() {
                    Some(Component::Normal(name)) => missing.push(Part::Name(name.to_owned())),
                    Some(Component::ParentDir) => missing.push(Part::Up),
                    Some(Component::CurDir) => {}
                    _ => return Some(spelled(path)),
                }
                at = parts.as_path().to_path_buf();
                if at.as_os_str().is_empty() {
                    return Some(spelled(path));
                }
            }
        }
    }
    None
}

enum Part {
    Up,
    Name(std::ffi::OsString),
}

/// Whether a path is one of these folders or beneath one.
pub(super) fn beneath(path: &Path, folders: &[PathBuf]) -> bool {
    folders.iter().any(|folder| path.starts_with(folder))
}

/// `~/x` with the home folder put in.
pub(super) fn at_home(text: &str, home: &Path) -> PathBuf {
    match text.strip_prefix('~') {
        Some("") => home.to_path_buf(),
        Some(rest) if rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
        _ => PathBuf::from(text),
    }
}

/// The protected entries that a (resolved) path falls under, the gravest. `own` are the folders
/// of this program itself, which are neither read nor written.
pub(super) fn protected(path: &Path, home: &Path, own: &[PathBuf]) -> Option<Hit> {
    if beneath(path, own) {
        return Some(Hit {
            access: Access::All,
            text: "lembas' own tokens, rules and sessions",
            own: true,
        });
    }
    let names: Vec<&str> = path.iter().filter_map(|p| p.to_str()).collect();
    let at_home = path.strip_prefix(home).ok();
    permission()
        .hardline
        .protected
        .iter()
        .filter(|entry| match entry.place {
            Place::Absolute => path.starts_with(&entry.path),
            Place::Home => at_home.is_some_and(|path| path.starts_with(&entry.path)),
            Place::Anywhere => named(&names, entry),
        })
        .map(|entry| Hit {
            access: entry.access,
            text: &entry.text,
            own: false,
        })
        .max_by_key(|hit| match hit.access {
            Access::None => 0,
            Access::Instructions => 1,
            Access::Write => 2,
            Access::All => 3,
        })
        .filter(|hit| hit.access != Access::None)
}

/// Whether the entry's name, or its two names, stand somewhere among a path's.
fn named(names: &[&str], entry: &Protected) -> bool {
    let mut parts = entry.path.split('/');
    let (first, second) = (parts.next().unwrap_or_default(), parts.next());
    names.iter().enumerate().any(|(at, name)| {
        same(name, first) && second.is_none_or(|s| names.get(at + 1).is_some_and(|n| same(n, s)))
    })
}

/// Names are compared without case: some file systems do not tell them apart.
fn same(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b)
}

/// Whether a file's name says that it holds secrets.
pub(super) fn secret_name(path: &Path) -> bool {
    let secrets = &permission().defaults.secrets;
    let Some(name) = path.file_name().and_then(|n| n.to_str()) else {
        return false;
    };
    secrets.names.iter().any(|p| pattern(p, name))
        && !secrets.except.iter().any(|p| pattern(p, name))
}

/// Whether a file is read only when it is asked for by name: project secrets, private keys.
pub fn is_private(path: &Path) -> bool {
    secret_name(path) || private_key(path)
}

/// What is not looked into on the way through these folders: credential stores and this program's
/// own folders that lie beneath one. A folder that is itself named was judged by its name.
pub(super) fn closed(
    places: &[PathBuf],
    home: &Path,
    own: &[PathBuf],
    released: &[PathBuf],
) -> Vec<PathBuf> {
    let folders: Vec<&PathBuf> = places.iter().filter(|place| place.is_dir()).collect();
    if folders.is_empty() {
        return Vec::new();
    }
    let listed = permission().hardline.protected.iter();
    let listed = listed
        .filter(|entry| entry.access == Access::All)
        .filter_map(|entry| match entry.place {
            Place::Home => Some(home.join(&entry.path)),
            Place::Absolute => Some(PathBuf::from(&entry.path)),
            Place::Anywhere => None,
        })
        .map(|path| resolve(&path))
        .filter(|path| !beneath(path, released));
    // Nothing releases our own.
    let own = own.iter().map(|path| resolve(path));
    listed
        .chain(own)
        .filter(|path| {
            let within = |folder: &&PathBuf| *path != **folder && path.starts_with(folder);
            folders.iter().any(within)
        })
        .collect()
}

/// Why a folder cannot be one to work in: it lies where credentials are, or where the person's
/// shell and desktop find what they start. `path` is resolved.
pub fn unshareable(path: &Path, home: &Path) -> Option<&'static str> {
    let listed = permission().hardline.protected.iter();
    let closed = |entry: &&Protected| match entry.place {
        Place::Home => matches!(entry.access, Access::All | Access::Write),
        Place::Absolute => entry.access == Access::All,
        Place::Anywhere => false,
    };
    listed
        .filter(closed)
        .find(|entry| falls_under(path, entry, home))
        .map(|entry| entry.text.as_str())
}

/// Whether a file begins as a private key does.
pub(super) fn private_key(path: &Path) -> bool {
    use std::io::Read as _;
    let regular = path.metadata().is_ok_and(|m| m.is_file());
    let mut head = [0; 64];
    regular
        && std::fs::File::open(path)
            .and_then(|mut f| f.read(&mut head))
            .is_ok_and(|n| {
                let head = String::from_utf8_lossy(head.get(..n).unwrap_or_default());
                head.trim_start().starts_with("-----BEGIN") && head.contains("PRIVATE KEY")
            })
}

/// A pattern with `*` for any run of characters.
pub(super) fn pattern(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = text.strip_prefix(parts.next().unwrap_or_default()) else {
        return false;
    };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = rest.get(at + part.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_protected_at_any_depth_and_in_any_case() {
        let home = Path::new("/home/a");
        let hit = |p: &str| protected(Path::new(p), home, &[]).map(|h| h.access);
        assert_eq!(hit("/w/p/.git/hooks/pre-commit"), Some(Access::Write));
        assert_eq!(hit("/w/p/sub/.GIT/config"), Some(Access::Write));
        assert_eq!(hit("/w/p/.github/workflows/ci.yml"), Some(Access::Write));
        assert_eq!(hit("/w/p/.github/dependabot.yml"), None);
        assert_eq!(hit("/w/p/.gitignore"), None);
        assert_eq!(hit("/home/a/.ssh/id_ed25519"), Some(Access::All));
        assert_eq!(hit("/home/a/.bashrc"), Some(Access::Write));
        assert_eq!(hit("/etc/shadow"), Some(Access::All));
        assert_eq!(hit("/w/p/AGENTS.md"), Some(Access::Instructions));
    }

    #[test]
    fn a_missing_rest_is_spelled_out_beneath_what_exists() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().canonicalize().unwrap();
        std::os::unix::fs::symlink("/etc", real.join("link")).unwrap();
        assert_eq!(resolve(&real.join("link/none")), Path::new("/etc/none"));
        assert_eq!(resolve(&real.join("a/../b")), real.join("b"));
        std::os::unix::fs::symlink("/nowhere/x", real.join("dead")).unwrap();
        assert_eq!(resolve(&real.join("dead")), Path::new("/nowhere/x"));
    }

    #[test]
    fn patterns_match_whole_names() {
        assert!(pattern(".env.*", ".env.local"));
        assert!(!pattern(".env.*", ".environment"));
        assert!(pattern("service-account*.json", "service-account-1.json"));
        assert!(secret_name(Path::new("/p/.env")));
        assert!(!secret_name(Path::new("/p/.env.example")));
    }
}
