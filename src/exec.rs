//! Running programs: only here, only with a [`Grant`], and nothing that was started survives.
//!
//! Every command is a fresh `bash` in a session of its own beneath a keeper process: the keeper
//! is told of every orphan, and ends all of them when the shell has ended, when it is told to, or
//! when this program is gone. Not here: what may run (`permission`), what a model reads (`tools`).

mod facts;
mod fence;
#[cfg(target_os = "linux")]
mod keeper;
mod monitor;
mod output;
mod process;
mod protected;
mod seccomp;

use std::path::PathBuf;
use std::time::Duration;

use crate::clock;
use crate::permission::{BoxKind, Grant};
use crate::rt::CancellationToken;

pub use facts::Computer;
pub use monitor::{MonitorError, Watched, hash_of, monitor};
pub use output::{KEPT_BYTES, Kept};

/// How long a command has between being told to end and being ended.
const GRACE: Duration = Duration::from_secs(5);

/// How often in that time it is looked for processes that were not told yet.
const TELL: Duration = Duration::from_millis(50);

/// How long a killed command is waited for: one that hangs in the kernel (a dead network disk) does
/// not hold the session. The keeper goes on waiting for it.
const GIVE_UP: Duration = Duration::from_secs(10);

/// The exit status of one that was given up.
const STUCK: i32 = 255;

/// How long the pipe may stay open after everything was ended. Nothing can hold it then; the
/// bound is there so that a mistake costs a second and not a session.
const DRAIN: Duration = Duration::from_secs(2);

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    pub how: How,
    /// The shell's exit status, `128 + N` for signal N.
    pub exit: i32,
    pub output: Kept,
    pub duration: Duration,
    /// What the box kept from it, as its output says it: a line to show.
    pub blocked: Option<String>,
    pub boxed: BoxKind,
    /// The time that it had.
    pub limit: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// By itself.
    Finished,
    /// Its time was over.
    TimedOut,
    /// Someone stopped it.
    Stopped,
}

/// Why a command did not run at all.
#[derive(Debug, thiserror::Error)]
pub enum ExecError {
    #[error("this permission is not for running a command")]
    NotACommand,
    #[error("the folder {0} is not there any more")]
    Folder(PathBuf),
    #[error("bash is not installed on this computer")]
    NoShell,
    #[error("the command could not be started")]
    Spawn(#[source] std::io::Error),
    #[error("no box can be made here: {0}")]
    NoBox(String),
    /// Fail closed: what is not looked through could hold what is protected.
    #[error(
        "not run: {} holds more than {} folders, and what is protected in them cannot all be looked \
         for, so no box makes it writable. Ask for this one command outside of the box, or work in a \
         folder further down",
        .0.display(), protected::MOST_FOLDERS
    )]
    TooMany(PathBuf),
}

/// Runs a command to its end. `output` hears text as it comes; `spill` is where output that is
/// longer than what is kept goes in whole, up to `room` bytes of it (see [`Kept`]), and output that
/// is no text as it was; beside it lies the session's temporary folder, which boxed commands see as
/// `/tmp`.
///
/// When this returns, everything the command started is gone.
pub async fn run(
    grant: Grant,
    spill: PathBuf,
    room: u64,
    output: &(dyn Fn(&str) + Send + Sync),
    stop: CancellationToken,
) -> Result<Ended, ExecError> {
    let run = grant.run().cloned().ok_or(ExecError::NotACommand)?;
    if !run.cwd.is_dir() {
        return Err(ExecError::Folder(run.cwd));
    }
    let began = clock::instant();
    let fence = fence::prepare(&run, Some(&scratch(&spill))).await?;
    let (mut process, mut pipe) = process::Process::start(&run, &fence, process::Leftover::End)?;
    let mut kept = output::Keeping::new(spill, room);
    let deadline = clock::sleep(run.timeout);
    tokio::pin!(deadline);
    let mut how = How::Finished;
    let mut ending = false;
    let mut kill_at: Option<clock::Instant> = None;
    let mut tell_at: Option<clock::Instant> = None;
    let mut killed = false;
    let mut buffer = vec![0; 64 * 1024];
    let mut open = true;
    let exit = loop {
        let at = |moment: Option<clock::Instant>| async move {
            match moment {
                Some(at) => clock::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = &mut deadline, if !ending => {
                how = How::TimedOut;
                ending = true;
                tell_at = Some(clock::instant());
                kill_at = Some(clock::instant() + GRACE);
            }
            () = stop.cancelled(), if how != How::Stopped => {
                how = How::Stopped;
                if !ending {
                    ending = true;
                    tell_at = Some(clock::instant());
                    kill_at = Some(clock::instant() + GRACE);
                }
            }
            () = at(tell_at) => {
                process.terminate();
                tell_at = Some(clock::instant() + TELL);
            }
            () = at(kill_at) => {
                if killed {
                    break STUCK;
                }
                killed = true;
                tell_at = None;
                kill_at = Some(clock::instant() + GIVE_UP);
                process.kill();
            }
            // Behind the others: a flood of output keeps nobody from ending it.
            read = pipe.read(&mut buffer), if open => match read {
                Ok(0) | Err(_) => open = false,
                Ok(count) => kept.take(buffer.get(..count).unwrap_or_default(), output).await,
            },
            exit = process.ended() => break exit,
        }
    };
    // Everything is dead now; what is still in the pipe is read to its end.
    let drain = async {
        while open {
            match pipe.read(&mut buffer).await {
                Ok(0) | Err(_) => open = false,
                Ok(count) => {
                    kept.take(buffer.get(..count).unwrap_or_default(), output)
                        .await;
                }
            }
        }
    };
    let _ = clock::timeout(DRAIN, drain).await;
    drop(fence);
    let kept = kept.finish(output).await;
    let failed = exit != 0 && how == How::Finished && run.r#box.kind != BoxKind::Open;
    let blocked = if failed { blocked(&kept) } else { None };
    Ok(Ended {
        how,
        exit,
        output: kept,
        duration: began.elapsed(),
        blocked,
        boxed: run.r#box.kind,
        limit: run.timeout,
    })
}

/// The session's temporary folder: in the folder of its spilled outputs.
fn scratch(spill: &std::path::Path) -> PathBuf {
    spill.with_file_name("tmp")
}

/// The line that shows that the box kept something from the command.
fn blocked(kept: &Kept) -> Option<String> {
    const SIGNS: &[&str] = &[
        "read-only file system",
        "erofs",
        "network is unreachable",
        "enetunreach",
        "could not resolve",
        "temporary failure in name resolution",
        "name or service not known",
        "no address associated with hostname",
        "getaddrinfo",
        "eai_again",
        "dns error",
        "failed to lookup address",
        "connection refused",
        "econnrefused",
        "operation not permitted",
        "permission denied",
        "eacces",
        "eperm",
    ];
    let text = kept.text();
    let mut lines: Vec<&str> = text.lines().rev().take(200).collect();
    lines.reverse();
    SIGNS.iter().find_map(|sign| {
        lines
            .iter()
            .find(|line| line.to_ascii_lowercase().contains(sign))
            .map(|line| line.trim().chars().take(300).collect())
    })
}
