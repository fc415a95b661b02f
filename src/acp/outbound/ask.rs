//! An open question as `session/request_permission`, and what the answer to one means.

use agent_client_protocol_schema::v1;
use serde_json::{Map, Value, json};

use super::call::raw_input;
use super::size;
use crate::session::{OpenAsk, Outcome, Scheduled};
use crate::store::item::{Body, Choice, Item, Question, Scope};

/// What stays whole however long: the person decides on exactly this.
const WHOLE: [&str; 4] = ["command", "segment", "digest", "sessionId"];

/// What `_lembas/ask` says in its params and not again in its meta.
const QUESTION: [&str; 5] = ["header", "text", "options", "multiple", "custom"];

/// The params of the request. `call` is the item of the call it is about, where there is one;
/// `scopes` are the yeses that count from whoever is asked, as judged now. `own_method`: a
/// question of the agent goes as `_lembas/ask` (Q13), else as one option for each choice (Q14).
pub(crate) fn request(
    ask: &OpenAsk,
    call: Option<&Item>,
    scheduled: Option<&Scheduled>,
    scopes: &[Scope],
    own_method: bool,
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
    if let Some(question) = &body.question
        && own_method
    {
        for key in QUESTION {
            meta.remove(key);
        }
        return json!({
            "sessionId": ask.session, "ask": body.ask, "digest": body.digest, "kind": body.kind,
            "header": question.header, "text": question.text, "options": question.options,
            "multiple": question.multiple, "custom": question.custom,
            "_meta": { "lembas": meta },
        });
    }
    let options = match &body.question {
        Some(question) => choices(question),
        None => options(scopes),
    };
    let mut params = json!({
        "sessionId": ask.session,
        "toolCall": {
            "toolCallId": body.call, "title": title, "kind": kind(&body.kind),
            "status": "pending", "rawInput": raw,
            "content": content(ask),
        },
        "options": options,
        "_meta": { "lembas": meta },
    });
    size::shrink(&mut params, &WHOLE);
    params
}

/// What a client without our part shows beside the title: why it asks, and the command in full.
fn content(ask: &OpenAsk) -> Value {
    let body = &ask.body;
    if let Some(question) = &body.question {
        let mut text = question.text.clone();
        for option in &question.options {
            let meaning = option.description.as_deref().unwrap_or_default();
            let line = format!("\n- {}: {meaning}", option.label);
            text.push_str(line.trim_end_matches([':', ' ']));
        }
        return json!([{ "type": "content", "content": { "type": "text", "text": text } }]);
    }
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

/// A question's choices as options, the refusal last. ACP knows one answer, so one is chosen also
/// where several could be.
fn choices(question: &Question) -> Vec<Value> {
    let option = |choice: &Choice| json!({ "optionId": choice.id, "name": choice.label, "kind": "allow_once" });
    let mut options: Vec<Value> = question.options.iter().map(option).collect();
    options.push(json!({ "optionId": "refuse", "name": "Refuse", "kind": "reject_once" }));
    options
}

/// What a client answered to the request itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    Chose(Outcome, Scope),
    /// One of the choices of a question, by its id.
    Picked(String),
    /// The client took the question away without an answer.
    Nothing,
    /// It named an option that was not there, or sent something of another form.
    Nonsense,
}

pub(crate) fn said(answer: Value, question: Option<&Question>) -> Said {
    let Ok(answer) = serde_json::from_value::<v1::RequestPermissionResponse>(answer) else {
        return Said::Nonsense;
    };
    match answer.outcome {
        v1::RequestPermissionOutcome::Cancelled => Said::Nothing,
        v1::RequestPermissionOutcome::Selected(chosen) => match chosen.option_id.0.as_ref() {
            "refuse" => Said::Chose(Outcome::Refuse, Scope::Once),
            id if question.is_some() => {
                let mut choices = question.into_iter().flat_map(|q| &q.options);
                match choices.find(|choice| choice.id == id) {
                    Some(choice) => Said::Picked(choice.id.clone()),
                    None => Said::Nonsense,
                }
            }
            "once" => Said::Chose(Outcome::Allow, Scope::Once),
            "session" => Said::Chose(Outcome::Allow, Scope::Session),
            "always" => Said::Chose(Outcome::Allow, Scope::Always),
            _ => Said::Nonsense,
        },
        _ => Said::Nonsense,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A question as it was stored; what is asked lies beside the rest.
    fn open() -> OpenAsk {
        serde_json::from_value(json!({
            "session": "s1", "seq": 9, "made": 100, "remote": true,
            "ask": "a1", "call": "0003", "digest": "sha256:1", "kind": "question",
            "command": "Which port?", "cwd": "/srv", "reason": "The agent asks you.", "box": "",
            "scopes": ["once"], "header": "Port", "text": "Which port?",
            "options": [{ "id": "1", "label": "8080" },
                        { "id": "2", "label": "3000", "description": "as before" }],
            "multiple": false, "custom": true,
        }))
        .unwrap()
    }

    #[test]
    fn a_question_goes_by_its_own_method() {
        let open = open();
        let own = request(&open, None, None, &[Scope::Once], true, 107);
        assert_eq!(
            (&own["ask"], &own["kind"], &own["text"], &own["custom"]),
            (
                &json!("a1"),
                &json!("question"),
                &json!("Which port?"),
                &json!(true)
            )
        );
        let second = json!({ "id": "2", "label": "3000", "description": "as before" });
        assert_eq!(own["options"][1], second);
        let meta = &own["_meta"]["lembas"];
        assert_eq!(meta["digest"], own["digest"]);
        assert!(meta.get("options").is_none() && own.get("toolCall").is_none());
    }

    #[test]
    fn to_others_it_is_one_option_for_each_choice() {
        let open = open();
        let plain = request(&open, None, None, &[Scope::Once], false, 107);
        let options = plain["options"].as_array().unwrap();
        let second = json!({ "optionId": "2", "name": "3000", "kind": "allow_once" });
        assert_eq!((options.len(), &options[1]), (3, &second));
        assert_eq!(
            plain["toolCall"]["content"][0]["content"]["text"],
            "Which port?\n- 8080\n- 3000: as before"
        );
        let chose = |id: &str| {
            let answer = json!({ "outcome": { "outcome": "selected", "optionId": id } });
            said(answer, open.body.question.as_ref())
        };
        assert_eq!(chose("2"), Said::Picked("2".to_owned()));
        assert_eq!(chose("once"), Said::Nonsense);
        assert_eq!(chose("refuse"), Said::Chose(Outcome::Refuse, Scope::Once));
    }
}
