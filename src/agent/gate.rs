//! Between a call and its run: understand it, judge it by what is true now, and hand out what may
//! run, what must be asked, or why not.

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::watch;

use crate::agent::limits;
use crate::agent::words;
use crate::agent::{SessionFacts, Settings};
use crate::config::{Approvals, Live};
use crate::permission::{
    Action, Attended, Context, Grant, Judge, Origin, Pending, Refusal, Request, Rule, Verdict,
};
use crate::store::db::StoreError;
use crate::store::device::Store;
use crate::tools::{Prepared, Tool, ToolContext, Tools};

/// Where tools are found, by name and former name.
pub trait Toolbox: Send + Sync {
    fn get(&self, name: &str) -> Option<Arc<dyn Tool>>;
    fn names(&self) -> Vec<&str>;
}

impl Toolbox for Tools {
    fn get(&self, name: &str) -> Option<Arc<dyn Tool>> {
        Self::get(self, name)
    }

    fn names(&self) -> Vec<&str> {
        Self::names(self).collect()
    }
}

/// A call that was understood.
pub struct Understood {
    pub tool: Arc<dyn Tool>,
    pub prepared: Prepared,
}

/// What became of a call at the gate.
#[expect(
    clippy::large_enum_variant,
    reason = "one at a time, moved on at once: a box for each would cost more"
)]
pub enum Gated {
    Allow(Understood, Grant),
    Ask(Understood, Box<Pending>),
    Refuse(Refusal),
    /// It cannot be judged; text for the model.
    Fail(String),
}

/// The gate of one session.
#[derive(Clone)]
pub struct Gate {
    pub tools: Arc<dyn Toolbox>,
    pub judge: Arc<dyn Judge>,
    pub config: Live,
    pub facts: Arc<SessionFacts>,
    pub settings: watch::Receiver<Settings>,
    pub store: Store,
    pub context: ToolContext,
}

impl Gate {
    /// Reads a call's arguments and has its tool say what it wants.
    pub async fn understand(&self, name: &str, args: &str) -> Result<Understood, String> {
        let Some(tool) = self.tools.get(name) else {
            return Err(words::no_tool(name, &self.tools.names()));
        };
        let args: Value = match serde_json::from_str(args) {
            Ok(Value::Object(object)) => Value::Object(object),
            Ok(_) => return Err(words::bad_arguments(name, "they are no JSON object")),
            Err(error) => return Err(words::bad_arguments(name, &error.to_string())),
        };
        let context = self.context.clone();
        let work = move || {
            let prepared = tool.prepare(&args, &context);
            prepared.map(|prepared| Understood { tool, prepared })
        };
        match crate::rt::blocking(work).await {
            Some(Ok(understood)) => Ok(understood),
            Some(Err(failure)) => Err(failure.0),
            None => Err(words::broke()),
        }
    }

    /// Judges what was understood, by the settings and rules of this moment.
    ///
    /// # Errors
    /// When the rules cannot be read: nothing is allowed then.
    pub async fn judge(&self, understood: Understood) -> Result<Gated, StoreError> {
        let rules: Vec<Rule> = self
            .store
            .rules_for(&self.facts.origin_text, &self.facts.id)
            .await?
            .into_iter()
            .map(Rule::from)
            .collect();
        let judge = self.judge.clone();
        let gate = self.clone();
        let work = move || {
            let config = gate.config.now();
            if let Err(why) = limits::may_work(&config, &gate.facts) {
                return Gated::Refuse(Refusal {
                    layer: "mode",
                    segment: None,
                    text: format!("Not run: {why}."),
                });
            }
            let context = gate.now(&config);
            match judge.judge(&understood.prepared.request, &context, &rules) {
                Verdict::Allow(grant) => Gated::Allow(understood, grant),
                Verdict::Ask(pending) => Gated::Ask(understood, pending),
                Verdict::Refuse(refusal) => Gated::Refuse(refusal),
            }
        };
        Ok(crate::rt::blocking(work)
            .await
            .unwrap_or_else(|| Gated::Fail(words::broke())))
    }

    /// Both, from the call's own words.
    ///
    /// # Errors
    /// As [`Gate::judge`].
    pub async fn pass(&self, name: &str, args: &str) -> Result<Gated, StoreError> {
        match self.understand(name, args).await {
            Ok(understood) => self.judge(understood).await,
            Err(text) => Ok(Gated::Fail(text)),
        }
    }

    /// A grant to read a file, where it may be read without a question.
    pub fn may_read(&self, path: &Path) -> Option<Grant> {
        let request = Request {
            tool: "read".to_owned(),
            action: Action::Read {
                paths: vec![path.to_owned()],
            },
            cwd: self.facts.cwd.clone(),
        };
        let context = self.now(&self.config.now());
        match self.judge.judge(&request, &context, &[]) {
            Verdict::Allow(grant) => Some(grant),
            Verdict::Ask(_) | Verdict::Refuse(_) => None,
        }
    }

    fn now(&self, config: &crate::config::Config) -> Context {
        let local = self.facts.origin == Origin::Local;
        Context {
            session: self.facts.id.clone(),
            origin: self.facts.origin.clone(),
            mode: limits::mode(config, &self.facts, self.settings.borrow().mode),
            roots: limits::inside(config, &self.facts),
            attended: match self.facts.scheduled_wait {
                Some(_) => Attended::Scheduled,
                None => Attended::Person,
            },
            approvals: if local {
                Approvals::Full
            } else {
                config.remote.approvals
            },
            sudo: config.remote.sudo,
            released: if local {
                config.protected.release.clone()
            } else {
                Vec::new()
            },
        }
    }
}
