//! The calls of one step: all judged first so that their questions are made at once, then run in
//! order. Readers that stand next to each other run together.

use std::time::Duration;

use serde_json::json;

use crate::agent::asks::SESSION_ASKS;
use crate::agent::driver::{Driver, Flow};
use crate::agent::gate::{Gated, Understood};
use crate::agent::progress::Phase;
use crate::agent::turn::{Next, Place, result};
use crate::agent::words;
use crate::clock;
use crate::ids::{AskId, CallId};
use crate::permission::{Action, Grant, Pending};
use crate::store::db::{Durability, StoreError};
use crate::store::device::items::Also;
use crate::store::item::{Body, CallStatus, Scope};

/// Waits run on a clock that counts sleep, which no timer does: looked at this often.
const LOOK: Duration = Duration::from_secs(15);
/// And this often for waits that nobody has heard of yet, which begin by themselves some day.
const SELDOM: Duration = Duration::from_secs(10 * 60);

/// A call that may run now.
pub(super) struct Ready {
    pub(super) call: CallId,
    pub(super) understood: Understood,
    pub(super) grant: Grant,
}

/// What stands before the first call without a result.
enum Front {
    Nothing,
    Ready(Box<Ready>),
    /// Its question is open.
    Asking,
    /// Its question waits for a place.
    NoPlace,
    /// It got its result without running; look again.
    Settled,
}

impl Driver {
    /// Works on the calls of the step until all have results or the turn shall end.
    pub(super) async fn calls(&mut self) -> Result<Flow, StoreError> {
        loop {
            if self.stop.why().is_some() {
                return Ok(Flow::Stopped);
            }
            if self.turn.next(self.shared.texts.steps()) != Next::Calls {
                return Ok(Flow::On);
            }
            match self.front().await? {
                Front::Nothing => return Ok(Flow::On),
                Front::Settled => {}
                Front::Ready(first) => {
                    self.survey().await?;
                    let group = self.group(*first).await?;
                    self.run_group(group).await?;
                }
                Front::Asking => {
                    self.survey().await?;
                    self.wait_for_person().await?;
                }
                Front::NoPlace => {
                    if self.turn.open_asks().count() >= SESSION_ASKS {
                        self.wait_for_person().await?;
                    } else {
                        self.wait_for_place().await?;
                    }
                }
            }
        }
    }

    /// Judges the first call without a result by what is true now.
    async fn front(&mut self) -> Result<Front, StoreError> {
        let Some(call) = self.turn.front().cloned() else {
            return Ok(Front::Nothing);
        };
        let yes = match &call.place {
            Place::Asking(_) => return Ok(Front::Asking),
            Place::Yes(digest) => Some(digest.clone()),
            Place::Made => None,
            Place::Started | Place::Done => return Ok(Front::Nothing),
        };
        if yes.is_none()
            && let Some(times) = self.turn.repeated(&call)
        {
            let text = words::repeated(times);
            self.not_run(&call.call, CallStatus::Failed, text, false)
                .await?;
            return Ok(Front::Settled);
        }
        let gated = match self.understood.remove(&call.call) {
            Some(understood) => self.gate.judge(understood).await?,
            None => self.gate.pass(&call.tool, &call.args).await?,
        };
        match gated {
            Gated::Allow(understood, grant) => Ok(Front::Ready(Box::new(Ready {
                call: call.call,
                understood,
                grant,
            }))),
            Gated::Ask(understood, pending) if yes.as_ref() == Some(&pending.body.digest) => {
                // The person's yes was to exactly this.
                let (grant, _) = pending.allowed(Scope::Once);
                Ok(Front::Ready(Box::new(Ready {
                    call: call.call,
                    understood,
                    grant,
                })))
            }
            Gated::Ask(_, pending) => {
                if let Some(digest) = &yes {
                    let verdict = words::not_run("what would run has changed");
                    let line = self.line("lembas", &pending.body.kind, &verdict, Some(digest));
                    self.gate.store.audit(line).await?;
                }
                let asked = self.ask(vec![(call.call, *pending)]).await?;
                Ok(if asked { Front::Asking } else { Front::NoPlace })
            }
            Gated::Refuse(refusal) => {
                self.not_run(&call.call, CallStatus::Refused, refusal.text, yes.is_some())
                    .await?;
                Ok(Front::Settled)
            }
            Gated::Fail(text) => {
                self.not_run(&call.call, CallStatus::Failed, text, yes.is_some())
                    .await?;
                Ok(Front::Settled)
            }
        }
    }

    async fn not_run(
        &mut self,
        call: &CallId,
        status: CallStatus,
        text: String,
        was_allowed: bool,
    ) -> Result<(), StoreError> {
        let mut also = Also::default();
        if was_allowed {
            let verdict = words::not_run("it was judged anew");
            also.audit.push(self.line("lembas", "call", &verdict, None));
        }
        self.commit(vec![result(call, status, text)], Durability::Process, also)
            .await?;
        Ok(())
    }

    /// Judges the calls behind the first one and makes the questions that there is a place for,
    /// all in one commit. What may run or fails is judged again when its turn comes.
    async fn survey(&mut self) -> Result<(), StoreError> {
        if std::mem::replace(&mut self.surveyed, true) {
            return Ok(());
        }
        let front = self.turn.front().map(|c| c.call.clone());
        let waiting: Vec<_> = self
            .turn
            .calls
            .iter()
            .filter(|c| c.place == Place::Made && Some(&c.call) != front.as_ref())
            .map(|c| (c.call.clone(), c.tool.clone(), c.args.clone()))
            .collect();
        let mut asks = Vec::new();
        for (call, tool, args) in waiting {
            let gated = match self.understood.remove(&call) {
                Some(understood) => self.gate.judge(understood).await?,
                None => self.gate.pass(&tool, &args).await?,
            };
            if let Gated::Ask(_, pending) = gated {
                asks.push((call, *pending));
            }
        }
        if !asks.is_empty() {
            self.ask(asks).await?;
        }
        Ok(())
    }

    /// Makes questions, as far as there are places. Answers whether all were made.
    async fn ask(&mut self, asks: Vec<(CallId, Pending)>) -> Result<bool, StoreError> {
        let mut free = SESSION_ASKS.saturating_sub(self.turn.open_asks().count());
        let mut made = Vec::new();
        let mut all = true;
        for (call, pending) in asks {
            let place = self.shared.places.clone().try_acquire_owned();
            let (Ok(permit), true) = (place, free > 0) else {
                all = false;
                break;
            };
            free -= 1;
            let mut body = pending.body;
            body.ask = AskId::random();
            body.call = call;
            body.wait_ms = self.wait_ms();
            // Only a wait at the far end of a link has to be heard of first.
            let runs = self.is_local();
            self.shared
                .waits
                .open(body.ask.clone(), body.wait_ms, runs, Duration::ZERO);
            self.permits.insert(body.ask.clone(), permit);
            made.push(body);
        }
        if !made.is_empty() {
            let bodies = made
                .into_iter()
                .map(|ask| Body::Ask(Box::new(ask)))
                .collect();
            self.commit(bodies, Durability::Disk, Also::default())
                .await?;
        }
        Ok(all)
    }

    /// How long a question waits: as the schedule says, or `remote.approval_timeout`.
    fn wait_ms(&self) -> Option<u64> {
        let config = self.gate.config.now();
        let seconds = match self.facts().scheduled_wait {
            Some(wait) => Some(wait.min(config.remote.approval_max)),
            None if self.is_local() => None,
            None => config.remote.approval_timeout,
        };
        seconds.map(|s| s.saturating_mul(1000))
    }

    /// The first call and, when it only reads, the readers that follow it.
    async fn group(&mut self, first: Ready) -> Result<Vec<Ready>, StoreError> {
        let mut group = vec![first];
        if !group.iter().all(Ready::beside_others) {
            return Ok(group);
        }
        let next: Vec<_> = self
            .turn
            .calls
            .iter()
            .skip_while(|c| group.iter().all(|r| r.call != c.call))
            .skip(1)
            .take(words::numbers().parallel.saturating_sub(1))
            .cloned()
            .collect();
        for call in next {
            if call.place != Place::Made {
                break;
            }
            let Gated::Allow(understood, grant) = self.gate.pass(&call.tool, &call.args).await?
            else {
                break;
            };
            let ready = Ready {
                call: call.call,
                understood,
                grant,
            };
            if !ready.beside_others() {
                break;
            }
            group.push(ready);
        }
        Ok(group)
    }

    /// Nothing can run until a question is answered, expires, or the turn is stopped.
    async fn wait_for_person(&mut self) -> Result<(), StoreError> {
        if let Some((_, open)) = self.turn.open_asks().next() {
            self.doing.set(
                Phase::WaitingForPerson,
                [
                    ("ask", json!(open.body.ask)),
                    ("kind", json!(open.body.kind)),
                ],
            );
        }
        // Before the look: a wait that begins after it is not missed.
        let mut waits = self.shared.waits.changed();
        let stop = self.stop.token().clone();
        let look = self.look();
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            Some(cmd) = self.answers.recv() => self.take_answer(cmd).await?,
            Ok(()) = waits.changed() => {}
            () = clock::sleep(look) => {}
        }
        self.expire().await
    }

    /// All places for questions on this computer are taken.
    async fn wait_for_place(&mut self) -> Result<(), StoreError> {
        self.doing.set(Phase::Queued, []);
        let stop = self.stop.token().clone();
        let places = self.shared.places.clone();
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            Some(cmd) = self.answers.recv() => self.take_answer(cmd).await?,
            // Given back at once: the question is judged again and takes it then.
            _place = places.acquire() => {}
        }
        Ok(())
    }

    /// How long until the next look at the waits; a long time when none can run out before.
    pub(super) fn look(&self) -> Duration {
        let waits = &self.shared.waits;
        self.turn
            .open_asks()
            .filter_map(|(_, open)| waits.due(&open.body.ask))
            .min()
            .map_or(SELDOM, |left| left.min(LOOK))
    }
}

impl Ready {
    /// Whether it may run while others do: it changes nothing that they look at.
    fn beside_others(&self) -> bool {
        matches!(self.grant.request().action, Action::Read { .. })
    }

    pub(super) fn reads(&self) -> bool {
        matches!(
            self.grant.request().action,
            Action::Read { .. } | Action::Interact
        )
    }
}
