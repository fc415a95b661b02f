//! How a scheduled run went, and whether its reply is one that nobody needs to hear (acp.md Z3,
//! loop.json `scheduled.sentinel`). Device and instance use these same functions.

/// How the turn of a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// The model had said all that it wanted.
    Whole,
    /// A person or a limit stopped it.
    Cancelled,
    /// Anything else: an error, too many steps or refusals, an answer that was cut.
    Cut,
}

/// A run's status, and the text that it reports: `ok`, `silent`, `failed` or `cancelled`.
pub fn run_status(end: RunEnd, reply: &str, sentinel: &str) -> (&'static str, String) {
    let (status, text) = match silent(reply, sentinel) {
        Reply::Said(text) => ("ok", text),
        Reply::Silent(text) => ("silent", text),
        Reply::Empty => ("failed", String::new()),
    };
    let status = match end {
        RunEnd::Whole => status,
        RunEnd::Cancelled => "cancelled",
        RunEnd::Cut => "failed",
    };
    (status, text)
}

/// What a reply comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// To be delivered.
    Said(String),
    /// Kept, not delivered; without the sentinel's line.
    Silent(String),
    /// No text: the run failed.
    Empty,
}

/// Judges a reply. It is silent when its first or last line that is not blank, trimmed, is exactly
/// the sentinel; the text kept is the reply without that line, trimmed.
pub fn silent(reply: &str, sentinel: &str) -> Reply {
    let lines: Vec<&str> = reply.lines().collect();
    let full = |line: &&str| !line.trim().is_empty();
    let (Some(first), Some(last)) = (lines.iter().position(full), lines.iter().rposition(full))
    else {
        return Reply::Empty;
    };
    let is = |index: usize| lines.get(index).is_some_and(|line| line.trim() == sentinel);
    let marks: Vec<usize> = [first, last]
        .into_iter()
        .filter(|index| is(*index))
        .collect();
    if marks.is_empty() {
        return Reply::Said(reply.trim().to_owned());
    }
    let kept = lines
        .iter()
        .enumerate()
        .filter(|(index, _)| !marks.contains(index));
    let kept: Vec<&str> = kept.map(|(_, line)| *line).collect();
    Reply::Silent(kept.join("\n").trim().to_owned())
}
