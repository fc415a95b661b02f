//! Whole items as frames.

use serde_json::{Map, Value, json};

use super::{Frame, View, call, size};
use crate::store::item::{AskBody, Body, Item, Part};

/// The frames of an item that is not streamed text, and that this follower does not have.
pub(super) fn frames(view: &View, item: &Item) -> Vec<Frame> {
    let place = item.position();
    let meta = view.meta(place, item.turn, item.time);
    match &item.body {
        // Streamed: handled piece by piece.
        Body::Message { .. } | Body::Thought { .. } | Body::Output { .. } => Vec::new(),
        Body::Prompt {
            key, source, parts, ..
        } => {
            let live_echo = view.replay.is_none()
                && !view.client.lembas
                && !view.own.is_empty()
                && key.starts_with(&view.own);
            if live_echo {
                return Vec::new();
            }
            let mut meta = meta;
            meta.insert("key".to_owned(), key.clone().into());
            meta.insert("source".to_owned(), json!(source));
            prompt(view, item, parts, &meta)
        }
        Body::Call { .. } | Body::Started { .. } | Body::Result { .. } => {
            call::frame(view, item, meta).into_iter().collect()
        }
        Body::Plan { plan } => {
            let update = json!({ "sessionUpdate": "plan", "entries": plan_entries(plan) });
            both(
                view,
                item,
                update,
                meta,
                ("plan_state", json!({ "plan": plan })),
            )
        }
        Body::Mode { mode, .. } => vec![view.update(
            json!({ "sessionUpdate": "current_mode_update", "currentModeId": mode }),
            with(meta, &item.body, &["by"]),
        )],
        Body::Title { title } => {
            let update = json!({ "sessionUpdate": "session_info_update", "title": title });
            both(
                view,
                item,
                update,
                meta,
                ("title", json!({ "title": title })),
            )
        }
        Body::Model { model } => own(view, item, "model", json!({ "model": model })),
        Body::Level { level } => own(view, item, "level", json!({ "level": level })),
        Body::Notice { text, .. } => own(view, item, "notice", json!({ "text": text })),
        Body::Step { model, .. } => own(view, item, "step", json!({ "model": model })),
        Body::Sampled { tokens, finish, ms } => own(
            view,
            item,
            "usage",
            json!({ "tokens": tokens, "finish": finish, "ms": ms }),
        ),
        Body::Ask(ask) => own(view, item, "ask", open_ask(ask)),
        Body::Answered { .. } => own(
            view,
            item,
            "ask_settled",
            Value::Object(with(
                Map::new(),
                &item.body,
                &["ask", "how", "scope", "by", "note", "selected"],
            )),
        ),
        Body::Rewound { to, by } => own(view, item, "rewound", json!({ "to": to, "by": by })),
        Body::TurnEnd { .. } => {
            let mut data = Map::new();
            data.insert("turn".to_owned(), item.turn.into());
            let data = with(data, &item.body, &["stop", "reason", "tokens", "run"]);
            own(view, item, "turn_end", Value::Object(data))
        }
    }
}

/// An event of ours, to a client that knows our events.
fn own(view: &View, item: &Item, name: &str, data: Value) -> Vec<Frame> {
    if !view.client.lembas {
        return Vec::new();
    }
    let when = Some((item.turn, item.time));
    vec![view.event(item.position(), when, name, data)]
}

/// An update and, behind it, the same item as an event of ours.
fn both(
    view: &View,
    item: &Item,
    update: Value,
    mut meta: Map<String, Value>,
    (name, data): (&str, Value),
) -> Vec<Frame> {
    let event = own(view, item, name, data);
    if !event.is_empty() {
        meta.insert("more".to_owned(), true.into());
    }
    let mut frames = vec![view.update(update, meta)];
    frames.extend(event);
    frames
}

/// The named fields of a body, where it has them, beside what is there.
pub(super) fn with(
    mut map: Map<String, Value>,
    body: &Body,
    fields: &[&str],
) -> Map<String, Value> {
    if let Ok(Value::Object(body)) = serde_json::to_value(body) {
        map.extend(
            body.into_iter()
                .filter(|(key, _)| fields.contains(&key.as_str())),
        );
    }
    map
}

fn open_ask(ask: &AskBody) -> Value {
    let mut data = serde_json::to_value(ask).unwrap_or_default();
    if let Some(data) = data.as_object_mut() {
        data.insert("state".to_owned(), "open".into());
    }
    data
}

/// One update a part; a long text in several. All but the last say `more`: only with the last the
/// follower has the item.
fn prompt(view: &View, item: &Item, parts: &[Part], meta: &Map<String, Value>) -> Vec<Frame> {
    let mut contents = Vec::new();
    for part in parts {
        match part {
            Part::Text { text } => contents.extend(
                size::pieces(text, size::TEXT)
                    .into_iter()
                    .map(|piece| json!({ "type": "text", "text": piece })),
            ),
            Part::Link { uri, name } => contents.push(json!({
                "type": "resource_link", "uri": uri, "name": name,
            })),
            Part::Image { mime, data } if data.len() <= size::TEXT => contents.push(json!({
                "type": "image", "mimeType": mime, "data": data,
            })),
            // Whoever sent it has it; a frame of ours cannot carry it.
            Part::Image { mime, data } => contents.push(json!({
                "type": "text",
                "text": format!("[an image, {mime}, {} KiB]", data.len() / 4 * 3 / 1024),
            })),
        }
    }
    let last = contents.len().saturating_sub(1);
    let frames = contents.into_iter().enumerate().map(|(n, content)| {
        let mut meta = meta.clone();
        if n < last {
            meta.insert("more".to_owned(), true.into());
        }
        let id = item.seq.0.to_string();
        let update =
            json!({ "sessionUpdate": "user_message_chunk", "messageId": id, "content": content });
        view.text_update(update, meta)
    });
    frames.collect()
}

/// The tasks of a plan (plan.json of the spec) as ACP entries.
fn plan_entries(plan: &Value) -> Vec<Value> {
    let mut entries = Vec::new();
    let phases = plan.get("phases").and_then(Value::as_array);
    for phase in phases.into_iter().flatten() {
        let tasks = phase.get("tasks").and_then(Value::as_array);
        for task in tasks.into_iter().flatten() {
            let text = ["title", "text", "content"]
                .into_iter()
                .find_map(|key| task.get(key).and_then(Value::as_str))
                .unwrap_or_default();
            let status = match task.get("status").and_then(Value::as_str) {
                Some("in_progress" | "doing" | "active") => "in_progress",
                Some("completed" | "done" | "skipped" | "cancelled" | "dropped") => "completed",
                _ => "pending",
            };
            entries.push(json!({ "content": text, "priority": "medium", "status": status }));
        }
    }
    entries
}
