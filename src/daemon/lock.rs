//! One process owns this computer's store: a lock of the kernel, gone with the process.
//!
//! The file's contents only tell others who holds it; whether it is held is the kernel's word, so
//! that a file that was left behind, or emptied, keeps nobody out.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock;

/// How often a lock that is held is tried again.
const AGAIN: Duration = Duration::from_millis(50);

/// Held until dropped.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// Who holds the lock, as far as it wrote that down.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    pub pid: Option<u32>,
    /// Milliseconds since the epoch.
    pub since: Option<i64>,
    /// `daemon`, `up`, `acp`, `command`.
    pub what: Option<String>,
}

/// Why the lock was not taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    #[error("another lembas owns this store")]
    Held(Holder),
    #[error("the lock cannot be used")]
    Io(#[from] io::Error),
}

impl Lock {
    /// Takes the lock, waiting up to `wait` for another process to let it go: a command that is
    /// just ending holds it for a moment.
    pub async fn take(path: &Path, what: &str, wait: Duration) -> Result<Self, LockError> {
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .mode(0o600)
            .open(path)?;
        let until = clock::instant() + wait;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if clock::instant() < until => {
                    clock::sleep(AGAIN).await;
                }
                Err(TryLockError::WouldBlock) => return Err(LockError::Held(holder(&mut file))),
                Err(TryLockError::Error(error)) => return Err(error.into()),
            }
        }
        let me = Holder {
            pid: Some(std::process::id()),
            since: Some(clock::now_ms()),
            what: Some(what.to_owned()),
        };
        let text = serde_json::to_vec(&me).unwrap_or_default();
        file.set_len(0)?;
        file.rewind()?;
        file.write_all(&text)?;
        Ok(Self { _file: file })
    }
}

fn holder(file: &mut File) -> Holder {
    let mut text = String::new();
    // Who holds it is told where it can be read; that it is held is known without.
    let read = file
        .rewind()
        .and_then(|()| file.take(4096).read_to_string(&mut text));
    match read {
        Ok(_) => serde_json::from_str(&text).unwrap_or_default(),
        Err(_) => Holder::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_second_hears_who_is_the_first() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("device.lock");
        let first = Lock::take(&path, "daemon", Duration::ZERO).await.unwrap();
        let error = Lock::take(&path, "up", Duration::ZERO).await.unwrap_err();
        let LockError::Held(holder) = error else {
            panic!("{error:?}");
        };
        assert_eq!(holder.pid, Some(std::process::id()));
        assert_eq!(holder.what.as_deref(), Some("daemon"));
        drop(first);
        Lock::take(&path, "up", Duration::ZERO).await.unwrap();
    }

    #[tokio::test]
    async fn a_file_left_behind_or_emptied_keeps_nobody_out() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("device.lock");
        for text in ["", "{\"pid\":1}", "not json"] {
            std::fs::write(&path, text).unwrap();
            Lock::take(&path, "daemon", Duration::ZERO).await.unwrap();
        }
        // Emptied while it is held: still held, by nobody known.
        let _first = Lock::take(&path, "daemon", Duration::ZERO).await.unwrap();
        std::fs::write(&path, "").unwrap();
        let error = Lock::take(&path, "up", Duration::ZERO).await.unwrap_err();
        assert!(matches!(error, LockError::Held(h) if h == Holder::default()));
    }

    #[tokio::test]
    async fn a_lock_that_is_let_go_in_time_is_taken() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("device.lock");
        let first = Lock::take(&path, "command", Duration::ZERO).await.unwrap();
        let second = Lock::take(&path, "daemon", Duration::from_secs(10));
        let let_go = async {
            clock::sleep(Duration::from_millis(120)).await;
            drop(first);
        };
        let (second, ()) = tokio::join!(second, let_go);
        second.unwrap();
    }
}
