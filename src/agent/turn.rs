//! What a turn does next, from the items it has. Pure: no clock, no disk, no waiting.
//!
//! The state is a fold over the turn's items and nothing else, so the same decision is made
//! after a restart. Not here: doing it (`driver`).

use serde_json::{Value, json};

use crate::agent::words;
use crate::ids::{AskId, CallId, Digest, Seq};
use crate::spec::{self, run_status};
use crate::store::item::{AskBody, Body, CallStatus, Item, Settled, Stop, Tokens};

/// What comes next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Ask the model. `left`: so many further requests may follow in this turn.
    Sample {
        left: u32,
        /// Why the model is asked although it made no call.
        nudge: Option<Nudge>,
    },
    /// Some calls have no result yet.
    Calls,
    End {
        stop: Stop,
        reason: Option<String>,
    },
}

/// An answer that cannot be used as it is (loop.json `nudges`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nudge {
    /// It said nothing.
    Empty,
    /// It wrote a call as text.
    InText,
}

/// Where a call is on its way.
#[derive(Clone, Debug, PartialEq)]
pub enum Place {
    /// To be judged.
    Made,
    Asking(Box<OpenAsk>),
    /// The person said yes to what has this digest.
    Yes(Digest),
    Started,
    Done,
}

/// A question of this turn that is open.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenAsk {
    pub seq: Seq,
    pub made: i64,
    pub body: AskBody,
}

/// One call of the present step.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    pub call: CallId,
    pub tool: String,
    pub args: String,
    pub place: Place,
    /// What the person said with their yes.
    pub note: Option<String>,
    started: bool,
}

/// A turn as its items say it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Turn {
    pub number: u32,
    pub tokens: Tokens,
    pub calls: Vec<Call>,
    run: Option<Value>,
    steps: u32,
    step: Step,
    refusals: u64,
    fruitless: u64,
    /// Nudges given: for empty answers, and for calls written as text.
    empty: u64,
    in_text: u64,
    again: Again,
}

/// The same call over and over.
#[derive(Clone, Debug, Default, PartialEq)]
struct Again {
    tool: String,
    args: String,
    result: String,
    /// So often in a row, with the same result.
    times: u64,
    /// So often it was not run any more.
    stopped: u64,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Step {
    open: bool,
    sampled: bool,
    finish: String,
    text: String,
    thought: bool,
}

impl Turn {
    /// The turn that these items, all of one turn, are of.
    pub fn of<'a>(items: impl IntoIterator<Item = &'a Item>) -> Self {
        let mut turn = Self::default();
        for item in items {
            turn.apply(item);
        }
        turn
    }

    /// Takes an item that was committed.
    pub fn apply(&mut self, item: &Item) {
        self.number = item.turn;
        match &item.body {
            Body::Prompt { run, .. } => self.run.clone_from(run),
            Body::Step { .. } => {
                self.fruitless = self.fruitless();
                if self.step.sampled && self.calls.is_empty() {
                    // Only a nudge goes on from an answer without a call.
                    match self.unusable() {
                        Some(Nudge::InText) => self.in_text += 1,
                        _ => self.empty += 1,
                    }
                }
                self.steps += 1;
                self.calls.clear();
                self.step = Step {
                    open: true,
                    ..Step::default()
                };
            }
            Body::Message { text } => self.step.text.push_str(text),
            Body::Thought { .. } => self.step.thought = true,
            Body::Call {
                call, tool, args, ..
            } => self.calls.push(Call {
                call: call.clone(),
                tool: tool.clone(),
                args: args.clone(),
                place: Place::Made,
                note: None,
                started: false,
            }),
            Body::Sampled { tokens, finish, .. } => {
                self.step.sampled = true;
                self.step.finish.clone_from(finish);
                self.spent(*tokens);
            }
            Body::Ask(body) => self.put(
                &body.call,
                Place::Asking(Box::new(OpenAsk {
                    seq: item.seq,
                    made: item.time,
                    body: AskBody::clone(body),
                })),
            ),
            Body::Answered { ask, how, note, .. } => self.answered(ask, *how, note.as_ref()),
            Body::Started { call, .. } => {
                self.put(call, Place::Started);
                if let Some(call) = self.calls.iter_mut().find(|c| c.call == *call) {
                    call.started = true;
                }
            }
            Body::Result { call, text, .. } => {
                self.came_back(call, text);
                self.put(call, Place::Done);
            }
            Body::Notice {
                compacted: Some(compacted),
                ..
            } => self.spent(compacted.tokens),
            _ => {}
        }
    }

    fn spent(&mut self, tokens: Tokens) {
        self.tokens.input += tokens.input;
        self.tokens.cached_input += tokens.cached_input;
        self.tokens.output += tokens.output;
    }

    fn came_back(&mut self, call: &CallId, text: &str) {
        let Some(call) = self.calls.iter().find(|c| c.call == *call) else {
            return;
        };
        let again = &mut self.again;
        if again.tool != call.tool || again.args != call.args {
            *again = Again {
                tool: call.tool.clone(),
                args: call.args.clone(),
                result: text.to_owned(),
                times: 1,
                stopped: again.stopped,
            };
        } else if again.times >= words::numbers().repeats && !call.started {
            again.stopped += 1;
        } else if again.result == text {
            again.times += 1;
        } else {
            text.clone_into(&mut again.result);
            again.times = 1;
        }
    }

    /// How often a call would now have been made in a row, when it was often enough to know that
    /// its result does not change.
    pub fn repeated(&self, call: &Call) -> Option<u64> {
        let again = &self.again;
        let same = again.tool == call.tool && again.args == call.args;
        (same && again.times >= words::numbers().repeats).then(|| again.times + again.stopped + 1)
    }

    fn put(&mut self, call: &CallId, place: Place) {
        if let Some(found) = self.calls.iter_mut().find(|c| c.call == *call) {
            found.place = place;
        }
    }

    fn answered(&mut self, ask: &AskId, how: Settled, note: Option<&String>) {
        // One that is closed unanswered counts too: whoever cannot be asked would be asked for ever.
        if matches!(
            how,
            Settled::Refused | Settled::Expired | Settled::Cancelled
        ) {
            self.refusals += 1;
        }
        let call = self.calls.iter_mut().find(|c| c.asking(ask));
        if let Some(call) = call {
            let digest = match &call.place {
                Place::Asking(open) if how == Settled::Allowed => Some(open.body.digest.clone()),
                _ => None,
            };
            if digest.is_some() {
                call.note = note.cloned();
            }
            call.place = digest.map_or(Place::Made, Place::Yes);
        }
    }

    /// Steps in a row, with the present one, in which no call could run.
    fn fruitless(&self) -> u64 {
        if self.calls.is_empty() || self.calls.iter().any(|c| c.started) {
            0
        } else {
            self.fruitless + 1
        }
    }

    /// What comes next, when one turn may take so many steps.
    pub fn next(&self, steps: u32) -> Next {
        let numbers = words::numbers();
        if self.refusals > numbers.refusals_end_turn {
            return end(Stop::EndTurn, words::too_many_refusals());
        }
        if self.step.sampled {
            let open = self.calls.iter().any(|c| c.place != Place::Done);
            if open && self.steps >= steps {
                return end(Stop::MaxTurnRequests, words::steps_used(steps));
            }
            if open {
                return Next::Calls;
            }
            if self.calls.is_empty() {
                return self.conclude(steps);
            }
            if self.again.stopped > numbers.nudges_max {
                return end(Stop::EndTurn, words::ended("stuck"));
            }
            if self.fruitless() >= numbers.fruitless {
                return end(Stop::EndTurn, words::fruitless());
            }
        }
        if self.steps >= steps && self.step.sampled {
            return end(Stop::MaxTurnRequests, words::steps_used(steps));
        }
        self.sample(steps, None)
    }

    fn sample(&self, steps: u32, nudge: Option<Nudge>) -> Next {
        let this = if self.blank() {
            self.steps
        } else {
            self.steps + 1
        };
        Next::Sample {
            left: steps.saturating_sub(this),
            nudge,
        }
    }

    /// The model made no call: the turn is over.
    fn conclude(&self, steps: u32) -> Next {
        match self.step.finish.as_str() {
            "length" => Next::End {
                stop: Stop::MaxTokens,
                reason: None,
            },
            "content_filter" => Next::End {
                stop: Stop::Refusal,
                reason: None,
            },
            _ if self.steps >= steps => end(Stop::MaxTurnRequests, words::steps_used(steps)),
            _ => match self.unusable() {
                Some(Nudge::Empty) if self.empty >= words::numbers().nudges_max => {
                    end(Stop::EndTurn, words::ended("nothing"))
                }
                Some(Nudge::InText) if self.in_text >= words::numbers().nudges_max => Next::End {
                    stop: Stop::EndTurn,
                    reason: None,
                },
                None => Next::End {
                    stop: Stop::EndTurn,
                    reason: None,
                },
                nudge => self.sample(steps, nudge),
            },
        }
    }

    /// Why an answer without a call is no end of the turn.
    fn unusable(&self) -> Option<Nudge> {
        if self.step.text.trim().is_empty() {
            Some(Nudge::Empty)
        } else {
            call_in_text(&self.step.text).then_some(Nudge::InText)
        }
    }

    /// Whether a step is open that nothing was said in: the next request is its.
    pub fn blank(&self) -> bool {
        self.step.open
            && !self.step.sampled
            && self.step.text.is_empty()
            && !self.step.thought
            && self.calls.is_empty()
    }

    /// Calls that were running when the items end.
    pub fn running(&self) -> Vec<CallId> {
        self.calls
            .iter()
            .filter(|c| c.place == Place::Started)
            .map(|c| c.call.clone())
            .collect()
    }

    /// The call and question of an open ask.
    pub fn asking(&self, ask: &AskId) -> Option<(&Call, &OpenAsk)> {
        self.open_asks().find(|(_, open)| open.body.ask == *ask)
    }

    /// All open asks, in the order of their calls.
    pub fn open_asks(&self) -> impl Iterator<Item = (&Call, &OpenAsk)> {
        self.calls.iter().filter_map(|c| match &c.place {
            Place::Asking(open) => Some((c, open.as_ref())),
            _ => None,
        })
    }

    /// The first call without a result; nothing after it that is no reader may run before it.
    pub fn front(&self) -> Option<&Call> {
        self.calls.iter().find(|c| c.place != Place::Done)
    }

    /// The items that end the turn: every open ask and every open call first.
    pub fn closing(&self, stop: Stop, reason: Option<String>, by: &str) -> Vec<Body> {
        let mut bodies: Vec<Body> = self
            .open_asks()
            .map(|(_, open)| Body::Answered {
                ask: open.body.ask.clone(),
                how: Settled::Cancelled,
                scope: None,
                by: by.to_owned(),
                note: None,
                selected: Vec::new(),
            })
            .collect();
        for call in self.calls.iter().filter(|c| c.place != Place::Done) {
            let text = words::stopped(call.place == Place::Started);
            bodies.push(result(&call.call, CallStatus::Cancelled, text));
        }
        bodies.push(Body::TurnEnd {
            stop,
            run: self.run_end(stop, reason.as_deref()),
            reason,
            tokens: self.tokens,
        });
        bodies
    }

    /// How a scheduled run went: `{ schedule, run, status, reply }`.
    fn run_end(&self, stop: Stop, reason: Option<&str>) -> Option<Value> {
        let mut run = self.run.clone()?;
        let sentinel = &spec::numbers().scheduled.sentinel;
        let (status, text) = run_status(stop.of_run(reason), &self.step.text, sentinel);
        let object = run.as_object_mut()?;
        object.insert("status".into(), json!(status));
        object.insert("reply".into(), json!(text));
        Some(run)
    }
}

impl Call {
    fn asking(&self, ask: &AskId) -> bool {
        matches!(&self.place, Place::Asking(open) if open.body.ask == *ask)
    }
}

fn end(stop: Stop, reason: String) -> Next {
    Next::End {
        stop,
        reason: Some(reason),
    }
}

/// Whether an answer ends with a call in one of the forms that models are trained to write: the
/// server did not make a call of it. A form in the middle of an answer is talked about.
fn call_in_text(text: &str) -> bool {
    let text = text.trim();
    let ends = [
        "</tool_call>",
        "</function_call>",
        "</function>",
        "<|tool_call_end|>",
    ];
    let begins = [
        "[TOOL_CALLS]",
        "<|python_tag|>",
        "<tool_call>",
        "<function=",
    ];
    if ends.iter().any(|end| text.ends_with(end))
        || begins.iter().any(|begin| text.starts_with(begin))
    {
        return true;
    }
    let whole = text
        .strip_prefix("```json")
        .and_then(|rest| rest.strip_suffix("```"))
        .unwrap_or(text);
    let object = serde_json::from_str::<serde_json::Map<String, Value>>(whole.trim());
    object.is_ok_and(|object| {
        object.get("name").is_some_and(Value::is_string)
            && ["arguments", "parameters"]
                .iter()
                .any(|key| object.get(*key).is_some_and(Value::is_object))
    })
}

/// A result that no tool made.
pub fn result(call: &CallId, status: CallStatus, text: String) -> Body {
    Body::Result {
        call: call.clone(),
        status,
        text,
        diff: None,
        path: None,
        exit: None,
        bytes: 0,
        spill: None,
        saw: None,
        ms: 0,
    }
}

#[cfg(test)]
mod tests;
