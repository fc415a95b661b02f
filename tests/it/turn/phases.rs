//! What a session is doing, phase by phase: the event on the link, the answer of `_lembas/status`
//! and the words of `lembas status` are of one cause. The model waits at a gate in each phase.

use std::collections::BTreeSet;
use std::sync::Arc;

use lembas::agent::About;
use lembas::daemon::status::phase;
use lembas::session::{Phase, Progress};
use lembas::testing::model::{Act, Reply, call, done, finish, say, think};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::home::{Home, bash, soon};
use super::wire::{Daemon, open, prompt};
use crate::acp::client::{Client, Heard};

/// One session, watched over a link.
struct Watched<'a> {
    client: &'a Client,
    id: String,
    /// Phases that were heard and found in the status, with their words.
    seen: BTreeSet<String>,
}

impl Watched<'_> {
    /// Waits for the event of a phase, then compares the status and the words. What is asked on
    /// the way is given back.
    async fn phase(&mut self, wanted: &str, words: &str) -> (Value, Option<Value>) {
        let mut asked = None;
        let event = soon(async {
            loop {
                match self.client.hear().await {
                    Heard::Notice(method, params) if method == "_lembas/event" => {
                        if params["type"] == "phase" && params["data"]["phase"] == wanted {
                            assert_eq!(params["sessionId"], self.id);
                            return params["data"].clone();
                        }
                    }
                    Heard::Notice(..) => {}
                    Heard::Asked(ask) => asked = Some(ask.params["_meta"]["lembas"].clone()),
                }
            }
        })
        .await;
        assert!(event["since"].as_i64().unwrap() > 0, "{event}");
        let of = json!({ "sessionId": self.id });
        let status = self.client.ask("_lembas/status", of).await.unwrap();
        assert_eq!(status["progress"], event, "{status}");
        let progress: Progress = serde_json::from_value(event.clone()).unwrap();
        let said = phase(&progress);
        assert!(said.starts_with(words), "{said}");
        self.seen.insert(wanted.to_owned());
        (event, asked)
    }
}

fn hint(text: &str) -> Act {
    Act::Line(format!(": {{\"lembas\":{text}}}\n\n"))
}

fn wait(gate: &Arc<Semaphore>) -> Act {
    Act::Wait(Arc::clone(gate))
}

#[tokio::test]
async fn a_turn_tells_every_phase_that_has_a_cause() {
    let home = Home::new().await;
    home.share(|_| ());
    let daemon = Daemon::start(&home).await;
    let client = daemon.instance().await;
    let id = open(&client, &home, json!({})).await;
    let from = json!({ "sessionId": id, "seq": 0, "at": 0 });
    client.ask("_lembas/follow", from).await.unwrap();
    let mut it = Watched {
        client: &client,
        id: id.clone(),
        seen: BTreeSet::new(),
    };
    let gate = Arc::new(Semaphore::new(0));
    home.model.play([
        Reply::stream(vec![
            wait(&gate),
            hint(r#"{"phase":"queued","position":2}"#),
            wait(&gate),
            hint(r#"{"phase":"loading_model","percent":40}"#),
            wait(&gate),
            hint(r#"{"phase":"reading_prompt","tokens":10,"total":90}"#),
            wait(&gate),
            think("Hm."),
            wait(&gate),
            say("I run it."),
            wait(&gate),
            call(0, "bash", r#"{"command":"gate one"}"#),
            finish("tool_calls"),
            done(),
        ]),
        Reply::calls(&[bash("ask two")]),
        Reply::text("Done."),
    ]);
    let asking = client.peer.clone();
    let turn = tokio::spawn({
        let params = prompt(&id, "k1", "go");
        async move { asking.request("session/prompt", params).await }
    });
    let (event, _) = it.phase("waiting_for_model", "waits for m").await;
    assert_eq!(event["model"], "m");
    for (name, words) in [
        ("queued", "waits for its turn"),
        ("loading_model", "loading m"),
        ("reading_prompt", "reading the prompt"),
        ("thinking", "thinking"),
        ("writing", "writing"),
    ] {
        gate.add_permits(1);
        let (event, _) = it.phase(name, words).await;
        let data = match name {
            "queued" => &event["position"] == 2,
            "loading_model" => &event["percent"] == 40,
            "reading_prompt" => &event["total"] == 90,
            _ => true,
        };
        assert!(data, "{event}");
    }
    gate.add_permits(1);
    let (event, _) = it.phase("running_tool", "running gate one").await;
    assert_eq!(
        (&event["tool"], &event["call"]),
        (&json!("bash"), &json!("0001"))
    );
    home.world.gate.add_permits(1);
    let (event, asked) = it.phase("waiting_for_person", "waits for you").await;
    assert_eq!(event["kind"], "execute");
    let asked = match asked {
        Some(asked) => asked,
        None => client.asked().await.params["_meta"]["lembas"].clone(),
    };
    assert_eq!(asked["ask"], event["ask"]);
    let answer = json!({
        "ask": asked["ask"], "digest": asked["digest"], "outcome": "allow", "by": "ana",
    });
    client.ask("_lembas/answer", answer).await.unwrap();
    assert_eq!(turn.await.unwrap().unwrap()["stopReason"], "end_turn");
    let of = json!({ "sessionId": id });
    let status = client.ask("_lembas/status", of).await.unwrap();
    assert_eq!(status["progress"], Value::Null, "nothing is done: {status}");

    // The next request is too long for the model now, so the conversation is shortened first.
    *home.about.lock() = About {
        context: Some(4_000),
        images: None,
    };
    let all: String = (0..2_000).map(|n| format!("thing {n} is told ")).collect();
    home.model.play([
        Reply::text(&all),
        Reply::stream(vec![
            wait(&gate),
            say("They want two."),
            finish("stop"),
            done(),
        ]),
        // A pause that nobody sees the end of: the turn is stopped in it.
        Reply::error(503, "text/plain", "busy").header("retry-after", "60"),
    ]);
    let long = client.ask("session/prompt", prompt(&id, "k2", "tell me all"));
    assert_eq!(long.await.unwrap()["stopReason"], "end_turn");
    let asking = client.peer.clone();
    let turn = tokio::spawn({
        let params = prompt(&id, "k3", "and now");
        async move { asking.request("session/prompt", params).await }
    });
    it.phase("compacting", "making room in its memory").await;
    gate.add_permits(1);
    let (event, _) = it
        .phase("retrying", "trying again: the model's server answered 503")
        .await;
    assert_eq!(event["attempt"], 2);
    assert!(event["at"].as_i64() > event["since"].as_i64(), "{event}");
    let stop = json!({ "sessionId": id, "key": "k3" });
    client.ask("_lembas/stop", stop).await.unwrap();
    it.phase("stopped", "stopped").await;
    assert_eq!(turn.await.unwrap().unwrap()["stopReason"], "cancelled");

    // What cannot be tried again ends the turn.
    home.model
        .play([Reply::error(401, "text/plain", "who are you")]);
    let failed = client.ask("session/prompt", prompt(&id, "k4", "once more"));
    let (failed, (event, _)) = tokio::join!(failed, it.phase("failed", "failed: "));
    failed.unwrap_err();
    assert!(!event["reason"].as_str().unwrap().is_empty());

    // All thirteen of progress.md but the one that needs subagents.
    let all = [
        Phase::Queued,
        Phase::WaitingForModel,
        Phase::LoadingModel,
        Phase::ReadingPrompt,
        Phase::Thinking,
        Phase::Writing,
        Phase::RunningTool,
        Phase::WaitingForPerson,
        Phase::Compacting,
        Phase::Retrying,
        Phase::Stopped,
        Phase::Failed,
    ];
    let all = all.map(|phase| json!(phase).as_str().unwrap().to_owned());
    assert_eq!(it.seen, BTreeSet::from(all));
    daemon.stop().await;
}
