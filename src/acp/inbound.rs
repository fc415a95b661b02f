//! From the wire to the domain: what the params of a request mean.
//!
//! The forms of ACP are read with the types of the schema crate; what is ours stands in
//! `_meta.lembas` and is read here, strictly: a field of the wrong type is an error that names it,
//! a field that is not known is left alone.

use agent_client_protocol_schema::v1;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::error::bad;
use super::limits::Schedule;
use crate::config::Mode;
use crate::rpc::RpcError;
use crate::store::item::Part;
use crate::text::json;

/// The parts of one prompt. More is a mistake of the sender, not a longer prompt.
const MAX_PARTS: usize = 256;
/// Bytes of text of one prompt, with embedded files; more is refused with what to do instead.
const MAX_TEXT: usize = 2 * 1024 * 1024;
/// Bytes of all images of one prompt, as base64, and the kinds that models take.
const MAX_IMAGES: usize = 24 * 1024 * 1024;
const IMAGES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// Reads the params of a method.
pub(crate) fn params<T: DeserializeOwned>(params: Value) -> Result<T, RpcError> {
    json::read(params).map_err(|why| bad("params", why))
}

/// What `_meta.lembas` says, or nothing when there is none.
pub(crate) fn ours<T: DeserializeOwned + Default>(
    meta: Option<&Map<String, Value>>,
) -> Result<T, RpcError> {
    match meta.and_then(|meta| meta.get("lembas")) {
        None | Some(Value::Null) => Ok(T::default()),
        Some(value) => {
            json::read(value.clone()).map_err(|why| bad("params", format!("_meta.lembas: {why}")))
        }
    }
}

/// `_meta.lembas` of `session/new`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct NewMeta {
    pub(crate) model: Option<String>,
    pub(crate) mode: Option<Mode>,
    pub(crate) level: Option<String>,
    /// `{ min, max }`.
    pub(crate) agents: Option<Agents>,
    pub(crate) said: Option<String>,
    pub(crate) context: Option<String>,
    pub(crate) scheduled: Option<Schedule>,
    pub(crate) key: Option<String>,
}

/// The Subagents range of a chat.
#[derive(Clone, Copy, Debug, Deserialize, serde::Serialize)]
pub(crate) struct Agents {
    pub(crate) min: u32,
    pub(crate) max: u32,
}

impl Agents {
    /// The cap of the range (decisions, Teams).
    const CAP: u32 = 8;

    pub(crate) fn check(self) -> Result<Self, RpcError> {
        if 1 <= self.min && self.min <= self.max && self.max <= Self::CAP {
            Ok(self)
        } else {
            Err(bad(
                "agents",
                format!("agents: min and max are from 1 to {}, min first", Self::CAP),
            ))
        }
    }
}

/// `_meta.lembas` of `session/prompt`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct PromptMeta {
    pub(crate) key: Option<String>,
    /// The prompt is the instance's own, not a person's.
    pub(crate) machine: bool,
    pub(crate) agents: Option<Agents>,
}

/// `_meta.lembas` of any other method that changes something.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct KeyMeta {
    pub(crate) key: Option<String>,
}

/// A mode by its name on the wire.
pub(crate) fn mode(name: &str) -> Result<Mode, RpcError> {
    Mode::read(name).ok_or_else(|| {
        let shown: String = name.chars().take(40).collect();
        bad(
            "mode",
            format!("there is no mode {shown:?}: plan, manual, edit or auto"),
        )
    })
}

/// The name of a mode on the wire.
pub(crate) fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Plan => "plan",
        Mode::Manual => "manual",
        Mode::Edit => "edit",
        Mode::Auto => "auto",
    }
}

/// Whether a prompt may be made of these parts, as they stand on the wire.
///
/// # Errors
/// What is wrong, as a sentence without its full stop.
pub fn good_parts(blocks: &[Value]) -> Result<(), String> {
    #[derive(Deserialize)]
    struct Sent {
        parts: Vec<v1::ContentBlock>,
    }
    if blocks.is_empty() {
        return Ok(());
    }
    let sent: Sent = json::read(serde_json::json!({ "parts": blocks }))?;
    parts(sent.parts).map(drop).map_err(|error| error.message)
}

/// The parts of a prompt. What is promised in the handshake is taken, anything else refused whole:
/// a prompt of which half was dropped is worse than none.
pub(crate) fn parts(blocks: Vec<v1::ContentBlock>) -> Result<Vec<Part>, RpcError> {
    if blocks.is_empty() {
        return Err(bad(
            "prompt",
            "the prompt is empty: send text, an image or a link",
        ));
    }
    if blocks.len() > MAX_PARTS {
        return Err(bad(
            "prompt",
            format!("a prompt has at most {MAX_PARTS} parts"),
        ));
    }
    let parts: Vec<Part> = blocks.into_iter().map(part).collect::<Result<_, _>>()?;
    let (mut text, mut images) = (0, 0);
    for part in &parts {
        match part {
            Part::Text { text: more } => text += more.len(),
            Part::Link { uri, name } => text += uri.len() + name.len(),
            Part::Image { data, .. } => images += data.len(),
        }
    }
    let mb = 1024 * 1024;
    if text > MAX_TEXT {
        let most = MAX_TEXT / mb;
        return Err(bad(
            "prompt",
            format!("a prompt has at most {most} MiB of text: put the rest in a file and name it"),
        ));
    }
    if images > MAX_IMAGES {
        let most = MAX_IMAGES / mb;
        return Err(bad(
            "prompt",
            format!("the images of a prompt are at most {most} MiB: send fewer or smaller ones"),
        ));
    }
    Ok(parts)
}

fn image(mime: String, data: String) -> Result<Part, RpcError> {
    if !IMAGES.contains(&mime.as_str()) {
        let shown: String = mime.chars().take(40).collect();
        return Err(bad(
            "prompt",
            format!("an image of the kind {shown:?} is not taken: png, jpeg, gif or webp"),
        ));
    }
    if data.is_empty() || STANDARD.decode(&data).is_err() {
        return Err(bad("prompt", "the data of an image is not base64"));
    }
    Ok(Part::Image { mime, data })
}

fn part(block: v1::ContentBlock) -> Result<Part, RpcError> {
    match block {
        v1::ContentBlock::Text(text) => Ok(Part::Text { text: text.text }),
        v1::ContentBlock::Image(part) => image(part.mime_type, part.data),
        v1::ContentBlock::ResourceLink(link) => Ok(Part::Link {
            uri: link.uri,
            name: link.name,
        }),
        v1::ContentBlock::Resource(resource) => match resource.resource {
            v1::EmbeddedResourceResource::TextResourceContents(text) => Ok(Part::Text {
                text: format!("<file uri={:?}>\n{}\n</file>", text.uri, text.text),
            }),
            v1::EmbeddedResourceResource::BlobResourceContents(blob)
                if blob
                    .mime_type
                    .as_deref()
                    .is_some_and(|m| m.starts_with("image/")) =>
            {
                image(blob.mime_type.unwrap_or_default(), blob.blob)
            }
            _ => Err(bad(
                "prompt",
                "an embedded file that is not text is not taken: send a link to it",
            )),
        },
        _ => Err(bad(
            "prompt",
            "a prompt is made of text, images, links and embedded text files",
        )),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(blocks: Value) -> Result<Vec<Part>, RpcError> {
        parts(params(blocks)?)
    }

    #[test]
    fn every_promised_part_is_read() {
        let parts = read(json!([
            { "type": "text", "text": "look" },
            { "type": "image", "mimeType": "image/png", "data": "AAAA" },
            { "type": "resource_link", "uri": "file:///a.txt", "name": "a.txt" },
            { "type": "resource", "resource": { "uri": "file:///b.txt", "text": "b" } },
        ]))
        .unwrap();
        insta::assert_debug_snapshot!(parts, @r###"
        [
            Text {
                text: "look",
            },
            Image {
                mime: "image/png",
                data: "AAAA",
            },
            Link {
                uri: "file:///a.txt",
                name: "a.txt",
            },
            Text {
                text: "<file uri=\"file:///b.txt\">\nb\n</file>",
            },
        ]
        "###);
    }

    #[test]
    fn what_was_not_promised_is_refused_whole() {
        for blocks in [
            json!([]),
            json!([{ "type": "text", "text": "a" }, { "type": "audio", "data": "AA", "mimeType": "audio/wav" }]),
            json!([{ "type": "resource", "resource": { "uri": "file:///b", "blob": "AAAA" } }]),
            json!([{ "type": "image", "mimeType": "image/svg+xml", "data": "AAAA" }]),
            json!([{ "type": "image", "mimeType": "image/png", "data": "not base64" }]),
            json!([{ "type": "image", "mimeType": "image/png", "data": "" }]),
            json!([{ "type": "text", "text": "x".repeat(MAX_TEXT + 1) }]),
            json!([{ "type": "hologram" }]),
            json!([{ "type": "text", "text": 3 }]),
            json!(["text"]),
        ] {
            let error = read(blocks.clone()).unwrap_err();
            assert_eq!(error.code, RpcError::INVALID_PARAMS, "{blocks}");
        }
    }

    #[test]
    fn our_own_fields_are_read_strictly_and_unknown_ones_left_alone() {
        let meta = |lembas: Value| json!({ "lembas": lembas }).as_object().cloned();
        let read: NewMeta = ours(
            meta(json!({ "model": "m", "mode": "unrestricted", "from_the_future": 1 })).as_ref(),
        )
        .unwrap();
        assert_eq!(read.mode, Some(Mode::Auto));
        for wrong in [
            json!({ "mode": "all" }),
            json!({ "mode": 3 }),
            json!({ "model": ["m"] }),
            json!({ "scheduled": { "schedule": "s" } }),
            json!("text"),
        ] {
            let error = ours::<NewMeta>(meta(wrong.clone()).as_ref()).unwrap_err();
            assert_eq!(error.code, RpcError::INVALID_PARAMS, "{wrong}");
        }
    }

    #[test]
    fn the_subagents_range_is_bounded() {
        for (min, max, good) in [
            (1, 1, true),
            (1, 8, true),
            (0, 1, false),
            (3, 2, false),
            (1, 9, false),
        ] {
            assert_eq!(Agents { min, max }.check().is_ok(), good, "{min}..{max}");
        }
    }
}
