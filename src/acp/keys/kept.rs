//! Keys in the device's store: they outlive the process.

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::Value;

use super::{KeyStore, Scope, Taken};
use crate::acp::error::whole;
use crate::clock;
use crate::ids::Digest;
use crate::store::device::Store;
use crate::store::device::keys::{KEPT_MS, KeyRow, RUN_KEPT_MS};

/// The outcome of a key that has none yet.
const BEGUN: &str = "";

impl KeyStore for Store {
    fn take(
        &self,
        scope: Scope,
        key: String,
        params: Digest,
    ) -> BoxFuture<'static, Result<Taken, String>> {
        let store = self.clone();
        let runs = key.starts_with("run:") || scope.method == "_lembas/monitor";
        let kept = if runs { RUN_KEPT_MS } else { KEPT_MS };
        let row = KeyRow {
            scope: text(&scope),
            key,
            digest: params,
            outcome: BEGUN.to_owned(),
            until: clock::now_ms().saturating_add(kept),
        };
        async move {
            let digest = row.digest.clone();
            let known = store.take_key(row).await.map_err(|error| whole(&error))?;
            Ok(match known {
                None => Taken::New,
                Some(known) if known.digest != digest => Taken::Other,
                Some(known) if known.outcome == BEGUN => Taken::Begun,
                Some(known) => match serde_json::from_str(&known.outcome) {
                    Ok(outcome) => Taken::Done(outcome),
                    Err(error) => return Err(format!("a kept outcome cannot be read: {error}")),
                },
            })
        }
        .boxed()
    }

    fn done(
        &self,
        scope: Scope,
        key: String,
        outcome: Value,
    ) -> BoxFuture<'static, Result<(), String>> {
        let store = self.clone();
        async move {
            let outcome = Some(outcome.to_string());
            let kept = store.end_key(&text(&scope), &key, outcome).await;
            kept.map_err(|error| whole(&error))
        }
        .boxed()
    }

    fn release(&self, scope: Scope, key: String) -> BoxFuture<'static, Result<(), String>> {
        let store = self.clone();
        async move {
            let dropped = store.end_key(&text(&scope), &key, None).await;
            dropped.map_err(|error| whole(&error))
        }
        .boxed()
    }
}

/// A scope as the store's text. Its parts hold no line feed that could make two scopes one: grants
/// are the instance's ids, and a subject with one is written escaped.
fn text(scope: &Scope) -> String {
    let part = |text: &str| text.replace('\\', "\\\\").replace('\n', "\\n");
    format!(
        "wire\n{}\n{}\n{}",
        part(&scope.grant),
        part(&scope.method),
        part(&scope.subject)
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::acp::keys::{Again, Did, Keys};
    use crate::rpc::RpcError;
    use crate::rt::Tasks;

    fn scope(subject: &str) -> Scope {
        Scope {
            grant: "g".to_owned(),
            method: "_lembas/monitor".to_owned(),
            subject: subject.to_owned(),
        }
    }

    async fn store(folder: &std::path::Path) -> Store {
        Store::open(folder, &folder.join("chain")).await.unwrap()
    }

    #[tokio::test]
    async fn an_outcome_outlives_the_process_and_a_begun_run_is_interrupted() {
        let folder = tempfile::tempdir().unwrap();
        let again = || Again::Say(RpcError::internal("interrupted"));
        let run = |keys: Keys, key: &str, value: Value| {
            let (key, again) = (key.to_owned(), again());
            let work = async move { Did::Done(value) }.boxed();
            async move {
                keys.once(scope("s"), key, &json!({ "p": 1 }), again, work)
                    .await
            }
        };
        {
            let store = store(folder.path()).await;
            let params = crate::acp::keys::digest(&json!({ "p": 1 }));
            let begun = store.take(scope("s"), "begun".to_owned(), params).await;
            assert_eq!(begun, Ok(Taken::New));
            let keys = Keys::new(Arc::new(store), &Tasks::new());
            assert_eq!(run(keys, "done", json!("first")).await, Ok(json!("first")));
        }
        let keys = Keys::new(Arc::new(store(folder.path()).await), &Tasks::new());
        assert_eq!(
            run(keys.clone(), "done", json!("second")).await,
            Ok(json!("first"))
        );
        let interrupted = run(keys.clone(), "begun", json!("again")).await;
        assert_eq!(interrupted.unwrap_err().message, "interrupted");
        let params = json!({ "p": 2 });
        let other = keys.once(
            scope("s"),
            "done".to_owned(),
            &params,
            again(),
            async { Did::Done(json!(null)) }.boxed(),
        );
        assert_eq!(other.await.unwrap_err().code, RpcError::INVALID_PARAMS);
    }

    #[test]
    fn two_scopes_are_never_one_text() {
        let one = text(&Scope {
            subject: "a\nb".to_owned(),
            ..scope("")
        });
        let two = text(&Scope {
            method: "_lembas/monitor\na".to_owned(),
            ..scope("b")
        });
        assert_ne!(one, two);
    }
}
