//! What a scheduled run reports: its status and the text to deliver.

use serde_json::{Value, json};

use crate::acp::port::OneSession;
use crate::ids::Seq;
use crate::session::Scheduled;
use crate::spec::{self, Reply, silent};
use crate::store::item::{Body, Stop};

/// Items that are read from the store at once.
const BATCH: usize = 256;

/// `{ schedule, run, status, reply }`: `ok`, `silent`, `failed` or `cancelled` (R137).
pub(crate) fn report(scheduled: &Scheduled, stop: Stop, reply: &str) -> Value {
    let reply = silent(reply, &spec::numbers().scheduled.sentinel);
    let (status, text) = match reply {
        Reply::Empty => ("failed", String::new()),
        Reply::Said(text) => ("ok", text),
        Reply::Silent(text) => ("silent", text),
    };
    let status = match stop {
        Stop::Cancelled => "cancelled",
        Stop::Failed | Stop::Refusal => "failed",
        _ => status,
    };
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
            assert_eq!(
                report(&scheduled, stop, reply)["status"],
                status,
                "{stop:?} {reply:?}"
            );
        }
    }
}
