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

/// Numbers on the link stay below this.
const MOST: u64 = 1 << 53;
/// Ids on the link are no longer than this.
const ID: usize = 200;

/// A text that must be there, and be short enough for an id.
fn id(of: &Value, key: &str) -> Result<String, String> {
    match of.get(key).and_then(Value::as_str) {
        Some(id) if (1..=ID).contains(&id.len()) => Ok(id.to_owned()),
        Some(_) => Err(format!("{key} has 1 to {ID} bytes")),
        None => Err(format!("{key} is no text")),
    }
}

/// A number, where there is one.
fn number(of: &Value, key: &str) -> Result<Option<u64>, String> {
    match of.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_u64().filter(|n| *n < MOST) {
            Some(number) => Ok(Some(number)),
            None => Err(format!("{key} is no number from 0 to 2^53")),
        },
    }
}

/// Where an item stands: its number, its turn, its time.
fn place(of: &Value) -> Result<(u64, u32, i64), String> {
    let seq = number(of, "seq")?.ok_or("seq is missing")?;
    let turn = number(of, "turn")?.unwrap_or(0);
    let turn = u32::try_from(turn).map_err(|_| "turn is too large")?;
    let time = i64::try_from(number(of, "time")?.unwrap_or(0)).unwrap_or(0);
    Ok((seq, turn, time))
}

/// Reads a `session/update`. None: it is of a kind that is not known here.
///
/// # Errors
/// What is wrong with it, where it is not what spec/acp.md says (U2).
pub(super) fn update(params: &Value) -> Result<Option<Fact>, String> {
    let session = id(params, "sessionId")?;
    let update = params.get("update").ok_or("update is missing")?;
    let meta = params
        .pointer("/_meta/lembas")
        .ok_or("_meta.lembas is missing")?;
    let (seq, turn, time) = place(meta)?;
    let at = number(meta, "at")?.unwrap_or(0);
    let call = match update.get("toolCallId") {
        Some(_) => Some(id(update, "toolCallId")?),
        None => None,
    };
    let content = || {
        update
            .pointer("/content/text")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let tail = |text: String| Content::Tail { text, end: at };
    let named = update.get("sessionUpdate").and_then(Value::as_str);
    let (kind, what) = match named.ok_or("sessionUpdate is no text")? {
        "user_message_chunk" => {
            let more = meta.get("more").cloned().unwrap_or(Value::Bool(false));
            let data = json!({ "key": meta.get("key"), "source": meta.get("source"),
                               "part": update.get("content"), "more": more });
            ("prompt", Content::Whole(data))
        }
        "agent_message_chunk" => ("text", tail(content())),
        "agent_thought_chunk" => ("thought", tail(content())),
        "tool_call" => {
            if call.is_none() {
                return Err("toolCallId is missing".to_owned());
            }
            let data = json!({
                "title": update.get("title"), "kind": update.get("kind"),
                "tool": meta.get("tool"), "block": meta.get("block"),
                "args": update.get("rawInput"),
                "path": update.pointer("/locations/0/path"),
            });
            ("call", Content::Whole(data))
        }
        "tool_call_update" => match call_update(update, meta, at) {
            Some(read) if call.is_some() => read,
            Some(_) => return Err("toolCallId is missing".to_owned()),
            None => return Ok(None),
        },
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
        _ => return Ok(None),
    };
    Ok(Some(Fact {
        session,
        what: What::Item(Put {
            seq,
            turn,
            time,
            kind,
            call,
            what,
        }),
    }))
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

/// Reads a `_lembas/event`. None: it is of a type that is not known here (E2).
///
/// # Errors
/// What is wrong with it, where it is not what spec/acp.md says (E1).
pub(super) fn event(params: &Value) -> Result<Option<Fact>, String> {
    let session = id(params, "sessionId")?;
    let data = params.get("data").cloned().unwrap_or_default();
    let named = params.get("type").and_then(Value::as_str);
    let kind = match named.ok_or("type is no text")? {
        "phase" => "phase",
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
        _ => return Ok(None),
    };
    if !data.is_object() {
        return Err("data is no object".to_owned());
    }
    match kind {
        "phase" => {
            id(&data, "phase").map_err(|why| format!("data: {why}"))?;
            return Ok(Some(Fact {
                session,
                what: What::Phase(data),
            }));
        }
        "ask" | "ask_settled" => {
            id(&data, "ask").map_err(|why| format!("data: {why}"))?;
        }
        "turn_end" => {
            id(&data, "stop").map_err(|why| format!("data: {why}"))?;
        }
        _ => {}
    }
    let (seq, turn, time) = place(params)?;
    let call = data.get("call").and_then(Value::as_str).map(str::to_owned);
    let said = |key: &str| number(&data, key).ok().flatten();
    let turn = match turn {
        0 => said("turn")
            .and_then(|t| u32::try_from(t).ok())
            .unwrap_or(0),
        turn => turn,
    };
    let time = match time {
        0 => said("time")
            .and_then(|t| i64::try_from(t).ok())
            .unwrap_or(0),
        time => time,
    };
    Ok(Some(Fact {
        session,
        what: What::Item(Put {
            seq,
            turn,
            time,
            kind,
            call,
            what: Content::Whole(data),
        }),
    }))
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

/// What was known of a stop, kept in the phase that takes its place.
pub(super) fn keep_facts(before: Option<&Value>, phase: &mut Value) {
    let stopped = |p: &Value| p.get("phase").is_some_and(|p| p == "stopped");
    let Some(before) = before.filter(|b| stopped(b) && stopped(phase)) else {
        return;
    };
    if let Some(map) = phase.as_object_mut() {
        for key in ["ms", "commands", "by"] {
            if let Some(value) = before.get(key) {
                map.insert(key.to_owned(), value.clone());
            }
        }
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
        let Ok(Some(Fact {
            what: What::Item(put),
            ..
        })) = fact
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
        let dance = json!({ "sessionId": "s", "update": { "sessionUpdate": "dance" }, "_meta": { "lembas": { "seq": 1 } } });
        assert_eq!(update(&dance), Ok(None));
        let dance = json!({ "sessionId": "s", "seq": 1, "type": "dance", "data": 3 });
        assert_eq!(event(&dance), Ok(None));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let meta = |meta: Value| json!({ "sessionId": "s", "update": { "sessionUpdate": "plan" }, "_meta": { "lembas": meta } });
        for (params, wrong) in [
            (json!(null), "sessionId"),
            (json!({ "sessionId": "" }), "sessionId"),
            (json!({ "sessionId": "s" }), "update"),
            (json!({ "sessionId": "s", "update": {} }), "_meta.lembas"),
            (meta(json!({})), "seq"),
            (meta(json!({ "seq": -1 })), "seq"),
            (meta(json!({ "seq": u64::MAX })), "seq"),
            (meta(json!({ "seq": 1, "at": "2" })), "at"),
        ] {
            let why = update(&params).unwrap_err();
            assert!(why.contains(wrong), "{params}: {why}");
        }
        let said = |more: Value| {
            let mut params =
                json!({ "sessionId": "s", "seq": 1, "type": "ask", "data": { "ask": "a" } });
            params
                .as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            event(&params)
        };
        assert!(said(json!({})).is_ok_and(|fact| fact.is_some()));
        for (more, wrong) in [
            (json!({ "type": 3 }), "type"),
            (json!({ "data": "a" }), "data"),
            (json!({ "data": {} }), "ask"),
            (json!({ "seq": null }), "seq"),
            (json!({ "seq": u64::MAX }), "seq"),
            (json!({ "turn": u64::MAX }), "turn"),
            (json!({ "type": "turn_end" }), "stop"),
            (json!({ "type": "phase" }), "phase"),
        ] {
            let why = said(more.clone()).unwrap_err();
            assert!(why.contains(wrong), "{more}: {why}");
        }
    }
}
