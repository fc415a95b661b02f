//! What a request says: its body, its query and the ids in its address, each refused in our words
//! where it cannot be read. The only place where a parser's error becomes an answer.

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use serde::de::DeserializeOwned;

use super::error::ApiError;
use crate::text::json;

/// A body of JSON.
#[derive(Debug)]
pub(super) struct Body<T>(pub(super) T);

impl<T, S> FromRequest<S> for Body<T>
where
    T: DeserializeOwned,
    S: Send + Sync,
{
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        if !says_json(request.headers()) {
            return Err(ApiError::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "not_json",
                "The request does not say that it is JSON.",
            ));
        }
        let bytes = Bytes::from_request(request, state).await.map_err(cut)?;
        json::whole(&bytes).map(Self).map_err(|unread| {
            // What is no JSON is 400; JSON that says something impossible is 422.
            let status = if unread.json {
                StatusCode::UNPROCESSABLE_ENTITY
            } else {
                StatusCode::BAD_REQUEST
            };
            ApiError::new(status, "bad_request", "The request cannot be read.").why(unread.why)
        })
    }
}

/// `application/json`, or a kind that is built on it.
fn says_json(headers: &HeaderMap) -> bool {
    let kind = headers
        .get(header::CONTENT_TYPE)
        .and_then(|v| v.to_str().ok())
        .unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    let kind = kind.to_ascii_lowercase();
    kind == "application/json" || (kind.starts_with("application/") && kind.ends_with("+json"))
}

fn cut(rejection: BytesRejection) -> ApiError {
    let status = rejection.status();
    if status == StatusCode::PAYLOAD_TOO_LARGE {
        return ApiError::new(
            status,
            "too_large",
            "This is more than can be sent at once.",
        );
    }
    ApiError::new(status, "bad_request", "The request did not come whole.").next("Send it again.")
}

/// The ids in an address.
#[derive(Debug)]
pub(super) struct Path<T>(pub(super) T);

impl<T, S> FromRequestParts<S> for Path<T>
where
    T: DeserializeOwned + Send,
    S: Send + Sync,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let read = axum::extract::Path::<T>::from_request_parts(parts, state).await;
        read.map(|path| Self(path.0)).map_err(|_| {
            ApiError::bad("The address cannot be read.")
                .why("a part of it, with its %-signs resolved, is no text")
        })
    }
}

/// A query.
#[derive(Debug)]
pub(super) struct Query<T>(pub(super) T);

impl<T, S> FromRequestParts<S> for Query<T>
where
    T: DeserializeOwned,
    S: Send + Sync,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let read = axum::extract::Query::<T>::from_request_parts(parts, state).await;
        read.map(|query| Self(query.0)).map_err(|rejection| {
            // "…: limit: invalid digit …"
            let said = rejection.body_text();
            let said = said
                .split_once(": ")
                .map_or(said.as_str(), |(_, rest)| rest);
            let (field, what) = said.split_once(": ").unwrap_or(("", said));
            ApiError::bad("The address asks for something that is not possible.")
                .why(json::about(field, what))
        })
    }
}
