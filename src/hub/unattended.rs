//! What runs on a computer without anybody there: one scheduled run, one check of a watch command.
//!
//! What is asked is read whole before the computer hears of it, so that bad input is told also
//! while it is away. Whether it may be done is the computer's own word. Not here: when things
//! repeat.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::asked::{Body, Path};
use super::auth::Signed;
use super::devices::{own, peer, refused};
use super::error::{ApiError, ApiResult};
use super::{Shared, chats, messages, models, view};
use crate::config::Mode;
use crate::ids::random_hex;
use crate::spec;
use crate::store::hub::devices::Device;
use crate::text::json;

/// The longest path of a folder, in bytes: what the system itself takes.
const FOLDER: usize = 4096;

/// The longest watch command, in bytes (M3).
const COMMAND: usize = 64 * 1024;

/// How much longer than the computer itself may take is waited for its answer.
const SPARE: Duration = Duration::from_secs(15);

fn numbers() -> &'static spec::Scheduled {
    &spec::numbers().scheduled
}

/// One check, as the page asks for it (M1).
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Check {
    cwd: String,
    command: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<Mode>,
    /// Seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    confirm: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fail_on: Option<FailOn>,
    #[serde(skip_serializing_if = "Option::is_none")]
    excerpt: Option<Excerpt>,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum FailOn {
    Nonzero,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum Excerpt {
    Full,
    None,
}

impl Check {
    fn read(&self) -> ApiResult<()> {
        folder(&self.cwd)?;
        let monitor = &numbers().monitor;
        if self.command.trim().is_empty() {
            return Err(ApiError::bad("There is no command."));
        }
        if self.command.len() > COMMAND {
            return Err(
                ApiError::bad(format!("A command has at most {} KiB.", COMMAND / 1024))
                    .next("Put it in a script in the folder, and run that."),
            );
        }
        mode(self.mode)?;
        let most = monitor.timeout_max.as_secs();
        if self.timeout.is_some_and(|s| !(1..=most).contains(&s)) {
            return Err(ApiError::bad(format!(
                "The time of a check is 1 to {most} seconds."
            )));
        }
        if self.confirm.is_some_and(|n| n > monitor.confirm_max) {
            let most = monitor.confirm_max;
            return Err(ApiError::bad(format!(
                "A change is looked at again 0 to {most} times."
            )));
        }
        if self.last.as_deref().is_some_and(|last| !is_hash(last)) {
            return Err(ApiError::bad(
                "The last hash is sha256: and 64 hex digits, as a check gave it.",
            ));
        }
        Ok(())
    }

    /// The longest that the computer may take for it: its place in the queue, every run with its
    /// end, the pauses between them.
    fn longest(&self) -> Duration {
        let monitor = &numbers().monitor;
        let run = self.timeout.map_or(monitor.timeout, Duration::from_secs) + monitor.kill_after;
        let again = u32::try_from(self.confirm.unwrap_or(0)).unwrap_or(u32::MAX);
        monitor.queue + run + again * (run + monitor.confirm_wait) + SPARE
    }
}

/// `POST /devices/{id}/monitor`: one check of a watch command, as the computer judges it.
pub(super) async fn monitor(
    signed: Signed,
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
    Body(check): Body<Check>,
) -> ApiResult<Json<Value>> {
    check.read()?;
    let device = own(&shared, &signed, &id).await?;
    able(&shared, &device)?;
    let peer = peer(&shared, &device)?;
    let longest = check.longest();
    let mut params = json!(check);
    if let Some(map) = params.as_object_mut() {
        // By hand there is one check at a time, and each is a run of its own.
        map.insert("schedule".to_owned(), by_hand(&signed).into());
        map.insert("run".to_owned(), random_hex(8).into());
    }
    let answer = peer
        .request_within("_lembas/monitor", params, longest)
        .await;
    Ok(Json(answer.map_err(|e| refused(&device, e))?))
}

/// One scheduled run, as the page asks for it (Z2).
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Run {
    cwd: String,
    text: String,
    model: String,
    mode: Option<Mode>,
    /// Seconds.
    approval_wait: Option<u64>,
    key: String,
}

impl Run {
    fn read(&self) -> ApiResult<()> {
        messages::good_key(&self.key)?;
        folder(&self.cwd)?;
        if self.text.trim().is_empty() {
            return Err(ApiError::bad("It is not said what should be done."));
        }
        if self.model.trim().is_empty() {
            return Err(ApiError::bad("There is no model."));
        }
        mode(self.mode)?;
        let (least, most) = (
            numbers().approval_wait_min.as_secs(),
            numbers().approval_wait_max.as_secs(),
        );
        if self
            .approval_wait
            .is_some_and(|s| !(least..=most).contains(&s))
        {
            return Err(ApiError::bad(format!(
                "An answer is waited for {least} to {most} seconds."
            )));
        }
        Ok(())
    }
}

/// `POST /devices/{id}/scheduled`: one scheduled run, begun now. The same key again is the same
/// run.
pub(super) async fn scheduled(
    signed: Signed,
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
    Body(asked): Body<Run>,
) -> ApiResult<Json<Value>> {
    asked.read()?;
    let device = own(&shared, &signed, &id).await?;
    models::fits(&shared, &signed.account, &asked.model, None).await?;
    able(&shared, &device)?;
    let key = format!("run:{}", asked.key);
    let known = shared
        .store
        .chat_keyed(device.id.clone(), key.clone())
        .await?;
    let what = messages::asked(&json!([
        asked.cwd,
        asked.text,
        asked.model,
        asked.mode,
        asked.approval_wait
    ]));
    let chat = match known {
        Some((_, before)) if before.as_ref().is_some_and(|before| *before != what) => {
            return Err(messages::used_key());
        }
        Some((chat, _)) => chat,
        None => {
            let mut run = json!({ "schedule": by_hand(&signed), "run": asked.key });
            if let Some(map) = run.as_object_mut() {
                if let Some(mode) = &asked.mode {
                    map.insert("mode".to_owned(), mode.word().into());
                }
                if let Some(wait) = asked.approval_wait {
                    map.insert("approval_wait".to_owned(), wait.into());
                }
            }
            let ours = json!({ "model": asked.model, "scheduled": run });
            let params = json!({ "cwd": asked.cwd, "mcpServers": [], "_meta": { "lembas": ours } });
            let mode = asked.mode.map(Mode::word);
            chats::opened(&shared, &device, params, (&key, what), mode).await?
        }
    };
    let first = json!({ "key": asked.key, "text": asked.text });
    let first =
        json::read(first).map_err(|why| ApiError::bad("The message cannot be read.").why(why))?;
    messages::put(&shared, &chat, first).await?;
    let chat = chats::own(&shared, &signed, chat.id).await?;
    Ok(Json(
        json!({ "chat": view::chat(&shared, &chat).await?, "run": asked.key }),
    ))
}

/// The schedule that stands for what a person starts by hand.
fn by_hand(signed: &Signed) -> String {
    format!("page-{}", signed.account)
}

/// A computer that is away is told apart from one that is too old.
fn able(shared: &Shared, device: &Device) -> ApiResult<()> {
    match shared.links.get(&device.id) {
        Some(link) if !link.can("scheduled") => Err(ApiError::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "unable",
            format!("lembas on {} cannot do this yet.", device.name),
        )
        .next("Update lembas on that computer.")),
        _ => Ok(()),
    }
}

fn folder(cwd: &str) -> ApiResult<()> {
    if cwd.trim().is_empty() {
        return Err(ApiError::bad("There is no folder."));
    }
    if !cwd.starts_with('/') || cwd.len() > FOLDER || cwd.contains('\0') {
        let shown: String = cwd.chars().take(100).collect();
        return Err(
            ApiError::bad(format!("{shown} is not the whole path of a folder."))
                .next("It begins with /, as pwd prints it on that computer."),
        );
    }
    Ok(())
}

fn mode(mode: Option<Mode>) -> ApiResult<()> {
    match mode {
        Some(Mode::Plan) => Err(ApiError::bad(numbers().texts.raw("plan"))),
        Some(other) if !numbers().modes.iter().any(|mode| mode == other.word()) => {
            Err(ApiError::bad(format!(
                "The mode is one of {}.",
                numbers().modes.join(", ")
            )))
        }
        _ => Ok(()),
    }
}

fn is_hash(text: &str) -> bool {
    text.strip_prefix("sha256:").is_some_and(|hex| {
        hex.len() == 64
            && hex
                .bytes()
                .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    })
}
