//! One command from start to end: output, timeout, stop, and nothing left behind.

use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::time::Duration;

use tokio::io::AsyncReadExt as _;

use super::command::{self, Started};
use super::kill::{Family, GRACE, Guard};
use super::output::{Characters, Collected, Output};
use crate::clock;
use crate::permission::{BoxKind, Grant};
use crate::rt::CancellationToken;

/// After the shell has ended, how long its pipe is still read when something holds it open.
const AFTER: Duration = Duration::from_secs(1);
/// Characters of output that are told while it runs; the rest comes with the end.
const MAX_LIVE: usize = 64 * 1024;

/// Where a run keeps what it needs on the disk.
#[derive(Clone, Debug)]
pub struct Places {
    /// The file for the whole output.
    pub spill: PathBuf,
    /// The private temporary folder of the session.
    pub scratch: PathBuf,
    /// The daemon's own folders (token, store), covered in every box.
    pub own: Vec<PathBuf>,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    Exit(i32),
    Signal(i32),
    /// It ran longer than it may, and was ended.
    Timeout,
    /// It was told to end.
    Stopped,
}

/// What a command came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    pub ended: Ended,
    pub output: Collected,
    pub time: Duration,
    /// Processes that were still there and were ended.
    pub killed: usize,
}

/// Runs what the grant says and answers when all of it has ended. `live` hears the first
/// 64 KiB of output as text while it runs.
///
/// # Errors
/// When the grant starts nothing, or the shell or its box cannot be started.
pub async fn run(
    grant: Grant,
    places: &Places,
    live: &(dyn Fn(&str) + Sync),
    stop: &CancellationToken,
) -> std::io::Result<Ran> {
    let judged = grant
        .run()
        .ok_or_else(|| std::io::Error::other("this grant starts nothing"))?;
    let began = clock::instant();
    let mut started = command::start(judged, &places.scratch, &places.own)?;
    let family = Family {
        leader: started.pid,
        mark: started.mark.clone(),
        boxed: judged.r#box.kind != BoxKind::Open,
    };
    let mut guard = Guard {
        family: family.clone(),
        done: false,
    };
    let mut collect = Collect {
        output: Output::new(&places.spill),
        characters: Characters::default(),
        live,
        told: 0,
    };
    let deadline = began + judged.timeout;
    let ended = tokio::select! {
        biased;
        () = stop.cancelled() => Ended::Stopped,
        () = clock::sleep_until(deadline) => Ended::Timeout,
        status = follow(&mut started, &mut collect) => {
            let status = status?;
            match (status.code(), status.signal()) {
                (Some(code), _) => Ended::Exit(code),
                (None, signal) => Ended::Signal(signal.unwrap_or(0)),
            }
        }
    };
    let told = matches!(ended, Ended::Stopped | Ended::Timeout);
    if told {
        family.term();
        let _in_grace = clock::timeout(GRACE, follow(&mut started, &mut collect)).await;
    }
    let killed = family.kill().await;
    if told {
        let _reaped = started.child.wait().await;
    }
    guard.done = true;
    // What is still in the pipe after everyone is gone.
    let _late = clock::timeout(AFTER, collect.rest(&mut started)).await;
    Ok(Ran {
        ended,
        output: collect.output.finish(),
        time: began.elapsed(),
        killed,
    })
}

/// Reads until the shell has ended and the pipe is closed, or a second after the shell's end.
async fn follow(
    started: &mut Started,
    collect: &mut Collect<'_>,
) -> std::io::Result<std::process::ExitStatus> {
    let mut buffer = vec![0; 64 * 1024];
    let mut open = true;
    let status = loop {
        tokio::select! {
            read = started.output.read(&mut buffer), if open => match read {
                Ok(0) | Err(_) => open = false,
                Ok(n) => collect.push(buffer.get(..n).unwrap_or_default()),
            },
            status = started.child.wait() => break status?,
        }
    };
    if open {
        let _held = clock::timeout(AFTER, collect.rest(started)).await;
    }
    Ok(status)
}

struct Collect<'a> {
    output: Output,
    characters: Characters,
    live: &'a (dyn Fn(&str) + Sync),
    told: usize,
}

impl Collect<'_> {
    fn push(&mut self, chunk: &[u8]) {
        self.output.push(chunk);
        if self.told >= MAX_LIVE {
            return;
        }
        let text = self.characters.push(chunk);
        let text = crate::text::cut::prefix(&text, MAX_LIVE - self.told);
        self.told += text.len().max(1);
        if !text.is_empty() {
            (self.live)(text);
        }
    }

    async fn rest(&mut self, started: &mut Started) {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(n @ 1..) = started.output.read(&mut buffer).await {
            self.push(buffer.get(..n).unwrap_or_default());
        }
    }
}
