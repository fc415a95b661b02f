//! The handshake: what a client says it can, what we say, and which of our methods that opens.
//!
//! A feature beyond plain ACP is used only when both sides named it (R98); the method of one that
//! was not named does not exist. Not here: the guard that nothing comes before the handshake
//! (`connection`).

use std::collections::BTreeSet;

use agent_client_protocol_schema::v1;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::About;
use super::error::bad;
use crate::permission::Origin;
use crate::rpc::RpcError;
use crate::spec;
use crate::text::json;

/// The link protocol spoken here (R97).
pub const PROTOCOL: u64 = 3;

/// The features of the link that this computer has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Capability {
    /// Sequence numbers, `_lembas/sync`, `_lembas/follow`, `_lembas/ack`.
    Resume,
    /// `_lembas/answer`, `_lembas/extend`.
    Asks,
    Directories,
    /// Scheduled sessions and `_lembas/monitor`.
    Scheduled,
    /// The `phase` event and `progress` in a status.
    Progress,
    /// `agents {min, max}` on a session and on a prompt.
    Agents,
    /// A new token over the live link.
    Token,
    /// `_lembas/retry`.
    Retry,
    /// `_lembas/rewind`.
    Rewind,
    /// What is allowed always: `_lembas/rules`.
    Rules,
    /// The bytes of a call's output: `_lembas/output`.
    Output,
}

impl Capability {
    pub const ALL: [Self; 11] = [
        Self::Resume,
        Self::Asks,
        Self::Directories,
        Self::Scheduled,
        Self::Progress,
        Self::Agents,
        Self::Token,
        Self::Retry,
        Self::Rewind,
        Self::Rules,
        Self::Output,
    ];

    /// The feature that a method belongs to; none: it is part of the base.
    pub(crate) fn of(method: &str) -> Option<Self> {
        match method {
            "_lembas/sync" | "_lembas/follow" | "_lembas/unfollow" | "_lembas/ack" => {
                Some(Self::Resume)
            }
            "_lembas/answer" | "_lembas/extend" => Some(Self::Asks),
            "_lembas/directories" => Some(Self::Directories),
            "_lembas/monitor" => Some(Self::Scheduled),
            "_lembas/token" => Some(Self::Token),
            "_lembas/retry" => Some(Self::Retry),
            "_lembas/rewind" => Some(Self::Rewind),
            "_lembas/rules" | "_lembas/rules/remove" => Some(Self::Rules),
            "_lembas/output" => Some(Self::Output),
            _ => None,
        }
    }

    /// Whether it means something between us and whoever asks. What only an instance asks is not
    /// offered to a program on this computer.
    fn offered(self, origin: &Origin) -> bool {
        match self {
            Self::Directories | Self::Scheduled | Self::Token => *origin != Origin::Local,
            _ => true,
        }
    }

    /// What is said to a client of this origin.
    pub(crate) fn list(origin: &Origin) -> Vec<Self> {
        let all = Self::ALL.into_iter();
        all.filter(|capability| capability.offered(origin))
            .collect()
    }
}

/// What is known of a client after its `initialize`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Client {
    /// It speaks our part of the protocol at all: it gets `_lembas/event`.
    pub(crate) lembas: bool,
    /// What both sides named.
    both: BTreeSet<Capability>,
    /// How a person would call it: its title or name.
    pub(crate) name: Option<String>,
    /// The epoch and head of this computer as it last heard them (H3).
    seen: Option<(String, i64)>,
}

impl Client {
    pub(crate) fn seen(&self) -> Option<(&str, i64)> {
        self.seen
            .as_ref()
            .map(|(epoch, head)| (epoch.as_str(), *head))
    }

    pub(crate) fn has(&self, capability: Capability) -> bool {
        self.both.contains(&capability)
    }

    /// Whether a method of ours exists for this client.
    pub(crate) fn may_call(&self, method: &str) -> bool {
        self.lembas && Capability::of(method).is_none_or(|capability| self.has(capability))
    }

    /// Only what it follows is streamed to it.
    pub(crate) fn follows(&self) -> bool {
        self.has(Capability::Resume)
    }
}

/// `clientCapabilities._meta.lembas`.
#[derive(Debug, Deserialize)]
struct ClientMeta {
    protocol: u64,
    #[serde(default)]
    instance: Option<String>,
    #[serde(default)]
    capabilities: Vec<String>,
    #[serde(default)]
    epoch: Option<String>,
    #[serde(default)]
    head: Option<i64>,
}

/// Reads an `initialize`, and refuses a client that we cannot work with.
///
/// # Errors
/// -32602: params of the wrong form, a link protocol that is not ours (the text names what to
/// update), or an instance that is not the one this computer was linked to.
pub(crate) fn read(params: Value, origin: &Origin) -> Result<Client, RpcError> {
    let request: v1::InitializeRequest = super::inbound::params(params)?;
    let name = request
        .client_info
        .map(|info| info.title.unwrap_or(info.name))
        .map(|name| crate::text::escape::label(&name, 80));
    let meta = request.client_capabilities.meta;
    let Some(meta) = meta.and_then(|mut meta| meta.remove("lembas")) else {
        return Ok(Client {
            name,
            ..Client::default()
        });
    };
    let meta: ClientMeta = json::read(meta)
        .map_err(|why| bad("params", format!("clientCapabilities._meta.lembas: {why}")))?;
    protocol(meta.protocol)?;
    if let (Origin::Remote { instance, .. }, Some(said)) = (origin, &meta.instance)
        && instance != said
    {
        return Err(bad(
            "instance",
            "this is another instance than the one this computer was linked to: run lembas link again if it has moved",
        ));
    }
    let offered = Capability::list(origin);
    let both = meta
        .capabilities
        .into_iter()
        .filter_map(|name| serde_json::from_value(Value::String(name)).ok())
        .filter(|capability| offered.contains(capability))
        .collect();
    Ok(Client {
        lembas: true,
        both,
        name,
        seen: meta.epoch.zip(meta.head),
    })
}

/// Refuses another link protocol, naming what to update (R97).
pub fn protocol(theirs: u64) -> Result<(), RpcError> {
    let text = match theirs.cmp(&PROTOCOL) {
        std::cmp::Ordering::Equal => return Ok(()),
        std::cmp::Ordering::Less => "older",
        std::cmp::Ordering::Greater => "newer",
    };
    let texts = &spec::numbers().limits;
    let text = texts.say(text, &[("theirs", &theirs.to_string())]);
    Err(
        RpcError::new(RpcError::INVALID_PARAMS, text.clone()).with_data(json!({
            "reason": "protocol", "protocol": PROTOCOL, "text": text,
        })),
    )
}

/// The answer to `initialize`; `ours` is `agentCapabilities._meta.lembas`.
pub(crate) fn answer(about: &About, ours: &Value) -> Value {
    json!({
        "protocolVersion": 1,
        "agentCapabilities": {
            "loadSession": true,
            "promptCapabilities": { "image": true, "audio": false, "embeddedContext": true },
            "mcpCapabilities": { "http": false, "sse": false },
            "sessionCapabilities": {
                "list": {}, "resume": {}, "close": {}, "delete": {}, "additionalDirectories": {},
            },
            "_meta": { "lembas": ours },
        },
        "authMethods": [],
        "agentInfo": {
            "name": "lembas", "title": format!("lembas on {}", about.name), "version": about.version,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instance() -> Origin {
        Origin::Remote {
            instance: "i".to_owned(),
            grant: "g".to_owned(),
        }
    }

    fn init(lembas: Value) -> Value {
        let mut params = json!({ "protocolVersion": 1 });
        params["clientCapabilities"]["_meta"]["lembas"] = lembas;
        params
    }

    #[test]
    fn another_protocol_is_refused_with_what_to_update() {
        let text = |n: u64| {
            read(init(json!({ "protocol": n })), &instance())
                .unwrap_err()
                .message
        };
        insta::assert_snapshot!(text(2), @"This instance speaks link protocol 2 and this computer 3: update the instance to LLeMbas 2.0 or later.");
        insta::assert_snapshot!(text(4), @"This instance speaks link protocol 4 and this computer 3: update lembas on this computer.");
    }

    #[test]
    fn only_what_both_named_counts() {
        let named = json!(["resume", "asks", "telepathy", "token"]);
        let hello = init(json!({ "protocol": 3, "instance": "i", "capabilities": named }));
        let client = read(hello.clone(), &instance()).unwrap();
        assert!(client.may_call("_lembas/follow") && client.may_call("_lembas/token"));
        assert!(!client.may_call("_lembas/monitor"));
        assert!(client.may_call("_lembas/status"), "part of the base");
        let local = read(hello, &Origin::Local).unwrap();
        assert!(local.has(Capability::Resume) && !local.may_call("_lembas/token"));
    }

    #[test]
    fn a_plain_client_needs_nothing_of_ours() {
        let client = read(json!({ "protocolVersion": 1 }), &instance()).unwrap();
        assert!(!client.lembas && !client.follows());
    }

    #[test]
    fn wrong_forms_and_another_instance_are_refused() {
        for params in [
            json!(null),
            json!({}),
            json!({ "protocolVersion": "1" }),
            init(json!({ "protocol": "3" })),
            init(json!([])),
            init(json!({ "protocol": 3, "capabilities": "resume" })),
            init(json!({ "protocol": 3, "instance": "other" })),
        ] {
            let error = read(params.clone(), &instance()).unwrap_err();
            assert_eq!(error.code, RpcError::INVALID_PARAMS, "{params}");
        }
    }

    #[test]
    fn what_we_answer_is_valid_for_the_published_types() {
        let about = About {
            id: "d".to_owned(),
            name: "zephyr".to_owned(),
            os: "linux".to_owned(),
            arch: "x86_64".to_owned(),
            version: "1.0.0".to_owned(),
            home: None,
            spec: "3.6.0".to_owned(),
        };
        let answer = answer(&about, &json!({ "protocol": 3 }));
        let read: v1::InitializeResponse = serde_json::from_value(answer).unwrap();
        assert!(read.agent_capabilities.load_session);
        let sessions = read.agent_capabilities.session_capabilities;
        assert!(sessions.list.is_some() && sessions.resume.is_some());
        assert!(sessions.close.is_some() && sessions.delete.is_some());
    }
}
