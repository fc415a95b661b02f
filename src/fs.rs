//! The person's files: the one door through which they are read and changed.
//!
//! Paths come resolved ([`open::real`]) and are opened so that a link swapped in afterwards is
//! refused, not followed. Only regular files are opened; devices, pipes and files with a second
//! name (hard links, on writing) are refused. Reading and changing spend a `Grant`. Not here:
//! what may be touched (`permission`), what an edit is (`edit`).

pub mod open;
pub mod read;
pub mod search;
pub mod text;
pub mod walk;
pub mod write;

use std::io;
use std::path::{Path, PathBuf};

/// Why a file could not be read or changed, in words for the model and the person.
#[derive(Debug, thiserror::Error)]
pub enum FsError {
    #[error("No such file or directory: {}", .0.display())]
    Missing(PathBuf),
    #[error("{} is a folder", .0.display())]
    Folder(PathBuf),
    #[error("{} is not a folder", .0.display())]
    NotFolder(PathBuf),
    #[error("{} is not a regular file: pipes, sockets and devices are not opened", .0.display())]
    Special(PathBuf),
    #[error("{} became a link while it was being opened; nothing was done", .0.display())]
    Swapped(PathBuf),
    #[error("{} has {count} names (hard links); changing it would change the others too", path.display())]
    HardLink { path: PathBuf, count: u64 },
    #[error("{} is {size} bytes; at most {most} are read at once. Search it with grep, or read a part with bash", path.display())]
    TooLong { path: PathBuf, size: u64, most: u64 },
    #[error("{} is not text ({size} bytes)", path.display())]
    Binary { path: PathBuf, size: u64 },
    #[error("{} changed since it was read; read it again", .0.display())]
    Changed(PathBuf),
    #[error("{} holds text in {encoding} that cannot be written back as it is", path.display())]
    Encoding {
        path: PathBuf,
        encoding: &'static str,
    },
    #[error("what was judged is not what would be written to {}; nothing was done", .0.display())]
    NotJudged(PathBuf),
    #[error("cannot open {}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

impl FsError {
    fn of(path: &Path, source: io::Error) -> Self {
        match source
            .raw_os_error()
            .map(rustix::io::Errno::from_raw_os_error)
        {
            Some(rustix::io::Errno::NOENT) => Self::Missing(path.to_owned()),
            Some(rustix::io::Errno::NOTDIR) => Self::NotFolder(path.to_owned()),
            Some(rustix::io::Errno::ISDIR) => Self::Folder(path.to_owned()),
            Some(rustix::io::Errno::LOOP) => Self::Swapped(path.to_owned()),
            _ => Self::Io {
                path: path.to_owned(),
                source,
            },
        }
    }
}
