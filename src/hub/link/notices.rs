//! What a device said as what is stored: `session/update` and `_lembas/event` read into items.
//!
//! Pure but for [`tell_chat`]. Unknown kinds are nothing: a newer device may say more.

use serde_json::{Value, json};

use crate::hub::events::{Audience, Event};
use crate::hub::{Shared, view};
use crate::store::hub::items::{Content, Put};

/// One thing said of a session.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Fact {
    pub(super) session: String,
    pub(super) what: What,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum What {
    /// Something with a number, for the transcript.
    Item(Put),
    /// What the agent does now. Not stored in the transcript.
    Phase(Value),
}

/// Reads a `session/update`.
pub(super) fn update(params: &Value) -> Option<Fact> {
    let session = params.get("sessionId")?.as_str()?.to_owned();
    let update = params.get("update")?;
    let meta = params.pointer("/_meta/lembas")?;
    let number = |key: &str| meta.get(key).and_then(Value::as_u64);
    let seq = number("seq")?;
    let at = number("at").unwrap_or(0);
    let text = |v: &Value, key: &str| v.get(key).and_then(Value::as_str).map(str::to_owned);
    let call = text(update, "toolCallId");
    let content = || {
        update
            .pointer("/content/text")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let tail = |text: String| Content::Tail { text, end: at };
    let (kind, what) = match update.get("sessionUpdate")?.as_str()? {
        "user_message_chunk" => {
            let more = meta.get("more").cloned().unwrap_or(Value::Bool(false));
            let data = json!({ "key": meta.get("key"), "source": meta.get("source"),
                               "part": update.get("content"), "more": more });
            ("prompt", Content::Whole(data))
        }
        "agent_message_chunk" => ("text", tail(content())),
        "agent_thought_chunk" => ("thought", tail(content())),
        "tool_call" => {
            let data = json!({
                "title": update.get("title"), "kind": update.get("kind"),
                "tool": meta.get("tool"), "block": meta.get("block"),
                "args": update.get("rawInput"),
                "path": update.pointer("/locations/0/path"),
            });
            ("call", Content::Whole(data))
        }
        "tool_call_update" => call_update(update, meta, at)?,
        "plan" => {
            let more = meta.get("more").cloned().unwrap_or(Value::Bool(false));
            let data = json!({ "entries": update.get("entries"), "more": more });
            ("plan", Content::Whole(data))
        }
        "current_mode_update" => (
            "mode",
            Content::Whole(json!({ "mode": update.get("currentModeId"), "by": meta.get("by") })),
        ),
        "session_info_update" => (
            "title",
            Content::Whole(json!({ "title": update.get("title") })),
        ),
        _ => return None,
    };
    Some(Fact {
        session,
        what: What::Item(Put {
            seq,
            turn: number("turn")
                .and_then(|t| u32::try_from(t).ok())
                .unwrap_or(0),
            time: meta.get("time").and_then(Value::as_i64).unwrap_or(0),
            kind,
            call,
            what,
        }),
    })
}

fn call_update(update: &Value, meta: &Value, at: u64) -> Option<(&'static str, Content)> {
    if let Some(output) = meta.get("output").and_then(Value::as_str) {
        let text = output.to_owned();
        return Some(("output", Content::Tail { text, end: at }));
    }
    match update.get("status").and_then(Value::as_str)? {
        "in_progress" => Some((
            "started",
            Content::Whole(json!({ "allowed": meta.get("allowed") })),
        )),
        status @ ("completed" | "failed") => {
            let other = if status == "completed" {
                "ok"
            } else {
                "failed"
            };
            let text = update
                .get("content")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(|c| c.pointer("/content/text").and_then(Value::as_str))
                .collect::<Vec<_>>()
                .join("\n");
            let mut data = json!({ "text": text, "status": other });
            if let Some(data) = data.as_object_mut() {
                for key in ["status", "exit", "ms", "bytes", "spill", "path", "diff"] {
                    if let Some(value) = meta.get(key).filter(|v| !v.is_null()) {
                        data.insert(key.to_owned(), value.clone());
                    }
                }
            }
            Some(("result", Content::Whole(data)))
        }
        _ => None,
    }
}

/// Reads a `_lembas/event`.
pub(super) fn event(params: &Value) -> Option<Fact> {
    let session = params.get("sessionId")?.as_str()?.to_owned();
    let data = params.get("data").cloned().unwrap_or_default();
    let kind = match params.get("type")?.as_str()? {
        "phase" => {
            return Some(Fact {
                session,
                what: What::Phase(data),
            });
        }
        "model" => "model",
        "level" => "level",
        "title" => "title",
        "notice" => "notice",
        "rewound" => "rewound",
        "step" => "step",
        "usage" => "usage",
        "ask" => "ask",
        "ask_settled" => "ask_settled",
        "turn_end" => "turn_end",
        "plan_state" => "plan",
        _ => return None,
    };
    let call = data.get("call").and_then(Value::as_str).map(str::to_owned);
    let said = |key: &str| params.get(key).or_else(|| data.get(key));
    let turn = said("turn").and_then(Value::as_u64);
    let time = said("time").and_then(Value::as_i64);
    Some(Fact {
        session,
        what: What::Item(Put {
            seq: params.get("seq")?.as_u64()?,
            turn: turn.and_then(|t| u32::try_from(t).ok()).unwrap_or(0),
            time: time.unwrap_or(0),
            kind,
            call,
            what: Content::Whole(data),
        }),
    })
}

/// What a phase is, in words, for "last heard".
pub(super) fn phase_words(phase: &Value) -> Option<String> {
    let text = |key: &str| phase.get(key).and_then(Value::as_str).unwrap_or_default();
    let what = if text("purpose").is_empty() {
        text("tool")
    } else {
        text("purpose")
    };
    let words = match text("phase") {
        "running_tool" => format!("running {what}"),
        "waiting_for_model" => format!("waiting for {}", text("model")),
        "loading_model" => format!("loading {}", text("model")),
        "waiting_for_person" => "waiting for you".to_owned(),
        "" => return None,
        other => other.replace('_', " "),
    };
    Some(words.trim().chars().take(200).collect())
}

/// Tells the page how a chat is now.
pub(in crate::hub) async fn tell_chat(shared: &Shared, id: &str) {
    let told = async {
        let Some(chat) = shared.store.chat(id.to_owned()).await? else {
            return Ok(None);
        };
        let shown = view::chat(shared, &chat).await?;
        Ok::<_, crate::store::db::StoreError>(Some((chat, shown)))
    };
    match told.await {
        Ok(Some((chat, shown))) => shared.events.emit(
            Audience::Account(chat.account),
            Event::json("chat", Some(format!("chat:{id}")), json!({ "chat": shown })),
        ),
        Ok(None) => {}
        Err(error) => tracing::warn!(%error, "a chat could not be told"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_has_its_place() {
        let fact = update(&json!({
            "sessionId": "s",
            "update": { "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": "ünd" } },
            "_meta": { "lembas": { "seq": 7, "at": 10, "turn": 2, "time": 5 } },
        }));
        let Some(Fact {
            what: What::Item(put),
            ..
        }) = fact
        else {
            panic!()
        };
        assert_eq!((put.seq, put.turn, put.kind), (7, 2, "text"));
        assert_eq!(
            put.what,
            Content::Tail {
                text: "ünd".into(),
                end: 10
            }
        );
    }

    #[test]
    fn what_is_not_known_is_nothing() {
        for params in [
            json!(null),
            json!({}),
            json!({ "sessionId": "s", "update": { "sessionUpdate": "dance" }, "_meta": { "lembas": { "seq": 1 } } }),
            json!({ "sessionId": "s", "update": { "sessionUpdate": "plan" } }),
        ] {
            assert_eq!(update(&params), None);
            assert_eq!(event(&params), None);
        }
    }
}
