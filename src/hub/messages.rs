//! Messages on their way: the queue of a chat, stops and drafts.
//!
//! A message waits here until it may go: the computer is there, no turn runs, and nothing before
//! it is held. What is sent keeps its key until the computer has answered.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::asked::{Body, Path};
use super::auth::Signed;
use super::chats::own;
use super::error::{ApiError, ApiResult};
use super::events::{Audience, Event};
use super::link::tell_chat;
use super::{Shared, view};
use crate::acp;
use crate::clock::now_ms;
use crate::ids::Digest;
use crate::store::db::StoreError;
use crate::store::hub::chats::{Chat, ChatEdit};
use crate::store::hub::work::{Enqueued, MAX_QUEUED, Queued};

/// Bytes of one message's text.
const TEXT: usize = 512 * 1024;

/// Tells the page what waits in a chat.
pub(super) async fn tell_queue(shared: &Shared, id: &str) {
    let told = async {
        let Some(chat) = shared.store.chat(id.to_owned()).await? else {
            return Ok(None);
        };
        let queue = view::queue(shared, &chat).await?;
        Ok::<_, StoreError>(Some((chat.account, queue)))
    };
    match told.await {
        Ok(Some((account, queue))) => shared.events.emit(
            Audience::Account(account),
            Event::json(
                "queue",
                Some(format!("queue:{id}")),
                json!({ "chat": id, "queue": queue }),
            ),
        ),
        Ok(None) => {}
        Err(error) => tracing::warn!(%error, "a queue could not be told"),
    }
}

/// A turn ended: the next message goes, when there is one.
pub(super) async fn after_turn(shared: &Shared, id: &str) -> Result<(), StoreError> {
    let Some(chat) = shared.store.chat(id.to_owned()).await? else {
        return Ok(());
    };
    if shared.links.get(&chat.device).is_some() {
        let sent = shared
            .store
            .send_next(chat.device.clone(), chat.id.clone())
            .await?;
        if sent {
            tell_queue(shared, id).await;
            tell_chat(shared, id).await;
        }
    }
    shared.links.wake(&chat.device);
    Ok(())
}

/// When a message goes that comes while a turn runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum When {
    /// Behind the turn.
    #[default]
    After,
    /// At the turn's next step.
    Next,
}

impl When {
    fn word(self) -> &'static str {
        match self {
            Self::After => "after",
            Self::Next => "next",
        }
    }
}

#[derive(Deserialize)]
pub(super) struct New {
    key: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    when: Option<When>,
    #[serde(default)]
    parts: Vec<Value>,
}

/// Takes a message in. The same key again adds nothing and says how far it is.
pub(super) async fn put(shared: &Shared, chat: &Chat, new: New) -> ApiResult<&'static str> {
    if let Some(why) = &chat.closed {
        return Err(
            ApiError::conflict("closed", "Nothing can be written in this chat any more.")
                .why(why.clone()),
        );
    }
    good_key(&new.key)?;
    if new.text.trim().is_empty() && new.parts.is_empty() {
        return Err(ApiError::bad("The message is empty."));
    }
    if new.text.len() > TEXT {
        return Err(ApiError::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "too_large",
            format!("A message has at most {} KiB.", TEXT / 1024),
        )
        .next("Put the text in a file in the folder and name the file."));
    }
    acp::good_parts(&new.parts)
        .map_err(|why| ApiError::bad("The message cannot be sent like that.").why(why))?;
    let when = new.when.unwrap_or_default();
    let next = when == When::Next;
    let asked = asked(&json!([new.text, when.word(), new.parts]));
    let message = Queued {
        key: new.key.clone(),
        text: new.text,
        parts: new.parts,
        when: when.word().to_owned(),
        held: false,
        made: now_ms(),
    };
    let (device, id) = (chat.device.clone(), chat.id.clone());
    match shared
        .store
        .enqueue(device.clone(), id.clone(), message, asked)
        .await?
    {
        Enqueued::Full => {
            return Err(ApiError::conflict(
                "queue_full",
                format!("{MAX_QUEUED} messages wait here already."),
            ));
        }
        Enqueued::Used => return Err(used_key()),
        Enqueued::Known => return known(shared, chat, &new.key).await,
        Enqueued::Queued => {}
    }
    let link = shared.links.get(&device);
    let sent = match &link {
        None => false,
        Some(link) if next && chat.running && link.can("steer") => {
            let key = new.key.clone();
            shared
                .store
                .steer_now(device.clone(), id.clone(), key)
                .await?
        }
        Some(_) => shared.store.send_next(device.clone(), id.clone()).await?,
    };
    shared.links.wake(&device);
    tell_queue(shared, &id).await;
    if sent
        && shared
            .store
            .queue(id)
            .await?
            .iter()
            .all(|q| q.key != new.key)
    {
        return Ok("sent");
    }
    Ok("queued")
}

/// How far a message is that was handed in before.
async fn known(shared: &Shared, chat: &Chat, key: &str) -> ApiResult<&'static str> {
    for kind in ["prompt", "steer"] {
        let work = shared
            .store
            .work(chat.device.clone(), kind, key.to_owned())
            .await?;
        match work.as_ref().map(|w| w.state.as_str()) {
            Some("taken" | "done") => return Ok("taken"),
            Some("failed") => {
                shared
                    .store
                    .retry_work(chat.id.clone(), key.to_owned())
                    .await?;
                shared.links.wake(&chat.device);
                tell_queue(shared, &chat.id).await;
                return Ok("sent");
            }
            Some(_) => return Ok("sent"),
            None => {}
        }
    }
    Ok("queued")
}

/// What stands for what was asked with a key: the same key with the same is the same request, and
/// with anything else a mistake of the asker.
pub(super) fn asked(what: &Value) -> String {
    Digest::of(what.to_string().as_bytes()).as_str().to_owned()
}

/// The key stands for something else.
pub(super) fn used_key() -> ApiError {
    ApiError::conflict(
        "key_used",
        "This key was used for something else, and nothing was done.",
    )
    .why("a key stands for one request: the same again is answered as before, another is refused")
    .next("Take a new key for what is new; send the same with the same key.")
}

pub(super) fn good_key(key: &str) -> ApiResult<()> {
    if (8..=128).contains(&key.len()) && key.bytes().all(|b| b.is_ascii_graphic()) {
        return Ok(());
    }
    Err(ApiError::bad("A key has 8 to 128 letters and digits."))
}

/// `POST /chats/{id}/messages`.
pub(super) async fn create(
    signed: Signed,
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
    Body(body): Body<New>,
) -> ApiResult<Json<Value>> {
    let chat = own(&shared, &signed, id).await?;
    let state = put(&shared, &chat, body).await?;
    answer(&shared, &chat, Some(state)).await
}

async fn answer(shared: &Shared, chat: &Chat, state: Option<&str>) -> ApiResult<Json<Value>> {
    let queue = view::queue(shared, chat).await?;
    Ok(Json(match state {
        Some(state) => json!({ "state": state, "queue": queue }),
        None => json!({ "queue": queue }),
    }))
}

#[derive(Deserialize)]
pub(super) struct Edit {
    text: Option<String>,
    when: Option<When>,
}

/// `PATCH /chats/{id}/queue/{key}`: what was held for the change goes on waiting.
pub(super) async fn edit(
    signed: Signed,
    State(shared): State<Arc<Shared>>,
    Path((id, key)): Path<(String, String)>,
    Body(body): Body<Edit>,
) -> ApiResult<Json<Value>> {
    if body
        .text
        .as_ref()
        .is_some_and(|t| t.trim().is_empty() || t.len() > TEXT)
    {
        return Err(ApiError::bad("The message is empty or too long."));
    }
    let chat = own(&shared, &signed, id).await?;
    let when = body.when.map(|when| when.word().to_owned());
    let changed = shared
        .store
        .edit_queued(chat.id.clone(), key, body.text, when, None, false)
        .await?;
    waiting(changed)?;
    tell_queue(&shared, &chat.id).await;
    answer(&shared, &chat, None).await
}

fn waiting(changed: bool) -> ApiResult<()> {
    if changed {
        return Ok(());
    }
    Err(ApiError::conflict(
        "sent",
        "This message does not wait any more: it was sent or removed.",
    ))
}

/// `DELETE /chats/{id}/queue/{key}`.
pub(super) async fn remove(
    signed: Signed,
    State(shared): State<Arc<Shared>>,
    Path((id, key)): Path<(String, String)>,
) -> ApiResult<Json<Value>> {
    let chat = own(&shared, &signed, id).await?;
    let gone = shared
        .store
        .drop_queued(chat.id.clone(), key.clone())
        .await?
        || shared.store.drop_work(chat.id.clone(), key).await?;
    waiting(gone)?;
    after_turn(&shared, &chat.id).await?;
    tell_queue(&shared, &chat.id).await;
    answer(&shared, &chat, None).await
}

#[derive(Deserialize)]
pub(super) struct Hold {
    held: bool,
}

/// `POST /chats/{id}/queue/{key}/hold`.
pub(super) async fn hold(
    signed: Signed,
    State(shared): State<Arc<Shared>>,
    Path((id, key)): Path<(String, String)>,
    Body(body): Body<Hold>,
) -> ApiResult<Json<Value>> {
    let chat = own(&shared, &signed, id).await?;
    let changed = shared
        .store
        .edit_queued(chat.id.clone(), key, None, None, Some(body.held), false)
        .await?;
    waiting(changed)?;
    if !body.held {
        after_turn(&shared, &chat.id).await?;
    }
    tell_queue(&shared, &chat.id).await;
    answer(&shared, &chat, None).await
}

/// `POST /chats/{id}/queue/{key}/send`: now, when that is possible; else first of those that wait.
pub(super) async fn send(
    signed: Signed,
    State(shared): State<Arc<Shared>>,
    Path((id, key)): Path<(String, String)>,
) -> ApiResult<Json<Value>> {
    let chat = own(&shared, &signed, id).await?;
    if shared
        .store
        .retry_work(chat.id.clone(), key.clone())
        .await?
    {
        shared.links.wake(&chat.device);
        tell_queue(&shared, &chat.id).await;
        return answer(&shared, &chat, Some("sent")).await;
    }
    let first = shared
        .store
        .edit_queued(chat.id.clone(), key.clone(), None, None, Some(false), true)
        .await?;
    waiting(first)?;
    let link = shared.links.get(&chat.device);
    if chat.running && link.is_some_and(|l| l.can("steer")) {
        let (device, id) = (chat.device.clone(), chat.id.clone());
        shared.store.steer_now(device, id, key.clone()).await?;
    }
    after_turn(&shared, &chat.id).await?;
    tell_queue(&shared, &chat.id).await;
    let queue = shared.store.queue(chat.id.clone()).await?;
    let state = if queue.iter().any(|q| q.key == key) {
        "queued"
    } else {
        "sent"
    };
    answer(&shared, &chat, Some(state)).await
}

#[derive(Deserialize)]
pub(super) struct Stop {
    key: String,
}

/// `POST /chats/{id}/stop`: said to the computer until it answers.
pub(super) async fn stop(
    signed: Signed,
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
    Body(body): Body<Stop>,
) -> ApiResult<(StatusCode, Json<Value>)> {
    good_key(&body.key)?;
    let chat = own(&shared, &signed, id).await?;
    let params = json!({ "turn": if chat.turn > 0 { Some(chat.turn) } else { None } });
    let (device, id) = (chat.device.clone(), chat.id.clone());
    let added = shared
        .store
        .add_asked(device.clone(), id, "stop", body.key, params);
    if !added.await? {
        return Err(used_key());
    }
    shared.links.wake(&device);
    let away = shared.links.get(&device).is_none();
    let state = if away { "waiting" } else { "sent" };
    Ok((StatusCode::ACCEPTED, Json(json!({ "state": state }))))
}

#[derive(Deserialize)]
pub(super) struct Draft {
    text: String,
}

/// `PUT /chats/{id}/draft`.
pub(super) async fn draft(
    signed: Signed,
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
    Body(body): Body<Draft>,
) -> ApiResult<Json<Value>> {
    if body.text.len() > TEXT {
        return Err(ApiError::bad("The draft is too long to keep."));
    }
    let chat = own(&shared, &signed, id).await?;
    if chat.draft != body.text {
        let edit = ChatEdit {
            draft: Some(body.text.clone()),
            ..ChatEdit::default()
        };
        shared.store.edit_chat(chat.id.clone(), edit).await?;
        let data = json!({ "chat": chat.id, "text": body.text, "by": signed.browser });
        shared.events.emit(
            Audience::Account(signed.account),
            Event::json("draft", Some(format!("draft:{}", chat.id)), data),
        );
    }
    Ok(Json(json!({ "ok": true })))
}
