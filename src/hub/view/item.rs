//! Items of a chat's page out of the rows of its transcript.
//!
//! One tool call is one card, made of what was said of it: the call, why it ran, its output, the
//! question, the result. The card's number is the call's.

use serde_json::{Map, Value, json};

use crate::hub::Shared;
use crate::hub::render::{ansi, diff, escape, markdown, marked};
use crate::store::db::StoreError;
use crate::store::hub::items::Row;

/// Lines of output on a card: of one that ran well, and of one that runs or failed.
const FEW: usize = 3;
const MANY: usize = 20;
/// Bytes of output that are looked at for those lines, and of a text that is shown whole.
const TAIL: usize = 16 * 1024;
const SHOWN: usize = 48 * 1024;

/// The items that some roots open, in order.
pub(crate) async fn items(
    shared: &Shared,
    chat: &str,
    roots: Vec<Row>,
) -> Result<Vec<Value>, StoreError> {
    let calls = roots
        .iter()
        .filter(|r| r.kind == "call")
        .filter_map(|r| r.call.clone())
        .collect();
    let parts = shared.store.call_rows(chat.to_owned(), calls).await?;
    let mut items = Vec::with_capacity(roots.len());
    for root in &roots {
        let item = match root.kind.as_str() {
            "call" => {
                let of_call: Vec<&Row> = parts.iter().filter(|r| r.call == root.call).collect();
                step(chat, root, &of_call)
            }
            "plan" => {
                let plans = shared.store.plans_of(chat.to_owned(), root.turn).await?;
                plan(root, &plans)
            }
            _ => plain(root),
        };
        items.extend(item);
    }
    Ok(items)
}

/// The item that a row opens or belongs to; none when the page does not show it.
pub(crate) async fn of_row(
    shared: &Shared,
    chat: &str,
    seq: u64,
) -> Result<Option<Value>, StoreError> {
    let Some(row) = shared.store.item(chat.to_owned(), seq).await? else {
        return Ok(None);
    };
    let root = match row.kind.as_str() {
        "plan" => {
            let plans = shared.store.plans_of(chat.to_owned(), row.turn).await?;
            plans.into_iter().next()
        }
        "started" | "output" | "result" | "ask" | "ask_settled" => {
            let calls = row.call.clone().into_iter().collect();
            let rows = shared.store.call_rows(chat.to_owned(), calls).await?;
            rows.into_iter().find(|r| r.kind == "call")
        }
        _ => Some(row),
    };
    let roots = root.into_iter().collect();
    Ok(items(shared, chat, roots).await?.into_iter().next())
}

fn base(row: &Row, kind: &str) -> Map<String, Value> {
    let mut map = Map::new();
    map.insert("seq".to_owned(), row.seq.into());
    map.insert("turn".to_owned(), row.turn.into());
    map.insert("time".to_owned(), row.time.into());
    map.insert("kind".to_owned(), kind.into());
    map
}

fn with(mut map: Map<String, Value>, more: Value) -> Option<Value> {
    if let Value::Object(more) = more {
        map.extend(more.into_iter().filter(|(_, v)| !v.is_null()));
    }
    Some(Value::Object(map))
}

fn plain(row: &Row) -> Option<Value> {
    let text = |key: &str| row.data.get(key).and_then(Value::as_str);
    match row.kind.as_str() {
        "prompt" => {
            let words = prompt_text(&row.data);
            with(
                base(row, "said"),
                json!({ "html": said(&row.data, &words), "text": words, "state": "taken",
                        "key": text("key"), "source": text("source") }),
            )
        }
        "text" => with(
            base(row, "text"),
            json!({ "blocks": markdown::blocks(&row.text), "text": row.text, "open": row.open,
                    "at": row.at }),
        ),
        "thought" => with(
            base(row, "thought"),
            json!({ "html": markdown::whole(&row.text), "open": row.open }),
        ),
        "notice" => mid(row, &escape(text("text").unwrap_or_default()), None),
        "mode" => {
            let mode = super::mode_name(text("mode").unwrap_or_default());
            let by = text("by").filter(|b| !b.is_empty());
            let by = by
                .map(|b| format!(", by {}", escape(b)))
                .unwrap_or_default();
            mid(row, &format!("Mode {}{by}", escape(mode)), None)
        }
        "rewound" => with(
            base(row, "rewound"),
            json!({ "to": row.data.get("to"), "by": text("by") }),
        ),
        "turn_end" => turn_end(row),
        _ => None,
    }
}

fn mid(row: &Row, html: &str, tone: Option<&str>) -> Option<Value> {
    with(base(row, "mid"), json!({ "html": html, "tone": tone }))
}

fn turn_end(row: &Row) -> Option<Value> {
    let reason = row.data.get("reason").and_then(Value::as_str);
    let reason = reason.map(escape);
    let stop = row.data.get("stop").and_then(Value::as_str)?;
    let (words, tone) = match stop {
        "end_turn" => return None,
        "cancelled" => ("Stopped".to_owned(), None),
        "failed" => ("The turn could not go on".to_owned(), Some("bad")),
        "max_tokens" => (
            "The answer was cut: it reached the model's longest".to_owned(),
            None,
        ),
        "max_turn_requests" => (
            "Stopped after many steps, to ask whether to go on".to_owned(),
            None,
        ),
        "refusal" => ("The model refused to go on".to_owned(), None),
        other => (escape(other), None),
    };
    let words = match reason {
        // The device says "stopped: …" itself.
        Some(reason) if stop == "cancelled" => {
            format!("{words}: {}", reason.trim_start_matches("stopped: "))
        }
        Some(reason) => format!("{words}: {reason}"),
        None => words,
    };
    mid(row, &words, tone)
}

fn prompt_text(data: &Value) -> String {
    let parts = data.get("parts").and_then(Value::as_array);
    let texts: Vec<&str> = parts
        .into_iter()
        .flatten()
        .filter_map(|p| p.get("text").and_then(Value::as_str))
        .collect();
    texts.join("")
}

/// A person's words as they wrote them; attachments by name.
fn said(data: &Value, words: &str) -> String {
    let mut html: String = words
        .split("\n\n")
        .map(|p| p.trim_matches('\n'))
        .filter(|p| !p.is_empty())
        .map(|p| format!("<p>{}</p>", escape(p).replace('\n', "<br>")))
        .collect();
    let parts = data.get("parts").and_then(Value::as_array);
    for part in parts.into_iter().flatten() {
        let name = match part.get("type").and_then(Value::as_str) {
            Some("resource_link") => part.get("name").and_then(Value::as_str).unwrap_or("a file"),
            Some("image") => "a picture",
            _ => continue,
        };
        html.push_str(&format!("<p class=\"meta\">{}</p>", escape(name)));
    }
    html
}

fn plan(root: &Row, plans: &[Row]) -> Option<Value> {
    let (first, last) = (plans.first()?, plans.last()?);
    if first.seq != root.seq {
        return None;
    }
    let entries = last.data.get("entries");
    let mut plan = json!({});
    if let Some(structure @ Value::Object(_)) = last.data.get("plan") {
        plan = structure.clone();
    }
    if let (Some(map), Some(entries)) = (plan.as_object_mut(), entries) {
        map.insert("entries".to_owned(), entries.clone());
    }
    let mut html = String::new();
    let entries = entries.and_then(Value::as_array);
    for entry in entries.into_iter().flatten() {
        let text = entry
            .get("content")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let (class, mark) = match entry.get("status").and_then(Value::as_str) {
            Some("completed") => (" class=\"is-done\"", "done"),
            Some("in_progress") => (" class=\"is-now\"", "on"),
            _ => ("", "open"),
        };
        html.push_str(&format!(
            "<li{class}><svg class=\"st\" viewBox=\"0 0 16 16\" aria-hidden=\"true\"><use \
             href=\"#s-{mark}\"/></svg><span>{}</span></li>",
            escape(text)
        ));
    }
    with(
        base(first, "plan"),
        json!({ "html": format!("<ol class=\"plan\">{html}</ol>"), "plan": plan }),
    )
}

/// A card.
fn step(chat: &str, call: &Row, rows: &[&Row]) -> Option<Value> {
    let find = |kind: &str| rows.iter().rev().find(|r| r.kind == kind);
    let text = |key: &str| call.data.get(key).and_then(Value::as_str);
    let (started, result) = (find("started"), find("result"));
    let outputs: Vec<&Row> = rows
        .iter()
        .copied()
        .filter(|r| r.kind == "output" && !r.text.is_empty())
        .collect();
    let ask = find("ask").filter(|a| {
        let id = a.data.get("ask");
        !rows
            .iter()
            .any(|r| r.kind == "ask_settled" && r.data.get("ask") == id)
    });
    let status = match (result, ask, started) {
        (Some(result), _, _) => result
            .data
            .get("status")
            .and_then(Value::as_str)
            .unwrap_or("ok"),
        (None, Some(_), _) => "asking",
        (None, None, Some(_)) => "running",
        (None, None, None) => "pending",
    };
    let block = text("block").unwrap_or("tool");
    if matches!(block, "hidden" | "plan") && matches!(status, "ok" | "pending" | "running") {
        return None;
    }
    let id = call.call.as_deref().unwrap_or_default();
    let mut map = base(call, "step");
    for (key, value) in [
        ("call", json!(id)),
        ("tool", json!(text("tool"))),
        ("block", json!(block)),
        ("title", json!(text("title"))),
        ("status", json!(status)),
        ("ran", started.map(ran).unwrap_or_default()),
        (
            "ask",
            ask.and_then(|a| a.data.get("ask"))
                .cloned()
                .unwrap_or_default(),
        ),
        ("path", json!(text("path"))),
    ] {
        map.insert(key.to_owned(), value);
    }
    if let Some(result) = result {
        for key in ["exit", "ms", "bytes", "path", "spill"] {
            if let Some(value) = result.data.get(key).filter(|v| !v.is_null()) {
                map.insert(key.to_owned(), value.clone());
            }
        }
        if let Some(drawn) = result
            .data
            .get("diff")
            .and_then(Value::as_str)
            .map(diff::draw)
        {
            map.insert("diff_html".to_owned(), drawn.html.into());
            map.insert("added".to_owned(), drawn.added.into());
            map.insert("removed".to_owned(), drawn.removed.into());
        }
    }
    if status == "refused"
        && let Some(ms) = unanswered(rows)
    {
        map.insert("unanswered".to_owned(), ms.into());
    }
    // A title is one line and may be cut; the card also has the command as it was.
    let command = call.data.pointer("/args/command").and_then(Value::as_str);
    if let Some(command) = command.filter(|c| Some(*c) != text("title")) {
        map.insert("command".to_owned(), head(command, SHOWN).into());
    }
    body(&mut map, block, status, &outputs, result.copied());
    let some = outputs
        .last()
        .or(result)
        .is_some_and(|r| !words(r).is_empty());
    // Bytes that came faster than they could be told are on the computer alone.
    let bytes = map.get("bytes").and_then(Value::as_u64).unwrap_or(0);
    if some || (block == "shell" && bytes > 0) {
        let url = format!("/api/v2/chats/{chat}/output/{}", path_part(id));
        map.insert("download".to_owned(), url.into());
    }
    with(Map::new(), Value::Object(map))
}

/// For how long its question waited, where nobody answered it (U17).
fn unanswered(rows: &[&Row]) -> Option<i64> {
    let settled = rows.iter().rev().find(|r| r.kind == "ask_settled")?;
    if settled.data.get("how").and_then(Value::as_str) != Some("expired") {
        return None;
    }
    let id = settled.data.get("ask");
    let asked = rows
        .iter()
        .find(|r| r.kind == "ask" && r.data.get("ask") == id)?;
    Some((settled.time - asked.time).max(0))
}

/// What let a call run, and what held it back.
fn ran(started: &&Row) -> Value {
    let mut allowed = started.data.get("allowed").cloned().unwrap_or_default();
    if let Some(map) = allowed.as_object_mut() {
        let said = map.remove("box");
        let held = said.as_ref().and_then(Value::as_str);
        if let Some(held) = held.and_then(super::box_words) {
            map.insert("box".to_owned(), held.into());
        }
    }
    allowed
}

/// The words of an output or a result.
pub(crate) fn words(row: &Row) -> &str {
    if row.kind == "output" {
        &row.text
    } else {
        row.data
            .get("text")
            .and_then(Value::as_str)
            .unwrap_or_default()
    }
}

fn body(
    map: &mut Map<String, Value>,
    block: &str,
    status: &str,
    outputs: &[&Row],
    result: Option<&Row>,
) {
    let Some(text) = outputs.last().copied().or(result).map(words) else {
        return;
    };
    if text.is_empty() {
        return;
    }
    // A long output has several items.
    let parts: Vec<&str> = match outputs {
        [] => vec![text],
        outputs => outputs.iter().map(|row| words(row)).collect(),
    };
    let kept: usize = parts.iter().map(|part| part.len()).sum();
    let all = map.get("bytes").and_then(Value::as_u64);
    if block == "shell" && !outputs.is_empty() && all.is_some_and(|all| all > kept as u64) {
        // What came faster than it could be sent is on the computer alone; the page says so.
        map.insert("kept".to_owned(), kept.into());
    } else {
        let ends = parts.iter().flat_map(|part| part.bytes());
        let breaks = ends.filter(|byte| *byte == b'\n').count();
        let open = usize::from(!text.ends_with('\n'));
        map.insert("lines".to_owned(), (breaks + open).into());
    }
    if block == "shell" {
        let few = if status == "ok" { FEW } else { MANY };
        // The last item may have begun with the last line.
        let ended = match parts.as_slice() {
            [.., before, last] if last.len() < TAIL => format!("{before}{last}"),
            _ => text.to_owned(),
        };
        map.insert("tail_html".to_owned(), tail(&ended, few).into());
    } else if !map.contains_key("diff_html") || status != "ok" {
        // What was read is shown as it is: bytes, not colours.
        map.insert("tail_html".to_owned(), marked(head(text, SHOWN)).into());
    }
}

/// The last lines of some output, drawn.
pub(crate) fn tail(text: &str, lines: usize) -> String {
    let from = ansi::whole_from(text, text.len().saturating_sub(TAIL));
    let drawn = ansi::lines(text.get(from..).unwrap_or_default());
    let skip = drawn.len().saturating_sub(lines);
    drawn.get(skip..).unwrap_or_default().join("\n")
}

fn head(text: &str, most: usize) -> &str {
    let to = (0..=most.min(text.len()))
        .rev()
        .find(|n| text.is_char_boundary(*n))
        .unwrap_or(0);
    text.get(..to).unwrap_or_default()
}

/// An id as one part of a path.
fn path_part(id: &str) -> String {
    use std::fmt::Write as _;
    let mut out = String::new();
    for byte in id.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _infallible = write!(out, "%{byte:02X}");
        }
    }
    out
}
