//! What the wire needs of sessions, as traits.
//!
//! `session::Registry` is the one implementation in the program; the tests of the wire play
//! sessions that do whatever a test needs. Meanings and errors are those of `session`.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::sync::watch;

use crate::config::Mode;
use crate::ids::{AskId, Position, Seq, SessionId};
use crate::permission::Origin;
use crate::session::{
    Answer, AnswerError, Event, Follow, NewSession, OpenAsk, Prompt, Registry, Scheduled, Session,
    SessionError, StopWhy, Stopped, Summary, TurnDone,
};
use crate::store::item::Item;

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
    ) -> BoxFuture<'a, Result<(Vec<Summary>, Option<String>), SessionError>>;
    fn asks<'a>(&'a self, asker: &'a Origin) -> BoxFuture<'a, Vec<OpenAsk>>;
    /// Marked changed whenever a summary or an ask changes.
    fn changes(&self) -> watch::Receiver<u64>;
}

/// One session.
pub trait OneSession: Send + Sync + 'static {
    fn id(&self) -> SessionId;
    /// A scheduled run's facts, when it was opened as one.
    fn scheduled(&self) -> BoxFuture<'_, Option<Scheduled>>;
    fn summary(&self) -> BoxFuture<'_, Summary>;
    fn prompt(&self, prompt: Prompt) -> BoxFuture<'_, Result<TurnDone, SessionError>>;
    fn stop(&self, turn: Option<u32>, why: StopWhy) -> BoxFuture<'_, Stopped>;
    fn answer(&self, answer: Answer) -> BoxFuture<'_, Result<i64, AnswerError>>;
    fn asks(&self) -> BoxFuture<'_, Vec<OpenAsk>>;
    fn ask_heard<'a>(&'a self, ask: &'a AskId) -> BoxFuture<'a, ()>;
    fn extend<'a>(
        &'a self,
        ask: &'a AskId,
        seconds: u64,
    ) -> BoxFuture<'a, Result<u64, AnswerError>>;
    fn set_mode<'a>(&'a self, mode: Mode, by: &'a str)
    -> BoxFuture<'a, Result<Mode, SessionError>>;
    fn set_model(&self, model: String) -> BoxFuture<'_, Result<(), SessionError>>;
    fn set_level(&self, level: String) -> BoxFuture<'_, Result<(), SessionError>>;
    fn items(&self, from: Seq, limit: usize) -> BoxFuture<'_, Result<Vec<Item>, SessionError>>;
    fn follow(&self, from: Position) -> Box<dyn Journal>;
    fn close(&self) -> BoxFuture<'_, Result<(), SessionError>>;
    fn delete(&self) -> BoxFuture<'_, Result<(), SessionError>>;
}

/// A follower's side of a journal.
pub trait Journal: Send + 'static {
    /// The next event; none when the session was deleted. Safe to drop at any moment.
    fn next(&mut self) -> BoxFuture<'_, Option<Event>>;
}
