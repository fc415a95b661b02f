//! Pairing: the device grant (RFC 8628) as it is between the computer and the person's page.
//!
//! Open grants live ten minutes and in memory: a restart of the hub ends them, and the computer
//! asks for a new code. Not here: the HTTP of it (`oauth` for the computer's end).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};

use super::asked::Body;
use super::auth::{Signed, too_often};
use super::error::{ApiError, ApiResult};
use super::front::Remote;
use super::gate::What;
use super::{Shared, view};
use crate::clock::{Instant, instant, now_ms};
use crate::ids::{random_bytes, random_hex};
use crate::store::hub::devices::NewDevice;

/// Letters of a code: no vowels (no words), none that is misread.
const LETTERS: &[u8; 20] = b"BCDFGHJKLMNPQRSTVWXZ";
/// How long a code works.
pub(super) const LIFE: Duration = Duration::from_secs(10 * 60);
/// How often the computer may ask whether it is approved.
pub(super) const INTERVAL: u64 = 5;
/// Grants open at once; a further one is answered that it must wait.
const MAX_GRANTS: usize = 256;

struct Grant {
    /// What the computer polls with, hashed.
    code_hash: String,
    device: NewDevice,
    scopes: Vec<String>,
    until: Instant,
    expires: i64,
    interval: u64,
    polled: Option<Instant>,
    state: Standing,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Standing {
    Open,
    Approved { account: String },
    Denied,
}

/// The open grants, by the code a person types.
#[derive(Default)]
pub(crate) struct Grants {
    open: Mutex<HashMap<String, Grant>>,
}

/// What a poll is answered (RFC 8628 §3.5).
#[derive(Debug, PartialEq)]
pub(super) enum Poll {
    Pending,
    SlowDown,
    Denied,
    Expired,
    Approved {
        device: Box<NewDevice>,
        scopes: Vec<String>,
    },
}

/// A grant as the page shows it before the yes.
#[derive(Debug, PartialEq)]
struct Shown {
    device: NewDevice,
    expires: i64,
}

impl Grants {
    /// Opens a grant; an open one of the same device ends. Answers the device code and the code
    /// for the person, or none when too many are open.
    pub(super) fn open(&self, device: NewDevice, scopes: Vec<String>) -> Option<(String, String)> {
        let now = instant();
        let mut open = self.open.lock();
        open.retain(|_, g| g.until > now && g.device.id != device.id);
        if open.len() >= MAX_GRANTS {
            return None;
        }
        let secret = random_hex(32);
        let code = loop {
            let code = person_code();
            if !open.contains_key(&code) {
                break code;
            }
        };
        open.insert(
            code.clone(),
            Grant {
                code_hash: crate::store::hub::hash(&secret),
                device,
                scopes,
                until: now + LIFE,
                expires: now_ms() + i64::try_from(LIFE.as_millis()).unwrap_or(0),
                interval: INTERVAL,
                polled: None,
                state: Standing::Open,
            },
        );
        Some((secret, code))
    }

    /// The computer asks. An approved grant is used up by it.
    pub(super) fn poll(&self, secret: &str) -> Poll {
        let now = instant();
        let hash = crate::store::hub::hash(secret);
        let mut open = self.open.lock();
        let Some(code) = open
            .iter()
            .find(|(_, g)| g.code_hash == hash)
            .map(|(code, _)| code.clone())
        else {
            return Poll::Expired;
        };
        let Some(grant) = open.get_mut(&code) else {
            return Poll::Expired;
        };
        if grant.until <= now {
            open.remove(&code);
            return Poll::Expired;
        }
        match grant.state.clone() {
            Standing::Denied => {
                open.remove(&code);
                Poll::Denied
            }
            Standing::Approved { account } => match open.remove(&code) {
                Some(grant) => Poll::Approved {
                    device: Box::new(NewDevice {
                        account,
                        ..grant.device
                    }),
                    scopes: grant.scopes,
                },
                None => Poll::Expired,
            },
            Standing::Open => {
                let early = grant
                    .polled
                    .is_some_and(|p| now < p + Duration::from_secs(grant.interval));
                grant.polled = Some(now);
                if early {
                    grant.interval += 5;
                    return Poll::SlowDown;
                }
                Poll::Pending
            }
        }
    }

    fn look(&self, code: &str) -> Option<Shown> {
        let open = self.open.lock();
        let grant = open
            .get(code)
            .filter(|g| g.until > instant() && g.state == Standing::Open)?;
        Some(Shown {
            device: grant.device.clone(),
            expires: grant.expires,
        })
    }

    /// The person said yes: the device is that account's at its next poll.
    pub(super) fn approve(&self, code: &str, account: &str) -> bool {
        self.decide(
            code,
            Standing::Approved {
                account: account.to_owned(),
            },
        )
    }

    fn decide(&self, code: &str, state: Standing) -> bool {
        let mut open = self.open.lock();
        match open.get_mut(code) {
            Some(grant) if grant.until > instant() && grant.state == Standing::Open => {
                grant.state = state;
                // Whoever was told to slow down need not wait for the good news.
                grant.polled = None;
                true
            }
            _ => false,
        }
    }
}

fn person_code() -> String {
    let mut code = String::with_capacity(9);
    while code.len() < 9 {
        if code.len() == 4 {
            code.push('-');
        }
        // 240 is the largest multiple of 20 in a byte: above it the letters would not be even.
        if let Some(byte) = random_bytes(1).first().filter(|b| **b < 240)
            && let Some(letter) = LETTERS.get(usize::from(byte % 20))
        {
            code.push(char::from(*letter));
        }
    }
    code
}

/// A code as it was typed: case, spaces and the dash do not matter.
pub(super) fn plain_code(typed: &str) -> String {
    let letters: String = typed
        .chars()
        .filter(char::is_ascii_alphabetic)
        .map(|c| c.to_ascii_uppercase())
        .collect();
    match letters.split_at_checked(4) {
        Some((a, b)) if !b.is_empty() => format!("{a}-{b}"),
        _ => letters,
    }
}

/// Whether some text is a linking code in the wrong field.
pub(super) fn looks_like_code(text: &str) -> bool {
    let text = text.trim();
    text.len() == 9
        && text.as_bytes().get(4) == Some(&b'-')
        && text
            .bytes()
            .filter(|b| *b != b'-')
            .all(|b| LETTERS.contains(&b.to_ascii_uppercase()))
}

#[derive(Deserialize)]
pub(super) struct Code {
    code: String,
}

/// `POST /link/lookup`: whose code this is, for the question `Did you start this just now?`.
pub(super) async fn lookup(
    signed: Signed,
    State(shared): State<Arc<Shared>>,
    remote: axum::Extension<Remote>,
    Body(body): Body<Code>,
) -> ApiResult<Json<Value>> {
    let shown = tried(
        &shared,
        &signed,
        *remote,
        |code| shared.grants.look(code),
        &body.code,
    )?;
    let d = &shown.device;
    Ok(Json(json!({
        "device": { "id": d.id, "name": d.name, "os": d.os, "arch": d.arch,
                    "version": d.version, "address": d.address },
        "limits": view::limits(&d.limits, None),
        "expires": shown.expires, "now": now_ms(),
    })))
}

/// `POST /link/approve`.
pub(super) async fn approve(
    signed: Signed,
    State(shared): State<Arc<Shared>>,
    remote: axum::Extension<Remote>,
    Body(body): Body<Code>,
) -> ApiResult<Json<Value>> {
    let account = signed.account.clone();
    tried(
        &shared,
        &signed,
        *remote,
        |code| shared.grants.approve(code, &account).then_some(()),
        &body.code,
    )?;
    Ok(Json(json!({ "ok": true })))
}

/// `POST /link/deny`.
pub(super) async fn deny(
    signed: Signed,
    State(shared): State<Arc<Shared>>,
    remote: axum::Extension<Remote>,
    Body(body): Body<Code>,
) -> ApiResult<Json<Value>> {
    tried(
        &shared,
        &signed,
        *remote,
        |code| shared.grants.decide(code, Standing::Denied).then_some(()),
        &body.code,
    )?;
    Ok(Json(json!({ "ok": true })))
}

/// Five wrong codes an account and address, then ten minutes of nothing.
fn tried<T>(
    shared: &Shared,
    signed: &Signed,
    remote: Remote,
    find: impl FnOnce(&str) -> Option<T>,
    typed: &str,
) -> ApiResult<T> {
    let who = [signed.account.clone(), remote.words()];
    for who in &who {
        too_often(shared, What::LinkCode, who)?;
    }
    match find(&plain_code(typed)) {
        Some(found) => Ok(found),
        None => {
            for who in &who {
                shared.gate.count(What::LinkCode, who);
            }
            Err(ApiError::new(
                StatusCode::NOT_FOUND,
                "wrong_code",
                "No computer shows this code now. It may be mistyped, used, or older than ten minutes.",
            )
            .next("Run lembas link on the computer again for a new one."))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(id: &str) -> NewDevice {
        NewDevice {
            id: id.to_owned(),
            ..NewDevice::default()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_grant_goes_its_way() {
        let grants = Grants::default();
        let (secret, code) = grants.open(device("d"), vec!["link".into()]).unwrap();
        assert!(looks_like_code(&code), "{code}");
        assert_eq!(grants.poll(&secret), Poll::Pending);
        assert_eq!(grants.poll(&secret), Poll::SlowDown);
        tokio::time::advance(Duration::from_secs(6)).await;
        assert_eq!(grants.poll(&secret), Poll::SlowDown, "the interval grew");
        assert!(grants.look(&code).is_some());
        assert!(grants.approve(&plain_code(&code.to_lowercase()), "ana"));
        assert!(!grants.approve(&code, "someone else"));
        assert!(
            matches!(grants.poll(&secret), Poll::Approved { device, .. } if device.account == "ana")
        );
        assert_eq!(grants.poll(&secret), Poll::Expired, "used up");
    }

    #[tokio::test(start_paused = true)]
    async fn one_open_code_a_device_and_ten_minutes() {
        let grants = Grants::default();
        let (first, _) = grants.open(device("d"), vec![]).unwrap();
        let (second, code) = grants.open(device("d"), vec![]).unwrap();
        assert_eq!(grants.poll(&first), Poll::Expired);
        assert_eq!(grants.poll(&second), Poll::Pending);
        tokio::time::advance(LIFE).await;
        assert!(!grants.approve(&code, "ana"));
        assert_eq!(grants.poll(&second), Poll::Expired);
    }

    #[test]
    fn codes_are_read_as_typed() {
        assert_eq!(plain_code(" wdjb mjht "), "WDJB-MJHT");
        assert!(looks_like_code("wdjb-mjht"));
        assert!(!looks_like_code("password1"));
    }
}
