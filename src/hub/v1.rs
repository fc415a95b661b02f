//! `/v1`: models for linked computers and for the page, in the form everybody speaks.
//!
//! A request goes on to the server that has the model, with the key added here, and its answer
//! comes back as it comes; only what was used is read from it in passing. Who asks is a device's
//! token with the scope `models`, or a signed-in browser.

mod answer;
mod practice;
mod relay;

use std::sync::Arc;

use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::from_fn;
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};

use super::asked::Body;
use super::error::{ApiError, ApiResult};
use super::{Shared, auth};
use crate::clock::now;
use crate::model::practice as script;

/// Bytes of one request: long conversations with pictures. More is answered 413.
const BODY: usize = 32 * 1024 * 1024;

pub(super) fn routes() -> Router<Arc<Shared>> {
    Router::new()
        .route("/models", get(models))
        .route(
            "/chat/completions",
            post(completions).layer(DefaultBodyLimit::max(BODY)),
        )
        .route("/usage", get(usage))
        .fallback(|| async {
            ApiError::missing("address")
                .next("There are /v1/models, /v1/chat/completions and /v1/usage.")
        })
        .method_not_allowed_fallback(|| async { ApiError::wrong_method() })
        .layer(from_fn(answer::errors))
}

/// The account a request is for.
async fn account(shared: &Shared, headers: &HeaderMap, changes: bool) -> ApiResult<String> {
    let bearer = headers
        .get(header::AUTHORIZATION)
        .and_then(|v| v.to_str().ok())
        .and_then(|v| v.strip_prefix("Bearer "));
    let Some(token) = bearer else {
        if changes && headers.get("x-lembas").is_none_or(|v| v.as_bytes() != b"1") {
            return Err(ApiError::new(
                StatusCode::FORBIDDEN,
                "not_from_page",
                "This request did not come from the page.",
            ));
        }
        return Ok(auth::signed(shared, headers).await?.account);
    };
    match shared.store.token_good(token).await? {
        Some((_, account, scopes)) if scopes.iter().any(|s| s == "models") => Ok(account),
        Some(_) => Err(ApiError::new(
            StatusCode::FORBIDDEN,
            "scope",
            "This computer's link does not include models.",
        )
        .next(format!(
            "On that computer: lembas link {}",
            shared.facts.url
        ))),
        None => Err(ApiError::new(
            StatusCode::UNAUTHORIZED,
            "invalid_token",
            "This instance does not take this token.",
        )
        .next(format!(
            "On that computer: lembas link {}",
            shared.facts.url
        ))),
    }
}

async fn models(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> ApiResult<Json<Value>> {
    let account = account(&shared, &headers, false).await?;
    let list: Vec<Value> = super::models::list(&shared, &account)
        .await?
        .into_iter()
        .map(|m| {
            let facts: serde_json::Map<String, Value> = [
                "name", "context", "practice", "default", "vision", "tools", "efforts",
            ]
            .iter()
            .filter_map(|key| {
                let value = m.get(*key).filter(|v| !v.is_null())?;
                Some(((*key).to_owned(), value.clone()))
            })
            .collect();
            json!({
                "id": m.get("id"), "object": "model", "created": 0, "owned_by": "lembas",
                "lembas": facts,
            })
        })
        .collect();
    Ok(Json(json!({ "object": "list", "data": list })))
}

async fn completions(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    body: ApiResult<Body<Value>>,
) -> ApiResult<Response> {
    let account = account(&shared, &headers, true).await?;
    let Body(body) = body?;
    let Some(id) = body.get("model").and_then(Value::as_str).map(str::to_owned) else {
        return Err(ApiError::bad("The request cannot be read.")
            .why("model is missing, or is no text")
            .next("GET /v1/models names the models there are."));
    };
    if id == script::ID {
        return Ok(practice::answer(&shared, &account, &body));
    }
    let Some(model) = shared.store.model(account.clone(), id.clone()).await? else {
        return Err(ApiError::new(
            StatusCode::NOT_FOUND,
            "model_not_found",
            format!("This instance has no model called {id}."),
        )
        .next(
            "The models it has are under Settings, Models; on its computer: lembas hub model list",
        ));
    };
    relay::answer(&shared, account, model, body).await
}

/// The month of now, as usage is counted.
fn month() -> String {
    now()
        .to_zoned(jiff::tz::TimeZone::UTC)
        .strftime("%Y-%m")
        .to_string()
}

async fn usage(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> ApiResult<Json<Value>> {
    let account = account(&shared, &headers, false).await?;
    let used = shared.store.usage(month(), account).await?;
    Ok(Json(json!({
        "month": {
            "requests": used.requests, "input_tokens": used.tokens.input,
            "cached_input_tokens": used.tokens.cached_input, "output_tokens": used.tokens.output,
            "cost_by_currency": {},
        },
        "credits": null, "credits_used": null, "credits_left": null,
    })))
}
