//! Computers: the list, their names, taking access back, and what is asked of one directly.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::asked::{Body, Path, Query};
use super::auth::Signed;
use super::error::{ApiError, ApiResult};
use super::events::{Audience, Event};
use super::{Shared, asks, view};
use crate::clock::now_ms;
use crate::rpc::{CallError, Peer};
use crate::store::hub::devices::Device;
use crate::text::{escape, words};

/// How long a listing of folders may take.
const SMALL: Duration = Duration::from_secs(15);

/// A computer of the account.
pub(super) async fn own(shared: &Shared, signed: &Signed, id: &str) -> ApiResult<Device> {
    shared
        .store
        .device(id.to_owned())
        .await?
        .filter(|d| d.account == signed.account)
        .ok_or_else(|| ApiError::missing("computer"))
}

/// Its live link.
pub(super) fn peer(shared: &Shared, device: &Device) -> ApiResult<Peer> {
    let link = shared.links.get(&device.id);
    link.and_then(|l| l.peer()).ok_or_else(|| {
        ApiError::conflict("away", format!("{} is away.", device.name))
            .why("Asleep, off or without network: that cannot be seen from here.")
            .with("since", device.since)
    })
}

/// What helps against a refusal of a watch command (acp.md M6, M9), where the computer did not
/// say it.
fn helps(reason: &str) -> Option<&'static str> {
    Some(match reason {
        "timeout" => "Give it more seconds, or take a command that ends sooner.",
        "background" => {
            "Let the command wait for what it starts, or send the output of that elsewhere."
        }
        "spawn" => "Try the command in a terminal of that computer:  lembas monitor -- COMMAND",
        "too_long" => "Take a command that says less.",
        "busy" => "Try again when the check that runs has ended.",
        _ => return None,
    })
}

/// What a computer answered instead of doing it, or that nothing came.
pub(super) fn refused(device: &Device, error: CallError) -> ApiError {
    let name = &device.name;
    match error {
        CallError::Rpc(error) => {
            let data = error.data.unwrap_or_default();
            let text = |key: &str| data.get(key).and_then(Value::as_str).map(str::to_owned);
            let reason = text("reason").unwrap_or_else(|| "refused".to_owned());
            let said = text("text").unwrap_or(error.message);
            let path = text("path");
            let answer = ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "refused", said)
                .with("reason", reason.clone())
                .with("number", error.code);
            let answer = match text("try").or_else(|| helps(&reason).map(str::to_owned)) {
                Some(line) => answer.next(line),
                None => answer,
            };
            match (reason.as_str(), path) {
                // The whole computer is no folder to allow.
                ("root", Some(path)) if path == "/" => answer.with("path", path),
                ("outside" | "roots" | "root", Some(path)) => answer
                    .next(format!(
                        "lembas roots add {}",
                        escape::visible_line(&words::quoted(&path))
                    ))
                    .with("path", path),
                (_, Some(path)) => answer.with("path", path),
                _ => answer,
            }
        }
        CallError::Timeout => ApiError::new(
            StatusCode::GATEWAY_TIMEOUT,
            "silent",
            format!("{name} did not answer in time."),
        ),
        CallError::Closed { .. } => ApiError::conflict(
            "away",
            format!("The connection to {name} broke off before it answered."),
        ),
        CallError::TooLong { .. } | CallError::BadAnswer => ApiError::new(
            StatusCode::BAD_GATEWAY,
            "device",
            format!("{name} could not be asked this."),
        ),
    }
}

/// Tells the page how a computer is now.
pub(super) async fn tell(shared: &Shared, id: &str) {
    let told = async {
        let Some(device) = shared.store.device(id.to_owned()).await? else {
            return Ok(None);
        };
        let shown = view::device(shared, &device).await?;
        Ok::<_, crate::store::db::StoreError>(Some((device, shown)))
    };
    match told.await {
        Ok(Some((device, shown))) => shared.events.emit(
            Audience::Account(device.account),
            Event::json(
                "device",
                Some(format!("device:{id}")),
                json!({ "device": shown }),
            ),
        ),
        Ok(None) => {}
        Err(error) => tracing::warn!(%error, "a computer could not be told"),
    }
}

/// The computers of an account, shown.
pub(super) async fn list(shared: &Shared, account: &str) -> ApiResult<Vec<Value>> {
    let mut shown = Vec::new();
    for device in shared.store.devices(account.to_owned()).await? {
        shown.push(view::device(shared, &device).await?);
    }
    Ok(shown)
}

pub(super) async fn index(
    signed: Signed,
    State(shared): State<Arc<Shared>>,
) -> ApiResult<Json<Value>> {
    let devices = list(&shared, &signed.account).await?;
    Ok(Json(json!({ "devices": devices, "now": now_ms() })))
}

#[derive(Deserialize)]
pub(super) struct Rename {
    name: String,
}

pub(super) async fn rename(
    signed: Signed,
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
    Body(body): Body<Rename>,
) -> ApiResult<Json<Value>> {
    let device = own(&shared, &signed, &id).await?;
    let name = escape::label(&body.name, 64);
    if name.is_empty() {
        return Err(ApiError::bad(
            "A name has 1 to 64 characters that can be seen.",
        ));
    }
    shared.store.rename_device(device.id.clone(), name).await?;
    tell(&shared, &device.id).await;
    let device = own(&shared, &signed, &id).await?;
    Ok(Json(
        json!({ "device": view::device(&shared, &device).await? }),
    ))
}

/// `DELETE /devices/{id}`: takes access back; of one that has none any more it forgets all.
pub(super) async fn remove(
    signed: Signed,
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
) -> ApiResult<Json<Value>> {
    let device = own(&shared, &signed, &id).await?;
    if device.revoked.is_some() {
        shared.store.forget_device(id.clone()).await?;
        shared.events.emit(
            Audience::Account(signed.account),
            Event::json("device_gone", None, json!({ "id": id })),
        );
        return Ok(Json(json!({ "state": "gone" })));
    }
    let why = format!("by {}, from {}", signed.name, signed.agent);
    shared.store.revoke_device(id.clone(), why).await?;
    shared.links.revoke(&id);
    asks::over_with_device(&shared, &id).await;
    tell(&shared, &id).await;
    Ok(Json(json!({ "state": "revoked" })))
}

#[derive(Deserialize)]
pub(super) struct At {
    path: Option<String>,
}

pub(super) async fn directories(
    signed: Signed,
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
    Query(at): Query<At>,
) -> ApiResult<Json<Value>> {
    let device = own(&shared, &signed, &id).await?;
    let peer = peer(&shared, &device)?;
    let params = match at.path {
        Some(path) => json!({ "path": path }),
        None => json!({}),
    };
    let answer = peer
        .request_within("_lembas/directories", params, SMALL)
        .await;
    Ok(Json(answer.map_err(|e| refused(&device, e))?))
}

/// `POST /devices/{id}/retry`: a computer dials by itself; what can be done from here is to see
/// whether the link that is there still lives.
pub(super) async fn retry(
    signed: Signed,
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
) -> ApiResult<Json<Value>> {
    let device = own(&shared, &signed, &id).await?;
    let name = &device.name;
    let Ok(peer) = peer(&shared, &device) else {
        let text = format!(
            "{name} is still away. It dials by itself as soon as it can; on it: lembas link retry"
        );
        return Ok(Json(
            json!({ "state": "away", "since": device.since, "text": text }),
        ));
    };
    if peer.probe(Duration::from_secs(5)).await {
        return Ok(Json(
            json!({ "state": "online", "text": format!("{name} answers.") }),
        ));
    }
    peer.close(crate::link::ws::code::RESTART, "restart");
    let text = format!("{name} did not answer: its link was closed so that it dials anew.");
    Ok(Json(json!({ "state": "dialling", "text": text })))
}
