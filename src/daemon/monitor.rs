//! A watch command for somebody at this computer: as a schedule would run it, but for the limits
//! that are the instance's. It asks nobody; what would ask is not run.
//!
//! The daemon answers it where one runs ([`Here`]); without one the command runs it by itself
//! ([`alone`]), by the same rules.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use jsonrpsee_types::ErrorObjectOwned;
use serde::Deserialize;
use serde_json::{Value, json};

use super::control::{self, Detail, refusal};
use super::lock::Lock;
use super::machine;
use super::table::Monitor;
use super::watches::{self, Judged};
use crate::acp::MONITOR;
use crate::clock;
use crate::config::{Live, Mode, Paths};
use crate::exec::Computer;
use crate::permission::Engine;
use crate::remote::{Check, Seen, Unseen, Watch, default_mode};
use crate::rt::CancellationToken;
use crate::store::device::Store;
use crate::text::{json, words};

/// Runs watch commands of this computer's own people.
pub struct Here {
    watch: Arc<dyn Watch>,
    live: Live,
}

impl Here {
    pub fn new(watch: Arc<dyn Watch>, live: Live) -> Self {
        Self { watch, live }
    }
}

#[derive(Debug, Deserialize)]
struct Params {
    /// Canonical.
    cwd: PathBuf,
    command: String,
    mode: Option<Mode>,
    /// Seconds.
    timeout: u64,
}

impl Monitor for Here {
    fn run(&self, params: Value) -> BoxFuture<'static, Result<Value, ErrorObjectOwned>> {
        let (watch, live) = (Arc::clone(&self.watch), self.live.clone());
        async move {
            let asked = Params::read(params)?;
            // Dropping the call, when the command's person is gone, ends the command.
            let stop = CancellationToken::new();
            let _ends = stop.clone().drop_guard();
            let check = asked.check(&live, stop);
            let (mode, began) = (check.mode, clock::instant());
            let seen = watch.check(check).await;
            let seen = seen.map_err(|why| unseen(why, &asked, mode))?;
            Ok(said(&seen, mode, began.elapsed()))
        }
        .boxed()
    }
}

/// Runs a watch command where no daemon runs. The store is held only while the command is judged: a
/// daemon that starts meanwhile does not wait for its end.
///
/// # Errors
/// As the daemon's answer; the outer one when the store cannot be used.
pub async fn alone(
    paths: &Paths,
    live: &Live,
    lock: Lock,
    params: Value,
) -> anyhow::Result<Result<Value, ErrorObjectOwned>> {
    let asked = match Params::read(params) {
        Ok(asked) => asked,
        Err(error) => return Ok(Err(error)),
    };
    let check = asked.check(live, CancellationToken::new());
    let store = Store::open(&paths.data, &paths.state.join("chain"))
        .await
        .context("the store cannot be opened")?;
    let rules = watches::rules_of(&store, &check)
        .await
        .context("the rules cannot be read")?;
    let judge = Arc::new(Engine::with(Arc::new(Computer::new(machine::own(paths)))));
    let (mode, began) = (check.mode, clock::instant());
    let judged = match watches::judged(judge, live, rules, &check).await {
        Ok(Judged::Runs(grant)) => Ok(grant),
        Ok(Judged::Asks(pending)) => Err(watches::refused(&store, *pending, &check).await),
        Err(unseen) => Err(unseen),
    };
    drop((store, lock));
    let seen = match judged {
        Ok(grant) => watches::ran(*grant, &paths.state, &check).await,
        Err(unseen) => Err(unseen),
    };
    let seen = seen.map_err(|why| unseen(why, &asked, mode));
    Ok(seen.map(|seen| said(&seen, mode, began.elapsed())))
}

impl Params {
    fn read(params: Value) -> Result<Self, ErrorObjectOwned> {
        json::read(params).map_err(|why| control::unread(&why))
    }

    fn check(&self, live: &Live, stop: CancellationToken) -> Check {
        let mut roots = live.now().remote.roots.clone();
        if !roots.iter().any(|root| self.cwd.starts_with(root)) {
            roots.push(self.cwd.clone());
        }
        Check {
            instance: String::new(),
            grant: "local".to_owned(),
            schedule: "here".to_owned(),
            cwd: self.cwd.clone(),
            roots,
            command: self.command.clone(),
            mode: self.mode.unwrap_or_else(default_mode),
            timeout: Duration::from_secs(self.timeout),
            stop,
        }
    }
}

fn said(seen: &Seen, mode: Mode, took: Duration) -> Value {
    json!({
        "hash": seen.hash, "exit": seen.exit, "bytes": seen.bytes,
        "excerpt": seen.excerpt, "truncated": seen.truncated,
        "duration_ms": u64::try_from(took.as_millis()).unwrap_or(u64::MAX), "mode": mode,
    })
}

fn unseen(why: Unseen, asked: &Params, mode: Mode) -> ErrorObjectOwned {
    let command =
        crate::text::cut::one_line(&crate::text::escape::visible_line(&asked.command), 200);
    let (code, text, why, fix) = match why {
        Unseen::Refused(why) => (
            "refused",
            format!("this may not run here: {command}"),
            why,
            "lembas help remote".to_owned(),
        ),
        Unseen::Ask { why, fix } => (
            "ask",
            format!("this would need your yes, and a watch command asks nobody: {command}"),
            why,
            fix,
        ),
        Unseen::Timeout => (
            "timeout",
            format!(
                "no result: the command ran longer than {} s and was ended",
                asked.timeout
            ),
            "every process it had started was ended with it".to_owned(),
            "lembas monitor --timeout 600 -- COMMAND          (the most)".to_owned(),
        ),
        Unseen::Spawn(why) => (
            "spawn",
            format!("the command could not be started: {command}"),
            why,
            "lembas status".to_owned(),
        ),
        Unseen::Background => (
            "background",
            "no result: something that the command started still held its output 1 s after its end"
                .to_owned(),
            "output that goes on has no hash".to_owned(),
            "end it in the command, or send its output elsewhere:  … >/dev/null 2>&1 &".to_owned(),
        ),
        Unseen::TooLong { exit, bytes } => (
            "too_long",
            format!(
                "no result: the command wrote {} and ended with the status {exit}",
                words::bytes(bytes)
            ),
            format!(
                "more than {} are only hashed when it ends with 0",
                words::bytes(crate::spec::numbers().scheduled.monitor.kept_max)
            ),
            "let it say less, or end with 0:  … | sha256sum".to_owned(),
        ),
        Unseen::Stopped => (
            "interrupted",
            "no result: the command was ended".to_owned(),
            "the daemon stopped".to_owned(),
            "run it again".to_owned(),
        ),
    };
    tracing::debug!(code, mode = mode.word(), "a watch command gave no hash");
    refusal(
        text,
        Detail {
            code: code.to_owned(),
            why: Some(why),
            fixes: vec![fix],
            number: Some(MONITOR),
        },
    )
}
