//! A result on its way into the conversation (context.md §1 to §6): a stub where the request being
//! built holds it already, else cut where it is long, and then kept whole beside the journal.
//! Here and never later.

use std::path::{Path, PathBuf};

use crate::agent::driver::Driver;
use crate::agent::words;
use crate::ids::CallId;
use crate::rt;
use crate::store::item::{CallStatus, Saw};
use crate::text::cut::{Limits, middle_out};
use crate::tools::{self, Outcome};

/// A result that is shorter is no shorter as a stub.
const WORTH: usize = 200;
/// Tools whose same result says nothing new.
const LOOKS: [&str; 3] = ["list", "glob", "grep"];

/// What goes into the conversation.
pub(super) struct Inserted {
    pub(super) text: String,
    pub(super) saw: Option<Saw>,
    /// Where the whole is, when the text is only a part.
    pub(super) whole: Option<String>,
}

impl Driver {
    pub(super) async fn insert(&mut self, call: &CallId, outcome: &Outcome) -> Inserted {
        let mut saw = outcome.saw.clone();
        if let Some(text) = self.stub(call, outcome) {
            if let Some(saw) = &mut saw {
                // The stub holds no lines; the earlier result does.
                saw.lines = None;
            }
            return Inserted {
                text,
                saw,
                whole: None,
            };
        }
        let output = &words::numbers().context.output;
        let limits = Limits {
            lines: output.max_lines,
            chars: output.max_chars,
        };
        let cut = middle_out(&outcome.text, limits, call.as_str());
        if cut.len() == outcome.text.len() {
            return Inserted {
                text: cut.into_owned(),
                saw,
                whole: None,
            };
        }
        if let Some(saw) = &mut saw {
            saw.lines = None;
        }
        Inserted {
            text: cut.into_owned(),
            saw,
            whole: self.keep_whole(call, &outcome.text).await,
        }
    }

    /// Words for a result that the request being built has already.
    fn stub(&self, call: &CallId, outcome: &Outcome) -> Option<String> {
        let texts = &words::numbers().context.stub;
        if outcome.status != CallStatus::Ok || outcome.text.len() < WORTH {
            return None;
        }
        if let Some(saw) = &outcome.saw {
            let known = self.history.holds(saw)?;
            let facts = [("path", saw.given.as_str()), ("id", known.as_str())];
            return Some(texts.say("read", &facts));
        }
        let call = self.turn.calls.iter().find(|c| c.call == *call)?;
        if !LOOKS.contains(&call.tool.as_str()) {
            return None;
        }
        let known = self.history.same(&call.tool, &call.args, &outcome.text)?;
        Some(texts.say("same", &[("id", known.as_str())]))
    }

    /// Keeps a result that was cut. A full disk costs the middle of it, not the turn.
    async fn keep_whole(&mut self, call: &CallId, text: &str) -> Option<String> {
        let path = tools::kept(&self.gate.context.spill, call.as_str());
        let (to, text) = (path.clone(), text.to_owned());
        let written = rt::blocking(move || write(&to, &text)).await;
        match written {
            Some(Ok(())) => Some(path.display().to_string()),
            Some(Err(error)) => {
                tracing::warn!(%error, "a long result cannot be kept whole");
                None
            }
            None => None,
        }
    }
}

fn write(path: &Path, text: &str) -> std::io::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
    let folder: PathBuf = path.parent().map(Path::to_owned).unwrap_or_default();
    let mut folders = std::fs::DirBuilder::new();
    folders.recursive(true).mode(0o700).create(folder)?;
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(path)?.write_all(text.as_bytes())
}
