//! The page's files: the shell at every address of a place, everything else under `/assets`.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use include_dir::{Dir, include_dir};

use super::asked::Path;
use super::error::ApiError;
use super::{Shared, auth};
use crate::ids::Digest;

static FILES: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/src/hub/web");

pub(super) fn routes() -> Router<Arc<Shared>> {
    let mut router = Router::new()
        .route("/in/{token}", get(auth::one_time))
        .route("/assets/{*path}", get(asset))
        .route(
            "/favicon.ico",
            get(|| async { Redirect::to("/assets/icon.svg") }),
        );
    for place in [
        "/",
        "/c/{chat}",
        "/approvals",
        "/settings",
        "/schedules",
        "/link",
        "/signin",
        "/phone",
    ] {
        router = router.route(place, get(shell));
    }
    router
        .fallback(nowhere)
        .method_not_allowed_fallback(|| async { ApiError::wrong_method() })
}

/// An address that is no place: to a browser the page says so, to a program the error.
async fn nowhere(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Response {
    let wants = headers
        .get(header::ACCEPT)
        .and_then(|v| v.to_str().ok())
        .is_some_and(|v| v.contains("text/html"));
    if !wants {
        return ApiError::missing("page")
            .next("Open / instead.")
            .into_response();
    }
    let mut response = file(&shared, "index.html", &headers).await;
    if response.status() == StatusCode::OK {
        *response.status_mut() = StatusCode::NOT_FOUND;
    }
    response
}

async fn shell(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Response {
    file(&shared, "index.html", &headers).await
}

async fn asset(
    State(shared): State<Arc<Shared>>,
    Path(path): Path<String>,
    headers: HeaderMap,
) -> Response {
    file(&shared, &path, &headers).await
}

async fn file(shared: &Shared, path: &str, headers: &HeaderMap) -> Response {
    let bytes: Option<std::borrow::Cow<'static, [u8]>> = match &shared.facts.web {
        Some(folder) if plain(path) => tokio::fs::read(folder.join(path))
            .await
            .ok()
            .map(Into::into),
        Some(_) => None,
        None => FILES.get_file(path).map(|f| f.contents().into()),
    };
    let Some(bytes) = bytes else {
        return ApiError::missing("file").into_response();
    };
    let digest = Digest::of(&bytes);
    let tag = format!("\"{}\"", digest.as_str().get(7..23).unwrap_or_default());
    let known = headers
        .get(header::IF_NONE_MATCH)
        .is_some_and(|v| v.as_bytes() == tag.as_bytes());
    let mut response = if known {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        ([(header::CONTENT_TYPE, kind(path))], bytes).into_response()
    };
    let headers = response.headers_mut();
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, tag);
    }
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

/// A path that stays inside its folder.
fn plain(path: &str) -> bool {
    path.split('/')
        .all(|part| !part.is_empty() && part != ".." && part != "." && !part.contains('\\'))
}

fn kind(path: &str) -> &'static str {
    match path.rsplit('.').next().unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "json" | "webmanifest" => "application/json",
        "png" => "image/png",
        "woff2" => "font/woff2",
        _ => "application/octet-stream",
    }
}
