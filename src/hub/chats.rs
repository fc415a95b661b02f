//! Chats: opening one on a computer, reading it from its end, changing it.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::asked::{Body, Path, Query};
use super::auth::Signed;
use super::error::{ApiError, ApiResult};
use super::events::{Audience, Event};
use super::link::tell_chat;
use super::messages::{self, good_key};
use super::view::item;
use super::{Shared, asks, devices, models, view};
use crate::clock::now_ms;
use crate::config::Mode;
use crate::ids::random_hex;
use crate::store::hub::chats::{Chat, ChatEdit, ChatFilter, Said};
use crate::store::hub::items::Span;
use crate::text::json;

/// Items and chats on one page when nothing is said, and at most.
const PAGE: u32 = 50;
const MOST: u32 = 200;
/// How long a computer may take to open a session.
const OPEN: Duration = Duration::from_secs(30);
/// Characters of a first message that become a chat's title.
const TITLE: usize = 60;

/// A chat of the account.
pub(super) async fn own(shared: &Shared, signed: &Signed, id: String) -> ApiResult<Chat> {
    shared
        .store
        .chat(id)
        .await?
        .filter(|c| c.account == signed.account)
        .ok_or_else(|| ApiError::missing("chat"))
}

#[derive(Deserialize)]
pub(super) struct New {
    device: String,
    cwd: String,
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    mode: Option<Mode>,
    #[serde(default)]
    level: Option<String>,
    #[serde(default)]
    text: String,
    #[serde(default)]
    parts: Vec<Value>,
    key: String,
}

/// `POST /chats`. The same key again gives the same chat.
pub(super) async fn create(
    signed: Signed,
    State(shared): State<Arc<Shared>>,
    Body(new): Body<New>,
) -> ApiResult<Json<Value>> {
    good_key(&new.key)?;
    let device = devices::own(&shared, &signed, &new.device).await?;
    let known = shared
        .store
        .chat_keyed(device.id.clone(), new.key.clone())
        .await?;
    let asked = messages::asked(&json!([
        new.cwd, new.model, new.mode, new.level, new.text, new.parts
    ]));
    let chat = match known {
        Some((_, before)) if before.as_ref().is_some_and(|before| *before != asked) => {
            return Err(messages::used_key());
        }
        Some((chat, _)) => chat,
        None => open(&shared, &signed, &device, &new, asked).await?,
    };
    if !new.text.trim().is_empty() || !new.parts.is_empty() {
        let title: String = new
            .text
            .trim()
            .lines()
            .next()
            .unwrap_or("")
            .chars()
            .take(TITLE)
            .collect();
        if chat.title.is_none() && !title.is_empty() {
            let edit = ChatEdit {
                title: Some(title),
                ..ChatEdit::default()
            };
            shared.store.edit_chat(chat.id.clone(), edit).await?;
        }
        let first =
            json!({ "key": format!("{}-1", new.key), "text": new.text, "parts": new.parts });
        let first = json::read(first)
            .map_err(|why| ApiError::bad("The message cannot be read.").why(why))?;
        messages::put(&shared, &chat, first).await?;
    }
    let chat = own(&shared, &signed, chat.id).await?;
    tell_chat(&shared, &chat.id).await;
    Ok(Json(json!({ "chat": view::chat(&shared, &chat).await? })))
}

async fn open(
    shared: &Shared,
    signed: &Signed,
    device: &crate::store::hub::devices::Device,
    new: &New,
    asked: String,
) -> ApiResult<Chat> {
    let model = match &new.model {
        Some(model) => model.clone(),
        None => default_model(shared, &signed.account).await?,
    };
    models::fits(shared, &signed.account, &model, new.level.as_deref()).await?;
    let mode = new.mode.map(Mode::word);
    let mut ours = json!({ "model": model, "key": new.key });
    if let Some(map) = ours.as_object_mut() {
        for (key, value) in [("mode", mode), ("level", new.level.as_deref())] {
            if let Some(value) = value {
                map.insert(key.to_owned(), value.into());
            }
        }
    }
    let params = json!({ "cwd": new.cwd, "mcpServers": [], "_meta": { "lembas": ours } });
    opened(shared, device, params, (&new.key, asked), mode).await
}

/// `session/new` and the chat it makes.
pub(super) async fn opened(
    shared: &Shared,
    device: &crate::store::hub::devices::Device,
    params: Value,
    (key, asked): (&str, String),
    wanted_mode: Option<&str>,
) -> ApiResult<Chat> {
    let peer = devices::peer(shared, device)?;
    let answer = peer
        .request_within("session/new", params.clone(), OPEN)
        .await;
    let answer = answer.map_err(|e| devices::refused(device, e))?;
    let text = |path: &str| {
        answer
            .pointer(path)
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    let session = text("/sessionId").ok_or_else(|| {
        ApiError::new(
            StatusCode::BAD_GATEWAY,
            "device",
            format!("{} opened a session without saying which.", device.name),
        )
    })?;
    let modes = answer
        .pointer("/modes/availableModes")
        .and_then(Value::as_array)
        .map(|list| {
            let ids = list
                .iter()
                .filter_map(|m| m.get("id").and_then(Value::as_str));
            ids.map(str::to_owned).collect::<Vec<_>>()
        });
    let mode = text("/_meta/lembas/mode").or_else(|| text("/modes/currentModeId"));
    let lowered = wanted_mode
        .filter(|w| mode.as_deref().is_some_and(|m| m != *w))
        .map(|_| {
            let became = mode.as_deref().map_or("", view::mode_name);
            format!("lowered to {became} by {}", device.name)
        });
    let epoch = shared.links.get(&device.id).map(|l| l.epoch());
    let said = Said {
        session,
        epoch: epoch.or_else(|| device.epoch.clone()).unwrap_or_default(),
        key: Some(key.to_owned()),
        asked: Some(asked),
        cwd: params.get("cwd").and_then(Value::as_str).map(str::to_owned),
        mode,
        modes,
        model: text("/_meta/lembas/model").or_else(|| {
            params
                .pointer("/_meta/lembas/model")
                .and_then(Value::as_str)
                .map(str::to_owned)
        }),
        level: text("/_meta/lembas/level"),
        origin: params
            .pointer("/_meta/lembas/scheduled")
            .is_some()
            .then(|| "schedule".to_owned()),
        lowered,
        ..Said::default()
    };
    let chat = shared
        .store
        .say_chat(device.account.clone(), device.id.clone(), said)
        .await?;
    Ok(chat)
}

async fn default_model(shared: &Shared, account: &str) -> ApiResult<String> {
    let list = models::list(shared, account).await?;
    let default = list
        .iter()
        .find(|m| m.get("default").is_some_and(|d| d == true))
        .and_then(|m| m.get("id"))
        .and_then(Value::as_str);
    Ok(default.unwrap_or(crate::model::practice::ID).to_owned())
}

#[derive(Deserialize)]
pub(super) struct Which {
    before: Option<i64>,
    device: Option<String>,
    limit: Option<u32>,
    #[serde(default)]
    archived: bool,
}

/// `GET /chats`: newest change first, with how many there are in all.
pub(super) async fn index(
    signed: Signed,
    State(shared): State<Arc<Shared>>,
    Query(which): Query<Which>,
) -> ApiResult<Json<Value>> {
    let filter = ChatFilter {
        before: which.before,
        device: which.device,
        archived: which.archived,
        limit: which.limit.unwrap_or(PAGE).clamp(1, MOST),
    };
    let page = filter.limit as usize;
    // One more than is shown says whether there is more.
    let filter = ChatFilter {
        limit: filter.limit + 1,
        ..filter
    };
    let (mut list, total) = listed(&shared, &signed.account, filter).await?;
    let more = list.len() > page;
    list.truncate(page);
    Ok(Json(json!({ "chats": list, "total": total, "more": more })))
}

pub(super) async fn listed(
    shared: &Shared,
    account: &str,
    filter: ChatFilter,
) -> ApiResult<(Vec<Value>, u64)> {
    let (chats, total) = shared.store.chats(account.to_owned(), filter).await?;
    let mut shown = Vec::with_capacity(chats.len());
    for chat in &chats {
        shown.push(view::chat(shared, chat).await?);
    }
    Ok((shown, total))
}

/// `GET /chats/{id}`: its end, with what is open in it.
pub(super) async fn show(
    signed: Signed,
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
) -> ApiResult<Json<Value>> {
    let chat = own(&shared, &signed, id).await?;
    let (roots, more) = shared
        .store
        .roots(chat.id.clone(), Span::Newest, PAGE)
        .await?;
    let items = item::items(&shared, &chat.id, roots).await?;
    let answer = json!({
        "chat": view::chat(&shared, &chat).await?,
        "items": items, "more": more,
        "asks": asks::list(&shared, &signed.account, Some(chat.id.clone())).await?,
        "queue": view::queue(&shared, &chat).await?,
    });
    if chat.head > chat.seen {
        let edit = ChatEdit {
            seen: Some(chat.head),
            ..ChatEdit::default()
        };
        shared.store.edit_chat(chat.id.clone(), edit).await?;
        tell_chat(&shared, &chat.id).await;
    }
    Ok(Json(answer))
}

#[derive(Deserialize)]
pub(super) struct Part {
    before: Option<u64>,
    after: Option<u64>,
    limit: Option<u32>,
}

/// `GET /chats/{id}/items`.
pub(super) async fn items(
    signed: Signed,
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
    Query(part): Query<Part>,
) -> ApiResult<Json<Value>> {
    let chat = own(&shared, &signed, id).await?;
    let span = match (part.before, part.after) {
        (Some(before), _) => Span::Before(before),
        (None, Some(after)) => Span::After(after),
        (None, None) => Span::Newest,
    };
    let limit = part.limit.unwrap_or(PAGE).clamp(1, MOST);
    let (roots, more) = shared.store.roots(chat.id.clone(), span, limit).await?;
    let items = item::items(&shared, &chat.id, roots).await?;
    Ok(Json(json!({ "items": items, "more": more })))
}

#[derive(Deserialize)]
pub(super) struct Edit {
    title: Option<String>,
    archived: Option<bool>,
    seen: Option<u64>,
    mode: Option<Mode>,
    model: Option<String>,
    level: Option<String>,
}

/// `PATCH /chats/{id}`: the hub's own at once; mode, model and level are wishes to the computer.
pub(super) async fn edit(
    signed: Signed,
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
    Body(body): Body<Edit>,
) -> ApiResult<Json<Value>> {
    let chat = own(&shared, &signed, id).await?;
    let mut wanted = chat
        .wanted
        .as_ref()
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    if body.model.is_some() || body.level.is_some() {
        let said = |key: &str| wanted.get(key).and_then(Value::as_str);
        let model = body.model.as_deref().or_else(|| said("model"));
        let model = model.unwrap_or(&chat.model);
        models::fits(&shared, &signed.account, model, body.level.as_deref()).await?;
    }
    let mut wish = Map::new();
    for (key, value) in [
        ("mode", body.mode.map(|mode| mode.word().to_owned())),
        ("model", body.model),
        ("level", body.level),
    ] {
        if let Some(value) = value {
            wish.insert(key.to_owned(), value.into());
        }
    }
    if !wish.is_empty() && chat.closed.is_some() {
        return Err(ApiError::conflict(
            "closed",
            "Nothing can be changed in this chat any more.",
        ));
    }
    wanted.extend(wish.clone());
    let title = body.title.map(|t| crate::text::escape::label(&t, 200));
    shared
        .store
        .edit_chat(
            chat.id.clone(),
            ChatEdit {
                title,
                archived: body.archived,
                seen: body.seen.map(|s| s.min(chat.head)),
                draft: None,
                wanted: (!wish.is_empty()).then_some(Value::Object(wanted)),
            },
        )
        .await?;
    if !wish.is_empty() {
        let (device, id) = (chat.device.clone(), chat.id.clone());
        shared
            .store
            .add_work(
                device.clone(),
                Some(id),
                "set",
                random_hex(16),
                Value::Object(wish),
            )
            .await?;
        shared.links.wake(&device);
    }
    tell_chat(&shared, &chat.id).await;
    let chat = own(&shared, &signed, chat.id).await?;
    Ok(Json(json!({ "chat": view::chat(&shared, &chat).await? })))
}

/// `DELETE /chats/{id}`: here at once, on the computer when it can be told.
pub(super) async fn remove(
    signed: Signed,
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
) -> ApiResult<Json<Value>> {
    let chat = own(&shared, &signed, id).await?;
    if chat.running && chat.closed.is_none() && shared.links.get(&chat.device).is_some() {
        return Err(
            ApiError::conflict("running", "A turn runs in this chat.").next("Stop it first.")
        );
    }
    if chat.closed.is_none() {
        let params = json!({ "session": chat.session });
        shared
            .store
            .add_work(chat.device.clone(), None, "delete", random_hex(16), params)
            .await?;
    }
    shared.store.delete_chat(chat.id.clone()).await?;
    shared.links.wake(&chat.device);
    shared.events.emit(
        Audience::Account(signed.account),
        Event::json("chat_gone", None, json!({ "id": chat.id, "now": now_ms() })),
    );
    Ok(Json(json!({ "ok": true })))
}
