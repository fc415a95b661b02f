//! What the daemon says of itself: the answer of `status` on the control socket.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::config::{Approvals, Mode};
use crate::session::{OpenAsk, Summary};

/// Everything `lembas status` shows. Times are milliseconds since the epoch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    pub now: i64,
    pub device: Device,
    pub pid: u32,
    pub since: i64,
    /// `daemon` or `up`.
    pub what: String,
    /// Where the page of `lembas up` is served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<String>,
    pub linked: Linked,
    pub limits: Limits,
    /// How strong the box of commands is: `full`, `writes only`, `none`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub r#box: String,
    /// What is wrong with config.toml, while older settings are in force.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub config_problems: Vec<String>,
    pub sessions: Vec<Summary>,
    pub asks: Vec<OpenAsk>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Device {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    pub name: String,
    pub version: String,
}

/// How the link stands. A field that is not known is left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Linked {
    /// `linked`, `dialling`, `offline`, `revoked`, `replaced`, `version`, `never`.
    pub state: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<i64>,
    /// The instance's address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_linked: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_try: Option<i64>,
}

/// The limits in force.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    pub remote: bool,
    pub paused: bool,
    pub roots: Vec<PathBuf>,
    pub max_mode: Mode,
    pub scheduled: bool,
    pub approvals: Approvals,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_timeout_s: Option<u64>,
}

impl From<&crate::config::Config> for Limits {
    fn from(config: &crate::config::Config) -> Self {
        let remote = &config.remote;
        Self {
            remote: remote.enabled,
            paused: remote.paused,
            roots: remote.roots.clone(),
            max_mode: remote.max_mode,
            scheduled: remote.scheduled,
            approvals: remote.approvals,
            approval_timeout_s: remote.approval_timeout,
        }
    }
}
