//! What a computer allows always: its list as it last told it, and taking a rule back.
//!
//! A wish to take one back is kept until the computer has done it; the page says that it waits.
//! Not here: what a rule covers and who may widen one (the computer's business).

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde_json::{Value, json};

use super::asked::Path;
use super::auth::Signed;
use super::devices::own;
use super::error::{ApiError, ApiResult};
use super::events::{Audience, Event};
use super::link::Link;
use super::{Shared, view};
use crate::clock::now_ms;
use crate::rpc::Peer;
use crate::store::db::StoreError;
use crate::store::hub::devices::Device;
use crate::store::hub::rules::Removal;

/// Rules that are kept of a computer; what it has beyond them is said as a number.
const MOST: usize = 1_000;
/// Bytes of one rule that are kept; a longer one is not one.
const BYTES: usize = 32 * 1024;
/// How long a page of the list may take.
const SMALL: Duration = Duration::from_secs(30);

/// `GET /devices/{id}/rules`.
pub(super) async fn index(
    signed: Signed,
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
) -> ApiResult<Json<Value>> {
    let device = own(&shared, &signed, &id).await?;
    let list = shared.store.rules(id).await?;
    let rules: Vec<Value> = list
        .rules
        .iter()
        .map(|rule| {
            let text = |key: &str| rule.body.get(key).and_then(Value::as_str);
            let folder = text("folder");
            let home = device.home.as_deref();
            let mut shown = json!({
                "id": rule.id, "words": text("words"), "verdict": text("verdict"),
                "origin": text("origin"), "folder": folder,
                "folder_words": folder.map(|folder| view::folder(folder, home)),
                // The computer says where from its own place; read elsewhere it needs the name.
                "by": text("by").map(|by| by_words(by, &device)), "at": rule.body.get("at"),
                "used": rule.body.get("used"), "command": text("command"),
                "waits": rule.waits, "why": rule.why,
            });
            if let Some(shown) = shown.as_object_mut() {
                shown.retain(|_, value| !value.is_null());
            }
            shown
        })
        .collect();
    let cut = list.total.saturating_sub(rules.len() as u64);
    Ok(Json(json!({
        "rules": rules, "total": list.total, "cut": cut, "heard": list.heard, "now": now_ms(),
    })))
}

fn by_words(by: &str, device: &Device) -> String {
    by.replace("on this computer", &format!("on {}", device.name))
}

/// `DELETE /devices/{id}/rules/{rule}`.
pub(super) async fn remove(
    signed: Signed,
    State(shared): State<Arc<Shared>>,
    Path((id, rule)): Path<(String, String)>,
) -> ApiResult<(StatusCode, Json<Value>)> {
    let device = own(&shared, &signed, &id).await?;
    let name = &device.name;
    match shared.store.remove_rule(id.clone(), rule.clone()).await? {
        Removal::Gone => Err(ApiError::missing("rule")),
        Removal::Refuses => {
            let line = format!("lembas rules remove {}", crate::text::cut::prefix(&rule, 6));
            Err(ApiError::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "refused",
                format!("This rule refuses something: only {name} itself takes it back."),
            )
            .next(line))
        }
        Removal::Kept => {
            tell(&shared, &device.account, &id);
            shared.links.wake(&id);
            let online = shared.links.get(&id).is_some();
            let (state, text) = if online {
                ("sent", format!("{name} is told now."))
            } else {
                let text =
                    format!("{name} is away: it is taken back as soon as it is there again.");
                ("waits", text)
            };
            Ok((
                StatusCode::ACCEPTED,
                Json(json!({ "state": state, "text": text })),
            ))
        }
    }
}

/// Reads the list of a computer anew, and tells the page.
pub(super) async fn renew(shared: &Shared, link: &Link, peer: &Peer) -> Result<(), String> {
    let mut rules = Vec::new();
    let mut total = 0;
    let mut after: Option<Value> = None;
    while rules.len() < MOST {
        let params = after.map_or_else(|| json!({}), |after| json!({ "after": after }));
        let answer = peer.request_within("_lembas/rules", params, SMALL).await;
        let answer = answer.map_err(|error| error.to_string())?;
        let page = answer.get("rules").and_then(Value::as_array);
        let before = rules.len();
        rules.extend(page.into_iter().flatten().filter_map(|rule| {
            let id = rule.get("id")?.as_str().filter(|id| id.len() <= 128)?;
            (rule.to_string().len() <= BYTES).then(|| (id.to_owned(), rule.clone()))
        }));
        let said = answer.get("total").and_then(Value::as_u64).unwrap_or(0);
        total = said.min(1 << 53);
        after = answer.get("next").filter(|next| next.is_string()).cloned();
        if after.is_none() || rules.len() == before {
            break;
        }
    }
    rules.truncate(MOST);
    let total = total.max(rules.len() as u64);
    let device = link.device().to_owned();
    let put = shared.store.put_rules(device, rules, total, now_ms()).await;
    put.map_err(|error| error.to_string())?;
    tell(shared, link.account(), link.device());
    Ok(())
}

/// The computer has taken a rule back.
pub(super) async fn gone(shared: &Shared, link: &Link, rule: &str) -> Result<(), StoreError> {
    let device = link.device().to_owned();
    shared.store.rule_gone(device, rule.to_owned()).await?;
    // A list that was being read meanwhile may still have it, and is read once more.
    link.rules_changed();
    tell(shared, link.account(), link.device());
    Ok(())
}

/// Tells the page that a computer's list reads otherwise.
pub(super) fn tell(shared: &Shared, account: &str, device: &str) {
    shared.events.emit(
        Audience::Account(account.to_owned()),
        Event::json(
            "rules",
            Some(format!("rules:{device}")),
            json!({ "device": device }),
        ),
    );
}
