//! Work without a person: what the page may ask for, and what it hears.

use lembas::rpc::RpcError;
use reqwest::Method;
use serde_json::{Value, json};

use super::device::Device;
use super::rig::{Rig, soon};

const ID: &str = "0123456789abcdef";

async fn linked() -> (Rig, Device) {
    let rig = Rig::signed().await;
    let (id, token) = rig.pair(ID, "zephyr").await;
    let device = Device::linked(&rig, &id, &token).await;
    (rig, device)
}

fn check(more: Value) -> Value {
    let mut body = json!({ "cwd": "/home/ana/projects", "command": "df" });
    body.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    body
}

fn run(more: Value) -> Value {
    let mut body = json!({
        "cwd": "/home/ana/projects", "text": "look around", "model": "practice", "key": "run-00001",
    });
    body.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    body
}

#[tokio::test]
async fn what_cannot_be_is_said_before_the_computer_hears_of_it() {
    let rig = Rig::signed().await;
    rig.pair(ID, "zephyr").await;
    // The computer is away: bad input is told all the same.
    let long = "x".repeat(70_000);
    for (path, body, text) in [
        ("monitor", json!([]), "The request cannot be read."),
        (
            "monitor",
            json!({ "cwd": "/a" }),
            "The request cannot be read.",
        ),
        (
            "monitor",
            check(json!({ "timeout": 1.5 })),
            "The request cannot be read.",
        ),
        (
            "monitor",
            check(json!({ "schedule": "mine" })),
            "The request cannot be read.",
        ),
        (
            "monitor",
            check(json!({ "cwd": " " })),
            "There is no folder.",
        ),
        (
            "monitor",
            check(json!({ "cwd": "projects" })),
            "projects is not the whole path of a folder.",
        ),
        (
            "monitor",
            check(json!({ "command": "\n" })),
            "There is no command.",
        ),
        (
            "monitor",
            check(json!({ "command": long })),
            "A command has at most 64 KiB.",
        ),
        (
            "monitor",
            check(json!({ "mode": "plan" })),
            "A schedule does not run in Plan mode: nobody is there to approve the plan. Choose Manual, Edit or Auto.",
        ),
        (
            "monitor",
            check(json!({ "mode": "root" })),
            "The request cannot be read.",
        ),
        (
            "monitor",
            check(json!({ "timeout": 0 })),
            "The time of a check is 1 to 600 seconds.",
        ),
        (
            "monitor",
            check(json!({ "timeout": 601 })),
            "The time of a check is 1 to 600 seconds.",
        ),
        (
            "monitor",
            check(json!({ "confirm": 4 })),
            "A change is looked at again 0 to 3 times.",
        ),
        (
            "monitor",
            check(json!({ "last": "md5:1" })),
            "The last hash is sha256: and 64 hex digits, as a check gave it.",
        ),
        (
            "monitor",
            check(json!({ "fail_on": "zero" })),
            "The request cannot be read.",
        ),
        (
            "monitor",
            check(json!({ "excerpt": "some" })),
            "The request cannot be read.",
        ),
        ("scheduled", json!("go"), "The request cannot be read."),
        (
            "scheduled",
            run(json!({ "key": "short" })),
            "A key has 8 to 128 letters and digits.",
        ),
        (
            "scheduled",
            run(json!({ "cwd": "" })),
            "There is no folder.",
        ),
        (
            "scheduled",
            run(json!({ "text": "  " })),
            "It is not said what should be done.",
        ),
        (
            "scheduled",
            run(json!({ "model": "" })),
            "There is no model.",
        ),
        (
            "scheduled",
            run(json!({ "mode": "plan" })),
            "A schedule does not run in Plan mode: nobody is there to approve the plan. Choose Manual, Edit or Auto.",
        ),
        (
            "scheduled",
            run(json!({ "approval_wait": 59 })),
            "An answer is waited for 60 to 86400 seconds.",
        ),
        (
            "scheduled",
            run(json!({ "approval_wait": 86_401 })),
            "An answer is waited for 60 to 86400 seconds.",
        ),
    ] {
        let path = format!("/devices/{ID}/{path}");
        let (status, said) = rig.call(Method::POST, &path, Some(body.clone())).await;
        let shown: String = body.to_string().chars().take(200).collect();
        assert!(
            [400, 422].contains(&status.as_u16()),
            "{shown}: {status} {said}"
        );
        assert_eq!(said["error"]["code"], "bad_request", "{shown}: {said}");
        assert_eq!(said["error"]["text"], text, "{shown}");
    }
    for (path, body) in [("monitor", check(json!({}))), ("scheduled", run(json!({})))] {
        let (status, said) = rig
            .call(
                Method::POST,
                &format!("/devices/{ID}/{path}"),
                Some(body.clone()),
            )
            .await;
        assert_eq!(status, 409, "{said}");
        assert_eq!(said["error"]["code"], "away");
        assert_eq!(said["error"]["text"], "zephyr is away.");
        let (status, said) = rig
            .call(Method::POST, &format!("/devices/nobody/{path}"), Some(body))
            .await;
        assert_eq!(status, 404, "{said}");
    }
}

#[tokio::test]
async fn a_check_goes_to_the_computer_and_its_answer_comes_back() {
    let (rig, mut device) = linked().await;
    let path = format!("/devices/{ID}/monitor");
    let answer = json!({
        "hash": "sha256:00", "exit": 0, "bytes": 3, "excerpt": "a\n", "truncated": false, "duration_ms": 4,
    });
    let last = format!("sha256:{}", "0".repeat(64));
    let more = json!({ "mode": "auto", "timeout": 600, "confirm": 3, "last": last,
                       "fail_on": "nonzero", "excerpt": "none" });
    let asked = rig.post(&path, check(more.clone()));
    let play = async {
        let asked = device.next("_lembas/monitor").await;
        let mut params = asked.params;
        let map = params.as_object_mut().unwrap();
        let run = map.remove("run").unwrap();
        assert_eq!(run.as_str().unwrap().len(), 16);
        let schedule = map.remove("schedule").unwrap();
        assert!(schedule.as_str().unwrap().starts_with("page-"));
        assert_eq!(params, check(more));
        asked.answer.send(Ok(answer.clone())).unwrap();
    };
    let (said, ()) = tokio::join!(asked, play);
    assert_eq!(said, answer);

    // What the computer says instead comes with its words and what helps.
    let refusal = |reason: &str, text: &str, fix: Option<&str>| {
        let mut data = json!({ "reason": reason, "text": text });
        if let Some(fix) = fix {
            data["try"] = fix.into();
        }
        RpcError::new(-32051, text).with_data(data)
    };
    for (reason, fix) in [
        ("off", Some("lembas service scheduled on")),
        ("ask", Some("lembas allow --pending 3")),
        ("timeout", None),
        ("too_long", None),
    ] {
        device.can(
            "_lembas/monitor",
            Err(refusal(reason, "Not this time.", fix)),
        );
        let (status, said) = rig.call(Method::POST, &path, Some(check(json!({})))).await;
        assert_eq!(status, 422);
        let error = &said["error"];
        assert_eq!(
            (
                &error["code"],
                &error["reason"],
                &error["text"],
                &error["number"]
            ),
            (
                &json!("refused"),
                &json!(reason),
                &json!("Not this time."),
                &json!(-32051)
            )
        );
        let said = error["try"].as_str().unwrap();
        // Where the computer gives no line to type, what helps is told by its reason.
        match fix {
            Some(fix) => assert_eq!(said, fix),
            None => assert!(said.ends_with('.') && !said.contains("allows"), "{said}"),
        }
    }

    // The link that breaks off while a check runs is no result.
    device.leave("_lembas/monitor");
    let asked = rig.call(Method::POST, &path, Some(check(json!({}))));
    let drop = async {
        let _asked = device.next("_lembas/monitor").await;
        device.peer.close(1001, "stopping");
    };
    let ((status, said), ()) = soon(async { tokio::join!(asked, drop) }).await;
    assert_eq!(
        (status.as_u16(), &said["error"]["code"]),
        (409, &json!("away")),
        "{said}"
    );
}

#[tokio::test]
async fn a_run_is_opened_once_and_prompted_with_itself_as_the_key() {
    let (rig, mut device) = linked().await;
    let path = format!("/devices/{ID}/scheduled");
    let opened = json!({
        "sessionId": "s1", "modes": { "currentModeId": "edit", "availableModes": [{ "id": "edit" }] },
        "_meta": { "lembas": { "model": "practice", "mode": "edit", "seq": 0, "lowered": "max_mode" } },
    });
    let body = run(json!({ "mode": "auto", "approval_wait": 600 }));
    let asked = rig.post(&path, body.clone());
    let play = async {
        let new = device.next("session/new").await;
        let scheduled = &new.params["_meta"]["lembas"]["scheduled"];
        assert_eq!(scheduled["run"], "run-00001");
        assert_eq!(scheduled["mode"], "auto");
        assert_eq!(scheduled["approval_wait"], 600);
        new.answer.send(Ok(opened)).unwrap();
    };
    let (said, ()) = tokio::join!(asked, play);
    assert_eq!(said["run"], "run-00001");
    assert_eq!(said["chat"]["origin"], "schedule");
    assert_eq!(said["chat"]["mode"], "edit", "lowered");
    let prompt = device.next("session/prompt").await;
    assert_eq!(prompt.params["_meta"]["lembas"]["key"], "run-00001");
    assert_eq!(prompt.params["prompt"][0]["text"], "look around");
    // The same run again is the same chat, and nothing is opened or asked twice.
    let again = rig.post(&path, body).await;
    assert_eq!(again["chat"]["id"], said["chat"]["id"]);
    let mut later = rig.get("/state").await;
    assert_eq!(later["chats"].as_array_mut().unwrap().len(), 1);
    assert!(device.asked.try_recv().is_err(), "it was asked twice");

    let error = RpcError::new(-32050, "no").with_data(json!({
        "reason": "root", "text": "This computer does not share /srv.", "path": "/srv",
    }));
    device.can("session/new", Err(error));
    let body = run(json!({ "key": "run-00002", "cwd": "/srv" }));
    let (status, said) = rig.call(Method::POST, &path, Some(body)).await;
    assert_eq!(status, 422);
    assert_eq!(said["error"]["text"], "This computer does not share /srv.");
    assert_eq!(said["error"]["try"], "lembas roots add /srv");
}
