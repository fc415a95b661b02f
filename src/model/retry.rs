//! How often and when a model is asked again.

use std::time::Duration;

use crate::model::ModelError;
use crate::spec;

/// The pauses between tries (loop.json `retries`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// In all, the first one counted.
    pub tries: u32,
    pub first: Duration,
    pub longest: Duration,
    /// The longest that a server's own word is obeyed; past it the turn ends with that word.
    pub obeyed: Duration,
}

impl Default for Retry {
    /// As the spec says.
    fn default() -> Self {
        let retries = &spec::numbers().retries;
        Self {
            tries: u32::try_from(retries.attempts).unwrap_or(u32::MAX),
            first: retries.first,
            longest: retries.max,
            obeyed: retries.retry_after_max,
        }
    }
}

impl Retry {
    /// How long to wait before the next try when `failed` tries failed, the last with `error`;
    /// none: do not ask again. `spread` in 0.0–1.0 keeps many computers from asking at once.
    pub fn pause(&self, failed: u32, error: &ModelError, spread: f64) -> Option<Duration> {
        if failed >= self.tries || !error.passes() {
            return None;
        }
        if let Some(after) = error.after() {
            return (after <= self.obeyed).then_some(after);
        }
        let full = self
            .first
            .saturating_mul(2u32.saturating_pow(failed.saturating_sub(1)))
            .min(self.longest);
        Some(full.mul_f64(spread.clamp(0.0, 1.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(status: u16, after: Option<u64>) -> ModelError {
        ModelError::Status {
            status,
            text: String::new(),
            after: after.map(Duration::from_secs),
        }
    }

    #[test]
    fn pauses_grow_end_and_obey_the_server() {
        let retry = Retry::default();
        let pauses: Vec<_> = (1..=5)
            .map(|n| retry.pause(n, &ModelError::Cut, 1.0).map(|d| d.as_secs()))
            .collect();
        assert_eq!(pauses, [Some(1), Some(2), Some(4), Some(8), None]);
        assert_eq!(
            retry.pause(1, &status(429, Some(7)), 0.3),
            Some(Duration::from_secs(7))
        );
        assert_eq!(retry.pause(1, &status(429, Some(3601)), 0.3), None);
        assert_eq!(
            retry.pause(1, &status(503, None), 0.25),
            Some(Duration::from_millis(250))
        );
        assert_eq!(retry.pause(1, &status(401, None), 0.0), None);
        assert_eq!(retry.pause(1, &status(400, Some(1)), 0.0), None);
    }
}
