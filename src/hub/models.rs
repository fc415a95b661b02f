//! Models: which there are, and trying one before it is saved.
//!
//! A test is one tiny request; each way it can fail has its own text and a next step. Keys stay in
//! the hub's database and are never shown again.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use reqwest::Client;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

use super::Shared;
use super::asked::{Body, Path};
use super::auth::Signed;
use super::error::{ApiError, ApiResult};
use super::events::{Audience, Event};
use crate::clock::{instant, now_ms, timeout};
use crate::model::practice;
use crate::store::db::StoreError;
use crate::store::hub::models::Model;
use crate::text::words;

/// A whole test, all its requests together.
const TEST: Duration = Duration::from_secs(10);
/// Of a server's answer to a test at most so much is read.
const ANSWER: usize = 256 * 1024;

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

/// A model that answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tested {
    /// The id it is served under here.
    pub id: String,
    pub ms: u64,
    pub tools: bool,
    pub vision: Option<bool>,
    pub context: Option<u64>,
    /// All of it in one line.
    pub text: String,
}

/// How a test can fail: six ways, six texts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TestError {
    #[error("the address {0} is not one of a model server")]
    Address(String),
    #[error("{host} cannot be reached: {why}")]
    Unreachable { host: String, why: String },
    #[error("{host} did not answer within {seconds} s")]
    Silent { host: String, seconds: u64 },
    #[error("{host} refused the key")]
    Key { host: String },
    #[error("{host} does not know a model called {model}")]
    Name {
        host: String,
        model: String,
        has: Vec<String>,
    },
    #[error("{host} answers, but not as a model server: {why}")]
    NotAServer { host: String, why: String },
}

impl TestError {
    fn code(&self) -> &'static str {
        match self {
            Self::Address(_) => "address",
            Self::Unreachable { .. } => "unreachable",
            Self::Silent { .. } => "silent",
            Self::Key { .. } => "key_refused",
            Self::Name { .. } => "name_unknown",
            Self::NotAServer { .. } => "not_a_server",
        }
    }

    /// The next step.
    pub fn step(&self) -> String {
        match self {
            Self::Address(_) => {
                "Give the part before /chat/completions, as in http://127.0.0.1:11434/v1".to_owned()
            }
            Self::Unreachable { .. } => {
                "Is it running, and is the port right? From inside a container another name is needed than 127.0.0.1.".to_owned()
            }
            Self::Silent { .. } => {
                "It may be loading the model: try again in a minute, or look at its log.".to_owned()
            }
            Self::Key { .. } => "Copy the key again; some servers want none at all.".to_owned(),
            Self::Name { has, .. } if has.is_empty() => {
                "Its list of models is empty or hidden: look up the exact name there.".to_owned()
            }
            Self::Name { has, .. } => format!("It has: {}", has.join(", ")),
            Self::NotAServer { .. } => {
                "The address usually ends in /v1. A web page or a proxy may be answering instead.".to_owned()
            }
        }
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

/// Tries a model: its list, then one tiny request with a tool.
pub(super) async fn test(http: &ModelHttp, new: &NewModel) -> Result<Tested, TestError> {
    let url = base(&new.url)?;
    let http = http.to(&url);
    let host = super::front::own_authority(&url).unwrap_or("it").to_owned();
    let silent = TestError::Silent {
        host: host.clone(),
        seconds: TEST.as_secs(),
    };
    timeout(TEST, attempt(http, new, &url, &host))
        .await
        .unwrap_or(Err(silent))
}

fn base(url: &str) -> Result<String, TestError> {
    let url = url.trim().trim_end_matches('/');
    let url = url.strip_suffix("/chat/completions").unwrap_or(url);
    match reqwest::Url::parse(url) {
        Ok(parsed) if matches!(parsed.scheme(), "http" | "https") && parsed.has_host() => {
            Ok(url.to_owned())
        }
        _ => Err(TestError::Address(url.to_owned())),
    }
}

async fn attempt(
    http: &Client,
    new: &NewModel,
    url: &str,
    host: &str,
) -> Result<Tested, TestError> {
    let started = instant();
    let body = json!({
        "model": new.model, "max_tokens": 64, "stream": false,
        "messages": [{ "role": "user", "content": "Call the tool `ready`." }],
        "tools": [{ "type": "function", "function": {
            "name": "ready", "description": "Says that you are ready.",
            "parameters": { "type": "object", "properties": {} } } }],
    });
    let request = http.post(format!("{url}/chat/completions")).json(&body);
    let (status, answer) = send(with_key(request, new), host).await?;
    let has = names(http, new, url).await;
    match status.as_u16() {
        200..=299 => {}
        401 | 403 => {
            return Err(TestError::Key {
                host: host.to_owned(),
            });
        }
        400 | 404 | 422
            if !has.iter().any(|n| n == &new.model) && (!has.is_empty() || says_model(&answer)) =>
        {
            return Err(TestError::Name {
                host: host.to_owned(),
                model: new.model.clone(),
                has: has.into_iter().take(20).collect(),
            });
        }
        code => {
            return Err(TestError::NotAServer {
                host: host.to_owned(),
                why: format!("it said {code} {}", short(&answer))
                    .trim()
                    .to_owned(),
            });
        }
    }
    let parsed: Value = serde_json::from_slice(&answer).unwrap_or_default();
    let Some(message) = parsed.pointer("/choices/0/message") else {
        return Err(TestError::NotAServer {
            host: host.to_owned(),
            why: format!("it said {}", short(&answer)),
        });
    };
    let ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let tools = message
        .get("tool_calls")
        .and_then(Value::as_array)
        .is_some_and(|c| !c.is_empty());
    let (vision, context) = facts(http, new, url).await;
    let context = new.context.or(context);
    let mut words = vec![format!("answers in {:.1} s", ms as f64 / 1000.0)];
    words.push(
        if tools {
            "calls tools"
        } else {
            "called no tool when asked to"
        }
        .to_owned(),
    );
    match vision {
        Some(true) => words.push("sees images".to_owned()),
        Some(false) => words.push("sees no images".to_owned()),
        None => {}
    }
    Ok(Tested {
        id: new
            .name
            .clone()
            .filter(|n| !n.trim().is_empty())
            .unwrap_or_else(|| new.model.clone()),
        ms,
        tools,
        vision,
        context,
        text: words.join(", "),
    })
}

fn with_key(request: reqwest::RequestBuilder, new: &NewModel) -> reqwest::RequestBuilder {
    match new.key.as_deref().map(str::trim).filter(|k| !k.is_empty()) {
        Some(key) => request.bearer_auth(key),
        None => request,
    }
}

async fn send(
    request: reqwest::RequestBuilder,
    host: &str,
) -> Result<(StatusCode, Vec<u8>), TestError> {
    let unreachable = |e: reqwest::Error| TestError::Unreachable {
        host: host.to_owned(),
        why: cause(&e),
    };
    let mut response = request.send().await.map_err(unreachable)?;
    let status = response.status();
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
        body.extend_from_slice(&chunk);
        if body.len() > ANSWER {
            break;
        }
    }
    Ok((status, body))
}

/// The deepest cause of a failed request, which is the one that helps.
pub(super) fn cause(error: &reqwest::Error) -> String {
    let mut at: &dyn std::error::Error = error;
    while let Some(source) = at.source() {
        at = source;
    }
    if error.is_timeout() && error.is_connect() {
        return "nothing answered there".to_owned();
    }
    let text = at.to_string();
    match text.split_once(" (os error") {
        Some((words, _)) => words.to_lowercase(),
        None => text,
    }
}

fn says_model(answer: &[u8]) -> bool {
    String::from_utf8_lossy(answer)
        .to_lowercase()
        .contains("model")
}

fn short(answer: &[u8]) -> String {
    let text = String::from_utf8_lossy(answer);
    let one: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let said = serde_json::from_slice::<Value>(answer).ok().and_then(|v| {
        let message = v.pointer("/error/message").or_else(|| v.get("error"));
        message.and_then(Value::as_str).map(str::to_owned)
    });
    said.unwrap_or(one).chars().take(120).collect()
}

/// The names a server lists, when it does.
async fn names(http: &Client, new: &NewModel, url: &str) -> Vec<String> {
    let request = with_key(http.get(format!("{url}/models")), new);
    let Ok((_, body)) = send(request, "").await else {
        return Vec::new();
    };
    let list: Value = serde_json::from_slice(&body).unwrap_or_default();
    list.get("data")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|m| m.get("id").and_then(Value::as_str))
        .map(str::to_owned)
        .collect()
}

/// What servers say about a model besides its name: whether it sees, how much it reads.
async fn facts(http: &Client, new: &NewModel, url: &str) -> (Option<bool>, Option<u64>) {
    let root = url.strip_suffix("/v1").unwrap_or(url);
    let ask = http
        .post(format!("{root}/api/show"))
        .json(&json!({ "model": new.model }));
    let Ok((status, body)) = send(ask, "").await else {
        return (None, None);
    };
    if !status.is_success() {
        return (None, None);
    }
    let said: Value = serde_json::from_slice(&body).unwrap_or_default();
    let vision = said
        .get("capabilities")
        .and_then(Value::as_array)
        .map(|c| c.iter().any(|c| c == "vision"));
    let context = said
        .get("model_info")
        .and_then(Value::as_object)
        .and_then(|info| info.iter().find(|(k, _)| k.ends_with(".context_length")))
        .and_then(|(_, v)| v.as_u64());
    (vision, context)
}

/// Tests and saves.
pub(super) async fn add(shared: &Shared, account: &str, new: NewModel) -> Result<Tested, AddError> {
    let tested = test(&shared.http, &new).await?;
    let model = Model {
        id: tested.id.clone(),
        account: account.to_owned(),
        name: tested.id.clone(),
        url: base(&new.url)?,
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

impl From<TestError> for ApiError {
    fn from(error: TestError) -> Self {
        let mut text = error.to_string();
        if let Some(first) = text.get(..1) {
            text = format!(
                "{}{}.",
                first.to_uppercase(),
                text.get(1..).unwrap_or_default()
            );
        }
        let answer =
            Self::new(StatusCode::UNPROCESSABLE_ENTITY, error.code(), text).next(error.step());
        match error {
            TestError::Name { has, .. } => answer.with("has", has),
            _ => answer,
        }
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
