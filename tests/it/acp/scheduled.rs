//! Scheduled sessions and watch commands over the wire.

use futures_util::future::BoxFuture;
use lembas::remote::{Check, Seen, Unseen, Watch};
use lembas::store::item::{Body, Source, Stop};
use serde_json::json;

use super::*;

/// Plays watch commands: each gives the same.
#[derive(Default)]
pub(crate) struct Played(Mutex<Vec<Check>>);

impl Watch for Played {
    fn check(&self, check: Check) -> BoxFuture<'static, Result<Seen, Unseen>> {
        self.0.lock().push(check);
        let seen = Seen {
            hash: "sha256:00".to_owned(),
            exit: 0,
            bytes: 0,
            excerpt: String::new(),
            truncated: false,
        };
        std::future::ready(Ok(seen)).boxed()
    }
}

fn run(schedule: &str, run: &str, more: Value) -> Value {
    let mut scheduled = json!({ "schedule": schedule, "run": run });
    if let (Value::Object(more), Some(scheduled)) = (more, scheduled.as_object_mut()) {
        scheduled.extend(more);
    }
    json!({ "scheduled": scheduled })
}

fn text(id: &str, text: &str) -> Value {
    json!({ "sessionId": id, "prompt": [{ "type": "text", "text": text }] })
}

#[tokio::test]
async fn each_refusal_fails_the_run_with_its_reason() {
    let place = Place::new();
    let client = place.instance().await;
    let new = |meta: Value| client.ask("session/new", new_in(&place, meta));
    assert_eq!(
        refused(new(run("w", "r", json!({}))).await),
        (-32050, "off".to_owned())
    );
    place.set(|remote| remote.scheduled = true);
    assert_eq!(
        refused(new(run("w", "r", json!({ "mode": "plan" }))).await),
        (-32050, "plan".to_owned())
    );
    for cwd in [json!("/etc"), json!(place.root().join("gone"))] {
        let mut params = new_in(&place, run("w", "r", json!({})));
        params["cwd"] = cwd;
        assert_eq!(
            refused(client.ask("session/new", params).await),
            (-32050, "root".to_owned())
        );
    }
    let mut params = new_in(&place, run("w", "r", json!({})));
    params["_meta"]["lembas"]
        .as_object_mut()
        .unwrap()
        .remove("model");
    assert_eq!(
        refused(client.ask("session/new", params).await),
        (-32050, "model".to_owned())
    );
    for wait in [59, 86_401] {
        let answer = new(run("w", "r", json!({ "approval_wait": wait }))).await;
        assert_eq!(refused(answer), (-32602, "params".to_owned()));
    }
    assert!(place.sessions.list.lock().is_empty());
}

#[tokio::test]
async fn every_request_of_a_scheduled_session_is_judged() {
    let place = Place::new();
    place.set(|remote| remote.scheduled = true);
    let client = place.instance().await;
    let new = client
        .ask(
            "session/new",
            new_in(&place, run("w", "r", json!({ "mode": "auto" }))),
        )
        .await
        .unwrap();
    assert_eq!(new["_meta"]["lembas"]["mode"], "edit", "lowered");
    assert_eq!(new["_meta"]["lembas"]["approval_wait"], 1800);
    let id = new["sessionId"].as_str().unwrap().to_owned();
    let set = client
        .ask(
            "session/set_mode",
            json!({ "sessionId": id, "modeId": "plan" }),
        )
        .await;
    assert_eq!(refused(set), (-32050, "plan".to_owned()));
    place.set(|remote| remote.scheduled = false);
    let load = json!({ "sessionId": id, "cwd": place.root(), "mcpServers": [] });
    for (method, params) in [
        ("session/load", load.clone()),
        ("session/resume", load),
        ("session/prompt", text(&id, "go")),
        (
            "session/set_mode",
            json!({ "sessionId": id, "modeId": "manual" }),
        ),
    ] {
        let error = client.ask(method, params).await.unwrap_err();
        assert_eq!(error.code, -32050, "{method}");
        assert_eq!(
            error.message,
            "This computer does not accept scheduled work. Turn on \"Accept scheduled work\" on it (lembas service scheduled on)."
        );
    }
}

#[tokio::test]
async fn a_run_reports_and_runs_once() {
    let place = Place::new();
    place.set(|remote| remote.scheduled = true);
    for (n, (reply, stop, status, kept)) in [
        ("All is well.", Stop::EndTurn, "ok", "All is well."),
        (
            "[SILENT]\nnothing new",
            Stop::EndTurn,
            "silent",
            "nothing new",
        ),
        ("", Stop::EndTurn, "failed", ""),
        ("half", Stop::Cancelled, "cancelled", "half"),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("r{n}");
        let client = place.instance().await;
        let open = || client.ask("session/new", new_in(&place, run("w", &name, json!({}))));
        let (first, second) = tokio::join!(open(), open());
        assert_eq!(first, second, "one session a run");
        let id = first.unwrap()["sessionId"].as_str().unwrap().to_owned();
        let fake = place.sessions.get(&id);
        let asked = client.ask("session/prompt", text(&id, "look around"));
        let turn = async {
            fake.prompted(1).await;
            fake.say("On it.");
            fake.add(Body::Step {
                model: "m1".to_owned(),
                note: None,
            });
            if !reply.is_empty() {
                fake.say(reply);
            }
            fake.finish(stop, None);
        };
        let (answer, ()) = tokio::join!(asked, turn);
        let answer = answer.unwrap();
        let report = json!({ "schedule": "w", "run": name, "status": status, "reply": kept });
        assert_eq!(answer["_meta"]["lembas"]["run"], report);
        // Asked again on another link, with the run as the key or with none.
        let later = place.instance().await;
        assert_eq!(
            later
                .ask("session/prompt", text(&id, "look around"))
                .await
                .unwrap(),
            answer
        );
        assert_eq!(
            later
                .ask("session/prompt", prompt(&id, "look around", &name))
                .await
                .unwrap(),
            answer
        );
        let prompts: Vec<Source> = fake
            .state
            .lock()
            .items
            .iter()
            .filter_map(|item| match item.body {
                Body::Prompt { source, .. } => Some(source),
                _ => None,
            })
            .collect();
        assert_eq!(prompts, [Source::Scheduled]);
    }
}

#[tokio::test]
async fn a_failed_run_says_so_in_its_error() {
    let place = Place::new();
    place.set(|remote| remote.scheduled = true);
    let client = place.instance().await;
    let new = client
        .ask("session/new", new_in(&place, run("w", "r", json!({}))))
        .await
        .unwrap();
    let id = new["sessionId"].as_str().unwrap();
    let fake = place.sessions.one();
    let asked = client.ask("session/prompt", text(id, "go"));
    let turn = async {
        fake.prompted(1).await;
        fake.finish(Stop::Failed, Some("the model is gone"));
    };
    let data = tokio::join!(asked, turn).0.unwrap_err().data.unwrap();
    assert_eq!(
        (data["run"]["status"].as_str(), data["reason"].as_str()),
        (Some("failed"), Some("failed"))
    );
    // A person goes on in the run's session, with a key of their own.
    let asked = client.ask("session/prompt", prompt(id, "and now?", "m-1"));
    let turn = async {
        fake.prompted(2).await;
        fake.finish(Stop::EndTurn, None);
    };
    let answer = tokio::join!(asked, turn).0.unwrap();
    assert_eq!(answer["_meta"]["lembas"].get("run"), None);
}

#[tokio::test]
async fn a_watch_command_is_checked_once_a_run() {
    let place = Place::new();
    let client = place.instance().await;
    let check = |run: &str| {
        let params = json!({ "schedule": "w", "run": run, "cwd": place.root(), "command": "df" });
        client.ask("_lembas/monitor", params)
    };
    assert_eq!(refused(check("r").await), (-32051, "off".to_owned()));
    place.set(|remote| remote.scheduled = true);
    let first = check("r").await.unwrap();
    assert_eq!(first["hash"], "sha256:00");
    assert_eq!(check("r").await.unwrap(), first);
    assert_eq!(place.watch.0.lock().len(), 1);
    check("r2").await.unwrap();
    let ran = place.watch.0.lock()[1].clone();
    assert_eq!((ran.grant.as_str(), ran.mode), ("g1", Mode::Edit));
}
