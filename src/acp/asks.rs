//! Open questions, said to a connection: each once, as a request of ours, until it is settled.
//!
//! The store's list of open asks is compared with what was said here, at every change: a new one
//! is said (after a drop thus again, with a new id), one that is gone takes its request back.
//! A client that has no word of ours answers the request itself; an instance that named `asks`
//! answers with `_lembas/answer`. Not here: what an answer does (`session`).

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::capabilities::Capability;
use super::connection::Connection;
use super::outbound::ask::{self, Said};
use crate::clock;
use crate::ids::{AskId, Seq, SessionId};
use crate::rpc::CallError;
use crate::rt::CancellationToken;
use crate::session::{Answer, AnswerError, OpenAsk, Outcome};
use crate::store::item::{Body, Item, Scope};

/// How long an ask waits for a stream that does not move, to be said behind the updates before it.
/// After that it is said all the same: a person must not wait for a stuck stream.
const BEHIND: Duration = Duration::from_secs(2);

/// Between two looks at the open asks.
const PAUSE: Duration = Duration::from_millis(40);

/// Which session a question said here belongs to: an answer names only the question, and one that
/// is settled already is not among the open ones.
#[derive(Default)]
pub(crate) struct Asked(Mutex<VecDeque<(AskId, SessionId)>>);

impl Asked {
    /// Older ones are forgotten; an answer to one of them hears that it is gone.
    const MOST: usize = 512;

    fn note(&self, ask: &OpenAsk) {
        let mut list = self.0.lock();
        if list.len() == Self::MOST {
            list.pop_front();
        }
        list.push_back((ask.body.ask.clone(), ask.session.clone()));
    }

    pub(crate) fn session(&self, ask: &AskId) -> Option<SessionId> {
        let list = self.0.lock();
        list.iter()
            .find(|(id, _)| id == ask)
            .map(|(_, session)| session.clone())
    }
}

/// Says the open asks, then each new one, until the connection ends.
pub(crate) async fn run(connection: Arc<Connection>) {
    let sessions = Arc::clone(&connection.device.sessions);
    let mut changes = sessions.changes();
    let mut said: HashMap<AskId, CancellationToken> = HashMap::new();
    let mut opened = connection.opened_changes();
    let mut first = true;
    loop {
        changes.borrow_and_update();
        opened.borrow_and_update();
        let open = if connection.limits.work().is_ok() {
            sessions.asks(&connection.origin).await
        } else {
            Vec::new()
        };
        let shown: Vec<OpenAsk> = open
            .into_iter()
            .filter(|ask| connection.shows(&ask.session))
            .collect();
        said.retain(|id, settled| {
            let still = shown.iter().any(|ask| ask.body.ask == *id);
            if !still {
                settled.cancel();
            }
            still
        });
        let mut queued = Vec::new();
        for ask in shown {
            if said.contains_key(&ask.body.ask) {
                continue;
            }
            let settled = connection.tasks.stop().child_token();
            said.insert(ask.body.ask.clone(), settled.clone());
            connection.asked.note(&ask);
            let (mark, on_its_way) = watch::channel(false);
            let task = say(Arc::clone(&connection), ask, mark);
            connection.tasks.spawn("ask", async move {
                settled.run_until_cancelled(task).await;
            });
            queued.push(on_its_way);
        }
        if first {
            for mut on_its_way in queued {
                // An error: the ask was settled meanwhile.
                let _ = on_its_way.wait_for(|sent| *sent).await;
            }
            connection.states().await;
            connection.streams.open();
            first = false;
        }
        // Summaries change with every bit of progress; an ask a moment later is soon enough.
        clock::sleep(PAUSE).await;
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { return },
            shown = opened.changed() => if shown.is_err() { return },
        }
    }
}

/// Says one ask and takes the answer to the request. Dropped when the ask is settled elsewhere:
/// that takes the request back.
async fn say(connection: Arc<Connection>, ask: OpenAsk, mark: watch::Sender<bool>) {
    // An instance knows asks by their ids; to others the call comes first.
    if !connection.client().follows() {
        let streams = &connection.streams;
        streams.passed(&ask.session, ask.seq, BEHIND).await;
    }
    let sessions = &connection.device.sessions;
    let Ok(session) = sessions.get(&ask.session, &connection.origin).await else {
        return;
    };
    let call = call_of(&ask, &*session).await;
    let separate = connection.client().has(Capability::Asks);
    let question = ask.body.question.as_ref();
    // A question gives no right: it is answered from wherever it is asked.
    let scopes = match question {
        Some(_) => ask.body.scopes.clone(),
        None => connection.limits.scopes(&ask.body.scopes),
    };
    let scheduled = session.scheduled();
    let now = clock::now_ms();
    let scheduled = scheduled.as_ref();
    let params = ask::request(&ask, call.as_ref(), scheduled, &scopes, separate, now);
    let method = match question {
        Some(_) if separate => "_lembas/ask",
        _ => "session/request_permission",
    };
    let asked = connection.peer.request(method, params);
    tokio::pin!(asked);
    // The first poll puts it into the queue, unless that is full.
    let early = asked.as_mut().now_or_never();
    mark.send_replace(true);
    if !connection.client().follows() {
        session.ask_heard(&ask.body.ask).await;
    }
    let answer = match early {
        Some(answer) => answer,
        None => asked.await,
    };
    let mut selected = Vec::new();
    let (outcome, scope, note) = match answer.map(|answer| ask::said(answer, question)) {
        // An answer by the request itself counts only where it is the only way.
        Ok(Said::Chose(..) | Said::Picked(_)) if separate => return,
        Ok(Said::Chose(outcome, scope)) => (outcome, scope, None),
        Ok(Said::Picked(choice)) => {
            selected.push(choice);
            (Outcome::Allow, Scope::Once, None)
        }
        // The link is gone: the ask stays open and is said again.
        Err(CallError::Closed { .. }) => return,
        // The answer comes by itself.
        Ok(_) | Err(_) if separate => return,
        Ok(Said::Nothing) => (Outcome::Cancel, Scope::Once, None),
        Ok(Said::Nonsense) | Err(_) => {
            tracing::warn!(ask = %ask.body.ask, "a client could not answer a question");
            let note = "the program that was asked could not show the question".to_owned();
            (Outcome::Cancel, Scope::Once, Some(note))
        }
    };
    let answer = Answer {
        ask: ask.body.ask.clone(),
        digest: ask.body.digest.clone(),
        outcome,
        scope,
        note,
        selected,
        origin: connection.origin.clone(),
        by: connection.who(),
    };
    match session.answer(answer).await {
        Ok(_) | Err(AnswerError::Settled { .. } | AnswerError::Unknown) => {}
        Err(error) => {
            // It stays open, and is answered where the error says.
            tracing::warn!(ask = %ask.body.ask, %error, "an answer did not count");
        }
    }
}

/// The call that an ask is about: one of the items before it in the same step. A read may answer
/// fewer items than there are (what is in memory is not read together with the disk), so it goes
/// on until the ask itself is passed.
async fn call_of(ask: &OpenAsk, session: &dyn super::port::OneSession) -> Option<Item> {
    let mut from = Seq(ask.seq.0.saturating_sub(64));
    loop {
        let items = session.items(from, 65).await.ok()?;
        let last = items.last()?.seq;
        let mut items = items.into_iter();
        let call = items
            .find(|item| matches!(&item.body, Body::Call { call, .. } if *call == ask.body.call));
        if call.is_some() || last >= ask.seq {
            return call;
        }
        from = Seq(last.0 + 1);
    }
}
