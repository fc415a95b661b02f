//! What is going on: `_lembas/status` and `_lembas/sync`.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::Asked;
use crate::acp::error::{self, bad};
use crate::acp::inbound::{self, mode_name};
use crate::acp::opening::level_word;
use crate::clock;
use crate::ids::SessionId;
use crate::rpc::RpcError;
use crate::session::{OpenAsk, Progress, Summary};
use crate::spec;

/// The most sessions on one page of a sync; more that is asked for is lowered to this.
const MOST: usize = 200;

/// Sessions on a page when nothing is said.
const PAGE: usize = 50;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Which {
    #[serde(rename = "sessionId")]
    session: Option<SessionId>,
}

/// `_lembas/status`: of one session, or of the whole computer.
pub(super) async fn status(asked: Asked, params: Value) -> Result<Value, RpcError> {
    let params = if params.is_null() { json!({}) } else { params };
    let Which { session } = inbound::params(params)?;
    let connection = &asked.connection;
    let limits = connection.limits.describe();
    let Some(id) = session else {
        let page = connection
            .device
            .sessions
            .list(&connection.origin, None, None, PAGE)
            .await;
        let (list, _) = page.map_err(|error| error::session(&error))?;
        let sessions: Vec<Value> = list.iter().map(self::session).collect();
        let paused = connection
            .limits
            .work()
            .is_err_and(|off| off.reason == "paused");
        return Ok(json!({
            "sessions": sessions, "limits": limits, "paused": paused, "now": clock::now_ms(),
        }));
    };
    let session = connection.session(&id).await?;
    let summary = session.summary().await;
    let asks: Vec<Value> = session.asks().await.iter().map(ask).collect();
    let mut said = json!({
        "status": words(summary.progress.as_ref()), "running": summary.running,
        "jobs": [], "mode": mode_name(summary.mode), "model": summary.model,
        "level": level_word(session.level()), "asks": asks, "turn": summary.turn,
        "seq": summary.head, "limits": limits, "now": clock::now_ms(),
    });
    if let Some(said) = said.as_object_mut() {
        if let Some(progress) = &summary.progress {
            said.insert("progress".to_owned(), json!(progress));
        }
        if let Some(title) = summary.title {
            said.insert("title".to_owned(), title.into());
        }
    }
    Ok(said)
}

/// An open ask as a status says it.
fn ask(ask: &OpenAsk) -> Value {
    let mut value = serde_json::to_value(ask).unwrap_or_default();
    if let Some(value) = value.as_object_mut() {
        value.remove("remote");
        value.remove("expires_in_ms");
        if let Some(left) = ask.expires_in_ms {
            value.insert("expires_in".to_owned(), left.into());
        }
    }
    value
}

/// The status as one line of text, for clients that know no progress (R168).
fn words(progress: Option<&Progress>) -> String {
    let texts = &spec::numbers().progress;
    let phase = progress.and_then(|progress| {
        let phase = serde_json::to_value(progress.phase).ok()?;
        Some(texts.text(phase.as_str()?, &progress.data))
    });
    phase.unwrap_or_else(|| texts.idle.clone())
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Sync {
    after: Option<After>,
    limit: Option<usize>,
}

/// The `head` of an earlier sync, or the `next` of an earlier page.
#[derive(Deserialize)]
#[serde(untagged)]
enum After {
    Head(i64),
    Page(String),
}

/// Where a page of a sync goes on: what is newer than `since`, behind the registry's `cursor`.
struct Page {
    since: i64,
    head: i64,
    cursor: String,
}

impl Page {
    fn read(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, ' ');
        Some(Self {
            since: parts.next()?.parse().ok()?,
            head: parts.next()?.parse().ok()?,
            cursor: parts.next()?.to_owned(),
        })
    }

    fn write(&self) -> String {
        format!("{} {} {}", self.since, self.head, self.cursor)
    }
}

/// `_lembas/sync`: sessions changed since a head, newest change first, in pages.
pub(super) async fn sync(asked: Asked, params: Value) -> Result<Value, RpcError> {
    let params = if params.is_null() { json!({}) } else { params };
    let sync: Sync = inbound::params(params)?;
    let limit = sync.limit.unwrap_or(PAGE).clamp(1, MOST);
    let (since, page) = match sync.after {
        None => (0, None),
        Some(After::Head(since)) => (since, None),
        Some(After::Page(text)) => {
            let page =
                Page::read(&text).ok_or_else(|| bad("params", "that is no page of a sync"))?;
            (page.since, Some(page))
        }
    };
    let connection = &asked.connection;
    // Before the list: what changes in between is told now and again with the next sync.
    let newest = connection.device.sessions.head(&connection.origin).await;
    let cursor = page.as_ref().map(|page| page.cursor.clone());
    let list = connection
        .device
        .sessions
        .list(&connection.origin, None, cursor, limit)
        .await;
    let (list, more) = list.map_err(error::page)?;
    let head = page.map_or(newest, |page| page.head);
    let changed: Vec<&Summary> = list.iter().take_while(|s| s.updated >= since).collect();
    let next = more.filter(|_| changed.len() == list.len()).map(|cursor| {
        let page = Page {
            since,
            head,
            cursor,
        };
        page.write()
    });
    let sessions: Vec<Value> = changed.into_iter().map(session).collect();
    let mut answer = json!({ "sessions": sessions, "head": head });
    if let (Some(next), Some(answer)) = (next, answer.as_object_mut()) {
        answer.insert("next".to_owned(), next.into());
    }
    Ok(answer)
}

fn session(summary: &Summary) -> Value {
    let mut value = Map::new();
    value.insert("id".to_owned(), json!(summary.id));
    value.insert("seq".to_owned(), json!(summary.head));
    value.insert("running".to_owned(), summary.running.into());
    value.insert("asks".to_owned(), summary.asks.into());
    if let Some(title) = &summary.title {
        value.insert("title".to_owned(), title.clone().into());
    }
    value.insert("cwd".to_owned(), json!(summary.cwd));
    value.insert("model".to_owned(), summary.model.clone().into());
    value.insert("mode".to_owned(), mode_name(summary.mode).into());
    value.insert("updated".to_owned(), summary.updated.into());
    value.insert("turn".to_owned(), summary.turn.into());
    if summary.scheduled {
        value.insert("scheduled".to_owned(), true.into());
    }
    if let Some(progress) = &summary.progress {
        value.insert("progress".to_owned(), json!(progress));
    }
    Value::Object(value)
}
