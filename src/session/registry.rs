//! All sessions of this computer: opening, finding, listing, stopping, going on after a start.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, mpsc, watch};

use crate::agent::asks::{DEVICE_ASKS, Waits};
use crate::agent::driver::Shared;
use crate::agent::gate::{Gate, Toolbox};
use crate::agent::progress::Doing;
use crate::agent::stop::StopWhy;
use crate::agent::{Models, SessionFacts, Settings, origin_text, read_origin};
use crate::clock;
use crate::config::Live;
use crate::context::Texts;
use crate::ids::{Digest, Seq, SessionId};
use crate::model::openai::Waits as ModelWaits;
use crate::model::retry::Retry;
use crate::permission::{Judge, Origin};
use crate::rt::{CancellationToken, Tasks};
use crate::session::begin::PARK;
use crate::session::handle::{Core, Session, open_ask, summary};
use crate::session::task::{COMMANDS, SessionTask};
use crate::session::{NewSession, OpenAsk, Scheduled, SessionError, Stopped, Summary};
use crate::store::device::Store;
use crate::store::device::keys::{KEPT_MS, KeyRow};
use crate::store::device::sessions::{Listing, SessionRow};
use crate::store::journal::Journal;
use crate::tools::{Seen, ToolContext};

/// A session that nobody has used for so long leaves memory.
const IDLE: Duration = Duration::from_secs(10 * 60);
/// Sessions in one page of a list, at most.
const PAGE: usize = 200;

/// What a registry is made of.
#[derive(Clone)]
pub struct Setup {
    pub store: Store,
    pub config: Live,
    pub tools: Arc<dyn Toolbox>,
    pub judge: Arc<dyn Judge>,
    pub models: Arc<dyn Models>,
    pub texts: Arc<dyn Texts>,
    pub retry: Retry,
    pub model_waits: ModelWaits,
}

/// What the tasks of all sessions share.
pub(super) struct Common {
    pub(super) config: Live,
    pub(super) shared: Shared,
    setup: Setup,
    changes: watch::Sender<u64>,
    /// Turns of linked instances that run.
    remote_turns: Arc<AtomicUsize>,
    tasks: Tasks,
}

/// A running turn of a linked instance, counted while this lives.
pub(super) struct RemoteTurn(Arc<AtomicUsize>);

impl Drop for RemoteTurn {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Common {
    /// A place for one more turn of a linked instance, when fewer than `most` run.
    pub(super) fn remote_turn(&self, most: usize) -> Option<RemoteTurn> {
        self.remote_turns
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| {
                (n < most).then_some(n + 1)
            })
            .ok()?;
        Some(RemoteTurn(self.remote_turns.clone()))
    }
}

pub(super) type Loaded = Mutex<HashMap<SessionId, Session>>;

/// All sessions of this computer. Cheap to clone. When the last handle to it and to its sessions
/// is gone, or its tasks are told to end, running turns park.
#[derive(Clone)]
pub struct Registry {
    common: Arc<Common>,
    loaded: Arc<Loaded>,
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registry")
            .field("loaded", &self.loaded.lock().len())
            .finish_non_exhaustive()
    }
}

impl Registry {
    /// Takes up the sessions of a store: calls that were running are settled as unknown, and
    /// turns that were left open go on.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    pub async fn start(setup: Setup, tasks: &Tasks) -> Result<Self, SessionError> {
        let registry = Self {
            common: Arc::new(Common {
                config: setup.config.clone(),
                shared: Shared {
                    models: setup.models.clone(),
                    texts: setup.texts.clone(),
                    retry: setup.retry,
                    model_waits: setup.model_waits,
                    waits: Waits::default(),
                    places: Arc::new(Semaphore::new(DEVICE_ASKS)),
                },
                setup,
                changes: watch::Sender::new(0),
                remote_turns: Arc::default(),
                tasks: tasks.clone(),
            }),
            loaded: Arc::default(),
        };
        registry.store().prune().await?;
        tasks.spawn("rest", registry.clone().keep_small(tasks.stop().clone()));
        for row in registry.store().unfinished().await? {
            let id = row.id.clone();
            if let Err(error) = registry.load(&row)?.resume().await {
                tracing::error!(session = %id, %error, "a turn that was left open cannot go on");
            }
        }
        Ok(registry)
    }

    pub fn store(&self) -> &Store {
        &self.common.setup.store
    }

    /// Opens a session, or answers the one that this key opened.
    pub async fn open(&self, new: NewSession) -> Result<Session, SessionError> {
        let (row, key) = self.row(new)?;
        if let Some(key) = &key
            && let Some(known) = self.store().key(&key.scope, &key.key).await?
        {
            if known.digest != key.digest {
                return Err(SessionError::Key(key.key.clone()));
            }
            return self.find(&SessionId::new(known.outcome)).await;
        }
        self.store().add_session(row.clone(), key).await?;
        self.changed();
        self.load(&row)
    }

    /// The row and the key of a session that is to be.
    fn row(&self, new: NewSession) -> Result<(SessionRow, Option<KeyRow>), SessionError> {
        let plain = |path: &PathBuf| match path.to_str() {
            Some(_) => Ok(()),
            None => Err(SessionError::Refused(format!(
                "the name of the folder {} is not valid text",
                path.display()
            ))),
        };
        plain(&new.cwd)?;
        new.also.iter().try_for_each(plain)?;
        let id = SessionId::random();
        let origin = origin_text(&new.origin);
        let now = clock::now_ms();
        let scheduled = new
            .scheduled
            .as_ref()
            .and_then(|s| serde_json::to_string(s).ok());
        let agents = new.agents.as_ref().map(ToString::to_string);
        let content = serde_json::to_vec(&(
            &new.cwd,
            &new.also,
            &new.model,
            new.mode,
            &new.level,
            &agents,
            &new.said,
            &new.context,
            &scheduled,
        ));
        let key = new.key.map(|key| KeyRow {
            scope: format!("{origin}\nnew"),
            key,
            digest: Digest::of(&content.unwrap_or_default()),
            outcome: id.to_string(),
            until: now.saturating_add(KEPT_MS),
        });
        let row = SessionRow {
            id,
            origin,
            shared: false,
            cwd: new.cwd,
            also: new.also,
            model: new.model,
            mode: new.mode,
            level: new.level,
            title: None,
            made: now,
            updated: now,
            said: new.said,
            context: new.context,
            agents,
            scheduled,
            prompt: None,
            told: None,
            reserved: 0,
            head: Seq(0),
            turn: 0,
            running: false,
            calls: 0,
            bytes: 0,
            asks: 0,
        };
        Ok((row, key))
    }

    /// A session the asker may see: its own; local askers see all.
    pub async fn get(&self, id: &SessionId, asker: &Origin) -> Result<Session, SessionError> {
        let missing = || SessionError::Missing(id.clone());
        let row = self.store().session(id).await?.ok_or_else(missing)?;
        if *asker == Origin::Local || row.shared || row.origin == origin_text(asker) {
            self.load(&row)
        } else {
            Err(missing())
        }
    }

    async fn find(&self, id: &SessionId) -> Result<Session, SessionError> {
        self.get(id, &Origin::Local).await
    }

    /// Newest change first. `after` is the token of the page before.
    pub async fn list(
        &self,
        asker: &Origin,
        cwd: Option<PathBuf>,
        after: Option<String>,
        limit: usize,
    ) -> Result<(Vec<Summary>, Option<String>), SessionError> {
        let limit = limit.clamp(1, PAGE);
        let after = match after {
            Some(token) => Some(read_token(&token).ok_or_else(|| {
                SessionError::Refused(
                    "the list cannot be continued from there: ask for it without a cursor"
                        .to_owned(),
                )
            })?),
            None => None,
        };
        let rows = self
            .store()
            .sessions(Listing {
                origin: (*asker != Origin::Local).then(|| origin_text(asker)),
                cwd,
                after,
                limit,
            })
            .await?;
        let next = rows
            .last()
            .filter(|_| rows.len() == limit)
            .map(|last| format!("{}.{}", last.updated, last.id));
        let loaded = self.loaded.lock();
        let list = rows
            .iter()
            .map(|row| summary(row, loaded.get(&row.id).map(|s| &s.0.doing)))
            .collect();
        Ok((list, next))
    }

    /// Open questions of the sessions that the asker may see, oldest first.
    pub async fn asks(&self, asker: &Origin) -> Vec<OpenAsk> {
        let origin = (*asker != Origin::Local).then(|| origin_text(asker));
        match self.store().open_asks(None, origin.as_deref()).await {
            Ok(rows) => rows
                .into_iter()
                .map(|(row, origin)| open_ask(row, &origin, &self.common.shared.waits))
                .collect(),
            Err(error) => {
                tracing::error!(%error, "cannot read the open questions");
                Vec::new()
            }
        }
    }

    /// The newest change of a session that the asker may see, or could see before it was deleted.
    /// It never falls: what changes later is never below it.
    pub async fn head(&self, asker: &Origin) -> i64 {
        let origin = (*asker != Origin::Local).then(|| origin_text(asker));
        match self.store().newest_change(origin).await {
            Ok(head) => head,
            Err(error) => {
                tracing::error!(%error, "cannot read when a session changed last");
                0
            }
        }
    }

    /// Marked changed whenever any session's summary changes; the value is a counter.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.common.changes.subscribe()
    }

    fn changed(&self) {
        self.common.changes.send_modify(|n| *n = n.wrapping_add(1));
    }

    /// Lets every origin see a session, or only its own again.
    pub async fn share(&self, id: &SessionId, shared: bool) -> Result<(), SessionError> {
        if !self.store().share(id, shared).await? {
            return Err(SessionError::Missing(id.clone()));
        }
        self.changed();
        Ok(())
    }

    /// Stops the running turns of the sessions that a predicate picks, all at once, and answers
    /// how many there were when everything they ran is gone.
    pub async fn stop_where(&self, which: impl Fn(&SessionFacts) -> bool, why: StopWhy) -> usize {
        let picked: Vec<Session> = self
            .loaded
            .lock()
            .values()
            .filter(|s| which(s.facts()))
            .cloned()
            .collect();
        let ended = join_all(picked.iter().map(|s| s.stop(None, why.clone()))).await;
        ended.iter().filter(|s| **s == Stopped::Stopped).count()
    }

    /// Parks everything: no process is held afterwards, and the next start goes on from here.
    /// Answers false when something did not end in time.
    pub async fn park(&self) -> bool {
        clock::timeout(PARK, self.stop_where(|_| true, StopWhy::Shutdown))
            .await
            .is_ok()
    }

    /// Lets sessions that nobody uses leave memory, until told to stop.
    async fn keep_small(self, stop: CancellationToken) {
        // The registry's own end is not kept off by this: only the parts are held while it sleeps.
        let (common, loaded) = (Arc::downgrade(&self.common), Arc::downgrade(&self.loaded));
        drop(self);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = clock::sleep(IDLE / 2) => {}
            }
            let (Some(common), Some(loaded)) = (common.upgrade(), loaded.upgrade()) else {
                return;
            };
            Self { common, loaded }.rest(IDLE).await;
        }
    }

    /// Lets the sessions leave memory that have no turn, no follower and no other holder, and that
    /// were handed out last so long ago. They are loaded again when they are asked for. Answers
    /// how many left.
    pub async fn rest(&self, idle: Duration) -> usize {
        let picked: Vec<Session> = {
            let loaded = self.loaded.lock();
            let alone = |s: &&Session| Arc::strong_count(&s.0) == 1;
            let old = |s: &&Session| s.0.used.lock().elapsed() >= idle;
            loaded.values().filter(alone).filter(old).cloned().collect()
        };
        let mut left = 0;
        for session in picked {
            left += usize::from(session.rest().await);
        }
        left
    }

    /// How many sessions are in memory.
    pub fn loaded(&self) -> usize {
        self.loaded.lock().len()
    }

    /// The handle of a session, with its task running.
    fn load(&self, row: &SessionRow) -> Result<Session, SessionError> {
        let mut loaded = self.loaded.lock();
        if let Some(session) = loaded.get(&row.id) {
            *session.0.used.lock() = clock::instant();
            return Ok(session.clone());
        }
        let session = self.begin(row);
        loaded.insert(row.id.clone(), session.clone());
        Ok(session)
    }

    fn begin(&self, row: &SessionRow) -> Session {
        let common = &self.common;
        let setup = &common.setup;
        let scheduled: Option<Scheduled> = row
            .scheduled
            .as_deref()
            .and_then(|s| serde_json::from_str(s).ok());
        let facts = Arc::new(SessionFacts {
            id: row.id.clone(),
            origin: read_origin(&row.origin),
            origin_text: row.origin.clone(),
            cwd: row.cwd.clone(),
            also: row.also.clone(),
            scheduled_wait: scheduled.as_ref().map(|s| s.approval_wait),
        });
        let journal = Journal::new(setup.store.clone(), row, common.changes.clone());
        let doing = Doing::new(common.changes.clone());
        let settings = watch::Sender::new(Settings {
            mode: row.mode,
            model: row.model.clone(),
            level: row.level.clone(),
        });
        let gate = Gate {
            tools: setup.tools.clone(),
            judge: setup.judge.clone(),
            config: common.config.clone(),
            facts: facts.clone(),
            settings: settings.subscribe(),
            store: setup.store.clone(),
            context: ToolContext {
                session: row.id.clone(),
                cwd: row.cwd.clone(),
                spill: setup.store.spill(&row.id),
                seen: Seen::default(),
                plan: crate::plan::Plan::default(),
                store: Some(setup.store.clone()),
            },
        };
        let (cmds, mailbox) = mpsc::channel(COMMANDS);
        let core = Core {
            facts: facts.clone(),
            scheduled: scheduled.clone(),
            journal: journal.clone(),
            doing: doing.clone(),
            settings: settings.subscribe(),
            cmds,
            waits: common.shared.waits.clone(),
            config: common.config.clone(),
            used: Mutex::new(clock::instant()),
        };
        let tasks = common.tasks.child();
        tasks.spawn("flush", journal.clone().keep_flushed(tasks.stop().clone()));
        let task = SessionTask {
            common: common.clone(),
            loaded: Arc::downgrade(&self.loaded),
            facts,
            scheduled,
            journal,
            doing,
            settings,
            gate,
            fixed: None,
            instructions: Vec::new(),
            running: None,
            tasks,
        };
        common.tasks.spawn("session", task.run(mailbox));
        Session(Arc::new(core))
    }
}

/// A place in the list: the change's time and the session.
fn read_token(token: &str) -> Option<(i64, String)> {
    let (time, id) = token.split_once('.')?;
    Some((time.parse().ok()?, id.to_owned()))
}
