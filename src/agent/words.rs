//! What the agent itself says: results that no tool made (for the model) and reasons of a turn's
//! end (for the person).

use std::time::Duration;

use crate::agent::asks::Answer;
use crate::store::item::Question;

/// The person said no. Their words reach the model.
pub fn refused(note: Option<&str>) -> String {
    match note.map(str::trim).filter(|n| !n.is_empty()) {
        Some(note) => format!("The person refused this call and said: {note}"),
        None => "The person refused this call. Do not try to reach the same end another way; ask what they want instead if you cannot go on.".to_owned(),
    }
}

/// What the person said with their yes, behind the call's result.
pub fn allowed(note: &str) -> String {
    format!("\n\nThe person allowed it and says: {note}")
}

pub const CLOSED: &str = "Not run: the question was closed without an answer, which counts as no. Do not try to reach the same end another way; ask what the person wants instead if you cannot go on.";

pub const EXPIRED: &str = "Not run: nobody answered in time, which counts as no. Do not try to reach the same end another way; go on without it and say what is missing.";

/// The person answered a question of the agent.
pub fn chosen(question: &Question, answer: &Answer) -> String {
    let labels: Vec<&str> = question
        .options
        .iter()
        .filter(|option| answer.selected.contains(&option.id))
        .map(|option| option.label.as_str())
        .collect();
    let note = answer
        .note
        .as_deref()
        .map(str::trim)
        .filter(|n| !n.is_empty());
    match (labels.as_slice(), note) {
        ([], note) => format!("The person answered: {}", note.unwrap_or_default()),
        (labels, None) => format!("The person chose: {}", labels.join("; ")),
        (labels, Some(note)) => {
            format!("The person chose: {}\nand says: {note}", labels.join("; "))
        }
    }
}

/// The person would not answer.
pub fn declined(note: Option<&str>) -> String {
    match note.map(str::trim).filter(|n| !n.is_empty()) {
        Some(note) => format!("The person did not choose and said: {note}"),
        None => "The person did not answer. Do not ask the same again: decide as well as you can and say what you assumed, or stop and say what is missing.".to_owned(),
    }
}

pub const UNANSWERED: &str = "Nobody answered in time. Decide as well as you can and say what you assumed, or stop and say what is missing.";

pub const UNKNOWN: &str = "unknown: the computer stopped while it ran. It may have finished, in part or whole; it was not run again. Look at the state of things before you repeat it.";

pub const STOPPED: &str = "Not run: the turn was stopped.";

pub const STOPPED_RUNNING: &str = "Stopped while it ran.";

/// What let a question of the agent through: the answer itself.
pub const ANSWERED: &str = "you answered";

pub const BROKE: &str =
    "The tool broke down inside lembas. This is a fault of lembas, not of the call.";

pub fn no_tool(name: &str) -> String {
    format!("There is no tool {name}. Call one of the tools that you were given.")
}

pub fn not_json(error: &str) -> String {
    format!("The arguments are not a JSON object ({error}). Make the call again with valid JSON.")
}

pub const TOO_MANY_REFUSALS: &str = "ended after four refusals in one turn";

pub const FRUITLESS: &str =
    "ended because the model made calls that could not run, eight steps in a row";

pub const STEPS_USED: &str = "ended because it used all the steps that one turn may take";

pub const NOTHING_SAID: &str = "the model answered with nothing";

/// The model could not be had.
pub fn model_failed(error: &str, tries: u32) -> String {
    if tries > 1 {
        format!("{error} (asked {tries} times). Your message is kept: send another to go on.")
    } else {
        format!("{error}. Your message is kept: send another to go on.")
    }
}

pub fn session_full(cap: u64) -> String {
    format!(
        "this session has reached the {} MiB that one may take on this computer: start a new one",
        cap / (1024 * 1024)
    )
}

pub fn session_nearly_full(cap: u64) -> String {
    format!(
        "This session has used 80 % of the {} MiB that one may take on this computer. At the end of them its turn ends; start a new session in time.",
        cap / (1024 * 1024)
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
