//! The limits of a linked instance, judged out of the person's settings as they are at that moment.
//!
//! Everything here reads [`Live::now`] anew; nothing is kept from one judgement to the next (R125).
//! Also here: which work a change of the settings ends, and with which words. Not here: what a
//! single command may do (`permission`).

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::scheduled;
use crate::acp::{self, Lowered, REFUSED, Refusal, Schedule};
use crate::config::{Approvals, Live, Mode, Remote};
use crate::permission;
use crate::rpc::RpcError;
use crate::session::Scheduled;
use crate::spec::{self, Texts};
use crate::store::item::Scope;

/// The gate of linked instances. Cheap to clone.
#[derive(Clone)]
pub struct Limits {
    live: Live,
    /// The computer's name, as its texts say it.
    name: Arc<dyn Fn() -> String + Send + Sync>,
    /// What commands run in here: `full`, `writes only`, `none`.
    kind_of_box: Arc<str>,
    /// Folders that nobody works in, whatever the roots say: this program's own.
    own: Arc<[PathBuf]>,
}

impl std::fmt::Debug for Limits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Limits").finish_non_exhaustive()
    }
}

impl Limits {
    pub fn new(
        live: Live,
        name: Arc<dyn Fn() -> String + Send + Sync>,
        kind_of_box: impl Into<Arc<str>>,
    ) -> Self {
        Self {
            live,
            name,
            kind_of_box: kind_of_box.into(),
            own: Arc::new([]),
        }
    }

    /// The same, with folders that no root shares. Their links are followed.
    #[must_use]
    pub fn without(mut self, own: &[PathBuf]) -> Self {
        self.own = own.iter().map(|path| permission::resolve(path)).collect();
        self
    }

    pub(crate) fn now(&self) -> Arc<crate::config::Config> {
        self.live.now()
    }

    pub(crate) fn live(&self) -> &Live {
        &self.live
    }

    /// The shared folders with every link resolved. One that is not there now shares nothing.
    pub(crate) fn roots(&self) -> Vec<PathBuf> {
        resolved(&self.live.now().remote)
    }

    /// Whether a resolved path lies in a shared folder.
    pub(crate) fn shares(&self, real: &Path) -> bool {
        self.roots().iter().any(|root| real.starts_with(root))
            && !self.own.iter().any(|own| real.starts_with(own))
    }

    fn say(&self, text: &str, facts: &[(&str, &str)]) -> String {
        let name = (self.name)();
        let texts = texts();
        let mut all = vec![("device", name.as_str())];
        all.extend_from_slice(facts);
        let known = spec::variables(texts.raw(text));
        all.retain(|(fact, _)| known.contains(fact));
        texts.say(text, &all)
    }

    fn refuse(&self, reason: &'static str) -> Refusal {
        Refusal::new(REFUSED, reason, self.say(reason, &[]))
    }

    fn outside(&self, path: &Path) -> Refusal {
        let roots = self.live.now();
        let roots: Vec<String> = roots
            .remote
            .roots
            .iter()
            .map(|r| r.display().to_string())
            .collect();
        let shown = path.display().to_string();
        let text = self.say("outside", &[("path", &shown), ("roots", &roots.join(", "))]);
        Refusal::new(RpcError::INVALID_PARAMS, "outside", text).about(shown)
    }

    /// The words of an end that a change of the settings brings to work in `cwd`, or none when it
    /// may go on.
    pub fn ends(&self, cwd: &Path) -> Option<String> {
        ends(&self.live.now().remote, cwd).map(|why| self.say(why, &[]))
    }
}

/// The name of the text that ends remote work in a folder under these settings.
fn ends(remote: &Remote, cwd: &Path) -> Option<&'static str> {
    if !remote.enabled {
        Some("remote_off")
    } else if remote.paused {
        Some("stopped_pause")
    } else if resolved(remote).iter().any(|root| cwd.starts_with(root)) {
        None
    } else {
        Some("folder_gone")
    }
}

fn resolved(remote: &Remote) -> Vec<PathBuf> {
    let roots = remote.roots.iter();
    roots.filter_map(|root| root.canonicalize().ok()).collect()
}

fn texts() -> &'static Texts {
    &spec::numbers().limits
}

impl acp::Limits for Limits {
    fn work(&self) -> Result<(), Refusal> {
        let config = self.live.now();
        if !config.remote.enabled {
            return Err(self.refuse("remote_off"));
        }
        if config.remote.paused {
            return Err(self.refuse("paused"));
        }
        Ok(())
    }

    fn folder(&self, path: &Path) -> Result<PathBuf, Refusal> {
        self.work()?;
        let configured = self.live.now();
        if configured.remote.roots.is_empty() {
            return Err(self.refuse("roots"));
        }
        if !path.is_absolute() {
            return acp::existing(path);
        }
        if let Ok(real) = path.canonicalize() {
            if !self.shares(&real) {
                return Err(self.outside(path));
            }
            return acp::existing(&real);
        }
        // What is not there is told from what is outside by its name alone: the answer must not
        // say which files exist outside the roots.
        let named_inside = !path.components().any(|part| part == Component::ParentDir)
            && (self.shares(path)
                || configured
                    .remote
                    .roots
                    .iter()
                    .any(|root| path.starts_with(root)));
        if !named_inside {
            return Err(self.outside(path));
        }
        let shown = path.display().to_string();
        let text = self.say("missing", &[("path", &shown)]);
        Err(Refusal::new(RpcError::INVALID_PARAMS, "missing", text).about(shown))
    }

    fn mode(&self, asked: Mode) -> Lowered {
        lower(asked, self.live.now().remote.max_mode)
    }

    fn schedule(&self, asked: &Schedule) -> Result<(Scheduled, Lowered), Refusal> {
        scheduled::judge(asked, &self.live.now().remote)
    }

    fn scheduled(&self) -> Result<(), Refusal> {
        scheduled::taken(&self.live.now().remote, acp::SCHEDULED)
    }

    fn scopes(&self, offered: &[Scope]) -> Vec<Scope> {
        let approvals = self.live.now().remote.approvals;
        let counts = |scope: &Scope| match approvals {
            Approvals::Full => true,
            Approvals::Once => *scope != Scope::Always,
            Approvals::Local => false,
        };
        offered.iter().copied().filter(counts).collect()
    }

    fn describe(&self) -> Value {
        describe(&self.live.now().remote, &self.kind_of_box)
    }

    fn max_sessions_words(&self, max: usize) -> String {
        self.say("max_sessions", &[("max", &max.to_string())])
    }
}

/// A mode under the highest one allowed; plan is always possible.
pub(crate) fn lower(asked: Mode, max: Mode) -> Lowered {
    Lowered {
        mode: asked.min(max),
        lowered: asked > max,
    }
}

/// The `limits` object (H6).
fn describe(remote: &Remote, kind_of_box: &str) -> Value {
    let at_work = remote.enabled && !remote.paused;
    // A root that is off with everything else is none to whoever asks (H9).
    let roots: &[PathBuf] = if at_work { &remote.roots } else { &[] };
    let mut limits = Map::new();
    let mut set = |key: &str, value: Value| {
        limits.insert(key.to_owned(), value);
    };
    set("remote", remote.enabled.into());
    set("paused", remote.paused.into());
    set("roots", json!(roots));
    set("max_mode", remote.max_mode.word().into());
    set("scheduled", remote.scheduled.into());
    set("terminal", false.into());
    set("approvals", remote.approvals.word().into());
    if let Some(seconds) = remote.approval_timeout {
        set("approval_timeout", seconds.into());
    }
    set("approval_max", remote.approval_max.into());
    set("box", kind_of_box.into());
    set("max_sessions", remote.max_sessions.into());
    Value::Object(limits)
}

/// How long settings must be still before the link is dialled again for them (R115).
pub(crate) const STILL: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
