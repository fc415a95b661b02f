//! `bash`: a command, in its box or, when asked for and allowed, outside of it.

use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::Value;

use super::{Outcome, OutputSink, Prepared, Tool, ToolContext, ToolFailure, args};
use crate::exec::{Ended, How, run};
use crate::ids::CallId;
use crate::permission::{Action, Command, Grant, Purpose, Request};
use crate::rt::CancellationToken;
use crate::store::item::CallStatus;
use crate::store::journal::SESSION_CAP;

/// Seconds without a timeout said, and at most (loop.json `budgets.cli`).
const TIMEOUT: usize = 120;
const MAX_TIMEOUT: usize = 600;
/// Bytes of a command. More is refused: write it to a file.
const MAX_COMMAND: usize = 64 * 1024;

pub(super) struct Bash;

impl Tool for Bash {
    fn name(&self) -> &'static str {
        "bash"
    }

    fn prepare(&self, args: &Value, context: &ToolContext) -> Result<Prepared, ToolFailure> {
        let text = args::text(args, "command")?;
        if text.trim().is_empty() {
            return Err(ToolFailure("command is empty".to_owned()));
        }
        if text.len() > MAX_COMMAND {
            return Err(ToolFailure(format!(
                "command is {} bytes; at most {MAX_COMMAND}: write a script with write and run that",
                text.len()
            )));
        }
        if text.contains('\0') {
            return Err(ToolFailure("a command cannot hold a NUL".to_owned()));
        }
        let seconds = args::number(args, "timeout", 1)?
            .unwrap_or(TIMEOUT)
            .min(MAX_TIMEOUT);
        let timeout = Duration::from_secs(seconds as u64);
        let open = if args::flag(args, "open")? {
            Some(args::maybe_text(args, "why")?.unwrap_or_default())
        } else {
            None
        };
        Ok(Prepared {
            title: crate::text::cut::one_line(&text, 200),
            locations: Vec::new(),
            request: Request {
                tool: self.name().to_owned(),
                action: Action::Execute(Command {
                    text,
                    timeout,
                    purpose: Purpose::Tool,
                    open,
                }),
                cwd: context.cwd.clone(),
            },
            state: Box::new(()),
        })
    }

    fn run<'a>(
        &'a self,
        call: &'a CallId,
        prepared: Prepared,
        grant: Grant,
        context: &'a ToolContext,
        output: &'a dyn OutputSink,
        stop: CancellationToken,
    ) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            drop(prepared);
            let spill = context.spill.join(format!("{call}.out"));
            let room = match &context.store {
                Some(store) => store.room_for_output(&context.session).await,
                None => u64::MAX,
            };
            match run(grant, spill, room, &|chunk| output.text(chunk), stop).await {
                Ok(ended) => told(&ended),
                Err(error) => Outcome {
                    bytes: 0,
                    ..Outcome::failed(format!("The command was not run: {error}."))
                },
            }
        })
    }
}

fn told(ended: &Ended) -> Outcome {
    let mut text = plain(&ended.output.text());
    text.truncate(text.trim_end().len());
    let (end, status, exit) = match (ended.how, ended.exit) {
        (How::Finished, 0) => (None, CallStatus::Ok, Some(0)),
        (How::Finished, code) => (
            Some(format!("[exit {code}]")),
            CallStatus::Failed,
            Some(code),
        ),
        (How::TimedOut, _) => (
            Some(format!(
                "[ran longer than {} s and was ended, with everything it had started]",
                ended.limit.as_secs()
            )),
            CallStatus::Failed,
            None,
        ),
        (How::Stopped, _) => (Some("[stopped]".to_owned()), CallStatus::Cancelled, None),
    };
    if ended.output.missing > 0 {
        let missing = crate::text::words::bytes(ended.output.missing);
        push(
            &mut text,
            &format!(
                "[{missing} from the middle of this output are kept nowhere: the outputs of one chat take at most {} here. Send it to a file next time, or look for less.]",
                crate::text::words::bytes(SESSION_CAP)
            ),
        );
    }
    if let Some(line) = &ended.blocked {
        push(
            &mut text,
            &format!(
                "[It ran in a box, which may be why it failed: {line} If it needs more, call again with open: true and say why.]"
            ),
        );
    }
    if let Some(end) = end {
        push(&mut text, &end);
    }
    if text.is_empty() {
        text.push_str("[no output]");
    }
    Outcome {
        status,
        exit,
        bytes: ended.output.bytes,
        spill: ended.output.spill.as_ref().map(|p| p.display().to_string()),
        ..Outcome::ok(text)
    }
}

fn push(text: &mut String, line: &str) {
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(line);
}

/// Text as a model reads it: terminal sequences dropped, lines that were drawn over folded to how
/// they looked last.
pub(super) fn plain(text: &str) -> String {
    let mut made = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => skip(&mut chars),
            '\r' if chars.peek() != Some(&'\n') => {
                // Drawn over: what stood in this line goes, unless nothing follows.
                if chars.peek().is_some() {
                    let keep = made.rfind('\n').map_or(0, |at| at + 1);
                    made.truncate(keep);
                }
            }
            '\n' | '\t' => made.push(c),
            '\u{8}' => {
                if !made.ends_with('\n') {
                    made.pop();
                }
            }
            c if c.is_control() => {}
            c => made.push(c),
        }
    }
    made
}

fn skip(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match chars.next() {
        Some('[') => {
            for c in chars.by_ref() {
                if ('@'..='~').contains(&c) {
                    break;
                }
            }
        }
        Some(']' | 'P' | '_' | '^' | 'X') => {
            while let Some(c) = chars.next() {
                if c == '\u{7}' {
                    break;
                }
                if c == '\u{1b}' {
                    chars.next();
                    break;
                }
            }
        }
        Some('(' | ')' | '*' | '+' | '#' | '%') => {
            chars.next();
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_sequences_do_not_reach_the_model() {
        for (text, read) in [
            ("\u{1b}[31mred\u{1b}[0m", "red"),
            ("10%\r50%\r100%\n", "100%\n"),
            ("dos\r\n", "dos\n"),
            ("\u{1b}]0;title\u{7}a\u{1b}]8;;x\u{1b}\\b", "ab"),
            ("ab\u{8}c", "ac"),
            ("bell\u{7}", "bell"),
        ] {
            assert_eq!(plain(text), read);
        }
    }
}
