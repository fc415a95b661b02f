//! The box on Linux: the system's `bwrap`, with namespaces for files, processes and the network.
//!
//! Inside, the disk is read-only, the roots are bound writable on top, protected names in them are
//! bound read-only again, credential stores and run-time sockets are covered, processes see only
//! themselves, and there is no network unless it was granted.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use crate::permission::{BoxKind, Run, Sees, covered_at_home, kept_names};

/// Folders of the home folder that builds read: toolchains and package caches.
const TOOLS_AT_HOME: &[&str] = &[
    ".cargo",
    ".rustup",
    ".nvm",
    ".npm",
    ".pyenv",
    ".rbenv",
    ".local/bin",
    ".local/lib",
    ".local/share/pnpm",
    "go",
    ".gradle",
    ".m2",
    ".cache",
    ".bun",
    ".deno",
    ".sdkman",
    ".asdf",
];

/// What stands before the shell to put it into its box; nothing for an open run.
///
/// # Errors
/// When the private temporary folder cannot be made.
pub(super) fn words(run: &Run, scratch: &Path, own: &[PathBuf]) -> io::Result<Vec<OsString>> {
    let plan = &run.r#box;
    if plan.kind == BoxKind::Open {
        return Ok(Vec::new());
    }
    let home = home(run);
    let mut words = Words(base());
    if !plan.network {
        words.add(["--unshare-net"]);
    }
    // Sockets of the session and of services: a socket is reached by its path, also read-only.
    for folder in ["/run", "/tmp", "/var/tmp"] {
        words.cover(Path::new(folder));
    }
    if plan.network {
        // Names are looked up through files that many systems keep there.
        words.again(Path::new("/run/systemd/resolve"));
    }
    if plan.sees == Sees::Roots {
        for folder in ["/home", "/root", "/mnt", "/media", "/srv"] {
            words.cover(Path::new(folder));
        }
        if let Some(home) = &home {
            words.cover(home);
            for tools in TOOLS_AT_HOME {
                words.again(&home.join(tools));
            }
        }
    }
    for store in home.iter().flat_map(|home| covered_at_home(home)) {
        words.cover(&store);
    }
    for folder in own {
        words.cover(folder);
    }
    for path in &plan.also {
        words.again(path);
    }
    // A read alone gets no place to write; a watch command and a build get one of their own.
    let scratches = plan.sees == Sees::Disk;
    if scratches {
        std::fs::create_dir_all(scratch)?;
        words.bind("--bind", scratch, Path::new("/tmp"));
        words.bind("--bind", scratch, Path::new("/var/tmp"));
    }
    let writes = plan.kind == BoxKind::Roots;
    for root in &plan.roots {
        words.bind(if writes { "--bind" } else { "--ro-bind" }, root, root);
    }
    // The folder of the session must be there also where a cover lies above it.
    if !plan.roots.iter().any(|root| run.cwd.starts_with(root)) {
        words.again(&run.cwd);
    }
    if writes {
        for root in &plan.roots {
            for kept in kept(root, plan.git) {
                words.bind("--ro-bind", &kept, &kept);
            }
        }
    }
    if !scratches {
        for folder in ["/tmp", "/var/tmp"] {
            if Path::new(folder).is_dir() {
                words.add(["--remount-ro", folder]);
            }
        }
    }
    words.0.push("--chdir".into());
    words.0.push(run.cwd.clone().into());
    words.0.push("--".into());
    Ok(words.0)
}

/// What every box begins with. Also how the probe tries whether boxes work here.
pub(super) fn base() -> Vec<OsString> {
    [
        "bwrap",
        "--die-with-parent",
        "--unshare-user",
        "--unshare-pid",
        "--unshare-ipc",
        "--unshare-uts",
        "--cap-drop",
        "ALL",
        "--ro-bind",
        "/",
        "/",
        "--dev",
        "/dev",
        "--proc",
        "/proc",
    ]
    .map(Into::into)
    .to_vec()
}

struct Words(Vec<OsString>);

impl Words {
    fn add<const N: usize>(&mut self, words: [&str; N]) {
        self.0.extend(words.map(OsString::from));
    }

    fn bind(&mut self, how: &str, from: &Path, to: &Path) {
        for word in [OsStr::new(how), from.as_os_str(), to.as_os_str()] {
            self.0.push(word.to_owned());
        }
    }

    /// Puts emptiness over something that is there.
    fn cover(&mut self, path: &Path) {
        if path.is_dir() {
            self.0.push("--tmpfs".into());
            self.0.push(real(path).into());
        } else if path.exists() {
            self.bind("--ro-bind", Path::new("/dev/null"), &real(path));
        }
    }

    /// Shows something again, read-only, that a cover lies over.
    fn again(&mut self, path: &Path) {
        if path.exists() {
            self.bind("--ro-bind", path, path);
        }
    }
}

/// A mount lies where a link leads, not on the link.
fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

fn home(run: &Run) -> Option<PathBuf> {
    run.environment
        .iter()
        .find(|(name, _)| name == "HOME")
        .map(|(_, value)| PathBuf::from(value))
        .filter(|home| home.is_absolute())
}

/// What of a writable folder stays read-only: protected names in the folder itself and two levels
/// below, and whole repositories' own folders unless a git command that writes was allowed.
fn kept(root: &Path, git: bool) -> Vec<PathBuf> {
    /// Folders looked into; a project with more is covered at its top and in the first ones.
    const MOST: usize = 2_000;
    const DEEP: usize = 2;
    let mut folders = vec![root.to_owned()];
    let mut at = 0;
    while let Some(folder) = folders.get(at).cloned() {
        at += 1;
        let depth = folder
            .strip_prefix(root)
            .map_or(0, |p| p.components().count());
        let room = MOST.saturating_sub(folders.len());
        if depth >= DEEP || room == 0 {
            continue;
        }
        let Ok(entries) = std::fs::read_dir(&folder) else {
            continue;
        };
        folders.extend(
            entries
                .filter_map(Result::ok)
                .filter(|entry| {
                    entry.file_type().is_ok_and(|t| t.is_dir())
                        && !matches!(
                            entry.file_name().to_str(),
                            Some(".git" | "node_modules" | "target" | ".venv")
                        )
                })
                .map(|entry| entry.path())
                .take(room),
        );
    }
    let names: Vec<&str> = (!git)
        .then_some(".git")
        .into_iter()
        .chain(kept_names().filter(|name| git || !name.starts_with(".git/")))
        .collect();
    folders
        .iter()
        .flat_map(|folder| names.iter().map(|name| folder.join(name)))
        // A link could not be bound over; it is resolved and judged where it leads.
        .filter(|path| {
            path.symlink_metadata()
                .is_ok_and(|about| !about.is_symlink())
        })
        .collect()
}
