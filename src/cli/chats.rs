//! `lembas sessions` and `lembas log`: the chats of this computer, and who allowed what.

use jiff::tz::TimeZone;
use serde::Deserialize;
use serde_json::{Value, json};

use super::failure::{Exit, Failure};
use super::out::{Out, put};
use super::{Ending, ask};
use crate::config::Paths;
use crate::session::Summary;
use crate::text::table::Table;
use crate::text::{cut, escape, words};

#[derive(Debug, Deserialize)]
struct Sessions {
    now: i64,
    sessions: Vec<Summary>,
    more: bool,
}

pub(super) fn sessions(out: Out, paths: &Paths, n: u64) -> Ending {
    let answer: Sessions = ask::or_kept(paths, "sessions", &json!({ "limit": n }))?;
    let zone = TimeZone::system();
    if out.json {
        let rows: Vec<Value> = answer
            .sessions
            .iter()
            .map(|one| {
                let mut row = json!(one);
                put(&mut row, "updated", words::rfc3339(one.updated, &zone));
                if let Value::Object(fields) = &mut row {
                    fields.retain(|_, value| !value.is_null());
                }
                row
            })
            .collect();
        out.object(&json!({ "ok": true, "sessions": rows, "more": answer.more }));
        return Ok(Exit::Well);
    }
    if answer.sessions.is_empty() {
        out.line("There are no chats yet.");
        return Ok(Exit::Well);
    }
    let mut table = Table::new(["CHAT", "FOLDER", "TITLE", "FROM", "MODE", "LAST"]);
    for one in &answer.sessions {
        let state = if one.asks > 0 {
            "waits for you".to_owned()
        } else if one.running {
            "running".to_owned()
        } else {
            format!("{} ago", words::ago(one.updated, answer.now))
        };
        table.row([
            cut::prefix(one.id.as_str(), 6).to_owned(),
            paths.show(&one.cwd),
            escape::visible_line(one.title.as_deref().unwrap_or("")),
            from(one).to_owned(),
            one.mode.word().to_owned(),
            state,
        ]);
    }
    out.table(&table);
    if answer.more {
        out.line(format!("showing the newest {}", answer.sessions.len()));
    }
    Ok(Exit::Well)
}

/// Where a chat came from: this computer, a schedule, or the page of an instance.
fn from(chat: &Summary) -> &'static str {
    match chat.origin.as_str() {
        _ if chat.scheduled => "scheduled",
        "local" => "here",
        _ => "page",
    }
}

#[derive(Debug, Deserialize)]
struct Meant {
    id: String,
    title: Option<String>,
    cwd: std::path::PathBuf,
    running: bool,
}

/// Deletes one chat, after a yes where a person sits at the terminal.
pub(super) fn delete(out: Out, paths: &Paths, begins: &str, yes: bool) -> Ending {
    let meant: Meant = ask::or_kept(paths, "sessions_find", &json!({ "id": begins }))?;
    let title = escape::visible_line(meant.title.as_deref().unwrap_or("without a title"));
    let shown = format!(
        "{}  {title}, in {}",
        cut::prefix(&meant.id, 6),
        paths.show(&meant.cwd)
    );
    if !yes {
        let ends = if meant.running {
            " It runs, and ends."
        } else {
            ""
        };
        if !out.person {
            return Err(Failure::new(
                Exit::Usage,
                "needs_yes",
                format!("a chat that is deleted does not come back: {shown}"),
                format!("lembas sessions delete {} --yes", cut::prefix(&meant.id, 6)),
            ));
        }
        if !out.yes(&format!("Delete {shown}?{ends} It does not come back.")) {
            out.step("Kept", shown);
            return Ok(Exit::Not);
        }
    }
    let _: Value = ask::or_kept(paths, "sessions_delete", &json!({ "id": meant.id }))?;
    if out.json {
        out.object(&json!({ "ok": true, "state": "deleted", "id": meant.id }));
    } else {
        out.verb("Deleted", shown);
    }
    Ok(Exit::Well)
}

#[derive(Debug, Deserialize)]
struct Log {
    now: i64,
    lines: Vec<Line>,
}

#[derive(Debug, Deserialize)]
struct Line {
    time: i64,
    session: Option<String>,
    origin: String,
    who: String,
    what: String,
    verdict: String,
    digest: Option<String>,
}

pub(super) fn log(out: Out, paths: &Paths, n: u64) -> Ending {
    let log: Log = ask::or_kept(paths, "log", &json!({ "limit": n }))?;
    let zone = TimeZone::system();
    if out.json {
        for line in &log.lines {
            let mut object = json!({
                "ok": true,
                "time": words::rfc3339(line.time, &zone),
                "origin": line.origin,
                "who": line.who,
                "what": line.what,
                "verdict": line.verdict,
            });
            if let Some(session) = &line.session {
                put(&mut object, "session", session);
            }
            if let Some(digest) = &line.digest {
                put(&mut object, "digest", digest);
            }
            out.object(&object);
        }
        return Ok(Exit::Well);
    }
    if log.lines.is_empty() {
        out.line("Nothing was allowed or refused yet.");
        return Ok(Exit::Well);
    }
    let mut table = Table::new(["WHEN", "WHAT", "VERDICT", "WHO", "CHAT", "DIGEST"]);
    for line in &log.lines {
        let digest = line.digest.as_deref().unwrap_or("");
        let digest = digest.strip_prefix("sha256:").unwrap_or(digest);
        table.row([
            words::clock(line.time, log.now, &zone),
            escape::visible_line(&line.what),
            escape::visible_line(&line.verdict),
            escape::visible_line(&line.who),
            cut::prefix(line.session.as_deref().unwrap_or(""), 6).to_owned(),
            cut::prefix(digest, 12).to_owned(),
        ]);
    }
    out.table(&table);
    Ok(Exit::Well)
}
