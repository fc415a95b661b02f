//! What is allowed always: told to whoever it counts for, and taken back on their word
//! (`_lembas/rules`, spec/acp.md, Rules).
//!
//! Taking a yes back only narrows, so it may be asked over the link; taking a no back would widen,
//! and that is said at this computer alone. Not here: what a rule covers (`permission`), making one
//! (`agent`).

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::capabilities::Capability;
use super::connection::Connection;
use super::error::{GONE, REFUSED, Refusal};
use super::inbound;
use crate::agent::origin_text;
use crate::clock;
use crate::permission::{Origin, Rule};
use crate::rpc::RpcError;
use crate::store::db::StoreError;
use crate::store::device::Store;
use crate::store::device::rules::{Lasting, RuleRow, TakenBack};
use crate::text::cut;

/// Rules in one answer, and bytes of them, so that it fits a frame (F2); the rest come with further
/// pages.
const PAGE: usize = 50;
const BYTES: usize = 96 * 1024;
/// Characters of a rule's words, and of the command it was made from; a longer text is cut there
/// and ends in `…`.
const WORDS: usize = 400;
const COMMAND: usize = 200;
/// Changes that come closer together than this are told as one.
const STILL: Duration = Duration::from_millis(200);

/// The lasting rules of this computer.
pub trait Rules: Send + Sync + 'static {
    /// Those that count for an origin, newest first, behind the rule `after`.
    fn list(
        &self,
        origin: &Origin,
        after: Option<String>,
        limit: usize,
    ) -> BoxFuture<'static, Result<Lasting, StoreError>>;

    /// Takes a yes back.
    fn take_back(
        &self,
        origin: &Origin,
        id: &str,
    ) -> BoxFuture<'static, Result<TakenBack, StoreError>>;

    /// Marked changed when the list may read otherwise.
    fn changes(&self) -> watch::Receiver<u64>;
}

impl Rules for Store {
    fn list(
        &self,
        origin: &Origin,
        after: Option<String>,
        limit: usize,
    ) -> BoxFuture<'static, Result<Lasting, StoreError>> {
        let (store, origin) = (self.clone(), origin_text(origin));
        async move { store.lasting_rules(&origin, after, limit).await }.boxed()
    }

    fn take_back(
        &self,
        origin: &Origin,
        id: &str,
    ) -> BoxFuture<'static, Result<TakenBack, StoreError>> {
        let (store, origin, id) = (self.clone(), origin_text(origin), id.to_owned());
        async move { store.take_rule_back(&origin, &id).await }.boxed()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.rule_changes()
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Page {
    after: Option<String>,
}

/// `_lembas/rules`.
pub(super) async fn list(connection: Arc<Connection>, params: Value) -> Result<Value, RpcError> {
    let params = if params.is_null() { json!({}) } else { params };
    let Page { after } = inbound::params(params)?;
    let rules = &connection.device.rules;
    let listed = rules.list(&connection.origin, after, PAGE + 1).await;
    let mut listed = listed.map_err(|error| broken(&error))?;
    let found = listed.rules.len();
    listed.rules.truncate(PAGE);
    let (mut rules, mut bytes, mut next) = (Vec::new(), 0, None);
    for row in listed.rules {
        let id = row.id.clone();
        let rule = said(row);
        bytes += rule.to_string().len();
        if bytes > BYTES && !rules.is_empty() {
            break;
        }
        next = Some(id);
        rules.push(rule);
    }
    let more = rules.len() < found;
    let mut answer = json!({ "rules": rules, "total": listed.total, "now": clock::now_ms() });
    if let (true, Some(next), Some(answer)) = (more, next, answer.as_object_mut()) {
        answer.insert("next".to_owned(), next.into());
    }
    Ok(answer)
}

/// A rule as it is told.
fn said(row: RuleRow) -> Value {
    let local = row.origin == origin_text(&Origin::Local);
    let (by, used) = (cut::one_line(&row.by, COMMAND), row.used);
    let rule = Rule::from(row);
    let mut value = json!({
        "id": rule.id, "words": cut::one_line(&rule.words(), WORDS),
        "verdict": if rule.allows() { "allow" } else { "deny" },
        "origin": if local { "local" } else { "instance" },
        "by": by, "at": rule.made,
    });
    if let Some(map) = value.as_object_mut() {
        if let Some(folder) = rule.folder() {
            map.insert("folder".to_owned(), folder.display().to_string().into());
        }
        let command = rule.made_from();
        if !command.is_empty() {
            let command = cut::one_line(&command, COMMAND);
            map.insert("command".to_owned(), command.into());
        }
        if let Some(used) = used {
            map.insert("used".to_owned(), used.into());
        }
    }
    value
}

#[derive(Deserialize)]
struct Which {
    id: String,
}

/// `_lembas/rules/remove`.
pub(super) async fn remove(connection: Arc<Connection>, params: Value) -> Result<Value, RpcError> {
    let Which { id } = inbound::params(params)?;
    let rules = &connection.device.rules;
    let taken = rules.take_back(&connection.origin, &id).await;
    match taken.map_err(|error| broken(&error))? {
        TakenBack::Removed => {
            tracing::info!(
                rule = cut::prefix(&id, 8),
                by = connection.who(),
                "a rule was taken back"
            );
            Ok(json!({ "removed": true }))
        }
        TakenBack::Gone => {
            let text = "there is no such rule: it was taken back already, or never was";
            Err(Refusal::new(GONE, "unknown", text).into())
        }
        TakenBack::Refuses => {
            let name = (connection.device.about)().name;
            let line = format!("lembas rules remove {}", cut::prefix(&id, 6));
            let text = format!(
                "This rule refuses something, and without it more would be allowed: it is taken back on {name} alone, with {line}"
            );
            Err(Refusal::new(REFUSED, "deny", text).fixed_by(line).into())
        }
    }
}

fn broken(error: &StoreError) -> RpcError {
    let text = super::error::whole(error);
    RpcError::internal(text.clone()).with_data(json!({ "reason": "store", "text": text }))
}

/// Says that the list reads otherwise, each time it does, until the connection ends.
pub(super) async fn tell(connection: Arc<Connection>, mut changes: watch::Receiver<u64>) {
    if !connection.client().has(Capability::Rules) {
        return;
    }
    while changes.changed().await.is_ok() {
        clock::sleep(STILL).await;
        changes.borrow_and_update();
        let told = connection.peer.notify("_lembas/rules/changed", json!({}));
        if told.await.is_err() {
            return;
        }
    }
}
