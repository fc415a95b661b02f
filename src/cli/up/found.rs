//! Model servers that run on this computer anyway, found by asking the ports they are known for.

use std::time::Duration;

use serde_json::Value;

use crate::clock;

/// A server that answered with a list of models.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Server {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    /// `127.0.0.1:11434`.
    pub(super) at: String,
    /// Its OpenAI-compatible base.
    pub(super) url: String,
    pub(super) models: u64,
}

/// Asked at once, and not waited for longer: on loopback an answer takes a moment.
const WAIT: Duration = Duration::from_millis(400);
/// A longer list is none.
const LONGEST: usize = 256 * 1024;

const KNOWN: &[(&str, &str, u16)] = &[
    ("ollama", "Ollama", 11_434),
    ("lm_studio", "LM Studio", 1_234),
];

pub(super) async fn look() -> Vec<Server> {
    let asked = KNOWN.iter().map(|(name, title, port)| async move {
        let models = clock::timeout(WAIT, count(*port)).await.ok()??;
        let at = format!("127.0.0.1:{port}");
        Some(Server {
            name,
            title,
            url: format!("http://{at}/v1"),
            at,
            models,
        })
    });
    futures_util::future::join_all(asked)
        .await
        .into_iter()
        .flatten()
        .collect()
}

/// How many models a server on this port lists; none when what answers is no such server.
async fn count(port: u16) -> Option<u64> {
    // Nothing of the person's environment: this never leaves the computer.
    let client = reqwest::Client::builder()
        .no_proxy()
        .timeout(WAIT)
        .build()
        .ok()?;
    let answer = client
        .get(format!("http://127.0.0.1:{port}/v1/models"))
        .send()
        .await
        .ok()?;
    if !answer.status().is_success() || answer.content_length().is_some_and(|n| n > LONGEST as u64)
    {
        return None;
    }
    let body = answer
        .bytes()
        .await
        .ok()
        .filter(|body| body.len() <= LONGEST)?;
    let list: Value = serde_json::from_slice(&body).ok()?;
    let count = list.get("data")?.as_array()?.len();
    u64::try_from(count).ok()
}
