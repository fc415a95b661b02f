//! What a person does about a turn that went wrong: the model asked again now, and back to before
//! a message. Both are the computer's to do, and are answered with what it said.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use serde_json::{Value, json};

use super::asked::{Body, Path};
use super::auth::Signed;
use super::chats::own;
use super::devices::{peer, refused};
use super::error::{ApiError, ApiResult};
use super::messages::good_key;
use super::{Shared, view};
use crate::store::hub::chats::Chat;

/// How long the computer may take; past it the page says that it is not known, and the same press
/// again is safe.
const SMALL: Duration = Duration::from_secs(15);

/// `POST /chats/{id}/retry`: ends the wait before a model that failed is asked again.
pub(super) async fn retry(
    signed: Signed,
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
) -> ApiResult<Json<Value>> {
    let chat = own(&shared, &signed, id).await?;
    let params = json!({ "sessionId": chat.session, "turn": chat.turn });
    let answer = ask(&shared, &chat, "retry", params).await?;
    Ok(Json(json!({ "state": answer.get("outcome") })))
}

#[derive(Deserialize)]
pub(super) struct Rewind {
    seq: u64,
    key: String,
}

/// `POST /chats/{id}/rewind`: back to before the message `seq`.
pub(super) async fn rewind(
    signed: Signed,
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
    Body(body): Body<Rewind>,
) -> ApiResult<Json<Value>> {
    good_key(&body.key)?;
    let chat = own(&shared, &signed, id).await?;
    if chat.running {
        return Err(
            ApiError::conflict("running", "A turn runs in this chat.").next("Stop it first.")
        );
    }
    let params = json!({ "sessionId": chat.session, "seq": body.seq, "key": body.key });
    let answer = ask(&shared, &chat, "rewind", params).await?;
    let chat = shared.store.chat(chat.id.clone()).await?.unwrap_or(chat);
    Ok(Json(
        json!({ "seq": answer.get("seq"), "chat": view::chat(&shared, &chat).await? }),
    ))
}

/// Asks the computer by the method of that name, where it has it.
async fn ask(shared: &Shared, chat: &Chat, name: &str, params: Value) -> ApiResult<Value> {
    let device = shared.store.device(chat.device.clone()).await?;
    let device = device.ok_or_else(|| ApiError::missing("computer"))?;
    let peer = peer(shared, &device)?;
    let link = shared.links.get(&device.id);
    if !link.is_some_and(|l| l.can(name)) {
        let text = format!(
            "{} has a version of lembas that cannot do this.",
            device.name
        );
        return Err(ApiError::conflict("cannot", text).next("Update lembas there."));
    }
    let method = format!("_lembas/{name}");
    let answer = peer.request_within(&method, params, SMALL).await;
    answer.map_err(|error| refused(&device, error))
}
