//! Sessions over ACP: listed, put into another mode, changed, closed, deleted.

use agent_client_protocol_schema::v1;
use serde_json::{Value, json};

use super::connection::Connection;
use super::error::{self, Refusal, SCHEDULED, bad};
use super::inbound::{self, mode_name};
use super::limits::Lowered;
use super::opening::{level, level_word, modes, served, state};
use super::prompt::BEHIND;
use crate::config::Mode;
use crate::ids::SessionId;
use crate::rpc::RpcError;
use crate::session::Summary;
use crate::spec;

/// Sessions on one page of a list.
const PAGE: usize = 50;

/// `session/list`.
pub(crate) async fn list(connection: &Connection, params: Value) -> Result<Value, RpcError> {
    let params = if params.is_null() { json!({}) } else { params };
    let request: v1::ListSessionsRequest = inbound::params(params)?;
    let sessions = &connection.device.sessions;
    let page = sessions
        .list(&connection.origin, request.cwd, request.cursor, PAGE)
        .await;
    let (list, next) = page.map_err(error::page)?;
    let list: Vec<Value> = list
        .iter()
        .map(|summary| {
            let updated = jiff::Timestamp::from_millisecond(summary.updated);
            let mut ours = state(connection, summary);
            ours.insert("asks".to_owned(), summary.asks.into());
            json!({
                "sessionId": summary.id,
                "cwd": summary.cwd,
                "title": summary.title,
                "updatedAt": updated.map(|at| at.to_string()).ok(),
                "_meta": { "lembas": ours },
            })
        })
        .collect();
    let mut answer = json!({ "sessions": list });
    if let (Some(next), Some(answer)) = (next, answer.as_object_mut()) {
        answer.insert("nextCursor".to_owned(), next.into());
    }
    Ok(answer)
}

/// `session/close`, `/delete`, `/set_mode`, `/set_config_option`.
pub(crate) async fn change(
    connection: &Connection,
    method: &str,
    params: Value,
) -> Result<Value, RpcError> {
    let failed = |error| error::session(&error);
    match method {
        "session/close" => {
            let request: v1::CloseSessionRequest = inbound::params(params)?;
            let session = connection
                .session(&SessionId::new(request.session_id.0.as_ref()))
                .await?;
            session.close().await.map_err(failed)?;
            // How it ended is heard before the answer.
            let (id, head) = (session.id(), session.summary().await.head);
            connection.streams.passed(&id, head, BEHIND).await;
            connection.closed(&id);
            Ok(json!({}))
        }
        "session/delete" => {
            let request: v1::DeleteSessionRequest = inbound::params(params)?;
            let id = SessionId::new(request.session_id.0.as_ref());
            connection.closed(&id);
            match connection.session(&id).await {
                Ok(session) => session.delete().await.map_err(failed)?,
                // It is not there: that is what was asked for.
                Err(error) if error.code == RpcError::NOT_FOUND => {}
                Err(error) => return Err(error),
            }
            Ok(json!({}))
        }
        "session/set_mode" => {
            let request: v1::SetSessionModeRequest = inbound::params(params)?;
            let id = SessionId::new(request.session_id.0.as_ref());
            let (mode, lowered) = set_mode(connection, &id, &request.mode_id.0).await?;
            let mut ours = json!({ "mode": mode_name(mode) });
            if let (true, Some(ours)) = (lowered, ours.as_object_mut()) {
                ours.insert("lowered".to_owned(), "max_mode".into());
            }
            Ok(json!({ "_meta": { "lembas": ours } }))
        }
        _ => set_option(connection, params).await,
    }
}

async fn set_mode(
    connection: &Connection,
    id: &SessionId,
    asked: &str,
) -> Result<(Mode, bool), RpcError> {
    let session = connection.session(id).await?;
    connection.may_run(&*session)?;
    let asked = inbound::mode(asked)?;
    if asked == Mode::Plan && session.scheduled().is_some() {
        let text = spec::numbers().scheduled.texts.raw("plan");
        return Err(Refusal::new(SCHEDULED, "plan", text).into());
    }
    let Lowered { mode, lowered } = connection.limits.mode(asked);
    let mode = session.set_mode(mode, &connection.who()).await;
    let mode = mode.map_err(|error| error::session(&error))?;
    // The update is heard before the answer (S6).
    let head = session.summary().await.head;
    connection.streams.passed(id, head, BEHIND).await;
    Ok((mode, lowered))
}

async fn set_option(connection: &Connection, params: Value) -> Result<Value, RpcError> {
    let request: v1::SetSessionConfigOptionRequest = inbound::params(params)?;
    let id = SessionId::new(request.session_id.0.as_ref());
    let v1::SessionConfigOptionValue::ValueId { value } = &request.value else {
        return Err(bad(
            "params",
            "the value of an option here is one of its ids",
        ));
    };
    let value = value.0.to_string();
    let failed = |error| error::session(&error);
    let session = connection.session(&id).await?;
    match request.config_id.0.as_ref() {
        "mode" => {
            set_mode(connection, &id, &value).await?;
        }
        "model" => {
            served(connection, &value).await?;
            session.set_model(value).await.map_err(failed)?;
        }
        "level" => {
            let model = session.summary().await.model;
            let level = level(connection, &model, Some(value)).await?;
            session.set_level(level_word(level)).await.map_err(failed)?;
        }
        other => {
            let shown: String = other.chars().take(40).collect();
            return Err(bad(
                "params",
                format!("there is no option {shown:?}: mode, model or level"),
            ));
        }
    }
    Ok(json!({ "configOptions": options(&session.summary().await) }))
}

/// The options of a session as ACP's selects. The models to choose from are the instance's
/// business, so the one in use stands alone.
fn options(summary: &Summary) -> Value {
    let modes = modes(summary.mode);
    let choices: Vec<Value> = modes
        .get("availableModes")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(|mode| json!({ "value": mode.get("id"), "name": mode.get("name") }))
        .collect();
    json!([
        {
            "id": "mode", "name": "Mode", "category": "mode", "type": "select",
            "currentValue": mode_name(summary.mode), "options": choices,
        },
        {
            "id": "model", "name": "Model", "category": "model", "type": "select",
            "currentValue": summary.model,
            "options": [{ "value": summary.model, "name": summary.model }],
        },
    ])
}
