//! Watch commands, judged and run: the engine's word, then `exec`. What would have asked is kept,
//! with a number, until somebody at this computer says yes to it (`lembas allow --pending N`).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::sync::Semaphore;

use crate::agent::origin_text;
use crate::clock;
use crate::config::{Approvals, Live};
use crate::exec::{MonitorError, monitor};
use crate::ids::SessionId;
use crate::permission::{
    Action, Attended, Command, Context, Grant, Judge, Origin, Pending, Purpose, Request, Rule,
    Verdict,
};
use crate::remote::{Check, Seen, Unseen, Watch};
use crate::rt;
use crate::store::db::StoreError;
use crate::store::device::Store;
use crate::store::device::refused::RefusedRow;
use crate::store::item::Scope;

/// The layer of a refusal that is only for want of somebody to ask.
const UNATTENDED: &str = "unattended";

/// Runs watch commands. Cheap to clone.
#[derive(Clone)]
pub struct Watches {
    judge: Arc<dyn Judge>,
    store: Store,
    live: Live,
    /// The folder that long outputs wait in.
    room: PathBuf,
    /// Whose turn it is to be judged. A command of the longest kind takes many megabytes while it is
    /// read, and what several threads took at once is not all given back: one at a time, the others
    /// wait. How many wait is bounded by the calls that a link or the control socket takes.
    judging: Arc<Semaphore>,
}

impl Watches {
    pub(super) fn new(judge: Arc<dyn Judge>, store: Store, live: Live, room: PathBuf) -> Self {
        Self {
            judge,
            store,
            live,
            room,
            judging: Arc::new(Semaphore::new(1)),
        }
    }

    async fn run(self, check: Check) -> Result<Seen, Unseen> {
        let rules = rules_of(&self.store, &check)
            .await
            .map_err(|error| Unseen::Refused(format!("the rules cannot be read: {error}")))?;
        // It is never closed; a turn that does not come would be a judgement that is not given.
        let turn = self.judging.acquire().await;
        let turn = turn.map_err(|_| Unseen::Refused("it could not be judged".to_owned()))?;
        let judged = judged(Arc::clone(&self.judge), &self.live, rules, &check).await?;
        match judged {
            Judged::Runs(grant) => {
                drop(turn);
                let used = self
                    .store
                    .rules_used(grant.rules().to_vec(), clock::now_ms());
                if let Err(error) = used.await {
                    // The list then says an older time; the check is what was asked for.
                    tracing::warn!(%error, "the use of a rule could not be noted");
                }
                ran(*grant, &self.room, &check).await
            }
            Judged::Asks(pending) => Err(refused(&self.store, *pending, &check).await),
        }
    }
}

/// Whose command it is: an instance's, or somebody's at this computer.
fn origin(check: &Check) -> Origin {
    if check.instance.is_empty() {
        Origin::Local
    } else {
        Origin::Remote {
            instance: check.instance.clone(),
            grant: check.grant.clone(),
        }
    }
}

fn session(check: &Check) -> SessionId {
    SessionId::new(format!("schedule {}", check.schedule))
}

/// The rules that a check is judged by.
pub(super) async fn rules_of(store: &Store, check: &Check) -> Result<Vec<Rule>, StoreError> {
    let (origin, session) = (origin_text(&origin(check)), session(check));
    let rows = store.rules_for(&origin, &session).await?;
    Ok(rows.into_iter().map(Rule::from).collect())
}

/// A check that is not refused.
pub(super) enum Judged {
    Runs(Box<Grant>),
    /// It would have asked, and nobody is asked.
    Asks(Box<Pending>),
}

/// Judges a check as it would run now.
pub(super) async fn judged(
    judge: Arc<dyn Judge>,
    live: &Live,
    rules: Vec<Rule>,
    check: &Check,
) -> Result<Judged, Unseen> {
    let config = live.now();
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
        session: session(check),
        origin: origin(check),
        mode: check.mode,
        roots: check.roots.clone(),
        attended: Attended::Nobody,
        approvals: config.remote.approvals,
        sudo: config.remote.sudo,
        released: Vec::new(),
    };
    let judged = rt::blocking(move || {
        let judged = judge.judge(&request, &context, &rules);
        match &judged {
            // What it would have asked, for somebody at this computer to say yes to.
            Verdict::Refuse(refusal) if refusal.layer == UNATTENDED => {
                // It is a yes for good that is wanted, and it is given here.
                let context = Context {
                    attended: Attended::Person,
                    approvals: Approvals::Full,
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
        Some(Verdict::Allow(grant)) => Ok(Judged::Runs(Box::new(grant))),
        Some(Verdict::Ask(pending)) => Ok(Judged::Asks(pending)),
        Some(Verdict::Refuse(refusal)) => Err(Unseen::Refused(refusal.text)),
        None => Err(Unseen::Refused("it could not be judged".to_owned())),
    }
}

/// Runs what may run. `room`: the folder that a long output waits in.
pub(super) async fn ran(grant: Grant, room: &Path, check: &Check) -> Result<Seen, Unseen> {
    let seen = monitor(grant, room, check.stop.clone()).await;
    let seen = seen.map_err(|error| match error {
        MonitorError::Spawn(why) => Unseen::Spawn(why.to_string()),
        MonitorError::Timeout(_) => Unseen::Timeout,
        MonitorError::Background => Unseen::Background,
        MonitorError::TooLong { exit, bytes } => Unseen::TooLong { exit, bytes },
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

/// Keeps a command that would have asked, and says which line allows it. The same one again keeps
/// its number.
pub(super) async fn refused(store: &Store, pending: Pending, check: &Check) -> Unseen {
    let body = pending.body.clone();
    let (_, rule) = pending.allowed(Scope::Always);
    let reason = body.reason.trim_end_matches('.').to_owned();
    let row = RefusedRow {
        number: 0,
        origin: origin_text(&origin(check)),
        made: clock::now_ms(),
        body,
        rule: rule.map(|rule| (rule.id, rule.data)),
    };
    let why = format!("{reason}, and mode {} asks before that", check.mode.title());
    let fix = match store.refuse(row).await {
        Ok(number) => format!("lembas allow --pending {number}"),
        Err(error) => {
            tracing::error!(%error, "a refused watch command could not be kept");
            "df -h ~".to_owned()
        }
    };
    Unseen::Ask { why, fix }
}

impl Watch for Watches {
    fn check(&self, check: Check) -> BoxFuture<'static, Result<Seen, Unseen>> {
        self.clone().run(check).boxed()
    }
}
