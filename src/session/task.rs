//! The task that owns a session: takes commands, has at most one turn driven, and tells whoever
//! waits how it ended.

use std::sync::{Arc, Weak};

use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use crate::agent::asks::AnswerError;
use crate::agent::driver::{AnswerCmd, Ended};
use crate::agent::gate::Gate;
use crate::agent::progress::{Doing, Phase};
use crate::agent::stop::{StopSignal, StopWhy};
use crate::agent::turn::Turn;
use crate::agent::{SessionFacts, Settings, words};
use crate::config::Mode;
use crate::context::Fixed;
use crate::ids::Seq;
use crate::rt::Tasks;
use crate::session::registry::{Common, Loaded, RemoteTurn};
use crate::session::{Prompt, Scheduled, SessionError, Stopped, TurnDone};
use crate::store::db::{Durability, StoreError};
use crate::store::device::items::Also;
use crate::store::device::sessions::mode_word;
use crate::store::item::{Body, Item, Stop};
use crate::store::journal::Journal;

/// Commands that wait for the task; who sends more waits.
pub(super) const COMMANDS: usize = 64;
/// Answers that wait for the turn; further ones are told to come again.
pub(super) const ANSWERS: usize = 32;

type Reply<T> = oneshot::Sender<T>;
pub(super) type PromptReply = Reply<Result<TurnDone, SessionError>>;

/// Everything that can be asked of a session's task.
#[derive(Debug)]
pub(super) enum SessionCmd {
    Prompt(Prompt, PromptReply),
    Stop(Option<u32>, StopWhy, Reply<Stopped>),
    /// Ends the wait for the next try of a model request, of this turn or of the one that runs.
    /// Answers whether there was one.
    Retry(Option<u32>, Reply<bool>),
    /// Takes back all from a prompt on; by whom, in words. Answers the number of the item that
    /// says so.
    Rewind(Seq, String, Reply<Result<Seq, SessionError>>),
    Answer(AnswerCmd),
    Change(Change, Reply<Result<(), SessionError>>),
    Resume(Reply<Result<(), SessionError>>),
    Delete(Reply<Result<(), SessionError>>),
    /// Leaves memory when nobody needs it there. Answers whether it did.
    Rest(Reply<bool>),
}

/// What the person may change.
#[derive(Debug)]
pub(super) enum Change {
    Mode(Mode, String),
    Model(String),
    Level(String),
}

/// A turn that is being driven.
pub(super) struct Running {
    pub(super) turn: u32,
    pub(super) stop: StopSignal,
    /// What the turn's tools run as.
    pub(super) tools: Tasks,
    /// Ends the wait before a model is asked again.
    pub(super) retry: Arc<Notify>,
    pub(super) answers: mpsc::Sender<AnswerCmd>,
    pub(super) done: JoinHandle<Option<Result<Ended, StoreError>>>,
    pub(super) prompts: Vec<PromptReply>,
    pub(super) stops: Vec<Reply<Stopped>>,
    /// Counts as one of the turns that a linked instance may run at once.
    pub(super) _place: Option<RemoteTurn>,
}

/// The owner of one session's state.
pub(super) struct SessionTask {
    pub(super) common: Arc<Common>,
    pub(super) loaded: Weak<Loaded>,
    pub(super) facts: Arc<SessionFacts>,
    pub(super) scheduled: Option<Scheduled>,
    pub(super) journal: Journal,
    pub(super) doing: Doing,
    pub(super) settings: watch::Sender<Settings>,
    pub(super) gate: Gate,
    pub(super) fixed: Option<Fixed>,
    /// Instruction files as they were at the last prompt.
    pub(super) instructions: Vec<(String, String)>,
    pub(super) running: Option<Running>,
    pub(super) tasks: Tasks,
}

impl SessionTask {
    pub(super) async fn run(mut self, mut cmds: mpsc::Receiver<SessionCmd>) {
        let stop = self.tasks.stop().clone();
        loop {
            tokio::select! {
                // The daemon ends, or every handle is gone: the turn parks.
                () = stop.cancelled() => break,
                cmd = cmds.recv() => {
                    let Some(cmd) = cmd else { break };
                    if let SessionCmd::Rest(reply) = cmd {
                        let rests = cmds.is_empty() && self.may_rest();
                        if rests {
                            self.tasks.end().await;
                        }
                        let _gone = reply.send(rests);
                        if rests {
                            return;
                        }
                    } else if let SessionCmd::Delete(reply) = cmd {
                        let deleted = self.delete().await;
                        let gone = deleted.is_ok();
                        let _gone = reply.send(deleted);
                        if gone {
                            return;
                        }
                    } else {
                        self.take(cmd).await;
                    }
                }
                ended = turn_end(&mut self.running) => self.ended(ended).await,
            }
        }
        self.end_turn(StopWhy::Shutdown).await;
        self.tasks.end().await;
    }

    async fn take(&mut self, cmd: SessionCmd) {
        match cmd {
            SessionCmd::Prompt(prompt, reply) => self.prompt(prompt, reply).await,
            SessionCmd::Stop(turn, why, reply) => self.stop(turn, why, reply),
            SessionCmd::Retry(turn, reply) => {
                let _gone = reply.send(self.retry(turn));
            }
            SessionCmd::Rewind(to, by, reply) => {
                let _gone = reply.send(self.rewind(to, by).await);
            }
            SessionCmd::Answer(cmd) => self.answer(cmd),
            SessionCmd::Change(change, reply) => {
                let _gone = reply.send(self.change(change).await);
            }
            SessionCmd::Resume(reply) => {
                let _gone = reply.send(self.resume().await);
            }
            SessionCmd::Delete(_) | SessionCmd::Rest(_) => {}
        }
    }

    fn stop(&mut self, turn: Option<u32>, why: StopWhy, reply: Reply<Stopped>) {
        match &mut self.running {
            Some(running) if turn.is_none_or(|t| t == running.turn) => {
                running.stop.stop(why);
                running.stops.push(reply);
            }
            _ => {
                let _gone = reply.send(Stopped::Gone);
            }
        }
    }

    /// Hands an answer to the turn. Without one its sender is told by the closed reply to look
    /// how the ask ended.
    fn answer(&self, cmd: AnswerCmd) {
        let Some(running) = &self.running else { return };
        if let Err(mpsc::error::TrySendError::Full(cmd)) = running.answers.try_send(cmd) {
            let busy = "too many answers at once: answer again".to_owned();
            let _gone = cmd.reply.send(Err(AnswerError::Store(busy)));
        }
    }

    async fn change(&mut self, change: Change) -> Result<(), SessionError> {
        let now = self.settings.borrow().clone();
        let (body, next) = match change {
            Change::Mode(mode, by) => (
                Body::Mode {
                    mode: mode_word(mode).to_owned(),
                    by,
                },
                Settings {
                    mode,
                    ..now.clone()
                },
            ),
            Change::Model(model) => (
                Body::Model {
                    model: model.clone(),
                },
                Settings {
                    model,
                    ..now.clone()
                },
            ),
            Change::Level(level) => (
                Body::Level {
                    level: level.clone(),
                },
                Settings {
                    level: Some(level),
                    ..now.clone()
                },
            ),
        };
        if next != now {
            self.journal
                .append(vec![body], Durability::Process, Also::default())
                .await?;
            self.settings.send_replace(next);
        }
        Ok(())
    }

    /// The driver has ended: everyone who waits is told.
    async fn ended(&mut self, ended: Option<Result<Ended, StoreError>>) {
        let Some(running) = self.running.take() else {
            return;
        };
        // A driver that failed left its tools behind: nothing may run that nobody drives.
        running.stop.token().cancel();
        running.tools.end().await;
        let how = match ended {
            Some(Ok(Ended::Parked)) => Err("the turn is parked: lembas is stopping".to_owned()),
            Some(Ok(Ended::Done)) => Ok(()),
            Some(Err(error)) => Err(SessionError::from(error).to_string()),
            None => match self.close_broken("lembas broke down in this turn").await {
                Ok(()) => Ok(()),
                Err(error) => Err(SessionError::from(error).to_string()),
            },
        };
        if let Err(reason) = &how
            && running.stop.why() != Some(&StopWhy::Shutdown)
        {
            tracing::error!(session = %self.facts.id, turn = running.turn, reason, "a turn could not go on");
            self.doing
                .set(Phase::Failed, [("reason", reason.as_str().into())]);
        }
        let done = match how {
            Ok(()) => self.turn_done(running.turn).await,
            Err(reason) => Err(SessionError::Refused(reason)),
        };
        for reply in running.prompts {
            let said = match &done {
                Ok(done) => Ok(done.clone()),
                Err(error) => Err(SessionError::Refused(error.to_string())),
            };
            let _gone = reply.send(said);
        }
        for reply in running.stops {
            let _gone = reply.send(Stopped::Stopped);
        }
        self.journal.touch();
    }

    /// How a turn ended, from the journal.
    async fn turn_done(&self, turn: u32) -> Result<TurnDone, SessionError> {
        let item = self.journal.store().turn_end(&self.facts.id, turn).await?;
        match item {
            Some(Item {
                body:
                    Body::TurnEnd {
                        stop,
                        reason,
                        tokens,
                        run,
                    },
                ..
            }) => Ok(TurnDone {
                turn,
                stop,
                reason,
                tokens,
                run,
            }),
            _ => Err(SessionError::Refused("the turn has not ended".to_owned())),
        }
    }

    /// Whether a turn has ended, and how.
    pub(super) async fn known_end(&self, turn: u32) -> Result<Option<TurnDone>, SessionError> {
        match self.turn_done(turn).await {
            Ok(done) => Ok(Some(done)),
            Err(SessionError::Refused(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Ends a turn that nobody drives and that cannot be driven on.
    pub(super) async fn close_broken(&self, reason: &str) -> Result<(), StoreError> {
        let store = self.journal.store();
        let Some(row) = store.session(&self.facts.id).await? else {
            return Ok(());
        };
        if !row.running {
            return Ok(());
        }
        let items = store.history(&self.facts.id).await?;
        let turn = Turn::of(items.iter().filter(|i| i.turn == row.turn));
        for (_, open) in turn.open_asks() {
            self.common.shared.waits.close(&open.body.ask);
        }
        let lost = turn.running().into_iter().map(|call| {
            crate::agent::turn::result(
                &call,
                crate::store::item::CallStatus::Unknown,
                words::unknown(),
            )
        });
        let mut ended = turn.clone();
        let mut bodies: Vec<Body> = lost.collect();
        for body in &bodies {
            ended.apply(&Item {
                seq: Seq(0),
                turn: row.turn,
                time: 0,
                body: body.clone(),
            });
        }
        bodies.extend(ended.closing(Stop::Failed, Some(reason.to_owned()), "lembas"));
        self.journal
            .append(bodies, Durability::Disk, Also::default())
            .await?;
        Ok(())
    }

    /// Stops the running turn and waits until all of it is gone.
    async fn end_turn(&mut self, why: StopWhy) {
        if let Some(running) = &self.running {
            running.stop.stop(why);
            let ended = turn_end(&mut self.running).await;
            self.ended(ended).await;
        }
    }

    /// Takes the session out of the registry when no turn runs and nobody but the registry and
    /// who asks has a handle to it. From then on it is loaded anew.
    fn may_rest(&self) -> bool {
        let Some(loaded) = self.loaded.upgrade() else {
            return false;
        };
        let mut loaded = loaded.lock();
        // Handles are given out under this lock, so none comes in between.
        let alone = loaded
            .get(&self.facts.id)
            .is_some_and(|session| Arc::strong_count(&session.0) <= 2);
        let rests = alone && self.running.is_none();
        if rests {
            loaded.remove(&self.facts.id);
        }
        rests
    }

    async fn delete(&mut self) -> Result<(), SessionError> {
        self.end_turn(StopWhy::Asked).await;
        self.journal.store().delete_session(&self.facts.id).await?;
        self.journal.deleted();
        if let Some(loaded) = self.loaded.upgrade() {
            loaded.lock().remove(&self.facts.id);
        }
        self.tasks.end().await;
        Ok(())
    }
}

/// Waits for the running turn's end; for ever when none runs.
async fn turn_end(running: &mut Option<Running>) -> Option<Result<Ended, StoreError>> {
    match running {
        Some(running) => (&mut running.done).await.ok().flatten(),
        None => std::future::pending().await,
    }
}
