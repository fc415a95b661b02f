//! `glob`: files by name.

use std::path::PathBuf;

use futures_util::future::BoxFuture;
use serde_json::Value;

use super::read::state;
use super::{Outcome, OutputSink, Prepared, Tool, ToolContext, ToolFailure, args};
use crate::fs::walk::{self, Scope};
use crate::ids::CallId;
use crate::permission::{Action, Grant, Request, is_private};
use crate::rt::{self, CancellationToken};

/// Files at most (loop.json `budgets.cli.glob_files`).
const FILES: usize = 200;

pub(super) struct Glob;

#[derive(Debug)]
struct Wanted {
    folder: PathBuf,
    pattern: String,
}

impl Tool for Glob {
    fn name(&self) -> &'static str {
        "glob"
    }

    fn prepare(&self, args: &Value, context: &ToolContext) -> Result<Prepared, ToolFailure> {
        let pattern = args::text(args, "pattern")?;
        let named = args::folder(args, "path", context)?;
        let place = args::shown(&named.path, context);
        Ok(Prepared {
            title: if place == "." {
                pattern.clone()
            } else {
                format!("{pattern} in {place}")
            },
            locations: vec![named.path.display().to_string()],
            request: Request {
                tool: self.name().to_owned(),
                action: Action::Read {
                    paths: vec![named.path.clone()],
                },
                cwd: context.cwd.clone(),
            },
            state: Box::new(Wanted {
                folder: named.path,
                pattern,
            }),
        })
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
        Box::pin(async move {
            let Ok(wanted) = state::<Wanted>(prepared.state) else {
                return Outcome::failed("the call was not prepared by this tool");
            };
            let folder = wanted.folder.clone();
            let answer = rt::blocking(move || {
                let scope = Scope::new(&grant, &wanted.folder, is_private)
                    .map_err(|error| error.to_string())?;
                walk::glob(scope, &wanted.pattern, FILES)
            })
            .await;
            match answer {
                Some(Ok((files, left_out))) => {
                    let mut lines: Vec<String> = files
                        .iter()
                        .map(|file| args::shown(&folder.join(file), context))
                        .collect();
                    if lines.is_empty() {
                        return Outcome::ok("No file matches.");
                    }
                    if left_out > 0 {
                        lines.push(format!("[{left_out} more files match]"));
                    }
                    Outcome::ok(lines.join("\n"))
                }
                Some(Err(words)) => Outcome::failed(words),
                None => Outcome::failed("the search failed inside lembas; see its log"),
            }
        })
    }
}
