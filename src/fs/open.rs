//! Resolving a path once, and opening exactly what was resolved.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags};

use super::FsError;

/// The path with every link resolved, as far as it exists; the rest is appended as it is. The
/// answer holds no `.` and no `..`.
///
/// # Errors
/// When a part that exists cannot be looked at, or is a file where a folder is needed.
pub fn real(path: &Path) -> Result<PathBuf, FsError> {
    let clean = crate::text::path::clean(path);
    let mut rest = Vec::new();
    let mut at = clean.as_path();
    loop {
        match at.canonicalize() {
            Ok(found) => {
                if !rest.is_empty() && !found.is_dir() {
                    return Err(FsError::NotFolder(found));
                }
                return Ok(rest.iter().rev().fold(found, |path, part| path.join(part)));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // A link that leads nowhere is something, and writing through it would follow it.
                if at.symlink_metadata().is_ok() {
                    return Err(FsError::Missing(at.to_owned()));
                }
                let (Some(parent), Some(Component::Normal(name))) =
                    (at.parent(), at.components().next_back())
                else {
                    return Err(FsError::Missing(clean.clone()));
                };
                rest.push(name.to_owned());
                at = parent;
            }
            Err(error) => return Err(FsError::of(at, error)),
        }
    }
}

/// Opens a resolved path without following a link anywhere in it.
pub(super) fn plain(path: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd, FsError> {
    let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    beneath(path, flags, mode).map_err(|error| FsError::of(path, error.into()))
}

#[cfg(target_os = "linux")]
fn beneath(path: &Path, flags: OFlags, mode: Mode) -> rustix::io::Result<OwnedFd> {
    use rustix::fs::{ResolveFlags, openat2};
    use rustix::io::Errno;
    let how = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match openat2(CWD, path, flags, mode, how) {
        // A kernel before 5.6, or a sandbox that does not know the call.
        Err(Errno::NOSYS | Errno::PERM | Errno::INVAL) => walk(path, flags, mode),
        answer => answer,
    }
}

#[cfg(not(target_os = "linux"))]
fn beneath(path: &Path, flags: OFlags, mode: Mode) -> rustix::io::Result<OwnedFd> {
    walk(path, flags, mode)
}

/// The same, folder by folder, where the system has no call for it.
fn walk(path: &Path, flags: OFlags, mode: Mode) -> rustix::io::Result<OwnedFd> {
    use rustix::fs::openat;
    let step = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut parts = path
        .components()
        .filter_map(|part| match part {
            Component::Normal(name) => Some(name),
            _ => None,
        })
        .peekable();
    let mut at = openat(CWD, "/", step, Mode::empty())?;
    while let Some(name) = parts.next() {
        if parts.peek().is_none() {
            return openat(&at, name, flags, mode);
        }
        at = openat(&at, name, step, Mode::empty())?;
    }
    Ok(at)
}

/// Opens a regular file for reading.
pub(super) fn file(path: &Path) -> Result<(File, std::fs::Metadata), FsError> {
    let fd = plain(path, OFlags::RDONLY, Mode::empty())?;
    let file = File::from(fd);
    let about = file.metadata().map_err(|e| FsError::of(path, e))?;
    if about.is_dir() {
        return Err(FsError::Folder(path.to_owned()));
    }
    if !about.is_file() {
        return Err(FsError::Special(path.to_owned()));
    }
    Ok((file, about))
}

/// Opens a folder, to work beneath it by name.
pub(super) fn folder(path: &Path) -> Result<OwnedFd, FsError> {
    plain(path, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())
}

/// What lies at a name in an opened folder, without following a link.
pub(super) fn kind(
    folder: &OwnedFd,
    name: &std::ffi::OsStr,
) -> rustix::io::Result<Option<rustix::fs::Stat>> {
    match rustix::fs::statat(folder, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(rustix::io::Errno::NOENT) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether a stat is of a regular file.
pub(super) fn regular(stat: &rustix::fs::Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
}
