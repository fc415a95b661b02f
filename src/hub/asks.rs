//! Questions of computers to the person: kept, shown, answered, and told how they ended.
//!
//! An answer is stored with the work that delivers it; the page says `sent` while it is on its way
//! and only what the computer confirmed after that.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;

use super::asked::{Body, Path};
use super::auth::Signed;
use super::error::{ApiError, ApiResult};
use super::events::{Audience, Event};
use super::link::{Link, tell_chat};
use super::{Shared, devices, view};
use crate::clock::now_ms;
use crate::ids::random_hex;
use crate::rpc::CallError;
use crate::store::db::StoreError;
use crate::store::hub::asks::{Ask, Ending, OPEN};
use crate::store::hub::chats::Said;
use crate::store::hub::work::Work;

/// The person's words with an answer, in characters.
const NOTE: usize = 4000;
/// How an answer from here names itself to the computer.
const HERE: &str = ", on the page";
/// How many of those that ended the page is told of; older ones are in their chats.
const ENDED: u32 = 20;
/// A question longer than this is not one.
const BODY: usize = 512 * 1024;

/// A question came as a request. Answers its session.
pub(super) async fn heard(shared: &Shared, link: &Link, params: &Value) -> Result<String, String> {
    let session = params
        .get("sessionId")
        .and_then(Value::as_str)
        .ok_or("sessionId is missing")?;
    let meta = params.pointer("/_meta/lembas").cloned().unwrap_or_default();
    // Of `_lembas/ask` what is asked stands in the params, and the rest in the meta as always.
    let mut body = meta.clone();
    if let (true, Some(body), Some(asked)) = (
        params.get("ask").is_some(),
        body.as_object_mut(),
        params.as_object(),
    ) {
        body.extend(
            asked
                .iter()
                .map(|(key, value)| (key.clone(), value.clone())),
        );
    }
    let text = |v: &Value, key: &str| v.get(key).and_then(Value::as_str).map(str::to_owned);
    let id = text(&body, "ask").ok_or("_meta.lembas.ask is missing")?;
    if id.len() > 128 || body.to_string().len() > BODY {
        return Err("the question is too long".to_owned());
    }
    let call = text(&body, "call").or_else(|| {
        let call = params.pointer("/toolCall/toolCallId");
        call.and_then(Value::as_str).map(str::to_owned)
    });
    if let Some(map) = body.as_object_mut() {
        if let Some(title) = params.pointer("/toolCall/title") {
            map.entry("command").or_insert_with(|| title.clone());
        }
        for key in ["_meta", "sessionId", "expires_in", "now", "made"] {
            map.remove(key);
        }
    }
    let chat = shared
        .store
        .say_chat(
            link.account().to_owned(),
            link.device().to_owned(),
            Said {
                session: session.to_owned(),
                epoch: link.epoch(),
                ..Said::default()
            },
        )
        .await
        .map_err(|e| e.to_string())?;
    let number = |key: &str| {
        meta.get(key)
            .or_else(|| params.get(key))
            .and_then(Value::as_i64)
    };
    // Both times are the device's; what counts here is how far apart they are.
    let now = now_ms();
    let ago = match (number("now"), number("made")) {
        (Some(then), Some(made)) => then.saturating_sub(made).max(0),
        _ => 0,
    };
    let ask = Ask {
        ask: id,
        chat: chat.id.clone(),
        device: link.device().to_owned(),
        seq: meta.get("seq").and_then(Value::as_u64).unwrap_or(0),
        call,
        body,
        state: "open".to_owned(),
        made: now.saturating_sub(ago),
        expires: number("expires_in").map(|left| now.saturating_add(left)),
        outcome: None,
        scope: None,
        note: None,
        by: None,
        at: None,
        late: false,
    };
    let kept = shared.store.put_ask(ask).await.map_err(|e| e.to_string())?;
    let kept = kept.ok_or_else(|| {
        format!(
            "it is not kept: {OPEN} questions of this computer wait already, or its id is another's"
        )
    })?;
    tell(shared, &kept).await;
    tell_chat(shared, &chat.id).await;
    Ok(session.to_owned())
}

/// A question came as an item of a transcript.
pub(super) async fn stored(
    shared: &Shared,
    device: &str,
    chat: &str,
    seq: u64,
    data: &Value,
    time: i64,
) -> Result<(), StoreError> {
    let Some(id) = data.get("ask").and_then(Value::as_str) else {
        return Ok(());
    };
    let mut body = data.clone();
    if let Some(map) = body.as_object_mut() {
        for key in ["state", "time"] {
            map.remove(key);
        }
    }
    let ask = Ask {
        ask: id.to_owned(),
        chat: chat.to_owned(),
        device: device.to_owned(),
        seq,
        call: data.get("call").and_then(Value::as_str).map(str::to_owned),
        body,
        state: "open".to_owned(),
        made: if time > 0 { time } else { now_ms() },
        expires: None,
        outcome: None,
        scope: None,
        note: None,
        by: None,
        at: None,
        late: false,
    };
    if let Some(kept) = shared
        .store
        .put_ask(ask)
        .await?
        .filter(|a| a.state != "settled")
    {
        tell(shared, &kept).await;
    }
    Ok(())
}

/// The transcript says how one ended.
pub(super) async fn settled(
    shared: &Shared,
    device: &str,
    data: &Value,
    time: i64,
) -> Result<(), StoreError> {
    let text = |key: &str| data.get(key).and_then(Value::as_str).map(str::to_owned);
    let Some(id) = text("ask") else {
        return Ok(());
    };
    let how = text("how").unwrap_or_else(|| "gone".to_owned());
    let before = shared.store.ask(id.clone()).await?;
    let late = before.is_some_and(|a| {
        let wanted = match a.outcome.as_deref() {
            Some("allow") => "allowed",
            Some("refuse") => "refused",
            _ => return false,
        };
        a.state != "settled" && wanted != how
    });
    let ending = Ending {
        how,
        scope: text("scope"),
        by: text("by").map(|by| who(&by)),
        note: text("note"),
        selected: data.get("selected").cloned(),
        at: if time > 0 { time } else { now_ms() },
    };
    let ended = shared
        .store
        .settle_ask(device.to_owned(), id, ending, late)
        .await?;
    if let Some(ask) = ended {
        tell(shared, &ask).await;
    }
    Ok(())
}

/// Who settled it: of someone on this page the name alone, whatever the device put behind it.
fn who(by: &str) -> String {
    by.split_once(HERE).map_or(by, |(name, _)| name).to_owned()
}

/// How far an answer on its way is.
pub(super) async fn moved(
    shared: &Shared,
    ask: &str,
    state: &'static str,
) -> Result<(), StoreError> {
    if let Some(ask) = shared.store.ask_state(ask.to_owned(), state).await? {
        tell(shared, &ask).await;
    }
    Ok(())
}

/// The device has the answer.
pub(super) async fn taken(shared: &Shared, work: &Work, at: i64) -> Result<(), StoreError> {
    let text = |key: &str| {
        work.params
            .get(key)
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    let how = match text("outcome").as_deref() {
        Some("allow") => "allowed",
        _ => "refused",
    };
    let ending = Ending {
        how: how.to_owned(),
        scope: text("scope"),
        by: text("by").map(|by| who(&by)),
        note: text("note"),
        selected: work.params.get("selected").cloned(),
        at,
    };
    finish(shared, work, ending, false).await
}

/// The device says that it was settled before.
pub(super) async fn gone(shared: &Shared, work: &Work, data: &Value) -> Result<(), StoreError> {
    let text = |key: &str| data.get(key).and_then(Value::as_str).map(str::to_owned);
    let ending = Ending {
        how: text("how").unwrap_or_else(|| "gone".to_owned()),
        scope: None,
        by: text("by").map(|by| who(&by)),
        note: None,
        selected: None,
        at: data
            .get("at")
            .and_then(Value::as_i64)
            .unwrap_or_else(now_ms),
    };
    finish(shared, work, ending, true).await
}

async fn finish(
    shared: &Shared,
    work: &Work,
    ending: Ending,
    late: bool,
) -> Result<(), StoreError> {
    let ended = shared
        .store
        .settle_ask(work.device.clone(), work.key.clone(), ending, late)
        .await?;
    shared.store.set_work(work.id, "done", None).await?;
    if let Some(ask) = ended {
        tell(shared, &ask).await;
        tell_chat(shared, &ask.chat).await;
    }
    Ok(())
}

/// The device does not take this answer from here; the question stays open, and says why.
pub(super) async fn not_taken(shared: &Shared, work: &Work, why: &str) -> Result<(), StoreError> {
    let open = shared
        .store
        .reopen_ask(work.key.clone(), why.to_owned())
        .await?;
    if let Some(ask) = open {
        tell(shared, &ask).await;
    }
    Ok(())
}

/// The link went: answers that were on their way are here again.
pub(super) async fn undelivered(shared: &Shared, device: &str) {
    let Ok(asks) = shared.store.asks_of_device(device.to_owned()).await else {
        return;
    };
    for ask in asks.into_iter().filter(|a| a.state == "sent") {
        if let Err(error) = moved(shared, &ask.ask, "sending").await {
            tracing::warn!(%error, "an answer's state could not be noted");
        }
    }
}

/// Nobody can answer any more: the chat is closed.
pub(super) async fn over_with_chat(shared: &Shared, chat: &str) {
    if let Ok(Some(found)) = shared.store.chat(chat.to_owned()).await {
        over_with(shared, &found.device, |ask| ask.chat == chat).await;
    }
}

/// Nobody can answer any more: access was taken back.
pub(super) async fn over_with_device(shared: &Shared, device: &str) {
    over_with(shared, device, |_| true).await;
}

async fn over_with(shared: &Shared, device: &str, which: impl Fn(&Ask) -> bool) {
    let open = shared.store.asks_of_device(device.to_owned()).await;
    for ask in open.unwrap_or_default().into_iter().filter(which) {
        let ending = Ending {
            how: "gone".to_owned(),
            at: now_ms(),
            ..Ending::default()
        };
        let ended = shared.store.settle_ask(ask.device, ask.ask, ending, false);
        match ended.await {
            Ok(Some(ask)) => tell(shared, &ask).await,
            Ok(None) => {}
            Err(error) => tracing::warn!(%error, "an ask could not be ended"),
        }
    }
}

/// Tells the page of one ask.
pub(super) async fn tell(shared: &Shared, ask: &Ask) {
    let device = shared.store.device(ask.device.clone()).await.ok().flatten();
    let Some(device) = device else { return };
    match view::ask(shared, ask).await {
        Ok(shown) => shared.events.emit(
            Audience::Account(device.account),
            Event::json(
                "ask",
                Some(format!("ask:{}", ask.ask)),
                json!({ "ask": shown }),
            ),
        ),
        Err(error) => tracing::warn!(%error, "an ask could not be told"),
    }
}

/// The open asks of an account, shown; of one chat when it is named.
pub(super) async fn list(
    shared: &Shared,
    account: &str,
    chat: Option<String>,
) -> ApiResult<Vec<Value>> {
    let mut shown = Vec::new();
    for ask in shared.store.open_asks(account.to_owned(), chat).await? {
        shown.push(view::ask(shared, &ask).await?);
    }
    Ok(shown)
}

/// The last that ended, shown.
pub(super) async fn ended(shared: &Shared, account: &str) -> ApiResult<Vec<Value>> {
    let mut shown = Vec::new();
    for ask in shared.store.settled_asks(account.to_owned(), ENDED).await? {
        shown.push(view::ask(shared, &ask).await?);
    }
    Ok(shown)
}

/// `GET /asks`: what is open, and the last that ended.
pub(super) async fn index(
    signed: Signed,
    State(shared): State<Arc<Shared>>,
) -> ApiResult<Json<Value>> {
    let asks = list(&shared, &signed.account, None).await?;
    let settled = ended(&shared, &signed.account).await?;
    Ok(Json(
        json!({ "asks": asks, "settled": settled, "now": now_ms() }),
    ))
}

/// What a person says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    Allow,
    Refuse,
}

impl Outcome {
    fn word(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Refuse => "refuse",
        }
    }
}

/// For how long a yes counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Scope {
    Once,
    Session,
    Always,
}

impl Scope {
    fn word(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Session => "session",
            Self::Always => "always",
        }
    }
}

#[derive(Deserialize)]
pub(super) struct Answer {
    digest: String,
    outcome: Outcome,
    scope: Option<Scope>,
    note: Option<String>,
    /// Of a question with choices: the ids that were chosen.
    selected: Option<Vec<String>>,
}

/// An ask of the account.
async fn own(shared: &Shared, signed: &Signed, id: String) -> ApiResult<Ask> {
    let ask = shared.store.ask(id).await?;
    let ask = ask.ok_or_else(|| ApiError::missing("question"))?;
    devices::own(shared, signed, &ask.device).await?;
    Ok(ask)
}

fn over(ask: &Ask) -> ApiError {
    let how = ask.outcome.as_deref().unwrap_or("gone");
    ApiError::conflict("settled", "This question has ended already.")
        .with("how", how)
        .with("by", ask.by.clone())
        .with("at", ask.at)
}

pub(super) async fn answer(
    signed: Signed,
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
    Body(body): Body<Answer>,
) -> ApiResult<(StatusCode, Json<Value>)> {
    let ask = own(&shared, &signed, id).await?;
    if ask.state == "settled" {
        return Err(over(&ask));
    }
    check(&ask, &body)?;
    let scope = (body.outcome == Outcome::Allow)
        .then(|| body.scope.unwrap_or(Scope::Once).word().to_owned());
    let outcome = body.outcome.word();
    let by = format!("{}{HERE}", signed.name);
    let mut said = json!({
        "ask": ask.ask, "digest": body.digest, "outcome": outcome, "by": by,
        "key": random_hex(16),
    });
    if let Some(map) = said.as_object_mut() {
        for (key, value) in [("scope", &scope), ("note", &body.note)] {
            if let Some(value) = value {
                map.insert(key.to_owned(), value.clone().into());
            }
        }
    }
    if let (Some(selected), Some(map)) = (&body.selected, said.as_object_mut()) {
        map.insert("selected".to_owned(), selected.clone().into());
    }
    let kept = shared
        .store
        .answer_ask(ask.ask.clone(), outcome.to_owned(), scope, body.note, said)
        .await?;
    let Some(kept) = kept else {
        let now = own(&shared, &signed, ask.ask).await?;
        if now.state == "settled" {
            return Err(over(&now));
        }
        // Answered a moment ago, here or in another window: that answer is on its way.
        return Ok((StatusCode::ACCEPTED, Json(json!({ "state": "sent" }))));
    };
    tell(&shared, &kept).await;
    shared.links.wake(&kept.device);
    Ok((StatusCode::ACCEPTED, Json(json!({ "state": "sent" }))))
}

fn check(ask: &Ask, body: &Answer) -> ApiResult<()> {
    if ask.body.get("digest").and_then(Value::as_str) != Some(body.digest.as_str()) {
        return Err(ApiError::conflict(
            "changed",
            "What would run is not what this page showed. Look again.",
        ));
    }
    let allow = body.outcome == Outcome::Allow;
    let offered = ask.body.get("scopes").and_then(Value::as_array);
    let counts = |scope: &str| match offered {
        Some(list) => list.iter().any(|s| s == scope),
        None => scope == "once",
    };
    if let Some(scope) = body.scope.filter(|_| allow)
        && !counts(scope.word())
    {
        return Err(
            ApiError::bad("This computer does not take that answer from here.")
                .next("Allow once, or answer on the computer itself: lembas asks"),
        );
    }
    let text = |key: &str| ask.body.get(key).and_then(Value::as_str);
    let shown = text("command").or_else(|| text("text"));
    let empty = shown.is_none_or(|c| c.trim().is_empty());
    if allow && empty {
        return Err(ApiError::bad("There is nothing readable to allow here."));
    }
    if allow && let Some(options) = ask.body.get("options").and_then(Value::as_array) {
        chosen(ask, options, body)?;
    }
    if body.note.as_ref().is_some_and(|n| n.chars().count() > NOTE) {
        return Err(ApiError::bad(format!(
            "At most {NOTE} characters go along."
        )));
    }
    Ok(())
}

/// Whether an answer to a question of the agent names what can be chosen; the computer judges it
/// again.
fn chosen(ask: &Ask, options: &[Value], body: &Answer) -> ApiResult<()> {
    let flag = |key: &str| ask.body.get(key).and_then(Value::as_bool) == Some(true);
    let selected = body.selected.as_deref().unwrap_or_default();
    let known = |id: &String| {
        let mut ids = options.iter().filter_map(|o| o.get("id"));
        ids.any(|known| known.as_str() == Some(id))
    };
    let words = body.note.as_deref().is_some_and(|n| !n.trim().is_empty());
    if !selected.iter().all(known) || (selected.len() > 1 && !flag("multiple")) {
        return Err(ApiError::bad("The question has no such choice."));
    }
    if selected.is_empty() && !(words && flag("custom")) {
        return Err(ApiError::bad("Nothing was chosen."));
    }
    Ok(())
}

#[derive(Deserialize)]
pub(super) struct Extend {
    seconds: u64,
}

/// `POST /asks/{ask}/extend`: more time, as far as the computer gives it.
pub(super) async fn extend(
    signed: Signed,
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
    Body(body): Body<Extend>,
) -> ApiResult<Json<Value>> {
    let ask = own(&shared, &signed, id).await?;
    if ask.state == "settled" {
        return Err(over(&ask));
    }
    let device = devices::own(&shared, &signed, &ask.device).await?;
    let peer = devices::peer(&shared, &device)?;
    let params = json!({ "ask": ask.ask, "seconds": body.seconds.min(7 * 24 * 3600) });
    let answer = peer
        .request_within("_lembas/extend", params, Duration::from_secs(10))
        .await;
    let left = match answer {
        Ok(answer) => answer.get("expires_in").and_then(Value::as_i64),
        Err(CallError::Rpc(error)) if error.code == -32004 => {
            settled(
                &shared,
                &device.id,
                &json!({ "ask": ask.ask, "how": error.data.as_ref().and_then(|d| d.get("how")).cloned() }),
                now_ms(),
            )
            .await?;
            return Err(over(&own(&shared, &signed, ask.ask).await?));
        }
        Err(error) => return Err(devices::refused(&device, error)),
    };
    if let Some(left) = left {
        let longer = shared.store.set_expiry(ask.ask, now_ms() + left).await?;
        if let Some(ask) = longer {
            tell(&shared, &ask).await;
        }
    }
    Ok(Json(json!({ "ok": true, "expires_in": left })))
}
