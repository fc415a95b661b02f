//! Whether a scheduled run's reply asks for silence (decisions.md, Silent; conformance `silent`).

/// The line that asks for it.
pub const SENTINEL: &str = "[SILENT]";

/// How a run's reply counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// `ok`, `silent`, `failed`.
    pub status: &'static str,
    /// What is kept: without the sentinel's line, trimmed when it was there.
    pub text: String,
}

/// Reads the last assistant message of a run. Silent: its first or last line that is not blank
/// is the sentinel and nothing else. No text at all is a failure, not silence.
pub fn read(text: &str) -> Reply {
    let lines: Vec<&str> = text.lines().collect();
    let said = |n: &usize| lines.get(*n).is_some_and(|l| !l.trim().is_empty());
    let first = (0..lines.len()).find(said);
    let last = (0..lines.len()).rev().find(said);
    let (Some(first), Some(last)) = (first, last) else {
        return Reply {
            status: "failed",
            text: String::new(),
        };
    };
    let silent = |n: usize| lines.get(n).is_some_and(|l| l.trim() == SENTINEL);
    let without = if silent(first) {
        first
    } else if silent(last) {
        last
    } else {
        return Reply {
            status: "ok",
            text: text.to_owned(),
        };
    };
    let kept: Vec<&str> = lines
        .iter()
        .enumerate()
        .filter(|(n, _)| *n != without)
        .map(|(_, l)| *l)
        .collect();
    Reply {
        status: "silent",
        text: kept.join("\n").trim().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_is_the_first_or_last_line_alone() {
        for (text, status, kept) in [
            ("All well.", "ok", "All well."),
            ("[SILENT]", "silent", ""),
            ("\n  [SILENT]  \n\nNothing new.\n", "silent", "Nothing new."),
            (
                "Looked.\nNothing.\n\n[SILENT]\n \n",
                "silent",
                "Looked.\nNothing.",
            ),
            ("a\n[SILENT]\nb", "ok", "a\n[SILENT]\nb"),
            ("[SILENT] note", "ok", "[SILENT] note"),
            ("[silent]", "ok", "[silent]"),
            (" \n\t", "failed", ""),
            ("", "failed", ""),
        ] {
            let reply = read(text);
            assert_eq!(
                (reply.status, reply.text.as_str()),
                (status, kept),
                "{text:?}"
            );
        }
    }
}
