//! The areas `scheduled` and `monitor`.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use lembas::acp::{Keys, Limits as _, MemoryKeys};
use lembas::config::{Approvals, Config, Live, Mode, Remote, Sudo};
use lembas::exec::hash_of;
use lembas::ids::SessionId;
use lembas::permission::testing::Fixed;
use lembas::permission::{
    Action, Attended, Command, Context, Engine, Origin, Purpose, Request, Strength, Verdict,
};
use lembas::remote::{Check, Limits, Monitor, Seen, Unseen, Watch};
use lembas::rpc::RpcError;
use lembas::rt::Tasks;
use lembas::spec::{Spec, run_status};
use lembas::store::item::Stop;
use parking_lot::Mutex;
use serde_json::{Value, json};

pub(super) fn scheduled(given: &Value) -> Value {
    if let Some(end) = given.get("end") {
        let stop: Stop = serde_json::from_value(end["stop"].clone()).unwrap();
        let sentinel = &Spec::embedded().numbers.scheduled.sentinel;
        let end_of = stop.of_run(end["reason"].as_str());
        let (status, reply) = run_status(end_of, end["reply"].as_str().unwrap(), sentinel);
        return json!({ "status": status, "reply": reply });
    }
    let open = &given["open"];
    let settings = &open["settings"];
    let mut remote = Remote {
        scheduled: settings["scheduled"].as_bool().unwrap(),
        max_mode: mode(&settings["max_mode"]),
        ..Remote::default()
    };
    if let Some(most) = settings["approval_max"].as_u64() {
        remote.approval_max = most;
    }
    let asked = serde_json::from_value(open["scheduled"].clone()).unwrap();
    match limits(remote).schedule(&asked) {
        Ok((run, mode)) => json!({
            "mode": mode.mode, "lowered": mode.lowered, "approval_wait": run.approval_wait,
        }),
        // The texts of mistakes are free; those of refusals are in loop.json.
        Err(no) if no.code == RpcError::INVALID_PARAMS => {
            json!({ "code": no.code, "reason": no.reason })
        }
        Err(no) => json!({ "code": no.code, "reason": no.reason, "text": no.text }),
    }
}

pub(super) fn monitor(given: &Value) -> Value {
    if let Some(output) = given.get("output") {
        let exit = i32::try_from(output["exit"].as_i64().unwrap()).unwrap();
        return json!({ "hash": hash_of(exit, &bytes(output)) });
    }
    if let Some(judge) = given.get("judge") {
        return json!({ "judged": judged(judge) });
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        // The pauses between two looks pass at once.
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(checked(&given["check"]))
}

fn mode(value: &Value) -> Mode {
    serde_json::from_value(value.clone()).unwrap()
}

fn limits(remote: Remote) -> Limits {
    let config = Config {
        remote,
        ..Config::default()
    };
    Limits::new(Live::new(config), Arc::new(|| "zephyr".to_owned()), "full")
}

fn bytes(output: &Value) -> Vec<u8> {
    if let Some(text) = output["text"].as_str() {
        return text.as_bytes().to_vec();
    }
    let hex = output["hex"].as_str().unwrap();
    (0..hex.len() / 2)
        .map(|at| u8::from_str_radix(&hex[at * 2..at * 2 + 2], 16).unwrap())
        .collect()
}

/// Judged as over the link, where nobody is asked.
fn judged(given: &Value) -> &'static str {
    let strength = match given["box"].as_str().unwrap() {
        "full" => Strength::Full,
        "none" => Strength::None,
        other => panic!("{other}"),
    };
    let engine = Engine::with(Arc::new(Fixed {
        strength,
        ..Fixed::default()
    }));
    let root = PathBuf::from("/home/ana/work");
    let request = Request {
        tool: "monitor".to_owned(),
        action: Action::Execute(Command {
            text: given["command"].as_str().unwrap().to_owned(),
            timeout: Duration::from_secs(60),
            purpose: Purpose::Monitor,
            open: None,
        }),
        cwd: root.clone(),
    };
    let context = Context {
        session: SessionId::new("schedule w-1"),
        origin: Origin::Remote {
            instance: "i".to_owned(),
            grant: "g".to_owned(),
        },
        mode: mode(&given["mode"]),
        roots: vec![root],
        attended: Attended::Nobody,
        approvals: Approvals::Once,
        sudo: Sudo::Refuse,
        released: vec![],
    };
    match engine.judge(&request, &context, &[]) {
        Verdict::Allow(_) => "runs",
        Verdict::Refuse(no) if no.layer == "unattended" => "asks",
        Verdict::Refuse(_) => "refused",
        Verdict::Ask(_) => panic!("nobody is there to be asked"),
    }
}

/// Plays a command: each run gives the next result.
#[derive(Default)]
struct Played {
    results: Mutex<VecDeque<Value>>,
    ran: Mutex<u64>,
}

impl Watch for Played {
    fn check(&self, _: Check) -> BoxFuture<'static, Result<Seen, Unseen>> {
        *self.ran.lock() += 1;
        let result = self.results.lock().pop_front().unwrap();
        std::future::ready(seen(&result)).boxed()
    }
}

fn seen(result: &Value) -> Result<Seen, Unseen> {
    let Some(error) = result["error"].as_str() else {
        return Ok(Seen {
            hash: result["hash"].as_str().unwrap().to_owned(),
            exit: i32::try_from(result["exit"].as_i64().unwrap()).unwrap(),
            bytes: 0,
            excerpt: String::new(),
            truncated: false,
        });
    };
    Err(match error {
        "timeout" => Unseen::Timeout,
        "background" => Unseen::Background,
        "too_long" => Unseen::TooLong { exit: 1, bytes: 1 },
        "spawn" => Unseen::Spawn("why".to_owned()),
        "refused" => Unseen::Refused("why".to_owned()),
        "ask" => Unseen::Ask {
            why: "why".to_owned(),
            fix: "fix".to_owned(),
        },
        "interrupted" => Unseen::Stopped,
        other => panic!("{other}"),
    })
}

async fn checked(given: &Value) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let limits = limits(Remote {
        scheduled: given["scheduled"].as_bool().unwrap_or(true),
        max_mode: Mode::Edit,
        roots: vec![folder.path().canonicalize().unwrap()],
        ..Remote::default()
    });
    let played = Arc::new(Played::default());
    let results = given["results"].as_array().unwrap();
    played.results.lock().extend(results.iter().cloned());
    let keys = Keys::new(Arc::new(MemoryKeys::default()), &Tasks::new());
    let monitor = Monitor::new(limits, keys, played.clone());
    let mut params = json!({
        "schedule": "w-1", "run": "r-1", "cwd": folder.path(), "command": "./check.sh",
    });
    let more = given["params"].as_object().unwrap().clone();
    params.as_object_mut().unwrap().extend(more);
    let answer = monitor.answer("i".to_owned(), "g".to_owned(), params);
    let mut said = match answer.await {
        Ok(answer) => {
            let told = ["hash", "exit", "unstable", "failed"];
            let told = told
                .iter()
                .filter_map(|key| Some((*key, answer.get(*key)?)));
            told.map(|(key, value)| (key.to_owned(), value.clone()))
                .collect()
        }
        Err(error) => {
            let reason = error.data.unwrap()["reason"].clone();
            json!({ "code": error.code, "reason": reason })
        }
    };
    said["ran"] = json!(*played.ran.lock());
    said
}
