//! The live end of a journal, in memory: the last items, of which only the very last may be open.
//!
//! Pure: no disk, no waiting. What is dropped from here is on the disk whole.

use std::collections::VecDeque;

use crate::ids::{Position, Seq};
use crate::store::device::items::{text, text_mut};
use crate::store::item::Item;
use crate::store::journal::Stream;

/// At most this many items and bytes stay in memory while a turn runs; followers that are
/// further behind read from the disk.
const KEEP: (usize, usize) = (256, 512 * 1024);
/// The same between turns.
const KEEP_IDLE: (usize, usize) = (8, 8 * 1024);

#[derive(Debug)]
pub struct Tail {
    items: VecDeque<Item>,
    bytes: usize,
    /// Every item from this number on is here.
    from: Seq,
    /// Where the items before `from` end, when it is known.
    floor: Option<Position>,
    open: bool,
    /// Bytes of the last item's text that are on the disk.
    saved: usize,
    deleted: bool,
}

/// What a follower at some position finds.
#[derive(Debug)]
pub enum Read {
    Items(VecDeque<Item>),
    /// What follows may be on the disk, before this number.
    Older {
        before: Seq,
    },
    Deleted,
}

fn weight(item: &Item) -> usize {
    // Bodies without streamed text are small but for arguments and results, which are bounded.
    text(&item.body).map_or(512, |t| 256 + t.len())
}

impl Tail {
    pub fn new(from: Seq) -> Self {
        Self {
            items: VecDeque::new(),
            bytes: 0,
            from,
            floor: None,
            open: false,
            saved: 0,
            deleted: false,
        }
    }

    /// Adds to the open item. False when there is none of that stream, or it has its full length.
    pub fn grow(&mut self, stream: &Stream, chunk: &str, cap: usize) -> bool {
        if !self.open {
            return false;
        }
        let Some(last) = self.items.back_mut() else {
            return false;
        };
        if Stream::of(&last.body).as_ref() != Some(stream) {
            return false;
        }
        let Some(text) = text_mut(&mut last.body) else {
            return false;
        };
        if text.len() + chunk.len() > cap {
            return false;
        }
        text.push_str(chunk);
        self.bytes += chunk.len();
        true
    }

    /// Opens a streamed item; the one before is closed and on the disk.
    pub fn open(&mut self, item: Item) {
        self.push([item]);
        self.open = true;
        self.saved = 0;
    }

    pub fn close(&mut self) {
        self.open = false;
        self.saved = 0;
    }

    pub fn push(&mut self, items: impl IntoIterator<Item = Item>) {
        for item in items {
            self.bytes += weight(&item);
            self.items.push_back(item);
        }
        self.trim(KEEP);
    }

    /// The open item, when it has text that is not on the disk.
    pub fn unsaved(&self) -> Option<Item> {
        let last = self.items.back().filter(|_| self.open)?;
        (text(&last.body)?.len() > self.saved).then(|| last.clone())
    }

    /// Bytes of the open item that are on the disk.
    pub fn saved_bytes(&self) -> usize {
        self.saved
    }

    /// The open item is on the disk up to there.
    pub fn saved(&mut self, to: Position) {
        if self.open && self.items.back().is_some_and(|i| i.seq == to.seq) {
            self.saved = usize::try_from(to.at).unwrap_or(usize::MAX);
        }
    }

    pub fn trim_idle(&mut self) {
        self.trim(KEEP_IDLE);
    }

    fn trim(&mut self, (count, bytes): (usize, usize)) {
        while self.items.len() > 1 && (self.items.len() > count || self.bytes > bytes) {
            let Some(gone) = self.items.pop_front() else {
                return;
            };
            self.bytes = self.bytes.saturating_sub(weight(&gone));
            self.floor = Some(gone.position());
            if let Some(first) = self.items.front() {
                self.from = first.seq;
            }
        }
    }

    pub fn delete(&mut self) {
        self.deleted = true;
    }

    /// What follows `after`, at most `limit` items, each from its beginning.
    pub fn read(&self, after: Position, limit: usize) -> Read {
        if self.deleted {
            return Read::Deleted;
        }
        let here = after.seq >= self.from || self.floor.is_some_and(|floor| after >= floor);
        if !here {
            return Read::Older { before: self.from };
        }
        // From the back: a follower that keeps up is a step behind, not two hundred.
        let first = self
            .items
            .iter()
            .rposition(|i| i.position() <= after)
            .map_or(0, |n| n + 1);
        Read::Items(self.items.iter().skip(first).take(limit).cloned().collect())
    }

    /// The disk has nothing between `after` and the items from `before` on.
    pub fn nothing_between(&mut self, after: Position, before: Seq) {
        if self.from == before {
            self.floor = Some(after);
        }
    }
}
