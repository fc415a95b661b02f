//! Items of a journal → messages of a model request. Pure.
//!
//! Every call is followed by its result, whatever happened to it: a server refuses a
//! conversation where one is missing.

use std::collections::HashMap;

use crate::ids::{CallId, Digest, Seq};
use crate::model::{Content, Message, ToolCall};
use crate::plan::Plan;
use crate::spec::{self, Spec};
use crate::store::item::{Body, Compacted, Item, Part, Saw};

/// Characters of an answer that was never completed and never will be.
const CUT_OFF: usize = 4_000;

/// The items that a history is made of, in order, from the last compaction on.
#[derive(Clone, Debug, Default)]
pub struct History {
    items: Vec<Item>,
    /// What stands for everything before.
    lead: Option<String>,
    /// The prompt of a turn whose beginning is covered: it is kept all the same.
    prompt: Option<Item>,
    plan: Option<Plan>,
}

/// How much of a history a summary shall cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cover {
    /// All turns before the one that runs.
    Earlier,
    /// The steps of the running turn too.
    All,
}

/// An assistant message while its items are read.
#[derive(Debug, Default)]
struct Step {
    text: String,
    thought: String,
    calls: Vec<(CallId, ToolCall)>,
    sampled: bool,
}

impl History {
    /// From what the store has of a session ([`crate::store::device::Store::history`]).
    pub fn new(items: Vec<Item>) -> Self {
        let mut history = Self::default();
        history.push(items);
        history
    }

    /// Adds what was committed since.
    pub fn push(&mut self, items: impl IntoIterator<Item = Item>) {
        for item in items {
            match &item.body {
                Body::Plan { plan } => self.plan = Some(Plan::from_value(plan)),
                Body::Notice {
                    compacted: Some(compacted),
                    ..
                } => {
                    let compacted = compacted.clone();
                    self.compact(item.turn, &compacted);
                }
                body if matters(body) => self.items.push(item),
                _ => {}
            }
        }
    }

    /// Has a summary stand for what it covers; `turn` is the one that runs.
    pub fn compact(&mut self, turn: u32, compacted: &Compacted) {
        // Streamed text is known here without its number; it goes with what stands before it.
        let covered = self
            .items
            .iter()
            .rposition(|i| i.seq != Seq(0) && i.seq <= compacted.upto)
            .map_or(0, |at| at + 1);
        let gone: Vec<Item> = self.items.drain(..covered).collect();
        let kept = gone
            .into_iter()
            .rev()
            .find(|i| i.turn == turn && matches!(i.body, Body::Prompt { .. }));
        // One that an earlier summary left stands before all that is here.
        self.prompt = kept.or_else(|| self.prompt.take().filter(|p| p.turn == turn));
        self.lead = Some(compacted.text.clone());
    }

    /// The plan as it is now.
    pub fn plan(&self) -> Plan {
        self.plan.clone().unwrap_or_default()
    }

    /// The messages. Reasoning goes back for the turn that is the last one, and for no other
    /// (context.md §8). `images`: the model takes them.
    pub fn messages(&self, images: bool) -> Vec<Message> {
        self.render(&self.items, images)
    }

    /// The messages that a summary would cover; the request for it comes behind them. None: there
    /// is nothing to cover.
    pub fn covered(&self, cover: Cover, images: bool) -> Option<(Vec<Message>, Seq)> {
        let items = match cover {
            // A request that was begun and not made stays: its answer follows.
            Cover::All => match self.items.split_last() {
                Some((last, rest)) if matches!(last.body, Body::Step { .. }) => rest,
                _ => self.items.as_slice(),
            },
            Cover::Earlier => {
                let prompts = self.items.iter().enumerate().rev();
                let keep = spec::numbers().context.keep_turns;
                let (kept, _) = prompts
                    .filter(|(_, item)| is_prompt(item))
                    .nth(keep.saturating_sub(1))?;
                self.items.get(..kept)?
            }
        };
        let upto = items.iter().map(|i| i.seq).max().filter(|seq| seq.0 > 0)?;
        let begun = items.iter().any(|i| matches!(i.body, Body::Sampled { .. }));
        let earlier = items.iter().filter(|i| is_prompt(i)).count() > 1;
        (begun || earlier).then(|| (self.render(items, images), upto))
    }

    /// What the files looked like that a summary covers, one line each (context.md, C12).
    pub fn table(&self, upto: Seq) -> Vec<String> {
        let texts = &spec::numbers().context;
        self.looks()
            .filter(|(seq, ..)| *seq <= upto)
            .filter_map(|(_, call, saw)| {
                let (first, last) = saw.lines?;
                let (first, last) = (first.to_string(), last.to_string());
                Some(texts.compaction.say(
                    "row",
                    &[
                        ("path", &saw.given),
                        ("first", &first),
                        ("last", &last),
                        ("hash", short(&saw.digest)),
                        ("id", call.as_str()),
                    ],
                ))
            })
            .collect()
    }

    /// The call whose result, in the request being built, holds these lines of a file as it is
    /// (context.md, C6).
    pub fn holds(&self, saw: &Saw) -> Option<&CallId> {
        let (first, last) = saw.lines?;
        self.looks()
            .filter(|(_, _, known)| known.path == saw.path)
            .find(|(_, _, known)| {
                known.digest == saw.digest
                    && known.lines.is_some_and(|(f, l)| f <= first && last <= l)
            })
            .map(|(_, call, _)| call)
    }

    /// The call of the same tool, with the same arguments and the same result, in the request
    /// being built (context.md, C7).
    pub fn same(&self, tool: &str, args: &str, text: &str) -> Option<&CallId> {
        let calls: Vec<&CallId> = self
            .items
            .iter()
            .filter_map(|i| match &i.body {
                Body::Call {
                    call,
                    tool: t,
                    args: a,
                    ..
                } if t == tool && a == args => Some(call),
                _ => None,
            })
            .collect();
        self.items.iter().find_map(|i| match &i.body {
            Body::Result { call, text: t, .. } if t == text && calls.contains(&call) => Some(call),
            _ => None,
        })
    }

    /// What calls saw of files, oldest first.
    pub fn looks(&self) -> impl Iterator<Item = (Seq, &CallId, &Saw)> {
        self.items.iter().filter_map(|i| match &i.body {
            Body::Result {
                call,
                saw: Some(saw),
                ..
            } => Some((i.seq, call, saw)),
            _ => None,
        })
    }

    fn render(&self, items: &[Item], images: bool) -> Vec<Message> {
        let last_turn = self.items.last().map_or(0, |i| i.turn);
        let results = self.results();
        let mut messages = Vec::new();
        let mut lead = self.lead.as_deref();
        let mut step: Option<Step> = None;
        for item in self.prompt.iter().chain(items) {
            match &item.body {
                Body::Prompt { parts, note, .. } => {
                    finish(&mut messages, step.take(), &results, false);
                    let content = content(lead.take(), note.as_deref(), parts, images);
                    messages.push(Message::User(content));
                }
                Body::Step { note, .. } => {
                    // An answer that was cut off and asked for again counts for nothing.
                    let cut = step.as_ref().is_some_and(|s| !s.sampled);
                    let reasoning = item.turn == last_turn;
                    finish(
                        &mut messages,
                        step.take().filter(|_| !cut),
                        &results,
                        reasoning,
                    );
                    if let Some(note) = note {
                        messages.push(Message::User(vec![Content::Text(wrapped(note))]));
                    }
                    step = Some(Step::default());
                }
                Body::TurnEnd { .. } => {
                    if let Some(step) = step.as_mut().filter(|s| !s.sampled) {
                        let kept = step.text.char_indices().nth(CUT_OFF);
                        step.text
                            .truncate(kept.map_or(step.text.len(), |(at, _)| at));
                    }
                    let reasoning = item.turn == last_turn;
                    finish(&mut messages, step.take(), &results, reasoning);
                }
                body => {
                    if let Some(step) = &mut step {
                        step.take(body, item.turn == last_turn);
                    }
                }
            }
        }
        finish(&mut messages, step, &results, true);
        messages
    }

    /// The text of each call's result, under its number.
    fn results(&self) -> HashMap<&CallId, String> {
        self.items
            .iter()
            .filter_map(|i| match &i.body {
                Body::Result { call, text, .. } => Some((call, format!("{}\n{text}", id(call)))),
                _ => None,
            })
            .collect()
    }
}

/// A call's number as it stands before its result.
fn id(call: &CallId) -> String {
    let facts = spec::Facts::from([("id".to_owned(), call.to_string())]);
    spec::fill(&spec::numbers().context.id, &facts).unwrap_or_default()
}

/// The digits of a content hash that a model is shown.
pub fn short(digest: &Digest) -> &str {
    let hash = digest.as_str();
    let hash = hash.strip_prefix("sha256:").unwrap_or(hash);
    let digits = spec::numbers().context.hash_digits;
    hash.get(..digits).unwrap_or(hash)
}

fn is_prompt(item: &Item) -> bool {
    matches!(item.body, Body::Prompt { .. })
}

impl Step {
    fn take(&mut self, body: &Body, this_turn: bool) {
        match body {
            Body::Message { text } => self.text.push_str(text),
            Body::Thought { text } if this_turn => self.thought.push_str(text),
            Body::Call {
                call,
                model_call,
                tool,
                args,
                ..
            } => self.calls.push((
                call.clone(),
                ToolCall {
                    id: model_call.clone(),
                    name: tool.clone(),
                    args: args.clone(),
                },
            )),
            Body::Sampled { .. } => self.sampled = true,
            _ => {}
        }
    }
}

fn matters(body: &Body) -> bool {
    matches!(
        body,
        Body::Prompt { .. }
            | Body::Step { .. }
            | Body::Message { .. }
            | Body::Thought { .. }
            | Body::Call { .. }
            | Body::Sampled { .. }
            | Body::Ask(_)
            | Body::Answered { .. }
            | Body::Started { .. }
            | Body::Result { .. }
            | Body::TurnEnd { .. }
    )
}

/// Ends an assistant message. `reasoning`: its turn is the last one, so its reasoning goes back.
fn finish(
    messages: &mut Vec<Message>,
    step: Option<Step>,
    results: &HashMap<&CallId, String>,
    reasoning: bool,
) {
    let Some(step) = step else { return };
    // Some servers refuse a message that says nothing.
    if step.text.is_empty() && step.calls.is_empty() {
        return;
    }
    let (ids, calls): (Vec<CallId>, Vec<ToolCall>) = step.calls.into_iter().unzip();
    let answers: Vec<Message> = ids
        .iter()
        .zip(&calls)
        .map(|(id, call)| Message::Tool {
            call: call.id.clone(),
            text: results.get(id).cloned().unwrap_or_else(|| {
                // Whatever happened to a call, the model reads that it did.
                spec::numbers().calls.say("no_result", &[])
            }),
        })
        .collect();
    messages.push(Message::Assistant {
        text: step.text,
        reasoning: (reasoning && !step.thought.is_empty()).then_some(step.thought),
        calls,
    });
    messages.extend(answers);
}

fn content(lead: Option<&str>, note: Option<&str>, parts: &[Part], images: bool) -> Vec<Content> {
    let mut contents: Vec<Content> = Vec::new();
    let mut text = lead.unwrap_or_default().to_owned();
    if let Some(note) = note {
        join(&mut text, &wrapped(note));
    }
    for part in parts {
        match part {
            Part::Text { text: more } => join(&mut text, more),
            Part::Link { uri, name } => join(&mut text, &format!("[{name}]({uri})")),
            Part::Image { .. } if !images => {
                let left_out = &spec::numbers().context.images;
                join(&mut text, left_out.raw("left_out"));
            }
            Part::Image { mime, data } => {
                if !text.is_empty() {
                    contents.push(Content::Text(std::mem::take(&mut text)));
                }
                contents.push(Content::Image {
                    mime: mime.clone(),
                    data: data.clone(),
                });
            }
        }
    }
    if !text.is_empty() || contents.is_empty() {
        contents.push(Content::Text(text));
    }
    contents
}

fn join(text: &mut String, more: &str) {
    if !text.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str(more);
}

/// A note as the model sees it.
pub fn wrapped(note: &str) -> String {
    let note = Spec::embedded().note(&[note.to_owned()]);
    note.unwrap_or_default()
}

#[cfg(test)]
mod tests;
