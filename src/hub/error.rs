//! What a request is answered when it cannot be done: a status, and words for a person.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

use crate::store::db::StoreError;

/// `{ "error": { "code", "text", "why"?, "try"? } }` with its status.
#[derive(Debug)]
pub(crate) struct ApiError(Box<Inner>);

#[derive(Debug)]
struct Inner {
    status: StatusCode,
    code: &'static str,
    text: String,
    more: Map<String, Value>,
    retry_after: Option<u64>,
}

pub(crate) type ApiResult<T> = Result<T, ApiError>;

impl ApiError {
    pub(crate) fn new(status: StatusCode, code: &'static str, text: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            status,
            code,
            text: text.into(),
            more: Map::new(),
            retry_after: None,
        }))
    }

    pub(crate) fn bad(text: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_request", text)
    }

    pub(crate) fn missing(what: &str) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "not_found",
            format!("There is no {what} like that here."),
        )
    }

    pub(crate) fn conflict(code: &'static str, text: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, code, text)
    }

    pub(crate) fn why(self, why: impl Into<String>) -> Self {
        self.with("why", why.into())
    }

    /// The next step, in words or as a line to paste.
    pub(crate) fn next(self, step: impl Into<String>) -> Self {
        self.with("try", step.into())
    }

    pub(crate) fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.0.more.insert(key.to_owned(), value.into());
        self
    }

    pub(crate) fn retry_after(mut self, seconds: u64) -> Self {
        self.0.retry_after = Some(seconds);
        self
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Full(_) => Self::new(
                StatusCode::INSUFFICIENT_STORAGE,
                "disk_full",
                "This instance cannot save: its disk is full. Nothing is accepted until there is \
                 space, and nothing is shown as sent that was not saved.",
            ),
            error => {
                tracing::error!(%error, source = ?std::error::Error::source(&error), "the store failed");
                Self::new(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "store",
                    "This instance could not read or write its store.",
                )
                .next("Its log says more; trying again may help.")
            }
        }
    }
}

impl From<axum::extract::rejection::JsonRejection> for ApiError {
    fn from(error: axum::extract::rejection::JsonRejection) -> Self {
        let status = error.status();
        if status == StatusCode::PAYLOAD_TOO_LARGE {
            return Self::new(
                status,
                "too_large",
                "This is more than can be sent at once.",
            );
        }
        Self::new(status, "bad_request", "The request cannot be read.").why(error.body_text())
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut said = *self.0;
        said.more.insert("code".to_owned(), said.code.into());
        said.more.insert("text".to_owned(), said.text.into());
        let mut response = (said.status, Json(json!({ "error": said.more }))).into_response();
        if let Some(seconds) = said.retry_after {
            response
                .headers_mut()
                .insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}
