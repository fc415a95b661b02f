//! Shortening a conversation: when, and what stands for what was covered (context.md §7). Pure.
//!
//! Not here: asking for the summary (`agent`), what a history shows of it ([`super::History`]).

use std::sync::Arc;

use crate::model::{Content, Message, ToolDef};
use crate::spec;
use crate::text::cut::{Limits, middle_out};

/// About so many tokens are in a byte of a request, before a server said how many it counted.
const FIRST_RATIO: f64 = 0.28;
/// What an image is taken for, in tokens.
const IMAGE: u64 = 1_500;
/// What stays of a long result where even the request for a summary is too long.
const SHORT: Limits = Limits {
    lines: 40,
    chars: 2_000,
};

/// How long a request is, as far as that can be told without the model's own counting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    pub bytes: u64,
    pub images: u64,
}

impl Size {
    /// Of a whole request.
    pub fn of(system: &str, tools: &Arc<Vec<ToolDef>>, messages: &[Message]) -> Self {
        let tools = tools.iter().map(|tool| {
            tool.name.len() + tool.description.len() + tool.parameters.to_string().len()
        });
        let mut size = Self {
            bytes: (system.len() + tools.sum::<usize>()) as u64,
            images: 0,
        };
        for message in messages {
            size.add(message);
        }
        size
    }

    /// Of messages alone.
    pub fn of_messages(messages: &[Message]) -> Self {
        let mut size = Self::default();
        messages.iter().for_each(|message| size.add(message));
        size
    }

    fn add(&mut self, message: &Message) {
        let bytes = match message {
            Message::User(parts) => parts
                .iter()
                .map(|part| match part {
                    Content::Text(text) => text.len(),
                    Content::Image { .. } => {
                        self.images += 1;
                        0
                    }
                })
                .sum(),
            Message::Assistant {
                text,
                reasoning,
                calls,
            } => {
                let calls = calls.iter().map(|c| c.name.len() + c.args.len() + 40);
                text.len() + reasoning.as_ref().map_or(0, String::len) + calls.sum::<usize>()
            }
            Message::Tool { text, .. } => text.len() + 20,
        };
        self.bytes += bytes as u64;
    }
}

/// What a model's server counted for the last request it answered.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counted(Option<f64>);

impl Counted {
    /// A request of this size was counted as so many tokens; zero: it did not say.
    pub fn learn(&mut self, size: Size, tokens: u64) {
        let text = tokens.saturating_sub(size.images * IMAGE);
        if text > 0 && size.bytes > 0 {
            // A server that counts only what its cache lacked must not make all look small.
            let ratio = ratio(text, size.bytes);
            self.0 = Some(ratio.clamp(0.1, 1.5));
        }
    }

    /// About how many tokens a request of this size has.
    pub fn tokens(self, size: Size) -> u64 {
        let text = scaled(size.bytes, self.0.unwrap_or(FIRST_RATIO));
        text + size.images * IMAGE
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "an estimate of sizes far below 2^52"
)]
fn ratio(tokens: u64, bytes: u64) -> f64 {
    tokens as f64 / bytes as f64
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an estimate of sizes far below 2^52"
)]
fn scaled(bytes: u64, ratio: f64) -> u64 {
    (bytes as f64 * ratio) as u64
}

/// The tokens from which on a request is shortened before it is sent. `context`: of the model;
/// none: it is not known.
pub fn limit(context: Option<u64>) -> u64 {
    let numbers = &spec::numbers().context;
    let context = context.unwrap_or(numbers.default_context);
    // A small model keeps most of its context.
    let reserve = numbers.reserve_tokens.min(context / 4);
    (context - reserve) / 100 * numbers.compact_at_percent
}

/// What the model is sent in place of what a summary covers: the summary, and the reads.
pub fn text(summary: &str, rows: &[String]) -> String {
    let texts = &spec::numbers().context.compaction;
    let mut text = texts.say("summary", &[("text", summary.trim())]);
    if !rows.is_empty() {
        text.push_str("\n\n");
        text.push_str(&texts.say("table", &[("rows", &rows.join("\n"))]));
    }
    text
}

/// A conversation that is too long even to be summed up: results and answers lose their middle,
/// and while it is over `bytes` the oldest messages go, never a call without its result.
pub fn squeeze(messages: Vec<Message>, bytes: u64) -> Vec<Message> {
    let short = |text: String| middle_out(&text, SHORT, "…").into_owned();
    let mut messages: Vec<Message> = messages
        .into_iter()
        .map(|message| match message {
            Message::User(parts) => Message::User(
                parts
                    .into_iter()
                    .filter_map(|part| match part {
                        Content::Text(text) => Some(Content::Text(short(text))),
                        Content::Image { .. } => None,
                    })
                    .collect(),
            ),
            Message::Assistant { text, calls, .. } => Message::Assistant {
                text: short(text),
                reasoning: None,
                calls: calls
                    .into_iter()
                    .map(|mut call| {
                        if call.args.len() > SHORT.chars {
                            "{}".clone_into(&mut call.args);
                        }
                        call
                    })
                    .collect(),
            },
            Message::Tool { call, text } => Message::Tool {
                call,
                text: short(text),
            },
        })
        .collect();
    while messages.len() > 1 && Size::of_messages(&messages).bytes > bytes {
        messages.remove(0);
        while matches!(messages.first(), Some(Message::Tool { .. })) {
            messages.remove(0);
        }
    }
    messages
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ToolCall;

    fn user(text: &str) -> Message {
        Message::User(vec![Content::Text(text.to_owned())])
    }

    #[test]
    fn a_small_model_keeps_most_of_its_context() {
        assert_eq!(limit(Some(128_000)), 96_000);
        assert_eq!(limit(None), limit(Some(128_000)));
        assert_eq!(limit(Some(8_000)), 4_800);
        assert_eq!(limit(Some(1)), 0);
    }

    #[test]
    fn what_a_server_counts_is_believed() {
        let size = Size {
            bytes: 10_000,
            images: 1,
        };
        let mut counted = Counted::default();
        assert_eq!(counted.tokens(size), 2_800 + IMAGE);
        counted.learn(size, 5_000 + IMAGE);
        assert_eq!(counted.tokens(size), 5_000 + IMAGE);
        counted.learn(size, 0);
        assert_eq!(counted.tokens(size), 5_000 + IMAGE);
    }

    #[test]
    fn a_squeezed_conversation_fits_and_every_result_has_its_call() {
        let mut messages = vec![user(&"a".repeat(9_000))];
        for n in 0..20 {
            messages.push(Message::Assistant {
                text: String::new(),
                reasoning: Some("r".repeat(9_000)),
                calls: vec![ToolCall {
                    id: n.to_string(),
                    name: "bash".into(),
                    args: format!("\"{}\"", "x".repeat(9_000)),
                }],
            });
            messages.push(Message::Tool {
                call: n.to_string(),
                text: "b".repeat(50_000),
            });
        }
        let squeezed = squeeze(messages, 10_000);
        assert!(Size::of_messages(&squeezed).bytes <= 10_000);
        assert!(squeezed.len() > 4);
        assert!(matches!(squeezed.first(), Some(Message::Assistant { .. })));
    }

    #[test]
    fn a_summary_stands_with_the_reads_it_covers() {
        insta::assert_snapshot!(text(" All of it. ", &["a.rs lines 1 to 9, 0011 (#0001)".into()]), @r"
        <summary>
        All of it.
        </summary>

        What was read before, as it was then:
        a.rs lines 1 to 9, 0011 (#0001)
        ");
    }
}
