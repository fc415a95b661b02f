//! The handle to a session: what others may ask of it.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot, watch};

use crate::agent::asks::{Answer, AnswerError, Waits};
use crate::agent::driver::AnswerCmd;
use crate::agent::progress::Doing;
use crate::agent::stop::StopWhy;
use crate::agent::{SessionFacts, Settings, words};
use crate::clock;
use crate::config::{Live, Mode};
use crate::ids::{AskId, Position, Seq, SessionId};
use crate::permission::Origin;
use crate::session::task::{Change, SessionCmd};
use crate::session::{
    Follow, OpenAsk, Prompt, Scheduled, SessionError, Stopped, Summary, TurnDone,
};
use crate::store::device::asks::AskRow;
use crate::store::device::sessions::SessionRow;
use crate::store::item::Item;
use crate::store::journal::Journal;

/// A handle to one session. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Session(pub(super) Arc<Core>);

#[derive(Debug)]
pub(super) struct Core {
    pub(super) facts: Arc<SessionFacts>,
    pub(super) scheduled: Option<Scheduled>,
    pub(super) journal: Journal,
    pub(super) doing: Doing,
    pub(super) settings: watch::Receiver<Settings>,
    pub(super) cmds: mpsc::Sender<SessionCmd>,
    pub(super) waits: Waits,
    pub(super) config: Live,
    /// When it was last handed out.
    pub(super) used: Mutex<clock::Instant>,
}

impl Session {
    pub fn id(&self) -> &SessionId {
        &self.0.facts.id
    }

    /// What does not change while the session lives.
    pub fn facts(&self) -> &SessionFacts {
        &self.0.facts
    }

    /// The facts of the scheduled run it was opened for.
    pub fn scheduled(&self) -> Option<&Scheduled> {
        self.0.scheduled.as_ref()
    }

    pub async fn summary(&self) -> Summary {
        let row = self.0.journal.store().session(self.id()).await;
        match row {
            Ok(Some(row)) => summary(&row, Some(&self.0.doing)),
            // Deleted, or not to be read just now: what is known without the store.
            Ok(None) | Err(_) => {
                let settings = self.0.settings.borrow().clone();
                Summary {
                    id: self.id().clone(),
                    cwd: self.0.facts.cwd.clone(),
                    title: None,
                    origin: origin_word(&self.0.facts.origin),
                    scheduled: self.0.facts.scheduled_wait.is_some(),
                    model: settings.model,
                    mode: settings.mode,
                    updated: 0,
                    head: Seq(0),
                    running: false,
                    progress: None,
                    asks: 0,
                    turn: 0,
                }
            }
        }
    }

    /// Runs a prompt as a turn and answers when the turn has ended. The same key again joins the
    /// turn it started, or answers how it ended. Dropping the future does not stop the turn.
    pub async fn prompt(&self, prompt: Prompt) -> Result<TurnDone, SessionError> {
        self.ask(|reply| SessionCmd::Prompt(prompt, reply)).await?
    }

    /// Ends a turn: the one given, or the running one. Answers when every process is gone.
    pub async fn stop(&self, turn: Option<u32>, why: StopWhy) -> Stopped {
        self.ask(|reply| SessionCmd::Stop(turn, why, reply))
            .await
            .unwrap_or(Stopped::Gone)
    }

    pub async fn answer(&self, answer: Answer) -> Result<i64, AnswerError> {
        let ask = answer.ask.clone();
        let said = self
            .ask(|reply| SessionCmd::Answer(AnswerCmd { answer, reply }))
            .await;
        match said {
            Ok(said) => said,
            // The turn ended before it took the answer: how the ask ended is in the store.
            Err(_) => Err(self.how_it_ended(&ask).await),
        }
    }

    async fn how_it_ended(&self, ask: &AskId) -> AnswerError {
        match self.0.journal.store().ask(ask).await {
            Ok(Some(AskRow { end: Some(end), .. })) => AnswerError::Settled {
                how: end.how,
                by: end.by,
                at: end.at,
            },
            Ok(_) => AnswerError::Unknown,
            Err(error) => AnswerError::Store(error.to_string()),
        }
    }

    pub async fn asks(&self) -> Vec<OpenAsk> {
        let rows = self
            .0
            .journal
            .store()
            .open_asks(Some(self.id()), None)
            .await;
        match rows {
            Ok(rows) => rows
                .into_iter()
                .map(|(row, origin)| open_ask(row, &origin, &self.0.waits))
                .collect(),
            Err(error) => {
                tracing::error!(session = %self.id(), %error, "cannot read the open questions");
                Vec::new()
            }
        }
    }

    /// The wait of an ask starts now: the instance has acknowledged it.
    pub async fn ask_heard(&self, ask: &AskId) {
        if let Some(left) = self.0.waits.heard(ask) {
            self.keep_wait(ask, left, true).await;
        }
    }

    /// Has an ask wait so many seconds from now, as far as `remote.approval_max` lets it. Answers
    /// what is left of its wait then; none: it has no deadline.
    pub async fn extend(&self, ask: &AskId, seconds: u64) -> Result<Option<Duration>, AnswerError> {
        let longest = Duration::from_secs(self.0.config.now().remote.approval_max);
        let time = Duration::from_secs(seconds);
        let Some(left) = self.0.waits.extend(ask, time, longest) else {
            return Err(self.how_it_ended(ask).await);
        };
        if left.is_some() {
            let runs = self.0.waits.runs(ask);
            self.keep_wait(ask, left, runs).await;
        }
        Ok(left)
    }

    async fn keep_wait(&self, ask: &AskId, left: Option<Duration>, heard: bool) {
        let store = self.0.journal.store();
        if let Err(error) = store.keep_wait(ask, left.map(words::ms), heard).await {
            // It runs all the same; a restart may give it back what it had.
            tracing::warn!(%error, "cannot save the wait of a question");
        }
        self.0.journal.touch();
    }

    /// Changes the mode; the caller has lowered it to the limits. Answers what it is now.
    pub async fn set_mode(&self, mode: Mode, by: &str) -> Result<Mode, SessionError> {
        let by = by.to_owned();
        self.ask(|reply| SessionCmd::Change(Change::Mode(mode, by), reply))
            .await??;
        Ok(self.0.settings.borrow().mode)
    }

    pub async fn set_model(&self, model: String) -> Result<(), SessionError> {
        self.ask(|reply| SessionCmd::Change(Change::Model(model), reply))
            .await?
    }

    pub async fn set_level(&self, level: String) -> Result<(), SessionError> {
        self.ask(|reply| SessionCmd::Change(Change::Level(level), reply))
            .await?
    }

    /// The mode, model and level as they are now.
    pub fn settings(&self) -> Settings {
        self.0.settings.borrow().clone()
    }

    /// Items in order from a number on, at most `limit`; fewer when they are long.
    pub async fn items(&self, from: Seq, limit: usize) -> Result<Vec<Item>, SessionError> {
        let before = Position {
            seq: Seq(from.0.saturating_sub(1)),
            at: u64::MAX,
        };
        match self.0.journal.read(before, limit).await? {
            Some(items) => Ok(items.into()),
            None => Err(SessionError::Missing(self.id().clone())),
        }
    }

    /// Follows the journal from a position: first what is missing, then what happens.
    pub fn follow(&self, from: Position) -> Follow {
        Follow::new(self.clone(), from)
    }

    /// Stops what runs. The session stays and can be opened again.
    pub async fn close(&self) -> Result<(), SessionError> {
        self.stop(None, StopWhy::Asked).await;
        Ok(())
    }

    /// Stops what runs and deletes the session with everything that was kept of it.
    pub async fn delete(&self) -> Result<(), SessionError> {
        self.ask(SessionCmd::Delete).await?
    }

    /// Goes on with a turn that was left open.
    pub(super) async fn resume(&self) -> Result<(), SessionError> {
        self.ask(SessionCmd::Resume).await?
    }

    /// Leaves memory, when nobody else has a handle to it and no turn runs.
    pub(super) async fn rest(self) -> bool {
        self.ask(SessionCmd::Rest).await.unwrap_or(false)
    }

    /// Hands the task a command and waits for what comes of it. The task answers everything it
    /// takes; when it is gone, so is the session.
    async fn ask<T>(
        &self,
        cmd: impl FnOnce(oneshot::Sender<T>) -> SessionCmd,
    ) -> Result<T, SessionError> {
        let (reply, answer) = oneshot::channel();
        let missing = || SessionError::Missing(self.id().clone());
        self.0.cmds.send(cmd(reply)).await.map_err(|_| missing())?;
        answer.await.map_err(|_| missing())
    }
}

/// A session as the disk has it, while no process runs it.
pub fn kept(row: &SessionRow) -> Summary {
    summary(row, None)
}

/// A question as the disk has it, while no process waits for its answer.
pub fn kept_ask(row: AskRow, origin: &str) -> OpenAsk {
    OpenAsk {
        session: row.session,
        seq: row.seq,
        made: row.made,
        body: row.body,
        expires_in_ms: row.left_ms,
        remote: origin != "local",
    }
}

/// A session's row as others see it.
pub(super) fn summary(row: &SessionRow, doing: Option<&Doing>) -> Summary {
    Summary {
        id: row.id.clone(),
        cwd: row.cwd.clone(),
        title: row.title.clone(),
        origin: origin_word(&crate::agent::read_origin(&row.origin)),
        scheduled: row.scheduled.is_some(),
        model: row.model.clone(),
        mode: row.mode,
        updated: row.updated,
        head: row.head,
        running: row.running,
        progress: doing.and_then(Doing::now),
        asks: row.asks,
        turn: row.turn,
    }
}

fn origin_word(origin: &Origin) -> String {
    match origin {
        Origin::Local => "local".to_owned(),
        Origin::Remote { instance, .. } => instance.clone(),
    }
}

/// An ask's row as others see it, with what is left of its wait at this moment.
pub(super) fn open_ask(row: AskRow, origin: &str, waits: &Waits) -> OpenAsk {
    let mut ask = kept_ask(row, origin);
    if waits.is_open(&ask.body.ask) {
        ask.expires_in_ms = waits.left(&ask.body.ask).map(words::ms);
    }
    ask
}
