//! Keys: a method that changes something is done once for a key, however often it is asked.
//!
//! A key belongs to a scope (the grant, the method, the session or schedule) and to the params it
//! came with; the same key with others is an error. What was done has its outcome recorded and
//! answered again; a refusal is not recorded and is judged anew. Prompts are not here: the journal
//! itself knows their keys.

mod kept;

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::error::bad;
use crate::ids::Digest;
use crate::rpc::RpcError;
use crate::rt::Tasks;

/// How long an outcome is kept.
pub const KEPT: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The longest key that is taken.
const MAX_KEY: usize = 128;

/// Whose key it is, and for what.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Scope {
    /// The grant of the token, or `local`.
    pub grant: String,
    pub method: String,
    /// The session, or the schedule; empty where there is none yet.
    pub subject: String,
}

/// What is known of a key when it is taken.
#[derive(Clone, Debug, PartialEq)]
pub enum Taken {
    /// It is new; it is recorded as begun now.
    New,
    /// It was begun with the same params, and no outcome was recorded.
    Begun,
    Done(Value),
    /// It was begun with other params.
    Other,
}

/// Where keys are kept, at least [`KEPT`] long. Errors are words for the log and the asker.
pub trait KeyStore: Send + Sync + 'static {
    /// Takes a key, on the disk before it answers.
    fn take(
        &self,
        scope: Scope,
        key: String,
        params: Digest,
    ) -> BoxFuture<'static, Result<Taken, String>>;
    fn done(
        &self,
        scope: Scope,
        key: String,
        outcome: Value,
    ) -> BoxFuture<'static, Result<(), String>>;
    /// Nothing came of it: the key is as if it had never been used.
    fn release(&self, scope: Scope, key: String) -> BoxFuture<'static, Result<(), String>>;
}

/// What work under a key came to.
#[derive(Debug)]
pub enum Did {
    Done(Value),
    /// It was done and failed: doing it again would be doing it twice.
    Failed(RpcError),
    /// It was not done.
    Refused(RpcError),
}

impl From<Result<Value, RpcError>> for Did {
    fn from(result: Result<Value, RpcError>) -> Self {
        match result {
            Ok(value) => Self::Done(value),
            Err(error) => Self::Refused(error),
        }
    }
}

/// What to do with a key that was begun and has no outcome: the process ended in between.
#[derive(Clone, Debug)]
pub enum Again {
    /// The work may be done twice without harm.
    Redo,
    /// It may not: this is answered.
    Say(RpcError),
}

/// Held while the work of a key runs.
type Gate = tokio::sync::Mutex<()>;

type Gates = HashMap<(Scope, String), Weak<Gate>>;

/// The keys of this computer. Cheap to clone.
#[derive(Clone)]
pub struct Keys {
    store: Arc<dyn KeyStore>,
    /// Keys in use now: a second asker waits for the first one's outcome. Gone with their users.
    busy: Arc<Mutex<Gates>>,
    tasks: Tasks,
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keys").finish_non_exhaustive()
    }
}

impl Keys {
    pub fn new(store: Arc<dyn KeyStore>, tasks: &Tasks) -> Self {
        Self {
            store,
            busy: Arc::default(),
            tasks: tasks.clone(),
        }
    }

    /// Does the work once for a key. It runs to its end also when the asker goes away meanwhile.
    ///
    /// # Errors
    /// Those of the work; -32602 for a key that was used with other params.
    pub async fn once(
        &self,
        scope: Scope,
        key: String,
        params: &Value,
        again: Again,
        work: BoxFuture<'static, Did>,
    ) -> Result<Value, RpcError> {
        check(&key)?;
        let params = digest(params);
        let keys = self.clone();
        let task = self.tasks.spawn("keyed work", async move {
            keys.run(scope, key, params, again, work).await
        });
        match task.await {
            Ok(Some(result)) => result,
            _ => Err(RpcError::internal("the work ended without an outcome")),
        }
    }

    async fn run(
        self,
        scope: Scope,
        key: String,
        params: Digest,
        again: Again,
        work: BoxFuture<'static, Did>,
    ) -> Result<Value, RpcError> {
        let gate = self.gate(&scope, &key);
        let _held = gate.lock().await;
        let taken = self.store.take(scope.clone(), key.clone(), params).await;
        match (taken.map_err(|text| unsaved(&text))?, again) {
            (Taken::New, _) | (Taken::Begun, Again::Redo) => {}
            (Taken::Begun, Again::Say(error)) => return Err(error),
            (Taken::Done(outcome), _) => return recorded(outcome),
            (Taken::Other, _) => {
                return Err(bad("key", "this key was used for something else before"));
            }
        }
        let (saved, result) = match work.await {
            Did::Done(value) => {
                let outcome = json!({ "ok": value });
                (self.store.done(scope, key, outcome).await, Ok(value))
            }
            Did::Failed(error) => {
                let outcome = json!({ "error": error });
                (self.store.done(scope, key, outcome).await, Err(error))
            }
            Did::Refused(error) => (self.store.release(scope, key).await, Err(error)),
        };
        if let Err(text) = saved {
            tracing::warn!(text, "the outcome of a key could not be kept");
        }
        result
    }

    fn gate(&self, scope: &Scope, key: &str) -> Arc<Gate> {
        let mut busy = self.busy.lock();
        busy.retain(|_, gate| gate.strong_count() > 0);
        let place = busy.entry((scope.clone(), key.to_owned())).or_default();
        place.upgrade().unwrap_or_else(|| {
            let gate = Arc::new(Gate::new(()));
            *place = Arc::downgrade(&gate);
            gate
        })
    }
}

/// Whether a key has the form of one (N1).
pub(crate) fn check(key: &str) -> Result<(), RpcError> {
    let printable = key.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    // A scheduled run's key has our own mark before it.
    let length = key.strip_prefix("run:").unwrap_or(key).len();
    if (1..=MAX_KEY).contains(&length) && printable {
        return Ok(());
    }
    let text = format!("a key has 1 to {MAX_KEY} printable ASCII characters");
    Err(bad("params", text))
}

/// Of params as they mean, whatever the order of their fields.
fn digest(params: &Value) -> Digest {
    let mut text = String::new();
    write(params, &mut text);
    Digest::of(text.as_bytes())
}

fn write(value: &Value, text: &mut String) {
    match value {
        Value::Object(map) => {
            let mut fields: Vec<_> = map.iter().collect();
            fields.sort_by_key(|(key, _)| *key);
            text.push('{');
            for (key, value) in fields {
                text.push_str(&json!(key).to_string());
                text.push(':');
                write(value, text);
                text.push(',');
            }
            text.push('}');
        }
        Value::Array(list) => {
            text.push('[');
            for value in list {
                write(value, text);
                text.push(',');
            }
            text.push(']');
        }
        plain => text.push_str(&plain.to_string()),
    }
}

fn unsaved(text: &str) -> RpcError {
    RpcError::internal(format!("cannot save: {text}"))
}

fn recorded(mut outcome: Value) -> Result<Value, RpcError> {
    if let Some(error) = outcome.get("error") {
        let read = serde_json::from_value(error.clone());
        return Err(read.unwrap_or_else(|_| RpcError::internal("the recorded outcome is broken")));
    }
    Ok(outcome.get_mut("ok").map(Value::take).unwrap_or_default())
}

/// Keys in memory: for programs on this computer, whose connection and process end together, and
/// for tests.
#[derive(Debug, Default)]
pub struct MemoryKeys {
    kept: Mutex<HashMap<(Scope, String), Kept>>,
}

#[derive(Debug)]
struct Kept {
    params: Digest,
    outcome: Option<Value>,
    since: i64,
}

impl MemoryKeys {
    /// More keys than this push out the oldest.
    const MOST: usize = 4096;
}

impl KeyStore for MemoryKeys {
    fn take(
        &self,
        scope: Scope,
        key: String,
        params: Digest,
    ) -> BoxFuture<'static, Result<Taken, String>> {
        let mut kept = self.kept.lock();
        let now = crate::clock::now_ms();
        let taken = match kept.get(&(scope.clone(), key.clone())) {
            Some(known) if known.params != params => Taken::Other,
            Some(Kept {
                outcome: Some(outcome),
                ..
            }) => Taken::Done(outcome.clone()),
            Some(_) => Taken::Begun,
            None => Taken::New,
        };
        if taken == Taken::New {
            if kept.len() >= Self::MOST {
                let oldest = kept.iter().min_by_key(|(_, k)| k.since);
                if let Some(oldest) = oldest.map(|(id, _)| id.clone()) {
                    kept.remove(&oldest);
                }
            }
            let new = Kept {
                params,
                outcome: None,
                since: now,
            };
            kept.insert((scope, key), new);
        }
        std::future::ready(Ok(taken)).boxed()
    }

    fn done(
        &self,
        scope: Scope,
        key: String,
        outcome: Value,
    ) -> BoxFuture<'static, Result<(), String>> {
        if let Some(known) = self.kept.lock().get_mut(&(scope, key)) {
            known.outcome = Some(outcome);
        }
        std::future::ready(Ok(())).boxed()
    }

    fn release(&self, scope: Scope, key: String) -> BoxFuture<'static, Result<(), String>> {
        self.kept.lock().remove(&(scope, key));
        std::future::ready(Ok(())).boxed()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    fn scope(grant: &str) -> Scope {
        Scope {
            grant: grant.to_owned(),
            method: "m".to_owned(),
            subject: "s".to_owned(),
        }
    }

    fn keys() -> Keys {
        Keys::new(Arc::new(MemoryKeys::default()), &Tasks::new())
    }

    async fn ask(
        keys: &Keys,
        key: &str,
        params: Value,
        count: &Arc<AtomicU32>,
    ) -> Result<Value, RpcError> {
        let count = count.clone();
        let work = async move { Did::Done(json!(count.fetch_add(1, Ordering::SeqCst))) };
        keys.once(
            scope("g"),
            key.to_owned(),
            &params,
            Again::Redo,
            work.boxed(),
        )
        .await
    }

    #[tokio::test]
    async fn once_for_a_key_and_another_use_of_it_is_an_error() {
        let (keys, count) = (keys(), Arc::default());
        let first = ask(&keys, "k", json!({ "a": 1 }), &count).await;
        assert_eq!(first, ask(&keys, "k", json!({ "a": 1 }), &count).await);
        let other = ask(&keys, "k", json!({ "a": 2 }), &count)
            .await
            .unwrap_err();
        assert_eq!(other.code, RpcError::INVALID_PARAMS);
        assert_eq!(count.load(Ordering::SeqCst), 1);
        let work = async { Did::Done(json!("another grant's")) }.boxed();
        let theirs = keys
            .once(scope("h"), "k".to_owned(), &json!(3), Again::Redo, work)
            .await;
        assert_eq!(theirs, Ok(json!("another grant's")));
    }

    #[tokio::test]
    async fn two_at_once_have_one_outcome() {
        let (keys, count) = (keys(), Arc::default());
        let (a, b) = tokio::join!(
            ask(&keys, "k", json!(1), &count),
            ask(&keys, "k", json!(1), &count)
        );
        assert_eq!((a.clone(), count.load(Ordering::SeqCst)), (b, 1));
        assert_eq!(a, Ok(json!(0)));
    }

    #[tokio::test]
    async fn a_refusal_is_judged_anew_and_a_failure_is_not() {
        let keys = keys();
        let run = |did: Did| {
            let keys = keys.clone();
            async move {
                let work = async { did }.boxed();
                keys.once(scope("g"), "k".to_owned(), &json!(1), Again::Redo, work)
                    .await
            }
        };
        let no = RpcError::internal("no");
        assert!(run(Did::Refused(no.clone())).await.is_err());
        assert!(run(Did::Failed(no.clone())).await.is_err());
        assert_eq!(
            run(Did::Done(json!(1))).await,
            Err(no),
            "the failure was recorded"
        );
    }

    #[tokio::test]
    async fn what_was_begun_by_an_earlier_process_is_redone_or_said() {
        let store = Arc::new(MemoryKeys::default());
        let params = digest(&json!(1));
        let taken = store.take(scope("g"), "k".to_owned(), params).await;
        assert_eq!(taken, Ok(Taken::New));
        let keys = Keys::new(store, &Tasks::new());
        let interrupted = RpcError::internal("interrupted");
        let said = Again::Say(interrupted.clone());
        let work = async { Did::Done(json!(2)) };
        let answer = keys
            .once(scope("g"), "k".to_owned(), &json!(1), said, work.boxed())
            .await;
        assert_eq!(answer, Err(interrupted));
        let work = async { Did::Done(json!(2)) };
        let answer = keys
            .once(
                scope("g"),
                "k".to_owned(),
                &json!(1),
                Again::Redo,
                work.boxed(),
            )
            .await;
        assert_eq!(answer, Ok(json!(2)));
    }
}
