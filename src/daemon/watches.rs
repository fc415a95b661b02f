//! Watch commands, judged and run: the engine's word, then `exec`. What would have asked is kept,
//! with a number, until somebody at this computer says yes to it (`lembas allow --pending N`).

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use serde::Serialize;

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
use crate::store::db::StoreError;
use crate::store::device::Store;
use crate::store::device::rules::RuleRow;
use crate::store::item::Scope;

/// The layer of a refusal that is only for want of somebody to ask.
const UNATTENDED: &str = "unattended";
/// Refused commands that are remembered; the oldest goes when there is one more.
const REMEMBERED: usize = 50;

/// Runs watch commands. Cheap to clone.
#[derive(Clone)]
pub struct Watches {
    judge: Arc<dyn Judge>,
    store: Store,
    live: Live,
    /// The folder that long outputs wait in.
    room: PathBuf,
    refused: Arc<Mutex<Refused>>,
}

#[derive(Default)]
struct Refused {
    last: u64,
    list: VecDeque<Waiting>,
}

struct Waiting {
    number: u64,
    made: i64,
    origin: Origin,
    pending: Box<Pending>,
}

/// A refused command as it is listed.
#[derive(Clone, Debug, Serialize)]
pub struct Listed {
    pub number: u64,
    /// Milliseconds since the epoch.
    pub made: i64,
    pub command: String,
    pub cwd: String,
    pub reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub covers: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub widest: Option<String>,
}

/// Why a refused command was not allowed.
#[derive(Debug, thiserror::Error)]
pub enum AllowError {
    #[error("there is no refused watch command with the number {0}")]
    Unknown(u64),
    #[error("this command can only be allowed once, and a watch command asks nobody")]
    OnceOnly,
    #[error("the rule could not be saved")]
    Store(#[from] StoreError),
}

impl Watches {
    pub(super) fn new(judge: Arc<dyn Judge>, store: Store, live: Live, room: PathBuf) -> Self {
        Self {
            judge,
            store,
            live,
            room,
            refused: Arc::default(),
        }
    }

    /// The refused commands, oldest first.
    pub fn refused(&self) -> Vec<Listed> {
        self.refused.lock().list.iter().map(listed).collect()
    }

    /// Somebody at this computer says yes to a refused command, from now on.
    ///
    /// # Errors
    /// When there is none with this number, or its like cannot be remembered.
    pub async fn allow(&self, number: u64) -> Result<Listed, AllowError> {
        let waiting = {
            let mut refused = self.refused.lock();
            let at = refused
                .list
                .iter()
                .position(|waiting| waiting.number == number);
            at.and_then(|at| refused.list.remove(at))
        };
        let waiting = waiting.ok_or(AllowError::Unknown(number))?;
        let listed = listed(&waiting);
        let Waiting {
            origin, pending, ..
        } = waiting;
        let (_, rule) = pending.allowed(Scope::Always);
        let rule = rule.ok_or(AllowError::OnceOnly)?;
        let row = RuleRow {
            id: rule.id,
            origin: origin_text(&origin),
            session: None,
            made: clock::now_ms(),
            by: "you, on this computer".to_owned(),
            data: rule.data,
        };
        self.store.add_rule(row).await?;
        Ok(listed)
    }

    async fn run(self, check: Check) -> Result<Seen, Unseen> {
        let origin = origin(&check);
        let rules = rules_of(&self.store, &check)
            .await
            .map_err(|error| Unseen::Refused(format!("the rules cannot be read: {error}")))?;
        match judged(Arc::clone(&self.judge), &self.live, rules, &check).await? {
            Judged::Runs(grant) => ran(*grant, &self.room, &check).await,
            Judged::Asks(pending) => Err(Unseen::Ask {
                why: asks(&pending, check.mode),
                fix: self.remember(origin, pending),
            }),
        }
    }

    /// Keeps a refused command; the line that allows it. The same one again keeps its number.
    fn remember(&self, origin: Origin, pending: Box<Pending>) -> String {
        let mut refused = self.refused.lock();
        let known = refused.list.iter().find(|waiting| {
            waiting.origin == origin
                && waiting.pending.body.command == pending.body.command
                && waiting.pending.body.cwd == pending.body.cwd
        });
        let number = match known {
            Some(waiting) => waiting.number,
            None => {
                refused.last += 1;
                let number = refused.last;
                if refused.list.len() >= REMEMBERED {
                    refused.list.pop_front();
                }
                refused.list.push_back(Waiting {
                    number,
                    made: clock::now_ms(),
                    origin,
                    pending,
                });
                number
            }
        };
        format!("lembas allow --pending {number}")
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
    let rules = rows.into_iter().map(|row| Rule {
        id: row.id,
        data: row.data,
    });
    Ok(rules.collect())
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

/// Why it is not run, in words: what asks, and in which mode.
pub(super) fn asks(pending: &Pending, mode: Mode) -> String {
    let reason = pending.body.reason.trim_end_matches('.');
    format!("{reason}, and mode {} asks before that", mode.title())
}

impl Watch for Watches {
    fn check(&self, check: Check) -> BoxFuture<'static, Result<Seen, Unseen>> {
        self.clone().run(check).boxed()
    }
}

fn listed(waiting: &Waiting) -> Listed {
    let body = &waiting.pending.body;
    Listed {
        number: waiting.number,
        made: waiting.made,
        command: body.command.clone(),
        cwd: body.cwd.clone(),
        reason: body.reason.clone(),
        covers: body.covers.clone(),
        widest: body.widest.clone(),
    }
}
