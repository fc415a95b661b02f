//! A watch command for somebody at this computer: as a schedule would run it, but for the limits
//! that are the instance's. It asks nobody; what would ask is not run.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use jsonrpsee_types::ErrorObjectOwned;
use serde::Deserialize;
use serde_json::{Value, json};

use super::control::{self, Detail, refusal};
use super::table::Monitor;
use super::watches;
use crate::acp::MONITOR;
use crate::clock;
use crate::config::{Live, Mode};
use crate::remote::{Check, Unseen, Watch};
use crate::rt::CancellationToken;
use crate::text::json;

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
            let asked: Params = json::read(params).map_err(|why| control::unread(&why))?;
            let mode = asked.mode.unwrap_or(Mode::Edit);
            let mut roots = live.now().remote.roots.clone();
            if !roots.iter().any(|root| asked.cwd.starts_with(root)) {
                roots.push(asked.cwd.clone());
            }
            // Dropping the call, when the command's person is gone, ends the command.
            let stop = CancellationToken::new();
            let _ends = stop.clone().drop_guard();
            let began = clock::instant();
            let seen = watch
                .check(Check {
                    instance: String::new(),
                    grant: "local".to_owned(),
                    schedule: "here".to_owned(),
                    cwd: asked.cwd.clone(),
                    roots,
                    command: asked.command.clone(),
                    mode,
                    timeout: Duration::from_secs(asked.timeout),
                    stop,
                })
                .await
                .map_err(|why| unseen(why, &asked, mode))?;
            let ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
            Ok(json!({
                "hash": seen.hash, "exit": seen.exit, "bytes": seen.bytes,
                "excerpt": seen.excerpt, "truncated": seen.truncated,
                "duration_ms": ms, "mode": mode,
            }))
        }
        .boxed()
    }
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
        Unseen::Ask(why) => {
            // The words are for an instance; here the line to paste stands by itself.
            let (why, fix) = match why.split_once(watches::THERE) {
                Some((why, fix)) => (why.to_owned(), fix.to_owned()),
                None => (why, "lembas rules pending".to_owned()),
            };
            (
                "ask",
                format!("this would need your yes, and a watch command asks nobody: {command}"),
                why,
                fix,
            )
        }
        Unseen::Timeout => (
            "timeout",
            format!(
                "no result: the command ran longer than {} s and was ended",
                asked.timeout
            ),
            "every process it had started was ended with it".to_owned(),
            "lembas monitor --timeout 600 -- …          (the most)".to_owned(),
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
