//! A tool call on the wire: made, let through, ended. One `tool_call` a call, then only updates.

use serde_json::{Map, Value, json};

use super::item::with;
use super::{Frame, View};
use crate::store::item::{Body, CallStatus, Item};

/// The longest diff that is also given as old and new text, which an editor draws.
const DRAWN: usize = 24 * 1024;

/// The frame of a `Call`, `Started` or `Result` item.
pub(super) fn frame(view: &View, item: &Item, mut meta: Map<String, Value>) -> Option<Frame> {
    match &item.body {
        Body::Call {
            call,
            tool,
            args,
            title,
            block,
            locations,
            ..
        } => {
            meta.insert("tool".to_owned(), tool.clone().into());
            meta.insert("block".to_owned(), block.clone().into());
            let locations: Vec<Value> = locations
                .iter()
                .map(|path| json!({ "path": path }))
                .collect();
            let update = json!({
                "sessionUpdate": "tool_call", "toolCallId": call, "title": title,
                "kind": kind(tool, block), "status": "pending",
                "rawInput": raw_input(args), "locations": locations,
            });
            Some(view.update(update, meta))
        }
        Body::Started { call, .. } => {
            let update = json!({
                "sessionUpdate": "tool_call_update", "toolCallId": call, "status": "in_progress",
            });
            Some(view.update(update, with(meta, &item.body, &["allowed"])))
        }
        Body::Result {
            call,
            status,
            text,
            diff,
            path,
            ..
        } => {
            let meta = with(
                meta,
                &item.body,
                &["status", "exit", "ms", "bytes", "spill", "path", "diff"],
            );
            let state = if *status == CallStatus::Ok {
                "completed"
            } else {
                "failed"
            };
            let update = json!({
                "sessionUpdate": "tool_call_update", "toolCallId": call, "status": state,
                "content": content(text, diff.as_deref(), path.as_deref()),
            });
            Some(view.update(update, meta))
        }
        _ => None,
    }
}

fn content(text: &str, diff: Option<&str>, path: Option<&str>) -> Value {
    let mut blocks = Vec::new();
    if let (Some(diff), Some(path)) = (diff, path)
        && diff.len() <= DRAWN
    {
        let (old, new) = sides(diff);
        blocks.push(json!({ "type": "diff", "path": path, "oldText": old, "newText": new }));
    }
    blocks.push(json!({ "type": "content", "content": { "type": "text", "text": text } }));
    Value::Array(blocks)
}

/// The two sides of a unified diff's hunks. None for the old side: the file is new.
fn sides(diff: &str) -> (Option<String>, String) {
    let (mut old, mut new) = (String::new(), String::new());
    let mut fresh = false;
    for line in diff.lines() {
        if line.starts_with("@@") {
            fresh = fresh || line.starts_with("@@ -0,0 ");
            continue;
        }
        if line.starts_with("--- ") || line.starts_with("+++ ") || line.starts_with('\\') {
            continue;
        }
        let put = |side: &mut String, text: &str| {
            side.push_str(text);
            side.push('\n');
        };
        match line.split_at_checked(1) {
            Some(("+", text)) => put(&mut new, text),
            Some(("-", text)) => put(&mut old, text),
            Some((_, text)) => {
                put(&mut old, text);
                put(&mut new, text);
            }
            None => {
                put(&mut old, "");
                put(&mut new, "");
            }
        }
    }
    let created = fresh && old.is_empty();
    ((!created).then_some(old), new)
}

/// The kind of a call (U5): by its tool, and of one that we do not know by the block it is
/// drawn as.
fn kind(tool: &str, block: &str) -> &'static str {
    match (tool, block) {
        ("read" | "list", _) => "read",
        ("glob" | "grep", _) => "search",
        ("write" | "edit", _) => "edit",
        ("bash", _) | (_, "shell") => "execute",
        ("plan_write" | "plan_update" | "plan_submit", _) => "think",
        (_, "web") => "fetch",
        _ => "other",
    }
}

/// The arguments as an object, or as the text they were when they are none.
pub(super) fn raw_input(args: &str) -> Value {
    match serde_json::from_str(args) {
        Ok(Value::Object(args)) => Value::Object(args),
        _ => Value::String(args.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_has_two_sides() {
        let (old, new) = sides("--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n");
        assert_eq!(old.as_deref(), Some("one\ntwo\nthree\n"));
        assert_eq!(new, "one\n2\nthree\n");
        let (old, new) = sides("--- /dev/null\n+++ b/x\n@@ -0,0 +1,2 @@\n+one\n+two\n");
        assert_eq!((old, new.as_str()), (None, "one\ntwo\n"));
    }

    #[test]
    fn arguments_that_are_not_json_stay_as_text() {
        assert_eq!(
            raw_input("{\"command\":\"ls\"}"),
            json!({ "command": "ls" })
        );
        assert_eq!(raw_input("{\"command\":"), json!("{\"command\":"));
    }
}
