//! What a session is doing, for one line on a screen (progress.md).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::sync::watch;

use crate::clock;
use crate::model::Hint;

/// `phase`, `since` in milliseconds since the epoch, and the phase's own fields.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    pub phase: Phase,
    pub since: i64,
    #[serde(flatten)]
    pub data: Map<String, Value>,
}

/// The thirteen phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    Queued,
    WaitingForModel,
    LoadingModel,
    ReadingPrompt,
    Thinking,
    Writing,
    RunningTool,
    WaitingForPerson,
    WaitingForSubagents,
    Compacting,
    Retrying,
    Stopped,
    Failed,
}

/// The place where progress is said; readers always find the newest. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Doing {
    now: watch::Sender<Option<Progress>>,
    /// Of all sessions: a list of them shows what each is doing.
    changes: watch::Sender<u64>,
}

impl Doing {
    pub fn new(changes: watch::Sender<u64>) -> Self {
        Self {
            now: watch::Sender::new(None),
            changes,
        }
    }

    pub fn now(&self) -> Option<Progress> {
        self.now.borrow().clone()
    }

    pub fn watch(&self) -> watch::Receiver<Option<Progress>> {
        self.now.subscribe()
    }

    /// Says a phase. The same phase again keeps its `since`; with the same data it says nothing.
    pub fn set<const N: usize>(&self, phase: Phase, data: [(&str, Value); N]) {
        let data: Map<String, Value> = data
            .into_iter()
            .filter(|(_, v)| !v.is_null())
            .map(|(k, v)| (k.to_owned(), v))
            .collect();
        let changed = self.now.send_if_modified(|now| {
            let since = match now {
                Some(now) if now.phase == phase && now.data == data => return false,
                Some(now) if now.phase == phase && phase != Phase::RunningTool => now.since,
                _ => clock::now_ms(),
            };
            *now = Some(Progress { phase, since, data });
            true
        });
        self.tell(changed);
    }

    /// Nothing is being done.
    pub fn idle(&self) {
        let changed = self.now.send_if_modified(|now| now.take().is_some());
        self.tell(changed);
    }

    fn tell(&self, changed: bool) {
        if changed {
            self.changes.send_modify(|n| *n = n.wrapping_add(1));
        }
    }

    /// What a model's server said about itself.
    pub fn hint(&self, hint: &Hint, model: &str) {
        let number = |n: Option<u64>| n.map_or(Value::Null, Value::from);
        match hint {
            Hint::Queued { position } => {
                self.set(Phase::Queued, [("position", number(*position))]);
            }
            Hint::Loading { percent } => self.set(
                Phase::LoadingModel,
                [("model", model.into()), ("percent", number(*percent))],
            ),
            Hint::Reading { tokens, total } => self.set(
                Phase::ReadingPrompt,
                [
                    ("model", model.into()),
                    ("tokens", number(*tokens)),
                    ("total", number(*total)),
                ],
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_keeps_its_beginning_and_wakes_nobody_twice() {
        let doing = Doing::new(watch::Sender::new(0));
        let mut watch = doing.watch();
        doing.hint(&Hint::Loading { percent: Some(1) }, "m");
        let first = doing.now().unwrap();
        watch.mark_unchanged();
        doing.hint(&Hint::Loading { percent: Some(1) }, "m");
        assert!(!watch.has_changed().unwrap());
        doing.hint(&Hint::Loading { percent: Some(2) }, "m");
        assert!(watch.has_changed().unwrap());
        assert_eq!(doing.now().unwrap().since, first.since);
        let json = serde_json::to_value(doing.now()).unwrap();
        assert_eq!(json["phase"], "loading_model");
        assert_eq!(json["percent"], 2);
        doing.hint(&Hint::Queued { position: None }, "m");
        assert!(
            serde_json::to_value(doing.now())
                .unwrap()
                .get("position")
                .is_none()
        );
        doing.idle();
        assert_eq!(doing.now(), None);
    }
}
