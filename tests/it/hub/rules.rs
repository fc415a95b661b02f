//! What a computer allows always, on the page's side: its list, and taking a rule back.

use lembas::rpc::RpcError;
use reqwest::Method;
use serde_json::{Value, json};

use super::device::{Device, Dial};
use super::rig::{Rig, soon};

const ID: &str = "0123456789abcdef";

fn rule(id: &str, verdict: &str) -> Value {
    json!({ "id": id, "words": "cargo test *, boxed, in this folder.", "verdict": verdict,
            "folder": "/home/ana/projects/api", "origin": "instance", "by": "you, on this computer",
            "at": 1_764_512_500_000_i64, "used": 1_764_512_560_000_i64 })
}

fn told(rules: &[Value], total: usize) -> Result<Value, RpcError> {
    Ok(json!({ "rules": rules, "total": total, "now": 1_764_512_600_000_i64 }))
}

async fn linked(rig: &Rig, token: &str, rules: &[Value]) -> Device {
    let dial = Dial {
        own: "_lembas/rules",
        ..Dial::new(ID, token)
    };
    let mut device = dial.go(rig).await.expect("linked");
    let asked = device.next("_lembas/rules").await;
    device.can("_lembas/rules", told(rules, rules.len()));
    asked.answer.send(told(rules, rules.len())).unwrap();
    device
}

/// The list as the page gets it, once it is as wanted.
async fn list(rig: &Rig, want: impl Fn(&Value) -> bool) -> Value {
    let wait = async {
        loop {
            let list = rig.get(&format!("/devices/{ID}/rules")).await;
            if want(&list) {
                return list;
            }
            tokio::task::yield_now().await;
        }
    };
    soon(wait).await
}

fn rows(list: &Value) -> usize {
    list["rules"].as_array().unwrap().len()
}

async fn remove(rig: &Rig, id: &str) -> (u16, Value) {
    let path = format!("/devices/{ID}/rules/{id}");
    let (status, body) = rig.call(Method::DELETE, &path, None).await;
    (status.as_u16(), body)
}

#[tokio::test]
async fn a_list_is_told_as_it_changes_and_a_rule_goes_at_once() {
    let rig = Rig::signed().await;
    let (_, token) = rig.pair(ID, "zephyr").await;
    let empty = rig.get(&format!("/devices/{ID}/rules")).await;
    assert_eq!(
        (&empty["rules"], &empty["heard"]),
        (&json!([]), &Value::Null)
    );
    let mut device = linked(&rig, &token, &[rule("r1", "allow"), rule("r2", "deny")]).await;
    let mut events = rig.events(None).await;
    let got = list(&rig, |l| rows(l) == 2).await;
    let first = &got["rules"][0];
    assert_eq!(
        (
            &first["id"],
            &first["by"],
            &first["folder_words"],
            &first["waits"]
        ),
        (
            &json!("r1"),
            &json!("you, on zephyr"),
            &json!("~/projects/api"),
            &json!(false)
        )
    );
    assert!(got["heard"].is_i64());

    // Another one is made there: the page hears that there is something new.
    device.can(
        "_lembas/rules",
        told(
            &[rule("r3", "allow"), rule("r1", "allow"), rule("r2", "deny")],
            9,
        ),
    );
    device
        .peer
        .notify("_lembas/rules/changed", json!({}))
        .await
        .unwrap();
    let event = events
        .until(|e| (e["type"] == "rules").then(|| e.clone()))
        .await;
    assert_eq!(event["device"], ID);
    let got = list(&rig, |l| rows(l) == 3).await;
    assert_eq!(
        (&got["total"], &got["cut"]),
        (&json!(9), &json!(6)),
        "what is not kept here is said"
    );

    // A no is taken back on the computer alone, and the computer is not even asked.
    let (status, body) = remove(&rig, "r2").await;
    assert_eq!(
        (status, &body["error"]["try"]),
        (422, &json!("lembas rules remove r2"))
    );
    assert_eq!(remove(&rig, "r9").await.0, 404);
    let (status, body) = remove(&rig, "r1").await;
    assert_eq!((status, &body["state"]), (202, &json!("sent")));
    let asked = device.next("_lembas/rules/remove").await;
    assert_eq!(asked.params, json!({ "id": "r1" }));
    assert_eq!(
        list(&rig, |_| true).await["rules"][1]["waits"],
        true,
        "not said as done before it is"
    );
    asked.answer.send(Ok(json!({ "removed": true }))).unwrap();
    let got = list(&rig, |l| rows(l) == 2).await;
    assert_eq!(got["rules"][0]["id"], "r3");

    // What the computer refuses is told in its words, and can be tried again.
    device.can(
        "_lembas/rules/remove",
        Err(RpcError::new(-32053, "no")
            .with_data(json!({ "reason": "deny", "text": "Only here." }))),
    );
    remove(&rig, "r3").await;
    let got = list(&rig, |l| l["rules"][0]["why"].is_string()).await;
    assert_eq!(
        (&got["rules"][0]["why"], &got["rules"][0]["waits"]),
        (&json!("Only here."), &json!(false))
    );
    device.can("_lembas/rules/remove", Err(RpcError::new(-32004, "gone")));
    remove(&rig, "r3").await;
    list(&rig, |l| rows(l) == 1).await;
}

#[tokio::test]
async fn a_removal_waits_for_a_computer_that_is_away_and_is_said_once() {
    let mut rig = Rig::signed().await;
    let (_, token) = rig.pair(ID, "zephyr").await;
    let rules = [rule("r1", "allow"), rule("r2", "allow")];
    let device = linked(&rig, &token, &rules).await;
    list(&rig, |l| rows(l) == 2).await;
    device.leaves(&rig, ID).await;
    for _ in 0..2 {
        let (status, body) = remove(&rig, "r1").await;
        assert_eq!((status, &body["state"]), (202, &json!("waits")));
    }
    // It is kept like a message: also over a restart.
    rig.restart().await;
    assert_eq!(list(&rig, |_| true).await["rules"][0]["waits"], true);
    let mut device = linked(&rig, &token, &rules).await;
    let asked = device.next("_lembas/rules/remove").await;
    assert_eq!(asked.params, json!({ "id": "r1" }));
    device.can("_lembas/rules", told(&[rule("r2", "allow")], 1));
    asked.answer.send(Ok(json!({ "removed": true }))).unwrap();
    list(&rig, |l| rows(l) == 1).await;
    // Said once: what comes next is about the other one.
    remove(&rig, "r2").await;
    let asked = device.next("_lembas/rules/remove").await;
    assert_eq!(asked.params, json!({ "id": "r2" }));
}

#[tokio::test]
async fn a_rule_that_went_there_needs_no_removal_any_more() {
    let rig = Rig::signed().await;
    let (_, token) = rig.pair(ID, "zephyr").await;
    let device = linked(&rig, &token, &[rule("r1", "allow")]).await;
    list(&rig, |l| rows(l) == 1).await;
    device.leaves(&rig, ID).await;
    remove(&rig, "r1").await;
    let _device = linked(&rig, &token, &[]).await;
    list(&rig, |l| rows(l) == 0).await;
}
