//! Scheduled work: whether it is taken, and what a run's facts become (acp.md, section 14).

use std::time::Duration;

use super::limits::lower;
use crate::acp::{Lowered, Refusal, SCHEDULED, Schedule};
use crate::config::{Mode, Remote};
use crate::rpc::RpcError;
use crate::session::Scheduled;
use crate::spec;

/// The longest id of a schedule or a run.
const MAX_ID: usize = 128;

fn numbers() -> &'static spec::Scheduled {
    &spec::numbers().scheduled
}

/// Whether scheduled work is taken at all. `code` is that of the method's refusals.
pub(crate) fn taken(remote: &Remote, code: i64) -> Result<(), Refusal> {
    if remote.scheduled {
        Ok(())
    } else {
        let off = Refusal::new(code, "off", numbers().texts.raw("off"));
        Err(off.fixed_by("lembas service scheduled on"))
    }
}

/// The mode of scheduled work, watch commands among it, when none was chosen (loop.json
/// `scheduled.default_mode`, R134): one for instances, pages and commands.
pub(crate) fn default_mode() -> Mode {
    let named = numbers().default_mode.as_str();
    let all = [Mode::Manual, Mode::Edit, Mode::Auto];
    // The data is checked when it is built in; the least holds for a word that is none.
    all.into_iter()
        .find(|mode| mode.word() == named)
        .unwrap_or(Mode::Manual)
}

/// The mode of scheduled work: the default when none was chosen, never plan (R135), and lowered.
pub(crate) fn mode(asked: Option<Mode>, remote: &Remote, code: i64) -> Result<Lowered, Refusal> {
    match asked.unwrap_or_else(default_mode) {
        Mode::Plan => Err(Refusal::new(code, "plan", numbers().texts.raw("plan"))),
        asked => Ok(lower(asked, remote.max_mode)),
    }
}

/// A scheduled session that is to be opened.
///
/// # Errors
/// -32050 when it is not taken or in plan mode, -32602 for ids or a wait that are not possible.
pub(crate) fn judge(asked: &Schedule, remote: &Remote) -> Result<(Scheduled, Lowered), Refusal> {
    taken(remote, SCHEDULED)?;
    let mode = mode(asked.mode, remote, SCHEDULED)?;
    id(&asked.schedule, "schedule")?;
    id(&asked.run, "run")?;
    let numbers = numbers();
    let (min, max) = (numbers.approval_wait_min, numbers.approval_wait_max);
    let wait = asked
        .approval_wait
        .map_or(numbers.approval_wait, Duration::from_secs);
    if !(min..=max).contains(&wait) {
        let text = format!(
            "approval_wait is {} to {} seconds",
            min.as_secs(),
            max.as_secs()
        );
        return Err(Refusal::new(RpcError::INVALID_PARAMS, "params", text));
    }
    let scheduled = Scheduled {
        schedule: asked.schedule.clone(),
        run: asked.run.clone(),
        approval_wait: wait.as_secs().min(remote.approval_max),
    };
    Ok((scheduled, mode))
}

/// An id that the instance made up: what names files, rows and log lines here stays short and plain.
pub(crate) fn id(id: &str, what: &str) -> Result<(), Refusal> {
    let plain = id.bytes().all(|byte| (b'!'..=b'~').contains(&byte));
    if plain && (1..=MAX_ID).contains(&id.len()) {
        return Ok(());
    }
    let text = format!("{what}: 1 to {MAX_ID} printable ASCII characters without spaces");
    Err(Refusal::new(RpcError::INVALID_PARAMS, "params", text))
}
