//! What the store alone answers: chats, questions, rules, refused watch commands and the log. The
//! daemon's table answers with it, and a command does where no daemon runs.
//!
//! Not here: what needs a running session, an answer to a question above all.

use jsonrpsee_types::ErrorObjectOwned;
use serde::Deserialize;
use serde_json::{Value, json};

use super::control::{Detail, Said, read_value, refusal};
use crate::clock;
use crate::permission::Rule;
use crate::session::{kept, kept_ask};
use crate::store::db::StoreError;
use crate::store::device::Store;
use crate::store::device::refused::RefusedRow;
use crate::store::device::rules::RuleRow;
use crate::store::device::sessions::{Listing, SessionRow};

/// Sessions told in one answer.
pub const SESSIONS: usize = 200;
/// Lines of the log told in one answer.
const LINES: usize = 10_000;

/// Answers a method of the control socket from the store; none for one that needs a daemon.
pub async fn answer(store: &Store, method: &str, params: Value) -> Option<Said> {
    Some(match method {
        "sessions" => match read_value(params) {
            Ok(page) => sessions(store, page).await,
            Err(error) => Err(error),
        },
        "sessions_find" => match read_value(params) {
            Ok(which) => find_session(store, which)
                .await
                .map(|row| json!(kept(&row))),
            Err(error) => Err(error),
        },
        "sessions_delete" => match read_value(params) {
            Ok(which) => delete_session(store, which).await,
            Err(error) => Err(error),
        },
        "asks" => asks(store).await,
        "rules" => rules(store).await,
        "rules_remove" => match read_value(params) {
            Ok(which) => remove_rule(store, which).await,
            Err(error) => Err(error),
        },
        "pending" => pending(store).await,
        "allow" => match read_value(params) {
            Ok(which) => allow(store, which).await,
            Err(error) => Err(error),
        },
        "log" => match read_value(params) {
            Ok(page) => log(store, page).await,
            Err(error) => Err(error),
        },
        _ => return None,
    })
}

/// How many rows are wished.
#[derive(Debug, Deserialize)]
pub struct Page {
    pub limit: usize,
}

async fn sessions(store: &Store, page: Page) -> Said {
    let limit = page.limit.clamp(1, SESSIONS);
    let listing = Listing {
        limit: limit.saturating_add(1),
        ..Listing::default()
    };
    let rows = store.sessions(listing).await.map_err(|e| failed(&e))?;
    let more = rows.len() > limit;
    let list: Vec<_> = rows.iter().take(limit).map(kept).collect();
    Ok(json!({ "now": clock::now_ms(), "sessions": list, "more": more }))
}

async fn asks(store: &Store) -> Said {
    let rows = store.open_asks(None, None).await.map_err(|e| failed(&e))?;
    let asks: Vec<_> = rows
        .into_iter()
        .map(|(row, origin)| kept_ask(row, &origin))
        .collect();
    Ok(json!({ "now": clock::now_ms(), "asks": asks }))
}

pub(super) async fn rules(store: &Store) -> Said {
    let rules = store.rules().await.map_err(|e| failed(&e))?;
    let rules: Vec<Value> = rules
        .into_iter()
        .map(|rule| {
            let words = Rule::from(rule.clone()).words();
            json!({
                "id": rule.id, "origin": rule.origin, "session": rule.session,
                "made": rule.made, "by": rule.by, "used": rule.used, "words": words,
            })
        })
        .collect();
    Ok(json!({ "now": clock::now_ms(), "rules": rules }))
}

/// The beginning of an id.
#[derive(Debug, Deserialize)]
pub struct Begins {
    id: String,
}

/// The one chat whose id begins so.
pub(super) async fn find_session(
    store: &Store,
    which: Begins,
) -> Result<SessionRow, ErrorObjectOwned> {
    let found = store.sessions_beginning(&which.id).await;
    let mut found = found.map_err(|e| failed(&e))?;
    match (found.pop(), found.is_empty()) {
        (Some(row), true) if !which.id.is_empty() => Ok(row),
        (None, _) => Err(gone(
            format!("there is no chat whose id begins with {}", which.id),
            "lembas sessions",
        )),
        _ => Err(refusal(
            format!("several chats have an id that begins with {:?}", which.id),
            Detail {
                code: "usage".into(),
                why: None,
                fixes: vec!["lembas sessions".into()],
                number: None,
            },
        )),
    }
}

async fn delete_session(store: &Store, which: Begins) -> Said {
    let row = find_session(store, which).await?;
    store
        .delete_session(&row.id)
        .await
        .map_err(|e| failed(&e))?;
    Ok(json!({ "id": row.id }))
}

pub(super) async fn remove_rule(store: &Store, which: Begins) -> Said {
    let rules = store.rules().await.map_err(|e| failed(&e))?;
    let found: Vec<&RuleRow> = rules
        .iter()
        .filter(|rule| rule.id.starts_with(&which.id))
        .collect();
    let rule = match found.as_slice() {
        [rule] if !which.id.is_empty() => rule,
        [] => {
            return Err(gone(
                format!("there is no rule whose id begins with {}", which.id),
                "lembas rules list",
            ));
        }
        _ => {
            let ids: Vec<&str> = found.iter().map(|rule| rule.id.as_str()).collect();
            return Err(refusal(
                format!(
                    "it is not clear which rule is meant: {} begin so",
                    ids.len()
                ),
                Detail {
                    code: "usage".into(),
                    why: Some(format!(
                        "they are {}",
                        crate::text::words::list(&ids, "and")
                    )),
                    fixes: vec!["lembas rules list".into()],
                    number: None,
                },
            ));
        }
    };
    let removed = store.remove_rule(&rule.id).await.map_err(|e| failed(&e))?;
    Ok(json!({ "id": rule.id, "data": rule.data, "removed": removed }))
}

pub(super) async fn pending(store: &Store) -> Said {
    let rows = store.refused().await.map_err(|e| failed(&e))?;
    let list: Vec<Value> = rows.iter().map(listed).collect();
    Ok(json!({ "now": clock::now_ms(), "pending": list }))
}

/// A refused command as it is listed.
fn listed(row: &RefusedRow) -> Value {
    let body = &row.body;
    let mut listed = json!({
        "number": row.number, "made": row.made, "command": body.command, "cwd": body.cwd,
        "reason": body.reason,
    });
    if let Value::Object(fields) = &mut listed {
        for (key, value) in [("covers", &body.covers), ("widest", &body.widest)] {
            if let Some(value) = value {
                fields.insert(key.to_owned(), json!(value));
            }
        }
    }
    listed
}

/// A refused command by its number.
#[derive(Debug, Deserialize)]
pub struct Number {
    number: u64,
}

/// Somebody at this computer says yes to a refused command, from now on.
pub(super) async fn allow(store: &Store, which: Number) -> Said {
    let number = which.number;
    let rows = store.refused().await.map_err(|e| failed(&e))?;
    let Some(row) = rows.into_iter().find(|row| row.number == number) else {
        return Err(gone(
            format!("there is no refused watch command with the number {number}"),
            "lembas rules pending",
        ));
    };
    let said = listed(&row);
    let Some((id, data)) = row.rule else {
        return Err(refusal(
            "this command can only be allowed once, and a watch command asks nobody",
            Detail {
                code: "scope".into(),
                why: Some("what would run could be something else the next time".into()),
                fixes: vec!["write the command so that it changes nothing".into()],
                number: None,
            },
        ));
    };
    let rule = RuleRow {
        id,
        origin: row.origin,
        session: None,
        made: clock::now_ms(),
        by: "you, on this computer".to_owned(),
        data,
        used: None,
    };
    store.add_rule(rule).await.map_err(|e| failed(&e))?;
    // A row that stays behind is allowed twice, which changes nothing.
    store.take_refused(number).await.map_err(|e| failed(&e))?;
    Ok(said)
}

pub(super) async fn log(store: &Store, page: Page) -> Said {
    let lines = store.audit_log(page.limit.clamp(1, LINES)).await;
    let lines: Vec<Value> = lines
        .map_err(|e| failed(&e))?
        .into_iter()
        .map(|line| {
            json!({
                "time": line.time, "session": line.session, "origin": line.origin,
                "who": line.who, "what": line.what, "verdict": line.verdict,
                "digest": line.digest,
            })
        })
        .collect();
    Ok(json!({ "now": clock::now_ms(), "lines": lines }))
}

fn gone(text: String, fix: &str) -> ErrorObjectOwned {
    refusal(
        text,
        Detail {
            code: "gone".into(),
            why: None,
            fixes: vec![fix.into()],
            number: None,
        },
    )
}

/// The store could not be read or written.
pub(super) fn failed(error: &StoreError) -> ErrorObjectOwned {
    use std::error::Error as _;
    refusal(
        error.to_string(),
        Detail {
            code: "unavailable".into(),
            why: error.source().map(ToString::to_string),
            fixes: vec!["df -h ~".into()],
            number: None,
        },
    )
}
