//! Running calls: the intent first, then the tools as tasks of their own, and each result as it
//! comes.

use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::agent::driver::Driver;
use crate::agent::driver::calls::Ready;
use crate::agent::driver::insert::Inserted;
use crate::agent::driver::output::Outlet;
use crate::agent::gate::Understood;
use crate::agent::progress::Phase;
use crate::agent::stop::StopWhy;
use crate::agent::turn::Place;
use crate::agent::words;
use crate::clock;
use crate::ids::CallId;
use crate::permission::Action;
use crate::plan::Plan;
use crate::store::db::{Durability, StoreError};
use crate::store::device::items::Also;
use crate::store::item::{Body, CallStatus};
use crate::store::journal::Stream;
use crate::tools::Outcome;

/// Longest purpose shown, in characters.
const PURPOSE: usize = 120;

impl Driver {
    /// Commits that the calls start, runs them, and commits each result as it comes. While they
    /// run, answers to other questions are taken.
    pub(super) async fn run_group(&mut self, group: Vec<Ready>) -> Result<(), StoreError> {
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
            let due = outlets.iter().filter_map(|(_, outlet)| outlet.due()).min();
            let look = due.map_or_else(|| self.look(), |due| due.min(self.look()));
            tokio::select! {
                biased;
                Some((call, began, outcome)) = running.next() => {
                    self.drain(&outlets, Some(&call)).await?;
                    self.ran(&call, outcome, began).await?;
                }
                () = news.notified() => self.drain(&outlets, None).await?,
                Some(cmd) = self.answers.recv() => self.take_answer(cmd).await?,
                Ok(()) = waits.changed() => self.expire().await?,
                () = clock::sleep(look) => {
                    self.drain(&outlets, None).await?;
                    self.expire().await?;
                }
            }
        }
        Ok(())
    }

    async fn begin(&mut self, group: Vec<Ready>) -> Result<Vec<Ready>, StoreError> {
        let mut also = Also::default();
        let mut bodies = Vec::new();
        for ready in &group {
            let call = self.turn.calls.iter().find(|c| c.call == ready.call);
            let was_asked = call.is_some_and(|c| matches!(c.place, Place::Yes(_)));
            if was_asked || !ready.reads() {
                let what = action_word(&ready.grant.request().action);
                let line = self.line("lembas", what, "ran", Some(ready.grant.digest()));
                also.audit.push(line);
            }
            also.used.extend_from_slice(ready.grant.rules());
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
                    ("purpose", self.purpose(ready)),
                    ("call", json!(ready.call)),
                ],
            );
        }
        Ok(group)
    }

    /// What a call is for, in the model's words where it gave any, else its title. One line.
    fn purpose(&self, ready: &Ready) -> Value {
        let call = self.turn.calls.iter().find(|c| c.call == ready.call);
        let said = call
            .and_then(|c| serde_json::from_str::<Value>(&c.args).ok())
            .and_then(|args| Some(args.get("purpose")?.as_str()?.trim().to_owned()))
            .filter(|said| !said.is_empty());
        let text = said.as_ref().unwrap_or(&ready.understood.prepared.title);
        let line: String = text
            .lines()
            .next()
            .unwrap_or_default()
            .chars()
            .take(PURPOSE)
            .collect();
        if line.is_empty() {
            Value::Null
        } else {
            Value::from(line)
        }
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
        let task = self.tools.spawn("tool", async move {
            tool.run(&id, prepared, grant, &context, outlet.as_ref(), stop)
                .await
        });
        async move { (call, began, task.await.ok().flatten()) }
    }

    /// Takes what running calls wrote into the journal; of `ended` nothing more will come.
    async fn drain(
        &mut self,
        outlets: &[(CallId, Arc<Outlet>)],
        ended: Option<&CallId>,
    ) -> Result<(), StoreError> {
        for (call, outlet) in outlets {
            let text = outlet.drain(ended == Some(call));
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
        let outcome = outcome.unwrap_or_else(|| Outcome::failed(words::broke()));
        if outcome.status == CallStatus::Cancelled && self.stop.why() == Some(&StopWhy::Shutdown) {
            // Nobody stopped the call but the daemon's own end: the next start settles it.
            return Ok(());
        }
        let Inserted {
            mut text,
            saw,
            whole,
        } = self.insert(call, &outcome).await;
        let note = self.turn.calls.iter().find(|c| c.call == *call);
        if let Some(note) = note.and_then(|c| c.note.as_deref()) {
            text.push_str(&words::allowed(note));
        }
        let body = Body::Result {
            call: call.clone(),
            status: outcome.status,
            text,
            diff: outcome.diff,
            path: outcome.path,
            exit: outcome.exit,
            bytes: outcome.bytes,
            spill: outcome.spill.or(whole),
            saw,
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
}

fn action_word(action: &Action) -> &'static str {
    match action {
        Action::Read { .. } => "read",
        Action::Write { .. } => "write",
        Action::Execute(_) => "execute",
        Action::Interact | Action::Question(_) => "interact",
    }
}
