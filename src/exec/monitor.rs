//! Watch commands: their exit status and every byte they write, as one hash.
//!
//! A command runs once, and in a box: what it says is hashed while it comes ([`hash`]), and the
//! numbers of its processes are the box's own, so that a number in the output (`$$`, what the shell
//! says of a child that a signal ended) is the same at every run.

mod excerpt;
mod hash;

use std::path::Path;
use std::time::Duration;

use self::hash::Taking;
use super::process::{Leftover, Output, Process};
use super::{ExecError, TELL, fence};
use crate::clock;
use crate::permission::Grant;
use crate::rt::{self, CancellationToken};
use crate::spec;

pub use self::hash::hash_of;

/// How much is read at once.
const BUFFER: usize = 256 * 1024;

fn numbers() -> &'static spec::Monitor {
    &spec::numbers().scheduled.monitor
}

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
    /// So much is hashed only with the status 0: of a longer output not all was kept.
    #[error("the command ended with the status {exit} after {bytes} bytes, more than were kept")]
    TooLong { exit: i32, bytes: u64 },
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
            Self::TooLong { .. } => "too_long",
            Self::Interrupted => "interrupted",
        }
    }
}

/// Runs a watch command, once, and hashes what it says. Long output waits for the status in an
/// unnamed file in the folder `room` (at most loop.json `kept_max_bytes`; past that it is hashed on
/// as if the status were 0, and another one is [`MonitorError::TooLong`]).
///
/// When this returns, everything the command started is gone.
pub async fn monitor(
    grant: Grant,
    room: &Path,
    stop: CancellationToken,
) -> Result<Watched, MonitorError> {
    let run = grant
        .run()
        .ok_or(MonitorError::Spawn(ExecError::NotACommand))?;
    if !run.cwd.is_dir() {
        return Err(MonitorError::Spawn(ExecError::Folder(run.cwd.clone())));
    }
    let began = clock::instant();
    let fence = fence::prepare(run, None)
        .await
        .map_err(MonitorError::Spawn)?;
    let (mut process, pipe) =
        Process::start(run, &fence, Leftover::Notice).map_err(MonitorError::Spawn)?;
    let taking = Taking::new(room.to_path_buf(), numbers().kept_max);
    let seen = watch(&mut process, pipe, taking, run.timeout, &stop).await;
    if matches!(
        seen,
        Err(MonitorError::Timeout(_) | MonitorError::Interrupted)
    ) {
        let told = async {
            loop {
                process.terminate();
                if clock::timeout(TELL, process.shell_ended()).await.is_ok() {
                    return;
                }
            }
        };
        let _ = clock::timeout(numbers().kill_after, told).await;
    }
    process.kill();
    process.ended().await;
    let (exit, taking) = seen?;
    if let Some(why) = process.not_boxed().await {
        return Err(MonitorError::Spawn(ExecError::NoBox(why)));
    }
    let duration = began.elapsed();
    // What was kept in the file is read once more, with the status before it.
    let taken = rt::blocking(move || taking.finish(exit)).await;
    let taken = taken.ok_or(MonitorError::Interrupted)?;
    let (excerpt, truncated) = excerpt::of(
        &taken.head,
        &taken.tail,
        taken.bytes,
        numbers().excerpt_max_chars,
    );
    Ok(Watched {
        hash: taken.hash.ok_or(MonitorError::TooLong {
            exit,
            bytes: taken.bytes,
        })?,
        exit,
        bytes: taken.bytes,
        excerpt,
        truncated,
        duration,
    })
}

async fn watch(
    process: &mut Process,
    mut pipe: Output,
    mut taking: Taking,
    limit: Duration,
    stop: &CancellationToken,
) -> Result<(i32, Taking), MonitorError> {
    let mut buffer = vec![0; BUFFER];
    let deadline = clock::sleep(limit);
    tokio::pin!(deadline);
    let mut open = true;
    let mut exit: Option<(i32, clock::Instant)> = None;
    while open || exit.is_none() {
        let linger = async {
            match exit {
                Some((_, since)) => clock::sleep_until(since + numbers().background).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = &mut deadline, if exit.is_none() => return Err(MonitorError::Timeout(limit)),
            () = stop.cancelled() => return Err(MonitorError::Interrupted),
            () = linger => return Err(MonitorError::Background),
            read = pipe.read(&mut buffer), if open => match read {
                Ok(0) | Err(_) => open = false,
                Ok(count) if taking.blocks(count) => {
                    let work = move || {
                        taking.take(buffer.get(..count).unwrap_or_default());
                        (taking, buffer)
                    };
                    (taking, buffer) = rt::blocking(work).await.ok_or(MonitorError::Interrupted)?;
                }
                Ok(count) => taking.take(buffer.get(..count).unwrap_or_default()),
            },
            status = process.shell_ended(), if exit.is_none() => {
                exit = Some((status, clock::instant()));
            }
        }
    }
    Ok((exit.map_or(255, |(exit, _)| exit), taking))
}
