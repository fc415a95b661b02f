//! How a turn begins: keys, limits, the note of what changed, one commit, and the driver.

use std::time::Duration;

use jiff::tz::TimeZone;
use tokio::sync::mpsc;

use crate::agent::driver::{Driver, Parts};
use crate::agent::instructions;
use crate::agent::limits;
use crate::agent::stop::StopSignal;
use crate::agent::words;
use crate::context::texts::Told;
use crate::context::{Facts, Fixed, Now};
use crate::ids::Digest;
use crate::permission::Origin;
use crate::session::registry::RemoteTurn;
use crate::session::task::{ANSWERS, PromptReply, Running, SessionTask};
use crate::session::{Prompt, SessionError};
use crate::store::db::{Durability, StoreError};
use crate::store::device::items::Also;
use crate::store::device::keys::{KEPT_MS, KeyRow, RUN_KEPT_MS};
use crate::store::device::sessions::SessionRow;
use crate::store::item::{Body, Part};
use crate::store::journal::SESSION_CAP;
use crate::{clock, rt};

/// Longest title taken from a first message, in characters.
const TITLE: usize = 80;

/// Where a prompt stands.
enum Known {
    New(KeyRow),
    /// It started this turn.
    Turn(u32),
}

impl SessionTask {
    /// Runs a prompt, joins the turn its key started, or says why not.
    pub(super) async fn prompt(&mut self, prompt: Prompt, reply: PromptReply) {
        let begun = match self.known(&prompt).await {
            Ok(Known::Turn(turn)) => return self.join(turn, reply).await,
            Ok(Known::New(key)) => self.begin(prompt, key).await,
            Err(error) => Err(error),
        };
        match begun {
            Ok(()) => {
                if let Some(running) = &mut self.running {
                    running.prompts.push(reply);
                }
            }
            Err(error) => {
                let _gone = reply.send(Err(error));
            }
        }
    }

    async fn known(&self, prompt: &Prompt) -> Result<Known, SessionError> {
        let store = self.journal.store();
        if let Some(run) = &prompt.run
            && let (Some(schedule), Some(name)) = (word(run, "schedule"), word(run, "run"))
            && let Some((session, turn)) = store.run(schedule, name).await?
        {
            if session != self.facts.id {
                return Err(SessionError::Refused(format!(
                    "the run {name} has begun in another session"
                )));
            }
            return Ok(Known::Turn(turn));
        }
        let scope = format!("{}\nprompt\n{}", self.facts.origin_text, self.facts.id);
        let content = serde_json::to_vec(&(&prompt.source, &prompt.parts)).unwrap_or_default();
        let digest = Digest::of(&content);
        if let Some(known) = store.key(&scope, &prompt.key).await? {
            if known.digest != digest {
                return Err(SessionError::Key(prompt.key.clone()));
            }
            if let Ok(turn) = known.outcome.parse() {
                return Ok(Known::Turn(turn));
            }
        }
        let kept = if prompt.run.is_some() {
            RUN_KEPT_MS
        } else {
            KEPT_MS
        };
        Ok(Known::New(KeyRow {
            scope,
            key: prompt.key.clone(),
            digest,
            outcome: String::new(),
            until: clock::now_ms().saturating_add(kept),
        }))
    }

    /// Waits for the end of a turn that runs, parks or has ended.
    async fn join(&mut self, turn: u32, reply: PromptReply) {
        if self.running.as_ref().is_none_or(|r| r.turn != turn) {
            let ended = match self.known_end(turn).await {
                Ok(Some(done)) => Some(Ok(done)),
                Ok(None) => self.resume().await.err().map(Err),
                Err(error) => Some(Err(error)),
            };
            if let Some(ended) = ended {
                let _gone = reply.send(ended);
                return;
            }
        }
        match &mut self.running {
            Some(running) => running.prompts.push(reply),
            None => {
                let _gone = reply.send(Err(SessionError::Busy));
            }
        }
    }

    async fn begin(&mut self, prompt: Prompt, mut key: KeyRow) -> Result<(), SessionError> {
        if self.running.is_some() {
            return Err(SessionError::Busy);
        }
        self.may_begin().await?;
        self.takes(&prompt.parts).await?;
        let place = self.place()?;
        self.close_broken("the turn could not be saved").await?;
        let row = self.row().await?;
        let turn = row.turn + 1;
        key.outcome = turn.to_string();
        let gate = self.gate.clone();
        let found = rt::blocking(move || instructions::gather(&gate)).await;
        self.instructions = found.unwrap_or_default();
        let (bodies, told) = self.first_items(prompt, &row);
        let also = Also {
            key: Some(key),
            told: serde_json::to_string(&told).ok(),
            ..Also::default()
        };
        // The one flush before the model is asked.
        self.journal.append(bodies, Durability::Disk, also).await?;
        self.drive(&row, turn, place).await?;
        Ok(())
    }

    /// The prompt, the title where there is none yet, and the first step.
    fn first_items(&self, prompt: Prompt, row: &SessionRow) -> (Vec<Body>, Told) {
        let told: Told = row
            .told
            .as_deref()
            .and_then(|t| serde_json::from_str(t).ok())
            .unwrap_or_default();
        let today = clock::now().to_zoned(TimeZone::system()).date().to_string();
        let config = self.common.config.now();
        let mode = limits::mode(&config, &self.facts, self.settings.borrow().mode);
        let model = self.settings.borrow().model.clone();
        let now = Now {
            date: &today,
            mode,
            model: &model,
            instructions: &self.instructions,
        };
        let (note, told) = told.next(now, self.common.shared.texts.as_ref());
        let title = row
            .title
            .is_none()
            .then(|| title(&prompt.parts))
            .flatten()
            .map(|title| Body::Title { title });
        let first = Body::Prompt {
            key: prompt.key,
            source: prompt.source,
            parts: prompt.parts,
            note,
            run: prompt.run,
        };
        let step = Body::Step { model, note: None };
        let bodies = std::iter::once(first).chain(title).chain([step]).collect();
        (bodies, told)
    }

    /// Whether the model takes what the prompt is made of. Where nobody said, it is tried.
    async fn takes(&self, parts: &[Part]) -> Result<(), SessionError> {
        if !parts.iter().any(|part| matches!(part, Part::Image { .. })) {
            return Ok(());
        }
        let model = self.settings.borrow().model.clone();
        let models = &self.common.shared.models;
        let about = models.about(&self.facts.origin, &model).await;
        if about.images == Some(false) {
            let texts = &words::numbers().context.images;
            let refused = texts.say("refused", &[("model", &model)]);
            return Err(SessionError::Refused(refused));
        }
        Ok(())
    }

    /// Whether a turn may begin here now, and if not, why.
    async fn may_begin(&self) -> Result<(), SessionError> {
        limits::may_work(&self.common.config.now(), &self.facts).map_err(SessionError::Refused)?;
        if self.journal.bytes().await >= SESSION_CAP {
            let full = words::session_full(SESSION_CAP);
            return Err(SessionError::Refused(full));
        }
        match self.journal.store().full().await? {
            Some(full) => Err(SessionError::Refused(full)),
            None => Ok(()),
        }
    }

    /// One of the turns that linked instances may run at once; local ones need no place.
    fn place(&self) -> Result<Option<RemoteTurn>, SessionError> {
        if self.facts.origin == Origin::Local {
            return Ok(None);
        }
        let most = self.common.config.now().remote.max_sessions;
        self.common
            .remote_turn(most)
            .map(Some)
            .ok_or(SessionError::TooMany(most))
    }

    async fn row(&self) -> Result<SessionRow, SessionError> {
        let found = self.journal.store().session(&self.facts.id).await?;
        found.ok_or_else(|| SessionError::Missing(self.facts.id.clone()))
    }

    /// Goes on with the turn that the journal has open, if it has one.
    pub(super) async fn resume(&mut self) -> Result<(), SessionError> {
        if self.running.is_some() {
            return Ok(());
        }
        let row = self.row().await?;
        if row.running {
            // A turn that had begun goes on also when others have begun since.
            let place = self.place().ok().flatten();
            let turn = row.turn;
            self.drive(&row, turn, place).await?;
        }
        Ok(())
    }

    /// Starts the driver of a turn that is in the journal.
    async fn drive(
        &mut self,
        row: &SessionRow,
        turn: u32,
        place: Option<RemoteTurn>,
    ) -> Result<(), SessionError> {
        let fixed = self.fixed(row).await?;
        let items = self.journal.store().history(&self.facts.id).await?;
        let (answers, mailbox) = mpsc::channel(ANSWERS);
        let stop = StopSignal::default();
        let tools = self.tasks.child();
        let driver = Driver::new(Parts {
            shared: self.common.shared.clone(),
            gate: self.gate.clone(),
            journal: self.journal.clone(),
            fixed,
            items,
            turn,
            doing: self.doing.clone(),
            answers: mailbox,
            stop: stop.clone(),
            tools: tools.clone(),
        });
        self.running = Some(Running {
            turn,
            stop,
            tools,
            answers,
            done: self.tasks.spawn("turn", driver.run()),
            prompts: Vec::new(),
            stops: Vec::new(),
            _place: place,
        });
        Ok(())
    }

    /// The system prompt and the tools: made with the first turn, the same bytes ever after.
    async fn fixed(&mut self, row: &SessionRow) -> Result<Fixed, StoreError> {
        if let Some(fixed) = &self.fixed {
            return Ok(fixed.clone());
        }
        let kept = row
            .prompt
            .as_deref()
            .and_then(|p| serde_json::from_str(p).ok());
        let fixed = match kept {
            Some(fixed) => fixed,
            None => {
                let facts = Facts {
                    project: Facts::project(&self.facts.cwd),
                    cwd: self.facts.cwd.clone(),
                    also: self.facts.also.clone(),
                    os: std::env::consts::OS,
                    mode: row.mode,
                    said: row.said.clone(),
                    context: row.context.clone(),
                    scheduled: self.scheduled.is_some(),
                    instructions: self.instructions.clone(),
                };
                let fixed = Fixed::make(self.common.shared.texts.as_ref(), &facts);
                if let Ok(text) = serde_json::to_string(&fixed) {
                    self.journal
                        .store()
                        .keep_prompt(&self.facts.id, text)
                        .await?;
                }
                fixed
            }
        };
        self.fixed = Some(fixed.clone());
        Ok(fixed)
    }
}

/// How long the registry waits for turns to park before it gives up on them.
pub(super) const PARK: Duration = Duration::from_secs(20);

fn word<'a>(value: &'a serde_json::Value, name: &str) -> Option<&'a str> {
    value.get(name)?.as_str()
}

/// The first line that says something.
fn title(parts: &[Part]) -> Option<String> {
    let text = parts.iter().find_map(|p| match p {
        Part::Text { text } => Some(text),
        _ => None,
    })?;
    let line = text.lines().map(str::trim).find(|l| !l.is_empty())?;
    let mut title: String = line
        .chars()
        .filter(|c| !c.is_control())
        .take(TITLE)
        .collect();
    if line.chars().count() > TITLE {
        title.push('…');
    }
    Some(title)
}
