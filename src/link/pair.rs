//! Pairing: the OAuth 2.0 device grant, with this computer as the device (RFC 8628; spec/acp.md
//! section 2). A person approves on a page of the instance; nothing here approves anything.
//!
//! Not here: where the result is kept (`link::instance`), what is printed meanwhile (`cli`).

use std::time::Duration;

use reqwest::Url;
use serde_json::{Map, Value};

use super::discovery::{self, DiscoveryError, Endpoints, Found};
use super::http::{self, Answer, Http, HttpError};
use super::instance::{Account, Instance, is_token};
use super::words;
use crate::clock;
use crate::ids::{AccountId, DeviceId};
use crate::secret::Secret;

const CLIENT: &str = "lembas";
const GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";
/// Bounds on what the instance may set, and what counts when it sets nothing.
const EXPIRES: (u64, u64, u64) = (30, 600, 3600);
const INTERVAL: (u64, u64, u64) = (1, 5, 60);

/// What the approving page shows of this computer.
#[derive(Clone, Debug)]
pub struct About {
    pub device: DeviceId,
    pub name: String,
    pub os: String,
    pub arch: String,
    /// The object `limits` of the handshake (spec/acp.md H6).
    pub limits: Value,
}

/// How pairing goes, for whoever shows it.
#[derive(Clone, Debug)]
pub enum Progress {
    /// The address is an instance.
    Found(Found),
    /// A person has to open the page and compare the code.
    Code(Code),
    /// Nobody has decided yet, or the last question was lost on the way.
    Waiting { trouble: Option<String> },
    /// Approved. The pairing is not yet on the disk.
    Linked(Box<Instance>),
}

/// What a person needs to approve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    pub code: String,
    pub page: Url,
    /// The page with the code filled in; opening it approves nothing.
    pub page_with_code: Option<Url>,
    pub expires_in: Duration,
}

/// Why this computer is not linked. Each message is whole and for a person.
#[derive(Debug, thiserror::Error)]
pub enum PairError {
    #[error(transparent)]
    Discovery(#[from] DiscoveryError),
    #[error(transparent)]
    Http(#[from] HttpError),
    #[error("the instance cannot be reached: {0}")]
    Unreachable(String),
    #[error("somebody said no on the page of the instance: this computer is not linked")]
    Denied,
    #[error("nobody approved in time: run lembas link again for a new code")]
    Expired,
    #[error("the instance does not let this computer in: {0}")]
    Refused(String),
    #[error("the instance asks to wait: try again in {}", seconds(*.0))]
    Later(Duration),
    #[error(
        "the answer is of another instance than the one that was found: its token was thrown away"
    )]
    OtherInstance,
    #[error("the instance answered without a usable \"{0}\": it needs an update or a repair")]
    Field(&'static str),
}

fn seconds(wait: Duration) -> String {
    match wait.as_secs() {
        1 => "a second".into(),
        secs if secs < 120 => format!("{secs} seconds"),
        secs => format!("{} minutes", secs.div_ceil(60)),
    }
}

/// Pairs with `found`, telling `tell` how it goes. Dropping the future ends it; the code then
/// expires by itself.
pub async fn pair(
    found: &Found,
    about: &About,
    http: &Http,
    tell: impl FnMut(Progress),
) -> Result<Instance, PairError> {
    pair_when(found, about, http, tell, std::future::pending()).await
}

/// As [`pair`], for whoever approves in this same process: when `approved` is ready the first
/// question is asked at once instead of after the usual pause.
pub async fn pair_when(
    found: &Found,
    about: &About,
    http: &Http,
    mut tell: impl FnMut(Progress),
    approved: impl Future<Output = ()>,
) -> Result<Instance, PairError> {
    tell(Progress::Found(found.clone()));
    let endpoints = discovery::endpoints(&found.base, http).await?;
    let (code, device_code, mut interval) = open(found, about, http, &endpoints).await?;
    let until = clock::instant() + code.expires_in;
    tell(Progress::Code(code));
    let mut form = vec![("grant_type", GRANT), ("device_code", device_code.reveal())];
    form.push(("client_id", CLIENT));
    let mut approved = std::pin::pin!(approved);
    let mut asked = false;
    loop {
        if clock::instant() + interval >= until {
            return Err(PairError::Expired);
        }
        tokio::select! {
            () = clock::sleep(interval) => {}
            () = &mut approved, if !asked => {}
        }
        asked = true;
        let request = http
            .client()?
            .post(endpoints.token.clone())
            .body(encode(&form));
        let answer = match http::short(request.header("content-type", FORM)).await {
            Ok(answer) => answer,
            Err(error) => {
                let trouble = Some(words::cause(&error.without_url()));
                tell(Progress::Waiting { trouble });
                continue;
            }
        };
        match read_token(&answer)? {
            Poll::Approved(object) => {
                let instance = linked(found, about, &object)?;
                tell(Progress::Linked(Box::new(instance.clone())));
                return Ok(instance);
            }
            Poll::Pending => tell(Progress::Waiting { trouble: None }),
            Poll::SlowDown => interval += Duration::from_secs(5),
            Poll::Trouble(who) => tell(Progress::Waiting { trouble: Some(who) }),
        }
    }
}

/// Revokes the token of a pairing (RFC 7009). It is dead when this returns `Ok`.
pub async fn revoke(instance: &Instance, http: &Http) -> Result<(), PairError> {
    let base = super::origin::Base::read(&instance.url)
        .map_err(|error| PairError::Unreachable(error.to_string()))?;
    let endpoints = discovery::endpoints(&base, http).await?;
    let revoke = endpoints
        .revoke
        .ok_or(PairError::Field("revocation_endpoint"))?;
    let tokens = instance.successor.iter().chain([&instance.token]);
    for token in tokens {
        let form = [("token", token.reveal()), ("client_id", CLIENT)];
        let request = http.client()?.post(revoke.clone()).body(encode(&form));
        let answer = http::short(request.header("content-type", FORM))
            .await
            .map_err(|error| PairError::Unreachable(words::cause(&error.without_url())))?;
        if answer.status != 200 {
            return Err(PairError::Refused(answer.who()));
        }
    }
    Ok(())
}

/// Asks for a code.
async fn open(
    found: &Found,
    about: &About,
    http: &Http,
    endpoints: &Endpoints,
) -> Result<(Code, Secret, Duration), PairError> {
    let scope = if found.models.is_some() {
        "link memory models"
    } else {
        "link memory"
    };
    let name: String = about.name.chars().take(64).collect();
    let limits = about.limits.to_string();
    let form = [
        ("client_id", CLIENT),
        ("scope", scope),
        ("device_id", about.device.as_str()),
        ("device_name", &name),
        ("device_os", &about.os),
        ("device_arch", &about.arch),
        ("device_version", env!("CARGO_PKG_VERSION")),
        ("device_limits", &limits),
    ];
    let request = http
        .client()?
        .post(endpoints.device.clone())
        .body(encode(&form));
    let answer = http::short(request.header("content-type", FORM))
        .await
        .map_err(|error| PairError::Unreachable(words::cause(&error.without_url())))?;
    let object = answer.object();
    if answer.status != 200 {
        return Err(refused(&answer, object.as_ref()));
    }
    let object = object.ok_or_else(|| PairError::Refused(answer.who()))?;
    let text = |field: &'static str| {
        let value = object.get(field).and_then(Value::as_str);
        value.ok_or(PairError::Field(field))
    };
    let number = |field: &str, (least, usual, most): (u64, u64, u64)| {
        let value = object.get(field).and_then(Value::as_u64).unwrap_or(usual);
        Duration::from_secs(value.clamp(least, most))
    };
    let page = text("verification_uri")?;
    let page_with_code = object
        .get("verification_uri_complete")
        .and_then(Value::as_str);
    let own = |url| discovery::own_address(&found.base, "verification_uri", url);
    let code = Code {
        code: words::clean(text("user_code")?, 32),
        page: own(page)?,
        page_with_code: page_with_code.map(own).transpose()?,
        expires_in: number("expires_in", EXPIRES),
    };
    let device_code = Secret::new(text("device_code")?);
    Ok((code, device_code, number("interval", INTERVAL)))
}

enum Poll {
    Approved(Map<String, Value>),
    Pending,
    SlowDown,
    /// Something else answered: a proxy, or an instance that is restarting.
    Trouble(String),
}

fn read_token(answer: &Answer) -> Result<Poll, PairError> {
    let object = answer.object();
    if answer.status == 200 {
        return match object {
            Some(object) => Ok(Poll::Approved(object)),
            None => Ok(Poll::Trouble(answer.who())),
        };
    }
    let error = object
        .as_ref()
        .and_then(|object| object.get("error"))
        .and_then(Value::as_str);
    match error {
        Some("authorization_pending") => Ok(Poll::Pending),
        Some("slow_down") => Ok(Poll::SlowDown),
        Some("access_denied") => Err(PairError::Denied),
        Some("expired_token") => Err(PairError::Expired),
        Some(_) if (400..500).contains(&answer.status) && answer.status != 429 => {
            Err(refused(answer, object.as_ref()))
        }
        _ => Ok(Poll::Trouble(answer.who())),
    }
}

/// A refusal in the instance's own words where it has some.
fn refused(answer: &Answer, object: Option<&Map<String, Value>>) -> PairError {
    if matches!(answer.status, 429 | 503) {
        let wait = answer.retry_after.unwrap_or(Duration::from_secs(60));
        return PairError::Later(wait);
    }
    let word = |field: &str| {
        let value = object?.get(field)?.as_str()?;
        Some(words::clean(value, 200)).filter(|words| !words.is_empty())
    };
    let said = word("error_description")
        .or_else(|| word("text"))
        .or_else(|| word("error").map(|error| format!("it says no more than {error}")));
    PairError::Refused(said.unwrap_or_else(|| answer.who()))
}

fn linked(
    found: &Found,
    about: &About,
    object: &Map<String, Value>,
) -> Result<Instance, PairError> {
    let text = |field: &'static str| {
        let value = object.get(field).and_then(Value::as_str);
        value.ok_or(PairError::Field(field))
    };
    if text("instance")? != found.instance {
        return Err(PairError::OtherInstance);
    }
    let token = text("access_token")?;
    if !is_token(token) {
        return Err(PairError::Field("access_token"));
    }
    let device = object.get("device_id").and_then(Value::as_str);
    let device = match device {
        Some(id)
            if !id.is_empty() && id.len() <= 64 && id.bytes().all(|b| b.is_ascii_graphic()) =>
        {
            DeviceId::new(id)
        }
        Some(_) => return Err(PairError::Field("device_id")),
        None => about.device.clone(),
    };
    let account = object.get("account").and_then(Value::as_object);
    let of_account = |field: &str| {
        let value = account.and_then(|account| account.get(field)?.as_str());
        words::clean(value.unwrap_or_default(), 64)
    };
    Ok(Instance {
        url: found.base.to_string(),
        instance: found.instance.clone(),
        name: found.name.clone(),
        link: found.link.to_string(),
        models: found.models.as_ref().map(ToString::to_string),
        account: Account {
            id: AccountId::new(of_account("id")),
            name: of_account("name"),
        },
        device,
        paired_at: clock::now_ms(),
        token: Secret::new(token),
        successor: None,
    })
}

const FORM: &str = "application/x-www-form-urlencoded";

/// Pairs as a form.
fn encode(pairs: &[(&str, &str)]) -> String {
    let mut text = String::new();
    for (name, value) in pairs {
        if !text.is_empty() {
            text.push('&');
        }
        text.push_str(name);
        text.push('=');
        for byte in value.bytes() {
            if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                text.push(char::from(byte));
            } else {
                text.push_str(&format!("%{byte:02X}"));
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_encoded() {
        assert_eq!(
            encode(&[("a", "b c&d=é"), ("x", "1-._~")]),
            "a=b%20c%26d%3D%C3%A9&x=1-._~"
        );
    }
}
