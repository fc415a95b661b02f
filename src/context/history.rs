//! Items of a journal → messages of a model request. Pure.
//!
//! Every call is followed by its result, whatever happened to it: a server refuses a
//! conversation where one is missing.

use std::collections::HashMap;

use crate::ids::CallId;
use crate::model::{Content, Message, ToolCall};
use crate::plan::Plan;
use crate::store::item::{Body, Item, Part};

/// What the model reads for a call that has no result of its own.
const NO_RESULT: &str = "Not run: the turn ended before this call.";

/// The items that a history is made of, in order.
#[derive(Clone, Debug, Default)]
pub struct History {
    items: Vec<Item>,
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
        Self { items }
    }

    /// Adds what was committed since.
    pub fn push(&mut self, items: impl IntoIterator<Item = Item>) {
        self.items
            .extend(items.into_iter().filter(|i| matters(&i.body)));
    }

    /// The items of one turn.
    pub fn turn(&self, turn: u32) -> impl Iterator<Item = &Item> {
        self.items.iter().filter(move |i| i.turn == turn)
    }

    /// The plan as it is now.
    pub fn plan(&self) -> Plan {
        self.items
            .iter()
            .rev()
            .find_map(|item| match &item.body {
                Body::Plan { plan } => Some(Plan::from_value(plan)),
                _ => None,
            })
            .unwrap_or_default()
    }

    /// The messages. Reasoning goes back for the turn that is the last one, and for no other
    /// (context.md §8).
    pub fn messages(&self) -> Vec<Message> {
        let last_turn = self.items.last().map_or(0, |i| i.turn);
        let results = self.results();
        let mut messages = Vec::new();
        let mut step: Option<Step> = None;
        for item in &self.items {
            match &item.body {
                Body::Prompt { parts, note, .. } => {
                    finish(&mut messages, step.take(), &results, false);
                    messages.push(Message::User(content(note.as_deref(), parts)));
                }
                Body::Step { .. } => {
                    // An answer that was cut off and asked for again counts for nothing.
                    let cut = step.as_ref().is_some_and(|s| !s.sampled);
                    let reasoning = item.turn == last_turn;
                    finish(
                        &mut messages,
                        step.take().filter(|_| !cut),
                        &results,
                        reasoning,
                    );
                    step = Some(Step::default());
                }
                Body::TurnEnd { .. } => {
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
                Body::Result { call, text, .. } => Some((call, format!("[#{call}]\n{text}"))),
                _ => None,
            })
            .collect()
    }
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
            text: results
                .get(id)
                .cloned()
                .unwrap_or_else(|| NO_RESULT.to_owned()),
        })
        .collect();
    messages.push(Message::Assistant {
        text: step.text,
        reasoning: (reasoning && !step.thought.is_empty()).then_some(step.thought),
        calls,
    });
    messages.extend(answers);
}

fn content(note: Option<&str>, parts: &[Part]) -> Vec<Content> {
    let mut contents: Vec<Content> = Vec::new();
    let mut text = note.map_or_else(String::new, wrapped);
    for part in parts {
        match part {
            Part::Text { text: more } => join(&mut text, more),
            Part::Link { uri, name } => join(&mut text, &format!("[{name}]({uri})")),
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
    format!("<session-note>\n{note}\n</session-note>")
}

#[cfg(test)]
mod tests;
