//! The bounds of a peer. Each says what happens at it.

use std::time::Duration;

/// Signs of life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keepalive {
    /// A ping goes out this often; none: the other side pings.
    pub ping: Option<Duration>,
    /// Nothing heard for this long: the link is dead.
    pub dead: Duration,
}

/// The bounds of a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a frame in either direction until the first call was answered with a result.
    pub first_frame: usize,
    /// Bytes of an incoming frame after that. A longer one is answered -32600 where an id can be
    /// read, and closes the link with 1009 (a stream of lines skips the line and goes on).
    pub frame_in: usize,
    /// Bytes of an outgoing frame. A longer request fails, a longer answer becomes an error, a
    /// longer notification is dropped with a log line.
    pub frame_out: usize,
    /// Incoming calls that may run at once. The next is answered -32052.
    pub calls_in: usize,
    /// Requests of ours that may wait for an answer. The next waits for its turn.
    pub calls_out: usize,
    /// Frames, and bytes, that may wait to be written. A sender waits while there are more.
    pub queue_frames: usize,
    pub queue_bytes: usize,
    /// A write of which no byte was taken for this long ends the link.
    pub stall: Duration,
    /// How long frames that were queued before a close may still take.
    pub closing: Duration,
    pub keepalive: Option<Keepalive>,
}

impl Limits {
    /// The device's end of a link.
    pub fn device() -> Self {
        Self {
            first_frame: 64 * 1024,
            frame_in: 4 * 1024 * 1024,
            frame_out: 4 * 1024 * 1024,
            calls_in: 1024,
            calls_out: 1024,
            queue_frames: 256,
            queue_bytes: 8 * 1024 * 1024,
            stall: Duration::from_secs(20),
            closing: Duration::from_secs(2),
            keepalive: Some(Keepalive {
                ping: Some(Duration::from_secs(20)),
                dead: Duration::from_secs(45),
            }),
        }
    }

    /// The instance's end of a link: it does not ping, the device does.
    pub fn instance() -> Self {
        Self {
            keepalive: Some(Keepalive {
                ping: None,
                dead: Duration::from_secs(45),
            }),
            ..Self::device()
        }
    }

    /// Standard input and output, with a program that the person started.
    pub fn stdio() -> Self {
        Self {
            first_frame: 32 * 1024 * 1024,
            frame_in: 32 * 1024 * 1024,
            frame_out: 32 * 1024 * 1024,
            keepalive: None,
            // An editor that is stopped in a debugger reads nothing for a while and lives.
            stall: Duration::from_secs(24 * 60 * 60),
            ..Self::device()
        }
    }
}
