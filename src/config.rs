//! The person's own settings: the only place authority comes from.
//!
//! `config.toml` in the config folder, read by [`load`], held live by [`Live`] and [`watch`],
//! changed by our own commands with its comments kept ([`edit`]). There is no project layer:
//! nothing read from a repository or sent by an instance gets in here.

pub mod edit;
pub mod env;
pub mod files;
mod live;
pub mod load;
pub mod paths;
mod reader;
pub mod watch;

use std::fmt;
use std::path::PathBuf;

use serde::de::{Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

pub use live::Live;
pub use load::{ConfigError, Problem, load};
pub use paths::Paths;

/// The four modes, in order of what they let through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    Plan,
    #[default]
    Manual,
    Edit,
    Auto,
}

impl<'de> Deserialize<'de> for Mode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(ModeWord)
    }
}

/// Reads a mode's word; an error names the words there are.
struct ModeWord;

impl Visitor<'_> for ModeWord {
    type Value = Mode;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("plan, manual, edit or auto")
    }

    fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<Mode, E> {
        Mode::read(word).ok_or_else(|| E::invalid_value(Unexpected::Str(word), &self))
    }
}

impl Mode {
    /// A mode by its word. `unrestricted` is read as `auto` (spec vocabulary) and never said.
    pub fn read(word: &str) -> Option<Self> {
        Some(match word {
            "plan" => Self::Plan,
            "manual" => Self::Manual,
            "edit" => Self::Edit,
            "auto" | "unrestricted" => Self::Auto,
            _ => return None,
        })
    }

    /// The word in the config file, on the command line and on the wire.
    pub fn word(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Manual => "manual",
            Self::Edit => "edit",
            Self::Auto => "auto",
        }
    }

    /// As a title in a sentence: `up to Edit`.
    pub fn title(self) -> &'static str {
        match self {
            Self::Plan => "Plan",
            Self::Manual => "Manual",
            Self::Edit => "Edit",
            Self::Auto => "Auto",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// Whose answers count for what a linked instance asks to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Approvals {
    /// From the instance: once or for the session; never a stored rule, never sudo.
    #[default]
    Once,
    /// From the instance: stored rules too (the instance is the person's own process).
    Full,
    /// Only answers given on this computer.
    Local,
}

impl Approvals {
    /// The word in the config file and on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Full => "full",
            Self::Local => "local",
        }
    }
}

/// `[remote]`: what a linked instance may ask of this computer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Remote {
    pub enabled: bool,
    /// `lembas pause`: all remote work stopped, and kept stopped.
    pub paused: bool,
    pub roots: Vec<PathBuf>,
    /// `plan` is always possible and never a maximum here: manual, edit or auto.
    pub max_mode: Mode,
    pub scheduled: bool,
    pub approvals: Approvals,
    /// Seconds an interactive ask waits; none: no deadline, the turn parks.
    pub approval_timeout: Option<u64>,
    /// Seconds any wait may be extended to.
    pub approval_max: u64,
    pub max_sessions: usize,
    /// Whether `sudo` over the link may be asked about at all.
    pub sudo: Sudo,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sudo {
    #[default]
    Refuse,
    Ask,
}

impl Default for Remote {
    fn default() -> Self {
        Self {
            enabled: true,
            paused: false,
            roots: Vec::new(),
            max_mode: Mode::Manual,
            scheduled: false,
            approvals: Approvals::Once,
            approval_timeout: None,
            approval_max: 24 * 60 * 60,
            max_sessions: 8,
            sudo: Sudo::Refuse,
        }
    }
}

/// `[protected]`: single paths of the protected list that the person released.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Protected {
    pub release: Vec<PathBuf>,
}

/// `[link]`: how the instance is reached.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Link {
    /// A PEM file of certificate authorities trusted besides the system's.
    pub ca_file: Option<PathBuf>,
    /// `sha256:…` of the only certificate accepted.
    pub pin: Option<String>,
    /// `http://[user:password@]host:port`; otherwise the usual proxy variables.
    pub proxy: Option<String>,
}

/// The whole of `config.toml`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The name of this computer on the page; the host name when none is set.
    pub name: Option<String>,
    pub remote: Remote,
    pub protected: Protected,
    pub link: Link,
}
