//! Answers in the form of a chat completion: streams of ours, and errors that a model client reads.

use axum::body::Body;
use axum::extract::Request;
use axum::http::header;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde_json::Value;

/// An event stream.
pub(super) fn stream<S>(stream: S) -> Response
where
    S: futures_util::Stream<Item = Result<Vec<u8>, std::io::Error>> + Send + 'static,
{
    let mut response = Body::from_stream(stream).into_response();
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-store, no-transform"),
    ] {
        headers.insert(name, header::HeaderValue::from_static(value));
    }
    response
}

/// Every error of `/v1` in the form that clients of models read.
pub(super) async fn errors(request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    let status = response.status();
    if status.is_client_error() || status.is_server_error() {
        as_model_error(response).await
    } else {
        response
    }
}

/// Our error with `message` beside `text`: clients of `/v1` read that one.
pub(super) async fn as_model_error(response: Response) -> Response {
    let (parts, body) = response.into_parts();
    let Ok(bytes) = axum::body::to_bytes(body, 64 * 1024).await else {
        return parts.status.into_response();
    };
    let mut said: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    if let Some(error) = said.get_mut("error").and_then(Value::as_object_mut)
        && let Some(text) = error.get("text").cloned()
    {
        error.entry("message").or_insert(text);
    }
    let mut response = Response::from_parts(parts, Body::from(said.to_string()));
    response.headers_mut().remove(header::CONTENT_LENGTH);
    response
}
