//! Shortening the conversation (context.md §7): when a request would be too long, or was refused
//! for it, the model is asked for a summary as the next turn of the same conversation, and the
//! summary stands for what it covers. The journal keeps everything.

use crate::agent::driver::sample::Asked;
use crate::agent::driver::{Driver, Flow};
use crate::agent::progress::Phase;
use crate::agent::words;
use crate::clock;
use crate::context::compact::{self, Size};
use crate::context::history::Cover;
use crate::ids::Seq;
use crate::model::{Chunk, Content, Message, ModelError, Request, openai};
use crate::spec::Spec;
use crate::store::db::{Durability, StoreError};
use crate::store::device::items::Also;
use crate::store::item::{Body, Compacted, Tokens};
use crate::text::cut::{Limits, middle_out};

/// A summary that is longer loses its middle: it must not take the room it shall make.
const SUMMARY: Limits = Limits {
    lines: 400,
    chars: 24_000,
};
/// Bytes of a summary that are read at all.
const READ: usize = 256 * 1024;
/// So often a request for a summary that was too long itself is made with half of it.
const HALVED: u32 = 4;

/// What shortening came to.
pub(super) enum Shortened {
    Done,
    Stopped,
    /// There is nothing to cover, or no summary came.
    Not,
}

/// What a summary shall cover.
struct Covered {
    messages: Vec<Message>,
    upto: Seq,
}

impl Driver {
    /// Shortens the conversation when the next request would be too long. A failure does not end
    /// the turn: the server has the last word on what is too long.
    pub(super) async fn make_room(&mut self, asked: &Asked) -> Result<Option<Flow>, StoreError> {
        let limit = compact::limit(asked.about.context);
        if self.too_long_anyway || self.tokens(asked) <= limit {
            return Ok(None);
        }
        let shortened = self.shorten(asked, limit).await?;
        self.too_long_anyway = !matches!(shortened, Shortened::Done) || self.tokens(asked) > limit;
        Ok(matches!(shortened, Shortened::Stopped).then_some(Flow::Stopped))
    }

    /// Shortens a conversation that the server would not take.
    pub(super) async fn shorten_refused(
        &mut self,
        asked: &Asked,
        refused: &Request,
    ) -> Result<Shortened, StoreError> {
        let size = Size::of(&refused.system, &refused.tools, &refused.messages);
        let limit = compact::limit(asked.about.context).min(self.counted.tokens(size) / 2);
        self.shorten(asked, limit).await
    }

    /// About how long the next request is.
    fn tokens(&self, asked: &Asked) -> u64 {
        let messages = self.history.messages(asked.images());
        let size = Size::of(&self.fixed.system, &self.fixed.tools, &messages);
        self.counted.tokens(size)
    }

    /// What to cover: the earlier turns, and the steps of this one too where it takes more than
    /// half of what there is room for.
    fn cover(&self, asked: &Asked, limit: u64) -> Option<Covered> {
        let images = asked.images();
        let covered = |cover| {
            let found = self.history.covered(cover, images);
            found.map(|(messages, upto)| Covered { messages, upto })
        };
        let all = Size::of_messages(&self.history.messages(images)).bytes;
        let earlier = covered(Cover::Earlier).filter(|earlier| {
            let kept = all.saturating_sub(Size::of_messages(&earlier.messages).bytes);
            let size = Size {
                bytes: kept,
                images: 0,
            };
            self.counted.tokens(size) <= limit / 2
        });
        earlier
            .or_else(|| covered(Cover::All))
            .or_else(|| covered(Cover::Earlier))
    }

    async fn shorten(&mut self, asked: &Asked, limit: u64) -> Result<Shortened, StoreError> {
        let Some(covered) = self.cover(asked, limit) else {
            return Ok(Shortened::Not);
        };
        let before = self.tokens(asked);
        self.doing.set(Phase::Compacting, []);
        let wish = Spec::embedded().prompts.compaction().to_owned();
        let wish = Message::User(vec![Content::Text(wish)]);
        let mut request = self.request(asked);
        request.messages.clone_from(&covered.messages);
        request.messages.push(wish.clone());
        let (mut failed, mut halved) = (0, 0);
        let (summary, tokens) = loop {
            let error = match self.summary(&request).await {
                Ok(None) => return Ok(Shortened::Stopped),
                Ok(Some((text, tokens))) if !text.trim().is_empty() => break (text, tokens),
                Ok(Some(_)) => ModelError::Garbled("there is no summary in it".to_owned()),
                Err(error) => error,
            };
            if matches!(error, ModelError::TooLong(_)) && halved < HALVED {
                halved += 1;
                let bytes = Size::of_messages(&covered.messages).bytes >> halved;
                request.messages = compact::squeeze(covered.messages.clone(), bytes);
                request.messages.push(wish.clone());
                continue;
            }
            failed += 1;
            let spread = f64::from(rand::random::<u32>()) / f64::from(u32::MAX);
            let Some(pause) = self.shared.retry.pause(failed, &error, spread) else {
                tracing::warn!(session = %self.facts().id, %error, "no summary from the model");
                return Ok(Shortened::Not);
            };
            tokio::select! {
                () = self.stop.token().cancelled() => return Ok(Shortened::Stopped),
                () = clock::sleep(pause) => {}
            }
        };
        let summary = middle_out(&summary, SUMMARY, "…");
        let text = compact::text(&summary, &self.history.table(covered.upto));
        let compacted = Compacted {
            text,
            upto: covered.upto,
            tokens,
        };
        self.keep(asked, compacted, before).await?;
        Ok(Shortened::Done)
    }

    /// Commits the summary with a notice that says what it made of the conversation.
    async fn keep(
        &mut self,
        asked: &Asked,
        compacted: Compacted,
        before: u64,
    ) -> Result<(), StoreError> {
        let mut then = self.history.clone();
        then.compact(self.turn.number, &compacted);
        let messages = then.messages(asked.images());
        let after = Size::of(&self.fixed.system, &self.fixed.tools, &messages);
        let (before, after) = (before.to_string(), self.counted.tokens(after).to_string());
        let texts = &words::numbers().context.compaction;
        let notice = Body::Notice {
            text: texts.say("notice", &[("before", &before), ("after", &after)]),
            compacted: Some(compacted),
        };
        self.commit(vec![notice], Durability::Disk, Also::default())
            .await?;
        Ok(())
    }

    /// One request for a summary. None: the turn was stopped.
    async fn summary(&mut self, request: &Request) -> Result<Option<(String, Tokens)>, ModelError> {
        let stop = self.stop.token().clone();
        let origin = &self.gate.facts.origin;
        let endpoint = self
            .shared
            .models
            .endpoint(origin, &request.model)
            .map_err(ModelError::Unreachable)?;
        let asked = tokio::select! {
            biased;
            () = stop.cancelled() => return Ok(None),
            asked = openai::ask(endpoint.as_ref(), request, self.shared.model_waits) => asked,
        };
        let mut answering = asked?;
        let mut text = String::new();
        loop {
            let next = tokio::select! {
                biased;
                () = stop.cancelled() => return Ok(None),
                next = answering.next() => next,
            };
            match next? {
                Some(Chunk::Text(more)) => {
                    text.push_str(&more);
                    if text.len() > READ {
                        return Ok(Some((text, Tokens::default())));
                    }
                }
                Some(Chunk::Done(answer)) => return Ok(Some((text, answer.tokens))),
                // Calls are not run: it was told to make none.
                Some(_) => {}
                None => return Err(ModelError::Cut),
            }
        }
    }
}
