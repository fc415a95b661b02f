//! Sessions over ACP: opened and resumed.
//!
//! What is judged and in which order is here; the judgements are the gate's (`limits`). Loading is
//! in `replay`, prompting in `prompt`, all other changes in `changing`.

use std::path::PathBuf;
use std::sync::Arc;

use agent_client_protocol_schema::v1;
use futures_util::FutureExt as _;
use serde_json::{Map, Value, json};

use super::Named;
use super::connection::Connection;
use super::error::{self, REFUSED, Refusal, SCHEDULED, bad};
use super::inbound::{self, NewMeta, mode_name};
use super::limits::Lowered;
use super::port::OneSession;
use crate::config::Mode;
use crate::ids::{Position, SessionId};
use crate::permission::Origin;
use crate::rpc::{Call, RpcError};
use crate::session::{NewSession, Scheduled, Summary};
use crate::spec;

/// Further folders of one session. More is refused.
const MAX_ALSO: usize = 16;

/// `session/new`.
pub(crate) async fn new(connection: Arc<Connection>, call: Call) -> Result<Value, RpcError> {
    let request: v1::NewSessionRequest = inbound::params(call.params.clone())?;
    given(
        &connection,
        &request.mcp_servers,
        request.system_prompt.is_some(),
    )?;
    let meta: NewMeta = inbound::ours(request.meta.as_ref())?;
    // The key of a scheduled run is the run: one session for it, whoever asks how often.
    let (subject, key) = match &meta.scheduled {
        Some(asked) => (asked.schedule.clone(), Some(format!("run:{}", asked.run))),
        None => (String::new(), meta.key.clone()),
    };
    let answered = call.answered.clone();
    let opening = Arc::clone(&connection);
    let folders = (request.cwd, request.additional_directories);
    let key_there = key.clone();
    let work = async move { open(&opening, folders, meta, key_there).await }.boxed();
    let result = connection
        .keyed(&call.method, subject, key, &call.params, work)
        .await?;
    // Asked again with the same key, it may be another connection that has it now.
    let id = SessionId::new(
        result
            .get("sessionId")
            .and_then(Value::as_str)
            .unwrap_or_default(),
    );
    let session = connection.session(&id).await?;
    connection.opened(&*session, end(&*session).await, answered)?;
    Ok(result)
}

async fn open(
    connection: &Connection,
    (cwd, also): (PathBuf, Vec<PathBuf>),
    meta: NewMeta,
    key: Option<String>,
) -> Result<Value, RpcError> {
    let limits = &connection.limits;
    let (scheduled, mode) = match &meta.scheduled {
        Some(asked) => {
            let asked_mode = asked.mode.or(meta.mode);
            let asked = super::Schedule {
                mode: asked_mode,
                ..asked.clone()
            };
            let (scheduled, mode) = limits.schedule(&asked)?;
            (Some(scheduled), mode)
        }
        None => (None, limits.mode(meta.mode.unwrap_or_default())),
    };
    let in_run = |error: RpcError| run_refusal(error, scheduled.as_ref());
    let cwd = connection.folder(cwd).await.map_err(in_run)?;
    if also.len() > MAX_ALSO {
        return Err(bad("params", format!("at most {MAX_ALSO} further folders")));
    }
    let mut resolved = Vec::new();
    for folder in also {
        resolved.push(connection.folder(folder).await.map_err(in_run)?);
    }
    let model = model(connection, meta.model.clone())
        .await
        .map_err(in_run)?;
    let level = level(connection, &model, meta.level).await?;
    let agents = meta.agents.map(inbound::Agents::check).transpose()?;
    let new = NewSession {
        origin: connection.origin.clone(),
        cwd,
        also: resolved,
        model,
        mode: mode.mode,
        level,
        agents: agents.map(|agents| json!(agents)),
        said: meta.said,
        context: meta.context,
        scheduled: scheduled.clone(),
        key,
    };
    let session = connection.device.sessions.open(new).await;
    let session = session.map_err(|error| error::session(&error))?;
    Ok(opened(connection, &*session, mode, scheduled.as_ref()).await)
}

/// The refusal of a scheduled run's folder or model has the codes of scheduled work (-32050).
fn run_refusal(error: RpcError, scheduled: Option<&Scheduled>) -> RpcError {
    let reason = error
        .data
        .as_ref()
        .and_then(|data| data.get("reason"))
        .and_then(Value::as_str);
    match (scheduled, reason) {
        (Some(_), Some("roots" | "outside" | "missing")) => {
            Refusal::new(SCHEDULED, "root", error.message).into()
        }
        (Some(_), Some("model")) => Refusal::new(SCHEDULED, "model", error.message).into(),
        _ => error,
    }
}

/// The result of `session/new`.
async fn opened(
    connection: &Connection,
    session: &dyn OneSession,
    mode: Lowered,
    scheduled: Option<&Scheduled>,
) -> Value {
    let summary = session.summary().await;
    let mut ours = state(connection, &summary);
    ours.insert("level".to_owned(), level_word(session.level()).into());
    if mode.lowered {
        ours.insert("lowered".to_owned(), "max_mode".into());
    }
    if let Some(scheduled) = scheduled {
        ours.insert("approval_wait".to_owned(), scheduled.approval_wait.into());
    }
    json!({
        "sessionId": summary.id,
        "modes": modes(summary.mode),
        "_meta": { "lembas": ours },
    })
}

/// What every opening answers: `_meta.lembas` of new, load and resume.
pub(crate) fn state(connection: &Connection, summary: &Summary) -> Map<String, Value> {
    let mut ours = Map::new();
    if let Origin::Remote { instance, .. } = &connection.origin {
        ours.insert("instance".to_owned(), instance.clone().into());
    }
    ours.insert("model".to_owned(), summary.model.clone().into());
    ours.insert("mode".to_owned(), mode_name(summary.mode).into());
    ours.insert("seq".to_owned(), json!(summary.head));
    ours.insert("running".to_owned(), summary.running.into());
    ours
}

/// The modes, and the one in use.
pub(crate) fn modes(current: Mode) -> Value {
    const ALL: [(Mode, &str, &str); 4] = [
        (Mode::Plan, "Plan", "Reads and plans; changes nothing"),
        (
            Mode::Manual,
            "Manual",
            "Asks before it changes or runs anything",
        ),
        (
            Mode::Edit,
            "Edit",
            "Changes files and runs boxed commands in its folders; asks for the rest",
        ),
        (
            Mode::Auto,
            "Auto",
            "Runs without asking, as far as this computer lets it",
        ),
    ];
    let list: Vec<Value> = ALL
        .iter()
        .map(|(mode, name, about)| {
            json!({ "id": mode_name(*mode), "name": name, "description": about })
        })
        .collect();
    json!({ "currentModeId": mode_name(current), "availableModes": list })
}

/// The model of a new session: the one named, and only for a client that knows none of ours the
/// default. Nothing else is used instead (R101).
async fn model(connection: &Connection, named: Option<String>) -> Result<String, RpcError> {
    let named = named.filter(|model| !model.trim().is_empty());
    let linked_instance = connection.origin != Origin::Local && connection.client().lembas;
    if let Some(model) = named {
        served(connection, &model).await?;
        return Ok(model);
    }
    let default = if linked_instance {
        None
    } else {
        connection.device.models.default(&connection.origin).await
    };
    default.ok_or_else(|| {
        Refusal::new(
            REFUSED,
            "model",
            "no model was named, and this computer uses none of its own instead: choose a model",
        )
        .into()
    })
}

/// Refuses a model that the instance does not serve (S3). While its list cannot be had, the name
/// stands: whether it is served shows when it is asked.
pub(crate) async fn served(connection: &Connection, model: &str) -> Result<Named, RpcError> {
    let models = &connection.device.models;
    let named = models.named(&connection.origin, model).await;
    if named == Named::NotServed {
        let shown: String = model.chars().take(80).collect();
        let text =
            format!("there is no model {shown:?}, and none is used instead: choose another model");
        return Err(Refusal::new(REFUSED, "model", text).into());
    }
    Ok(named)
}

/// The level of a session: one of its model's, or `default`, which sends nothing (S3).
pub(crate) async fn level(
    connection: &Connection,
    model: &str,
    named: Option<String>,
) -> Result<Option<String>, RpcError> {
    let Some(level) = named.filter(|level| level != DEFAULT_LEVEL) else {
        return Ok(None);
    };
    if let Named::Served { levels } = served(connection, model).await?
        && !levels.contains(&level)
    {
        let shown: String = level.chars().take(40).collect();
        let known: Vec<&str> = levels.iter().map(String::as_str).collect();
        let text = format!(
            "the model {model} has no level {shown:?}: {}",
            [&[DEFAULT_LEVEL], known.as_slice()].concat().join(", ")
        );
        return Err(bad("params", text));
    }
    Ok(Some(level))
}

/// The level that sends nothing: whoever serves the model decides.
const DEFAULT_LEVEL: &str = "default";

/// A session's level as it is said.
pub(crate) fn level_word(level: Option<String>) -> String {
    level.unwrap_or_else(|| DEFAULT_LEVEL.to_owned())
}

/// What a client may not bring along: servers and prompts of its own.
pub(crate) fn given(
    connection: &Connection,
    servers: &[v1::McpServer],
    prompt: bool,
) -> Result<(), RpcError> {
    let local = connection.origin == Origin::Local;
    if !servers.is_empty() {
        let text = if local {
            "lembas does not start MCP servers of an editor yet: open the session without them"
        } else {
            spec::numbers().limits.raw("mcp_servers")
        };
        return Err(bad("mcp_servers", text));
    }
    if prompt {
        let text = if local {
            "the system prompt is lembas's own and is not replaced or added to"
        } else {
            spec::numbers().limits.raw("system_prompt")
        };
        return Err(bad("system_prompt", text));
    }
    Ok(())
}

/// `session/resume`: from here on, without a replay.
pub(crate) async fn resume(connection: Arc<Connection>, call: Call) -> Result<Value, RpcError> {
    let request: v1::ResumeSessionRequest = inbound::params(call.params)?;
    given(
        &connection,
        &request.mcp_servers,
        request.system_prompt.is_some(),
    )?;
    let id = SessionId::new(request.session_id.0.as_ref());
    let (session, summary) = connection.workable(&id).await?;
    same_folder(&connection, &summary, request.cwd).await?;
    connection.opened(&*session, end(&*session).await, call.answered)?;
    Ok(json!({
        "modes": modes(summary.mode),
        "_meta": { "lembas": state(&connection, &summary) },
    }))
}

/// A session belongs to its folder; one that is asked for in another is most likely a mistake.
pub(crate) async fn same_folder(
    connection: &Connection,
    summary: &Summary,
    asked: PathBuf,
) -> Result<(), RpcError> {
    if asked == summary.cwd || connection.folder(asked.clone()).await? == summary.cwd {
        return Ok(());
    }
    let text = format!(
        "this session works in {}, not in {}: ask for it there",
        summary.cwd.display(),
        asked.display()
    );
    Err(Refusal::new(RpcError::INVALID_PARAMS, "params", text)
        .about(asked.display().to_string())
        .into())
}

/// Where a journal ends now, the open item's text included.
pub(crate) async fn end(session: &dyn OneSession) -> Position {
    let head = session.summary().await.head;
    let last = session.items(head, 1).await.unwrap_or_default();
    last.first()
        .map_or(Position { seq: head, at: 0 }, |item| item.position())
}
