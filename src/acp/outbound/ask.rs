//! An open question as `session/request_permission`, and what the answer to one means.

use agent_client_protocol_schema::v1;
use serde_json::{Map, Value, json};

use super::call::raw_input;
use super::size;
use crate::session::{OpenAsk, Outcome, Scheduled};
use crate::store::item::{Body, Item, Scope};

/// What stays whole however long: the person decides on exactly this.
const WHOLE: [&str; 4] = ["command", "segment", "digest", "sessionId"];

/// The params of the request. `call` is the item of the call it is about, where there is one;
/// `scopes` are the yeses that count from whoever is asked, as judged now.
pub(crate) fn request(
    ask: &OpenAsk,
    call: Option<&Item>,
    scheduled: Option<&Scheduled>,
    scopes: &[Scope],
    now: i64,
) -> Value {
    let body = &ask.body;
    let (title, raw) = match call.map(|item| &item.body) {
        Some(Body::Call { title, args, .. }) => (title.clone(), raw_input(args)),
        _ => (
            body.command.clone(),
            json!({ "command": body.command, "cwd": body.cwd }),
        ),
    };
    let mut meta = match serde_json::to_value(body) {
        Ok(Value::Object(meta)) => meta,
        _ => Map::new(),
    };
    meta.remove("wait_ms");
    meta.insert("scopes".to_owned(), json!(scopes));
    meta.insert("seq".to_owned(), json!(ask.seq));
    meta.insert("made".to_owned(), ask.made.into());
    meta.insert("now".to_owned(), now.into());
    if let Some(item) = call {
        meta.insert("turn".to_owned(), item.turn.into());
    }
    if let Some(scheduled) = scheduled {
        let run = json!({ "schedule": scheduled.schedule, "run": scheduled.run });
        meta.insert("scheduled".to_owned(), run);
    }
    if let Some(left) = ask.expires_in_ms {
        meta.insert("expires_in".to_owned(), left.into());
    }
    let mut params = json!({
        "sessionId": ask.session,
        "toolCall": {
            "toolCallId": body.call, "title": title, "kind": kind(&body.kind),
            "status": "pending", "rawInput": raw,
            "content": content(ask),
        },
        "options": options(scopes),
        "_meta": { "lembas": meta },
    });
    size::shrink(&mut params, &WHOLE);
    params
}

/// What a client without our part shows beside the title: why it asks, and the command in full.
fn content(ask: &OpenAsk) -> Value {
    let body = &ask.body;
    let what = body.diff.as_deref().unwrap_or(&body.command);
    let text = format!("{}\n\nIn {}:\n{what}", body.reason, body.cwd);
    json!([{ "type": "content", "content": { "type": "text", "text": text } }])
}

fn kind(kind: &str) -> &'static str {
    match kind {
        "execute" => "execute",
        "write" => "edit",
        "read" => "read",
        "plan" => "switch_mode",
        _ => "other",
    }
}

fn options(scopes: &[Scope]) -> Vec<Value> {
    let option =
        |id: &str, name: &str, kind: &str| json!({ "optionId": id, "name": name, "kind": kind });
    let mut options: Vec<Value> = scopes
        .iter()
        .map(|scope| match scope {
            Scope::Once => option("once", "Allow once", "allow_once"),
            Scope::Session => option("session", "Allow for this session", "allow_always"),
            Scope::Always => option("always", "Always allow", "allow_always"),
        })
        .collect();
    options.push(option("refuse", "Refuse", "reject_once"));
    options
}

/// What a client answered to the request itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    Chose(Outcome, Scope),
    /// The client took the question away without an answer.
    Nothing,
    /// It named an option that was not there, or sent something of another form.
    Nonsense,
}

pub(crate) fn said(answer: Value) -> Said {
    let Ok(answer) = serde_json::from_value::<v1::RequestPermissionResponse>(answer) else {
        return Said::Nonsense;
    };
    match answer.outcome {
        v1::RequestPermissionOutcome::Cancelled => Said::Nothing,
        v1::RequestPermissionOutcome::Selected(chosen) => match chosen.option_id.0.as_ref() {
            "once" => Said::Chose(Outcome::Allow, Scope::Once),
            "session" => Said::Chose(Outcome::Allow, Scope::Session),
            "always" => Said::Chose(Outcome::Allow, Scope::Always),
            "refuse" => Said::Chose(Outcome::Refuse, Scope::Once),
            _ => Said::Nonsense,
        },
        _ => Said::Nonsense,
    }
}
