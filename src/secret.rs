//! Secrets: a string that no log shows, and files that only their owner can read.
//!
//! Not here: what the secrets are for (`link::instance`, `hub`).

use std::fmt;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::ids;

/// Bytes of a private file that are read at most; a longer one is refused.
const MAX_FILE: u64 = 1024 * 1024;

/// A string that is shown nowhere by itself. It goes into files and headers by [`Secret::reveal`].
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Why a private file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("cannot {what} {path}")]
    Io {
        what: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{path} belongs to another user, so it is not used: remove it or give it to this user")]
    NotOurs { path: PathBuf },
    #[error("{path} is not an ordinary file, so it is not used: remove it")]
    NotPlain { path: PathBuf },
    #[error("{path} is larger than 1 MiB, so it is not used: remove it")]
    TooLarge { path: PathBuf },
}

fn failed<'a>(what: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> FileError + 'a {
    move |source| FileError::Io {
        what,
        path: path.to_owned(),
        source,
    }
}

/// Reads a file that only its owner may read; `None` when there is none.
///
/// A mode that lets others in is repaired, of the file and of its folder. A file of another user,
/// a link and anything that is no ordinary file is refused.
pub fn read(path: &Path) -> Result<Option<Vec<u8>>, FileError> {
    let nofollow = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(nofollow.bits().cast_signed())
        .open(path);
    let file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
            return Err(FileError::NotPlain {
                path: path.to_owned(),
            });
        }
        Err(error) => return Err(failed("open", path)(error)),
    };
    let meta = file.metadata().map_err(failed("look at", path))?;
    if !meta.is_file() {
        return Err(FileError::NotPlain {
            path: path.to_owned(),
        });
    }
    if meta.len() > MAX_FILE {
        return Err(FileError::TooLarge {
            path: path.to_owned(),
        });
    }
    ours(path, &meta)?;
    if meta.mode() & 0o077 != 0 {
        tracing::warn!(path = %path.display(), "others could read this file: its mode is now 0600");
        file.set_permissions(Permissions::from_mode(0o600))
            .map_err(failed("repair the mode of", path))?;
    }
    if let Some(folder) = path.parent() {
        private_folder(folder)?;
    }
    let mut bytes = Vec::new();
    file.take(MAX_FILE)
        .read_to_end(&mut bytes)
        .map_err(failed("read", path))?;
    Ok(Some(bytes))
}

/// Replaces a private file whole: after a crash it holds the old bytes or the new ones.
///
/// The bytes are on the disk when this returns. The folder is made with mode 0700 when missing.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    private_folder(folder)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = folder.join(format!(".{name}.{}", ids::random_hex(6)));
    let written = (|| {
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&beside)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&beside, path)
    })();
    if let Err(error) = written {
        // It was ours alone and is of no use; when it cannot be removed nothing else changes.
        let _ = fs::remove_file(&beside);
        return Err(failed("write", path)(error));
    }
    sync_folder(folder)
}

/// Removes a private file, for good when this returns. That there is none is no error.
pub fn remove(path: &Path) -> Result<(), FileError> {
    match fs::remove_file(path) {
        Ok(()) => sync_folder(path.parent().unwrap_or(Path::new("."))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(failed("remove", path)(error)),
    }
}

fn sync_folder(folder: &Path) -> Result<(), FileError> {
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(failed("flush", folder))
}

/// Makes a folder that only its owner can enter, or repairs one that others can.
fn private_folder(folder: &Path) -> Result<(), FileError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(failed("make", folder))?;
    let meta = fs::metadata(folder).map_err(failed("look at", folder))?;
    ours(folder, &meta)?;
    if meta.mode() & 0o077 != 0 {
        tracing::warn!(path = %folder.display(), "others could enter this folder: its mode is now 0700");
        fs::set_permissions(folder, Permissions::from_mode(0o700))
            .map_err(failed("repair the mode of", folder))?;
    }
    Ok(())
}

fn ours(path: &Path, meta: &fs::Metadata) -> Result<(), FileError> {
    if meta.uid() == rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    Err(FileError::NotOurs {
        path: path.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn a_secret_is_not_shown() {
        let secret = Secret::new("abc");
        assert_eq!(format!("{secret:?}"), "Secret(…)");
        assert_eq!(serde_json::to_string(&secret).unwrap(), "\"abc\"");
    }

    #[test]
    fn a_private_file_comes_back_whole_and_private() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("a/b/token");
        assert!(read(&path).unwrap().is_none());
        write(&path, b"one").unwrap();
        write(&path, b"two").unwrap();
        assert_eq!(read(&path).unwrap().unwrap(), b"two");
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(path.parent().unwrap()), 0o700);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
        remove(&path).unwrap();
        remove(&path).unwrap();
        assert!(read(&path).unwrap().is_none());
    }

    #[test]
    fn modes_that_let_others_in_are_repaired() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("d/token");
        write(&path, b"x").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        fs::set_permissions(path.parent().unwrap(), Permissions::from_mode(0o755)).unwrap();
        read(&path).unwrap();
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    }

    #[test]
    fn links_and_what_is_no_file_are_refused() {
        let base = tempfile::tempdir().unwrap();
        let real = base.path().join("d/real");
        write(&real, b"x").unwrap();
        let link = base.path().join("d/link");
        std::os::unix::fs::symlink(&real, &link).unwrap();
        assert!(matches!(read(&link), Err(FileError::NotPlain { .. })));
        // Writing replaces the link and leaves what it pointed to.
        write(&link, b"y").unwrap();
        assert_eq!(fs::read(&real).unwrap(), b"x");
        assert!(matches!(
            read(base.path().join("d").as_path()),
            Err(FileError::NotPlain { .. })
        ));
    }

    #[test]
    fn a_file_of_another_user_is_refused() {
        // A file of root's that everybody may read; root itself sees it as its own.
        let path = Path::new("/etc/hostname");
        if rustix::process::geteuid().is_root() || !path.exists() {
            return;
        }
        assert!(matches!(read(path), Err(FileError::NotOurs { .. })));
    }
}
