//! What a turn does next, from the items it has. Pure: no clock, no disk, no waiting.
//!
//! The state is a fold over the turn's items and nothing else, so the same decision is made
//! after a restart. Not here: doing it (`driver`).

use serde_json::{Value, json};

use crate::agent::words;
use crate::ids::{AskId, CallId, Digest, Seq};
use crate::spec::{self, Reply, silent};
use crate::store::item::{AskBody, Body, CallStatus, Item, Settled, Stop, Tokens};

/// The refusal after these ends the turn.
pub const REFUSALS: u32 = 3;
/// Steps in a row in which no call could run; then the turn ends.
pub const FRUITLESS: u32 = 8;

/// What comes next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Ask the model. `left`: so many further requests may follow in this turn.
    Sample {
        left: u32,
    },
    /// Some calls have no result yet.
    Calls,
    End {
        stop: Stop,
        reason: Option<String>,
    },
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
    refusals: u32,
    fruitless: u32,
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
                self.tokens.input += tokens.input;
                self.tokens.cached_input += tokens.cached_input;
                self.tokens.output += tokens.output;
            }
            Body::Ask(body) => self.put(
                &body.call,
                Place::Asking(Box::new(OpenAsk {
                    seq: item.seq,
                    made: item.time,
                    body: body.clone(),
                })),
            ),
            Body::Answered { ask, how, note, .. } => self.answered(ask, *how, note.as_ref()),
            Body::Started { call, .. } => {
                self.put(call, Place::Started);
                if let Some(call) = self.calls.iter_mut().find(|c| c.call == *call) {
                    call.started = true;
                }
            }
            Body::Result { call, .. } => self.put(call, Place::Done),
            _ => {}
        }
    }

    fn put(&mut self, call: &CallId, place: Place) {
        if let Some(found) = self.calls.iter_mut().find(|c| c.call == *call) {
            found.place = place;
        }
    }

    fn answered(&mut self, ask: &AskId, how: Settled, note: Option<&String>) {
        if matches!(how, Settled::Refused | Settled::Expired) {
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
    fn fruitless(&self) -> u32 {
        if self.calls.is_empty() || self.calls.iter().any(|c| c.started) {
            0
        } else {
            self.fruitless + 1
        }
    }

    /// What comes next, when one turn may take so many steps.
    pub fn next(&self, steps: u32) -> Next {
        if self.refusals > REFUSALS {
            return end(Stop::EndTurn, words::TOO_MANY_REFUSALS);
        }
        if self.step.sampled {
            let open = self.calls.iter().any(|c| c.place != Place::Done);
            if open && self.steps >= steps {
                return end(Stop::MaxTurnRequests, words::STEPS_USED);
            }
            if open {
                return Next::Calls;
            }
            if self.calls.is_empty() {
                return self.conclude(steps);
            }
            if self.fruitless() >= FRUITLESS {
                return end(Stop::EndTurn, words::FRUITLESS);
            }
        }
        if self.steps >= steps && self.step.sampled {
            return end(Stop::MaxTurnRequests, words::STEPS_USED);
        }
        let this = if self.blank() {
            self.steps
        } else {
            self.steps + 1
        };
        Next::Sample {
            left: steps.saturating_sub(this),
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
            _ if self.steps >= steps => end(Stop::MaxTurnRequests, words::STEPS_USED),
            _ if self.step.text.trim().is_empty() => end(Stop::EndTurn, words::NOTHING_SAID),
            _ => Next::End {
                stop: Stop::EndTurn,
                reason: None,
            },
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
            })
            .collect();
        for call in self.calls.iter().filter(|c| c.place != Place::Done) {
            let text = if call.place == Place::Started {
                words::STOPPED_RUNNING
            } else {
                words::STOPPED
            };
            bodies.push(result(&call.call, CallStatus::Cancelled, text.to_owned()));
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
        let (judged, text) = match silent(&self.step.text, sentinel) {
            Reply::Said(text) => ("ok", text),
            Reply::Silent(text) => ("silent", text),
            Reply::Empty => ("failed", String::new()),
        };
        let status = match stop {
            Stop::Cancelled => "cancelled",
            Stop::EndTurn if reason.is_none() => judged,
            _ => "failed",
        };
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

fn end(stop: Stop, reason: &str) -> Next {
    Next::End {
        stop,
        reason: Some(reason.to_owned()),
    }
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
        ms: 0,
    }
}

#[cfg(test)]
mod tests;
