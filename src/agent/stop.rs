//! Stopping a turn: why comes first, then everything under the token ends.

use std::sync::{Arc, OnceLock};

use crate::rt::CancellationToken;

/// Why a turn is stopped: the words of its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopWhy {
    /// The person, or the client on their behalf.
    Asked,
    /// A limit changed: "folder no longer shared", "paused on this computer", "not linked any more".
    Limit(String),
    /// The daemon ends; the turn parks and goes on after the restart.
    Shutdown,
}

/// The first one to stop a turn says why. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct StopSignal {
    why: Arc<OnceLock<StopWhy>>,
    token: CancellationToken,
}

impl StopSignal {
    pub fn stop(&self, why: StopWhy) {
        let _first_wins = self.why.set(why);
        self.token.cancel();
    }

    pub fn why(&self) -> Option<&StopWhy> {
        self.why.get()
    }

    pub fn token(&self) -> &CancellationToken {
        &self.token
    }
}
