//! Finding an instance: what an address answers, and every reason not to go on with it
//! (spec/acp.md section 1).

use reqwest::Url;
use serde_json::{Map, Value};

use super::http::{self, Answer, Http, HttpError};
use super::origin::Base;
use super::words;
use super::ws::PROTOCOL;

/// What discovery says of an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub base: Base,
    /// Its id, which never changes, and its name for people.
    pub instance: String,
    pub name: String,
    pub version: String,
    /// The harness spec it carries.
    pub spec: String,
    /// The address of the link (`wss`, or `ws` on loopback).
    pub link: Url,
    /// The address of the model API, when it offers models to devices.
    pub models: Option<Url>,
}

/// Where an instance says what it is.
pub const KNOWN: &str = ".well-known/lembas";

/// Why an address is not gone on with. Each message is whole and for a person.
#[derive(Debug, thiserror::Error)]
pub enum DiscoveryError {
    #[error(transparent)]
    Http(#[from] HttpError),
    #[error("{base} cannot be reached: {cause}")]
    Unreachable { base: Base, cause: String },
    /// Something answered, and it is no instance.
    #[error("{base} is not an instance: {who}. Check the address.")]
    NotAnInstance {
        base: Base,
        /// What was asked for.
        path: &'static str,
        who: String,
    },
    #[error(
        "{base} sends this computer on to {to}, another address. If that is your instance, link it by its own address."
    )]
    Elsewhere { base: Base, to: String },
    #[error("{}", protocol_words(*theirs))]
    Protocol { theirs: u64 },
    #[error(
        "{base} names an address of its {what} that is not its own: {url}. This computer's token would go there, so it is not linked."
    )]
    OtherOrigin {
        base: Base,
        what: &'static str,
        url: String,
    },
    #[error(
        "{base} answers as an instance but without a usable \"{field}\": the instance needs an update or a repair"
    )]
    Field { base: Base, field: &'static str },
}

/// What to update when the other side speaks another protocol (spec/acp.md D6).
pub fn protocol_words(theirs: u64) -> String {
    protocols(theirs, PROTOCOL)
}

/// The same sentence from either side.
pub fn protocols(instance: u64, computer: u64) -> String {
    let what = if instance < computer {
        "update the instance to LLeMbas 2.0 or later"
    } else {
        "update lembas on this computer"
    };
    format!("This instance speaks link protocol {instance} and this computer {computer}: {what}.")
}

/// Asks `base` what it is.
pub async fn discover(base: &Base, http: &Http) -> Result<Found, DiscoveryError> {
    let object = well_known(base, http, KNOWN).await?;
    let missing = |field| DiscoveryError::Field {
        base: base.clone(),
        field,
    };
    if object.get("product").and_then(Value::as_str) != Some("llembas") {
        return Err(DiscoveryError::NotAnInstance {
            base: base.clone(),
            path: KNOWN,
            who: "what answers there calls itself something else".into(),
        });
    }
    let protocol = object.get("protocol").and_then(Value::as_u64);
    let theirs = protocol.ok_or_else(|| missing("protocol"))?;
    if theirs != PROTOCOL {
        return Err(DiscoveryError::Protocol { theirs });
    }
    let text = |field: &'static str| {
        let value = object.get(field).and_then(Value::as_str);
        value.ok_or_else(|| missing(field))
    };
    let instance = text("instance")?;
    if !is_instance_id(instance) {
        return Err(missing("instance"));
    }
    let link = own_address(base, "link", text("link")?)?;
    if !matches!(link.scheme(), "ws" | "wss") {
        return Err(missing("link"));
    }
    let models = match object.get("models").and_then(Value::as_str) {
        Some(models) => Some(own_address(base, "models", models)?),
        None => None,
    };
    let shown = |field: &str| {
        let value = object.get(field).and_then(Value::as_str);
        words::clean(value.unwrap_or_default(), 64)
    };
    Ok(Found {
        base: base.clone(),
        instance: instance.to_owned(),
        name: shown("name"),
        version: shown("version"),
        spec: shown("spec"),
        link,
        models,
    })
}

/// The endpoints of the grant (RFC 8414), all of the base's origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Endpoints {
    pub(super) device: Url,
    pub(super) token: Url,
    pub(super) revoke: Option<Url>,
}

pub(super) async fn endpoints(base: &Base, http: &Http) -> Result<Endpoints, DiscoveryError> {
    let object = well_known(base, http, ".well-known/oauth-authorization-server").await?;
    let address = |field: &'static str| match object.get(field).and_then(Value::as_str) {
        Some(url) => own_address(base, field, url).map(Some),
        None => Ok(None),
    };
    let needed = |field: &'static str| {
        let missing = || DiscoveryError::Field {
            base: base.clone(),
            field,
        };
        address(field)?.ok_or_else(missing)
    };
    Ok(Endpoints {
        device: needed("device_authorization_endpoint")?,
        token: needed("token_endpoint")?,
        revoke: address("revocation_endpoint")?,
    })
}

/// A JSON object that a well-known address answers with.
async fn well_known(
    base: &Base,
    http: &Http,
    path: &'static str,
) -> Result<Map<String, Value>, DiscoveryError> {
    let request = http.client()?.get(base.join(path));
    let request = request.header("accept", "application/json");
    let unreachable = |error: reqwest::Error| DiscoveryError::Unreachable {
        base: base.clone(),
        cause: words::cause(&error.without_url()),
    };
    let answer = http::short(request).await.map_err(unreachable)?;
    elsewhere(base, &answer)?;
    let object = answer.object().filter(|_| answer.status == 200);
    object.ok_or_else(|| {
        let mut who = answer.who();
        if answer.status == 200 && !who.contains("text/html") {
            who.push_str(", and that is not one JSON object of at most 64 KiB");
        }
        DiscoveryError::NotAnInstance {
            base: base.clone(),
            path,
            who,
        }
    })
}

/// A redirect that was not followed: it leads out of the origin, or too far.
fn elsewhere(base: &Base, answer: &Answer) -> Result<(), DiscoveryError> {
    let location = answer.location.as_deref();
    let Some(location) = location.filter(|_| (300..400).contains(&answer.status)) else {
        return Ok(());
    };
    let to = answer.url.join(location);
    let mut to = to.map_or_else(|_| location.to_owned(), |url| url.to_string());
    if let Some(start) = to.strip_suffix("/.well-known/lembas") {
        to = start.to_owned();
    }
    Err(DiscoveryError::Elsewhere {
        base: base.clone(),
        to: words::clean(&to, 200),
    })
}

/// An address that the instance names, which must be its own.
pub(super) fn own_address(
    base: &Base,
    what: &'static str,
    url: &str,
) -> Result<Url, DiscoveryError> {
    match Url::parse(url) {
        Ok(url) if base.owns(&url) && url.username().is_empty() && url.password().is_none() => {
            Ok(url)
        }
        _ => Err(DiscoveryError::OtherOrigin {
            base: base.clone(),
            what,
            url: words::clean(url, 200),
        }),
    }
}

/// Spec/acp.md, the table of section 1.
fn is_instance_id(id: &str) -> bool {
    (1..=64).contains(&id.len())
        && id
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_texts_about_other_protocols_are_these() {
        assert_eq!(
            protocol_words(2),
            "This instance speaks link protocol 2 and this computer 3: update the instance to LLeMbas 2.0 or later."
        );
        assert_eq!(
            protocol_words(4),
            "This instance speaks link protocol 4 and this computer 3: update lembas on this computer."
        );
    }
}
