//! The upgrade: who may link, who holds the place, and what each refusal says (link.md, Dialling).

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::ws::{CloseFrame, Message, WebSocketUpgrade};
use axum::extract::{FromRequestParts as _, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::{Link, Socket, run};
use crate::hub::error::ApiError;
use crate::hub::events::{Audience, Event};
use crate::hub::front::Remote;
use crate::hub::gate::What;
use crate::hub::{PROTOCOL, Shared, devices};
use crate::link::discovery::protocols;
use crate::link::ws;
use crate::rpc::{Incoming, Outgoing};
use crate::store::hub::tokens::TokenUse;

/// How long a holder of the place has to show that it lives: less than the newcomer waits for its
/// answer (L3, L6).
const PROBE: Duration = Duration::from_secs(5);

/// When a computer for which there is no room dials again.
const FULL: Duration = Duration::from_secs(30);

/// `GET /link/v3`.
pub(super) async fn upgrade(
    State(shared): State<Arc<Shared>>,
    remote: axum::Extension<Remote>,
    request: Request,
) -> Response {
    let (mut parts, _) = request.into_parts();
    match admit(&shared, *remote, &parts.headers).await {
        Err(refusal) => *refusal,
        Ok((link, old_token, room)) => {
            let upgrade = WebSocketUpgrade::from_request_parts(&mut parts, &()).await;
            match upgrade {
                Ok(upgrade) => upgrade
                    .protocols([ws::SUBPROTOCOL])
                    .max_message_size(ws::MAX_FRAME + 1024 * 1024)
                    .max_frame_size(ws::MAX_FRAME + 1024 * 1024)
                    .on_upgrade(move |socket| async move {
                        let tasks = shared.tasks.clone();
                        let run = run::run(shared, link, socket, old_token);
                        let _panicked = tasks.spawn("link", run).await;
                        drop(room);
                    }),
                Err(_) => {
                    shared.links.leave(&link);
                    let text = format!(
                        "This is a link: dial it as a WebSocket, with {}.",
                        ws::SUBPROTOCOL
                    );
                    *refuse(&shared, StatusCode::BAD_REQUEST, &text, json!({}))
                }
            }
        }
    }
}

type Refusal = Box<Response>;

fn text(headers: &HeaderMap, name: &str) -> String {
    let value = headers.get(name).and_then(|v| v.to_str().ok());
    value.unwrap_or_default().trim().to_owned()
}

async fn admit(
    shared: &Shared,
    remote: Remote,
    headers: &HeaderMap,
) -> Result<(Link, bool, Socket), Refusal> {
    let address = remote.words();
    if let Err(wait) = shared.gate.check(What::LinkDial, &address) {
        let text = "Too many dials from this address were refused: this computer waits and dials again by itself.";
        return Err(later(shared, StatusCode::TOO_MANY_REQUESTS, text, wait));
    }
    // Counted are refusals: many computers may share one address.
    let admitted = token(shared, headers).await.inspect_err(|_| {
        shared.gate.count(What::LinkDial, &address);
    });
    // Which side to update is told to everybody, and to the person whose computer it is.
    if let Err(why) = protocol(headers) {
        if let Ok((device, ..)) = &admitted
            && shared.links.keep_out(device, &why)
        {
            devices::tell(shared, device).await;
        }
        let more = json!({ "protocol": PROTOCOL });
        return Err(refuse(shared, StatusCode::UPGRADE_REQUIRED, &why, more));
    }
    let (device, account, old) = admitted?;
    let said = text(headers, ws::HEADER_DEVICE);
    let boot = text(headers, ws::HEADER_BOOT);
    // What is missing is told before what is wrong (L4).
    for (name, value) in [("Lembas-Device", &said), ("Lembas-Boot", &boot)] {
        if value.is_empty() || value.len() > 128 {
            let text = format!(
                "{name} is missing, or longer than 128 characters: update lembas on this computer."
            );
            return Err(refuse(shared, StatusCode::BAD_REQUEST, &text, json!({})));
        }
    }
    if said != device {
        let text = "This token belongs to another computer: link this one anew.";
        let reason = json!({ "reason": "device" });
        return Err(refuse(shared, StatusCode::FORBIDDEN, text, reason));
    }
    if let Err(wait) = shared.gate.take(What::LinkOpen, &device) {
        let text = "This computer dials too often: it waits and dials again by itself in a minute.";
        return Err(later(shared, StatusCode::TOO_MANY_REQUESTS, text, wait));
    }
    let Some(room) = shared.links.room(&device) else {
        let text = "There are too many open links: this computer waits and dials again by itself.";
        return Err(later(shared, StatusCode::SERVICE_UNAVAILABLE, text, FULL));
    };
    let take = text(headers, ws::HEADER_TAKE) == "1";
    let why = place(shared, &device, &boot, take).await?;
    let link = shared
        .links
        .take(&device, &account, &boot, address.clone(), why);
    if why == "taken" {
        told_taken(shared, &account, &device, &address).await;
    }
    Ok((link, old, room))
}

/// A refusal with the time after which to dial again.
fn later(shared: &Shared, status: StatusCode, text: &str, wait: Duration) -> Refusal {
    let mut refusal = refuse(shared, status, text, json!({}));
    let wait = HeaderValue::from(wait.as_secs().max(1));
    refusal.headers_mut().insert(header::RETRY_AFTER, wait);
    refusal
}

/// A refusal that a device takes for ours: it names the product and the instance (L4, L5).
fn refuse(shared: &Shared, status: StatusCode, text: &str, more: Value) -> Refusal {
    let mut body = json!({
        "product": "llembas", "instance": shared.facts.instance, "text": text,
    });
    if let (Some(body), Value::Object(more)) = (body.as_object_mut(), more) {
        body.extend(more.into_iter().filter(|(_, v)| !v.is_null()));
    }
    Box::new((status, Json(body)).into_response())
}

/// Only our subprotocol is spoken; another number of it is told which side to update.
fn protocol(headers: &HeaderMap) -> Result<(), String> {
    let offered: Vec<String> = headers
        .get_all(header::SEC_WEBSOCKET_PROTOCOL)
        .iter()
        .filter_map(|v| v.to_str().ok())
        .flat_map(|v| v.split(','))
        .map(|p| p.trim().to_owned())
        .collect();
    if offered.iter().any(|p| p == ws::SUBPROTOCOL) {
        return Ok(());
    }
    let theirs = offered
        .iter()
        .filter_map(|p| p.strip_prefix("lembas.link."))
        .filter_map(|n| n.parse::<u64>().ok())
        .max();
    Err(match theirs {
        Some(computer) => protocols(PROTOCOL, computer),
        None => format!(
            "This is a link of protocol {PROTOCOL}: dial it with {}.",
            ws::SUBPROTOCOL
        ),
    })
}

async fn token(shared: &Shared, headers: &HeaderMap) -> Result<(String, String, bool), Refusal> {
    let bearer = text(headers, "authorization");
    let Some(token) = bearer.strip_prefix("Bearer ") else {
        let text = "A link needs the token of a paired computer: link this one with lembas link.";
        let mut refusal = refuse(shared, StatusCode::UNAUTHORIZED, text, json!({}));
        refusal
            .headers_mut()
            .insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        return Err(refusal);
    };
    let used = shared.store.use_token(token.trim()).await;
    let used = used.map_err(|e| Box::new(ApiError::from(e).into_response()))?;
    match used {
        TokenUse::Good {
            device,
            account,
            scopes,
            old,
        } if scopes.iter().any(|s| s == "link") => Ok((device, account, old)),
        TokenUse::Good { .. } => Err(invalid(
            shared,
            "scope",
            "This token is not for linking: link this computer anew.",
            None,
        )),
        TokenUse::Refused {
            reason,
            text,
            since,
        } => Err(invalid(shared, reason, &text, since)),
        TokenUse::Stolen { device, account } => {
            shared.links.revoke(&device);
            devices::tell(shared, &device).await;
            shared.events.emit(
                Audience::Account(account),
                Event::json(
                    "warning",
                    None,
                    json!({ "device": device, "text":
                        "An old token of this computer was used again: someone may have a copy of it. Access was taken back." }),
                ),
            );
            Err(invalid(
                shared,
                "reused",
                "An old token was used after its successor: access was taken back.",
                Some(crate::clock::now_ms()),
            ))
        }
    }
}

fn invalid(shared: &Shared, reason: &str, text: &str, since: Option<i64>) -> Refusal {
    let more = json!({ "reason": reason, "since": since });
    let mut refusal = refuse(shared, StatusCode::UNAUTHORIZED, text, more);
    refusal.headers_mut().insert(
        header::WWW_AUTHENTICATE,
        HeaderValue::from_static("Bearer error=\"invalid_token\""),
    );
    refusal
}

/// Two sockets, one device: the same process replaces itself; another one only when the holder
/// does not answer, or when its person said to take the place.
async fn place(
    shared: &Shared,
    device: &str,
    boot: &str,
    take: bool,
) -> Result<&'static str, Refusal> {
    let Some(holder) = shared.links.holder(device) else {
        return Ok("boot");
    };
    if holder.inner.boot == boot {
        return Ok("boot");
    }
    if take {
        return Ok("taken");
    }
    let lives = match holder.peer() {
        Some(peer) => peer.probe(PROBE).await,
        None => false,
    };
    if !lives {
        return Ok("taken");
    }
    let (address, since) = (&holder.inner.address, holder.inner.since);
    let text = format!(
        "Another process of this computer holds the link, from {address}. To take its place: lembas link take"
    );
    let more = json!({ "reason": "held", "holder": { "address": address, "since": since } });
    Err(refuse(shared, StatusCode::CONFLICT, &text, more))
}

async fn told_taken(shared: &Shared, account: &str, device: &str, address: &str) {
    let name = match shared.store.device(device.to_owned()).await {
        Ok(Some(device)) => device.name,
        _ => return,
    };
    shared.events.emit(
        Audience::Account(account.to_owned()),
        Event::json(
            "warning",
            None,
            json!({ "device": device, "text": format!("Another process took over the link of {name}, from {address}.") }),
        ),
    );
}

impl ws::Message for Message {
    type Error = axum::Error;

    fn incoming(self) -> Incoming {
        match self {
            Self::Text(text) => Incoming::Text(text.as_str().to_owned()),
            Self::Close(frame) => Incoming::Close {
                code: frame.as_ref().map(|f| f.code),
                reason: frame.map_or_else(String::new, |f| f.reason.as_str().to_owned()),
            },
            Self::Binary(_) | Self::Ping(_) | Self::Pong(_) => Incoming::Alive,
        }
    }

    fn outgoing(frame: Outgoing) -> Self {
        match frame {
            Outgoing::Text(text) => Self::Text(text.into()),
            Outgoing::Ping => Self::Ping(Vec::new().into()),
            Outgoing::Close { code, reason } => Self::Close(Some(CloseFrame {
                code,
                reason: reason.into(),
            })),
        }
    }

    fn ended(error: Self::Error) -> Result<Option<Incoming>, String> {
        let text = {
            let error: &dyn std::error::Error = &error;
            error
                .source()
                .map_or_else(|| error.to_string(), ToString::to_string)
        };
        let is = |part: &str| text.to_lowercase().contains(part);
        if is("too long") || is("too large") {
            return Ok(Some(Incoming::TooLong {
                head: String::new(),
                bytes: ws::MAX_FRAME + 1,
                over: true,
            }));
        }
        if is("without closing handshake") || is("connection closed") || is("closed normally") {
            return Ok(None);
        }
        Err(text)
    }
}
