//! `recall`: a result of this session that was cut, or that a summary stands for now.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use futures_util::future::BoxFuture;
use serde_json::Value;

use super::bash::plain;
use super::read::state;
use super::{Outcome, OutputSink, Prepared, Tool, ToolContext, ToolFailure, args};
use crate::ids::CallId;
use crate::permission::{Action, Grant, Request};
use crate::rt::{self, CancellationToken};
use crate::spec;

/// Characters of one line; a longer line is shown as several, so that each can be asked for.
const LINE: usize = 1_000;

pub(super) struct Recall;

#[derive(Clone, Debug)]
struct Wanted {
    id: String,
    offset: usize,
    limit: usize,
}

/// Where a result is kept whole when it was cut before the model read it.
pub fn kept(spill: &Path, call: &str) -> PathBuf {
    spill.join(format!("{call}.txt"))
}

impl Tool for Recall {
    fn name(&self) -> &'static str {
        "recall"
    }

    fn prepare(&self, args: &Value, context: &ToolContext) -> Result<Prepared, ToolFailure> {
        let given = args::text(args, "id")?;
        let id = given
            .trim()
            .trim_matches(['[', ']'])
            .trim_start_matches('#');
        let id = id.to_ascii_lowercase();
        // It becomes the name of a file.
        if id.len() < 4 || id.len() > 8 || !id.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(ToolFailure(
                "id must be a result's number as it stands before the result, such as #000a"
                    .to_owned(),
            ));
        }
        let limit = spec::numbers().context.output.max_lines;
        Ok(Prepared {
            title: format!("#{id}"),
            locations: Vec::new(),
            request: Request {
                tool: self.name().to_owned(),
                action: Action::Interact,
                cwd: context.cwd.clone(),
            },
            state: Box::new(Wanted {
                id,
                offset: args::number(args, "offset", 1)?.unwrap_or(1),
                limit: args::number(args, "limit", 1)?.unwrap_or(limit).min(limit),
            }),
        })
    }

    fn run<'a>(
        &'a self,
        _call: &'a CallId,
        prepared: Prepared,
        _grant: Grant,
        context: &'a ToolContext,
        _output: &'a dyn OutputSink,
        _stop: CancellationToken,
    ) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            let Ok(wanted) = state::<Wanted>(prepared.state) else {
                return Outcome::failed("the call was not prepared by this tool");
            };
            let unknown = format!("There is no result #{} in this session.", wanted.id);
            let Some(store) = &context.store else {
                return Outcome::failed(unknown);
            };
            let (text, _) = match store.result(&context.session, &wanted.id).await {
                Ok(Some(found)) => found,
                Ok(None) => return Outcome::failed(unknown),
                Err(error) => return Outcome::failed(error.to_string()),
            };
            let spill = context.spill.clone();
            let shown = rt::blocking(move || {
                let output = spill.join(format!("{}.out", wanted.id));
                // The whole output of a command, where it was too long even for memory.
                lines(&output, &wanted)
                    .or_else(|| lines(&kept(&spill, &wanted.id), &wanted))
                    .unwrap_or_else(|| part(text.lines().map(str::to_owned), &wanted))
            })
            .await;
            match shown {
                Some(text) => Outcome::ok(text),
                None => Outcome::failed("recalling failed inside lembas; see its log"),
            }
        })
    }
}

/// The wanted part of a file, which is never read whole; none: there is no such file.
fn lines(path: &Path, wanted: &Wanted) -> Option<String> {
    let file = std::fs::File::open(path).ok()?;
    let lines = BufReader::new(file).split(b'\n').map_while(Result::ok);
    let lines = lines.map(|line| plain(&String::from_utf8_lossy(&line)));
    Some(part(lines, wanted))
}

fn part(lines: impl Iterator<Item = String>, wanted: &Wanted) -> String {
    let mut text = String::new();
    let mut total = 0;
    for line in lines.flat_map(|line| pieces(&line)) {
        total += 1;
        if total >= wanted.offset && total - wanted.offset < wanted.limit {
            text.push_str(&format!("\n{total}\t{line}"));
        }
    }
    if wanted.offset > total {
        return format!(
            "[#{} has {total} lines; there is no line {}]",
            wanted.id, wanted.offset
        );
    }
    let last = total.min(wanted.offset + wanted.limit - 1);
    format!(
        "[#{}, lines {} to {last} of {total}]{text}",
        wanted.id, wanted.offset
    )
}

fn pieces(line: &str) -> Vec<String> {
    if line.len() <= LINE {
        return vec![line.to_owned()];
    }
    let chars: Vec<char> = line.chars().collect();
    chars
        .chunks(LINE)
        .map(|piece| piece.iter().collect())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(offset: usize, limit: usize) -> Wanted {
        Wanted {
            id: "0001".to_owned(),
            offset,
            limit,
        }
    }

    #[test]
    fn every_part_of_a_result_can_be_reached() {
        let text = format!("one\n{}\nthree", "x".repeat(2_500));
        let shown = |offset, limit| part(text.lines().map(str::to_owned), &wanted(offset, limit));
        assert_eq!(shown(1, 1), "[#0001, lines 1 to 1 of 5]\n1\tone");
        assert_eq!(
            shown(4, 9),
            format!(
                "[#0001, lines 4 to 5 of 5]\n4\t{}\n5\tthree",
                "x".repeat(500)
            )
        );
        assert_eq!(shown(6, 1), "[#0001 has 5 lines; there is no line 6]");
    }
}
