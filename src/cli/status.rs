//! `lembas status`: whether this computer is linked, and what runs.

use std::path::Path;
use std::time::Duration;

use jiff::tz::TimeZone;
use serde_json::{Map, Value, json};

use super::failure::Exit;
use super::out::{Out, put};
use super::{Ending, ask};
use crate::config::Paths;
use crate::daemon::status::{Linked, Status, phase};
use crate::exec::Computer;
use crate::session::{Phase, Summary};
use crate::text::table::Table;
use crate::text::{cut, escape, path, words};

/// Chats shown; more are counted.
const CHATS: usize = 8;

pub(super) fn run(out: Out, paths: &Paths) -> Ending {
    let status: Status = ask::once(paths, "status", &json!({}))?;
    let zone = TimeZone::system();
    let well = is_well(&status);
    if out.json {
        out.object(&object(&status, well, &zone));
    } else {
        for line in lines(&status, &paths.home, &zone) {
            out.text(line);
        }
        tables(out, &status, &paths.home);
        for hint in hints(&status) {
            out.hint(hint);
        }
    }
    Ok(if well { Exit::Well } else { Exit::Not })
}

/// Linked or on its way, with settings that were understood. A computer that was never linked and
/// whose page is its own is as it should be too.
fn is_well(status: &Status) -> bool {
    let linked = matches!(
        status.linked.state.as_str(),
        "linked" | "dialling" | "never"
    );
    linked && status.config_problems.is_empty()
}

fn lines(status: &Status, home: &Path, zone: &TimeZone) -> Vec<String> {
    let limits = &status.limits;
    let waits = match limits.approval_timeout_s {
        Some(seconds) => format!(
            "approvals wait {}",
            words::duration(Duration::from_secs(seconds))
        ),
        None => "approvals wait as long as it takes".to_owned(),
    };
    let mut lines = vec![format!(
        "{} · {} · up to {} · scheduled {} · {waits}",
        escape::visible_line(&status.device.name),
        linked(&status.linked, status.now),
        limits.max_mode.title(),
        if limits.scheduled { "on" } else { "off" },
    )];
    let mut roots: Vec<String> = limits
        .roots
        .iter()
        .map(|root| path::tilde(root, Some(home)))
        .collect();
    if roots.is_empty() {
        roots.push("no folder yet".to_owned());
    }
    lines.push(if !limits.remote {
        "remote work is off".to_owned()
    } else if limits.paused {
        format!("paused; works in {}", roots.join(", "))
    } else {
        format!("works in {}", roots.join(", "))
    });
    if let Some(page) = &status.page {
        lines.push(format!(
            "page {page} · running since {} (pid {})",
            words::clock(status.since, status.now, zone),
            status.pid
        ));
    }
    if let Some(reason) = &status.linked.reason
        && status.linked.state != "never"
    {
        lines.push(format!("why: {}", escape::visible_line(reason)));
    }
    if no_box(status) {
        let (why, _) = Computer::why_no_box();
        lines.push(format!(
            "box {}: {why}; mode Edit asks before each command that does more than read",
            status.r#box
        ));
    }
    for problem in &status.config_problems {
        lines.push(format!("config.toml {problem}"));
    }
    if let Some(first) = status.strange.first() {
        let more = match status.strange.len() {
            1 => String::new(),
            many => format!(", and {} more", many - 1),
        };
        lines.push(format!(
            "{} belongs to another user, who can read and change it{more}",
            escape::visible_line(&path::tilde(first, Some(home)))
        ));
    }
    lines
}

fn linked(linked: &Linked, now: i64) -> String {
    let to = linked.instance.as_deref().map_or("an instance", host);
    let since = linked
        .since
        .map(|since| format!(" since {}", words::ago(since, now)))
        .unwrap_or_default();
    match linked.state.as_str() {
        "linked" => format!("linked to {to}{since}"),
        "dialling" => format!("dialling {to}{since}"),
        "offline" => {
            let next = linked
                .next_try
                .filter(|at| *at > now)
                .map(|at| format!(", next try in {}", words::rough(words::elapsed(now, at))))
                .unwrap_or_default();
            format!("no link to {to}{since}{next}")
        }
        "revoked" => format!("linked no more to {to}{since}"),
        "replaced" => format!("another process has the link to {to}{since}"),
        "version" => format!("{to} speaks another link protocol{since}"),
        _ => "not linked".to_owned(),
    }
}

fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split('/').next().unwrap_or(rest)
}

fn tables(out: Out, status: &Status, home: &Path) {
    if status.sessions.is_empty() {
        out.line("");
        out.line("No chats are open.");
        return;
    }
    out.line("");
    let mut table = Table::new(["CHAT", "FOLDER", "NOW", "SINCE"]);
    for session in status.sessions.iter().take(CHATS) {
        let since = session
            .progress
            .as_ref()
            .map_or(session.updated, |p| p.since);
        table.row([
            cut::prefix(session.id.as_str(), 6).to_owned(),
            path::tilde(&session.cwd, Some(home)),
            now(session, status),
            words::ago(since, status.now),
        ]);
    }
    out.table(&table);
    let more = status.sessions.len().saturating_sub(CHATS);
    if more > 0 {
        out.line(format!("showing {CHATS} of {}", status.sessions.len()));
    }
}

fn hints(status: &Status) -> Vec<String> {
    let mut hints = Vec::new();
    if !status.asks.is_empty() {
        let count = status.asks.len() as u64;
        let verb = if count == 1 { "waits" } else { "wait" };
        hints.push(format!(
            "\n{} {verb}:  lembas asks",
            words::plural(count, "approval", "approvals")
        ));
    }
    match status.linked.state.as_str() {
        "revoked" => {
            let url = status.linked.instance.as_deref().unwrap_or("https://…");
            hints.push(format!("\nLinked no more: run lembas link {url}"));
        }
        "offline" => hints.push("\nDial now:  lembas link retry".to_owned()),
        "replaced" => hints.push("\nTake it over:  lembas link take".to_owned()),
        "never" => hints.push("\nLink it:  lembas link https://your.address".to_owned()),
        _ => {}
    }
    if status.limits.paused {
        hints.push("\nGo on:  lembas resume-work".to_owned());
    }
    if no_box(status) {
        let (_, fix) = Computer::why_no_box();
        hints.push(format!("\nFor a box:  {fix}"));
    }
    hints
}

/// Whether commands run in less than a full box here.
fn no_box(status: &Status) -> bool {
    !matches!(status.r#box.as_str(), "" | "full")
}

/// What a chat is doing, in words.
fn now(session: &Summary, status: &Status) -> String {
    if session.asks > 0 {
        let what = status
            .asks
            .iter()
            .find(|open| open.session == session.id)
            .map(|open| {
                format!(
                    ": {}",
                    cut::one_line(&escape::visible_line(&open.body.command), 60)
                )
            });
        return format!("waits for you{}", what.unwrap_or_default());
    }
    match &session.progress {
        Some(progress) if session.running => phase(progress),
        Some(progress) if matches!(progress.phase, Phase::Failed | Phase::Stopped) => {
            phase(progress)
        }
        _ => "done".to_owned(),
    }
}

/// The object of `--json`: times in RFC 3339, what is not known left out.
fn object(status: &Status, well: bool, zone: &TimeZone) -> Value {
    let time = |ms: i64| json!(words::rfc3339(ms, zone));
    let mut linked = Map::new();
    let from = &status.linked;
    linked.insert("state".to_owned(), json!(from.state));
    let texts = [
        ("instance", &from.instance),
        ("account", &from.account),
        ("reason", &from.reason),
    ];
    let times = [
        ("since", from.since),
        ("last_linked", from.last_linked),
        ("next_try", from.next_try),
    ];
    linked.extend(
        texts
            .iter()
            .filter_map(|(k, v)| Some(((*k).to_owned(), json!(v.as_ref()?)))),
    );
    linked.extend(
        times
            .iter()
            .filter_map(|(k, v)| Some(((*k).to_owned(), time((*v)?)))),
    );

    let sessions: Vec<Value> = status
        .sessions
        .iter()
        .map(|session| {
            let mut row = json!({
                "id": session.id, "cwd": session.cwd, "origin": session.origin,
                "model": session.model, "mode": session.mode, "running": session.running,
                "asks": session.asks, "updated": time(session.updated),
            });
            if let Value::Object(row) = &mut row {
                if let Some(title) = &session.title {
                    row.insert("title".to_owned(), json!(title));
                }
                if let Some(progress) = &session.progress {
                    let mut progress = json!(progress);
                    if let Some(since) = progress.get("since").and_then(Value::as_i64) {
                        put(&mut progress, "since", time(since));
                    }
                    row.insert("progress".to_owned(), progress);
                }
            }
            row
        })
        .collect();
    let asks: Vec<Value> = status
        .asks
        .iter()
        .map(|open| super::answers::row(open, status.now, zone))
        .collect();
    let mut object = json!({
        "ok": well,
        "device": status.device,
        "pid": status.pid,
        "since": time(status.since),
        "linked": linked,
        "limits": status.limits,
        "box": status.r#box,
        "sessions": sessions,
        "asks": asks,
    });
    if let Value::Object(object) = &mut object {
        if let Some(page) = &status.page {
            object.insert("page".to_owned(), json!(page));
        }
        if !status.strange.is_empty() {
            object.insert("strange".to_owned(), json!(status.strange));
        }
        if !status.config_problems.is_empty() {
            object.insert("config_problems".to_owned(), json!(status.config_problems));
        }
        let hints: Vec<String> = hints(status)
            .iter()
            .filter_map(|hint| {
                hint.find("lembas ")
                    .and_then(|at| hint.get(at..))
                    .map(str::to_owned)
            })
            .collect();
        if !hints.is_empty() {
            object.insert("try".to_owned(), json!(hints));
        }
    }
    object
}

#[cfg(test)]
mod tests;
