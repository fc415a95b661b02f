//! The whole output of a call: streamed from the computer that has it, or from what is stored here,
//! a piece at a time and only as fast as the page takes it.
//!
//! What is not all there is never sent as if it were: it is refused in words before the first byte,
//! and a download that cannot go on breaks off. Not here: the card with the last lines (`view`).

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use futures_util::{Stream, StreamExt as _, stream};
use serde::Deserialize;
use serde_json::{Value, json};

use super::asked::{Path, Query};
use super::auth::Signed;
use super::error::{ApiError, ApiResult};
use super::{Shared, chats, devices};
use crate::rpc::{CallError, Peer};
use crate::store::hub::HubStore;
use crate::store::hub::chats::Chat;
use crate::store::hub::devices::Device;
use crate::store::hub::outputs::Stored;
use crate::text::words;

/// How long a computer may take for one piece.
const SMALL: Duration = Duration::from_secs(30);
/// Bytes of a piece that is read here or asked for.
const PIECE: u64 = 90 * 1024;
/// Pieces that are asked of a computer ahead of what the page has taken: all that is in memory.
const AHEAD: usize = 3;
/// Bytes that the page gets for one `Show more` when it names none, and at most.
const SHOWN: u64 = 64 * 1024;
const MOST_SHOWN: u64 = 256 * 1024;
/// The computer's code for what is gone (spec/acp.md, Errors).
const GONE: i64 = -32004;

#[derive(Deserialize)]
pub(super) struct At {
    /// A stretch of the text for the page instead of the file.
    from: Option<u64>,
    max: Option<u64>,
    /// `here`: also what is not the whole, which then ends with a line that says so.
    part: Option<String>,
}

/// `GET /chats/{id}/output/{call}`.
pub(super) async fn output(
    signed: Signed,
    State(shared): State<Arc<Shared>>,
    Path((id, call)): Path<(String, String)>,
    Query(at): Query<At>,
) -> ApiResult<Response> {
    let chat = chats::own(&shared, &signed, id).await?;
    let stored = shared.store.stored_output(chat.id.clone(), call.clone());
    let stored = stored.await?.ok_or_else(|| ApiError::missing("output"))?;
    let device = shared.store.device(chat.device.clone()).await?;
    let device = device.ok_or_else(|| ApiError::missing("computer"))?;
    let whole = Whole {
        here: Here {
            store: shared.store.clone(),
            chat: chat.id.clone(),
            call: call.clone(),
            stored,
        },
        there: there(&shared, &chat, &device, call),
        device,
    };
    match at.from {
        Some(from) => whole.stretch(from, at.max.unwrap_or(SHOWN)).await,
        None => whole.file(at.part.as_deref() == Some("here")).await,
    }
}

/// What is stored here of it.
#[derive(Clone)]
struct Here {
    store: HubStore,
    chat: String,
    call: String,
    stored: Stored,
}

/// The computer that has it, when it can be asked.
#[derive(Clone)]
struct There {
    peer: Peer,
    session: String,
    call: String,
}

struct Whole {
    here: Here,
    there: Result<There, ApiError>,
    device: Device,
}

/// Some bytes, of so many in all.
struct Piece {
    bytes: Vec<u8>,
    total: u64,
    /// Bytes that followed and were not kept.
    missing: u64,
}

fn there(shared: &Shared, chat: &Chat, device: &Device, call: String) -> Result<There, ApiError> {
    let peer = devices::peer(shared, device)?;
    let name = &device.name;
    if !shared
        .links
        .get(&device.id)
        .is_some_and(|link| link.can("output"))
    {
        let text = format!("{name} does not hand out its long outputs.");
        return Err(ApiError::conflict("old", text).next("Update lembas on that computer."));
    }
    if let Some(why) = &chat.closed {
        let text = format!("This chat is closed: {why}.");
        return Err(ApiError::conflict("closed", text));
    }
    Ok(There {
        peer,
        session: chat.session.clone(),
        call,
    })
}

impl There {
    async fn piece(&self, from: u64, max: u64) -> Result<Piece, CallError> {
        let params = json!({
            "sessionId": self.session, "call": self.call, "from": from, "max": max,
        });
        let asked = self.peer.request_within("_lembas/output", params, SMALL);
        let answer = asked.await?;
        let number = |key: &str| answer.get(key).and_then(Value::as_u64);
        let data = answer.get("data").and_then(Value::as_str);
        let bytes = data.and_then(|data| {
            base64::engine::general_purpose::STANDARD
                .decode(data)
                .ok()
                .filter(|bytes| bytes.len() as u64 <= max)
        });
        match (bytes, number("from"), number("total")) {
            (Some(bytes), Some(at), Some(total)) if at == from => Ok(Piece {
                bytes,
                total,
                missing: number("missing").unwrap_or(0),
            }),
            _ => Err(CallError::BadAnswer),
        }
    }

    /// All after the first piece, each piece as long as that one. What comes otherwise than the
    /// first one promised ends it with an error, and the download breaks off.
    fn rest(self, first: &Piece) -> impl Stream<Item = std::io::Result<Bytes>> + use<> {
        let (step, total) = (first.bytes.len() as u64, first.total);
        let starts = (1..)
            .map(move |n: u64| n.saturating_mul(step))
            .take_while(move |from| step > 0 && *from < total);
        stream::iter(starts)
            .map(move |from| {
                let there = self.clone();
                async move {
                    let wanted = step.min(total - from);
                    match there.piece(from, wanted).await {
                        Ok(piece) if piece.bytes.len() as u64 == wanted && piece.total == total => {
                            Ok(Bytes::from(piece.bytes))
                        }
                        Ok(_) => Err(std::io::Error::other("the output changed")),
                        Err(error) => Err(std::io::Error::other(error.to_string())),
                    }
                }
            })
            .buffered(AHEAD)
    }
}

impl Here {
    async fn piece(&self, from: u64, max: u64) -> ApiResult<Vec<u8>> {
        let (chat, call) = (self.chat.clone(), self.call.clone());
        let output = self.stored.of_output();
        let piece = self.store.stored_piece(chat, call, output, from, max);
        Ok(piece.await?)
    }

    /// All of what is stored, as it was when it was counted.
    fn all(self) -> impl Stream<Item = std::io::Result<Bytes>> + use<> {
        let total = self.stored.size();
        stream::try_unfold((self, 0), move |(here, from)| async move {
            if from >= total {
                return Ok(None);
            }
            let piece = here.piece(from, PIECE.min(total - from)).await;
            match piece {
                Ok(bytes) if !bytes.is_empty() => {
                    let next = from + bytes.len() as u64;
                    Ok(Some((Bytes::from(bytes), (here, next))))
                }
                _ => Err(std::io::Error::other("what is stored could not be read")),
            }
        })
    }
}

impl Whole {
    /// The file, or why there is none.
    async fn file(self, part: bool) -> ApiResult<Response> {
        let stored = &self.here.stored;
        if !stored.ended {
            let text = "The command still runs: all of its output can be loaded when it has ended.";
            return Err(ApiError::conflict("running", text));
        }
        if stored.whole() {
            let size = stored.size();
            return Ok(file(size, self.here.all()));
        }
        let first = match &self.there {
            Ok(there) => there.piece(0, PIECE).await.map_err(|e| self.not_had(e)),
            Err(_) => Err(self.away()),
        };
        let first = match first {
            Ok(first) => first,
            Err(_) if part => return Ok(self.what_is_here()),
            Err(error) => return Err(error),
        };
        let (total, missing) = (first.total, first.missing);
        if missing > 0 && !part {
            let name = &self.device.name;
            let (kept, all) = (words::bytes(total), words::bytes(total + missing));
            let text = format!("{name} kept the first {kept} of this output; it had {all}.");
            return Err(ApiError::conflict("partial", text)
                .why("The outputs of one chat take a bounded room on a computer."));
        }
        let Ok(there) = self.there else {
            return Err(ApiError::missing("output"));
        };
        let rest = there.rest(&first);
        let start = stream::iter([Ok(Bytes::from(first.bytes))]);
        if missing == 0 {
            return Ok(file(total, start.chain(rest)));
        }
        let note = format!(
            "\n[{} that followed were not kept.]\n",
            words::bytes(missing)
        );
        let size = total + note.len() as u64;
        let end = stream::iter([Ok(Bytes::from(note))]);
        Ok(file(size, start.chain(rest).chain(end)))
    }

    /// The part that is stored, with a last line that says how much of how much it is.
    fn what_is_here(self) -> Response {
        let note = format!("\n[{}]\n", self.how_much());
        let size = self.here.stored.size() + note.len() as u64;
        let end = stream::iter([Ok(Bytes::from(note))]);
        file(size, self.here.all().chain(end))
    }

    fn how_much(&self) -> String {
        let stored = &self.here.stored;
        let all = words::bytes(stored.bytes.max(stored.size()));
        let name = &self.device.name;
        format!(
            "Of {all} {} are stored here; the whole is on {name}.",
            words::bytes(stored.size())
        )
    }

    fn away(&self) -> ApiError {
        match &self.there {
            Err(why) if why.code() != "away" => why.again(),
            _ => ApiError::conflict(
                "away",
                format!("{} is away. {}", self.device.name, self.how_much()),
            ),
        }
    }

    /// The computer did not hand it out.
    fn not_had(&self, error: CallError) -> ApiError {
        match error {
            CallError::Rpc(error) if error.code == GONE => {
                let text = format!(
                    "{} does not have the whole of this output any more.",
                    self.device.name
                );
                ApiError::new(StatusCode::GONE, "gone", text).why(self.how_much())
            }
            other => devices::refused(&self.device, other),
        }
    }

    /// Some of it as text, for the page.
    async fn stretch(self, from: u64, max: u64) -> ApiResult<Response> {
        let max = max.clamp(4, MOST_SHOWN);
        let stored = &self.here.stored;
        let (mut bytes, mut total, mut note) = (Vec::new(), stored.size(), None);
        let mut whole = stored.ended && stored.whole();
        if stored.ended && !whole {
            match self.stretch_there(from, max).await {
                Ok(piece) => {
                    whole = piece.missing == 0;
                    (bytes, total) = (piece.bytes, piece.total);
                    note = (piece.missing > 0).then(|| {
                        format!(
                            "{} that followed were not kept.",
                            words::bytes(piece.missing)
                        )
                    });
                }
                Err(error) => note = Some(error.text().to_owned()),
            }
        }
        if bytes.is_empty() && total == stored.size() {
            while (bytes.len() as u64) < max {
                let next = from + bytes.len() as u64;
                let piece = self.here.piece(next, max - bytes.len() as u64).await?;
                if piece.is_empty() {
                    break;
                }
                bytes.extend(piece);
            }
        }
        if from + (bytes.len() as u64) < total {
            bytes.truncate(whole_characters(&bytes));
        }
        let next = from + bytes.len() as u64;
        let mut answer = json!({
            "text": String::from_utf8_lossy(&bytes), "from": from, "next": next, "total": total,
            "end": next >= total, "whole": whole,
        });
        if let (Some(note), Some(answer)) = (note, answer.as_object_mut()) {
            answer.insert("note".to_owned(), note.into());
        }
        Ok(Json(answer).into_response())
    }

    async fn stretch_there(&self, from: u64, max: u64) -> ApiResult<Piece> {
        let Ok(there) = &self.there else {
            return Err(self.away());
        };
        let mut all: Option<Piece> = None;
        loop {
            let have = all.as_ref().map_or(0, |all| all.bytes.len() as u64);
            let piece = there.piece(from + have, (max - have).min(PIECE)).await;
            let piece = piece.map_err(|error| self.not_had(error))?;
            let came = piece.bytes.len() as u64;
            let all = match &mut all {
                Some(all) => {
                    all.bytes.extend(piece.bytes);
                    all
                }
                None => all.insert(piece),
            };
            let have = all.bytes.len() as u64;
            if came == 0 || have >= max || from + have >= all.total {
                break;
            }
        }
        all.ok_or_else(|| ApiError::missing("output"))
    }
}

/// Where the last whole character of a stretch ends; all of it where it holds none.
fn whole_characters(bytes: &[u8]) -> usize {
    for back in 1..=3.min(bytes.len()) {
        let at = bytes.len() - back;
        let Some(tail) = bytes.get(at..) else { break };
        if tail.first().is_some_and(|byte| *byte >= 0xc0) {
            let cut = std::str::from_utf8(tail).is_err_and(|error| error.error_len().is_none());
            return if cut && at > 0 { at } else { bytes.len() };
        }
    }
    bytes.len()
}

fn file(
    size: u64,
    stream: impl Stream<Item = std::io::Result<Bytes>> + Send + 'static,
) -> Response {
    let mut response = Body::from_stream(stream).into_response();
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    headers.insert(
        header::CONTENT_DISPOSITION,
        HeaderValue::from_static("attachment; filename=\"output.txt\""),
    );
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(size));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_ends_on_a_character() {
        for (bytes, ends) in [
            (&b"abc"[..], 3),
            (b"ab\xc3", 2),
            (b"ab\xc3\xa4", 4),
            (b"a\xf0\x9f\x98", 1),
            (b"a\xff", 2),
            (b"\x80\x80\x80\x80", 4),
            (b"\xc3", 1),
            (b"", 0),
        ] {
            assert_eq!(whole_characters(bytes), ends, "{bytes:?}");
        }
    }
}
