//! The gate: what a client may ask of this computer, judged at the moment it asks (R125).
//!
//! `remote` implements it for a linked instance out of the person's settings; [`Local`] is the gate
//! of somebody at this computer, to whom none of those limits apply. Nothing is kept from one
//! judgement to the next.

use std::path::{Path, PathBuf};

use futures_util::future::BoxFuture;
use serde_json::Value;

use super::error::Refusal;
use crate::config::Mode;
use crate::permission::Origin;
use crate::rpc::RpcError;
use crate::session::Scheduled;
use crate::store::item::Scope;

/// What a scheduled session says of itself when it is opened (link.md, Scheduled).
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
pub struct Schedule {
    pub schedule: String,
    pub run: String,
    /// Edit when none was chosen (R134).
    #[serde(default)]
    pub mode: Option<Mode>,
    /// Seconds an ask waits; 1800 when not said.
    #[serde(default)]
    pub approval_wait: Option<u64>,
}

/// A mode as it will be, after the limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lowered {
    pub mode: Mode,
    /// It is less than what was asked for.
    pub lowered: bool,
}

/// What a client may do, now.
pub trait Limits: Send + Sync + 'static {
    /// Whether anything but the handshake is answered at all.
    fn work(&self) -> Result<(), Refusal>;

    /// A folder to work in: it must exist, be a folder, and lie under a root with every link
    /// resolved. Answers the resolved path. Looks at the disk: call it where that may block.
    fn folder(&self, path: &Path) -> Result<PathBuf, Refusal>;

    /// The mode a session gets.
    fn mode(&self, asked: Mode) -> Lowered;

    /// Whether scheduled work is taken, and what a new run's facts become.
    fn schedule(&self, asked: &Schedule) -> Result<(Scheduled, Lowered), Refusal>;

    /// Whether scheduled work is taken at all: for a session that was opened as such.
    fn scheduled(&self) -> Result<(), Refusal>;

    /// What is said when as many turns run as may (the session layer counts them).
    fn max_sessions_words(&self, max: usize) -> String;

    /// Those of the offered yeses that count when they come from here.
    fn scopes(&self, offered: &[Scope]) -> Vec<Scope>;

    /// The `limits` object of the handshake and of `_lembas/status`; null where there are none.
    fn describe(&self) -> Value;
}

/// What only a linked instance asks: answered by `remote`. Without it those methods do not exist.
pub trait RemoteWork: Send + Sync + 'static {
    /// `_lembas/directories`.
    fn directories(&self, path: Option<PathBuf>) -> BoxFuture<'static, Result<Value, RpcError>>;

    /// `_lembas/monitor`, for the instance and grant of the link.
    fn monitor(
        &self,
        origin: &Origin,
        params: Value,
    ) -> BoxFuture<'static, Result<Value, RpcError>>;

    /// `_lembas/token`: the successor of this link's token, kept before it answers.
    fn token(&self, origin: &Origin, params: Value) -> BoxFuture<'static, Result<Value, RpcError>>;
}

/// The gate of somebody at this computer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Local;

impl Limits for Local {
    fn work(&self) -> Result<(), Refusal> {
        Ok(())
    }

    fn folder(&self, path: &Path) -> Result<PathBuf, Refusal> {
        existing(path)
    }

    fn mode(&self, asked: Mode) -> Lowered {
        Lowered {
            mode: asked,
            lowered: false,
        }
    }

    fn schedule(&self, _asked: &Schedule) -> Result<(Scheduled, Lowered), Refusal> {
        Err(Refusal::new(
            RpcError::INVALID_PARAMS,
            "params",
            "scheduled runs come from a linked instance, not from a program on this computer",
        ))
    }

    fn scheduled(&self) -> Result<(), Refusal> {
        Ok(())
    }

    fn max_sessions_words(&self, max: usize) -> String {
        format!("{max} sessions work already")
    }

    fn scopes(&self, offered: &[Scope]) -> Vec<Scope> {
        offered.to_vec()
    }

    fn describe(&self) -> Value {
        Value::Null
    }
}

/// The resolved form of a folder that exists, or why there is none.
pub fn existing(path: &Path) -> Result<PathBuf, Refusal> {
    let shown = path.display().to_string();
    let bad = |reason, text: String| {
        Refusal::new(RpcError::INVALID_PARAMS, reason, text).about(shown.clone())
    };
    if !path.is_absolute() {
        return Err(bad(
            "params",
            format!(
                "{shown} is not a whole path: a folder is given from the root on, as in /home/ana/notes"
            ),
        ));
    }
    let real = path.canonicalize().map_err(|error| {
        bad(
            "missing",
            match error.kind() {
                std::io::ErrorKind::NotFound => format!("the folder {shown} does not exist"),
                std::io::ErrorKind::PermissionDenied => {
                    format!("the folder {shown} may not be looked into")
                }
                _ => format!("the folder {shown} cannot be used: {error}"),
            },
        )
    })?;
    if real.is_dir() {
        Ok(real)
    } else {
        Err(bad("missing", format!("{shown} is not a folder")))
    }
}
