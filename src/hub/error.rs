//! What a request is answered when it cannot be done: a status, and words for a person.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

use crate::store::db::StoreError;
use crate::text::escape;

/// Characters of a text or a reason. What is quoted in it may be the asker's own, and is not
/// echoed at length.
const MOST: usize = 1000;

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

    /// An address that is there, asked in a way that it does not know.
    pub(crate) fn wrong_method() -> Self {
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "wrong_method",
            "This address is not asked in that way.",
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

    pub(crate) fn code(&self) -> &'static str {
        self.0.code
    }

    /// What happened, in words.
    pub(crate) fn text(&self) -> &str {
        &self.0.text
    }

    /// The same once more.
    pub(crate) fn again(&self) -> Self {
        let inner = &self.0;
        Self(Box::new(Inner {
            status: inner.status,
            code: inner.code,
            text: inner.text.clone(),
            more: inner.more.clone(),
            retry_after: inner.retry_after,
        }))
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
                .next("Try again. If it stays, the log of the instance has the reason.")
            }
        }
    }
}

/// The next step where the refusal itself names none: one for each code.
fn step(code: &str, status: StatusCode) -> &'static str {
    match code {
        "bad_request" => "Mend what is named here and send it again.",
        "not_json" => "Send it with the header Content-Type: application/json.",
        "too_large" => "Send less: put long text into a file in the folder and name the file.",
        "not_found" => "Load the page anew: it may have been deleted elsewhere.",
        "wrong_method" => "Look which methods the header Allow names.",
        "not_from_page" => {
            "Open the page of this instance and do it there. A program sends X-Lembas: 1 and the \
             Origin of this instance."
        }
        "signed_out" => "Sign in again; a link that does it:  lembas hub link",
        "wrong_password" => "Try again, or sign in with a link:  lembas hub link",
        "name_taken" => "Choose another name.",
        "slow_body" => "Send it again over a connection that lasts.",
        "too_often" => "Wait that long, then try again.",
        "disk_full" => "Free some space where the instance keeps its data:  df -h",
        "slow" => "Look whether it was done before you ask again.",
        "away" => "Wait until it dials again; on that computer:  lembas status",
        "settled" | "changed" | "sent" => "Load the page anew to see how it stands.",
        "closed" => "Begin a new chat.",
        "queue_full" => "Wait until some have gone, or remove one.",
        "refused" => {
            "Ask for something that this computer allows; what it allows is set on it:  lembas status"
        }
        "silent" | "device" => "Try again. If it stays, on that computer:  lembas status",
        "model_key" => "Set its key anew under Settings, Models.",
        "model_refused" => "Choose another model, or begin a shorter chat.",
        "model_unreachable" | "model_failed" | "model_silent" => {
            "Look whether its server runs, or choose another model."
        }
        "model_loading" => "Wait until it is loaded, then try again.",
        _ if status == StatusCode::TOO_MANY_REQUESTS => "Wait a moment, then try again.",
        _ if status.is_server_error() => {
            "Try again. If it stays, the log of the instance has the reason."
        }
        _ => "Load the page anew and try again.",
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut said = *self.0;
        if let Some(Value::String(why)) = said.more.get_mut("why") {
            *why = escape::bounded(why, MOST);
        }
        let text = escape::bounded(&said.text, MOST);
        said.more.insert("code".to_owned(), said.code.into());
        said.more.insert("text".to_owned(), text.into());
        said.more
            .entry("try")
            .or_insert_with(|| step(said.code, said.status).into());
        let mut response = (said.status, Json(json!({ "error": said.more }))).into_response();
        if let Some(seconds) = said.retry_after {
            response
                .headers_mut()
                .insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}
