//! One model request: ask, stream the answer into the journal, ask again when it fails.

use serde_json::json;

use crate::agent::driver::{Driver, Flow};
use crate::agent::progress::Phase;
use crate::agent::words;
use crate::clock::{self, Instant};
use crate::context::Note;
use crate::context::history::wrapped;
use crate::ids::{CallId, Seq};
use crate::model::{Answer, Chunk, Content, Level, Message, ModelError, Request, openai};
use crate::store::db::{Durability, StoreError};
use crate::store::device::items::Also;
use crate::store::item::{Body, Item, Stop};
use crate::store::journal::{SESSION_CAP, Stream};

/// How one try ended.
enum Try {
    Answered(Answer),
    Failed(ModelError),
    Stopped,
}

/// The text of one try, as the history will have it.
#[derive(Default)]
struct Said {
    thought: String,
    text: String,
}

impl Driver {
    /// Asks the model until it answers, the tries are used up, or the turn is stopped.
    pub(super) async fn sample(&mut self, left: u32) -> Result<Flow, StoreError> {
        self.surveyed = false;
        self.understood.clear();
        if let Some(flow) = self.watch_size().await? {
            return Ok(flow);
        }
        let (model, level) = {
            let settings = self.gate.settings.borrow();
            (settings.model.clone(), settings.level.clone())
        };
        let mut failed = 0;
        let mut broken = 0;
        loop {
            if !self.turn.blank() {
                let step = Body::Step {
                    model: model.clone(),
                };
                self.commit(vec![step], Durability::Process, Also::default())
                    .await?;
            }
            let request = self.request(&model, level.as_deref(), left);
            let began = clock::instant();
            let mut said = Said::default();
            let tried = self.attempt(&request, &mut said).await?;
            broken += u32::from(!said.thought.is_empty() || !said.text.is_empty());
            self.heard(said);
            let error = match tried {
                Try::Stopped => return Ok(Flow::Stopped),
                Try::Answered(answer) => return self.sampled(answer, began).await,
                Try::Failed(error) => error,
            };
            failed += 1;
            let spread = f64::from(rand::random::<u32>()) / f64::from(u32::MAX);
            // An answer that broke off in the middle is asked for once more only: each try is paid.
            let pause = self.shared.retry.pause(failed, &error, spread);
            let Some(pause) = pause.filter(|_| broken <= 1) else {
                tracing::info!(session = %self.facts().id, %error, failed, "no answer from the model");
                let words = words::model_failed(&error.to_string(), failed);
                return Ok(Flow::End(Stop::Failed, words));
            };
            let at = clock::now_ms().saturating_add(i64::try_from(words::ms(pause)).unwrap_or(0));
            self.doing.set(
                Phase::Retrying,
                [
                    ("attempt", json!(failed + 1)),
                    ("of", json!(self.shared.retry.tries)),
                    ("reason", json!(error.to_string())),
                    ("at", json!(at)),
                ],
            );
            tokio::select! {
                () = self.stop.token().cancelled() => return Ok(Flow::Stopped),
                () = clock::sleep(pause) => {}
            }
        }
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
        if bytes >= SESSION_CAP / 5 * 4 && !std::mem::replace(&mut self.told_size, true) {
            let text = words::session_nearly_full(SESSION_CAP);
            self.commit(
                vec![Body::Notice { text }],
                Durability::Process,
                Also::default(),
            )
            .await?;
        }
        Ok(None)
    }

    fn request(&self, model: &str, level: Option<&str>, left: u32) -> Request {
        let mut messages = self.history.messages();
        if left < self.shared.texts.wrap_up() {
            let note = self.shared.texts.note(&Note::WrapUp { left });
            messages.push(Message::User(vec![Content::Text(wrapped(&note))]));
        }
        Request {
            model: model.to_owned(),
            system: self.fixed.system.clone(),
            messages,
            tools: self.fixed.tools.clone(),
            level: Level::named(level),
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
                Ok(Some(chunk)) => self.chunk(chunk, &model, said).await?,
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
