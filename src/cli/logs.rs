//! Where the program's own log goes: stderr, by `LEMBAS_LOG`. Standard output belongs to results.

use std::io;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::prelude::*;

use crate::config::env;

/// Begins logging; `usual` is what is logged where the person says nothing.
pub(super) fn begin(usual: &str) {
    let wanted = env::text(&env::LEMBAS_LOG);
    let filter = wanted
        .as_deref()
        .and_then(|text| EnvFilter::try_new(text).ok())
        .unwrap_or_else(|| EnvFilter::new(usual));
    let plain = env::os(&env::NO_COLOR).is_some();
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(io::stderr)
        .with_ansi(!plain && io::IsTerminal::is_terminal(&io::stderr()))
        .with_target(false);
    // A second call, in one process, changes nothing.
    let _ = tracing_subscriber::registry()
        .with(filter)
        .with(lines)
        .try_init();
}
