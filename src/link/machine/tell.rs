//! How long to wait, and what is told and logged of it.

use std::time::Duration;

use super::{Action, At, Machine, Now};
use crate::link::state::Phase;

/// Full jitter in [0, min(MOST, STEP · 2ⁿ)], and a shorter stretch of it at first: most outages are
/// of seconds, and are over soon after they end only when they are looked at often.
const STEP: Duration = Duration::from_millis(500);
const MOST: Duration = Duration::from_secs(30);
/// So many tries after the first wait twice the step at most, before the doubling goes on.
const BRISK: u32 = 3;
/// A new reason of the same state is logged at most this often.
const QUIET: Duration = Duration::from_secs(5 * 60);

impl Machine {
    pub(super) fn fail(&mut self, text: String, now: Now, out: &mut Vec<Action>) {
        let doubled = match self.failures {
            0 => 0,
            n => n.saturating_sub(BRISK - 1).clamp(1, 16),
        };
        let factor = 2_u32.saturating_pow(doubled);
        let most = STEP.saturating_mul(factor).min(MOST);
        self.failures = self.failures.saturating_add(1);
        let wait = most.mul_f64(now.draw.clamp(0.0, 1.0));
        self.wait(wait, false, Phase::Offline, text, now, out);
    }

    /// A wait that the other side asked for, with a little jitter behind it so that not all come
    /// at once.
    pub(super) fn obey(&mut self, wait: Duration, text: String, now: Now, out: &mut Vec<Action>) {
        let wait = wait.min(Duration::from_secs(60 * 60));
        let spread = (wait / 10).clamp(Duration::from_secs(1), MOST);
        let wait = wait + spread.mul_f64(now.draw.clamp(0.0, 1.0));
        self.wait(wait, true, Phase::Offline, text, now, out);
    }

    pub(super) fn look_later(
        &mut self,
        phase: Phase,
        text: String,
        every: Duration,
        now: Now,
        out: &mut Vec<Action>,
    ) {
        self.wait(every, true, phase, text, now, out);
    }

    fn wait(
        &mut self,
        wait: Duration,
        hold: bool,
        phase: Phase,
        text: String,
        now: Now,
        out: &mut Vec<Action>,
    ) {
        let until = now.at + wait;
        self.at = At::Waiting { until, hold };
        let millis = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
        let next = now.wall.saturating_add(millis);
        self.tell(phase, text, Some(next), now, out);
    }

    pub(super) fn tell(
        &mut self,
        phase: Phase,
        reason: String,
        next_try: Option<i64>,
        now: Now,
        out: &mut Vec<Action>,
    ) {
        let off = |phase| matches!(phase, Phase::Dialling | Phase::Offline);
        let before = self.state.phase;
        if before != phase && !(off(before) && off(phase)) || self.state.since == 0 {
            self.state.since = now.wall;
        }
        self.state.phase = phase;
        self.state.reason = reason;
        self.state.next_try = next_try;
        out.push(Action::Tell(self.state.clone()));
        self.log(now, out);
    }

    /// One line a state, not one a try.
    fn log(&mut self, now: Now, out: &mut Vec<Action>) {
        let phase = self.state.phase;
        if phase == Phase::Dialling {
            return;
        }
        let reason = &self.state.reason;
        let say = match &self.logged {
            Some((logged, why, at)) if *logged == phase => {
                why != reason && now.at.saturating_duration_since(*at) >= QUIET
            }
            _ => true,
        };
        if !say {
            return;
        }
        self.logged = Some((phase, reason.clone(), now.at));
        let text = if reason.is_empty() {
            format!("link: {phase}")
        } else {
            format!("link: {phase}: {reason}")
        };
        let bad = !matches!(phase, Phase::Linked | Phase::Never);
        out.push(Action::Log { text, bad });
    }
}
