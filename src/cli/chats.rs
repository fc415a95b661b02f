//! `lembas sessions` and `lembas log`: the chats of this computer, and who allowed what.

use jiff::tz::TimeZone;
use serde::Deserialize;
use serde_json::{Value, json};

use super::failure::Exit;
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
            from(&one.origin).to_owned(),
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

/// Where a chat came from: this computer, or the page of an instance.
fn from(origin: &str) -> &'static str {
    if origin == "local" { "here" } else { "page" }
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
