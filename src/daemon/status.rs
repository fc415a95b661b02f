//! What the daemon says of itself: the answer of `status` on the control socket.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::config::{Approvals, Mode};
use crate::session::{OpenAsk, Phase, Progress, Summary};
use crate::text::{cut, escape};

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
    /// Files and folders of lembas itself that belong to another user.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub strange: Vec<PathBuf>,
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

/// What a chat is doing, as a command says it on one line.
pub fn phase(progress: &Progress) -> String {
    let field = |name: &str| {
        progress
            .data
            .get(name)
            .and_then(Value::as_str)
            .map(escape::visible_line)
    };
    let of = |text: &str, name: &str| match field(name) {
        Some(value) => format!("{text} {value}"),
        None => text.to_owned(),
    };
    match progress.phase {
        Phase::Queued => "waits for its turn".to_owned(),
        Phase::WaitingForModel => of("waits for", "model"),
        Phase::LoadingModel => of("loading", "model"),
        Phase::ReadingPrompt => "reading the prompt".to_owned(),
        Phase::Thinking => "thinking".to_owned(),
        Phase::Writing => "writing".to_owned(),
        Phase::RunningTool => match field("purpose").or_else(|| field("tool")) {
            Some(what) => format!("running {}", cut::one_line(&what, 60)),
            None => "running a tool".to_owned(),
        },
        Phase::WaitingForPerson => "waits for you".to_owned(),
        Phase::WaitingForSubagents => "waits for its subagents".to_owned(),
        Phase::Compacting => "making room in its memory".to_owned(),
        Phase::Retrying => of("trying again:", "reason"),
        Phase::Stopped => "stopped".to_owned(),
        Phase::Failed => of("failed:", "reason"),
    }
}
