//! Waits that a person ends, and messages that a person takes back (spec/acp.md, R11 and J4).

use crate::agent::progress::Phase;
use crate::context::texts::Told;
use crate::ids::Seq;
use crate::session::SessionError;
use crate::session::task::SessionTask;
use crate::store::db::Durability;
use crate::store::device::items::Also;
use crate::store::item::Body;

impl SessionTask {
    /// Has the model asked again now, where the next try is waited for.
    pub(super) fn retry(&self, turn: Option<u32>) -> bool {
        let running = self.running.as_ref();
        let Some(running) = running.filter(|r| turn.is_none_or(|t| t == r.turn)) else {
            return false;
        };
        let waits = self.doing.now().is_some_and(|p| p.phase == Phase::Retrying);
        running.retry.notify_waiters();
        waits
    }

    /// Takes the session back to before a prompt. Nothing is deleted, and no file is touched.
    pub(super) async fn rewind(&mut self, to: Seq, by: String) -> Result<Seq, SessionError> {
        let store = self.journal.store();
        let row = store.session(&self.facts.id).await?;
        let row = row.ok_or_else(|| SessionError::Missing(self.facts.id.clone()))?;
        if self.running.is_some() || row.running {
            return Err(SessionError::Busy);
        }
        let before = store.before_prompt(&self.facts.id, to).await?;
        let before = before.ok_or(SessionError::NoPrompt(to))?;
        let mut bodies = vec![Body::Rewound { to, by }];
        bodies.extend(before.plan.map(|plan| Body::Plan { plan }));
        // What the model was told of changes may have stood in what it reads no more.
        let told = Told {
            date: Some(String::new()),
            ..Told::default()
        };
        let also = Also {
            told: serde_json::to_string(&told).ok(),
            ..Also::default()
        };
        let items = self.journal.append(bodies, Durability::Disk, also).await?;
        self.doing.idle();
        self.journal.touch();
        Ok(items.first().map_or(to, |item| item.seq))
    }
}
