use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::*;
use crate::acp::MemoryKeys;
use crate::config::{Config, Live};
use crate::rt::Tasks;

/// Plays commands: each run gives the next outcome, the last one for ever.
#[derive(Default)]
struct Script {
    outcomes: Mutex<VecDeque<Result<Seen, Unseen>>>,
    ran: Mutex<Vec<Check>>,
    /// When set, a run waits for this or for its stop.
    gate: Option<Arc<Notify>>,
    at_once: AtomicUsize,
    most: AtomicUsize,
}

impl Watch for Script {
    fn check(&self, check: Check) -> BoxFuture<'static, Result<Seen, Unseen>> {
        let mut outcomes = self.outcomes.lock();
        let outcome = if outcomes.len() > 1 {
            outcomes.pop_front().unwrap()
        } else {
            outcomes
                .front()
                .cloned()
                .unwrap_or_else(|| Ok(seen("h", 0)))
        };
        drop(outcomes);
        self.ran.lock().push(check.clone());
        let now = self.at_once.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        let gate = self.gate.clone();
        async move {
            if let Some(gate) = gate
                && check
                    .stop
                    .run_until_cancelled(gate.notified())
                    .await
                    .is_none()
            {
                return Err(Unseen::Stopped);
            }
            outcome
        }
        .boxed()
    }
}

fn seen(hash: &str, exit: i32) -> Seen {
    Seen {
        hash: format!("sha256:{hash}"),
        exit,
        bytes: 3,
        excerpt: "out".to_owned(),
        truncated: true,
    }
}

struct Place {
    folder: tempfile::TempDir,
    live: Live,
    script: Arc<Script>,
    monitor: Monitor,
}

fn place(script: Script) -> Place {
    let folder = tempfile::tempdir().unwrap();
    let mut config = Config::default();
    config.remote.scheduled = true;
    config.remote.max_mode = Mode::Edit;
    config.remote.roots = vec![folder.path().to_owned()];
    let live = Live::new(config);
    let limits = Limits::new(live.clone(), Arc::new(|| "zephyr".to_owned()), "full");
    let keys = Keys::new(Arc::new(MemoryKeys::default()), &Tasks::new());
    let script = Arc::new(script);
    let monitor = Monitor::new(limits, keys, script.clone());
    Place {
        folder,
        live,
        script,
        monitor,
    }
}

impl Place {
    fn set(&self, change: impl FnOnce(&mut crate::config::Remote)) {
        let mut config = (*self.live.now()).clone();
        change(&mut config.remote);
        self.live.set(config);
    }

    fn params(&self, more: Value) -> Value {
        let mut params = json!({
            "schedule": "w", "run": "r", "cwd": self.folder.path(), "command": "df",
        });
        if let (Value::Object(more), Some(params)) = (more, params.as_object_mut()) {
            params.extend(more);
        }
        params
    }

    fn ask(&self, more: Value) -> impl Future<Output = Result<Value, RpcError>> + use<> {
        let monitor = self.monitor.clone();
        monitor.answer("i".to_owned(), "g".to_owned(), self.params(more))
    }
}

fn reason(answer: Result<Value, RpcError>) -> (i64, String) {
    let error = answer.unwrap_err();
    let data = error.data.unwrap();
    assert!(!data["text"].as_str().unwrap().is_empty());
    (error.code, data["reason"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn a_check_answers_hash_and_excerpt() {
    let place = place(Script::default());
    let mut answer = place.ask(json!({})).await.unwrap();
    assert!(answer["duration_ms"].is_u64());
    answer.as_object_mut().unwrap().remove("duration_ms");
    insta::assert_snapshot!(answer.to_string(), @r#"{"hash":"sha256:h","exit":0,"bytes":3,"excerpt":"out","truncated":true}"#);
    let check = place.script.ran.lock()[0].clone();
    assert_eq!(
        (check.mode, check.timeout),
        (Mode::Edit, Duration::from_secs(60))
    );
    assert_eq!(check.cwd, place.folder.path().canonicalize().unwrap());
    let bare = place
        .ask(json!({ "run": "r2", "excerpt": "none", "mode": "auto", "timeout": 600 }))
        .await
        .unwrap();
    assert_eq!(
        (bare["excerpt"].as_str(), bare["truncated"].as_bool()),
        (Some(""), Some(false))
    );
    let check = place.script.ran.lock()[1].clone();
    assert_eq!(
        (check.mode, check.timeout),
        (Mode::Edit, Duration::from_secs(600)),
        "lowered"
    );
}

#[tokio::test]
async fn each_refusal_has_its_reason() {
    let outside = tempfile::tempdir().unwrap();
    type Change = fn(&mut crate::config::Remote);
    let cases: [(Change, Value, i64, &str); 14] = [
        (|r| r.scheduled = false, json!({}), MONITOR, "off"),
        (|_| (), json!({ "mode": "plan" }), MONITOR, "plan"),
        (|_| (), json!({ "cwd": outside.path() }), MONITOR, "root"),
        (|_| (), json!({ "cwd": "relative" }), MONITOR, "root"),
        (|r| r.roots.clear(), json!({}), MONITOR, "root"),
        (|_| (), json!({ "timeout": 0 }), -32602, "params"),
        (|_| (), json!({ "timeout": 601 }), -32602, "params"),
        (|_| (), json!({ "timeout": 1.5 }), -32602, "params"),
        (|_| (), json!({ "confirm": 4 }), -32602, "params"),
        (|_| (), json!({ "command": " " }), -32602, "params"),
        (
            |_| (),
            json!({ "command": "x".repeat(70_000) }),
            -32602,
            "params",
        ),
        (|_| (), json!({ "fail_on": "zero" }), -32602, "params"),
        (|_| (), json!({ "run": "" }), -32602, "params"),
        (|_| (), json!({ "schedule": 7 }), -32602, "params"),
    ];
    for (change, more, code, why) in cases {
        let place = place(Script::default());
        place.set(change);
        let answer = place.ask(more.clone()).await;
        assert_eq!(reason(answer), (code, why.to_owned()), "{more}");
        assert!(place.script.ran.lock().is_empty(), "{more}");
    }
}

#[tokio::test]
async fn what_gives_no_hash_says_why() {
    for (unseen, why, recorded) in [
        (Unseen::Refused("no".to_owned()), "refused", false),
        (
            Unseen::Ask {
                why: "It asks".to_owned(),
                fix: "lembas allow --pending 3".to_owned(),
            },
            "ask",
            false,
        ),
        (Unseen::Spawn("no shell".to_owned()), "spawn", false),
        (Unseen::Timeout, "timeout", true),
        (Unseen::Background, "background", true),
        (
            Unseen::TooLong {
                exit: 3,
                bytes: 1 << 30,
            },
            "too_long",
            true,
        ),
        (Unseen::Stopped, "interrupted", true),
    ] {
        let script = Script::default();
        script
            .outcomes
            .lock()
            .extend([Err(unseen), Ok(seen("h", 0))]);
        let place = place(script);
        assert_eq!(
            reason(place.ask(json!({})).await),
            (MONITOR, why.to_owned())
        );
        // What ran is not run again for the same run; what did not is judged anew.
        assert_eq!(place.ask(json!({})).await.is_err(), recorded, "{why}");
    }
}

#[tokio::test]
async fn a_run_runs_once() {
    let place = place(Script::default());
    let (a, b) = tokio::join!(place.ask(json!({})), place.ask(json!({})));
    assert_eq!(a, b);
    assert_eq!(place.ask(json!({})).await, a);
    assert_eq!(place.script.ran.lock().len(), 1);
    let other = place.ask(json!({ "command": "du" })).await;
    assert_eq!(reason(other), (-32602, "key".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_new_hash_is_confirmed() {
    for (hashes, confirm, expected, unstable, runs) in [
        (&["old"][..], 2, "old", false, 1),
        (&["new", "new"], 2, "new", false, 2),
        (&["a", "b", "b"], 2, "b", false, 3),
        (&["a", "b", "c", "d"], 2, "c", true, 3),
        (&["a", "old"], 2, "old", true, 2),
        (&["a", "b"], 0, "a", false, 1),
    ] {
        let script = Script::default();
        script
            .outcomes
            .lock()
            .extend(hashes.iter().map(|hash| Ok(seen(hash, 0))));
        let place = place(script);
        let begun = clock::instant();
        let more = json!({ "last": "sha256:old", "confirm": confirm });
        let answer = place.ask(more).await.unwrap();
        assert_eq!(answer["hash"], format!("sha256:{expected}"), "{hashes:?}");
        assert_eq!(
            answer["unstable"].as_bool().unwrap_or(false),
            unstable,
            "{hashes:?}"
        );
        assert_eq!(place.script.ran.lock().len(), runs, "{hashes:?}");
        assert_eq!(
            begun.elapsed().as_secs(),
            5 * (runs as u64 - 1),
            "5 s apart"
        );
    }
}

#[tokio::test]
async fn a_nonzero_exit_fails_only_where_it_was_asked_for() {
    let script = Script::default();
    script.outcomes.lock().push_back(Ok(seen("h", 1)));
    let place = place(script);
    let plain = place.ask(json!({})).await.unwrap();
    assert_eq!(
        (plain["exit"].as_i64(), plain.get("failed")),
        (Some(1), None)
    );
    let strict = place
        .ask(json!({ "run": "r2", "fail_on": "nonzero" }))
        .await
        .unwrap();
    assert_eq!(strict["failed"], true);
}

#[tokio::test(start_paused = true)]
async fn one_a_schedule_four_a_computer_then_busy() {
    let gate = Arc::new(Notify::new());
    let place = place(Script {
        gate: Some(gate.clone()),
        ..Script::default()
    });
    let mut running = Vec::new();
    for n in 0..4 {
        let more = json!({ "schedule": format!("w{n}") });
        running.push(Tasks::new().spawn("check", place.ask(more)));
    }
    while place.script.ran.lock().len() < 4 {
        tokio::task::yield_now().await;
    }
    let begun = clock::instant();
    let fifth = place.ask(json!({ "schedule": "w5" })).await;
    assert_eq!(reason(fifth), (MONITOR, "busy".to_owned()));
    assert_eq!(begun.elapsed().as_secs(), 30);
    let same = place.ask(json!({ "schedule": "w0", "run": "other" })).await;
    assert_eq!(reason(same), (MONITOR, "busy".to_owned()));
    gate.notify_waiters();
    for task in running {
        assert!(task.await.unwrap().unwrap().is_ok());
    }
    assert_eq!(place.script.most.load(Ordering::SeqCst), 4);
}

#[tokio::test]
async fn a_folder_that_is_no_longer_shared_ends_its_check() {
    let place = place(Script {
        gate: Some(Arc::default()),
        ..Script::default()
    });
    let asked = place.ask(json!({}));
    let end = async {
        while place.script.ran.lock().is_empty() {
            tokio::task::yield_now().await;
        }
        place.set(|remote| remote.roots.clear());
        let limits = Limits::new(place.live.clone(), Arc::new(|| "z".to_owned()), "full");
        place.monitor.end(|cwd| limits.ends(cwd).is_some());
    };
    let (answer, ()) = tokio::join!(asked, end);
    assert_eq!(reason(answer), (MONITOR, "interrupted".to_owned()));
}
