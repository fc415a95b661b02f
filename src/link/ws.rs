//! WebSocket frames as the link uses them, for both ends: names, bounds, close codes, and
//! [`Frames`](crate::rpc::Frames) over any stream of WebSocket messages (spec/acp.md sections 4, 5).
//!
//! Not here: dialling and the upgrade (`link::dial`, `hub`), pings' timing (`rpc`).

mod counted;
mod halves;

use std::time::Duration;

pub use counted::Counted;
pub use halves::{Message, WsSink, WsSource, frames};

use crate::rpc::{Incoming, Outgoing};
use tokio_tungstenite::tungstenite::{self, protocol};

/// The one subprotocol of the link.
pub const SUBPROTOCOL: &str = "lembas.link.3";
/// The number of the protocol, as discovery and the handshake say it.
pub const PROTOCOL: u64 = 3;
/// Headers of the dial: the device's id, the random of its process, and that a person said to take
/// the place of another holder.
pub const HEADER_DEVICE: &str = "lembas-device";
pub const HEADER_BOOT: &str = "lembas-boot";
pub const HEADER_TAKE: &str = "lembas-take";

/// The most bytes of a message: until the first answer, after it, and of what a device sends.
pub const FIRST_FRAME: usize = 64 * 1024;
pub const MAX_FRAME: usize = 4 * 1024 * 1024;
pub const DEVICE_FRAME: usize = 128 * 1024;

/// How often a device pings, and how long a link may be silent.
pub const PING: Duration = Duration::from_secs(20);
pub const DEAD: Duration = Duration::from_secs(45);
/// How long after the upgrade `initialize` may take.
pub const INITIALIZE: Duration = Duration::from_secs(15);

/// Close codes (spec/acp.md section 4).
pub mod code {
    pub const NORMAL: u16 = 1000;
    pub const GOING_AWAY: u16 = 1001;
    pub const POLICY: u16 = 1008;
    pub const TOO_LONG: u16 = 1009;
    /// `limits` from a device, `restart` from an instance.
    pub const RESTART: u16 = 1012;
    /// With the reason [`retry_after`](super::retry_after).
    pub const LATER: u16 = 1013;
    /// `boot` or `taken`.
    pub const REPLACED: u16 = 4001;
    pub const INITIALIZE: u16 = 4002;
    pub const REVOKED: u16 = 4003;
    /// `protocol` or `instance`.
    pub const REFUSED: u16 = 4004;
}

/// The reason text of a close that names a time to wait.
pub fn retry_after(wait: Duration) -> String {
    format!("retry_after={}", wait.as_secs())
}

/// The wait that a close's reason names.
pub fn read_retry_after(reason: &str) -> Option<Duration> {
    let seconds = reason.trim().strip_prefix("retry_after=")?;
    seconds.parse().ok().map(Duration::from_secs)
}

/// Settings of a tungstenite stream, of either role.
///
/// Its own bound lies a little above [`MAX_FRAME`], so that a message just over the limit is still
/// read and answered; one far over ends the stream unread.
pub fn config() -> protocol::WebSocketConfig {
    protocol::WebSocketConfig::default()
        .read_buffer_size(16 * 1024)
        .write_buffer_size(64 * 1024)
        .max_message_size(Some(MAX_FRAME + 1024 * 1024))
        .max_frame_size(Some(MAX_FRAME + 1024 * 1024))
}

impl Message for tungstenite::Message {
    type Error = tungstenite::Error;

    fn incoming(self) -> Incoming {
        match self {
            Self::Text(text) => Incoming::Text(text.as_str().to_owned()),
            Self::Close(frame) => Incoming::Close {
                code: frame.as_ref().map(|frame| frame.code.into()),
                reason: frame.map_or_else(String::new, |frame| frame.reason.as_str().to_owned()),
            },
            Self::Binary(_) | Self::Ping(_) | Self::Pong(_) | Self::Frame(_) => Incoming::Alive,
        }
    }

    fn outgoing(frame: Outgoing) -> Self {
        match frame {
            Outgoing::Text(text) => Self::text(text),
            Outgoing::Ping => Self::Ping(Vec::new().into()),
            Outgoing::Close { code, reason } => Self::Close(Some(protocol::CloseFrame {
                code: code.into(),
                reason: reason.into(),
            })),
        }
    }

    fn ended(error: Self::Error) -> Result<Option<Incoming>, String> {
        match error {
            tungstenite::Error::ConnectionClosed
            | tungstenite::Error::AlreadyClosed
            // The other side went without a close frame.
            | tungstenite::Error::Protocol(
                tungstenite::error::ProtocolError::ResetWithoutClosingHandshake,
            ) => Ok(None),
            tungstenite::Error::Capacity(tungstenite::error::CapacityError::MessageTooLong {
                size,
                ..
            }) => Ok(Some(Incoming::TooLong {
                head: String::new(),
                bytes: size,
                over: true,
            })),
            error => Err(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests;
