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
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};

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
        .next("Link it again: lembas link")),
        None => Err(ApiError::new(
            StatusCode::UNAUTHORIZED,
            "invalid_token",
            "This instance does not take this token.",
        )
        .next("lembas link")),
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
    body: Result<Json<Value>, axum::extract::rejection::JsonRejection>,
) -> Response {
    match complete(shared, headers, body).await {
        Ok(response) => response,
        Err(error) => answer::as_model_error(error.into_response()).await,
    }
}

async fn complete(
    shared: Arc<Shared>,
    headers: HeaderMap,
    body: Result<Json<Value>, axum::extract::rejection::JsonRejection>,
) -> ApiResult<Response> {
    let account = account(&shared, &headers, true).await?;
    let Json(body) = body?;
    let id = body
        .get("model")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    if id == script::ID {
        return Ok(practice::answer(&shared, &account, &body));
    }
    let Some(model) = shared.store.model(account.clone(), id.clone()).await? else {
        return Err(ApiError::new(
            StatusCode::NOT_FOUND,
            "model_not_found",
            format!("This instance has no model called {id}."),
        )
        .next("The models it has are on its page, under Settings."));
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
