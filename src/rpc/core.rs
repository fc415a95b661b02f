//! The peer as a state machine: one event in, actions out. It does no I/O, reads no clock and
//! knows nothing of tasks; `drive` does what it says, in the order it says it.

use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::Value;

use super::error::RpcError;
use super::message::{self, Id, Message};

/// How the asker says that it no longer wants an answer; params `{ "requestId": id }`.
pub(super) const CANCEL: &str = "$/cancel_request";

/// Requests that were cancelled from here and whose late answer is still let pass unremarked. The
/// oldest is forgotten when there are more; its answer then counts as unknown.
const REMEMBERED: usize = 1024;

/// Log lines about answers to nobody, for each link. Further ones are ignored in silence.
const STRAYS: u32 = 8;

/// What happens to a peer.
#[derive(Clone, Debug)]
pub(super) enum Event {
    /// A frame came.
    Frame(String),
    /// A frame came that is too long; `head` is its beginning.
    TooLong {
        head: String,
        bytes: usize,
        over: bool,
    },
    /// A request of ours goes out now.
    Asked(i64),
    /// Nobody waits for the answer of this request any more.
    Dropped(i64),
    /// A call from the other side has its answer, which goes out now.
    Answered { id: Id, ok: bool },
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Action {
    /// Write this frame before what still waits in the queue.
    Write(String),
    /// Start a call.
    Call {
        id: Id,
        method: String,
        params: Value,
        order: u64,
    },
    /// Hand over a notification.
    Notice { method: String, params: Value },
    /// Set off the token of a running call.
    Cancel(Id),
    /// Give a request of ours its answer; `None` when the answer was not a valid one.
    Resolve {
        id: i64,
        outcome: Option<Result<Value, RpcError>>,
    },
    /// The first call was answered with a result: the full frame size counts from here.
    Open,
    /// An answer to nobody came and is ignored.
    Stray(String),
    /// Close the link once what is to be written is written.
    Close { code: u16, reason: &'static str },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiting {
    Wanted,
    Cancelled,
}

/// The state of one peer.
#[derive(Debug)]
pub(super) struct Core {
    calls_in: usize,
    frames: u64,
    open: bool,
    /// Calls from the other side that have no answer yet.
    running: HashSet<Id>,
    /// Requests of ours that have no answer yet.
    waiting: HashMap<i64, Waiting>,
    /// The cancelled ones of `waiting`, oldest first.
    cancelled: VecDeque<i64>,
    strays: u32,
}

impl Core {
    pub(super) fn new(calls_in: usize) -> Self {
        Self {
            calls_in,
            frames: 0,
            open: false,
            running: HashSet::new(),
            waiting: HashMap::new(),
            cancelled: VecDeque::new(),
            strays: 0,
        }
    }

    /// Takes one event and says what follows from it.
    pub(super) fn step(&mut self, event: Event) -> Vec<Action> {
        match event {
            Event::Frame(frame) => {
                self.frames += 1;
                self.frame(message::read(&frame))
            }
            Event::TooLong { head, bytes, over } => {
                self.frames += 1;
                tracing::warn!(bytes, "a frame is too long and was refused");
                let mut actions = Vec::new();
                let id = message::id_in(&head);
                // Without an id there is nobody to tell, unless the stream goes on.
                if id.is_some() || !over {
                    let error = RpcError::invalid_request(format!(
                        "this message of {bytes} bytes is too long: send less, or in several messages"
                    ));
                    actions.push(refuse(id.as_ref(), &error));
                }
                if over {
                    actions.push(Action::Close {
                        code: 1009,
                        reason: "too long",
                    });
                }
                actions
            }
            Event::Asked(id) => {
                self.waiting.insert(id, Waiting::Wanted);
                Vec::new()
            }
            Event::Dropped(id) => self.dropped(id),
            Event::Answered { id, ok } => {
                self.running.remove(&id);
                if ok { self.opened() } else { Vec::new() }
            }
        }
    }

    fn frame(&mut self, message: Message) -> Vec<Action> {
        match message {
            Message::Request { id, method, params } => self.request(id, method, params),
            Message::Notice { method, params } if method == CANCEL => {
                match cancel_target(&params).filter(|id| self.running.contains(id)) {
                    Some(id) => vec![Action::Cancel(id)],
                    // It was answered meanwhile: the answer is on its way.
                    None => Vec::new(),
                }
            }
            Message::Notice { method, params } => vec![Action::Notice { method, params }],
            Message::Answer { id, outcome } => self.answer(&id, outcome),
            Message::Bad { id, error } => vec![refuse(id.as_ref(), &error)],
            Message::Stray => self.stray("null"),
        }
    }

    fn request(&mut self, id: Id, method: String, params: Value) -> Vec<Action> {
        if self.running.contains(&id) {
            let error = RpcError::invalid_request(
                "a call with this id is running: give each call an id of its own",
            );
            return vec![refuse(Some(&id), &error)];
        }
        if self.running.len() >= self.calls_in {
            let error = RpcError::busy("too many calls are running: try again later");
            return vec![refuse(Some(&id), &error)];
        }
        self.running.insert(id.clone());
        vec![Action::Call {
            id,
            method,
            params,
            order: self.frames,
        }]
    }

    fn answer(&mut self, id: &Id, outcome: Option<Result<Value, RpcError>>) -> Vec<Action> {
        let Id::Number(id) = *id else {
            return self.stray(&id.to_string());
        };
        match self.waiting.remove(&id) {
            Some(Waiting::Wanted) => {
                let mut actions = if matches!(outcome, Some(Ok(_))) {
                    self.opened()
                } else {
                    Vec::new()
                };
                actions.push(Action::Resolve { id, outcome });
                actions
            }
            Some(Waiting::Cancelled) => {
                self.cancelled.retain(|other| *other != id);
                Vec::new()
            }
            None => self.stray(&id.to_string()),
        }
    }

    fn dropped(&mut self, id: i64) -> Vec<Action> {
        let Some(state @ Waiting::Wanted) = self.waiting.get_mut(&id) else {
            return Vec::new();
        };
        *state = Waiting::Cancelled;
        self.cancelled.push_back(id);
        if self.cancelled.len() > REMEMBERED
            && let Some(oldest) = self.cancelled.pop_front()
        {
            self.waiting.remove(&oldest);
        }
        let params = serde_json::json!({ "requestId": id });
        vec![Action::Write(message::asking(None, CANCEL, &params))]
    }

    fn opened(&mut self) -> Vec<Action> {
        if std::mem::replace(&mut self.open, true) {
            Vec::new()
        } else {
            vec![Action::Open]
        }
    }

    fn stray(&mut self, id: &str) -> Vec<Action> {
        self.strays = self.strays.saturating_add(1);
        if self.strays > STRAYS {
            return Vec::new();
        }
        vec![Action::Stray(id.chars().take(64).collect())]
    }
}

fn refuse(id: Option<&Id>, error: &RpcError) -> Action {
    Action::Write(message::answer(id, Err(error)))
}

fn cancel_target(params: &Value) -> Option<Id> {
    serde_json::from_value(params.get("requestId")?.clone()).ok()
}

#[cfg(test)]
mod tests;
