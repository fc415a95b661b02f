//! The calls of one step: all judged first so that their questions are made at once, then run in
//! order. Readers that stand next to each other run together.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::agent::asks::SESSION_ASKS;
use crate::agent::driver::output::Outlet;
use crate::agent::driver::{Driver, Flow};
use crate::agent::gate::{Gated, Understood};
use crate::agent::progress::Phase;
use crate::agent::stop::StopWhy;
use crate::agent::turn::{Next, Place, result};
use crate::agent::words;
use crate::clock;
use crate::ids::{AskId, CallId};
use crate::permission::{Action, Grant, Pending};
use crate::plan::Plan;
use crate::store::db::{Durability, StoreError};
use crate::store::device::items::Also;
use crate::store::item::{Body, CallStatus, Scope};
use crate::store::journal::Stream;
use crate::tools::Outcome;

/// Readers that run at once.
const TOGETHER: usize = 8;
/// Waits run on a clock that counts sleep, which no timer does: looked at this often.
const LOOK: Duration = Duration::from_secs(15);

/// A call that may run now.
struct Ready {
    call: CallId,
    understood: Understood,
    grant: Grant,
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
            let bodies = made.into_iter().map(Body::Ask).collect();
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
            .take(TOGETHER - 1)
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

    /// Commits that the calls start, runs them, and commits each result as it comes. While they
    /// run, answers to other questions are taken.
    async fn run_group(&mut self, group: Vec<Ready>) -> Result<(), StoreError> {
        let group = self.begin(group).await?;
        let news = Arc::new(Notify::new());
        let mut outlets: Vec<(CallId, Arc<Outlet>)> = Vec::new();
        let mut running = FuturesUnordered::new();
        for ready in group {
            let outlet = Arc::new(Outlet::new(news.clone()));
            outlets.push((ready.call.clone(), outlet.clone()));
            running.push(self.start(ready, outlet));
        }
        let mut waits = self.shared.waits.changed();
        while !running.is_empty() {
            let look = self.look();
            tokio::select! {
                biased;
                Some((call, began, outcome)) = running.next() => {
                    self.drain(&outlets).await?;
                    self.ran(&call, outcome, began).await?;
                }
                () = news.notified() => self.drain(&outlets).await?,
                Some(cmd) = self.answers.recv() => self.take_answer(cmd).await?,
                Ok(()) = waits.changed() => self.expire().await?,
                () = clock::sleep(look) => self.expire().await?,
            }
        }
        Ok(())
    }

    async fn begin(&mut self, group: Vec<Ready>) -> Result<Vec<Ready>, StoreError> {
        let mut also = Also::default();
        let mut bodies = Vec::new();
        for ready in &group {
            if !ready.reads() {
                let what = action_word(&ready.grant.request().action);
                let line = self.line("lembas", what, "ran", Some(ready.grant.digest()));
                also.audit.push(line);
            }
            bodies.push(Body::Started {
                call: ready.call.clone(),
                digest: ready.grant.digest().clone(),
                allowed: ready.grant.decision().clone(),
            });
        }
        // A read that is done twice does no harm, so only what acts waits for the disk.
        let how = if group.iter().all(Ready::reads) {
            Durability::Process
        } else {
            Durability::Disk
        };
        self.commit(bodies, how, also).await?;
        if let Some(ready) = group.first() {
            self.doing.set(
                Phase::RunningTool,
                [
                    ("tool", json!(ready.understood.tool.name())),
                    ("purpose", purpose(&ready.understood.prepared.title)),
                    ("call", json!(ready.call)),
                ],
            );
        }
        Ok(group)
    }

    /// Starts a call as a task of its own: a fault in a tool hurts only that call.
    fn start(
        &self,
        ready: Ready,
        outlet: Arc<Outlet>,
    ) -> impl Future<Output = (CallId, clock::Instant, Option<Outcome>)> + use<> {
        let Ready {
            call,
            understood: Understood { tool, prepared },
            grant,
        } = ready;
        let context = self.gate.context.clone();
        let stop = self.stop.token().child_token();
        let began = clock::instant();
        let id = call.clone();
        let task = self.tasks.spawn("tool", async move {
            tool.run(&id, prepared, grant, &context, outlet.as_ref(), stop)
                .await
        });
        async move { (call, began, task.await.ok().flatten()) }
    }

    async fn drain(&mut self, outlets: &[(CallId, Arc<Outlet>)]) -> Result<(), StoreError> {
        for (call, outlet) in outlets {
            let text = outlet.drain();
            self.journal
                .text(&Stream::Output(call.clone()), &text)
                .await?;
        }
        Ok(())
    }

    async fn ran(
        &mut self,
        call: &CallId,
        outcome: Option<Outcome>,
        began: clock::Instant,
    ) -> Result<(), StoreError> {
        let ms = words::ms(began.elapsed());
        let outcome = outcome.unwrap_or_else(|| Outcome::failed(words::BROKE));
        if outcome.status == CallStatus::Cancelled && self.stop.why() == Some(&StopWhy::Shutdown) {
            // Nobody stopped the call but the daemon's own end: the next start settles it.
            return Ok(());
        }
        let body = Body::Result {
            call: call.clone(),
            status: outcome.status,
            text: outcome.text,
            diff: outcome.diff,
            path: outcome.path,
            exit: outcome.exit,
            bytes: outcome.bytes,
            spill: outcome.spill,
            ms,
        };
        let mut bodies = vec![body];
        if let Some(plan) = outcome.plan {
            self.gate.context.plan = Plan::from_value(&plan);
            bodies.push(Body::Plan { plan });
        }
        self.commit(bodies, Durability::Process, Also::default())
            .await?;
        // What the other calls were understood to do may have changed with this one.
        self.understood.clear();
        Ok(())
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

    /// How long until the next look at the waits; a long time when none runs out.
    fn look(&self) -> Duration {
        self.turn
            .open_asks()
            .filter_map(|(_, open)| self.shared.waits.left(&open.body.ask))
            .min()
            .map_or(Duration::from_secs(60 * 60), |left| left.min(LOOK))
    }
}

impl Ready {
    /// Whether it may run while others do: it changes nothing that they look at.
    fn beside_others(&self) -> bool {
        matches!(self.grant.request().action, Action::Read { .. })
    }

    fn reads(&self) -> bool {
        matches!(
            self.grant.request().action,
            Action::Read { .. } | Action::Interact
        )
    }
}

fn action_word(action: &Action) -> &'static str {
    match action {
        Action::Read { .. } => "read",
        Action::Write { .. } => "write",
        Action::Execute(_) => "execute",
        Action::Interact => "interact",
    }
}

/// A title as a purpose; long ones are cut, as this is one line on a screen.
fn purpose(title: &str) -> Value {
    let line: String = title
        .lines()
        .next()
        .unwrap_or_default()
        .chars()
        .take(120)
        .collect();
    if line.is_empty() {
        Value::Null
    } else {
        Value::from(line)
    }
}
