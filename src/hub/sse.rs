//! `GET /api/v2/events`: the stream of events to one page.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::Response;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::watch;

use super::Shared;
use super::asked::Query;
use super::auth::Signed;
use super::error::{ApiError, ApiResult};
use super::events::Read;
use crate::clock::{Instant, instant, now_ms, sleep_until};

/// A page hears something at least so often; 25 s of nothing is a dead stream to it.
const BEAT: Duration = Duration::from_secs(10);

#[derive(Deserialize)]
pub(super) struct After {
    after: Option<u64>,
}

/// Streams from a number on. A page that fell behind what is kept is told so at its next hello.
pub(super) async fn events(
    signed: Signed,
    State(shared): State<Arc<Shared>>,
    Query(query): Query<After>,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let last = headers
        .get("last-event-id")
        .and_then(|v| v.to_str().ok())
        .and_then(|v| v.parse().ok());
    let stream = Stream::new(shared, signed, last.or(query.after));
    let body = Body::from_stream(futures_util::stream::unfold(stream, |mut stream| async {
        let text = stream.next().await?;
        Some((Ok::<_, Infallible>(text), stream))
    }));
    Response::builder()
        .header(header::CONTENT_TYPE, "text/event-stream")
        .header(header::CACHE_CONTROL, "no-store, no-transform")
        .header("x-accel-buffering", "no")
        .body(body)
        .map_err(|_| ApiError::bad("The stream of events cannot be begun."))
}

struct Stream {
    shared: Arc<Shared>,
    signed: Signed,
    bell: watch::Receiver<u64>,
    at: u64,
    beat: Instant,
    ready: VecDeque<String>,
    over: bool,
}

impl Stream {
    fn new(shared: Arc<Shared>, signed: Signed, after: Option<u64>) -> Self {
        let bell = shared.events.bell();
        let head = shared.events.head();
        let mut stream = Self {
            bell,
            at: head,
            beat: instant() + BEAT,
            ready: VecDeque::new(),
            over: false,
            shared,
            signed,
        };
        let missed = after.map(|after| {
            (
                after,
                stream
                    .shared
                    .events
                    .after(after, &stream.signed.account, &stream.signed.browser),
            )
        });
        let (resumed, count) = match &missed {
            Some((_, Read::Some { events, .. })) => (true, events.len()),
            _ => (false, 0),
        };
        let hello = json!({ "type": "hello", "now": now_ms(), "head": head,
                            "resumed": resumed, "missed": count });
        // A first hello carries the number to go on from, should nothing else come.
        let at = if resumed { after.unwrap_or(head) } else { head };
        stream
            .ready
            .push_back(format!("id: {at}\ndata: {hello}\n\n"));
        if let Some((_, Read::Some { events, at })) = missed {
            stream.take(events, at);
        }
        stream
    }

    fn take(&mut self, events: Vec<(u64, super::events::Event)>, at: u64) {
        for (id, event) in events {
            self.over |= event.kind == "signed_out";
            self.ready
                .push_back(format!("id: {id}\ndata: {}\n\n", event.text()));
        }
        self.at = at;
    }

    /// The next piece of the body; none when it ends.
    async fn next(&mut self) -> Option<String> {
        loop {
            if let Some(text) = self.ready.pop_front() {
                return Some(text);
            }
            if self.over {
                return None;
            }
            tokio::select! {
                () = self.shared.tasks.stop().cancelled() => return None,
                () = sleep_until(self.beat) => {
                    self.beat = instant() + BEAT;
                    let beat = json!({ "type": "beat", "now": now_ms(), "head": self.at });
                    return Some(format!("data: {beat}\n\n"));
                }
                rung = self.bell.changed() => {
                    rung.ok()?;
                    match self.shared.events.after(self.at, &self.signed.account, &self.signed.browser) {
                        Read::Some { events, at } => self.take(events, at),
                        // Too slow for the ring: the page comes back and is told.
                        Read::Lost => return None,
                    }
                }
            }
        }
    }
}
