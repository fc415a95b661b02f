//! The one place that reads clocks. Tests pause tokio's time; wall time then follows it.

use std::time::Duration;

use jiff::Timestamp;

pub use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

/// Wall-clock time, milliseconds since the epoch: what journals, progress and the wire carry.
pub fn now_ms() -> i64 {
    now().as_millisecond()
}

/// Wall-clock time.
#[expect(clippy::disallowed_methods, reason = "this is the clock module")]
pub fn now() -> Timestamp {
    Timestamp::now()
}

/// Monotonic time, which tests can pause.
#[expect(clippy::disallowed_methods, reason = "this is the clock module")]
pub fn instant() -> Instant {
    Instant::now()
}

/// Time since boot that counts sleep: waits a person gave run on this.
pub fn boottime() -> Duration {
    #[cfg(target_os = "linux")]
    let clock = rustix::time::ClockId::Boottime;
    #[cfg(not(target_os = "linux"))]
    let clock = rustix::time::ClockId::Monotonic;
    read(clock)
}

/// Time that this thread has worked: a machine that is busy with other things does not count.
pub fn worked() -> Duration {
    read(rustix::time::ClockId::ThreadCPUTime)
}

fn read(clock: rustix::time::ClockId) -> Duration {
    let t = rustix::time::clock_gettime(clock);
    Duration::new(
        u64::try_from(t.tv_sec).unwrap_or(0),
        u32::try_from(t.tv_nsec).unwrap_or(0),
    )
}
