//! Models: which there are, and trying one before it is saved.
//!
//! A test is one tiny request; each way it can fail has its own text and a next step. Keys stay in
//! the hub's database and are never shown again.

mod trial;

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use reqwest::Client;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

pub use trial::{TestError, Tested};
pub(super) use trial::{cause, test};

use super::Shared;
use super::asked::{Body, Path};
use super::auth::Signed;
use super::error::{ApiError, ApiResult};
use super::events::{Audience, Event};
use crate::clock::now_ms;
use crate::model::practice;
use crate::store::db::StoreError;
use crate::store::hub::models::Model;
use crate::text::words;

/// Of the models that there are so many are named to who asks for another.
const NAMED: usize = 20;

/// A model to try or to add.
#[derive(Clone, Deserialize)]
pub struct NewModel {
    /// How people call it; its id at its server when none is given.
    #[serde(default)]
    pub name: Option<String>,
    /// The base of an OpenAI-compatible server: what stands before `/chat/completions`.
    pub url: String,
    #[serde(default)]
    pub key: Option<String>,
    /// As its server names it.
    pub model: String,
    /// Tokens it can read, when the person knows.
    #[serde(default)]
    pub context: Option<u64>,
    #[serde(default)]
    pub efforts: Vec<String>,
}

impl std::fmt::Debug for NewModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewModel")
            .field("url", &self.url)
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

/// Why a model was not added.
#[derive(Debug, thiserror::Error)]
pub enum AddError {
    #[error(transparent)]
    Test(#[from] TestError),
    #[error("cannot save")]
    Store(#[from] StoreError),
}

/// The clients for model servers: they may be slow, never silent on connecting. One on this
/// computer is never asked through a proxy.
#[derive(Clone, Debug)]
pub(crate) struct ModelHttp {
    near: Client,
    far: Client,
}

impl ModelHttp {
    pub(super) fn new() -> Result<Self, reqwest::Error> {
        let provider = rustls::crypto::ring::default_provider();
        let _set_by_another_part = provider.install_default();
        let builder = || {
            Client::builder()
                .connect_timeout(Duration::from_secs(5))
                .redirect(reqwest::redirect::Policy::none())
                .user_agent(concat!("lembas/", env!("CARGO_PKG_VERSION")))
        };
        Ok(Self {
            near: builder().no_proxy().build()?,
            far: builder().build()?,
        })
    }

    /// The client for an address.
    pub(super) fn to(&self, url: &str) -> &Client {
        let host = reqwest::Url::parse(url).ok();
        let host = host
            .as_ref()
            .and_then(reqwest::Url::host_str)
            .unwrap_or_default();
        let bare = host.trim_matches(['[', ']']);
        let near = bare == "localhost"
            || bare
                .parse::<std::net::IpAddr>()
                .is_ok_and(|ip| ip.is_loopback());
        if near { &self.near } else { &self.far }
    }
}

/// Tests and saves.
pub(super) async fn add(shared: &Shared, account: &str, new: NewModel) -> Result<Tested, AddError> {
    let tested = test(&shared.http, &new).await?;
    let model = Model {
        id: tested.id.clone(),
        account: account.to_owned(),
        name: tested.id.clone(),
        url: trial::base(&new.url)?,
        key: new.key.filter(|k| !k.trim().is_empty()),
        model: new.model,
        is_default: false,
        context: tested.context,
        vision: tested.vision,
        tools: Some(tested.tools),
        efforts: new.efforts,
        tested: Some(now_ms()),
        said: Some(tested.text.clone()),
    };
    shared.store.put_model(model).await?;
    tell(shared, account).await;
    Ok(tested)
}

/// The models of an account as the page has them; the practice model is always there.
pub(super) async fn list(shared: &Shared, account: &str) -> Result<Vec<Value>, StoreError> {
    let models = shared.store.models(account.to_owned()).await?;
    let none_chosen = !models.iter().any(|m| m.is_default);
    let mut list: Vec<Value> = models
        .into_iter()
        .map(|m| {
            json!({
                "id": m.id, "name": m.name, "url": m.url, "model": m.model, "practice": false,
                "default": m.is_default, "context": m.context, "vision": m.vision,
                "tools": m.tools, "efforts": m.efforts, "tried": m.said, "tested": m.tested,
                "key": m.key.is_some(),
            })
        })
        .collect();
    list.push(json!({
        "id": practice::ID, "name": "practice model", "practice": true, "default": none_chosen,
        "vision": false, "tools": true, "efforts": [],
    }));
    Ok(list)
}

/// Refuses a model that the account does not have, and a level that its model does not have.
pub(super) async fn fits(
    shared: &Shared,
    account: &str,
    model: &str,
    level: Option<&str>,
) -> Result<(), ApiError> {
    let all = shared.store.models(account.to_owned()).await?;
    let found = all.iter().find(|m| m.id == model);
    if found.is_none() && model != practice::ID {
        let mut names: Vec<&str> = all.iter().take(NAMED).map(|m| m.id.as_str()).collect();
        names.push(practice::ID);
        let shown: String = model.chars().filter(|c| !c.is_control()).take(80).collect();
        return Err(
            ApiError::bad("This instance has no such model.").why(format!(
                "model is {shown:?} and can be {}",
                words::list(&names, "or")
            )),
        );
    }
    let Some(level) = level else { return Ok(()) };
    let mut levels = vec!["default"];
    levels.extend(
        found
            .into_iter()
            .flat_map(|m| &m.efforts)
            .map(String::as_str),
    );
    if levels.contains(&level) {
        return Ok(());
    }
    let shown: String = level.chars().filter(|c| !c.is_control()).take(40).collect();
    Err(ApiError::bad("The model has no such level.").why(format!(
        "level is {shown:?} and can be {}",
        words::list(&levels, "or")
    )))
}

pub(super) async fn tell(shared: &Shared, account: &str) {
    if let Ok(models) = list(shared, account).await {
        shared.events.emit(
            Audience::Account(account.to_owned()),
            Event::json(
                "models",
                Some("models".to_owned()),
                json!({ "models": models }),
            ),
        );
    }
}

pub(super) async fn index(
    signed: Signed,
    State(shared): State<Arc<Shared>>,
) -> ApiResult<Json<Value>> {
    let models = list(&shared, &signed.account).await?;
    Ok(Json(json!({ "models": models })))
}

pub(super) async fn try_one(
    _signed: Signed,
    State(shared): State<Arc<Shared>>,
    Body(new): Body<NewModel>,
) -> ApiResult<Json<Value>> {
    let tested = test(&shared.http, &new).await?;
    Ok(Json(shown(&tested)))
}

pub(super) async fn create(
    signed: Signed,
    State(shared): State<Arc<Shared>>,
    Body(new): Body<NewModel>,
) -> ApiResult<Json<Value>> {
    match add(&shared, &signed.account, new).await {
        Ok(tested) => Ok(Json(shown(&tested))),
        Err(AddError::Test(error)) => Err(error.into()),
        Err(AddError::Store(error)) => Err(error.into()),
    }
}

fn shown(t: &Tested) -> Value {
    json!({ "ok": true, "id": t.id, "ms": t.ms, "tools": t.tools, "vision": t.vision,
            "context": t.context, "text": t.text })
}

pub(super) async fn remove(
    signed: Signed,
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
) -> ApiResult<Json<Value>> {
    if !take_away(&shared, &signed.account, &id).await? {
        return Err(ApiError::missing("model"));
    }
    Ok(Json(json!({ "ok": true })))
}

/// Takes a model away, by its id or its name. False when there is none.
pub(super) async fn take_away(
    shared: &Shared,
    account: &str,
    named: &str,
) -> Result<bool, StoreError> {
    let all = shared.store.models(account.to_owned()).await?;
    let Some(model) = all.into_iter().find(|m| m.id == named || m.name == named) else {
        return Ok(false);
    };
    let gone = shared
        .store
        .delete_model(account.to_owned(), model.id)
        .await?;
    if gone {
        tell(shared, account).await;
    }
    Ok(gone)
}

pub(super) async fn set_default(
    signed: Signed,
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
) -> ApiResult<Json<Value>> {
    let known = id == practice::ID
        || shared
            .store
            .model(signed.account.clone(), id.clone())
            .await?
            .is_some();
    if !known {
        return Err(ApiError::missing("model"));
    }
    shared
        .store
        .default_model(signed.account.clone(), id)
        .await?;
    tell(&shared, &signed.account).await;
    Ok(Json(json!({ "ok": true })))
}
