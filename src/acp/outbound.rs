//! From the journal to the wire: an item or a piece of text as `session/update` and
//! `_lembas/event` (spec/acp.md, Updates).
//!
//! A projection: it looks at nothing but the event and what this follower has already, so any cut
//! followed by a replay gives the same text. Kinds of update are only those of ACP 1, because its
//! clients refuse a kind they do not know; what ACP has no word for is an event of ours, and goes
//! only to a client that speaks our part. Not here: pace and order (`stream`), permission
//! requests (`outbound::ask`).

pub(crate) mod ask;
mod call;
mod item;
pub(crate) mod size;

use serde_json::{Map, Value, json};

use super::capabilities::{Capability, Client};
use crate::ids::{Position, SessionId};
use crate::session::{Event, TextKind};
use crate::store::item::Body;

/// A notification that is ready to go.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Frame {
    pub(crate) method: &'static str,
    pub(crate) params: Value,
    /// About its bytes, to share a link between sessions.
    pub(crate) size: usize,
}

/// One follower's view of one session: what it has, and how it is spoken to.
#[derive(Clone, Debug)]
pub(crate) struct View {
    session: SessionId,
    client: Client,
    /// The id of the `session/load` that these updates answer.
    replay: Option<Value>,
    /// Prompts whose key begins with this came from this very client, which shows them already.
    own: String,
    /// Everything up to here was sent.
    sent: Position,
    /// The turn of the newest item: pieces of text do not say theirs.
    turn: u32,
}

impl View {
    pub(crate) fn new(session: SessionId, client: Client, own: String, from: Position) -> Self {
        Self {
            session,
            client,
            replay: None,
            own,
            sent: from,
            turn: 0,
        }
    }

    /// The same view for the updates of a load.
    pub(crate) fn replaying(mut self, request: Value) -> Self {
        self.replay = Some(request);
        self
    }

    pub(crate) fn sent(&self) -> Position {
        self.sent
    }

    /// The frames of an event; what was sent already is left out.
    pub(crate) fn frames(&mut self, event: Event) -> Vec<Frame> {
        match event {
            Event::Item(item) => {
                self.turn = item.turn;
                if item.seq < self.sent.seq {
                    return Vec::new();
                }
                let known = if item.seq == self.sent.seq {
                    Some(self.sent.at)
                } else {
                    None
                };
                let end = item.position();
                let frames = match (&item.body, known) {
                    (Body::Message { text }, _) => {
                        self.text(end, &TextKind::Message, text, item.time)
                    }
                    (Body::Thought { text }, _) => {
                        self.text(end, &TextKind::Thought, text, item.time)
                    }
                    (Body::Output { call, text }, _) => {
                        self.text(end, &TextKind::Output(call.clone()), text, item.time)
                    }
                    // A whole item that this follower has.
                    (_, Some(_)) => return Vec::new(),
                    (_, None) => item::frames(self, &item),
                };
                self.sent = self.sent.max(end);
                frames
            }
            Event::Text { to, kind, chunk } => self.text(to, &kind, &chunk, crate::clock::now_ms()),
            Event::Progress(progress) => {
                if !self.client.has(Capability::Progress) {
                    return Vec::new();
                }
                let data = serde_json::to_value(progress).unwrap_or_default();
                vec![self.event(self.sent, None, "phase", data)]
            }
        }
    }

    /// The part of a streamed text that is new here, in frames that fit. `end` is the place
    /// behind `chunk`.
    fn text(&mut self, end: Position, kind: &TextKind, chunk: &str, time: i64) -> Vec<Frame> {
        let length = u64::try_from(chunk.len()).unwrap_or(u64::MAX);
        let start = end.at.saturating_sub(length);
        let known = match end.seq.cmp(&self.sent.seq) {
            std::cmp::Ordering::Less => return Vec::new(),
            std::cmp::Ordering::Equal => self.sent.at,
            std::cmp::Ordering::Greater => start,
        };
        let skip = usize::try_from(known.saturating_sub(start)).unwrap_or(usize::MAX);
        // A position inside a character (only a peer that counts wrongly claims one) sends the
        // piece whole: better twice than not at all.
        let (mut at, fresh) = match chunk.get(skip..) {
            Some(fresh) => (start + known.saturating_sub(start), fresh),
            None if skip >= chunk.len() => return Vec::new(),
            None => (start, chunk),
        };
        if fresh.is_empty() {
            return Vec::new();
        }
        let mut frames = Vec::new();
        for piece in size::pieces(fresh, size::TEXT) {
            at += u64::try_from(piece.len()).unwrap_or(0);
            let place = Position { seq: end.seq, at };
            self.sent = place;
            let meta = self.meta(place, self.turn, time);
            frames.extend(self.piece(kind, piece, place, meta));
        }
        frames
    }

    fn piece(
        &self,
        kind: &TextKind,
        text: &str,
        place: Position,
        mut meta: Map<String, Value>,
    ) -> Option<Frame> {
        let update = match kind {
            TextKind::Message => chunk("agent_message_chunk", text, place),
            TextKind::Thought => chunk("agent_thought_chunk", text, place),
            // Output while it comes is ours alone; others see it in the call's result.
            TextKind::Output(_) if !self.client.lembas => return None,
            TextKind::Output(call) => {
                meta.insert("output".to_owned(), text.into());
                json!({ "sessionUpdate": "tool_call_update", "toolCallId": call })
            }
        };
        Some(self.text_update(update, meta))
    }

    /// `_meta.lembas` of an update.
    fn meta(&self, place: Position, turn: u32, time: i64) -> Map<String, Value> {
        let mut meta = Map::new();
        meta.insert("seq".to_owned(), place.seq.0.into());
        meta.insert("at".to_owned(), place.at.into());
        meta.insert("turn".to_owned(), turn.into());
        meta.insert("time".to_owned(), time.into());
        if let Some(request) = &self.replay {
            meta.insert("replay".to_owned(), request.clone());
        }
        meta
    }

    /// An update of text, which was made to fit.
    fn text_update(&self, update: Value, meta: Map<String, Value>) -> Frame {
        Frame::new("session/update", self.params(update, meta))
    }

    /// Any other update: when it does not fit its long strings are cut, and it says so.
    fn update(&self, update: Value, meta: Map<String, Value>) -> Frame {
        let mut params = self.params(update, meta);
        if size::shrink(&mut params, &["sessionId", "replay"])
            && let Some(meta) = params
                .pointer_mut("/_meta/lembas")
                .and_then(Value::as_object_mut)
        {
            meta.insert("cut".to_owned(), true.into());
        }
        Frame::new("session/update", params)
    }

    fn params(&self, update: Value, meta: Map<String, Value>) -> Value {
        // Put together by hand: this is done for every piece of text, and `json!` would copy it.
        let ours = object([("lembas", Value::Object(meta))]);
        object([
            ("sessionId", self.session.as_str().into()),
            ("update", update),
            ("_meta", ours),
        ])
    }

    /// An event of ours. `when` is its turn and time; a phase is no item and has neither.
    fn event(
        &self,
        place: Position,
        when: Option<(u32, i64)>,
        name: &str,
        mut data: Value,
    ) -> Frame {
        size::shrink(&mut data, &["command", "segment"]);
        let mut params = object([
            ("sessionId", self.session.as_str().into()),
            ("seq", place.seq.0.into()),
            ("type", name.into()),
            ("data", data),
        ]);
        if let (Some(params), Some((turn, time))) = (params.as_object_mut(), when) {
            params.insert("turn".to_owned(), turn.into());
            params.insert("time".to_owned(), time.into());
        }
        if let (Some(request), Some(params)) = (&self.replay, params.as_object_mut()) {
            params.insert("replay".to_owned(), request.clone());
        }
        Frame::new("_lembas/event", params)
    }
}

impl Frame {
    fn new(method: &'static str, params: Value) -> Self {
        let size = weight(&params);
        Self {
            method,
            params,
            size,
        }
    }
}

/// About the bytes of a value on the wire, without writing it.
fn weight(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 2,
        Value::Array(list) => list.iter().map(weight).sum::<usize>() + 2,
        Value::Object(map) => {
            map.iter()
                .map(|(k, v)| k.len() + 4 + weight(v))
                .sum::<usize>()
                + 2
        }
        _ => 8,
    }
}

fn chunk(kind: &str, text: &str, place: Position) -> Value {
    json!({
        "sessionUpdate": kind,
        "messageId": place.seq.0.to_string(),
        "content": { "type": "text", "text": text },
    })
}

fn object<const N: usize>(fields: [(&str, Value); N]) -> Value {
    Value::Object(
        fields
            .map(|(key, value)| (key.to_owned(), value))
            .into_iter()
            .collect(),
    )
}

#[cfg(test)]
mod tests;
