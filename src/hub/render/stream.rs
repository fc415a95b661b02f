//! Markdown while it is being written: only what changed is drawn again.
//!
//! A block is final once another begins after it. The tail, from the last block on, is parsed with
//! every paint; what is sent is how many blocks stay and the ones that follow.

use std::sync::Arc;
use std::time::Duration;

use super::markdown;
use crate::clock::Instant;

/// A long last block is painted less often: it is sent whole each time.
const LONG: usize = 4 * 1024;
const VERY_LONG: usize = 64 * 1024;

/// One streamed text and what is drawn of it.
#[derive(Debug)]
pub(crate) struct Stream {
    text: String,
    /// Blocks before this byte are final.
    fixed_to: usize,
    fixed: usize,
    shown: Vec<Arc<str>>,
    /// Bytes of what every paint draws again, at the last one. What came since does not count: much
    /// of it may be blocks that are drawn once.
    tail: usize,
    /// When the next paint is due; none while all is drawn.
    due: Option<Instant>,
    painted: Option<Instant>,
}

/// What a page does: keep the first `keep` blocks, put `html` after them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Paint {
    pub(crate) keep: usize,
    pub(crate) html: Vec<Arc<str>>,
    /// Bytes of the text that are drawn.
    pub(crate) at: u64,
}

impl Stream {
    /// Starts with what is there already.
    pub(crate) fn new(text: String) -> Self {
        let mut stream = Self {
            text,
            fixed_to: 0,
            fixed: 0,
            shown: Vec::new(),
            tail: 0,
            due: None,
            painted: None,
        };
        stream.draw();
        stream
    }

    pub(crate) fn push(&mut self, chunk: &str) {
        self.text.push_str(chunk);
        let rest = match self.tail {
            n if n > VERY_LONG => Duration::from_millis(500),
            n if n > LONG => Duration::from_millis(100),
            _ => Duration::from_millis(15),
        };
        let at = self
            .painted
            .map_or_else(crate::clock::instant, |p| p + rest);
        self.due.get_or_insert(at);
    }

    pub(crate) fn len(&self) -> u64 {
        self.text.len() as u64
    }

    /// When the next paint is due, if there is something to paint: at once for short blocks.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// What changed since the last paint.
    pub(crate) fn paint(&mut self, now: Instant) -> Option<Paint> {
        self.due.take()?;
        self.painted = Some(now);
        let before = self.shown.clone();
        self.draw();
        let keep = before
            .iter()
            .zip(&self.shown)
            .take_while(|(a, b)| a == b)
            .count();
        if keep == before.len() && keep == self.shown.len() {
            return None;
        }
        Some(Paint {
            keep,
            html: self.shown.iter().skip(keep).cloned().collect(),
            at: self.len(),
        })
    }

    fn draw(&mut self) {
        let tail = self.text.get(self.fixed_to..).unwrap_or_default();
        let blocks = markdown::parse(tail, false);
        self.shown.truncate(self.fixed);
        let from = self.fixed_to;
        let mut last = blocks.len().saturating_sub(1);
        // A block whose first line is not whole may yet turn out to belong to the one before it.
        let whole = |b: &markdown::Block| tail.get(b.start..).is_some_and(|t| t.contains('\n'));
        if last > 0 && !blocks.get(last).is_some_and(whole) {
            last -= 1;
        }
        for (n, block) in blocks.into_iter().enumerate() {
            if n == last {
                self.fixed_to = from + block.start;
                self.fixed = self.shown.len();
            }
            self.shown.push(block.html.into());
        }
        self.tail = self.text.len() - self.fixed_to;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_it_is_cut_the_page_ends_with_the_same_blocks() {
        let text = "First *words*.\n\n- a\n- b\n\n  more of b\n- c\n\n```rust\nfn main() {}\n\nlet x = 1;\n```\n\nAfter.\n\n1. x\n2. y\n\n> quote\n> more\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nEnd ünd `code`.";
        let want = markdown::blocks(text);
        for step in [1, 2, 3, 7, 50] {
            let mut stream = Stream::new(String::new());
            let mut page: Vec<Arc<str>> = vec![];
            let chars: Vec<char> = text.chars().collect();
            let mut painted = 0;
            for chunk in chars.chunks(step) {
                stream.push(&chunk.iter().collect::<String>());
                if let Some(paint) = stream.paint(crate::clock::instant()) {
                    page.truncate(paint.keep);
                    painted += paint.html.iter().map(|h| h.len()).sum::<usize>();
                    page.extend(paint.html);
                }
            }
            let got: Vec<String> = page.iter().map(ToString::to_string).collect();
            assert_eq!(got, want, "step {step}");
            assert!(painted < 100_000);
        }
    }

    #[test]
    fn only_a_long_block_is_painted_less_often() {
        let mut stream = Stream::new("one\n\n".to_owned());
        let now = crate::clock::instant();
        stream.push("two");
        stream.paint(now);
        stream.push(&"some words\n\n".repeat(1_000));
        assert_eq!(stream.due(), Some(now + Duration::from_millis(15)));
        stream.paint(now);
        stream.push(&"words ".repeat(1_000));
        stream.paint(now);
        stream.push("more");
        assert_eq!(stream.due(), Some(now + Duration::from_millis(100)));
    }

    #[test]
    fn an_open_code_block_looks_like_code_from_the_start() {
        let stream = Stream::new("```python\nprint(".to_owned());
        assert!(
            stream.shown[0].starts_with("<div class=\"block\">"),
            "{:?}",
            stream.shown
        );
    }
}
