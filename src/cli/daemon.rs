//! `lembas daemon` and `lembas acp`: this computer's agent, in the foreground and for an editor.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::failure::{Exit, Failure};
use super::out::Out;
use super::{Ending, ask, limits, logs};
use crate::config::{Live, Paths};
use crate::daemon::control::STREAM_ACP;
use crate::daemon::control::client::{Client, ControlError};
use crate::daemon::lock::{Holder, Lock, LockError};
use crate::daemon::{self, Daemon, Start};
use crate::text::words;

/// How long a command that is just ending may still hold the store.
const LOCK: Duration = Duration::from_secs(2);

/// A runtime for a process that stays.
pub(super) fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    // Two workers serve any number of sessions; the model and the disk are what is waited for.
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failure::from(anyhow::Error::from(error)))
}

pub(super) fn run(out: Out, paths: &Paths) -> Ending {
    logs::begin(paths, "info");
    let runtime = runtime()?;
    let ended = runtime.block_on(async {
        let config = limits::read(paths)?;
        let lock = lock(paths, "daemon").await?;
        let daemon = Daemon::start(Start {
            paths: paths.clone(),
            live: Live::new(config),
            lock,
            what: "daemon",
            link: true,
            more: None,
        })
        .await?;
        let signals = Signals::listen()?;
        daemon::ready();
        if out.json {
            out.object(&serde_json::json!({
                "ok": true, "state": "started", "pid": std::process::id(),
            }));
        }
        signals.until_told(&daemon).await;
        daemon.stop().await;
        Ok(Exit::Well)
    });
    runtime.shutdown_timeout(Duration::from_secs(1));
    ended
}

/// The signals a daemon obeys. They are listened to before anybody is told that it runs: one that
/// comes at once must not meet the system's own way with it.
pub(super) struct Signals {
    term: Signal,
    int: Signal,
    hup: Signal,
}

impl Signals {
    pub(super) fn listen() -> Result<Self, Failure> {
        let failed = |error: std::io::Error| Failure::from(anyhow::Error::from(error));
        Ok(Self {
            term: signal(SignalKind::terminate()).map_err(failed)?,
            int: signal(SignalKind::interrupt()).map_err(failed)?,
            hup: signal(SignalKind::hangup()).map_err(failed)?,
        })
    }

    /// Waits until one says to end. A hang-up looks at the settings and the pairing again.
    pub(super) async fn until_told(mut self, daemon: &Daemon) {
        loop {
            tokio::select! {
                _ = self.term.recv() => return,
                _ = self.int.recv() => return,
                _ = self.hup.recv() => daemon.reload(),
            }
        }
    }
}

/// The store's lock, or who has it.
pub(super) async fn lock(paths: &Paths, what: &str) -> Result<Lock, Failure> {
    lock_within(paths, what, LOCK).await
}

/// The same, for who waits another time than usual.
pub(super) async fn lock_within(
    paths: &Paths,
    what: &str,
    wait: Duration,
) -> Result<Lock, Failure> {
    Lock::take(&paths.lock(), what, wait)
        .await
        .map_err(|error| match error {
            LockError::Held(holder) => held(&holder),
            LockError::Io(error) => Failure::new(
                Exit::Config,
                "folder",
                format!("{} cannot be used", paths.show(&paths.lock())),
                format!("ls -ld {}", words::quoted(&paths.show(&paths.data))),
            )
            .why(words::io(&error)),
        })
}

fn held(holder: &Holder) -> Failure {
    let who = match (holder.what.as_deref(), holder.pid) {
        (Some(what), Some(pid)) => format!("lembas {what} (pid {pid})"),
        (None, Some(pid)) => format!("another lembas (pid {pid})"),
        _ => "another lembas".to_owned(),
    };
    Failure::new(
        Exit::Unavailable,
        "running",
        format!("{who} runs on this computer already, with the same data"),
        "lembas status",
    )
    .or("lembas --data OTHER-FOLDER …          (a second one, apart from it)")
}

/// ACP on stdin and stdout. Where a daemon runs this is a pipe to it; otherwise this process owns
/// the store while the editor is there.
pub(super) fn acp(paths: &Paths) -> Ending {
    logs::begin(paths, "warn");
    let runtime = ask::runtime()?;
    let ended = runtime.block_on(async {
        match Client::connect(&paths.socket()).await {
            Ok(client) => pipe(client).await,
            Err(ControlError::NotRunning) => own(paths).await,
            Err(error) => Err(ask::failure(error)),
        }
    });
    // A read of stdin may still hang; nothing waits for it.
    runtime.shutdown_background();
    ended
}

/// Bytes to the daemon and back, untouched.
async fn pipe(client: Client) -> Ending {
    let parts = client.stream(STREAM_ACP).await.map_err(ask::failure)?;
    let (mut from, mut to) = parts.io.into_split();
    let mut stdin = tokio::io::stdin();
    let mut stdout = tokio::io::stdout();
    let mut early = std::io::Cursor::new(parts.read_buf.freeze()).chain(&mut from);
    let up = async {
        // The editor closed its end: so do we, and wait for the last answers.
        let _ = tokio::io::copy(&mut stdin, &mut to).await;
        let _ = to.shutdown().await;
        std::future::pending::<()>().await;
    };
    let down = async {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            match early.read(&mut buffer).await {
                Ok(0) | Err(_) => return,
                Ok(n) => {
                    let piece = buffer.get(..n).unwrap_or_default();
                    let written = stdout.write_all(piece).await;
                    if written.is_err() || stdout.flush().await.is_err() {
                        return;
                    }
                }
            }
        }
    };
    tokio::select! {
        () = up => {}
        () = down => {}
    }
    Ok(Exit::Well)
}

async fn own(paths: &Paths) -> Ending {
    let config = limits::read(paths)?;
    let lock = match lock(paths, "acp").await {
        Ok(lock) => lock,
        // Another editor's agent began a moment ago: it answers for both.
        Err(failure) => match Client::connect(&paths.socket()).await {
            Ok(client) => return pipe(client).await,
            Err(_) => return Err(failure),
        },
    };
    let daemon = Daemon::start(Start {
        paths: paths.clone(),
        live: Live::new(config),
        lock,
        what: "acp",
        link: false,
        more: None,
    })
    .await?;
    let signals = Signals::listen()?;
    let served = daemon
        .device()
        .serve_lines(tokio::io::stdin(), tokio::io::stdout());
    tokio::select! {
        () = served => {}
        () = signals.until_told(&daemon) => {}
    }
    daemon.stop().await;
    Ok(Exit::Well)
}
