//! What the link is doing, for the daemon, the command line and whoever else looks.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The closed set of states of the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// This computer was never linked, or was unlinked.
    #[default]
    Never,
    /// A dial is under way, or its handshake.
    Dialling,
    /// The handshake is done.
    Linked,
    /// Not linked; it is dialled again by itself.
    Offline,
    /// The instance does not know this computer any more. A slow look goes on.
    Revoked,
    /// Another process holds the link. Nothing is dialled until a person says so.
    Replaced,
    /// The other side speaks another protocol. A slow look goes on.
    Version,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Never => "never linked",
            Self::Dialling => "dialling",
            Self::Linked => "linked",
            Self::Offline => "offline",
            Self::Revoked => "linked no more",
            Self::Replaced => "replaced",
            Self::Version => "another protocol",
        })
    }
}

/// The state of the link. Times are milliseconds since the epoch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkState {
    pub phase: Phase,
    /// Since when the phase holds. While it is dialled again and again, since when it is not
    /// linked.
    pub since: i64,
    /// Why, in words for a person; empty when there is nothing to say.
    pub reason: String,
    /// When it is dialled next, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_try: Option<i64>,
    /// When it was last linked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_linked: Option<i64>,
}
