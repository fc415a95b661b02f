//! Watch commands: their exit status and every byte they write, as one hash.
//!
//! The hash is SHA-256 over the status in decimal, a newline, and the bytes. The status is known
//! last but hashed first: short output waits for it in memory, long output is hashed on the guess
//! that the status is 0, and a long output with another status is made a second time.

use std::time::Duration;

use ring::digest::{Context as Hash, SHA256};

use super::process::{Leftover, Output, Process};
use super::{ExecError, GRACE, TELL, fence};
use crate::clock;
use crate::permission::{Grant, Run};
use crate::rt::CancellationToken;

/// How much output waits for the status.
const HELD: usize = 512 * 1024;

/// How much is read at once.
const BUFFER: usize = 256 * 1024;

/// How long what the shell left behind may hold the pipe.
const LINGER: Duration = Duration::from_secs(1);

/// Characters of the excerpt, beginning and end together.
const EXCERPT: usize = 4_000;
/// Stands where something was left out of an excerpt.
const MARK: &str = "\n[…]\n";

/// What a watch command came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watched {
    /// `sha256:` and lower-case hex.
    pub hash: String,
    pub exit: i32,
    pub bytes: u64,
    /// Beginning and end, without control characters but tab and newline.
    pub excerpt: String,
    pub truncated: bool,
    pub duration: Duration,
}

/// Why there is no hash.
#[derive(Debug, thiserror::Error)]
pub enum MonitorError {
    #[error("the command took longer than {} s", .0.as_secs())]
    Timeout(Duration),
    #[error("the command could not be started")]
    Spawn(#[source] ExecError),
    #[error("the command left something running behind it")]
    Background,
    #[error("the check was stopped")]
    Interrupted,
}

impl MonitorError {
    /// As it is said over the link.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Timeout(_) => "timeout",
            Self::Spawn(_) => "spawn",
            Self::Background => "background",
            Self::Interrupted => "interrupted",
        }
    }
}

/// Runs a watch command and hashes what it says.
pub async fn monitor(grant: Grant, stop: CancellationToken) -> Result<Watched, MonitorError> {
    let run = grant
        .run()
        .cloned()
        .ok_or(MonitorError::Spawn(ExecError::NotACommand))?;
    let first = once(&run, 0, &stop).await?;
    match first {
        Seen::Whole(watched) => Ok(watched),
        Seen::OtherStatus(exit) => match once(&run, exit, &stop).await? {
            Seen::Whole(watched) => Ok(watched),
            // It ends differently each time: whatever is taken, it is one of its states.
            Seen::OtherStatus(_) => Err(MonitorError::Interrupted),
        },
    }
}

enum Seen {
    Whole(Watched),
    /// Long output was hashed for another status than this.
    OtherStatus(i32),
}

async fn once(run: &Run, guess: i32, stop: &CancellationToken) -> Result<Seen, MonitorError> {
    let began = clock::instant();
    let fence = fence::prepare(run, None)
        .await
        .map_err(MonitorError::Spawn)?;
    let (mut process, pipe) =
        Process::start(run, &fence, Leftover::Notice).map_err(MonitorError::Spawn)?;
    let mut taking = Taking::new(guess);
    let result = watch(run, &mut process, pipe, &mut taking, stop).await;
    if result.is_err() && !matches!(result, Err(MonitorError::Background)) {
        let told = async {
            loop {
                process.terminate();
                if clock::timeout(TELL, process.shell_ended()).await.is_ok() {
                    return;
                }
            }
        };
        let _ = clock::timeout(GRACE, told).await;
    }
    process.kill();
    process.ended().await;
    let exit = result?;
    Ok(taking.finish(exit, began.elapsed()))
}

async fn watch(
    run: &Run,
    process: &mut Process,
    mut pipe: Output,
    taking: &mut Taking,
    stop: &CancellationToken,
) -> Result<i32, MonitorError> {
    let mut buffer = vec![0; BUFFER];
    let deadline = clock::sleep(run.timeout);
    tokio::pin!(deadline);
    let mut open = true;
    let mut exit: Option<(i32, clock::Instant)> = None;
    while open || exit.is_none() {
        let linger = async {
            match exit {
                Some((_, since)) => clock::sleep_until(since + LINGER).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = &mut deadline, if exit.is_none() => return Err(MonitorError::Timeout(run.timeout)),
            () = stop.cancelled() => return Err(MonitorError::Interrupted),
            () = linger => return Err(MonitorError::Background),
            read = pipe.read(&mut buffer), if open => match read {
                Ok(0) | Err(_) => open = false,
                Ok(count) => taking.take(buffer.get(..count).unwrap_or_default()),
            },
            status = process.shell_ended(), if exit.is_none() => {
                exit = Some((status, clock::instant()));
            }
        }
    }
    Ok(exit.map_or(255, |(exit, _)| exit))
}

/// What was read so far.
struct Taking {
    guess: i32,
    held: Vec<u8>,
    hash: Option<Hash>,
    bytes: u64,
    head: Vec<u8>,
    tail: Vec<u8>,
}

impl Taking {
    fn new(guess: i32) -> Self {
        Self {
            guess,
            held: Vec::new(),
            hash: None,
            bytes: 0,
            head: Vec::new(),
            tail: Vec::new(),
        }
    }

    fn take(&mut self, piece: &[u8]) {
        self.bytes += piece.len() as u64;
        // A character is at most four bytes.
        let most = EXCERPT * 4;
        let free = most.saturating_sub(self.head.len());
        self.head
            .extend_from_slice(piece.get(..free.min(piece.len())).unwrap_or_default());
        if piece.len() >= most {
            self.tail.clear();
        }
        let from = piece.len().saturating_sub(most);
        self.tail
            .extend_from_slice(piece.get(from..).unwrap_or_default());
        let over = self.tail.len().saturating_sub(most);
        self.tail.drain(..over);
        match &mut self.hash {
            Some(hash) => hash.update(piece),
            None if self.held.len() + piece.len() <= HELD => self.held.extend_from_slice(piece),
            None => {
                let mut hash = begin(self.guess);
                hash.update(&self.held);
                hash.update(piece);
                self.held = Vec::new();
                self.hash = Some(hash);
            }
        }
    }

    fn finish(self, exit: i32, duration: Duration) -> Seen {
        let hash = match self.hash {
            Some(_) if exit != self.guess => return Seen::OtherStatus(exit),
            Some(hash) => hash,
            None => {
                let mut hash = begin(exit);
                hash.update(&self.held);
                hash
            }
        };
        let hash = crate::ids::hex(hash.finish().as_ref());
        let (excerpt, truncated) = excerpt(&self.head, &self.tail, self.bytes);
        Seen::Whole(Watched {
            hash: format!("sha256:{hash}"),
            exit,
            bytes: self.bytes,
            excerpt,
            truncated,
            duration,
        })
    }
}

fn begin(exit: i32) -> Hash {
    let mut hash = Hash::new(&SHA256);
    hash.update(exit.to_string().as_bytes());
    hash.update(b"\n");
    hash
}

/// Beginning and end of an output, readable.
fn excerpt(head: &[u8], tail: &[u8], bytes: u64) -> (String, bool) {
    let clean = |bytes: &[u8]| -> Vec<char> {
        crate::text::secrets::masked(&String::from_utf8_lossy(bytes))
            .chars()
            .filter(|c| !c.is_control() || matches!(c, '\t' | '\n'))
            .collect()
    };
    let whole = head.len() as u64 == bytes;
    let head = clean(head);
    if whole && head.len() <= EXCERPT {
        return (head.into_iter().collect(), false);
    }
    let tail = clean(tail);
    // The mark counts too: the excerpt is never longer than it may be (acp.md M8).
    let half = (EXCERPT - MARK.chars().count()) / 2;
    let first: String = head.iter().take(half).collect();
    let last: String = tail
        .get(tail.len().saturating_sub(half)..)
        .unwrap_or_default()
        .iter()
        .collect();
    (format!("{first}{MARK}{last}"), true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_is_never_longer_than_it_may_be() {
        let text = "0123456789\n".repeat(1_000);
        let (cut, truncated) = excerpt(text.as_bytes(), text.as_bytes(), text.len() as u64);
        assert!(truncated && cut.contains(MARK));
        assert!(cut.chars().count() <= EXCERPT, "{}", cut.chars().count());
        let (whole, truncated) = excerpt(b"a\x07\xff\n", b"", 4);
        assert_eq!((whole.as_str(), truncated), ("a\u{fffd}\n", false));
    }
}
