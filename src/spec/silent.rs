//! Whether a scheduled run's reply is one that nobody needs to hear (acp.md Z3, loop.json
//! `scheduled.sentinel`). Device and instance use this same function.

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
