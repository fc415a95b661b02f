//! Played sessions: a test writes their journals, opens and settles their asks, ends their turns.

use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use lembas::acp::{Journal, OneSession, Sessions};
use lembas::config::Mode;
use lembas::ids::{AskId, CallId, Digest, Position, Seq, SessionId};
use lembas::permission::Origin;
use lembas::session::{
    Answer, AnswerError, Event, NewSession, OpenAsk, Outcome, Output, OutputError, Phase, Progress,
    Prompt, Scheduled, SessionError, StopWhy, Stopped, Summary, TextKind, TurnDone,
};
use lembas::store::item::{AskBody, Body, CallStatus, Item, Scope, Settled, Stop, Tokens};
use parking_lot::Mutex;
use tokio::sync::watch;

#[derive(Default)]
pub(crate) struct Fakes {
    pub(crate) list: Mutex<Vec<Arc<Fake>>>,
    changes: watch::Sender<u64>,
    pub(crate) places: Arc<Places>,
}

/// How many turns of linked instances may run.
#[derive(Default)]
pub(crate) struct Places {
    pub(crate) most: Mutex<Option<usize>>,
    all: Mutex<Vec<Weak<Fake>>>,
}

impl Places {
    fn full(&self, origin: &Origin) -> bool {
        let Some(most) = self.most.lock().filter(|_| *origin != Origin::Local) else {
            return false;
        };
        let all = self.all.lock();
        let running = all
            .iter()
            .filter_map(Weak::upgrade)
            .filter(|fake| fake.state.lock().running);
        running.count() >= most
    }
}

pub(crate) struct Fake {
    pub(crate) new: NewSession,
    id: SessionId,
    me: Weak<Self>,
    places: Weak<Places>,
    pub(crate) state: Mutex<State>,
    version: watch::Sender<u64>,
    changes: watch::Sender<u64>,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) items: Vec<Item>,
    /// The last item still grows.
    growing: bool,
    turn: u32,
    pub(crate) running: bool,
    mode: Option<Mode>,
    model: Option<String>,
    updated: i64,
    progress: Option<Progress>,
    prompts: Vec<(String, u32, Option<TurnDone>)>,
    pub(crate) asks: Vec<OpenAsk>,
    settled: Vec<(AskId, AnswerError)>,
    pub(crate) answers: Vec<Answer>,
    pub(crate) heard: Vec<AskId>,
    pub(crate) stops: Vec<(Option<u32>, StopWhy)>,
    deleted: bool,
    closed: bool,
    /// What calls put out, and how much of it was not kept.
    pub(crate) outputs: std::collections::HashMap<String, (Vec<u8>, u64)>,
}

impl Fakes {
    pub(crate) fn one(&self) -> Arc<Fake> {
        self.list.lock().last().unwrap().clone()
    }

    pub(crate) fn get(&self, id: &str) -> Arc<Fake> {
        let list = self.list.lock();
        list.iter()
            .find(|fake| fake.id.as_str() == id)
            .unwrap()
            .clone()
    }
}

fn origin_text(origin: &Origin) -> String {
    match origin {
        Origin::Local => "local".to_owned(),
        Origin::Remote { instance, grant } => format!("{instance} {grant}"),
    }
}

impl Fake {
    fn changed(&self, state: &mut State) {
        state.updated += 1;
        self.version.send_modify(|n| *n += 1);
        self.changes.send_modify(|n| *n += 1);
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state.lock();
        let done = change(&mut state);
        self.changed(&mut state);
        done
    }

    /// Adds a whole item.
    pub(crate) fn add(&self, body: Body) -> Seq {
        self.change(|state| {
            state.growing = false;
            push(state, body)
        })
    }

    /// More text of the assistant; the item goes on until something else is added.
    pub(crate) fn say(&self, chunk: &str) {
        self.change(|state| {
            if state.growing
                && let Some(Item {
                    body: Body::Message { text },
                    ..
                }) = state.items.last_mut()
            {
                text.push_str(chunk);
                return;
            }
            state.growing = true;
            push(
                state,
                Body::Message {
                    text: chunk.to_owned(),
                },
            );
        });
    }

    pub(crate) fn phase(&self, phase: Phase) {
        let progress = Progress {
            phase,
            since: 7,
            data: serde_json::Map::new(),
        };
        self.change(|state| state.progress = Some(progress));
    }

    /// Ends the running turn.
    pub(crate) fn finish(&self, stop: Stop, reason: Option<&str>) {
        self.change(|state| finish(state, stop, reason));
    }

    pub(crate) fn ask(&self, id: &str, scopes: &[Scope]) {
        self.change(|state| {
            let call = CallId::new(format!("call-{id}"));
            let body = ask_body(id, &call, scopes);
            push(
                state,
                Body::Call {
                    call,
                    model_call: String::new(),
                    tool: "bash".to_owned(),
                    args: "{\"command\":\"git push\"}".to_owned(),
                    title: "git push".to_owned(),
                    block: "shell".to_owned(),
                    locations: Vec::new(),
                },
            );
            let seq = push(state, Body::Ask(Box::new(body.clone())));
            state.growing = false;
            state.asks.push(OpenAsk {
                session: self.id.clone(),
                seq,
                made: 100,
                body,
                expires_in_ms: None,
                remote: self.new.origin != Origin::Local,
            });
        });
    }

    pub(crate) fn settle(&self, id: &str, how: Settled, by: &str) {
        self.change(|state| settle(state, &AskId::new(id), how, by));
    }

    pub(crate) async fn prompted(&self, count: usize) {
        let mut version = self.version.subscribe();
        let wait = version.wait_for(|_| self.state.lock().prompts.len() >= count);
        let wait = tokio::time::timeout(Duration::from_secs(20), wait);
        wait.await.expect("no prompt came").unwrap();
    }

    pub(crate) async fn when(&self, what: &str, is: impl Fn(&State) -> bool) {
        let mut version = self.version.subscribe();
        let wait = version.wait_for(|_| is(&self.state.lock()));
        let wait = tokio::time::timeout(Duration::from_secs(20), wait);
        wait.await
            .unwrap_or_else(|_| panic!("never: {what}"))
            .unwrap();
    }

    pub(crate) fn head(&self) -> Seq {
        self.state
            .lock()
            .items
            .last()
            .map_or(Seq(0), |item| item.seq)
    }
}

fn ask_body(id: &str, call: &CallId, scopes: &[Scope]) -> AskBody {
    AskBody {
        ask: AskId::new(id),
        call: call.clone(),
        digest: Digest::read(format!("sha256:{id}")),
        kind: "execute".to_owned(),
        command: "git push".to_owned(),
        cwd: "/srv".to_owned(),
        reason: "It reaches other computers.".to_owned(),
        segment: None,
        r#box: "open".to_owned(),
        covers: None,
        widest: None,
        scopes: scopes.to_vec(),
        programs: Vec::new(),
        variables: Vec::new(),
        diff: None,
        wait_ms: None,
        question: None,
    }
}

fn push(state: &mut State, body: Body) -> Seq {
    // Gaps mean nothing: every number is skipped once.
    let seq = Seq(state.items.last().map_or(0, |item| item.seq.0) + 2);
    state.items.push(Item {
        seq,
        turn: state.turn,
        time: 5,
        body,
    });
    seq
}

fn finish(state: &mut State, stop: Stop, reason: Option<&str>) {
    if !state.running {
        return;
    }
    state.running = false;
    state.growing = false;
    let done = TurnDone {
        turn: state.turn,
        stop,
        reason: reason.map(str::to_owned),
        tokens: Tokens {
            input: 3,
            cached_input: 1,
            output: 2,
        },
        run: None,
    };
    push(
        state,
        Body::TurnEnd {
            stop,
            reason: done.reason.clone(),
            tokens: done.tokens,
            run: None,
        },
    );
    for prompt in &mut state.prompts {
        if prompt.1 == done.turn {
            prompt.2 = Some(done.clone());
        }
    }
}

fn settle(state: &mut State, id: &AskId, how: Settled, by: &str) {
    state.asks.retain(|ask| ask.body.ask != *id);
    let error = AnswerError::Settled {
        how,
        by: by.to_owned(),
        at: 77,
    };
    state.settled.push((id.clone(), error));
    let ask = id.clone();
    push(
        state,
        Body::Answered {
            ask,
            how,
            scope: None,
            by: by.to_owned(),
            note: None,
            selected: Vec::new(),
        },
    );
}

impl Sessions for Fakes {
    fn open(&self, new: NewSession) -> BoxFuture<'_, Result<Arc<dyn OneSession>, SessionError>> {
        let mut list = self.list.lock();
        let known = list
            .iter()
            .find(|fake| new.key.is_some() && fake.new.key == new.key);
        let fake = known.cloned().unwrap_or_else(|| {
            let fake = Arc::new_cyclic(|me| Fake {
                id: SessionId::new(format!("s{}", list.len() + 1)),
                new,
                me: me.clone(),
                places: Arc::downgrade(&self.places),
                state: Mutex::default(),
                version: watch::Sender::default(),
                changes: self.changes.clone(),
            });
            self.places.all.lock().push(fake.me.clone());
            list.push(fake.clone());
            fake
        });
        self.changes.send_modify(|n| *n += 1);
        std::future::ready(Ok(fake as Arc<dyn OneSession>)).boxed()
    }

    fn get<'a>(
        &'a self,
        id: &'a SessionId,
        asker: &'a Origin,
    ) -> BoxFuture<'a, Result<Arc<dyn OneSession>, SessionError>> {
        let list = self.list.lock();
        let found = list.iter().find(|fake| {
            let own = *asker == Origin::Local || fake.new.origin == *asker;
            fake.id == *id && own && !fake.state.lock().deleted
        });
        let found = found.cloned().map(|fake| fake as Arc<dyn OneSession>);
        std::future::ready(found.ok_or_else(|| SessionError::Missing(id.clone()))).boxed()
    }

    fn list<'a>(
        &'a self,
        asker: &'a Origin,
        cwd: Option<PathBuf>,
        after: Option<String>,
        limit: usize,
    ) -> BoxFuture<'a, Result<(Vec<Summary>, Option<String>), SessionError>> {
        let fakes: Vec<_> = self.list.lock().clone();
        async move {
            let mut all = Vec::new();
            for fake in fakes.into_iter().rev() {
                let own = *asker == Origin::Local || fake.new.origin == *asker;
                let there = cwd.as_ref().is_none_or(|cwd| *cwd == fake.new.cwd);
                if own && there && !fake.state.lock().deleted {
                    all.push(fake.summary().await);
                }
            }
            let from = after.map_or(0, |after| after.parse().unwrap_or(0));
            let page: Vec<_> = all.iter().skip(from).take(limit).cloned().collect();
            let next = (from + page.len() < all.len()).then(|| (from + page.len()).to_string());
            Ok((page, next))
        }
        .boxed()
    }

    fn asks<'a>(&'a self, asker: &'a Origin) -> BoxFuture<'a, Vec<OpenAsk>> {
        let list = self.list.lock();
        let own = list
            .iter()
            .filter(|fake| *asker == Origin::Local || fake.new.origin == *asker);
        let asks: Vec<_> = own
            .flat_map(|fake| fake.state.lock().asks.clone())
            .collect();
        std::future::ready(asks).boxed()
    }

    fn head<'a>(&'a self, asker: &'a Origin) -> BoxFuture<'a, i64> {
        async move {
            let page = self.list(asker, None, None, usize::MAX).await;
            let changes = page.into_iter().flat_map(|(list, _)| list);
            changes.map(|one| one.updated).max().unwrap_or(0)
        }
        .boxed()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}

impl OneSession for Fake {
    fn id(&self) -> SessionId {
        self.id.clone()
    }

    fn scheduled(&self) -> Option<Scheduled> {
        self.new.scheduled.clone()
    }

    fn level(&self) -> Option<String> {
        self.new.level.clone()
    }

    fn summary(&self) -> BoxFuture<'_, Summary> {
        let state = self.state.lock();
        let summary = Summary {
            id: self.id.clone(),
            cwd: self.new.cwd.clone(),
            title: None,
            origin: origin_text(&self.new.origin),
            scheduled: self.new.scheduled.is_some(),
            model: state
                .model
                .clone()
                .unwrap_or_else(|| self.new.model.clone()),
            mode: state.mode.unwrap_or(self.new.mode),
            updated: state.updated,
            head: state.items.last().map_or(Seq(0), |item| item.seq),
            running: state.running,
            progress: state.progress.clone(),
            asks: state.asks.len(),
            turn: state.turn,
        };
        std::future::ready(summary).boxed()
    }

    fn prompt(&self, prompt: Prompt) -> BoxFuture<'_, Result<TurnDone, SessionError>> {
        async move {
            let full = self
                .places
                .upgrade()
                .is_some_and(|all| all.full(&self.new.origin));
            let begun = {
                let mut state = self.state.lock();
                let known = state.prompts.iter().find(|known| known.0 == prompt.key);
                match known.map(|known| known.1) {
                    Some(turn) => Ok(turn),
                    None if state.running => Err(SessionError::Busy),
                    None if full => Err(SessionError::TooMany(2)),
                    None => {
                        state.turn += 1;
                        state.running = true;
                        state.growing = false;
                        let turn = state.turn;
                        state.prompts.push((prompt.key.clone(), turn, None));
                        push(
                            &mut state,
                            Body::Prompt {
                                key: prompt.key,
                                source: prompt.source,
                                parts: prompt.parts,
                                note: None,
                                run: prompt.run,
                            },
                        );
                        self.changed(&mut state);
                        Ok(turn)
                    }
                }
            };
            let turn = begun?;
            let mut version = self.version.subscribe();
            loop {
                version.borrow_and_update();
                let done = self
                    .state
                    .lock()
                    .prompts
                    .iter()
                    .find(|p| p.1 == turn)
                    .and_then(|p| p.2.clone());
                match done {
                    Some(done) => return Ok(done),
                    None => version.changed().await.unwrap(),
                }
            }
        }
        .boxed()
    }

    fn stop(&self, turn: Option<u32>, why: StopWhy) -> BoxFuture<'_, Stopped> {
        let stopped = self.change(|state| {
            state.stops.push((turn, why.clone()));
            if !state.running || turn.is_some_and(|turn| turn != state.turn) {
                return Stopped::Gone;
            }
            push(
                state,
                Body::Result {
                    call: CallId::new("c"),
                    status: CallStatus::Cancelled,
                    text: String::new(),
                    diff: None,
                    path: None,
                    exit: None,
                    bytes: 0,
                    spill: None,
                    saw: None,
                    ms: 1,
                },
            );
            state.asks.clear();
            let words = match why {
                StopWhy::Limit(words) => Some(words),
                _ => None,
            };
            finish(state, Stop::Cancelled, words.as_deref());
            Stopped::Stopped
        });
        std::future::ready(stopped).boxed()
    }

    fn answer(&self, answer: Answer) -> BoxFuture<'_, Result<i64, AnswerError>> {
        let result = self.change(|state| {
            state.answers.push(answer.clone());
            if let Some((_, error)) = state.settled.iter().find(|(id, _)| *id == answer.ask) {
                return Err(error.clone());
            }
            let open = state.asks.iter().find(|ask| ask.body.ask == answer.ask);
            let Some(open) = open else {
                return Err(AnswerError::Unknown);
            };
            if open.body.digest != answer.digest {
                return Err(AnswerError::Changed);
            }
            if answer.outcome == Outcome::Allow && !open.body.scopes.contains(&answer.scope) {
                return Err(AnswerError::Scope(answer.scope));
            }
            let how = match answer.outcome {
                Outcome::Allow => Settled::Allowed,
                Outcome::Refuse => Settled::Refused,
                Outcome::Cancel => Settled::Cancelled,
            };
            settle(state, &answer.ask, how, &answer.by);
            Ok(78)
        });
        std::future::ready(result).boxed()
    }

    fn asks(&self) -> BoxFuture<'_, Vec<OpenAsk>> {
        std::future::ready(self.state.lock().asks.clone()).boxed()
    }

    fn ask_heard<'a>(&'a self, ask: &'a AskId) -> BoxFuture<'a, ()> {
        self.change(|state| state.heard.push(ask.clone()));
        std::future::ready(()).boxed()
    }

    fn retry(&self, _: Option<u32>) -> BoxFuture<'_, bool> {
        std::future::ready(false).boxed()
    }

    fn rewind<'a>(&'a self, to: Seq, _: &'a str) -> BoxFuture<'a, Result<Seq, SessionError>> {
        std::future::ready(Err(SessionError::NoPrompt(to))).boxed()
    }

    fn extend<'a>(
        &'a self,
        ask: &'a AskId,
        seconds: u64,
    ) -> BoxFuture<'a, Result<Option<Duration>, AnswerError>> {
        let open = self
            .state
            .lock()
            .asks
            .iter()
            .any(|open| open.body.ask == *ask);
        let left = if open {
            Ok(Some(Duration::from_secs(seconds)))
        } else {
            Err(AnswerError::Unknown)
        };
        std::future::ready(left).boxed()
    }

    fn set_mode<'a>(
        &'a self,
        mode: Mode,
        by: &'a str,
    ) -> BoxFuture<'a, Result<Mode, SessionError>> {
        self.change(|state| {
            state.mode = Some(mode);
            push(
                state,
                Body::Mode {
                    mode: mode.word().to_owned(),
                    by: by.to_owned(),
                },
            );
        });
        std::future::ready(Ok(mode)).boxed()
    }

    fn set_model(&self, model: String) -> BoxFuture<'_, Result<(), SessionError>> {
        self.change(|state| state.model = Some(model));
        std::future::ready(Ok(())).boxed()
    }

    fn set_level(&self, level: String) -> BoxFuture<'_, Result<(), SessionError>> {
        self.add(Body::Level { level });
        std::future::ready(Ok(())).boxed()
    }

    fn items(&self, from: Seq, limit: usize) -> BoxFuture<'_, Result<Vec<Item>, SessionError>> {
        let state = self.state.lock();
        let items = state
            .items
            .iter()
            .filter(|item| item.seq >= from)
            .take(limit);
        std::future::ready(Ok(items.cloned().collect())).boxed()
    }

    fn output<'a>(&'a self, call: &'a CallId) -> BoxFuture<'a, Result<Output, OutputError>> {
        let state = self.state.lock();
        let found = state.outputs.get(call.as_str());
        let output = found.map(|(bytes, missing)| Output::of(bytes.clone(), *missing));
        std::future::ready(output.ok_or(OutputError::Unknown)).boxed()
    }

    fn follow(&self, from: Position) -> Box<dyn Journal> {
        Box::new(Tail {
            fake: self.me.upgrade().unwrap(),
            version: self.version.subscribe(),
            at: from,
            progress: None,
        })
    }

    fn close(&self) -> BoxFuture<'_, Result<(), SessionError>> {
        self.change(|state| {
            finish(state, Stop::Cancelled, None);
            state.closed = true;
        });
        std::future::ready(Ok(())).boxed()
    }

    fn delete(&self) -> BoxFuture<'_, Result<(), SessionError>> {
        self.change(|state| state.deleted = true);
        std::future::ready(Ok(())).boxed()
    }
}

/// A follower, which gets whatever is there at once, joined.
struct Tail {
    fake: Arc<Fake>,
    version: watch::Receiver<u64>,
    at: Position,
    progress: Option<Progress>,
}

impl Tail {
    fn step(&mut self) -> Option<Event> {
        let state = self.fake.state.lock();
        let new = state.items.iter().find(|item| item.position() > self.at);
        if let Some(item) = new {
            let known = if item.seq == self.at.seq {
                self.at.at
            } else {
                0
            };
            self.at = item.position();
            let known = usize::try_from(known).unwrap();
            return Some(match &item.body {
                Body::Message { text } if known > 0 => Event::Text {
                    to: self.at,
                    kind: TextKind::Message,
                    chunk: text[known..].to_owned(),
                },
                _ => Event::Item(item.clone()),
            });
        }
        if state.progress != self.progress {
            self.progress.clone_from(&state.progress);
            return state.progress.clone().map(Event::Progress);
        }
        None
    }
}

impl Journal for Tail {
    fn next(&mut self) -> BoxFuture<'_, Option<Event>> {
        async move {
            loop {
                self.version.borrow_and_update();
                if self.fake.state.lock().deleted {
                    return None;
                }
                if let Some(event) = self.step() {
                    return Some(event);
                }
                self.version.changed().await.ok()?;
            }
        }
        .boxed()
    }
}
