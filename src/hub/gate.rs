//! How often something may be tried: a bounded table of recent tries.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;

use crate::clock::{Instant, instant};

/// Keys that are remembered. When there are more, those whose time is over go first, and if none
/// is, new keys are refused: an attack from many addresses slows signing in, not the hub.
const MAX_KEYS: usize = 10_000;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum What {
    SignIn,
    OneTime,
    LinkCode,
    Authorize,
    /// Dials that were refused, or never came to a link: by address.
    LinkDial,
    /// Dials with a good token, by device: a computer that dials in a loop waits.
    LinkOpen,
}

impl What {
    /// Tries allowed in a stretch of time.
    fn limit(self) -> (u32, Duration) {
        match self {
            Self::SignIn => (10, Duration::from_secs(10 * 60)),
            Self::OneTime | Self::Authorize => (20, Duration::from_secs(10 * 60)),
            Self::LinkCode => (5, Duration::from_secs(10 * 60)),
            Self::LinkDial | Self::LinkOpen => (60, Duration::from_secs(60)),
        }
    }
}

struct Tries {
    count: u32,
    until: Instant,
}

type Table = HashMap<(What, String), Tries>;

/// The table. Counted are failures where there are such, and requests elsewhere.
#[derive(Default)]
pub(crate) struct Gate {
    tries: Mutex<Table>,
}

impl Gate {
    /// Counts a try before it is made, so that many at once do not all pass; otherwise how long to
    /// wait.
    pub(crate) fn take(&self, what: What, who: &str) -> Result<(), Duration> {
        let mut tries = self.tries.lock();
        Self::checked(&tries, what, who)?;
        Self::counted(&mut tries, what, who);
        Ok(())
    }

    /// Whether another try is allowed now; otherwise how long to wait.
    pub(crate) fn check(&self, what: What, who: &str) -> Result<(), Duration> {
        Self::checked(&self.tries.lock(), what, who)
    }

    /// Counts a try that failed.
    pub(crate) fn count(&self, what: What, who: &str) {
        Self::counted(&mut self.tries.lock(), what, who);
    }

    fn checked(tries: &Table, what: What, who: &str) -> Result<(), Duration> {
        let now = instant();
        match tries.get(&(what, who.to_owned())) {
            Some(t) if t.until > now && t.count >= what.limit().0 => Err(t.until - now),
            None if tries.len() >= MAX_KEYS => Err(what.limit().1),
            _ => Ok(()),
        }
    }

    fn counted(tries: &mut Table, what: What, who: &str) {
        let now = instant();
        if tries.len() >= MAX_KEYS {
            tries.retain(|_, t| t.until > now);
        }
        if tries.len() >= MAX_KEYS {
            return;
        }
        let entry = tries.entry((what, who.to_owned())).or_insert(Tries {
            count: 0,
            until: now + what.limit().1,
        });
        if entry.until <= now {
            *entry = Tries {
                count: 0,
                until: now + what.limit().1,
            };
        }
        entry.count += 1;
    }

    /// Forgets the tries of someone who got it right.
    pub(crate) fn clear(&self, what: What, who: &str) {
        self.tries.lock().remove(&(what, who.to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn five_wrong_codes_close_the_gate_until_its_time_is_over() {
        let gate = Gate::default();
        for _ in 0..5 {
            assert!(gate.check(What::LinkCode, "a").is_ok());
            gate.count(What::LinkCode, "a");
        }
        assert!(gate.check(What::LinkCode, "a").is_err());
        assert!(gate.check(What::LinkCode, "b").is_ok());
        tokio::time::advance(Duration::from_secs(601)).await;
        assert!(gate.check(What::LinkCode, "a").is_ok());
        gate.count(What::LinkCode, "a");
        assert!(gate.check(What::LinkCode, "a").is_ok());
    }

    #[test]
    fn the_table_never_grows_over_its_bound() {
        let gate = Gate::default();
        for n in 0..MAX_KEYS + 10 {
            gate.count(What::SignIn, &n.to_string());
        }
        assert_eq!(gate.tries.lock().len(), MAX_KEYS);
        assert!(gate.check(What::SignIn, "someone new").is_err());
    }
}
