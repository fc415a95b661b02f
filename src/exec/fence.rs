//! The box on Linux: the system's `bwrap`, with namespaces for files, processes and the network.
//!
//! Inside, the disk is read-only, the writable folders are bound on top, protected names in them
//! are bound read-only again, credential stores and run-time sockets are covered, processes see
//! only themselves, and there is no network.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use crate::permission::{BoxKind, Launch};

/// What stands before the shell to put it into its box; nothing for an open run.
///
/// # Errors
/// When the private temporary folder cannot be made.
pub(super) fn words(launch: &Launch, scratch: &Path) -> io::Result<Vec<OsString>> {
    let fence = &launch.fence;
    if fence.kind == BoxKind::Open {
        return Ok(Vec::new());
    }
    let mut words = base();
    let mut add = |parts: &[&dyn AsRef<std::ffi::OsStr>]| {
        words.extend(parts.iter().map(|part| part.as_ref().to_owned()));
    };
    if !fence.network {
        add(&[&"--unshare-net"]);
    }
    // Sockets of the session and of services: a socket is reached by its path, also read-only.
    for folder in ["/run", "/tmp", "/var/tmp"] {
        if Path::new(folder).is_dir() {
            add(&[&"--tmpfs", &folder]);
        }
    }
    let home = home(launch);
    for store in home.iter().flat_map(|home| credentials(home)) {
        if store.is_dir() {
            add(&[&"--tmpfs", &store]);
        } else if store.exists() {
            add(&[&"--ro-bind", &"/dev/null", &store]);
        }
    }
    for own in &fence.covered {
        if own.is_dir() && !launch.cwd.starts_with(own) {
            add(&[&"--tmpfs", own]);
        }
    }
    if fence.scratch {
        std::fs::create_dir_all(scratch)?;
        add(&[
            &"--bind",
            &scratch,
            &"/tmp",
            &"--bind",
            &scratch,
            &"/var/tmp",
        ]);
    }
    for root in &fence.writable {
        let how = if fence.kind == BoxKind::Roots {
            "--bind"
        } else {
            "--ro-bind"
        };
        add(&[&how, root, root]);
    }
    // The folder of the session must be there also where a cover lies above it.
    if fence
        .writable
        .iter()
        .all(|root| !launch.cwd.starts_with(root))
        && launch.cwd.is_dir()
    {
        add(&[&"--ro-bind", &launch.cwd, &launch.cwd]);
    }
    for root in &fence.writable {
        for name in protected(root) {
            add(&[&"--ro-bind", &name, &name]);
        }
    }
    if !fence.scratch {
        for folder in ["/tmp", "/var/tmp"] {
            if Path::new(folder).is_dir() {
                add(&[&"--remount-ro", &folder]);
            }
        }
    }
    add(&[&"--chdir", &launch.cwd, &"--"]);
    Ok(words)
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

fn home(launch: &Launch) -> Option<PathBuf> {
    launch
        .env
        .iter()
        .find(|(name, _)| name == "HOME")
        .map(|(_, value)| PathBuf::from(value))
        .filter(|home| home.is_absolute())
}

/// Where people keep keys and tokens.
fn credentials(home: &Path) -> Vec<PathBuf> {
    [
        ".ssh",
        ".gnupg",
        ".aws",
        ".azure",
        ".kube",
        ".docker",
        ".config/gcloud",
        ".config/gh",
        ".password-store",
        ".local/share/keyrings",
        ".mozilla",
        ".netrc",
        ".git-credentials",
        ".pypirc",
        ".cargo/credentials.toml",
    ]
    .iter()
    .map(|name| home.join(name))
    .collect()
}

/// What of a writable folder stays read-only: repositories' hooks and settings, and files that
/// tools start by themselves. Looked for in the folder itself and two levels below.
fn protected(root: &Path) -> Vec<PathBuf> {
    const NAMES: &[&str] = &[
        ".git/hooks",
        ".git/config",
        ".git/config.worktree",
        ".git/info/attributes",
        ".envrc",
        ".lembas",
        ".vscode/tasks.json",
        ".vscode/settings.json",
        ".vscode/launch.json",
        ".idea/runConfigurations",
        ".github/workflows",
        ".gitlab-ci.yml",
        ".forgejo/workflows",
        ".gitea/workflows",
        ".ci",
    ];
    /// Folders looked into; a project with more is covered at its top and in the first ones.
    const MOST: usize = 2_000;
    let mut folders = vec![root.to_owned()];
    let mut at = 0;
    while let Some(folder) = folders.get(at).cloned() {
        at += 1;
        let depth = folder
            .strip_prefix(root)
            .map_or(0, |p| p.components().count());
        if depth >= 2 || folders.len() >= MOST {
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
                .take(MOST - folders.len().min(MOST)),
        );
    }
    folders
        .iter()
        .flat_map(|folder| NAMES.iter().map(|name| folder.join(name)))
        // A link could not be bound over; it is resolved and judged where it leads.
        .filter(|path| {
            path.symlink_metadata()
                .is_ok_and(|about| !about.is_symlink())
        })
        .collect()
}
