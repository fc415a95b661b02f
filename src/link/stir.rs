//! Signs that the ground under a link has moved: the computer slept, or its way out changed.

use std::net::{IpAddr, UdpSocket};
use std::time::Duration;

use crate::clock::{self, Instant};

/// How often it is looked.
pub(super) const EVERY: Duration = Duration::from_secs(15);
/// Time that boot time may be ahead of monotonic time before it counts as sleep.
const SLACK: Duration = Duration::from_secs(3);

/// What was there when it was last looked.
#[derive(Debug)]
pub(super) struct Ground {
    boot: Duration,
    at: Instant,
    way_out: [Option<IpAddr>; 2],
}

impl Ground {
    pub(super) fn now() -> Self {
        Self {
            boot: clock::boottime(),
            at: clock::instant(),
            way_out: way_out(),
        }
    }

    /// What has changed since it was last looked, in words; none: nothing.
    pub(super) fn look(&mut self) -> Option<&'static str> {
        let before = std::mem::replace(self, Self::now());
        if slept(
            self.boot.saturating_sub(before.boot),
            self.at.saturating_duration_since(before.at),
        ) {
            return Some("this computer slept");
        }
        (self.way_out != before.way_out).then_some("the network changed")
    }
}

/// Boot time goes on during sleep, monotonic time does not.
fn slept(boot: Duration, monotonic: Duration) -> bool {
    boot > monotonic + SLACK
}

/// The addresses this computer would send from, for both families. Nothing is sent: the addresses
/// asked for are the ones set aside for documentation.
fn way_out() -> [Option<IpAddr>; 2] {
    let from = |bind: &str, to: &str| {
        let socket = UdpSocket::bind(bind).ok()?;
        socket.connect(to).ok()?;
        Some(socket.local_addr().ok()?.ip())
    };
    [
        from("0.0.0.0:0", "192.0.2.1:9"),
        from("[::]:0", "[2001:db8::1]:9"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleep_is_boot_time_ahead_of_monotonic_time() {
        let secs = Duration::from_secs;
        assert!(slept(secs(100), secs(15)));
        assert!(!slept(secs(15), secs(15)));
        assert!(!slept(secs(17), secs(15)));
        // A process that was stopped did not sleep: both clocks went on.
        assert!(!slept(secs(300), secs(300)));
        assert!(!slept(secs(0), secs(15)));
    }

    #[test]
    fn the_same_ground_has_not_changed() {
        let mut ground = Ground::now();
        assert_eq!(ground.look(), None);
    }
}
