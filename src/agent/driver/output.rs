//! Output of running commands on its way into the journal: a bounded buffer a call, so that a
//! tool never waits and the journal is written by the driver alone.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::tools::OutputSink;

/// Bytes that wait for the journal; what comes while it is full is left out of what is watched
/// live (the whole is in the spill file) and said so.
const FULL: usize = 256 * 1024;
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
}

impl Outlet {
    pub(super) fn new(news: Arc<Notify>) -> Self {
        Self {
            waiting: Mutex::default(),
            news,
        }
    }

    /// What came since the last time.
    pub(super) fn drain(&self) -> String {
        let mut waiting = self.waiting.lock();
        if std::mem::take(&mut waiting.left_out) {
            waiting.text.push_str(LEFT_OUT);
        }
        std::mem::take(&mut waiting.text)
    }
}

impl OutputSink for Outlet {
    fn text(&self, chunk: &str) {
        let mut waiting = self.waiting.lock();
        if waiting.left_out || waiting.text.len() + chunk.len() > FULL {
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
        assert_eq!(outlet.drain(), format!("a{LEFT_OUT}"));
        outlet.text("b");
        assert_eq!(outlet.drain(), "b");
    }
}
