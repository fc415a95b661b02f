//! What a scheduled run reports: its status and the text to deliver.

use serde_json::{Value, json};

use crate::acp::port::OneSession;
use crate::ids::Seq;
use crate::session::Scheduled;
use crate::spec::{self, run_status};
use crate::store::item::{Body, Stop};

/// Items that are read from the store at once.
const BATCH: usize = 256;

/// `{ schedule, run, status, reply }`: `ok`, `silent`, `failed` or `cancelled` (R137).
pub(crate) fn report(
    scheduled: &Scheduled,
    stop: Stop,
    reason: Option<&str>,
    reply: &str,
) -> Value {
    let sentinel = &spec::numbers().scheduled.sentinel;
    let (status, text) = run_status(stop.of_run(reason), reply, sentinel);
    json!({
        "schedule": scheduled.schedule, "run": scheduled.run, "status": status, "reply": text,
    })
}

/// The text of a turn's last assistant message; empty when the last answer had none.
pub(crate) async fn last_message(session: &dyn OneSession, turn: u32) -> String {
    let mut text = String::new();
    let mut from = Seq(0);
    loop {
        let items = session.items(from, BATCH).await.unwrap_or_default();
        let Some(last) = items.last() else {
            return text;
        };
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
    fn a_run_reports_how_it_ended() {
        let scheduled = Scheduled {
            schedule: "s".to_owned(),
            run: "r".to_owned(),
            approval_wait: 1800,
        };
        for (stop, reason, reply, status) in [
            (Stop::EndTurn, None, "done", "ok"),
            (Stop::EndTurn, Some("three refusals"), "done", "failed"),
            (Stop::MaxTokens, None, "cut\n[SILENT]", "failed"),
            (Stop::MaxTurnRequests, None, "as far as I came", "failed"),
            (Stop::EndTurn, None, "[SILENT]", "silent"),
            (Stop::EndTurn, None, " \n", "failed"),
            (Stop::Failed, Some("gone"), "half", "failed"),
            (Stop::Refusal, None, "no", "failed"),
            (Stop::Cancelled, None, "[SILENT]", "cancelled"),
        ] {
            assert_eq!(
                report(&scheduled, stop, reason, reply)["status"],
                status,
                "{stop:?} {reply:?}"
            );
        }
    }
}
