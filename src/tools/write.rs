//! `write`: a whole file. Also the step that `edit` ends in.

use std::path::{Path, PathBuf};

use futures_util::future::BoxFuture;
use serde_json::Value;

use super::read::state;
use super::{Outcome, OutputSink, Prepared, Tool, ToolContext, ToolFailure, args};
use crate::edit::diff::unified;
use crate::fs::FsError;
use crate::fs::read::current;
use crate::fs::text::Text;
use crate::fs::write::{Before, write};
use crate::ids::{CallId, Digest};
use crate::permission::{Action, Grant, Request};
use crate::rt::{self, CancellationToken};
use crate::store::item::Saw;

/// Bytes of a file that is written at once.
const MAX_CONTENT: usize = 8 * 1024 * 1024;

pub(super) struct Write;

/// A change of one file, worked out and not yet made.
#[derive(Debug)]
pub(super) struct Change {
    path: PathBuf,
    before: Before,
    bytes: Vec<u8>,
    diff: String,
    given: String,
}

/// A file as it is before a change, when this session may change it.
pub(super) struct Old {
    pub(super) text: Text,
    pub(super) before: Before,
}

/// Looks at the file a change names: it must have been read in this session, and be as it was then.
pub(super) fn look(path: &Path, given: &str, context: &ToolContext) -> Result<Old, ToolFailure> {
    match current(path) {
        Err(FsError::Missing(_)) => Ok(Old {
            text: Text::default(),
            before: Before::Nothing,
        }),
        Err(error) => Err(error.into()),
        Ok(content) => match context.seen.at(path) {
            None => Err(ToolFailure(format!(
                "{given} exists and was not read in this session: read it first"
            ))),
            Some(seen) if seen != content.digest => Err(ToolFailure(format!(
                "{given} changed since it was read: read it again"
            ))),
            Some(_) => Ok(Old {
                text: content.text(path)?,
                before: Before::Content(content.digest),
            }),
        },
    }
}

/// A change to a new text, described so that it can be judged.
pub(super) fn change(
    tool: &str,
    path: PathBuf,
    old: &Old,
    new: &str,
    context: &ToolContext,
) -> Result<Prepared, ToolFailure> {
    let bytes = old.text.encode(new).ok_or_else(|| FsError::Encoding {
        path: path.clone(),
        encoding: old.text.encoding.name(),
    })?;
    if bytes.len() > MAX_CONTENT {
        return Err(ToolFailure(format!(
            "the file would be {} bytes; at most {MAX_CONTENT} are written at once",
            bytes.len()
        )));
    }
    let name = args::shown(&path, context);
    let diff = unified(&name, &old.text.text, new);
    if diff.is_empty() && old.before != Before::Nothing {
        return Err(ToolFailure(format!(
            "{name} already has exactly this content: there is nothing to change"
        )));
    }
    Ok(Prepared {
        title: name.clone(),
        locations: vec![path.display().to_string()],
        request: Request {
            tool: tool.to_owned(),
            action: Action::Write {
                path: path.clone(),
                digest: Digest::of(&bytes),
                diff: diff.clone(),
            },
            cwd: context.cwd.clone(),
        },
        state: Box::new(Change {
            path,
            before: old.before.clone(),
            bytes,
            diff,
            given: name,
        }),
    })
}

/// Makes a prepared change.
pub(super) async fn make(prepared: Prepared, grant: Grant, context: &ToolContext) -> Outcome {
    let title = prepared.title;
    let Ok(change) = state::<Change>(prepared.state) else {
        return Outcome::failed("the call was not prepared by this tool");
    };
    let path = change.path.display().to_string();
    let seen = context.seen.clone();
    let new_file = change.before == Before::Nothing;
    let diff = change.diff.clone();
    let done = rt::blocking(move || {
        write(&grant, &change.path, &change.bytes, &change.before)?;
        let saw = Saw {
            path: change.path.display().to_string(),
            given: change.given,
            digest: Digest::of(&change.bytes),
            lines: None,
        };
        seen.note(&change.path, saw.digest.clone());
        Ok::<_, FsError>((change.bytes.len(), saw))
    })
    .await;
    match done {
        Some(Ok((size, saw))) => {
            let head = if new_file {
                format!("Made {title}, {size} bytes.")
            } else {
                format!("Changed {title}.")
            };
            Outcome {
                diff: Some(diff.clone()),
                path: Some(path),
                saw: Some(saw),
                ..Outcome::ok(format!("{head}\n{diff}").trim_end().to_owned())
            }
        }
        Some(Err(error)) => Outcome {
            path: Some(path),
            ..Outcome::failed(error.to_string())
        },
        None => Outcome::failed("writing failed inside lembas; see its log"),
    }
}

impl Tool for Write {
    fn name(&self) -> &'static str {
        "write"
    }

    fn prepare(&self, args: &Value, context: &ToolContext) -> Result<Prepared, ToolFailure> {
        let named = args::path(args, "path", context)?;
        let content = args::text(args, "content")?;
        let old = look(&named.path, &named.given, context)?;
        change(self.name(), named.path, &old, &content, context)
    }

    fn run<'a>(
        &'a self,
        _call: &'a CallId,
        prepared: Prepared,
        grant: Grant,
        context: &'a ToolContext,
        _output: &'a dyn OutputSink,
        _stop: CancellationToken,
    ) -> BoxFuture<'a, Outcome> {
        Box::pin(make(prepared, grant, context))
    }
}
