//! The control socket: how commands on this computer talk to the daemon that runs here.
//!
//! A Unix socket (0600, in a 0700 folder) that only this user's processes, and root's, may use:
//! the kernel says who is at the other end. One JSON-RPC request a line, one answer a line, in
//! order. A [`Methods`] table holds what can be asked; the one stream, `acp`, turns the
//! connection into a pipe of ACP frames.

pub mod client;
pub mod server;

use std::io;

use jsonrpsee_types::{ErrorObjectOwned, Params};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::net::UnixStream;

pub use jsonrpsee_core::server::{Methods, RpcModule};

/// The longest request. A longer one ends the connection.
pub const MAX_REQUEST: usize = 64 * 1024;
/// The longest answer a client takes.
pub const MAX_ANSWER: usize = 16 * 1024 * 1024;
/// The method that turns the connection into a stream.
pub const STREAM_ACP: &str = "acp";

/// What a method answers.
pub type Said = Result<Value, ErrorObjectOwned>;

/// What a refusal says besides its text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Detail {
    /// A word of a closed set.
    pub code: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    #[serde(default, rename = "try", skip_serializing_if = "Vec::is_empty")]
    pub fixes: Vec<String>,
    /// The number JSON shows instead of the word, where a spec gives one (monitor).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<i64>,
}

/// The JSON-RPC code of a refusal in words; `data` is a [`Detail`].
pub const REFUSED: i32 = -32000;

/// A refusal in words.
pub fn refusal(text: impl Into<String>, detail: Detail) -> ErrorObjectOwned {
    ErrorObjectOwned::owned(REFUSED, text.into(), Some(detail))
}

/// Params that cannot be read: the command and the daemon are of two versions.
pub fn unread(why: &str) -> ErrorObjectOwned {
    refusal(
        "the daemon does not understand what this command asks",
        Detail {
            code: "version".to_owned(),
            why: Some(why.to_owned()),
            fixes: vec![RESTART.to_owned()],
            number: None,
        },
    )
}

/// Reads the params of a method.
///
/// # Errors
/// [`unread`], with what is wrong with them.
pub fn read<P: serde::de::DeserializeOwned>(params: &Params<'_>) -> Result<P, ErrorObjectOwned> {
    read_value(params.parse().unwrap_or_default())
}

/// As [`read`], of params that were parsed already.
///
/// # Errors
/// As [`read`].
pub fn read_value<P: serde::de::DeserializeOwned>(params: Value) -> Result<P, ErrorObjectOwned> {
    crate::text::json::read(params).map_err(|why| unread(&why))
}

/// What helps where a command and the daemon are of two versions.
pub const RESTART: &str =
    "end the daemon and start it again, so that both are of one version:  lembas daemon";

/// Whether this user's processes, or root's, are at the other end.
fn check_peer(stream: &UnixStream) -> io::Result<()> {
    let uid = stream.peer_cred()?.uid();
    if may_talk(uid, rustix::process::geteuid().as_raw()) {
        Ok(())
    } else {
        Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!("the process at the other end belongs to user {uid}"),
        ))
    }
}

fn may_talk(other: u32, own: u32) -> bool {
    other == own || other == 0
}

#[cfg(test)]
mod tests;
