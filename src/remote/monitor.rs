//! `_lembas/monitor`: a schedule's watch command, run and hashed (acp.md, Monitor).
//!
//! Judged like all scheduled work, counted by its run, and bounded: one check a schedule, a few a
//! computer, the rest waits a while and is then refused. Not here: how a command runs and what of
//! its output is hashed ([`Watch`], `exec`).

mod queue;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};

use super::limits::Limits;
use super::scheduled;
use crate::acp::{Again, Did, KeyScope, Keys, Limits as _, MONITOR, Refusal};
use crate::clock;
use crate::config::Mode;
use crate::rpc::RpcError;
use crate::rt::{self, CancellationToken};
use crate::spec;
use crate::text::{json, words};
use queue::Queue;

/// The longest command, in bytes.
const MAX_COMMAND: usize = 64 * 1024;

/// Runs watch commands. A command that may not run, or about which one would have to ask, is not
/// run; nobody is asked.
pub trait Watch: Send + Sync + 'static {
    fn check(&self, check: Check) -> BoxFuture<'static, Result<Seen, Unseen>>;
}

/// One run of a watch command.
#[derive(Clone, Debug)]
pub struct Check {
    /// The grant of the instance that asks: rules are bound to it.
    pub instance: String,
    pub grant: String,
    pub schedule: String,
    /// Canonical, inside a root.
    pub cwd: PathBuf,
    /// The roots, canonical.
    pub roots: Vec<PathBuf>,
    pub command: String,
    /// After lowering.
    pub mode: Mode,
    pub timeout: Duration,
    /// Ends the command, with everything it started.
    pub stop: CancellationToken,
}

/// What a command that ran to its end gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// `sha256:` and hex, over the exit status, a line feed and all bytes.
    pub hash: String,
    /// 128 + N for a signal N.
    pub exit: i32,
    pub bytes: u64,
    /// Head and tail, bounded, without secrets and control characters.
    pub excerpt: String,
    pub truncated: bool,
}

/// Why there is no hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unseen {
    /// The rules say no; the words say which.
    Refused(String),
    /// A person would have to be asked: about what, and the line that allows it on this computer.
    Ask {
        why: String,
        fix: String,
    },
    Timeout,
    /// It could not be started, and why.
    Spawn(String),
    /// A child still held the output after the shell's end.
    Background,
    /// The command ended with this status after more output than is kept for one that is not 0.
    TooLong {
        exit: i32,
        bytes: u64,
    },
    /// `stop` was set off.
    Stopped,
}

#[derive(Debug, Deserialize)]
struct Params {
    schedule: String,
    run: String,
    cwd: PathBuf,
    command: String,
    mode: Option<Mode>,
    timeout: Option<u64>,
    last: Option<String>,
    #[serde(default)]
    confirm: u64,
    fail_on: Option<FailOn>,
    #[serde(default)]
    excerpt: Excerpt,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum FailOn {
    Nonzero,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Excerpt {
    None,
    #[default]
    Full,
}

/// The checks of this computer. Cheap to clone.
#[derive(Clone)]
pub struct Monitor {
    limits: Limits,
    keys: Keys,
    watch: Arc<dyn Watch>,
    queue: Queue,
}

fn numbers() -> &'static spec::Monitor {
    &spec::numbers().scheduled.monitor
}

fn refusal(reason: &'static str, text: impl Into<String>) -> Refusal {
    Refusal::new(MONITOR, reason, text)
}

impl Monitor {
    pub fn new(limits: Limits, keys: Keys, watch: Arc<dyn Watch>) -> Self {
        Self {
            limits,
            keys,
            watch,
            queue: Queue::new(numbers().parallel),
        }
    }

    /// Ends the checks whose folder meets `gone`: they answer `interrupted`.
    pub fn end(&self, gone: impl Fn(&std::path::Path) -> bool) {
        self.queue.end(gone);
    }

    /// Answers one request.
    ///
    /// # Errors
    /// -32051 with the reason, -32602 for params that are not possible.
    pub async fn answer(
        self,
        instance: String,
        grant: String,
        params: Value,
    ) -> Result<Value, RpcError> {
        let asked: Params = json::read(params.clone())
            .map_err(|why| Refusal::new(RpcError::INVALID_PARAMS, "params", why))?;
        let check = self.judge(&asked, instance, grant.clone()).await?;
        let scope = KeyScope {
            grant,
            method: "_lembas/monitor".to_owned(),
            subject: asked.schedule.clone(),
        };
        let again = Again::Say(refusal("interrupted", INTERRUPTED).into());
        let run = asked.run.clone();
        let monitor = self.clone();
        let work = async move { monitor.run(asked, check).await }.boxed();
        self.keys.once(scope, run, &params, again, work).await
    }

    async fn judge(
        &self,
        asked: &Params,
        instance: String,
        grant: String,
    ) -> Result<Check, Refusal> {
        let config = self.limits.now();
        scheduled::taken(&config.remote, MONITOR)?;
        let mode = scheduled::mode(asked.mode, &config.remote, MONITOR)?;
        scheduled::id(&asked.schedule, "schedule")?;
        scheduled::id(&asked.run, "run")?;
        let numbers = numbers();
        let bad = |text: String| Refusal::new(RpcError::INVALID_PARAMS, "params", text);
        let timeout = asked.timeout.map_or(numbers.timeout, Duration::from_secs);
        if timeout.is_zero() || timeout > numbers.timeout_max {
            return Err(bad(format!(
                "timeout: 1 to {} seconds",
                numbers.timeout_max.as_secs()
            )));
        }
        if asked.confirm > numbers.confirm_max {
            return Err(bad(format!("confirm: 0 to {}", numbers.confirm_max)));
        }
        if asked.command.trim().is_empty() || asked.command.len() > MAX_COMMAND {
            return Err(bad(format!("command: 1 to {MAX_COMMAND} bytes")));
        }
        let (limits, cwd) = (self.limits.clone(), asked.cwd.clone());
        let folder = rt::blocking(move || (limits.folder(&cwd), limits.roots())).await;
        let (folder, roots) =
            folder.ok_or_else(|| refusal("root", "the folder could not be looked at"))?;
        let cwd = folder.map_err(|no| match no.reason {
            "remote_off" | "paused" => no,
            _ => refusal("root", no.text).about(asked.cwd.display().to_string()),
        })?;
        Ok(Check {
            instance,
            grant,
            schedule: asked.schedule.clone(),
            cwd,
            roots,
            command: asked.command.clone(),
            mode: mode.mode,
            timeout,
            stop: CancellationToken::new(),
        })
    }

    async fn run(self, asked: Params, check: Check) -> Did {
        let place = self.queue.enter(&check.schedule, &check.cwd, &check.stop);
        let Ok(_place) = clock::timeout(numbers().queue, place).await else {
            let text = "other checks are running on this computer; this one waited and had no turn";
            return Did::Refused(refusal("busy", text).into());
        };
        // The wait may have been long enough for the limits to change.
        if let Some(why) = self.limits.ends(&check.cwd) {
            return Did::Refused(refusal("root", why).into());
        }
        let begun = clock::instant();
        let seen = match self.confirmed(&asked, &check).await {
            Ok(seen) => seen,
            Err(unseen) => return said(unseen, check.timeout),
        };
        let ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let (seen, unstable) = seen;
        let (excerpt, truncated) = match asked.excerpt {
            Excerpt::Full => (seen.excerpt, seen.truncated),
            Excerpt::None => (String::new(), false),
        };
        let mut answer = json!({
            "hash": seen.hash, "exit": seen.exit, "bytes": seen.bytes, "excerpt": excerpt,
            "truncated": truncated, "duration_ms": ms,
        });
        if let Some(answer) = answer.as_object_mut() {
            if unstable {
                answer.insert("unstable".to_owned(), true.into());
            }
            if asked.fail_on == Some(FailOn::Nonzero) && seen.exit != 0 {
                answer.insert("failed".to_owned(), true.into());
            }
        }
        Did::Done(answer)
    }

    /// Runs the command; a hash that is not the last one is looked at again (M7). The flag says
    /// that no two runs agreed.
    async fn confirmed(&self, asked: &Params, check: &Check) -> Result<(Seen, bool), Unseen> {
        let mut seen = self.watch.check(check.clone()).await?;
        let Some(last) = asked.last.as_ref().filter(|last| **last != seen.hash) else {
            return Ok((seen, false));
        };
        for _ in 0..asked.confirm {
            let wait = clock::sleep(numbers().confirm_wait);
            if check.stop.run_until_cancelled(wait).await.is_none() {
                return Err(Unseen::Stopped);
            }
            let next = self.watch.check(check.clone()).await?;
            let agreed = next.hash == seen.hash;
            let back = next.hash == *last;
            seen = next;
            if agreed || back {
                // Back at the last one it has not changed, but neither does it stand still.
                return Ok((seen, back));
            }
        }
        Ok((seen, asked.confirm > 0))
    }
}

const INTERRUPTED: &str = "the check was interrupted on this computer before it ended";

/// The error of a check without a hash; whether it ran decides whether it is recorded.
fn said(unseen: Unseen, timeout: Duration) -> Did {
    match unseen {
        Unseen::Refused(text) => Did::Refused(refusal("refused", text).into()),
        Unseen::Ask { why, fix } => {
            let text = format!("{why}. On that computer: {fix}");
            Did::Refused(refusal("ask", text).fixed_by(fix).into())
        }
        Unseen::Spawn(text) => {
            let text = format!("the command could not be started: {text}");
            Did::Refused(refusal("spawn", text).into())
        }
        Unseen::Timeout => {
            let text = format!("the command did not end within {} s", timeout.as_secs());
            Did::Failed(refusal("timeout", text).into())
        }
        Unseen::Background => {
            let text =
                "the command left a program behind that still writes: a check runs to its end";
            Did::Failed(refusal("background", text).into())
        }
        Unseen::TooLong { exit, bytes } => {
            let text = format!(
                "the command wrote {} and ended with the status {exit}: more than {} are only \
                 hashed when it ends with 0",
                words::bytes(bytes),
                words::bytes(numbers().kept_max),
            );
            Did::Failed(refusal("too_long", text).into())
        }
        Unseen::Stopped => Did::Failed(refusal("interrupted", INTERRUPTED).into()),
    }
}

#[cfg(test)]
mod tests;
