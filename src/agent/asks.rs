//! Answers, and how long questions wait.
//!
//! A wait runs on time that counts sleep and is kept as what is left of it. It starts when the
//! instance acknowledged the ask, at the latest six hours after it was made (link.md, Asks).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::clock;
use crate::ids::{AskId, Digest};
use crate::permission::Origin;
use crate::store::item::{Scope, Settled};

/// Open asks in one session; the next ones of a step are made as these are answered.
pub const SESSION_ASKS: usize = 3;
/// Open asks on this computer; further ones wait for a place.
pub const DEVICE_ASKS: usize = 20;
/// A wait that nobody acknowledged starts by itself after this.
pub const UNHEARD: Duration = Duration::from_secs(6 * 60 * 60);

/// An answer to an ask.
#[derive(Clone, Debug)]
pub struct Answer {
    pub ask: AskId,
    /// Of what the person saw; must be what was judged.
    pub digest: Digest,
    pub outcome: Outcome,
    pub scope: Scope,
    pub note: Option<String>,
    /// Of a question of the agent: the ids of what was chosen.
    pub selected: Vec<String>,
    /// Where it came from: an answer over the link counts only as far as `remote.approvals` says.
    pub origin: Origin,
    /// In words: `you, on this computer`, `ana, on the page`.
    pub by: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Allow,
    Refuse,
    /// Closed without an answer, by a client that answers the request itself (Q4).
    #[serde(skip_deserializing)]
    Cancel,
}

/// Why an answer did not count.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum AnswerError {
    #[error("it is settled already: {how:?} by {by}")]
    Settled { how: Settled, by: String, at: i64 },
    #[error("what would run is not what was shown")]
    Changed,
    #[error("no such question is open")]
    Unknown,
    #[error("answers to this question count only when given on this computer: lembas asks")]
    LocalOnly,
    #[error("this computer does not take \"{0:?}\" from an instance for this question")]
    Scope(Scope),
    #[error("{0}")]
    Choice(String),
    #[error("cannot save")]
    Store(String),
}

#[derive(Clone, Debug)]
struct Wait {
    /// What was left when it was last saved; none: no deadline.
    left: Option<Duration>,
    /// Since when it runs, on [`clock::boottime`].
    since: Option<Duration>,
    /// When it was made, on the same clock.
    made: Duration,
}

impl Wait {
    /// Since when it runs: from being heard, or from the latest moment for that on.
    fn began(&self, now: Duration) -> Option<Duration> {
        self.since.or_else(|| {
            let latest = self.made + UNHEARD;
            (latest <= now).then_some(latest)
        })
    }

    fn left(&self, now: Duration) -> Option<Duration> {
        let left = self.left?;
        let gone = self
            .began(now)
            .map_or(Duration::ZERO, |s| now.saturating_sub(s));
        Some(left.saturating_sub(gone))
    }

    /// When it should be looked at again: none, when it has no end or does not run yet.
    fn due(&self, now: Duration) -> Option<Duration> {
        self.began(now)?;
        self.left(now)
    }
}

/// The waits of all open asks of a registry. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Waits {
    open: Arc<Mutex<HashMap<AskId, Wait>>>,
    changed: watch::Sender<u64>,
}

impl Waits {
    /// An ask is open. `age`: how long ago it was made.
    pub fn open(&self, ask: AskId, left_ms: Option<u64>, runs: bool, age: Duration) {
        let now = clock::boottime();
        let wait = Wait {
            left: left_ms.map(Duration::from_millis),
            since: runs.then_some(now),
            made: now.saturating_sub(age),
        };
        self.open.lock().insert(ask, wait);
    }

    pub fn is_open(&self, ask: &AskId) -> bool {
        self.open.lock().contains_key(ask)
    }

    pub fn close(&self, ask: &AskId) {
        self.open.lock().remove(ask);
    }

    /// The wait runs from now on. Answers what is left of it, when that is new.
    pub fn heard(&self, ask: &AskId) -> Option<Option<Duration>> {
        let mut open = self.open.lock();
        let wait = open.get_mut(ask).filter(|w| w.since.is_none())?;
        let now = clock::boottime();
        wait.left = wait.left(now);
        wait.since = Some(now);
        let left = wait.left;
        drop(open);
        self.changed.send_modify(|n| *n = n.wrapping_add(1));
        Some(left)
    }

    /// Has an ask wait `time` from now on, never past `longest` after it was made and never less
    /// than it does. None: it is not open. Without a deadline it keeps having none.
    pub fn extend(
        &self,
        ask: &AskId,
        time: Duration,
        longest: Duration,
    ) -> Option<Option<Duration>> {
        let mut open = self.open.lock();
        let wait = open.get_mut(ask)?;
        let now = clock::boottime();
        let Some(left) = wait.left(now) else {
            return Some(None);
        };
        let most = (wait.made + longest).saturating_sub(now);
        let longer = time.min(most).max(left);
        wait.left = Some(longer);
        if wait.since.is_some() {
            wait.since = Some(now);
        }
        drop(open);
        self.changed.send_modify(|n| *n = n.wrapping_add(1));
        Some(Some(longer))
    }

    /// What is left of an ask's wait: none where it has no end or is not open.
    pub fn left(&self, ask: &AskId) -> Option<Duration> {
        self.open.lock().get(ask)?.left(clock::boottime())
    }

    /// What is left of a wait that runs: zero when it is over. None where it has no end or does
    /// not run yet.
    pub fn due(&self, ask: &AskId) -> Option<Duration> {
        self.open.lock().get(ask)?.due(clock::boottime())
    }

    /// Whether the wait runs.
    pub fn runs(&self, ask: &AskId) -> bool {
        self.open.lock().get(ask).is_some_and(|w| w.since.is_some())
    }

    /// Marked changed whenever a wait was.
    pub fn changed(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    #[test]
    fn a_wait_runs_from_being_heard_or_from_six_hours_on() {
        let wait = |since| Wait {
            left: Some(secs(100)),
            since,
            made: secs(1000),
        };
        assert_eq!(wait(None).left(secs(5000)), Some(secs(100)));
        assert_eq!(wait(None).due(secs(5000)), None);
        assert_eq!(wait(Some(secs(2000))).due(secs(9000)), Some(secs(0)));
        assert_eq!(wait(Some(secs(2000))).left(secs(2030)), Some(secs(70)));
        assert_eq!(wait(Some(secs(2000))).left(secs(9000)), Some(secs(0)));
        let late = secs(1000) + UNHEARD;
        assert_eq!(wait(None).left(late + secs(40)), Some(secs(60)));
        assert_eq!(wait(None).left(late + secs(400)), Some(secs(0)));
    }

    #[test]
    fn extending_counts_from_now_and_is_bounded() {
        let waits = Waits::default();
        let (a, b) = (AskId::new("a"), AskId::new("b"));
        let about =
            |left: Option<Option<Duration>>| left.flatten().map(|l| l.as_secs_f64().round());
        waits.open(a.clone(), Some(60_000), false, secs(100));
        waits.open(b.clone(), None, false, secs(0));
        assert_eq!(about(waits.extend(&a, secs(90), secs(3600))), Some(90.0));
        assert_eq!(
            about(waits.extend(&a, secs(30), secs(3600))),
            Some(90.0),
            "never less"
        );
        let most = waits.extend(&a, secs(9999), secs(3600));
        assert_eq!(about(most), Some(3500.0), "since it was made");
        assert_eq!(
            waits.extend(&b, secs(30), secs(3600)),
            Some(None),
            "no deadline"
        );
        assert_eq!(about(waits.heard(&a)), Some(3500.0));
        assert_eq!(waits.heard(&a), None);
        waits.close(&a);
        assert!(!waits.is_open(&a));
        assert_eq!(waits.left(&a), None);
        assert_eq!(waits.extend(&a, secs(30), secs(3600)), None, "not open");
    }
}
