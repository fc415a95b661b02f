//! How much was read, counted in characters that were gone over: what bounds both readers.
//!
//! Time would say nothing on a busy computer, and the same text would be understood today and not
//! tomorrow. Each function that goes over text counts it, again each time, so that reading that is
//! not linear is seen and ended, whatever shape of text brings it about.

use std::cell::Cell;

thread_local! {
    static STEPS: Cell<u64> = const { Cell::new(0) };
}

/// Counts steps of this thread.
pub(crate) fn add(steps: usize) {
    STEPS.set(STEPS.get().wrapping_add(steps as u64));
}

/// Steps of this thread so far.
pub(crate) fn steps() -> u64 {
    STEPS.get()
}

/// A number of steps from now on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bound {
    began: u64,
    most: u64,
}

impl Bound {
    pub(crate) fn of(most: u64) -> Self {
        Self {
            began: steps(),
            most,
        }
    }

    /// Whether more was read than that.
    pub(crate) fn over(self) -> bool {
        steps().wrapping_sub(self.began) > self.most
    }
}
