//! `grep`: file contents by regular expression.

use std::path::PathBuf;

use futures_util::future::BoxFuture;
use serde_json::Value;

use super::read::state;
use super::{Outcome, OutputSink, Prepared, Tool, ToolContext, ToolFailure, args};
use crate::fs::search::{Found, Query, search};
use crate::fs::walk::Scope;
use crate::ids::CallId;
use crate::permission::{Action, Grant, Request, is_private};
use crate::rt::{self, CancellationToken};

/// Matching lines when no limit is said (loop.json `budgets.cli.grep_matches`), and at most.
const MATCHES: usize = 200;
const MAX_MATCHES: usize = 2_000;
const MAX_CONTEXT: usize = 20;

pub(super) struct Grep;

#[derive(Debug)]
struct Wanted {
    folder: PathBuf,
    query: Query,
}

impl Tool for Grep {
    fn name(&self) -> &'static str {
        "grep"
    }

    fn prepare(&self, args: &Value, context: &ToolContext) -> Result<Prepared, ToolFailure> {
        let query = Query {
            pattern: args::text(args, "pattern")?,
            ignore_case: args::flag(args, "ignore_case")?,
            include: args::maybe_text(args, "include")?,
            context: args::number(args, "context", 0)?
                .unwrap_or(0)
                .min(MAX_CONTEXT),
            most: args::number(args, "limit", 1)?
                .unwrap_or(MATCHES)
                .min(MAX_MATCHES),
        };
        let named = args::folder(args, "path", context)?;
        if !named.path.exists() {
            return Err(crate::fs::FsError::Missing(named.path).into());
        }
        let place = args::shown(&named.path, context);
        Ok(Prepared {
            title: if place == "." {
                query.pattern.clone()
            } else {
                format!("{} in {place}", query.pattern)
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
                query,
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
        stop: CancellationToken,
    ) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            let Ok(wanted) = state::<Wanted>(prepared.state) else {
                return Outcome::failed("the call was not prepared by this tool");
            };
            let folder = wanted.folder.clone();
            let answer = rt::blocking(move || {
                let scope = Scope::new(&grant, &wanted.folder, is_private)
                    .map_err(|error| error.to_string())?;
                search(scope, &wanted.query, &stop)
            })
            .await;
            match answer {
                Some(Ok(found)) => Outcome::ok(shown(&found, |path| {
                    args::shown(&folder.join(path), context)
                })),
                Some(Err(words)) => Outcome::failed(words),
                None => Outcome::failed("the search failed inside lembas; see its log"),
            }
        })
    }
}

fn shown(found: &Found, name: impl Fn(&std::path::Path) -> String) -> String {
    let mut text = String::new();
    for file in &found.files {
        let path = name(&file.path);
        let mut before = None;
        for (number, matches, line) in &file.lines {
            if before.is_some_and(|before| before + 1 != *number) && file.lines.iter().any(|l| !l.1)
            {
                text.push_str("--\n");
            }
            before = Some(*number);
            let mark = if *matches { ':' } else { '-' };
            text.push_str(&format!("{path}{mark}{number}{mark}{line}\n"));
        }
    }
    if text.is_empty() {
        text.push_str("Nothing matches.\n");
    }
    if found.cut {
        text.push_str(&format!(
            "[ended after {} matching lines; there may be more]\n",
            found.matches
        ));
    }
    if found.passed_by > 0 {
        text.push_str(&format!(
            "[{} not looked into: too long, or read only when asked for by name]\n",
            crate::text::words::plural(found.passed_by as u64, "file", "files")
        ));
    }
    text.truncate(text.trim_end().len());
    text
}
