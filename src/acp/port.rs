//! What the wire needs of sessions, as traits.
//!
//! `session::Registry` is the one implementation in the program; the tests of the wire play
//! sessions that do whatever a test needs. Meanings and errors are those of `session`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::sync::watch;

use crate::config::Mode;
use crate::ids::{AskId, CallId, Position, Seq, SessionId};
use crate::permission::Origin;
use crate::session::{
    Answer, AnswerError, Event, Follow, NewSession, OpenAsk, Output, OutputError, Prompt, Registry,
    Scheduled, Session, SessionError, StopWhy, Stopped, Summary, TurnDone,
};
use crate::store::item::Item;

/// A page of sessions, and what to go on from when there are more.
pub type Page = (Vec<Summary>, Option<String>);

/// All sessions of this computer.
pub trait Sessions: Send + Sync + 'static {
    fn open(&self, new: NewSession) -> BoxFuture<'_, Result<Arc<dyn OneSession>, SessionError>>;
    /// A session the asker may see; one of another origin is as missing as one that never was.
    fn get<'a>(
        &'a self,
        id: &'a SessionId,
        asker: &'a Origin,
    ) -> BoxFuture<'a, Result<Arc<dyn OneSession>, SessionError>>;
    /// Newest change first.
    fn list<'a>(
        &'a self,
        asker: &'a Origin,
        cwd: Option<PathBuf>,
        after: Option<String>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Page, SessionError>>;
    fn asks<'a>(&'a self, asker: &'a Origin) -> BoxFuture<'a, Vec<OpenAsk>>;
    /// The newest change of what the asker may see, also of sessions that are gone (Y2).
    fn head<'a>(&'a self, asker: &'a Origin) -> BoxFuture<'a, i64>;
    /// Marked changed whenever a summary or an ask changes.
    fn changes(&self) -> watch::Receiver<u64>;
}

/// One session.
pub trait OneSession: Send + Sync + 'static {
    fn id(&self) -> SessionId;
    /// A scheduled run's facts, when it was opened as one.
    fn scheduled(&self) -> Option<Scheduled>;
    fn summary(&self) -> BoxFuture<'_, Summary>;
    fn prompt(&self, prompt: Prompt) -> BoxFuture<'_, Result<TurnDone, SessionError>>;
    fn stop(&self, turn: Option<u32>, why: StopWhy) -> BoxFuture<'_, Stopped>;
    fn retry(&self, turn: Option<u32>) -> BoxFuture<'_, bool>;
    fn rewind<'a>(&'a self, to: Seq, by: &'a str) -> BoxFuture<'a, Result<Seq, SessionError>>;
    fn answer(&self, answer: Answer) -> BoxFuture<'_, Result<i64, AnswerError>>;
    fn asks(&self) -> BoxFuture<'_, Vec<OpenAsk>>;
    fn ask_heard<'a>(&'a self, ask: &'a AskId) -> BoxFuture<'a, ()>;
    fn extend<'a>(
        &'a self,
        ask: &'a AskId,
        seconds: u64,
    ) -> BoxFuture<'a, Result<Option<Duration>, AnswerError>>;
    fn set_mode<'a>(&'a self, mode: Mode, by: &'a str)
    -> BoxFuture<'a, Result<Mode, SessionError>>;
    fn set_model(&self, model: String) -> BoxFuture<'_, Result<(), SessionError>>;
    fn set_level(&self, level: String) -> BoxFuture<'_, Result<(), SessionError>>;
    /// The level of the model, where one was chosen.
    fn level(&self) -> Option<String>;
    fn items(&self, from: Seq, limit: usize) -> BoxFuture<'_, Result<Vec<Item>, SessionError>>;
    /// The bytes that a call put out.
    fn output<'a>(&'a self, call: &'a CallId) -> BoxFuture<'a, Result<Output, OutputError>>;
    fn follow(&self, from: Position) -> Box<dyn Journal>;
    fn close(&self) -> BoxFuture<'_, Result<(), SessionError>>;
    fn delete(&self) -> BoxFuture<'_, Result<(), SessionError>>;
}

/// A follower's side of a journal.
pub trait Journal: Send + 'static {
    /// The next event; none when the session was deleted. Safe to drop at any moment.
    fn next(&mut self) -> BoxFuture<'_, Option<Event>>;
}

impl Sessions for Registry {
    fn open(&self, new: NewSession) -> BoxFuture<'_, Result<Arc<dyn OneSession>, SessionError>> {
        async move { Ok(Arc::new(Self::open(self, new).await?) as Arc<dyn OneSession>) }.boxed()
    }

    fn get<'a>(
        &'a self,
        id: &'a SessionId,
        asker: &'a Origin,
    ) -> BoxFuture<'a, Result<Arc<dyn OneSession>, SessionError>> {
        async move { Ok(Arc::new(Self::get(self, id, asker).await?) as Arc<dyn OneSession>) }
            .boxed()
    }

    fn list<'a>(
        &'a self,
        asker: &'a Origin,
        cwd: Option<PathBuf>,
        after: Option<String>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Page, SessionError>> {
        Self::list(self, asker, cwd, after, limit).boxed()
    }

    fn asks<'a>(&'a self, asker: &'a Origin) -> BoxFuture<'a, Vec<OpenAsk>> {
        Self::asks(self, asker).boxed()
    }

    fn head<'a>(&'a self, asker: &'a Origin) -> BoxFuture<'a, i64> {
        Self::head(self, asker).boxed()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        Self::changes(self)
    }
}

impl OneSession for Session {
    fn id(&self) -> SessionId {
        Self::id(self).clone()
    }

    fn scheduled(&self) -> Option<Scheduled> {
        Self::scheduled(self).cloned()
    }

    fn summary(&self) -> BoxFuture<'_, Summary> {
        Self::summary(self).boxed()
    }

    fn prompt(&self, prompt: Prompt) -> BoxFuture<'_, Result<TurnDone, SessionError>> {
        Self::prompt(self, prompt).boxed()
    }

    fn stop(&self, turn: Option<u32>, why: StopWhy) -> BoxFuture<'_, Stopped> {
        Self::stop(self, turn, why).boxed()
    }

    fn answer(&self, answer: Answer) -> BoxFuture<'_, Result<i64, AnswerError>> {
        Self::answer(self, answer).boxed()
    }

    fn retry(&self, turn: Option<u32>) -> BoxFuture<'_, bool> {
        Self::retry(self, turn).boxed()
    }

    fn rewind<'a>(&'a self, to: Seq, by: &'a str) -> BoxFuture<'a, Result<Seq, SessionError>> {
        Self::rewind(self, to, by).boxed()
    }

    fn asks(&self) -> BoxFuture<'_, Vec<OpenAsk>> {
        Self::asks(self).boxed()
    }

    fn ask_heard<'a>(&'a self, ask: &'a AskId) -> BoxFuture<'a, ()> {
        Self::ask_heard(self, ask).boxed()
    }

    fn extend<'a>(
        &'a self,
        ask: &'a AskId,
        seconds: u64,
    ) -> BoxFuture<'a, Result<Option<Duration>, AnswerError>> {
        Self::extend(self, ask, seconds).boxed()
    }

    fn set_mode<'a>(
        &'a self,
        mode: Mode,
        by: &'a str,
    ) -> BoxFuture<'a, Result<Mode, SessionError>> {
        Self::set_mode(self, mode, by).boxed()
    }

    fn set_model(&self, model: String) -> BoxFuture<'_, Result<(), SessionError>> {
        Self::set_model(self, model).boxed()
    }

    fn set_level(&self, level: String) -> BoxFuture<'_, Result<(), SessionError>> {
        Self::set_level(self, level).boxed()
    }

    fn level(&self) -> Option<String> {
        self.settings().level
    }

    fn items(&self, from: Seq, limit: usize) -> BoxFuture<'_, Result<Vec<Item>, SessionError>> {
        Self::items(self, from, limit).boxed()
    }

    fn output<'a>(&'a self, call: &'a CallId) -> BoxFuture<'a, Result<Output, OutputError>> {
        Self::output(self, call).boxed()
    }

    fn follow(&self, from: Position) -> Box<dyn Journal> {
        Box::new(Self::follow(self, from))
    }

    fn close(&self) -> BoxFuture<'_, Result<(), SessionError>> {
        Self::close(self).boxed()
    }

    fn delete(&self) -> BoxFuture<'_, Result<(), SessionError>> {
        Self::delete(self).boxed()
    }
}

impl Journal for Follow {
    fn next(&mut self) -> BoxFuture<'_, Option<Event>> {
        Self::next(self).boxed()
    }
}
