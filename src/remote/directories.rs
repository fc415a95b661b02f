//! `_lembas/directories`: the folders that a person may pick, under the roots only.
//!
//! A link that leads out of every root is left out, and the folder that is read is the one that was
//! opened and looked at, not whatever has its name by then. Bounded: a folder with a hundred
//! thousand entries answers, and says that it is not all.

use std::ffi::OsStr;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use serde_json::{Value, json};

use super::limits::Limits;
use crate::acp::{Limits as _, Refusal};
use crate::rpc::RpcError;

/// Folders in one answer. More are left out, and `truncated` says so.
const MOST: usize = 1000;

/// Bytes of the folders in one answer, so that it fits into a frame; more are left out likewise.
const BYTES: usize = 96 * 1024;

/// Entries that are looked at. The rest of a larger folder is left out likewise.
const LOOKED_AT: usize = 50_000;

struct Folder {
    name: String,
    path: PathBuf,
    git: bool,
}

/// Looks at the disk: call it where that may block.
pub(crate) fn list(limits: &Limits, path: Option<&Path>) -> Result<Value, Refusal> {
    limits.work()?;
    let roots = limits.roots();
    let Some(path) = path else {
        if limits.now().remote.roots.is_empty() {
            // The refusal that any folder would meet.
            limits.folder(Path::new("/"))?;
        }
        let roots = roots.iter().filter(|root| limits.shares(root));
        let roots: Vec<PathBuf> = roots.cloned().collect();
        let folders = roots.iter().map(|root| Folder {
            name: name(root),
            path: root.clone(),
            git: root.join(".git").symlink_metadata().is_ok(),
        });
        return Ok(answer(None, &roots, folders.collect(), false));
    };
    let real = limits.folder(path)?;
    let (mut folders, truncated) = read(&real, &roots).map_err(|error| {
        let text = format!("{} cannot be read: {error}", path.display());
        Refusal::new(RpcError::INVALID_PARAMS, "missing", text).about(path.display().to_string())
    })?;
    folders.retain(|folder| limits.shares(&folder.path));
    Ok(answer(Some(&real), &roots, folders, truncated))
}

fn answer(path: Option<&Path>, roots: &[PathBuf], mut folders: Vec<Folder>, cut: bool) -> Value {
    // Hidden folders last: they are there, and seldom what is looked for.
    folders.sort_by_key(|f| {
        (
            f.name.starts_with('.'),
            f.name.to_lowercase(),
            f.name.clone(),
        )
    });
    let mut bytes = 0;
    let list: Vec<Value> = folders
        .iter()
        .take(MOST)
        .map(|f| json!({ "name": f.name, "path": f.path, "git": f.git }))
        .take_while(|folder| {
            bytes += folder.to_string().len() + 1;
            bytes <= BYTES
        })
        .collect();
    let truncated = cut || list.len() < folders.len();
    let mut answer = json!({
        "path": path.unwrap_or(Path::new("")), "roots": roots, "folders": list,
        "truncated": truncated,
    });
    let parent = path
        .filter(|path| !roots.iter().any(|root| root == path))
        .and_then(Path::parent);
    if let (Some(parent), Some(answer)) = (parent, answer.as_object_mut()) {
        answer.insert("parent".to_owned(), json!(parent));
    }
    answer
}

fn name(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}

/// The folders in a folder of the roots, and whether that is not all.
fn read(real: &Path, roots: &[PathBuf]) -> std::io::Result<(Vec<Folder>, bool)> {
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let open = rustix::fs::open(real, flags, Mode::empty())?;
    // Between the judgement and the opening a part of the path may have become a link.
    let opened = place(&open)?;
    if !roots.iter().any(|root| opened.starts_with(root)) {
        return Err(std::io::ErrorKind::NotFound.into());
    }
    let mut folders = Vec::new();
    for (looked_at, entry) in Dir::read_from(&open)?.enumerate() {
        if looked_at >= LOOKED_AT {
            return Ok((folders, true));
        }
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        // A name that is not UTF-8 cannot be said in JSON, so it cannot be picked.
        let Some(text) = name.to_str() else { continue };
        let there = opened.join(name);
        let path = match kind(&open, &entry) {
            FileType::Directory => there,
            FileType::Symlink => match there.canonicalize() {
                Ok(target) if target.is_dir() && roots.iter().any(|r| target.starts_with(r)) => {
                    target
                }
                _ => continue,
            },
            _ => continue,
        };
        folders.push(Folder {
            name: text.to_owned(),
            git: path.join(".git").symlink_metadata().is_ok(),
            path,
        });
    }
    Ok((folders, false))
}

/// The kind of an entry; file systems that do not say it with the name are asked.
fn kind(folder: &OwnedFd, entry: &rustix::fs::DirEntry) -> FileType {
    match entry.file_type() {
        FileType::Unknown => {
            let stat = rustix::fs::statat(folder, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW);
            stat.map_or(FileType::Unknown, |stat| {
                FileType::from_raw_mode(stat.st_mode)
            })
        }
        kind => kind,
    }
}

/// Where an open folder is.
#[cfg(target_os = "linux")]
fn place(folder: &OwnedFd) -> std::io::Result<PathBuf> {
    let link = format!("/proc/self/fd/{}", folder.as_fd().as_raw_fd());
    Path::new(&link).read_link()
}

/// Where an open folder is.
#[cfg(target_os = "macos")]
fn place(folder: &OwnedFd) -> std::io::Result<PathBuf> {
    let path = rustix::fs::getpath(folder)?;
    Ok(PathBuf::from(OsStr::from_bytes(path.as_bytes())))
}

#[cfg(test)]
mod tests;
