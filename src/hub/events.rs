//! What happened, in order, for every page that looks: a ring with numbers.
//!
//! A page that was away asks for what came after its last number. Numbers go on across restarts of
//! the hub, so an old one is never taken for a new one; what the ring no longer has is said, and
//! the page then reads the state anew.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;

/// Events that are kept.
const MAX_EVENTS: usize = 10_000;
/// Bytes that are kept; whichever bound is met first drops the oldest.
const MAX_BYTES: usize = 32 * 1024 * 1024;

/// Who hears an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Audience {
    Account(String),
    /// One signed-in browser: that it is signed out.
    Browser {
        account: String,
        browser: String,
    },
}

impl Audience {
    fn hears(&self, who: &str, at: &str) -> bool {
        match self {
            Self::Account(account) => account == who,
            Self::Browser { account, browser } => account == who && browser == at,
        }
    }
}

/// One event. Where a later one of the same key says all that an earlier one said, a page that is
/// behind gets only the later.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Event {
    pub(crate) kind: &'static str,
    pub(crate) key: Option<String>,
    pub(crate) body: Body,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Body {
    /// A JSON object with its `type`.
    Json(Arc<str>),
    /// Streamed markdown: keep the first `keep` blocks of the item, put `html` after them.
    Blocks {
        chat: Arc<str>,
        seq: u64,
        keep: usize,
        html: Vec<Arc<str>>,
        at: u64,
    },
}

impl Event {
    /// An event whose data is an object; `type` is added.
    pub(crate) fn json(kind: &'static str, key: Option<String>, mut data: Value) -> Self {
        if let Some(map) = data.as_object_mut() {
            map.insert("type".to_owned(), kind.into());
        }
        Self {
            kind,
            key,
            body: Body::Json(data.to_string().into()),
        }
    }

    /// As it goes over the wire.
    pub(crate) fn text(&self) -> String {
        match &self.body {
            Body::Json(text) => text.to_string(),
            Body::Blocks {
                chat,
                seq,
                keep,
                html,
                at,
            } => {
                let html: Vec<&str> = html.iter().map(|h| &**h).collect();
                json!({ "type": self.kind, "chat": &**chat, "seq": seq, "keep": keep,
                        "html": html, "at": at })
                .to_string()
            }
        }
    }

    fn bytes(&self) -> usize {
        64 + match &self.body {
            Body::Json(text) => text.len(),
            Body::Blocks { html, .. } => html.iter().map(|h| h.len() + 16).sum(),
        }
    }
}

struct Ring {
    /// Number of the next event.
    next: u64,
    bytes: usize,
    events: VecDeque<(Audience, Event)>,
}

/// The ring and its bell.
pub(crate) struct Events {
    ring: Mutex<Ring>,
    head: watch::Sender<u64>,
}

/// What a reader gets.
#[derive(Debug, PartialEq)]
pub(crate) enum Read {
    /// Events with their numbers, joined where that loses nothing, and where to read on.
    Some { events: Vec<(u64, Event)>, at: u64 },
    /// The reader is behind what is kept, or ahead of what there is.
    Lost,
}

impl Events {
    /// An empty ring whose numbers start after `base`.
    pub(crate) fn new(base: u64) -> Self {
        Self {
            ring: Mutex::new(Ring {
                next: base + 1,
                bytes: 0,
                events: VecDeque::new(),
            }),
            head: watch::Sender::new(base),
        }
    }

    pub(crate) fn emit(&self, to: Audience, event: Event) {
        let head = {
            let mut ring = self.ring.lock();
            ring.bytes += event.bytes();
            ring.events.push_back((to, event));
            while ring.events.len() > MAX_EVENTS || ring.bytes > MAX_BYTES {
                let Some((_, old)) = ring.events.pop_front() else {
                    break;
                };
                ring.bytes -= old.bytes();
            }
            let head = ring.next;
            ring.next += 1;
            head
        };
        self.head.send_replace(head);
    }

    /// The number of the newest event.
    pub(crate) fn head(&self) -> u64 {
        *self.head.borrow()
    }

    /// Rings when there is something new.
    pub(crate) fn bell(&self) -> watch::Receiver<u64> {
        self.head.subscribe()
    }

    /// What came after a number for one browser.
    pub(crate) fn after(&self, after: u64, account: &str, browser: &str) -> Read {
        let ring = self.ring.lock();
        let first = ring.next - ring.events.len() as u64;
        if after + 1 < first || after >= ring.next {
            return Read::Lost;
        }
        let skip = usize::try_from(after + 1 - first).unwrap_or(usize::MAX);
        let events = ring
            .events
            .iter()
            .enumerate()
            .skip(skip)
            .filter(|(_, (to, _))| to.hears(account, browser))
            .map(|(n, (_, event))| (first + n as u64, event.clone()))
            .collect();
        let at = ring.next - 1;
        drop(ring);
        Read::Some {
            events: join(events),
            at,
        }
    }
}

/// Joins what a later event makes needless.
fn join(events: Vec<(u64, Event)>) -> Vec<(u64, Event)> {
    let mut kept: Vec<Option<(u64, Event)>> = Vec::with_capacity(events.len());
    let mut last: HashMap<String, usize> = HashMap::new();
    for (id, mut event) in events {
        if let Some(key) = &event.key {
            if let Some((_, old)) = last.get(key).and_then(|n| kept.get_mut(*n)?.take()) {
                event = over(old, event);
            }
            last.insert(event.key.clone().unwrap_or_default(), kept.len());
        }
        kept.push(Some((id, event)));
    }
    kept.into_iter().flatten().collect()
}

/// One event that does what two did one after the other.
fn over(old: Event, new: Event) -> Event {
    match (old.body, new.body) {
        (
            Body::Blocks {
                keep: keep_old,
                html: html_old,
                ..
            },
            Body::Blocks {
                chat,
                seq,
                keep,
                html,
                at,
            },
        ) if keep > keep_old => {
            let mut joined: Vec<Arc<str>> = html_old.into_iter().take(keep - keep_old).collect();
            joined.extend(html);
            Event {
                kind: new.kind,
                key: new.key,
                body: Body::Blocks {
                    chat,
                    seq,
                    keep: keep_old,
                    html: joined,
                    at,
                },
            }
        }
        (_, body) => Event {
            kind: new.kind,
            key: new.key,
            body,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to() -> Audience {
        Audience::Account("a".into())
    }

    fn md(keep: usize, html: &[&str]) -> Event {
        Event {
            kind: "md",
            key: Some("md:c:1".into()),
            body: Body::Blocks {
                chat: "c".into(),
                seq: 1,
                keep,
                html: html.iter().map(|h| Arc::from(*h)).collect(),
                at: 0,
            },
        }
    }

    fn read(events: &Events, after: u64) -> Vec<(u64, Event)> {
        match events.after(after, "a", "b") {
            Read::Some { events, .. } => events,
            Read::Lost => panic!("lost"),
        }
    }

    #[test]
    fn a_reader_goes_on_where_it_was_and_learns_when_it_cannot() {
        let events = Events::new(100);
        for n in 0..3 {
            events.emit(to(), Event::json("x", None, json!({ "n": n })));
        }
        assert_eq!(events.head(), 103);
        assert_eq!(read(&events, 101).len(), 2);
        assert_eq!(read(&events, 100).len(), 3);
        assert_eq!(read(&events, 103), vec![]);
        assert_eq!(events.after(99, "a", "b"), Read::Lost, "before this start");
        assert_eq!(events.after(104, "a", "b"), Read::Lost, "ahead of us");
        assert!(
            matches!(events.after(100, "other", "b"), Read::Some { events, .. } if events.is_empty())
        );
    }

    #[test]
    fn the_ring_keeps_its_bounds() {
        let events = Events::new(0);
        let big = "x".repeat(1024 * 1024);
        for _ in 0..40 {
            events.emit(to(), Event::json("x", None, json!({ "big": big })));
        }
        assert!(events.ring.lock().bytes <= MAX_BYTES);
        assert_eq!(events.after(1, "a", "b"), Read::Lost);
        for _ in 0..MAX_EVENTS + 5 {
            events.emit(to(), Event::json("x", None, json!({})));
        }
        assert_eq!(events.ring.lock().events.len(), MAX_EVENTS);
    }

    /// What a page shows after events, by the rule of `md`.
    fn play(mut page: Vec<String>, events: &[(u64, Event)]) -> Vec<String> {
        for (_, event) in events {
            if let Body::Blocks { keep, html, .. } = &event.body {
                page.truncate(*keep);
                page.extend(html.iter().map(ToString::to_string));
            }
        }
        page
    }

    #[test]
    fn joined_blocks_leave_the_page_as_single_ones_would() {
        let stream = [
            md(0, &["a"]),
            md(0, &["ab"]),
            md(1, &["c"]),
            md(1, &["cd", "e"]),
            md(2, &["ef"]),
            md(1, &["q", "r", "s"]),
            md(3, &["t"]),
        ];
        for cut in 0..stream.len() {
            let single: Vec<_> = stream
                .iter()
                .cloned()
                .enumerate()
                .map(|(n, e)| (n as u64, e))
                .collect();
            let (first, rest) = single.split_at(cut);
            let page = play(vec![], first);
            let joined = join(rest.to_vec());
            assert!(joined.len() <= 1);
            assert_eq!(play(page, &joined), play(vec![], &single), "cut at {cut}");
        }
    }
}
