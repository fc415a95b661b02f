//! Ids and digests as types, so that one kind is never passed for another.

use std::fmt;

use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Takes an id as it was read; ids are opaque to everyone but their maker.
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            /// A new random id: 16 bytes of the system's randomness in lower-case hex.
            pub fn random() -> Self {
                Self(random_hex(16))
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

id!(
    /// One session of the agent (ACP `sessionId`).
    SessionId
);
id!(
    /// One question to the person; random, because an answer names it over the link.
    AskId
);
id!(
    /// One tool call, as the agent numbers it inside a session (ACP `toolCallId`).
    CallId
);
id!(
    /// One linked computer, as its instance knows it.
    DeviceId
);
id!(
    /// One account at an instance.
    AccountId
);

/// The number of an item in a session's journal. Given when the item opens, never used twice.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Seq(pub u64);

/// A place in a session's journal: an item and the bytes of its text so far.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
pub struct Position {
    pub seq: Seq,
    pub at: u64,
}

/// SHA-256 of something, shown as `sha256:` and lower-case hex.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Digest(String);

impl Digest {
    pub fn of(bytes: &[u8]) -> Self {
        let hash = ring::digest::digest(&ring::digest::SHA256, bytes);
        Self(format!("sha256:{}", hex(hash.as_ref())))
    }

    /// Takes a digest as it came over the wire.
    pub fn read(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Lower-case hex of bytes.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: [char; 16] = [
        '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f',
    ];
    bytes
        .iter()
        .flat_map(|b| [b >> 4, b & 15])
        .filter_map(|d| DIGITS.get(usize::from(d)))
        .collect()
}

/// `count` random bytes of the system's secure source, in lower-case hex.
///
/// # Panics
/// When the system has no randomness to give: nothing that needs a secret may go on then.
pub fn random_hex(count: usize) -> String {
    hex(&random_bytes(count))
}

/// `count` random bytes of the system's secure source. Panics as [`random_hex`] does.
#[expect(clippy::panic, reason = "without randomness no secret may be made")]
pub fn random_bytes(count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    if SystemRandom::new().fill(&mut bytes).is_err() {
        panic!("the system gave no randomness");
    }
    bytes
}
