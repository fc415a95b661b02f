//! `list`: a folder as a tree.

use std::path::PathBuf;

use futures_util::future::BoxFuture;
use serde_json::Value;

use super::read::state;
use super::{Outcome, OutputSink, Prepared, Tool, ToolContext, ToolFailure, args};
use crate::fs::walk::{self, Entry, Kind, Scope};
use crate::ids::CallId;
use crate::permission::{Action, Grant, Request, is_private};
use crate::rt::{self, CancellationToken};

/// Entries at most (loop.json `budgets.cli.list_entries`).
const ENTRIES: usize = 400;
const DEPTH: usize = 2;
const MAX_DEPTH: usize = 10;

pub(super) struct List;

#[derive(Debug)]
struct Wanted {
    path: PathBuf,
    depth: usize,
}

impl Tool for List {
    fn name(&self) -> &'static str {
        "list"
    }

    fn prepare(&self, args: &Value, context: &ToolContext) -> Result<Prepared, ToolFailure> {
        let named = args::folder(args, "path", context)?;
        let depth = args::number(args, "depth", 1)?
            .unwrap_or(DEPTH)
            .min(MAX_DEPTH);
        Ok(Prepared {
            title: args::shown(&named.path, context),
            locations: vec![named.path.display().to_string()],
            request: Request {
                tool: self.name().to_owned(),
                action: Action::Read {
                    paths: vec![named.path.clone()],
                },
                cwd: context.cwd.clone(),
            },
            state: Box::new(Wanted {
                path: named.path,
                depth,
            }),
        })
    }

    fn run<'a>(
        &'a self,
        _call: &'a CallId,
        prepared: Prepared,
        grant: Grant,
        _context: &'a ToolContext,
        _output: &'a dyn OutputSink,
        _stop: CancellationToken,
    ) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            let Ok(wanted) = state::<Wanted>(prepared.state) else {
                return Outcome::failed("the call was not prepared by this tool");
            };
            let answer = rt::blocking(move || {
                let scope = Scope::new(&grant, &wanted.path, is_private)?;
                walk::tree(scope, wanted.depth, ENTRIES)
            })
            .await;
            match answer {
                Some(Ok((entries, left_out))) => Outcome::ok(shown(&entries, left_out)),
                Some(Err(error)) => Outcome::failed(error.to_string()),
                None => Outcome::failed("listing failed inside lembas; see its log"),
            }
        })
    }
}

fn shown(entries: &[Entry], left_out: usize) -> String {
    if entries.is_empty() {
        return "The folder is empty.".to_owned();
    }
    let mut lines: Vec<String> = entries
        .iter()
        .map(|entry| {
            let indent = "  ".repeat(entry.depth);
            let name = crate::text::escape::visible_line(&entry.name);
            match &entry.kind {
                Kind::Folder => format!("{indent}{name}/"),
                Kind::File { size } => {
                    format!("{indent}{name}  {}", crate::text::words::bytes(*size))
                }
                Kind::Link { to } => format!("{indent}{name} -> {}", to.display()),
                Kind::Other => format!("{indent}{name}  (not a file)"),
            }
        })
        .collect();
    if left_out > 0 {
        lines.push(format!("[{left_out} more entries; list a folder of them]"));
    }
    lines.join("\n")
}
