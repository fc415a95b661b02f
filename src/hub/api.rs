//! The table of `/api/v2`, and what only there counts: changes come from our own page, and no
//! answer is waited for without end.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, patch, post, put};
use axum::{Json, Router};
use serde_json::{Value, json};

use super::auth::Signed;
use super::error::{ApiError, ApiResult};
use super::{
    Shared, asks, auth, chats, devices, front, messages, models, output, pairing, rules, sse,
    turns, unattended,
};
use crate::clock::{now_ms, timeout};
use crate::store::hub::chats::ChatFilter;

/// A request that takes longer is answered that it did; a watch command has its own, longer time.
const WAIT: Duration = Duration::from_secs(60);

pub(super) fn routes(shared: &Arc<Shared>) -> Router<Arc<Shared>> {
    let quick = Router::new()
        .route("/me", get(me))
        .route("/state", get(state))
        .route("/signin", post(auth::sign_in))
        .route("/signout", post(auth::sign_out))
        .route("/setup", post(auth::set_up))
        .route("/account/password", post(auth::password))
        .route("/sessions", get(auth::browsers).delete(auth::end_others))
        .route("/sessions/{id}", delete(auth::end_browser))
        .route("/devices", get(devices::index))
        .route(
            "/devices/{id}",
            patch(devices::rename).delete(devices::remove),
        )
        .route("/devices/{id}/directories", get(devices::directories))
        .route("/devices/{id}/rules", get(rules::index))
        .route("/devices/{id}/rules/{rule}", delete(rules::remove))
        .route("/devices/{id}/retry", post(devices::retry))
        .route("/devices/{id}/scheduled", post(unattended::scheduled))
        .route("/link/lookup", post(pairing::lookup))
        .route("/link/approve", post(pairing::approve))
        .route("/link/deny", post(pairing::deny))
        .route("/chats", get(chats::index).post(chats::create))
        .route(
            "/chats/{id}",
            get(chats::show).patch(chats::edit).delete(chats::remove),
        )
        .route("/chats/{id}/items", get(chats::items))
        .route("/chats/{id}/output/{call}", get(output::output))
        .route("/chats/{id}/messages", post(messages::create))
        .route(
            "/chats/{id}/queue/{key}",
            patch(messages::edit).delete(messages::remove),
        )
        .route("/chats/{id}/queue/{key}/send", post(messages::send))
        .route("/chats/{id}/queue/{key}/hold", post(messages::hold))
        .route("/chats/{id}/stop", post(messages::stop))
        .route("/chats/{id}/retry", post(turns::retry))
        .route("/chats/{id}/rewind", post(turns::rewind))
        .route("/chats/{id}/draft", put(messages::draft))
        .route("/asks", get(asks::index))
        .route("/asks/{ask}", post(asks::answer))
        .route("/asks/{ask}/extend", post(asks::extend))
        .route("/models", get(models::index).post(models::create))
        .route("/models/test", post(models::try_one))
        .route("/models/{id}", delete(models::remove))
        .route("/models/{id}/default", post(models::set_default))
        .layer(axum::middleware::from_fn(in_time));
    Router::new()
        .route("/events", get(sse::events))
        .route("/devices/{id}/monitor", post(unattended::monitor))
        .merge(quick)
        .layer(from_fn_with_state(Arc::clone(shared), own_page))
        .fallback(|| async {
            ApiError::missing("address").next("Look into the list of addresses.")
        })
        .method_not_allowed_fallback(|| async { ApiError::wrong_method() })
}

async fn in_time(request: Request, next: Next) -> Response {
    timeout(WAIT, next.run(request)).await.unwrap_or_else(|_| {
        ApiError::new(
            StatusCode::GATEWAY_TIMEOUT,
            "slow",
            "This took longer than a minute. What was asked may still be done.",
        )
        .into_response()
    })
}

async fn own_page(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    if front::from_own_page(&shared, &request) {
        return next.run(request).await;
    }
    ApiError::new(
        StatusCode::FORBIDDEN,
        "not_from_page",
        "This request did not come from the page of this instance.",
    )
    .into_response()
}

/// `GET /me`.
async fn me(signed: Signed, State(shared): State<Arc<Shared>>) -> ApiResult<Json<Value>> {
    let account = shared.store.account(signed.account.clone()).await?;
    let models = shared.store.models(signed.account.clone()).await?;
    Ok(Json(json!({
        "account": { "id": signed.account, "name": signed.name,
                     "password": account.is_some_and(|a| a.password.is_some()) },
        "browser": signed.browser,
        "now": now_ms(), "head": shared.events.head(),
        "instance": { "name": shared.facts.name, "version": env!("CARGO_PKG_VERSION"),
                      "practice": models.is_empty(), "url": shared.facts.url },
    })))
}

/// `GET /state`: everything as it is; the stream goes on from `head`.
async fn state(signed: Signed, State(shared): State<Arc<Shared>>) -> ApiResult<Json<Value>> {
    // Read before the rest: an event that falls between is heard again, never missed.
    let head = shared.events.head();
    let account = &signed.account;
    let filter = ChatFilter {
        limit: 50,
        ..ChatFilter::default()
    };
    let mut asks = asks::list(&shared, account, None).await?;
    asks.extend(asks::ended(&shared, account).await?);
    let (chats, total) = chats::listed(&shared, account, filter).await?;
    Ok(Json(json!({
        "now": now_ms(), "head": head, "total": total, "chats": chats,
        "devices": devices::list(&shared, account).await?,
        "asks": asks,
        "models": models::list(&shared, account).await?,
    })))
}
