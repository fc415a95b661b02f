//! Does what [`crate::agent::turn`] decides: one driver runs one turn, from wherever its items
//! say it is, to its end or until it parks.

mod answer;
mod calls;
mod compact;
mod insert;
mod output;
mod run;
mod sample;

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use crate::agent::asks::{Answer, AnswerError, Waits};
use crate::agent::gate::{Gate, Understood};
use crate::agent::progress::{Doing, Phase};
use crate::agent::stop::{StopSignal, StopWhy};
use crate::agent::turn::{Next, Place, Turn, result};
use crate::agent::{Models, SessionFacts, limits, words};
use crate::context::compact::Counted;
use crate::context::{Fixed, History, Texts};
use crate::ids::{AskId, CallId};
use crate::model::openai::Waits as ModelWaits;
use crate::model::retry::Retry;
use crate::permission::Origin;
use crate::rt::Tasks;
use crate::store::db::{Durability, StoreError};
use crate::store::device::audit::AuditLine;
use crate::store::device::items::Also;
use crate::store::item::{Body, CallStatus, Item, Stop};
use crate::store::journal::Journal;

/// What every driver of a registry shares. Cheap to clone.
#[derive(Clone)]
pub struct Shared {
    pub models: Arc<dyn Models>,
    pub texts: Arc<dyn Texts>,
    pub retry: Retry,
    pub model_waits: ModelWaits,
    pub waits: Waits,
    /// Places for open asks on this computer.
    pub places: Arc<Semaphore>,
}

/// An answer on its way to the turn whose ask it answers.
#[derive(Debug)]
pub struct AnswerCmd {
    pub answer: Answer,
    pub reply: oneshot::Sender<Result<i64, AnswerError>>,
}

/// How a driver ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The turn has its end in the journal.
    Done,
    /// It goes on when it is driven again.
    Parked,
}

/// What one step of the driver came to.
enum Flow {
    On,
    /// A stop was seen; [`StopSignal::why`] says which.
    Stopped,
    End(Stop, String),
}

/// Runs one turn. Owns it: nobody else writes items of the turn.
pub struct Driver {
    shared: Shared,
    gate: Gate,
    journal: Journal,
    fixed: Fixed,
    history: History,
    turn: Turn,
    doing: Doing,
    answers: mpsc::Receiver<AnswerCmd>,
    retry: Arc<Notify>,
    stop: StopSignal,
    tools: Tasks,
    permits: HashMap<AskId, OwnedSemaphorePermit>,
    understood: HashMap<CallId, Understood>,
    /// Every call of the step was judged once, and the asks there was a place for are made.
    surveyed: bool,
    told_size: bool,
    /// What the model's server counted last.
    counted: Counted,
    /// Shortening the conversation came to nothing in this turn: it is not tried before every
    /// request.
    too_long_anyway: bool,
}

/// What a driver is made of.
pub struct Parts {
    pub shared: Shared,
    pub gate: Gate,
    pub journal: Journal,
    pub fixed: Fixed,
    /// What the store has for the model; see [`crate::store::device::Store::history`].
    pub items: Vec<Item>,
    pub turn: u32,
    pub doing: Doing,
    pub answers: mpsc::Receiver<AnswerCmd>,
    /// Told when a person does not want to wait for the next try.
    pub retry: Arc<Notify>,
    pub stop: StopSignal,
    /// Of this turn alone: what its tools run as.
    pub tools: Tasks,
}

impl Driver {
    pub fn new(parts: Parts) -> Self {
        let mut gate = parts.gate;
        let turn = Turn::of(parts.items.iter().filter(|i| i.turn == parts.turn));
        let history = History::new(parts.items);
        gate.context.plan = history.plan();
        gate.context
            .seen
            .restore(history.looks().map(|(.., saw)| saw));
        Self {
            turn,
            shared: parts.shared,
            gate,
            journal: parts.journal,
            fixed: parts.fixed,
            history,
            doing: parts.doing,
            answers: parts.answers,
            retry: parts.retry,
            stop: parts.stop,
            tools: parts.tools,
            permits: HashMap::new(),
            understood: HashMap::new(),
            surveyed: false,
            told_size: false,
            counted: Counted::default(),
            too_long_anyway: false,
        }
    }

    /// Runs the turn to its end, or until it is told to park.
    ///
    /// # Errors
    /// When the journal cannot be written: the turn stays as it is on the disk.
    pub async fn run(mut self) -> Result<Ended, StoreError> {
        self.take_up().await?;
        loop {
            if self.stop.why().is_some() {
                return self.stopped().await;
            }
            if let Err(why) = limits::may_work(&self.gate.config.now(), &self.gate.facts) {
                self.stop.stop(StopWhy::Limit(why));
                continue;
            }
            let flow = match self.turn.next(self.shared.texts.steps()) {
                Next::Sample { left, nudge } => self.sample(left, nudge).await?,
                Next::Calls => self.calls().await?,
                Next::End { stop, reason } => {
                    self.end(stop, reason, "lembas").await?;
                    return Ok(Ended::Done);
                }
            };
            match flow {
                Flow::On => {}
                Flow::Stopped => return self.stopped().await,
                Flow::End(stop, reason) => {
                    self.end(stop, Some(reason), "lembas").await?;
                    return Ok(Ended::Done);
                }
            }
        }
    }

    /// Settles what was running when the daemon stopped, and takes up the open asks.
    async fn take_up(&mut self) -> Result<(), StoreError> {
        let lost: Vec<Body> = self
            .turn
            .running()
            .iter()
            .map(|call| result(call, CallStatus::Unknown, words::unknown()))
            .collect();
        if !lost.is_empty() {
            self.commit(lost, Durability::Disk, Also::default()).await?;
        }
        let open: Vec<AskId> = self
            .turn
            .open_asks()
            .map(|(_, open)| open.body.ask.clone())
            .collect();
        for ask in open {
            if let Ok(permit) = self.shared.places.clone().try_acquire_owned() {
                self.permits.insert(ask.clone(), permit);
            }
            if let Some(row) = self.gate.store.ask(&ask).await? {
                let age = crate::clock::now_ms().saturating_sub(row.made);
                let age = std::time::Duration::from_millis(u64::try_from(age).unwrap_or(0));
                self.shared.waits.open(ask, row.left_ms, row.heard, age);
            }
        }
        Ok(())
    }

    /// Commits items, and has the turn and the history know them.
    async fn commit(
        &mut self,
        bodies: Vec<Body>,
        how: Durability,
        also: Also,
    ) -> Result<Vec<Item>, StoreError> {
        let items = self.journal.append(bodies, how, also).await?;
        self.know(items.iter().cloned());
        Ok(items)
    }

    fn know(&mut self, items: impl IntoIterator<Item = Item>) {
        for item in items {
            self.turn.apply(&item);
            if let Body::Answered { ask, .. } = &item.body {
                self.permits.remove(ask);
                self.shared.waits.close(ask);
            }
            self.history.push([item]);
        }
    }

    /// Ends the turn because of a stop, or parks it.
    async fn stopped(&mut self) -> Result<Ended, StoreError> {
        let (reason, by) = match self.stop.why() {
            Some(StopWhy::Shutdown) => {
                self.keep_waits().await?;
                return Ok(Ended::Parked);
            }
            Some(StopWhy::Limit(why)) => (Some(format!("stopped: {why}")), "a limit"),
            Some(StopWhy::Asked) | None => (None, "you"),
        };
        self.end(Stop::Cancelled, reason, by).await?;
        Ok(Ended::Done)
    }

    async fn keep_waits(&mut self) -> Result<(), StoreError> {
        for (_, open) in self.turn.open_asks() {
            let ask = &open.body.ask;
            let left = self.shared.waits.left(ask).map(words::ms);
            let heard = self.shared.waits.runs(ask);
            self.gate.store.keep_wait(ask, left, heard).await?;
            self.shared.waits.close(ask);
        }
        Ok(())
    }

    /// Commits the turn's end with the end of everything that was open in it.
    async fn end(
        &mut self,
        stop: Stop,
        reason: Option<String>,
        by: &str,
    ) -> Result<(), StoreError> {
        let cancelled = self
            .turn
            .open_asks()
            .map(|(_, open)| self.line(by, &open.body.kind, "cancelled", Some(&open.body.digest)));
        let not_run = self.turn.calls.iter().filter_map(|call| match &call.place {
            Place::Yes(digest) => {
                let verdict = words::not_run("the turn ended");
                Some(self.line(by, "call", &verdict, Some(digest)))
            }
            _ => None,
        });
        let audit = cancelled.chain(not_run).collect();
        let bodies = self.turn.closing(stop, reason.clone(), by);
        self.commit(
            bodies,
            Durability::Disk,
            Also {
                audit,
                ..Also::default()
            },
        )
        .await?;
        match stop {
            Stop::Cancelled => self.doing.set(Phase::Stopped, [("by", json!(by))]),
            Stop::Failed => self.doing.set(
                Phase::Failed,
                [("reason", reason.map_or(Value::Null, Value::from))],
            ),
            _ => self.doing.idle(),
        }
        Ok(())
    }

    /// A line for the audit log.
    fn line(
        &self,
        who: &str,
        what: &str,
        verdict: &str,
        digest: Option<&crate::ids::Digest>,
    ) -> AuditLine {
        AuditLine {
            time: crate::clock::now_ms(),
            session: Some(self.facts().id.clone()),
            origin: self.facts().origin_text.clone(),
            who: who.to_owned(),
            what: what.to_owned(),
            verdict: verdict.to_owned(),
            digest: digest.cloned(),
        }
    }

    fn facts(&self) -> &SessionFacts {
        &self.gate.facts
    }

    fn is_local(&self) -> bool {
        self.facts().origin == Origin::Local
    }
}
