//! Private folders and files that are replaced whole.
//!
//! Ground for everything that keeps settings or secrets on disk: a folder is 0700, a file is
//! written beside its place, flushed and renamed over it, so that a crash leaves the old or the new.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};

/// Makes a folder that only this user can enter, with those above it. One that is there gets mode
/// 0700; one that another user owns is refused.
pub fn private_dir(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)?;
    let meta = fs::metadata(path)?;
    if meta.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "it belongs to another user",
        ));
    }
    if meta.mode() & 0o077 != 0 {
        fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// Entries that are looked at. A larger tree is mended so far, and what lies above it is private.
const LOOKED_AT: usize = 20_000;

/// Takes away what others may do with these files and folders, which are this program's own, and
/// says what belongs to another user: that cannot be mended here. Of `whole` ones everything beneath
/// is looked at; links are not followed. Blocks.
pub fn private_tree(made: &[PathBuf], whole: &dyn Fn(&Path) -> bool) -> Vec<PathBuf> {
    let us = rustix::process::geteuid().as_raw();
    let mut strange = Vec::new();
    let mut work = made.to_vec();
    let mut looked_at = 0;
    while let Some(path) = work.pop() {
        let Ok(meta) = fs::symlink_metadata(&path) else {
            continue;
        };
        looked_at += 1;
        if looked_at > LOOKED_AT {
            tracing::warn!(LOOKED_AT, "not all of lembas' own files were looked at");
            break;
        }
        if meta.uid() != us {
            strange.push(path);
            continue;
        }
        if !meta.is_symlink() && meta.mode() & 0o077 != 0 {
            let mode = fs::Permissions::from_mode(meta.mode() & 0o700);
            if let Err(error) = fs::set_permissions(&path, mode) {
                tracing::warn!(%error, path = %path.display(), "it is not private");
            }
        }
        // What a command makes in its temporary folder is its own, in a folder that is private.
        if meta.is_dir() && whole(&path) && !path.ends_with("tmp") {
            let entries = fs::read_dir(&path).into_iter().flatten().flatten();
            work.extend(entries.map(|entry| entry.path()));
        }
    }
    strange.sort();
    strange
}

/// Writes a file that only this user can read, new or in place.
pub fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let mut file = options.open(path)?;
    file.set_permissions(fs::Permissions::from_mode(0o600))?;
    file.write_all(bytes)
}

/// Replaces a file as a whole: written beside it with this mode, flushed, renamed over it, the
/// folder flushed. A link is followed, so that what it points to is replaced and it stays a link.
pub fn replace(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let target = match fs::canonicalize(path) {
        Ok(target) => target,
        Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_owned(),
        Err(error) => return Err(error),
    };
    let folder = target.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let name = target.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let beside = folder.join(format!(
        ".{}.{}",
        name.to_string_lossy(),
        crate::ids::random_hex(6)
    ));
    let written = write_new(&beside, bytes, mode).and_then(|()| fs::rename(&beside, &target));
    if let Err(error) = written {
        // The half-written file is of no use; that it cannot be removed changes nothing.
        let _ = fs::remove_file(&beside);
        return Err(error);
    }
    File::open(folder)?.sync_all()
}

/// Whether it is a file that may be run.
pub fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.mode() & 0o111 != 0)
}

fn write_new(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path)?;
    // The umask may have taken bits away.
    file.set_permissions(fs::Permissions::from_mode(mode))?;
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_made_private_and_repaired() {
        let base = tempfile::tempdir().unwrap();
        let folder = base.path().join("a/b");
        private_dir(&folder).unwrap();
        assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
        private_dir(&folder).unwrap();
        assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);
    }

    #[test]
    fn a_link_stays_a_link_and_nothing_is_left_beside() {
        let base = tempfile::tempdir().unwrap();
        let real = base.path().join("real.toml");
        let link = base.path().join("config.toml");
        fs::write(&real, "old").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        replace(&link, b"new", 0o600).unwrap();
        assert_eq!(fs::read_to_string(&real).unwrap(), "new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::metadata(&real).unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(base.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_tree_is_mended_and_what_a_link_points_to_is_not() {
        let base = tempfile::tempdir().unwrap();
        let own = base.path().join("own");
        fs::create_dir_all(own.join("a")).unwrap();
        let outside = base.path().join("outside");
        for (path, mode) in [
            (&own.join("a/chain"), 0o644),
            (&own.join("run"), 0o755),
            (&outside, 0o644),
        ] {
            fs::write(path, "x").unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
        std::os::unix::fs::symlink(&outside, own.join("link")).unwrap();
        let strange = private_tree(std::slice::from_ref(&own), &|path| path.starts_with(&own));
        assert_eq!(strange, Vec::<PathBuf>::new());
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!((mode(&own), mode(&own.join("a"))), (0o700, 0o700));
        assert_eq!(
            (mode(&own.join("a/chain")), mode(&own.join("run"))),
            (0o600, 0o700)
        );
        assert_eq!(mode(&outside), 0o644);
    }
}
