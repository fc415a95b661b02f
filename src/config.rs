//! The person's own settings: the only place authority comes from.
//!
//! `config.toml` in the config folder, read by [`load`], held live by [`Live`], changed by our own
//! commands with its comments kept. There is no project layer: nothing read from a repository or
//! sent by an instance gets in here.

use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwap;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

/// The four modes, in order of what they let through.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    Plan,
    #[default]
    Manual,
    Edit,
    /// Also read from `unrestricted` (spec vocabulary).
    #[serde(alias = "unrestricted")]
    Auto,
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

/// The settings as they are now, for everyone who judges by them. Cheap to clone.
///
/// A limit is read at the moment of use: call [`Live::now`] for each judgement and keep nothing.
#[derive(Clone, Debug)]
pub struct Live {
    current: Arc<ArcSwap<Config>>,
    changed: watch::Sender<u64>,
}

impl Live {
    pub fn new(config: Config) -> Self {
        Self {
            current: Arc::new(ArcSwap::from_pointee(config)),
            changed: watch::Sender::new(0),
        }
    }

    pub fn now(&self) -> Arc<Config> {
        self.current.load_full()
    }

    /// Puts new settings in force and tells everyone who waits on [`Live::changes`].
    pub fn set(&self, config: Config) {
        self.current.store(Arc::new(config));
        self.changed.send_modify(|n| *n += 1);
    }

    /// A receiver that is marked changed at every [`Live::set`].
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }
}
