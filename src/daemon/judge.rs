//! The engine, made when the first judgement needs it: what it must know of this computer takes
//! programs to find out, and a start must not wait for them.

use std::path::PathBuf;
use std::sync::OnceLock;

use tokio::runtime::Handle;

use crate::config::{Paths, files};
use crate::exec;
use crate::permission::{BoxStrength, Context, Engine, Judge, Request, Rule, Verdict};

/// Judges with the engine of this computer.
pub struct LateEngine {
    engine: OnceLock<Engine>,
    runtime: Handle,
    covered: Vec<PathBuf>,
    remembered: PathBuf,
}

impl LateEngine {
    /// To be made inside a runtime.
    pub fn new(paths: &Paths) -> Self {
        Self {
            engine: OnceLock::new(),
            runtime: Handle::current(),
            covered: covered(paths),
            remembered: remembered(paths),
        }
    }
}

impl Judge for LateEngine {
    /// Called where it may block.
    fn judge(&self, request: &Request, context: &Context, rules: &[Rule]) -> Verdict {
        let engine = self.engine.get_or_init(|| {
            let facts = self.runtime.block_on(exec::facts::facts(&self.covered));
            remember(&self.remembered, facts.strength);
            Engine::with(facts)
        });
        engine.judge(request, context, rules)
    }
}

/// The daemon's own folders: no box shows them.
fn covered(paths: &Paths) -> Vec<PathBuf> {
    vec![
        paths.config.clone(),
        paths.data.clone(),
        paths.state.clone(),
        paths.runtime.clone(),
    ]
}

fn remembered(paths: &Paths) -> PathBuf {
    paths.state.join("box")
}

/// How strong the box of this computer is: as it was found the last time, so that only the first
/// start tries it. Every engine looks again and remembers.
pub async fn strength(paths: &Paths) -> BoxStrength {
    let file = remembered(paths);
    let word = std::fs::read_to_string(&file).unwrap_or_default();
    let known = [
        BoxStrength::Full,
        BoxStrength::WritesOnly,
        BoxStrength::None,
    ];
    if let Some(strength) = known.into_iter().find(|s| s.word() == word.trim()) {
        return strength;
    }
    let facts = exec::facts::facts(&covered(paths)).await;
    remember(&file, facts.strength);
    facts.strength
}

fn remember(file: &std::path::Path, strength: BoxStrength) {
    // When it cannot be written, the next start tries the box again.
    if let Err(error) = files::replace(file, strength.word().as_bytes(), 0o600) {
        tracing::debug!(%error, "the strength of the box could not be kept");
    }
}
