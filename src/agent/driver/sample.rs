//! One model request: ask, stream the answer into the journal, ask again when it fails.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch;

use crate::agent::driver::compact::Shortened;
use crate::agent::driver::{Driver, Flow};
use crate::agent::progress::Phase;
use crate::agent::turn::Nudge;
use crate::agent::words::{self, Tried};
use crate::agent::{About, Settings};
use crate::clock::{self, Instant};
use crate::context::Note;
use crate::context::compact::Size;
use crate::ids::{CallId, Seq};
use crate::model::{Answer, Chunk, Level, ModelError, Request, openai};
use crate::store::db::{Durability, StoreError};
use crate::store::device::items::Also;
use crate::store::item::{Body, Item, Stop};
use crate::store::journal::{SESSION_CAP, Stream};
use crate::text::cut;

/// Bytes of an answer between two looks for repetition, and as many are looked at.
const LOOK: usize = 6 * 1024;
/// Bytes of one answer; it is cut off there, and the turn ends.
const ANSWER: usize = 2 * 1024 * 1024;
/// At this share of what a session may take the person is told, in percent.
const NEARLY: u64 = 80;

/// How one try ended.
enum Try {
    Answered(Answer),
    /// It would not have ended; why, in words.
    Endless(String),
    Failed(ModelError),
    Stopped,
}

/// The text of one try, as the history will have it.
#[derive(Default)]
struct Said {
    thought: String,
    text: String,
    /// Bytes of both when they were last looked through.
    looked: usize,
}

impl Said {
    /// Why this answer will not end: it says the same over and over, or is longer than any may be.
    fn endless(&mut self) -> Option<String> {
        let bytes = self.thought.len() + self.text.len();
        if bytes - self.looked < LOOK {
            return None;
        }
        self.looked = bytes;
        if bytes > ANSWER {
            return Some(words::answer_too_long(ANSWER));
        }
        let now = if self.text.is_empty() {
            &self.thought
        } else {
            &self.text
        };
        repeats(cut::suffix(now, LOOK)).then(|| words::ended("endless"))
    }
}

/// Which model is asked, and how.
pub(super) struct Asked {
    pub(super) model: String,
    pub(super) level: Level,
    pub(super) about: About,
}

impl Asked {
    /// Whether images are sent: where nobody said, they are tried.
    pub(super) fn images(&self) -> bool {
        self.about.images != Some(false)
    }
}

impl Driver {
    /// Asks the model until it answers, the tries are used up, or the turn is stopped.
    pub(super) async fn sample(
        &mut self,
        left: u32,
        nudge: Option<Nudge>,
    ) -> Result<Flow, StoreError> {
        self.surveyed = false;
        self.understood.clear();
        if let Some(flow) = self.watch_size().await? {
            return Ok(flow);
        }
        let mut asked = self.asked().await;
        let mut note = self.note(left, nudge);
        if let Some(flow) = self.make_room(&asked).await? {
            return Ok(flow);
        }
        let mut begun = clock::instant();
        let mut another = false;
        let mut failed = 0;
        let mut broken = 0;
        let mut shortened = false;
        loop {
            if std::mem::take(&mut another) || !self.turn.blank() {
                let step = Body::Step {
                    model: asked.model.clone(),
                    // An answer that broke off was told already, and still is.
                    note: note.take(),
                };
                self.commit(vec![step], Durability::Process, Also::default())
                    .await?;
            }
            let request = self.request(&asked);
            let began = clock::instant();
            let mut said = Said::default();
            let tried = self.attempt(&request, &mut said).await?;
            broken += u32::from(!said.thought.is_empty() || !said.text.is_empty());
            self.heard(said);
            let error = match tried {
                Try::Stopped => return Ok(Flow::Stopped),
                Try::Answered(answer) => {
                    let size = Size::of(&request.system, &request.tools, &request.messages);
                    self.counted.learn(size, answer.tokens.input);
                    return self.sampled(answer, began).await;
                }
                Try::Endless(reason) => return Ok(Flow::End(Stop::EndTurn, reason)),
                Try::Failed(error) => error,
            };
            if matches!(error, ModelError::TooLong(_)) && !shortened {
                shortened = true;
                match self.shorten_refused(&asked, &request).await? {
                    Shortened::Done => continue,
                    Shortened::Stopped => return Ok(Flow::Stopped),
                    Shortened::Not => {}
                }
            }
            failed += 1;
            let spread = f64::from(rand::random::<u32>()) / f64::from(u32::MAX);
            // An answer that broke off in the middle is asked for once more only: each try is paid.
            let pause = self.shared.retry.pause(failed, &error, spread);
            let Some(pause) = pause.filter(|_| broken <= 1) else {
                tracing::info!(session = %self.facts().id, %error, failed, "no answer from the model");
                let tried = Tried {
                    times: failed,
                    elapsed: begun.elapsed(),
                    broke_off: broken > 1,
                };
                let words = words::model_failed(&asked.model, &error, tried);
                return Ok(Flow::End(Stop::Failed, words));
            };
            let retry = Arc::clone(&self.retry);
            // From here on a person's word counts: who sees the phase below can already give it.
            let at_once = retry.notified();
            self.say_retrying(&asked.model, &error, failed, pause);
            tokio::select! {
                () = self.stop.token().cancelled() => return Ok(Flow::Stopped),
                () = other_model(self.gate.settings.clone(), &asked.model) => {
                    // It is asked at once, and its tries are its own.
                    asked = self.asked().await;
                    if let Some(flow) = self.make_room(&asked).await? {
                        return Ok(flow);
                    }
                    (another, failed, broken, begun) = (true, 0, 0, clock::instant());
                }
                () = at_once => {}
                () = clock::sleep(pause) => {}
            }
        }
    }

    fn say_retrying(&self, model: &str, error: &ModelError, failed: u32, pause: Duration) {
        let at = clock::now_ms().saturating_add(i64::try_from(words::ms(pause)).unwrap_or(0));
        let quota = matches!(
            error,
            ModelError::Status {
                status: 429,
                after: Some(_),
                ..
            }
        );
        self.doing.set(
            Phase::Retrying,
            [
                ("model", json!(model)),
                ("attempt", json!(failed + 1)),
                ("of", json!(self.shared.retry.tries)),
                ("reason", json!(error.to_string())),
                ("at", json!(at)),
                ("quota", if quota { json!(true) } else { Value::Null }),
            ],
        );
    }

    /// Which model is asked now, and what is known of it.
    async fn asked(&mut self) -> Asked {
        let (model, level) = {
            let settings = self.gate.settings.borrow();
            (settings.model.clone(), settings.level.clone())
        };
        let about = self.shared.models.about(&self.gate.facts.origin, &model);
        let about = tokio::select! {
            biased;
            () = self.stop.token().cancelled() => About::default(),
            about = about => about,
        };
        Asked {
            level: Level::named(level.as_deref()),
            model,
            about,
        }
    }

    /// What the model is told with this request.
    fn note(&self, left: u32, nudge: Option<Nudge>) -> Option<String> {
        let nudge = nudge.map(|nudge| match nudge {
            Nudge::Empty => Note::Empty,
            Nudge::InText => Note::InText,
        });
        let wrap_up = (left < self.shared.texts.wrap_up()).then_some(Note::WrapUp { left });
        let notes: Vec<String> = [nudge, wrap_up]
            .into_iter()
            .flatten()
            .map(|note| self.shared.texts.note(&note))
            .collect();
        (!notes.is_empty()).then(|| notes.join("\n"))
    }

    /// Says when the session nears what it may take, and ends the turn when it has.
    async fn watch_size(&mut self) -> Result<Option<Flow>, StoreError> {
        let bytes = self.journal.bytes().await;
        if bytes >= SESSION_CAP {
            return Ok(Some(Flow::End(
                Stop::Failed,
                words::session_full(SESSION_CAP),
            )));
        }
        if bytes >= SESSION_CAP / 100 * NEARLY && !std::mem::replace(&mut self.told_size, true) {
            let text = words::session_nearly_full(SESSION_CAP, NEARLY);
            self.commit(
                vec![Body::Notice {
                    text,
                    compacted: None,
                }],
                Durability::Process,
                Also::default(),
            )
            .await?;
        }
        Ok(None)
    }

    /// The request as it stands: what was sent before, and what came since.
    pub(super) fn request(&self, asked: &Asked) -> Request {
        Request {
            model: asked.model.clone(),
            system: self.fixed.system.clone(),
            messages: self.history.messages(asked.images()),
            tools: self.fixed.tools.clone(),
            level: asked.level.clone(),
        }
    }

    async fn attempt(&mut self, request: &Request, said: &mut Said) -> Result<Try, StoreError> {
        let model = request.model.clone();
        self.doing
            .set(Phase::WaitingForModel, [("model", json!(model))]);
        let stop = self.stop.token().clone();
        let endpoint = match self.shared.models.endpoint(&self.gate.facts.origin, &model) {
            Ok(endpoint) => endpoint,
            Err(why) => return Ok(Try::Failed(ModelError::Unreachable(why))),
        };
        let asked = tokio::select! {
            biased;
            () = stop.cancelled() => return Ok(Try::Stopped),
            asked = openai::ask(endpoint.as_ref(), request, self.shared.model_waits) => asked,
        };
        let mut answering = match asked {
            Ok(answering) => answering,
            Err(error) => return Ok(Try::Failed(error)),
        };
        loop {
            let next = tokio::select! {
                biased;
                () = stop.cancelled() => return Ok(Try::Stopped),
                next = answering.next() => next,
            };
            match next {
                Ok(Some(Chunk::Done(answer))) => return Ok(Try::Answered(answer)),
                Ok(Some(chunk)) => {
                    self.chunk(chunk, &model, said).await?;
                    if let Some(reason) = said.endless() {
                        return Ok(Try::Endless(reason));
                    }
                }
                Ok(None) => return Ok(Try::Failed(ModelError::Cut)),
                Err(error) => return Ok(Try::Failed(error)),
            }
        }
    }

    async fn chunk(
        &mut self,
        chunk: Chunk,
        model: &str,
        said: &mut Said,
    ) -> Result<(), StoreError> {
        match chunk {
            Chunk::Hint(hint) => self.doing.hint(&hint, model),
            Chunk::Thought(text) => {
                self.doing.set(Phase::Thinking, []);
                said.thought.push_str(&text);
                self.journal.text(&Stream::Thought, &text).await?;
            }
            Chunk::Text(text) => {
                self.doing.set(Phase::Writing, []);
                said.text.push_str(&text);
                self.journal.text(&Stream::Message, &text).await?;
            }
            Chunk::Calling => self.doing.set(Phase::Writing, []),
            Chunk::Done(_) => {}
        }
        Ok(())
    }

    /// What was streamed is in the journal; here the turn and the history learn of it.
    fn heard(&mut self, said: Said) {
        let item = |body| Item {
            seq: Seq(0),
            turn: self.turn.number,
            time: 0,
            body,
        };
        let mut items = Vec::new();
        if !said.thought.is_empty() {
            items.push(item(Body::Thought { text: said.thought }));
        }
        if !said.text.is_empty() {
            items.push(item(Body::Message { text: said.text }));
        }
        self.know(items);
    }

    /// The answer is complete: its calls get their numbers and titles and are committed with it.
    async fn sampled(&mut self, answer: Answer, began: Instant) -> Result<Flow, StoreError> {
        let ids = self.journal.call_ids(answer.calls.len()).await;
        let mut bodies = Vec::with_capacity(ids.len() + 1);
        for (id, call) in ids.into_iter().zip(answer.calls) {
            let (title, locations) = self.entitle(&id, &call.name, &call.args).await;
            bodies.push(Body::Call {
                call: id,
                model_call: call.id,
                block: self.shared.texts.block(&call.name),
                tool: call.name,
                args: call.args,
                title,
                locations,
            });
        }
        bodies.push(Body::Sampled {
            tokens: answer.tokens,
            finish: answer.finish,
            ms: words::ms(began.elapsed()),
        });
        self.commit(bodies, Durability::Process, Also::default())
            .await?;
        Ok(Flow::On)
    }

    async fn entitle(&mut self, id: &CallId, name: &str, args: &str) -> (String, Vec<String>) {
        match self.gate.understand(name, args).await {
            Ok(understood) => {
                let title = understood.prepared.title.clone();
                let locations = understood.prepared.locations.clone();
                self.understood.insert(id.clone(), understood);
                (title, locations)
            }
            Err(_) => (name.to_owned(), Vec::new()),
        }
    }
}

/// Waits until the person has chosen another model.
async fn other_model(mut settings: watch::Receiver<Settings>, model: &str) {
    if settings.wait_for(|now| now.model != model).await.is_err() {
        // Nobody is there to choose one.
        std::future::pending::<()>().await;
    }
}

/// Whether a text is one piece over and over, at least sixteen times.
fn repeats(text: &str) -> bool {
    let bytes = text.as_bytes();
    // The longest proper prefix that is also a suffix, for each prefix: what it lacks to the whole
    // is the period.
    let mut border = vec![0_usize; bytes.len()];
    let mut k = 0;
    for i in 1..bytes.len() {
        while k > 0 && bytes.get(i) != bytes.get(k) {
            k = border.get(k - 1).copied().unwrap_or_default();
        }
        if bytes.get(i) == bytes.get(k) {
            k += 1;
        }
        if let Some(at) = border.get_mut(i) {
            *at = k;
        }
    }
    let period = bytes.len() - border.last().copied().unwrap_or_default();
    bytes.len() >= LOOK / 2 && period * 16 <= bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_piece_over_and_over_is_seen_and_a_long_list_is_not() {
        assert!(repeats(&"I will now check it. ".repeat(200)));
        assert!(repeats(&"x".repeat(LOOK)));
        assert!(!repeats("x"));
        let list: String = (0..700).map(|n| format!("| {n} | 0 |\n")).collect();
        assert!(!repeats(cut::suffix(&list, LOOK)));
        let mut said = Said::default();
        let line = "same again. ";
        let found = (0..2_000).find_map(|_| {
            said.text.push_str(line);
            said.endless()
        });
        assert_eq!(found, Some(words::ended("endless")));
        assert!(said.text.len() < 2 * LOOK);
        let mut long = Said {
            thought: "a".into(),
            text: "b".repeat(ANSWER),
            looked: 0,
        };
        assert_eq!(long.endless(), Some(words::answer_too_long(ANSWER)));
    }
}
