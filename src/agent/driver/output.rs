//! Output of running commands on its way into the journal: a bounded buffer a call, so that a
//! tool never waits and the journal is written by the driver alone.
//!
//! The journal holds the beginning of an output whole; what comes after that is shown live, a little
//! of its end each second. All of it is in the spill file.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::clock::{self, Instant};
use crate::text::cut;
use crate::tools::OutputSink;

/// Bytes that wait for the journal; what comes while it is full is left out of what is watched
/// live and said so.
const FULL: usize = 256 * 1024;
/// Bytes of a call's output that the journal takes as they come.
const FIRST: usize = 1024 * 1024;
/// Past them: so many of the newest bytes, so often.
const LATEST: usize = 4 * 1024;
const OFTEN: Duration = Duration::from_secs(1);
const LEFT_OUT: &str = "\n[… output left out here: it came faster than it could be kept …]\n";

/// The sink of one call.
#[derive(Debug)]
pub(super) struct Outlet {
    waiting: Mutex<Waiting>,
    news: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Waiting {
    text: String,
    left_out: bool,
    /// Bytes that the journal has taken, and whether that is all it takes as it comes.
    taken: usize,
    past: bool,
    /// The newest that came past [`FIRST`].
    latest: String,
    told: Option<Instant>,
}

impl Outlet {
    pub(super) fn new(news: Arc<Notify>) -> Self {
        Self {
            waiting: Mutex::default(),
            news,
        }
    }

    /// What came since the last time. `ended`: no more will come.
    pub(super) fn drain(&self, ended: bool) -> String {
        let mut waiting = self.waiting.lock();
        let now = clock::instant();
        let due = waiting.told.is_none_or(|told| now >= told + OFTEN);
        let mut text = std::mem::take(&mut waiting.text);
        if waiting.latest.is_empty() || ended || due {
            if std::mem::take(&mut waiting.left_out) {
                text.push_str(LEFT_OUT);
            }
            if !waiting.latest.is_empty() {
                text.push_str(&std::mem::take(&mut waiting.latest));
                waiting.told = Some(now);
            }
        }
        waiting.taken = waiting.taken.saturating_add(text.len());
        text
    }

    /// When what waits may be told, where that is not at once.
    pub(super) fn due(&self) -> Option<Duration> {
        let waiting = self.waiting.lock();
        let at = waiting.told.filter(|_| !waiting.latest.is_empty())? + OFTEN;
        Some(at.saturating_duration_since(clock::instant()))
    }
}

impl OutputSink for Outlet {
    fn text(&self, chunk: &str) {
        let mut waiting = self.waiting.lock();
        waiting.past |= waiting.taken + waiting.text.len() + chunk.len() > FIRST;
        if waiting.past {
            waiting.latest.push_str(cut::suffix(chunk, LATEST));
            if waiting.latest.len() > LATEST || chunk.len() > LATEST {
                waiting.latest = cut::suffix(&waiting.latest, LATEST).to_owned();
                waiting.left_out = true;
            }
        } else if waiting.left_out || waiting.text.len() + chunk.len() > FULL {
            waiting.left_out = true;
        } else {
            waiting.text.push_str(chunk);
        }
        drop(waiting);
        self.news.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_outlet_says_that_something_is_missing() {
        let outlet = Outlet::new(Arc::default());
        outlet.text("a");
        outlet.text(&"x".repeat(FULL));
        outlet.text("lost");
        assert_eq!(outlet.drain(false), format!("a{LEFT_OUT}"));
        outlet.text("b");
        assert_eq!(outlet.drain(false), "b");
    }

    #[tokio::test(start_paused = true)]
    async fn past_its_beginning_an_output_is_told_by_its_end() {
        let outlet = Outlet::new(Arc::default());
        let chunk = format!("{}\n", "x".repeat(63 * 1024));
        let mut told = 0;
        for _ in 0..1_000 {
            outlet.text(&chunk);
            told += outlet.drain(false).len();
        }
        // 63 MB came in no time: the beginning, one look at what came after, and no more.
        assert!(told <= FIRST + LATEST + LEFT_OUT.len(), "{told}");
        tokio::time::advance(OFTEN).await;
        outlet.text("the newest");
        let next = outlet.drain(false);
        assert!(next.starts_with(LEFT_OUT) && next.ends_with("the newest"));
        outlet.text("the last");
        assert_eq!(outlet.drain(false), "");
        assert_eq!(outlet.drain(true), "the last");
    }
}
