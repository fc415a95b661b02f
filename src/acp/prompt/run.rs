//! What a scheduled run reports: its status and the text to deliver.

use serde_json::{Value, json};

use crate::acp::port::OneSession;
use crate::ids::Seq;
use crate::session::Scheduled;
use crate::store::item::{Body, Stop};

/// The line that says that there is nothing to say.
const SENTINEL: &str = "[SILENT]";

/// Items that are read from the store at once.
const BATCH: usize = 256;

/// `{ schedule, run, status, reply }`: `ok`, `silent`, `failed` or `cancelled` (R137).
pub(crate) fn report(scheduled: &Scheduled, stop: Stop, reply: &str) -> Value {
    let (silent, text) = silent(reply);
    let status = match stop {
        Stop::Cancelled => "cancelled",
        Stop::Failed | Stop::Refusal => "failed",
        _ if reply.trim().is_empty() => "failed",
        _ if silent => "silent",
        _ => "ok",
    };
    json!({
        "schedule": scheduled.schedule, "run": scheduled.run, "status": status, "reply": text,
    })
}

/// Whether a reply is silent: its first or last line that is not blank is the sentinel and nothing
/// else. And the reply without that line.
pub(crate) fn silent(reply: &str) -> (bool, String) {
    let lines: Vec<&str> = reply.lines().collect();
    let first = lines.iter().position(|line| !line.trim().is_empty());
    let last = lines.iter().rposition(|line| !line.trim().is_empty());
    let is = |at: &usize| lines.get(*at).is_some_and(|line| line.trim() == SENTINEL);
    let Some(at) = first.filter(is).or(last.filter(is)) else {
        return (false, reply.trim().to_owned());
    };
    let rest = lines.iter().enumerate().filter(|(n, _)| *n != at).map(|(_, line)| *line);
    let rest: Vec<&str> = rest.collect();
    (true, rest.join("\n").trim().to_owned())
}

/// The text of a turn's last assistant message; empty when the last answer had none.
pub(crate) async fn last_message(session: &dyn OneSession, turn: u32) -> String {
    let mut text = String::new();
    let mut from = Seq(0);
    loop {
        let items = session.items(from, BATCH).await.unwrap_or_default();
        let Some(last) = items.last() else { return text };
        from = Seq(last.seq.0 + 1);
        for item in items.into_iter().filter(|item| item.turn == turn) {
            match item.body {
                // Another answer begins.
                Body::Step { .. } => text.clear(),
                Body::Message { text: more } => {
                    if !text.is_empty() {
                        text.push_str("\n\n");
                    }
                    text.push_str(&more);
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silent_is_a_line_of_its_own_at_either_end() {
        for (reply, expected) in [
            ("[SILENT]", Some("")),
            ("\n  [SILENT]  \n\nnothing new", Some("nothing new")),
            ("nothing new\n[SILENT]\n\n", Some("nothing new")),
            ("[SILENT]\na\n[SILENT]", Some("a\n[SILENT]")),
            ("[SILENT] nothing new", None),
            ("[silent]", None),
            ("a\n[SILENT]\nb", None),
            ("`[SILENT]`", None),
            ("", None),
        ] {
            let (is, text) = silent(reply);
            assert_eq!(is.then_some(text.as_str()), expected, "{reply:?}");
        }
    }

    #[test]
    fn a_run_reports_how_it_ended() {
        let scheduled = Scheduled {
            schedule: "s".to_owned(),
            run: "r".to_owned(),
            approval_wait: 1800,
        };
        for (stop, reply, status) in [
            (Stop::EndTurn, "done", "ok"),
            (Stop::MaxTokens, "cut", "ok"),
            (Stop::MaxTurnRequests, "as far as I came", "ok"),
            (Stop::EndTurn, "[SILENT]", "silent"),
            (Stop::EndTurn, " \n", "failed"),
            (Stop::Failed, "half", "failed"),
            (Stop::Refusal, "no", "failed"),
            (Stop::Cancelled, "[SILENT]", "cancelled"),
        ] {
            assert_eq!(report(&scheduled, stop, reply)["status"], status, "{stop:?} {reply:?}");
        }
    }
}
