//! A watch command: its output hashed, not kept (spec README, "Monitor"; acp.md).
//!
//! The hash is SHA-256 over the exit status in decimal, one line feed, and every byte the command
//! wrote until its shell ended. The same state gives the same bytes: a fixed environment, nothing
//! to read, one pipe for both outputs. Memory does not grow with the output.

use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::AsyncReadExt as _;

use super::command::{self, Started};
use super::kill::{Family, GRACE, Guard};
use crate::clock;
use crate::ids::hex;
use crate::permission::{BoxKind, Grant};
use crate::rt::CancellationToken;

/// How long a background child may hold the pipe after the shell's end.
const AFTER: Duration = Duration::from_secs(1);
/// Bytes kept of the beginning and of the end for the excerpt: enough for 2,000 characters each.
const KEPT: usize = 8_000;
/// Characters of an excerpt.
pub const EXCERPT: usize = 4_000;

/// What a watch command came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watched {
    /// `sha256:` and lower-case hex.
    pub hash: String,
    /// The exit status; `128 + N` for signal N.
    pub exit: i32,
    pub bytes: u64,
    pub excerpt: String,
    /// Something between head and tail was left out of the excerpt.
    pub truncated: bool,
    pub time: Duration,
}

/// Why there is no hash.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    #[error("the command could not be started: {0}")]
    Spawn(#[source] std::io::Error),
    #[error("the command ran longer than {} s and was ended", limit.as_secs())]
    Timeout { limit: Duration, ended: usize },
    #[error(
        "a process that the command left in the background still held its output 1 s after its end"
    )]
    Background,
    #[error("the output could not be kept until its status was known: {0}")]
    Keep(#[source] std::io::Error),
    #[error("the check was interrupted")]
    Interrupted,
}

/// Runs a watch command.
///
/// # Errors
/// As [`WatchError`] says; never a hash of half an output.
pub async fn watch(
    grant: Grant,
    scratch: &Path,
    own: &[PathBuf],
    stop: &CancellationToken,
) -> Result<Watched, WatchError> {
    let judged = grant
        .run()
        .ok_or_else(|| WatchError::Spawn(std::io::Error::other("this grant starts nothing")))?;
    let began = clock::instant();
    let mut started = command::start(judged, scratch, own).map_err(WatchError::Spawn)?;
    let family = Family {
        leader: started.pid,
        mark: started.mark.clone(),
        boxed: judged.r#box.kind != BoxKind::Open,
    };
    let mut guard = Guard {
        family: family.clone(),
        done: false,
    };
    let mut read = Reading::new(scratch);
    let deadline = began + judged.timeout;
    let answer = tokio::select! {
        biased;
        () = stop.cancelled() => Err(WatchError::Interrupted),
        () = clock::sleep_until(deadline) => Err(WatchError::Timeout { limit: judged.timeout, ended: 0 }),
        status = read.all(&mut started) => status,
    };
    if matches!(
        answer,
        Err(WatchError::Timeout { .. } | WatchError::Interrupted)
    ) {
        family.term();
        let _in_grace = clock::timeout(GRACE, started.child.wait()).await;
    }
    let killed = family.kill().await;
    let _reaped = started.child.wait().await;
    guard.done = true;
    let exit = answer.map_err(|error| match error {
        WatchError::Timeout { limit, .. } => WatchError::Timeout {
            limit,
            ended: killed,
        },
        other => other,
    })?;
    read.finish(exit, began.elapsed())
}

/// The output so far.
///
/// In the hash the status comes first, and it is known last. So the hash for status 0, the usual
/// one, is worked out as the bytes come; for any other the bytes are needed again: the first half
/// megabyte is kept in memory, what follows in a file without a name.
struct Reading<'a> {
    good: ring::digest::Context,
    bytes: u64,
    first: Vec<u8>,
    tail: Vec<u8>,
    rest: Option<File>,
    scratch: &'a Path,
}

/// Bytes kept in memory.
const FIRST: usize = 512 * 1024;
/// Bytes read at once.
const CHUNK: usize = 256 * 1024;

impl<'a> Reading<'a> {
    fn new(scratch: &'a Path) -> Self {
        let mut good = ring::digest::Context::new(&ring::digest::SHA256);
        good.update(b"0\n");
        Self {
            good,
            bytes: 0,
            first: Vec::new(),
            tail: Vec::new(),
            rest: None,
            scratch,
        }
    }

    /// Reads until the shell has ended and everything it wrote is here.
    async fn all(&mut self, started: &mut Started) -> Result<i32, WatchError> {
        let mut buffer = vec![0; CHUNK];
        let mut open = true;
        let status = loop {
            tokio::select! {
                read = started.output.read(&mut buffer), if open => match read {
                    Ok(0) | Err(_) => open = false,
                    Ok(n) => self.push(buffer.get(..n).unwrap_or_default())?,
                },
                status = started.child.wait() => break status.map_err(WatchError::Spawn)?,
            }
        };
        let mut late = clock::instant() + AFTER;
        while open {
            match clock::timeout_at(late, started.output.read(&mut buffer)).await {
                Err(_) => return Err(WatchError::Background),
                Ok(Ok(0) | Err(_)) => open = false,
                Ok(Ok(n)) => {
                    self.push(buffer.get(..n).unwrap_or_default())?;
                    // What the shell wrote before its end may still be in the pipe.
                    late = clock::instant() + AFTER;
                }
            }
        }
        Ok(status
            .code()
            .unwrap_or_else(|| 128 + status.signal().unwrap_or(0)))
    }

    fn push(&mut self, chunk: &[u8]) -> Result<(), WatchError> {
        self.bytes += chunk.len() as u64;
        self.good.update(chunk);
        let room = FIRST.saturating_sub(self.first.len()).min(chunk.len());
        let (first, rest) = chunk.split_at(room);
        self.first.extend_from_slice(first);
        if rest.is_empty() {
            return Ok(());
        }
        if self.rest.is_none() {
            self.rest = Some(unnamed(self.scratch).map_err(WatchError::Keep)?);
        }
        if let Some(file) = &mut self.rest {
            file.write_all(rest).map_err(WatchError::Keep)?;
        }
        self.tail.extend_from_slice(
            rest.get(rest.len().saturating_sub(KEPT)..)
                .unwrap_or_default(),
        );
        if self.tail.len() > 2 * KEPT {
            self.tail.drain(..self.tail.len() - KEPT);
        }
        Ok(())
    }

    fn finish(mut self, exit: i32, time: Duration) -> Result<Watched, WatchError> {
        let hash = if exit == 0 {
            self.good.finish()
        } else {
            let mut hash = ring::digest::Context::new(&ring::digest::SHA256);
            hash.update(format!("{exit}\n").as_bytes());
            hash.update(&self.first);
            if let Some(file) = &mut self.rest {
                file.rewind().map_err(WatchError::Keep)?;
                let mut buffer = vec![0; CHUNK];
                loop {
                    let n = file.read(&mut buffer).map_err(WatchError::Keep)?;
                    if n == 0 {
                        break;
                    }
                    hash.update(buffer.get(..n).unwrap_or_default());
                }
            }
            hash.finish()
        };
        let whole = self.rest.is_none();
        let (excerpt, truncated) = excerpt(&self.first, &self.tail, whole);
        Ok(Watched {
            hash: format!("sha256:{}", hex(hash.as_ref())),
            exit,
            bytes: self.bytes,
            excerpt,
            truncated,
            time,
        })
    }
}

/// A file that is gone when it is closed.
fn unnamed(folder: &Path) -> std::io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    std::fs::create_dir_all(folder)?;
    let path = folder.join(format!("watch-{}", crate::ids::random_hex(8)));
    let file = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

/// Head and tail as valid text without control characters but tab and line feed, secrets masked.
fn excerpt(first: &[u8], tail: &[u8], whole: bool) -> (String, bool) {
    let half = EXCERPT / 2;
    let clean = |bytes: &[u8]| -> String {
        crate::text::secrets::masked(&String::from_utf8_lossy(bytes))
            .chars()
            .filter(|c| !c.is_control() || matches!(c, '\t' | '\n'))
            .collect()
    };
    if whole {
        let text = clean(first);
        let count = text.chars().count();
        if count <= EXCERPT {
            return (text, false);
        }
        let head: String = text.chars().take(half).collect();
        let end: String = text.chars().skip(count - half).collect();
        return (joined(&head, &end), true);
    }
    let head: String = clean(first.get(..KEPT).unwrap_or(first))
        .chars()
        .take(half)
        .collect();
    let end = clean(tail.get(tail.len().saturating_sub(KEPT)..).unwrap_or(tail));
    let skip = end.chars().count().saturating_sub(half);
    (
        joined(&head, &end.chars().skip(skip).collect::<String>()),
        true,
    )
}

fn joined(head: &str, end: &str) -> String {
    const MARK: &str = "\n[…]\n";
    let room = EXCERPT - MARK.chars().count();
    let head: String = head.chars().take(room / 2).collect();
    let skip = end.chars().count().saturating_sub(room / 2);
    format!("{head}{MARK}{}", end.chars().skip(skip).collect::<String>())
}
