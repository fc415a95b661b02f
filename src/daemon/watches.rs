//! Watch commands, judged and run: the engine's word, then `exec`. What would have asked is kept,
//! with a number, until somebody at this computer says yes to it (`lembas allow --pending N`).

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use crate::agent::origin_text;
use crate::clock;
use crate::config::{Live, Mode};
use crate::exec::{MonitorError, monitor};
use crate::ids::SessionId;
use crate::permission::{
    Action, Attended, Command, Context, Grant, Judge, Origin, Pending, Purpose, Request, Rule,
    Verdict,
};
use crate::remote::{Check, Seen, Unseen, Watch};
use crate::rt;
use crate::store::device::Store;
use crate::store::device::refused::RefusedRow;
use crate::store::item::Scope;

/// What stands between the reason and the line to paste, in words for an instance.
pub(super) const THERE: &str = ". On that computer: ";
/// The layer of a refusal that is only for want of somebody to ask.
const UNATTENDED: &str = "unattended";

/// Runs watch commands. Cheap to clone.
#[derive(Clone)]
pub struct Watches {
    judge: Arc<dyn Judge>,
    store: Store,
    live: Live,
}

impl Watches {
    pub(super) fn new(judge: Arc<dyn Judge>, store: Store, live: Live) -> Self {
        Self { judge, store, live }
    }

    async fn run(self, check: Check) -> Result<Seen, Unseen> {
        let grant = self.judge(&check).await?;
        let seen = monitor(grant, check.stop.clone()).await;
        let seen = seen.map_err(|error| match error {
            MonitorError::Spawn(why) => Unseen::Spawn(why.to_string()),
            MonitorError::Timeout(_) => Unseen::Timeout,
            MonitorError::Background => Unseen::Background,
            MonitorError::Interrupted => Unseen::Stopped,
        })?;
        Ok(Seen {
            hash: seen.hash,
            exit: seen.exit,
            bytes: seen.bytes,
            excerpt: seen.excerpt,
            truncated: seen.truncated,
        })
    }

    async fn judge(&self, check: &Check) -> Result<Grant, Unseen> {
        let origin = if check.instance.is_empty() {
            Origin::Local
        } else {
            Origin::Remote {
                instance: check.instance.clone(),
                grant: check.grant.clone(),
            }
        };
        let session = SessionId::new(format!("schedule {}", check.schedule));
        let rules = self.store.rules_for(&origin_text(&origin), &session).await;
        let rules: Vec<Rule> = rules
            .map_err(|error| Unseen::Refused(format!("the rules cannot be read: {error}")))?
            .into_iter()
            .map(|row| Rule {
                id: row.id,
                data: row.data,
            })
            .collect();
        let config = self.live.now();
        let request = Request {
            tool: "monitor".to_owned(),
            action: Action::Execute(Command {
                text: check.command.clone(),
                timeout: check.timeout,
                purpose: Purpose::Monitor,
                open: None,
            }),
            cwd: check.cwd.clone(),
        };
        let context = Context {
            session,
            origin: origin.clone(),
            mode: check.mode,
            roots: check.roots.clone(),
            attended: Attended::Nobody,
            approvals: config.remote.approvals,
            sudo: config.remote.sudo,
            released: Vec::new(),
        };
        let judge = Arc::clone(&self.judge);
        let judged = rt::blocking(move || {
            let judged = judge.judge(&request, &context, &rules);
            match &judged {
                // What it would have asked, for somebody at this computer to say yes to.
                Verdict::Refuse(refusal) if refusal.layer == UNATTENDED => {
                    let context = Context {
                        attended: Attended::Person,
                        ..context
                    };
                    match judge.judge(&request, &context, &rules) {
                        ask @ Verdict::Ask(_) => ask,
                        _ => judged,
                    }
                }
                _ => judged,
            }
        })
        .await;
        match judged {
            Some(Verdict::Allow(grant)) => Ok(grant),
            Some(Verdict::Refuse(refusal)) => Err(Unseen::Refused(refusal.text)),
            Some(Verdict::Ask(pending)) => {
                let why = self.remember(&origin, *pending, check.mode).await;
                Err(Unseen::Ask(why))
            }
            None => Err(Unseen::Refused("it could not be judged".to_owned())),
        }
    }

    /// Keeps a refused command and says how it can be allowed. The same one again keeps its number.
    async fn remember(&self, origin: &Origin, pending: Pending, mode: Mode) -> String {
        let body = pending.body.clone();
        let (_, rule) = pending.allowed(Scope::Always);
        let reason = body.reason.trim_end_matches('.').to_owned();
        let row = RefusedRow {
            number: 0,
            origin: origin_text(origin),
            made: clock::now_ms(),
            body,
            rule: rule.map(|rule| (rule.id, rule.data)),
        };
        let asks = format!("{reason}, and mode {} asks before that", mode.title());
        match self.store.refuse(row).await {
            Ok(number) => format!("{asks}{THERE}lembas allow --pending {number}"),
            Err(error) => {
                tracing::error!(%error, "a refused watch command could not be kept");
                asks
            }
        }
    }
}

impl Watch for Watches {
    fn check(&self, check: Check) -> BoxFuture<'static, Result<Seen, Unseen>> {
        self.clone().run(check).boxed()
    }
}
