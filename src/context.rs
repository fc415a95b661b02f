//! What a model is sent: the history as a projection of the journal, and the texts around it.
//!
//! Nothing that was sent is ever written anew: the system prompt is made once a session, and what
//! changes comes as a note on the next message (context.md §10). Not here: sending (`model`),
//! cutting results (`agent`, at insert time).

pub mod compact;
pub mod from_spec;
pub mod history;
pub mod texts;

pub use from_spec::SpecTexts;
pub use history::History;
pub use texts::{Facts, Fixed, Note, Now, Texts};
