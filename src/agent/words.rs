//! What the agent itself says: the spec's texts (loop.json), filled. Results that no tool made are
//! for the model, reasons of a turn's end for the person.

use std::time::Duration;

use jiff::tz::TimeZone;

use crate::agent::asks::Answer;
use crate::clock;
use crate::model::ModelError;
use crate::spec::{self, Loop};
use crate::store::item::Question;
use crate::text::words;

/// The spec's numbers and texts.
pub fn numbers() -> &'static Loop {
    spec::numbers()
}

fn call(name: &str, facts: &[(&str, &str)]) -> String {
    numbers().calls.say(name, facts)
}

/// The person said no. Their words reach the model.
pub fn refused(note: Option<&str>) -> String {
    match note.map(str::trim).filter(|n| !n.is_empty()) {
        Some(note) => call("refused_note", &[("note", note)]),
        None => call("refused", &[]),
    }
}

/// What the person said with their yes, behind the call's result.
pub fn allowed(note: &str) -> String {
    format!("\n\n{}", call("allowed_note", &[("note", note)]))
}

/// Nobody answered within the wait of the question.
pub fn expired(wait: Option<u64>) -> String {
    let wait = Duration::from_millis(wait.unwrap_or_default());
    call("expired", &[("elapsed", &words::duration(wait))])
}

/// A question was closed without an answer.
pub fn closed() -> String {
    call("closed", &[])
}

/// The person answered a question of the agent.
pub fn chosen(question: &Question, answer: &Answer) -> String {
    let labels: Vec<&str> = question
        .options
        .iter()
        .filter(|option| answer.selected.contains(&option.id))
        .map(|option| option.label.as_str())
        .collect();
    let note = said(answer.note.as_deref());
    let labels = labels.join("; ");
    match note {
        note if labels.is_empty() => call("told", &[("note", note.unwrap_or_default())]),
        None => call("chosen", &[("labels", &labels)]),
        Some(note) => call("chosen_note", &[("labels", &labels), ("note", note)]),
    }
}

fn said(note: Option<&str>) -> Option<&str> {
    note.map(str::trim).filter(|note| !note.is_empty())
}

/// The person would not answer.
pub fn declined(note: Option<&str>) -> String {
    match said(note) {
        Some(note) => call("declined_note", &[("note", note)]),
        None => call("declined", &[]),
    }
}

/// Nobody answered a question of the agent in time.
pub fn unanswered() -> String {
    call("unanswered", &[])
}

/// What let a question of the agent through: the answer itself.
pub fn answered() -> String {
    call("answered", &[])
}

pub fn unknown() -> String {
    call("unknown", &[])
}

/// A call that the turn's end found open. `ran`: it had begun.
pub fn stopped(ran: bool) -> String {
    call(if ran { "cancelled" } else { "stopped" }, &[])
}

pub fn broke() -> String {
    call("broke", &[])
}

pub fn no_tool(name: &str, tools: &[&str]) -> String {
    let (name, tools) = (crate::text::cut::one_line(name, 80), tools.join(", "));
    numbers()
        .nudges
        .say("unknown_tool", &[("tool", &name), ("tools", &tools)])
}

pub fn bad_arguments(tool: &str, error: &str) -> String {
    numbers()
        .nudges
        .say("bad_arguments", &[("tool", tool), ("error", error)])
}

/// The same call again, which would give the same result again.
pub fn repeated(times: u64) -> String {
    numbers()
        .nudges
        .say("repeated", &[("times", &times.to_string())])
}

pub fn too_many_refusals() -> String {
    let count = numbers().refusals_end_turn.to_string();
    call("ended_turn", &[("count", &count)])
}

pub fn fruitless() -> String {
    let steps = numbers().fruitless.to_string();
    numbers().steps.say("fruitless", &[("steps", &steps)])
}

pub fn steps_used(steps: u32) -> String {
    numbers()
        .steps
        .say("backstop", &[("steps", &steps.to_string())])
}

/// A turn that ends by itself: `stuck`, `nothing`, `endless`.
pub fn ended(name: &str) -> String {
    numbers().steps.say(name, &[])
}

pub fn answer_too_long(chars: usize) -> String {
    numbers()
        .steps
        .say("long", &[("chars", &chars.to_string())])
}

/// How often and for how long a model was asked in vain.
#[derive(Clone, Copy, Debug)]
pub struct Tried {
    pub times: u32,
    pub elapsed: Duration,
    /// It broke off in the middle of an answer, more than once.
    pub broke_off: bool,
}

/// The model could not be had.
pub fn model_failed(model: &str, error: &ModelError, tried: Tried) -> String {
    let texts = &numbers().retries.texts;
    let reason = error.to_string();
    let both = [("model", model), ("reason", reason.as_str())];
    if tried.broke_off {
        return texts.say("broken", &both);
    }
    match error {
        ModelError::TooLong(_) => texts.say("too_long", &both),
        ModelError::Status {
            status: 401 | 403, ..
        } => texts.say("key", &both),
        ModelError::Status { status: 404, .. } => texts.say("unknown_model", &both),
        ModelError::Status {
            after: Some(after), ..
        } if *after > numbers().retries.retry_after_max => {
            let now = clock::now_ms();
            let until = now.saturating_add(i64::try_from(after.as_millis()).unwrap_or(i64::MAX));
            let until = words::clock(until, now, &TimeZone::system());
            let facts = [("model", model), ("reason", &reason), ("until", &until)];
            texts.say("quota", &facts)
        }
        _ if tried.times > 1 => {
            let (times, elapsed) = (tried.times.to_string(), words::duration(tried.elapsed));
            texts.say(
                "gave_up",
                &[
                    ("model", model),
                    ("attempts", &times),
                    ("elapsed", &elapsed),
                    ("reason", &reason),
                ],
            )
        }
        _ => texts.say("refused", &both),
    }
}

/// Why a limit of the computer ends a turn.
pub fn limit(name: &str) -> String {
    numbers().limits.say(name, &[])
}

pub fn session_full(cap: u64) -> String {
    let size = words::bytes(cap);
    numbers().limits.say("session_full", &[("size", &size)])
}

/// `percent` of the cap are used.
pub fn session_nearly_full(cap: u64, percent: u64) -> String {
    let (size, percent) = (words::bytes(cap), percent.to_string());
    numbers().limits.say(
        "session_nearly_full",
        &[("size", &size), ("percent", &percent)],
    )
}

/// What became of an ask, for the audit log.
pub fn not_run(why: &str) -> String {
    format!("not run ({why})")
}

/// Milliseconds of a duration.
pub fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
