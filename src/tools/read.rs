//! `read`: a text file, with line numbers.

use std::any::Any;
use std::path::PathBuf;

use futures_util::future::BoxFuture;
use serde_json::Value;

use super::{Outcome, OutputSink, Prepared, Tool, ToolContext, ToolFailure, args};
use crate::context::history::short;
use crate::fs::read::read;
use crate::ids::{CallId, Digest};
use crate::permission::{Action, Grant, Request};
use crate::rt::{self, CancellationToken};
use crate::spec;
use crate::store::item::Saw;

/// Lines without a limit said (loop.json `budgets.cli.read_lines`).
const LINES: usize = 400;
/// Characters of one line that is shown; the rest is counted.
const MAX_LINE: usize = 4_000;
/// Characters of one read in all.
const MAX_CHARS: usize = 200_000;

pub(super) struct Read;

#[derive(Clone, Debug)]
struct Wanted {
    path: PathBuf,
    given: String,
    offset: usize,
    limit: usize,
}

impl Tool for Read {
    fn name(&self) -> &'static str {
        "read"
    }

    fn prepare(&self, args: &Value, context: &ToolContext) -> Result<Prepared, ToolFailure> {
        let named = args::path(args, "path", context)?;
        let offset = args::number(args, "offset", 1)?.unwrap_or(1);
        let limit = args::number(args, "limit", 1)?.unwrap_or(LINES);
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
                given: named.given,
                offset,
                limit,
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
        let seen = context.seen.clone();
        Box::pin(async move {
            let Ok(wanted) = state::<Wanted>(prepared.state) else {
                return Outcome::failed("the call was not prepared by this tool");
            };
            let path = wanted.path.clone();
            let answer = rt::blocking(move || {
                let content = read(&grant, &wanted.path)?;
                let text = content.text(&wanted.path)?;
                seen.note(&wanted.path, content.digest.clone());
                let (text, lines) = numbered(&text.text, &wanted, &content.digest);
                let saw = Saw {
                    path: wanted.path.display().to_string(),
                    given: wanted.given.clone(),
                    digest: content.digest,
                    lines,
                };
                Ok::<_, crate::fs::FsError>((text, saw))
            })
            .await;
            match answer {
                Some(Ok((text, saw))) => Outcome {
                    path: Some(path.display().to_string()),
                    saw: Some(saw),
                    ..Outcome::ok(text)
                },
                Some(Err(error)) => Outcome::failed(error.to_string()),
                None => Outcome::failed("reading failed inside lembas; see its log"),
            }
        })
    }
}

/// Takes a prepared state back out of its box.
pub(super) fn state<T: 'static>(state: Box<dyn Any + Send>) -> Result<T, ()> {
    state.downcast::<T>().map(|value| *value).map_err(|_| ())
}

/// The lines wanted, with their numbers, under their header, and which of them are there whole.
fn numbered(text: &str, wanted: &Wanted, digest: &Digest) -> (String, Option<(usize, usize)>) {
    let texts = &spec::numbers().context.read;
    let hash = short(digest);
    let total = crate::text::cut::count_lines(text);
    if total == 0 {
        let facts = [("path", wanted.given.as_str()), ("hash", hash)];
        return (texts.say("empty", &facts), None);
    }
    if wanted.offset > total {
        let text = format!(
            "[{} has {total} lines, {hash}; there is no line {}]",
            wanted.given, wanted.offset
        );
        return (text, None);
    }
    let mut body = String::new();
    let mut last = wanted.offset - 1;
    let mut chars = 0;
    let mut whole = true;
    for line in text.lines().skip(wanted.offset - 1).take(wanted.limit) {
        let long = line.chars().count();
        chars += long.min(MAX_LINE);
        if chars > MAX_CHARS && last >= wanted.offset {
            break;
        }
        last += 1;
        body.push_str(&format!("\n{last}\t"));
        if long > MAX_LINE {
            whole = false;
            body.extend(line.chars().take(MAX_LINE));
            body.push_str(&format!("… [{} characters more]", long - MAX_LINE));
        } else {
            body.push_str(line);
        }
    }
    let numbers = [wanted.offset, last, total].map(|n| n.to_string());
    let [first, end, total] = numbers.each_ref().map(String::as_str);
    let facts = [
        ("path", wanted.given.as_str()),
        ("first", first),
        ("last", end),
        ("total", total),
        ("hash", hash),
    ];
    let header = texts.say("header", &facts);
    (
        format!("{header}{body}"),
        whole.then_some((wanted.offset, last)),
    )
}
