//! What a computer asks before it is linked: discovery, the device grant, revocation.
//!
//! Shapes are those of RFC 8414, RFC 8628 and RFC 7009, errors too; spec/acp.md says which further
//! fields the device sends about itself.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::rejection::FormRejection;
use axum::extract::{Form, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::Engine as _;
use serde_json::{Value, json};

use super::error::ApiError;
use super::front::{self, Remote};
use super::gate::What;
use super::pairing::{INTERVAL, LIFE, Poll};
use super::{PROTOCOL, Shared, asks, devices};
use crate::ids::{random_bytes, random_hex};
use crate::store::hub::devices::NewDevice;

/// The grant type of RFC 8628.
const DEVICE_CODE: &str = "urn:ietf:params:oauth:grant-type:device_code";
/// What a device may be granted here.
const SCOPES: [&str; 3] = ["link", "memory", "models"];

pub(super) fn routes() -> Router<Arc<Shared>> {
    Router::new()
        .route("/.well-known/lembas", get(discovery))
        .route("/.well-known/oauth-authorization-server", get(metadata))
        .route("/oauth/device_authorization", post(authorize))
        .route("/oauth/token", post(token))
        .route("/oauth/revoke", post(revoke))
        .method_not_allowed_fallback(|| async { ApiError::wrong_method() })
}

async fn discovery(State(shared): State<Arc<Shared>>, uri: Uri, headers: HeaderMap) -> Json<Value> {
    let base = front::base(&shared, &uri, &headers);
    let link = base.replacen("http", "ws", 1);
    Json(json!({
        "product": "llembas",
        "version": env!("CARGO_PKG_VERSION"),
        "protocol": PROTOCOL,
        "spec": super::spec_version(),
        "instance": shared.facts.instance,
        "name": shared.facts.name,
        "link": format!("{link}/link/v3"),
        "models": format!("{base}/v1"),
    }))
}

async fn metadata(State(shared): State<Arc<Shared>>, uri: Uri, headers: HeaderMap) -> Json<Value> {
    let base = front::base(&shared, &uri, &headers);
    Json(json!({
        "issuer": base,
        "device_authorization_endpoint": format!("{base}/oauth/device_authorization"),
        "token_endpoint": format!("{base}/oauth/token"),
        "revocation_endpoint": format!("{base}/oauth/revoke"),
        "grant_types_supported": [DEVICE_CODE],
        "scopes_supported": SCOPES,
        "response_types_supported": [],
        "token_endpoint_auth_methods_supported": ["none"],
    }))
}

type Fields = HashMap<String, String>;
type Filled = Result<Form<Fields>, FormRejection>;

/// The fields of a form, or that there is none.
fn fields(form: Filled) -> Result<Fields, Box<Response>> {
    form.map(|Form(fields)| fields).map_err(|rejection| {
        let status = match rejection.status() {
            StatusCode::PAYLOAD_TOO_LARGE => StatusCode::PAYLOAD_TOO_LARGE,
            _ => StatusCode::BAD_REQUEST,
        };
        Box::new(refuse(
            status,
            "invalid_request",
            "the form cannot be read: send its fields as application/x-www-form-urlencoded",
        ))
    })
}

/// A field of a form, cleaned for showing to a person: bounded, no control characters.
fn field(form: &Fields, names: &[&str]) -> String {
    names
        .iter()
        .find_map(|n| form.get(*n))
        .map(|v| crate::text::escape::label(v, 64))
        .unwrap_or_default()
}

fn refuse(status: StatusCode, error: &str, text: &str) -> Response {
    let body = Json(json!({ "error": error, "error_description": text }));
    (status, [(header::CACHE_CONTROL, "no-store")], body).into_response()
}

async fn authorize(
    State(shared): State<Arc<Shared>>,
    remote: axum::Extension<Remote>,
    uri: Uri,
    headers: HeaderMap,
    form: Filled,
) -> Response {
    let address = remote.words();
    if shared.gate.take(What::Authorize, &address).is_err() {
        return refuse(
            StatusCode::TOO_MANY_REQUESTS,
            "slow_down",
            "too many codes were asked for from this address: wait ten minutes, then run lembas link again",
        );
    }
    let form = match fields(form) {
        Ok(form) => form,
        Err(refusal) => return *refusal,
    };
    let asked = form.get("scope").map_or("link", String::as_str);
    let scopes: Vec<String> = asked.split_whitespace().map(str::to_owned).collect();
    if let Some(unknown) = scopes.iter().find(|s| !SCOPES.contains(&s.as_str())) {
        return refuse(
            StatusCode::BAD_REQUEST,
            "invalid_scope",
            &format!(
                "this instance does not know the scope {unknown:?}: there are {}",
                crate::text::words::list(&SCOPES, "and")
            ),
        );
    }
    let id = field(&form, &["device_id", "device"]);
    let good =
        (8..=64).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    let name = field(&form, &["device_name", "name"]);
    let device = NewDevice {
        id: if good { id } else { random_hex(16) },
        account: String::new(),
        name: if name.is_empty() {
            "a computer".to_owned()
        } else {
            name
        },
        os: field(&form, &["device_os", "os"]),
        arch: field(&form, &["device_arch", "arch"]),
        version: field(&form, &["device_version", "version"]),
        address,
        limits: ["device_limits", "limits"]
            .iter()
            .find_map(|n| form.get(*n))
            .filter(|t| t.len() <= 8 * 1024)
            .and_then(|t| serde_json::from_str(t).ok())
            .unwrap_or_default(),
    };
    let Some((secret, code)) = shared.grants.open(device, scopes) else {
        return refuse(
            StatusCode::SERVICE_UNAVAILABLE,
            "temporarily_unavailable",
            "too many computers are being linked at this moment: run lembas link again in a minute",
        );
    };
    let base = front::base(&shared, &uri, &headers);
    let body = json!({
        "device_code": secret,
        "user_code": code,
        "verification_uri": format!("{base}/link"),
        "verification_uri_complete": format!("{base}/link?code={code}"),
        "expires_in": LIFE.as_secs(),
        "interval": INTERVAL,
    });
    ([(header::CACHE_CONTROL, "no-store")], Json(body)).into_response()
}

async fn token(State(shared): State<Arc<Shared>>, form: Filled) -> Response {
    let form = match fields(form) {
        Ok(form) => form,
        Err(refusal) => return *refusal,
    };
    if form.get("grant_type").map(String::as_str) != Some(DEVICE_CODE) {
        return refuse(
            StatusCode::BAD_REQUEST,
            "unsupported_grant_type",
            "this instance knows the device grant only: update lembas on this computer",
        );
    }
    let Some(secret) = form.get("device_code") else {
        return refuse(
            StatusCode::BAD_REQUEST,
            "invalid_request",
            "device_code is missing: it is in the answer of device_authorization",
        );
    };
    let (device, scopes) = match shared.grants.poll(secret) {
        Poll::Approved { device, scopes } => (*device, scopes),
        Poll::Pending => {
            return refuse(
                StatusCode::BAD_REQUEST,
                "authorization_pending",
                "nobody has entered the code yet: ask again",
            );
        }
        Poll::SlowDown => {
            return refuse(
                StatusCode::BAD_REQUEST,
                "slow_down",
                "asked too soon: wait five seconds longer each time",
            );
        }
        Poll::Denied => {
            return refuse(
                StatusCode::BAD_REQUEST,
                "access_denied",
                "the person on the page said no: run lembas link for a new code",
            );
        }
        Poll::Expired => {
            return refuse(
                StatusCode::BAD_REQUEST,
                "expired_token",
                "nobody entered the code within 10 minutes, or it was used: run lembas link for a new one",
            );
        }
    };
    let token = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(random_bytes(32));
    let account = match shared.store.account(device.account.clone()).await {
        Ok(account) => account.map(|a| json!({ "id": a.id, "name": a.name })),
        Err(error) => return ApiError::from(error).into_response(),
    };
    let id = device.id.clone();
    match shared.store.pair(device, &token, scopes.clone()).await {
        Ok(true) => {}
        Ok(false) => {
            return refuse(
                StatusCode::BAD_REQUEST,
                "access_denied",
                "this computer is linked to another account here: run lembas unlink first",
            );
        }
        Err(error) => return ApiError::from(error).into_response(),
    }
    devices::tell(&shared, &id).await;
    let body = json!({
        "access_token": token,
        "token_type": "Bearer",
        "scope": scopes.join(" "),
        "device_id": id,
        "account": account,
        "instance": shared.facts.instance,
    });
    ([(header::CACHE_CONTROL, "no-store")], Json(body)).into_response()
}

/// RFC 7009: whoever holds a token may end it. An unknown one is no error.
async fn revoke(State(shared): State<Arc<Shared>>, form: Filled) -> Response {
    let form = match fields(form) {
        Ok(form) => form,
        Err(refusal) => return *refusal,
    };
    let Some(token) = form.get("token") else {
        return refuse(
            StatusCode::BAD_REQUEST,
            "invalid_request",
            "token is missing: send the one to end",
        );
    };
    match shared.store.revoke_token(token).await {
        Ok(Some(device)) => {
            shared.links.revoke(&device);
            asks::over_with_device(&shared, &device).await;
            devices::tell(&shared, &device).await;
            StatusCode::OK.into_response()
        }
        Ok(None) => StatusCode::OK.into_response(),
        Err(error) => ApiError::from(error).into_response(),
    }
}
