//! A follower of one session: reads the journal at its own pace and holds almost nothing.

use std::collections::VecDeque;

use tokio::sync::watch;

use crate::agent::progress::Progress;
use crate::ids::Position;
use crate::session::{Event, Session, TextKind};
use crate::store::device::items::{text, text_mut};
use crate::store::item::{Body, Item};
use crate::store::journal::Journal;

/// Items read at once.
const ITEMS: usize = 64;
/// Longest piece of text in one event; what is longer comes as several.
const PIECE: usize = 64 * 1024;

/// A follower of one session.
#[derive(Debug)]
pub struct Follow {
    journal: Journal,
    /// A session that is followed stays in memory: another journal of it would not be heard.
    _session: Session,
    version: watch::Receiver<u64>,
    progress: watch::Receiver<Option<Progress>>,
    /// The end of what was handed out.
    at: Position,
    ready: VecDeque<Item>,
}

impl Follow {
    pub(super) fn new(session: Session, from: Position) -> Self {
        let mut progress = session.0.doing.watch();
        let journal = session.0.journal.clone();
        // The state as it is now is news to a new follower.
        progress.mark_changed();
        Self {
            version: journal.version(),
            journal,
            _session: session,
            progress,
            at: from,
            ready: VecDeque::new(),
        }
    }

    /// The next event; none when the session was deleted. Cancel-safe.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.take() {
                return Some(event);
            }
            // Both are marked seen before they are read, so that nothing falls in between.
            self.version.borrow_and_update();
            let items = match self.journal.read(self.at, ITEMS).await {
                Ok(items) => items?,
                Err(error) => {
                    tracing::error!(session = %self.journal.session(), %error, "cannot read the journal");
                    return None;
                }
            };
            if !items.is_empty() {
                self.ready = items;
                continue;
            }
            if self.progress.has_changed().unwrap_or(false) {
                if let Some(progress) = self.progress.borrow_and_update().clone() {
                    return Some(Event::Progress(progress));
                }
                continue;
            }
            tokio::select! {
                changed = self.version.changed() => changed.ok()?,
                changed = self.progress.changed() => {
                    changed.ok()?;
                    self.progress.mark_changed();
                }
            }
        }
    }

    /// The next event of what was read, bounded in length.
    fn take(&mut self) -> Option<Event> {
        let item = self.ready.front()?;
        let Some(whole) = text(&item.body) else {
            let item = self.ready.pop_front()?;
            self.at = item.position();
            return Some(Event::Item(item));
        };
        let known = if item.seq == self.at.seq {
            // A position of somebody else's may lie inside a character.
            let known = usize::try_from(self.at.at).unwrap_or(usize::MAX);
            whole.floor_char_boundary(known.min(whole.len()))
        } else {
            0
        };
        let to = whole.floor_char_boundary((known + PIECE).min(whole.len()));
        let piece = whole.get(known..to).unwrap_or_default().to_owned();
        let end = Position {
            seq: item.seq,
            at: to as u64,
        };
        let all = to == whole.len();
        let event = if known == 0 {
            let mut first = item.clone();
            if let Some(text) = text_mut(&mut first.body) {
                *text = piece;
            }
            Event::Item(first)
        } else {
            Event::Text {
                to: end,
                kind: kind(&item.body),
                chunk: piece,
            }
        };
        self.at = end;
        if all {
            self.ready.pop_front();
        }
        Some(event)
    }
}

fn kind(body: &Body) -> TextKind {
    match body {
        Body::Thought { .. } => TextKind::Thought,
        Body::Output { call, .. } => TextKind::Output(call.clone()),
        _ => TextKind::Message,
    }
}
