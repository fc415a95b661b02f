//! What can be asked over the control socket: one table of methods, answered from the device.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use jsonrpsee_core::RegisterMethodError;
use jsonrpsee_core::server::{Methods, RpcModule};
use jsonrpsee_types::{ErrorObjectOwned, Params};
use serde::Deserialize;
use serde_json::{Value, json};

use super::control::{Detail, Said, read, refusal};
use super::kept;
use super::status::{Device, Limits, Linked, Status};
use crate::acp::Sessions;
use crate::clock;
use crate::config::{Live, Paths, watch};
use crate::ids::AskId;
use crate::permission::Origin;
use crate::session::{Answer, AnswerError, OpenAsk, Outcome};
use crate::store::device::Store;
use crate::store::item::{AskBody, Scope, Settled};

/// The link, as far as commands care for it.
pub trait Link: Send + Sync + 'static {
    fn state(&self) -> Linked;
    /// Dials now; with `take` also where another process has the link.
    fn retry(&self, take: bool);
    /// The instance on disk changed: it was paired, or unlinked.
    fn reload(&self) -> BoxFuture<'static, ()>;
}

/// Runs a watch command for somebody at this computer.
pub trait Monitor: Send + Sync + 'static {
    /// `params` and the result are those of `_lembas/monitor`.
    fn run(&self, params: Value) -> BoxFuture<'static, Result<Value, ErrorObjectOwned>>;
}

/// What the table answers from.
#[derive(Clone)]
pub struct Parts {
    pub live: Live,
    pub store: Store,
    pub sessions: Arc<dyn Sessions>,
    pub link: Arc<dyn Link>,
    pub monitor: Arc<dyn Monitor>,
    pub device: Arc<dyn Fn() -> Device + Send + Sync>,
    pub paths: Paths,
    /// `daemon` or `up`.
    pub what: &'static str,
    /// How strong the box of commands is, as the limits say it.
    pub r#box: &'static str,
    pub page: Option<String>,
    /// Of our own files those that belong to another user.
    pub strange: Vec<PathBuf>,
    /// When this process began, milliseconds since the epoch.
    pub since: i64,
}

/// The table.
///
/// # Errors
/// When a name is given twice, which is a fault of ours.
pub fn methods(parts: Parts) -> Result<Methods, RegisterMethodError> {
    let mut table = RpcModule::new(parts);
    method(&mut table, "status", |parts, _: Value| async move {
        status(&parts).await
    })?;
    method(&mut table, "hold", |parts, params| async move {
        let Held { held } = params;
        parts.live.hold(held);
        Ok(json!({}))
    })?;
    method(&mut table, "look", |parts, _: Value| async move {
        watch::now(&parts.paths, &parts.live).await;
        Ok(json!({}))
    })?;
    method(&mut table, "link", |parts, params: LinkDo| async move {
        match params {
            LinkDo::Retry => parts.link.retry(false),
            LinkDo::Take => parts.link.retry(true),
            LinkDo::Reload => parts.link.reload().await,
        }
        Ok(json!(parts.link.state()))
    })?;
    method(
        &mut table,
        "sessions",
        |parts, params: kept::Page| async move {
            let limit = params.limit.clamp(1, kept::SESSIONS);
            let listed = parts.sessions.list(&Origin::Local, None, None, limit).await;
            let (sessions, next) = listed.map_err(|error| broken(&error))?;
            Ok(json!({ "now": clock::now_ms(), "sessions": sessions, "more": next.is_some() }))
        },
    )?;
    method(&mut table, "sessions_find", |parts, which| async move {
        let row = kept::find_session(&parts.store, which).await?;
        let session = parts.sessions.get(&row.id, &Origin::Local).await;
        let session = session.map_err(|error| broken(&error))?;
        Ok(json!(session.summary().await))
    })?;
    method(&mut table, "sessions_delete", |parts, which| async move {
        let row = kept::find_session(&parts.store, which).await?;
        let session = parts.sessions.get(&row.id, &Origin::Local).await;
        let session = session.map_err(|error| broken(&error))?;
        session.delete().await.map_err(|error| broken(&error))?;
        Ok(json!({ "id": row.id }))
    })?;
    method(&mut table, "asks", |parts, _: Value| async move {
        let asks = parts.sessions.asks(&Origin::Local).await;
        Ok(json!({ "now": clock::now_ms(), "asks": asks }))
    })?;
    method(&mut table, "answer", |parts, params| async move {
        answer(&parts, params).await
    })?;
    method(&mut table, "rules", |parts, _: Value| async move {
        kept::rules(&parts.store).await
    })?;
    method(&mut table, "rules_remove", |parts, params| async move {
        kept::remove_rule(&parts.store, params).await
    })?;
    method(&mut table, "pending", |parts, _: Value| async move {
        kept::pending(&parts.store).await
    })?;
    method(&mut table, "allow", |parts, params| async move {
        kept::allow(&parts.store, params).await
    })?;
    method(&mut table, "log", |parts, params| async move {
        kept::log(&parts.store, params).await
    })?;
    method(&mut table, "monitor", |parts, params: Value| async move {
        parts.monitor.run(params).await
    })?;
    Ok(table.into())
}

fn method<P, F, W>(
    table: &mut RpcModule<Parts>,
    name: &'static str,
    answer: F,
) -> Result<(), RegisterMethodError>
where
    P: serde::de::DeserializeOwned + Send,
    F: Fn(Arc<Parts>, P) -> W + Clone + Send + Sync + 'static,
    W: Future<Output = Said> + Send + 'static,
{
    table.register_async_method(name, move |params: Params<'static>, parts, _| {
        let read = read(&params);
        let answer = answer.clone();
        async move { answer(parts, read?).await }
    })?;
    Ok(())
}

#[derive(Debug, Deserialize)]
struct Held {
    held: bool,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
enum LinkDo {
    Retry,
    Take,
    Reload,
}

async fn status(parts: &Parts) -> Said {
    let config = parts.live.now();
    let listed = parts
        .sessions
        .list(&Origin::Local, None, None, kept::SESSIONS)
        .await;
    let (sessions, _) = listed.map_err(|error| broken(&error))?;
    let status = Status {
        now: clock::now_ms(),
        device: (parts.device)(),
        pid: std::process::id(),
        since: parts.since,
        what: parts.what.to_owned(),
        page: parts.page.clone(),
        linked: parts.link.state(),
        limits: Limits::from(&*config),
        r#box: parts.r#box.to_owned(),
        config_problems: parts
            .live
            .problems()
            .iter()
            .map(ToString::to_string)
            .collect(),
        strange: parts.strange.clone(),
        sessions,
        asks: parts.sessions.asks(&Origin::Local).await,
    };
    Ok(json!(status))
}

#[derive(Debug, Deserialize)]
struct AnswerParams {
    /// The beginning of an id.
    ask: String,
    outcome: Outcome,
    scope: Scope,
    note: Option<String>,
    /// Of a question with choices: their ids or what they are called.
    #[serde(default)]
    choose: Vec<String>,
}

async fn answer(parts: &Parts, params: AnswerParams) -> Said {
    let open = parts.sessions.asks(&Origin::Local).await;
    let asked = match one(&open, &params.ask) {
        Ok(asked) => asked,
        Err(why) => return Err(ended(parts, &open, &params.ask).await.unwrap_or(why)),
    };
    let body = &asked.body;
    if params.outcome == Outcome::Allow && !body.scopes.contains(&params.scope) {
        let way = match params.scope {
            Scope::Once => "once",
            Scope::Session => "for the session",
            Scope::Always => "always",
        };
        return Err(refusal(
            format!("this question cannot be allowed {way}"),
            Detail {
                code: "scope".into(),
                why: Some("what would run could be something else the next time".into()),
                fixes: vec![format!("lembas answer {} allow", params.ask)],
                number: None,
            },
        ));
    }
    let session = parts
        .sessions
        .get(&asked.session, &Origin::Local)
        .await
        .map_err(|error| broken(&error))?;
    let at = session
        .answer(Answer {
            ask: body.ask.clone(),
            // What the person saw is what is open now: the same bytes, by this digest.
            digest: body.digest.clone(),
            outcome: params.outcome,
            scope: params.scope,
            note: params.note,
            selected: choices(body, &params.choose),
            origin: Origin::Local,
            by: "you, on this computer".to_owned(),
        })
        .await
        .map_err(|error| not_taken(&error))?;
    Ok(json!({
        "ask": body.ask, "command": body.command, "session": asked.session, "at": at,
        "question": body.question.is_some(),
    }))
}

/// Choices by their ids or labels; what is neither goes on as it is and is refused there.
fn choices(body: &AskBody, named: &[String]) -> Vec<String> {
    let options = body.question.iter().flat_map(|question| &question.options);
    let id = |name: &String| {
        let mut options = options.clone();
        let found = options.find(|option| option.id == *name || option.label == *name);
        found.map_or_else(|| name.clone(), |option| option.id.clone())
    };
    named.iter().map(id).collect()
}

/// The one open question whose id begins like this.
fn one<'a>(open: &'a [OpenAsk], start: &str) -> Result<&'a OpenAsk, ErrorObjectOwned> {
    let mut found = open
        .iter()
        .filter(|ask| ask.body.ask.as_str().starts_with(start));
    match (found.next(), found.next()) {
        (Some(ask), None) if !start.is_empty() => Ok(ask),
        (None, _) => Err(refusal(
            format!("no question that waits has an id that begins with {start}"),
            Detail {
                code: "gone".into(),
                why: Some("it was answered, or its turn ended".into()),
                fixes: vec!["lembas asks".into()],
                number: None,
            },
        )),
        _ => {
            let ids: Vec<&str> = open
                .iter()
                .map(|ask| AskId::as_str(&ask.body.ask))
                .collect();
            Err(refusal(
                format!("several questions that wait have an id that begins with {start}"),
                Detail {
                    code: "usage".into(),
                    why: Some(format!(
                        "they are {}",
                        crate::text::words::list(&ids, "and")
                    )),
                    fixes: vec!["lembas asks".into()],
                    number: None,
                },
            ))
        }
    }
}

/// Who was first, where the one question whose id begins like this has ended.
async fn ended(parts: &Parts, open: &[OpenAsk], start: &str) -> Option<ErrorObjectOwned> {
    let waits = |ask: &OpenAsk| ask.body.ask.as_str().starts_with(start);
    if start.is_empty() || open.iter().any(waits) {
        return None;
    }
    let found = parts.store.ended_asks(start).await.ok()?;
    let [row] = found.as_slice() else { return None };
    let end = row.end.clone()?;
    Some(not_taken(&AnswerError::Settled {
        how: end.how,
        by: end.by,
        at: end.at,
    }))
}

/// The five endings of a question, and what else can be in the way of an answer.
fn not_taken(error: &AnswerError) -> ErrorObjectOwned {
    let (code, text) = match error {
        AnswerError::Settled { how, by, .. } => {
            let how = match how {
                Settled::Allowed => format!("it was allowed already, by {by}"),
                Settled::Refused => format!("it was refused already, by {by}"),
                Settled::Expired => "too late: nobody had answered, and it ended as refused".into(),
                Settled::Cancelled => "its turn has ended, and the question with it".into(),
                Settled::Gone => "what was asked is not what would run any more".into(),
            };
            ("gone", how)
        }
        AnswerError::Changed => (
            "gone",
            "what would run is not what was shown any more".into(),
        ),
        AnswerError::Unknown => ("gone", "no such question waits any more".into()),
        AnswerError::LocalOnly | AnswerError::Scope(_) => ("scope", error.to_string()),
        AnswerError::Choice(_) => ("choice", error.to_string()),
        AnswerError::Store(why) => {
            return refusal(
                "the answer could not be saved, so it does not count",
                Detail {
                    code: "unavailable".into(),
                    why: Some(why.clone()),
                    fixes: vec!["df -h ~".into()],
                    number: None,
                },
            );
        }
    };
    refusal(
        text,
        Detail {
            code: code.into(),
            why: None,
            fixes: vec!["lembas asks".into()],
            number: None,
        },
    )
}

fn broken(error: &crate::session::SessionError) -> ErrorObjectOwned {
    refusal(
        error.to_string(),
        Detail {
            code: "sessions".into(),
            why: None,
            fixes: vec!["lembas sessions".into()],
            number: None,
        },
    )
}
