//! Changing one file: whole or not at all.
//!
//! The new content is written beside the old one and put in its place in one step, inside a folder
//! that is held open, so that nothing swapped in meanwhile is followed and no half file is seen.
//! Mode and owner are kept.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, Gid, Mode, OFlags, Uid};

use super::{FsError, open};
use crate::ids::{Digest, random_hex};
use crate::permission::{Action, Grant};

/// What must be at the path for the change to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Before {
    /// Nothing: the file is made.
    Nothing,
    /// A regular file with this content.
    Content(Digest),
}

/// Writes the bytes that were judged.
///
/// # Errors
/// When the bytes or the path are not what was judged, when the file is not as `before` says, or
/// when the disk refuses. The old content is in place then.
pub fn write(grant: &Grant, path: &Path, bytes: &[u8], before: &Before) -> Result<(), FsError> {
    let judged = matches!(
        &grant.request().action,
        Action::Write { path: named, digest, .. } if named == path && *digest == Digest::of(bytes)
    );
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(FsError::NotJudged(path.to_owned()));
    };
    if !judged {
        return Err(FsError::NotJudged(path.to_owned()));
    }
    let folder = folders(parent)?;
    let old = open::kind(&folder, name).map_err(|e| FsError::of(path, e.into()))?;
    check(path, old.as_ref(), before)?;
    let io = |e: rustix::io::Errno| FsError::of(path, e.into());
    let temporary = format!(".{}.{}", name.to_string_lossy(), random_hex(6));
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd =
        rustix::fs::openat(&folder, &temporary, flags, Mode::from_raw_mode(0o666)).map_err(io)?;
    let answer = fill(fd, bytes, old.as_ref(), path)
        .and_then(|()| still(path, &folder, name, before))
        .and_then(|()| rustix::fs::renameat(&folder, &temporary, &folder, name).map_err(io));
    if answer.is_err() {
        // Best effort: the error that is told is the first one.
        let _gone = rustix::fs::unlinkat(&folder, &temporary, AtFlags::empty());
        return answer;
    }
    rustix::fs::fsync(&folder).map_err(io)
}

fn fill(
    fd: OwnedFd,
    bytes: &[u8],
    old: Option<&rustix::fs::Stat>,
    path: &Path,
) -> Result<(), FsError> {
    let io = |e: rustix::io::Errno| FsError::of(path, e.into());
    if let Some(old) = old {
        // Another owner's file in a shared folder: kept where the system lets us.
        let _kept = rustix::fs::fchown(
            &fd,
            Some(Uid::from_raw(old.st_uid)),
            Some(Gid::from_raw(old.st_gid)),
        );
        rustix::fs::fchmod(&fd, Mode::from_raw_mode(old.st_mode & 0o7777)).map_err(io)?;
    }
    let mut file = File::from(fd);
    file.write_all(bytes)
        .and_then(|()| file.sync_all())
        .map_err(|e| FsError::of(path, e))
}

/// Checks what is there now against what must be.
fn check(path: &Path, old: Option<&rustix::fs::Stat>, before: &Before) -> Result<(), FsError> {
    match (old, before) {
        (None, Before::Nothing) => Ok(()),
        (None, Before::Content(_)) => Err(FsError::Missing(path.to_owned())),
        (Some(_), Before::Nothing) => Err(FsError::Changed(path.to_owned())),
        (Some(stat), Before::Content(digest)) => {
            if !open::regular(stat) {
                return Err(FsError::Special(path.to_owned()));
            }
            if stat.st_nlink > 1 {
                #[expect(clippy::useless_conversion, reason = "the type differs by system")]
                let count = u64::from(stat.st_nlink);
                return Err(FsError::HardLink {
                    path: path.to_owned(),
                    count,
                });
            }
            if super::read::current(path)?.digest != *digest {
                return Err(FsError::Changed(path.to_owned()));
            }
            Ok(())
        }
    }
}

/// The last look before the step: the content may have changed while ours was written.
fn still(path: &Path, folder: &OwnedFd, name: &OsStr, before: &Before) -> Result<(), FsError> {
    let now = open::kind(folder, name).map_err(|e| FsError::of(path, e.into()))?;
    check(path, now.as_ref(), before)
}

/// Opens the folder, making what is missing of it, without following a link.
fn folders(path: &Path) -> Result<OwnedFd, FsError> {
    match open::folder(path) {
        Err(FsError::Missing(_)) => {}
        answer => return answer,
    }
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(FsError::Missing(path.to_owned()));
    };
    let above = folders(parent)?;
    match rustix::fs::mkdirat(&above, name, Mode::from_raw_mode(0o777)) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => open::folder(path),
        Err(error) => Err(FsError::of(path, error.into())),
    }
}
