//! What the page is told of computers, chats, items and asks: rows as the JSON of `/api/v2`.

pub(crate) mod item;

use serde_json::{Map, Value, json};

use super::Shared;
use super::render::{command, diff};
use crate::clock::now_ms;
use crate::model::practice;
use crate::store::db::StoreError;
use crate::store::hub::asks::Ask;
use crate::store::hub::chats::Chat;
use crate::store::hub::devices::Device;
use crate::store::hub::tokens::UNLINKED;

/// A computer.
pub(crate) async fn device(shared: &Shared, d: &Device) -> Result<Value, StoreError> {
    let (running, asks) = shared.store.device_counts(d.id.clone()).await?;
    let link = shared.links.get(&d.id);
    let state = if d.revoked.is_some() {
        "revoked"
    } else if link.is_some() {
        "online"
    } else if d.heard.is_some() {
        "away"
    } else {
        "never"
    };
    let heard = link.as_ref().map_or(d.heard, |l| Some(l.heard()));
    let mut value = json!({
        "id": d.id, "name": d.name, "os": d.os, "arch": d.arch, "version": d.version,
        "state": state, "since": d.revoked.unwrap_or(d.since), "last_heard": heard,
        "last_words": d.words, "address": d.address, "paired": d.paired,
        "limits": limits(&d.limits, d.home.as_deref()), "home": d.home,
        "chats_running": running, "asks": asks,
    });
    if let (Some(why), Some(map)) = (&d.revoked_why, value.as_object_mut()) {
        map.insert("why".to_owned(), why.clone().into());
        // Whose doing it was: a person's here, or the computer's own.
        let by = if why == UNLINKED { "computer" } else { "page" };
        map.insert("ended_by".to_owned(), by.into());
    } else if let (None, Some(why), Some(map)) =
        (link, shared.links.why_out(&d.id), value.as_object_mut())
    {
        map.insert("why".to_owned(), why.into());
    }
    Ok(value)
}

/// Limits with their words: `works in ~/projects · up to Edit · scheduled work off`.
pub(crate) fn limits(said: &Value, home: Option<&str>) -> Value {
    let text = |key: &str| said.get(key).and_then(Value::as_str).unwrap_or_default();
    let yes = |key: &str, other: bool| said.get(key).and_then(Value::as_bool).unwrap_or(other);
    let roots: Vec<String> = said
        .get("roots")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect();
    let names: Vec<String> = roots.iter().map(|r| folder(r, home)).collect();
    let places = match names.as_slice() {
        [] => "works in no folder yet".to_owned(),
        [one] => format!("works in {one}"),
        [rest @ .., last] => format!("works in {} and {last}", rest.join(", ")),
    };
    let mode = if text("max_mode").is_empty() {
        "manual"
    } else {
        text("max_mode")
    };
    let remote = yes("remote", true);
    let paused = yes("paused", false);
    let scheduled = yes("scheduled", false);
    let words = if !remote {
        "takes no work from here".to_owned()
    } else if paused {
        "all remote work is paused there".to_owned()
    } else {
        let on = if scheduled { "on" } else { "off" };
        format!("{places} · up to {} · scheduled work {on}", mode_name(mode))
    };
    let mut out = said.as_object().cloned().unwrap_or_default();
    for (key, value) in [
        ("remote", json!(remote)),
        ("paused", json!(paused)),
        ("roots", json!(roots)),
        ("max_mode", json!(mode)),
        ("scheduled", json!(scheduled)),
        ("words", json!(words)),
    ] {
        out.insert(key.to_owned(), value);
    }
    Value::Object(out)
}

pub(crate) fn mode_name(mode: &str) -> &str {
    match mode {
        "plan" => "Plan",
        "manual" => "Manual",
        "edit" => "Edit",
        "auto" => "Auto",
        other => other,
    }
}

/// A folder as people write it.
pub(crate) fn folder(path: &str, home: Option<&str>) -> String {
    let rest = match home {
        Some(home) => path.strip_prefix(home.trim_end_matches('/')),
        None => ["/home/", "/Users/"]
            .iter()
            .find_map(|p| path.strip_prefix(p))
            .map(|rest| rest.find('/').map_or("", |at| rest.get(at..).unwrap_or(""))),
    };
    match rest {
        Some("") => "~".to_owned(),
        Some(rest) if rest.starts_with('/') => format!("~{rest}"),
        _ => path.to_owned(),
    }
}

/// A chat.
pub(crate) async fn chat(shared: &Shared, c: &Chat) -> Result<Value, StoreError> {
    let device = shared.store.device(c.device.clone()).await?;
    let asks = shared.store.ask_count(c.id.clone()).await?;
    let queue = shared.store.queue_length(c.id.clone()).await?;
    let levels = if c.model == practice::ID {
        Vec::new()
    } else {
        let model = shared
            .store
            .model(c.account.clone(), c.model.clone())
            .await?;
        model.map(|m| m.efforts).unwrap_or_default()
    };
    let name = device.as_ref().map_or("", |d| d.name.as_str());
    let home = device.as_ref().and_then(|d| d.home.as_deref());
    let mut value = json!({
        "id": c.id, "device": c.device, "device_name": name, "cwd": c.cwd,
        "cwd_words": folder(&c.cwd, home), "title": c.title, "mode": c.mode,
        "mode_applied": c.mode, "modes": c.modes, "model": c.model, "level": c.level,
        "levels": levels, "progress": c.progress, "asks": asks, "running": c.running,
        "turn": c.turn, "updated": c.updated, "created": c.created, "origin": c.origin,
        "unread": c.head > c.seen && c.head > 0, "seen": c.seen, "head": c.head,
        "archived": c.archived, "queue": queue, "draft": c.draft,
    });
    let link = shared.links.get(&c.device);
    let can = |name: &str| link.as_ref().is_some_and(|l| l.can(name)).then_some(true);
    if let Some(map) = value.as_object_mut() {
        // Words at the next step of a running turn, another try at once, and the way back are
        // offered only where the computer has them.
        put(map, "steer", can("steer"));
        put(map, "retry", can("retry"));
        put(map, "rewind", can("rewind"));
        put(map, "wanted", c.wanted.clone());
        put(map, "lowered", c.lowered.clone());
        put(map, "closed", c.closed.clone());
    }
    Ok(value)
}

fn put(map: &mut Map<String, Value>, key: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        map.insert(key.to_owned(), value.into());
    }
}

/// What waits in a chat, in order; what is on its way to a computer that is away, and what failed.
pub(crate) async fn queue(shared: &Shared, c: &Chat) -> Result<Value, StoreError> {
    let away = shared.links.get(&c.device).is_none();
    let mut list = Vec::new();
    for work in shared.store.prompts_under_way(c.id.clone()).await? {
        let failed = work.state == "failed";
        if failed || away {
            list.push(json!({
                "key": work.key, "text": work.params.get("text"), "when": "after",
                "held": failed, "state": if failed { "failed" } else { "sent" },
                "why": work.note, "made": work.made,
            }));
        }
    }
    for one in shared.store.queue(c.id.clone()).await? {
        list.push(json!({
            "key": one.key, "text": one.text, "parts": one.parts, "when": one.when,
            "held": one.held, "stopped": one.stopped, "state": "saved", "made": one.made,
        }));
    }
    Ok(Value::Array(list))
}

/// An ask.
pub(crate) async fn ask(shared: &Shared, a: &Ask) -> Result<Value, StoreError> {
    let chat = shared.store.chat(a.chat.clone()).await?;
    let device = shared.store.device(a.device.clone()).await?;
    let name = device.as_ref().map_or("", |d| d.name.as_str());
    let home = device.as_ref().and_then(|d| d.home.as_deref());
    let text = |key: &str| a.body.get(key).and_then(Value::as_str);
    let cwd = text("cwd").unwrap_or_default();
    let line = text("command").unwrap_or_default();
    let kind = match text("kind") {
        Some("write") => "edit",
        Some(kind) => kind,
        None => "execute",
    };
    let mut value = json!({
        "ask": a.ask, "chat": a.chat,
        "chat_title": chat.as_ref().and_then(|c| c.title.clone()),
        "device": a.device, "device_name": name, "cwd": cwd, "cwd_words": folder(cwd, home),
        "call": a.call, "seq": a.seq, "kind": kind, "command": line,
        "command_html": command::html(line, text("segment")),
        "hidden": command::hidden_count(line), "reason": text("reason"),
        "segment": text("segment"), "box": text("box").and_then(box_words), "digest": text("digest"),
        "scopes": a.body.get("scopes"), "programs": a.body.get("programs"),
        "variables": a.body.get("variables"), "made": a.made, "now": now_ms(),
        "state": a.state, "late": a.late, "words": words(a, name),
    });
    if let Some(map) = value.as_object_mut() {
        let more = [
            "covers",
            "widest",
            "scheduled",
            "job",
            "subagent",
            "header",
            "text",
            "options",
            "multiple",
            "custom",
            "selected",
        ];
        for key in more {
            put(map, key, a.body.get(key).filter(|v| !v.is_null()).cloned());
        }
        if let Some(diff) = text("diff") {
            map.insert("diff_html".to_owned(), diff::draw(diff).html.into());
        }
        put(map, "expires", a.expires);
        put(map, "outcome", a.outcome.clone());
        put(map, "scope", a.scope.clone());
        put(map, "note", a.note.clone());
        // The device says where from its own place; read elsewhere it needs the name.
        let by = a.by.as_deref();
        let by = by.map(|by| by.replace("on this computer", &format!("on {name}")));
        put(map, "by", by);
        put(map, "at", a.at);
    }
    Ok(value)
}

/// The box a call was judged for, where it has one and the word is known.
pub(crate) fn box_words(said: &str) -> Option<&'static str> {
    ["read", "roots", "open"]
        .into_iter()
        .find(|known| *known == said)
}

fn words(a: &Ask, device: &str) -> String {
    let by = a.by.as_deref().unwrap_or("somebody");
    let how = a.outcome.as_deref().unwrap_or_default();
    let question = a.body.get("options").is_some_and(Value::is_array);
    match (a.state.as_str(), how) {
        ("sending", _) if question => "Not delivered yet.".to_owned(),
        ("settled", "allowed") if question && !a.late => format!("Answered by {by}."),
        ("settled", "refused") if question && !a.late => format!("{by} gave no answer."),
        ("settled", "expired") if question && !a.late => "Nobody answered in time.".to_owned(),
        ("open", _) => a.note.clone().unwrap_or_default(),
        ("sending", _) => "Not delivered yet. The command has not run.".to_owned(),
        ("sent", _) => format!("Sent. Waiting for {device}."),
        (_, how) if a.late => format!("Too late: it ended as {how}."),
        (_, "allowed") => format!("Allowed by {by}."),
        (_, "refused") => format!("Refused by {by}."),
        (_, "expired") => "Nobody answered in time: not run.".to_owned(),
        _ => "Gone: the turn ended before an answer.".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_said_in_words() {
        let said = json!({ "remote": true, "roots": ["/home/ana/projects", "/srv/notes"], "max_mode": "edit", "scheduled": false, "box": "full" });
        assert_eq!(
            limits(&said, Some("/home/ana"))["words"],
            "works in ~/projects and /srv/notes · up to Edit · scheduled work off"
        );
        assert_eq!(
            limits(&json!({}), None)["words"],
            "works in no folder yet · up to Manual · scheduled work off"
        );
        assert_eq!(
            limits(&json!({ "remote": false }), None)["words"],
            "takes no work from here"
        );
    }

    #[test]
    fn folders_are_said_as_people_do() {
        assert_eq!(folder("/home/ana/projects/api", None), "~/projects/api");
        assert_eq!(folder("/home/ana", None), "~");
        assert_eq!(folder("/homely/x", Some("/home")), "/homely/x");
        assert_eq!(folder("/etc", None), "/etc");
    }
}
