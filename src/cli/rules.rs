//! `lembas rules` and `lembas allow`: what is allowed without asking, and taking it back.

use jiff::tz::TimeZone;
use serde::Deserialize;
use serde_json::{Value, json};

use super::args::Rules;
use super::failure::Exit;
use super::out::{Out, put};
use super::{Ending, ask};
use crate::config::Paths;
use crate::text::{cut, escape, words};

#[derive(Debug, Deserialize)]
struct Listed {
    now: i64,
    rules: Vec<Rule>,
}

#[derive(Debug, Deserialize)]
struct Rule {
    id: String,
    origin: String,
    session: Option<String>,
    made: i64,
    by: String,
    /// When it last let something through.
    used: Option<i64>,
    /// What it covers.
    words: String,
}

impl Rule {
    fn whom(&self) -> &'static str {
        if self.origin == "local" {
            "chats of this computer"
        } else {
            "chats of the instance"
        }
    }
}

#[derive(Debug, Deserialize)]
struct Refused {
    now: i64,
    pending: Vec<Pending>,
}

#[derive(Debug, Deserialize)]
struct Pending {
    number: u64,
    made: i64,
    command: String,
    cwd: String,
    reason: String,
    covers: Option<String>,
    widest: Option<String>,
}

pub(super) fn run(out: Out, paths: &Paths, action: Option<Rules>) -> Ending {
    match action.unwrap_or(Rules::List) {
        Rules::List => list(out, paths),
        Rules::Pending => pending(out, paths),
        Rules::Remove { id } => remove(out, paths, &id),
    }
}

fn list(out: Out, paths: &Paths) -> Ending {
    let listed: Listed = ask::or_kept(paths, "rules", &json!({}))?;
    let zone = TimeZone::system();
    if out.json {
        let rules: Vec<Value> = listed
            .rules
            .iter()
            .map(|rule| {
                let mut row = json!({
                    "id": rule.id, "origin": rule.origin, "by": rule.by, "covers": rule.words,
                    "made": words::rfc3339(rule.made, &zone),
                });
                if let Some(session) = &rule.session {
                    put(&mut row, "session", session);
                }
                if let Some(used) = rule.used {
                    put(&mut row, "used", words::rfc3339(used, &zone));
                }
                row
            })
            .collect();
        out.object(&json!({ "ok": true, "rules": rules }));
        return Ok(Exit::Well);
    }
    if listed.rules.is_empty() {
        out.text("Nothing is allowed without asking but what the mode allows.");
        return Ok(Exit::Well);
    }
    for rule in &listed.rules {
        let said = escape::visible_line(&rule.words);
        out.hanging(format!("{}  {said}", cut::prefix(&rule.id, 6)), 8);
        let session = match &rule.session {
            Some(id) => format!("the chat {}", cut::prefix(id, 6)),
            None => rule.whom().to_owned(),
        };
        let used = rule.used.map_or_else(
            || "not used yet".to_owned(),
            |used| format!("last used {}", words::clock(used, listed.now, &zone)),
        );
        let by = escape::visible_line(&rule.by);
        let made = words::clock(rule.made, listed.now, &zone);
        out.hanging(format!("        for {session}, by {by}, {made}; {used}"), 8);
    }
    out.hint("\nTake one back:  lembas rules remove ID");
    Ok(Exit::Well)
}

fn remove(out: Out, paths: &Paths, id: &str) -> Ending {
    let removed: Value = ask::or_kept(paths, "rules_remove", &json!({ "id": id }))?;
    let id = removed.get("id").and_then(Value::as_str).unwrap_or(id);
    if out.json {
        out.object(&json!({ "ok": true, "state": "removed", "id": id }));
    } else {
        out.verb(
            "Removed",
            format!("{}; it asks again from now on", cut::prefix(id, 6)),
        );
    }
    Ok(Exit::Well)
}

fn pending(out: Out, paths: &Paths) -> Ending {
    let refused: Refused = ask::or_kept(paths, "pending", &json!({}))?;
    let zone = TimeZone::system();
    if out.json {
        let rows: Vec<Value> = refused
            .pending
            .iter()
            .map(|one| {
                let mut row = json!({
                    "number": one.number, "command": one.command, "cwd": one.cwd,
                    "reason": one.reason, "made": words::rfc3339(one.made, &zone),
                });
                for (key, value) in [("covers", &one.covers), ("widest", &one.widest)] {
                    if let Some(value) = value {
                        put(&mut row, key, value);
                    }
                }
                row
            })
            .collect();
        out.object(&json!({ "ok": true, "pending": rows }));
        return Ok(Exit::Well);
    }
    if refused.pending.is_empty() {
        out.text("No watch command was refused for want of a yes.");
        return Ok(Exit::Well);
    }
    for one in &refused.pending {
        let folder = paths.show(std::path::Path::new(&one.cwd));
        let ago = words::ago(one.made, refused.now);
        let about = format!("{}  in {folder}, refused {ago} ago", one.number);
        out.hanging(about, 4);
        for line in escape::visible(&one.command).lines() {
            out.line(format!("    {line}"));
        }
        let reason = escape::visible_line(&one.reason);
        out.hanging(format!("  It would ask: {reason}"), 4);
        if let Some(covers) = &one.covers {
            out.hanging(
                format!("  A yes covers: {}", escape::visible_line(covers)),
                4,
            );
        }
        if let Some(widest) = &one.widest {
            let widest = escape::visible_line(widest);
            out.hanging(format!("  This also covers: {widest}"), 4);
        }
        out.line(format!("  lembas allow --pending {}", one.number));
    }
    Ok(Exit::Well)
}

pub(super) fn allow(out: Out, paths: &Paths, number: u64) -> Ending {
    let allowed: Pending = ask::or_kept(paths, "allow", &json!({ "number": number }))?;
    let what = allowed.covers.as_deref().unwrap_or(&allowed.command);
    if out.json {
        out.object(&json!({
            "ok": true, "state": "allowed", "number": number, "command": allowed.command,
            "cwd": allowed.cwd,
        }));
    } else {
        out.verb("Allowed", cut::one_line(&escape::visible_line(what), 120));
        out.hint("Take it back:  lembas rules remove ID      (lembas rules list has its ID)");
    }
    Ok(Exit::Well)
}
