//! One turn of the agent: model, calls, questions, results, until the model makes no more calls.
//!
//! [`turn`] decides and does no I/O; [`driver`] does what it decides; [`gate`] stands between a
//! call and its run. All state of a turn is in the journal's items, so a turn that was parked or
//! cut off goes on from there. Not here: what a session is (`session`), what may run
//! (`permission`), how it runs (`tools`).

pub mod asks;
pub mod driver;
pub mod gate;
pub mod instructions;
pub mod limits;
pub mod progress;
pub mod stop;
pub mod turn;
pub mod words;

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use crate::config::Mode;
use crate::ids::SessionId;
use crate::model::Endpoint;
use crate::permission::Origin;

/// What does not change while a session lives.
#[derive(Clone, Debug)]
pub struct SessionFacts {
    pub id: SessionId,
    pub origin: Origin,
    /// The origin as the store spells it.
    pub origin_text: String,
    pub cwd: PathBuf,
    pub also: Vec<PathBuf>,
    /// A scheduled run: seconds that an ask waits.
    pub scheduled_wait: Option<u64>,
}

/// What the person may change while a turn runs: read at the moment of use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    pub mode: Mode,
    pub model: String,
    pub level: Option<String>,
}

/// Where the models of an origin are reached; the link that knows lies above.
pub trait Models: Send + Sync {
    /// The endpoint for a session of this origin, or why there is none, in words.
    fn endpoint(&self, origin: &Origin, model: &str) -> Result<Arc<dyn Endpoint>, String>;

    /// What is known of a model. Answers in bounded time, with nothing when nobody says.
    fn about(&self, _origin: &Origin, _model: &str) -> BoxFuture<'static, About> {
        std::future::ready(About::default()).boxed()
    }
}

/// What is known of a model (models/schema.json); none: nobody said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// Tokens that fit, prompt and answer together.
    pub context: Option<u64>,
    /// Whether it takes images.
    pub images: Option<bool>,
}

/// An origin as the store spells it: equal text, equal origin.
pub fn origin_text(origin: &Origin) -> String {
    match origin {
        Origin::Local => "local".to_owned(),
        Origin::Remote { instance, grant } => format!("remote\t{instance}\t{grant}"),
    }
}

/// An origin as it was spelled. What is not understood is nobody's: a remote of no instance.
pub fn read_origin(text: &str) -> Origin {
    if text == "local" {
        return Origin::Local;
    }
    let mut parts = text.splitn(3, '\t').skip(1).map(ToOwned::to_owned);
    Origin::Remote {
        instance: parts.next().unwrap_or_default(),
        grant: parts.next().unwrap_or_default(),
    }
}
