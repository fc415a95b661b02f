//! What is allowed always, over the link: listed, told of, taken back (Q15 to Q18).

use lembas::agent::origin_text;
use lembas::permission::{Origin, Rule};
use lembas::store::device::rules::RuleRow;
use serde_json::json;

use super::*;
use crate::schema::Schema;

fn row(id: &str, origin: &Origin, made: i64, data: Value) -> RuleRow {
    RuleRow {
        id: id.to_owned(),
        origin: origin_text(origin),
        session: None,
        made,
        by: "you, on this computer".to_owned(),
        data,
        used: None,
    }
}

/// A yes to `cargo test` in `/srv/api`.
fn yes(id: &str, origin: &Origin, made: i64) -> RuleRow {
    let data = json!({
        "allow": true, "cwd": "/srv/api", "origin": origin, "box": "roots",
        "patterns": [{ "kind": "prefix", "words": ["cargo", "test"] }], "from": "cargo test login",
    });
    row(id, origin, made, data)
}

async fn list(client: &Client, params: Value) -> Value {
    let answer = client.ask("_lembas/rules", params).await.unwrap();
    let wrong = Schema::read("schema/link.json").check_def("rules.result", &answer);
    assert_eq!(wrong, Vec::<String>::new());
    answer
}

fn ids(answer: &Value) -> Vec<&str> {
    let rules = answer["rules"].as_array().unwrap();
    rules
        .iter()
        .map(|rule| rule["id"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn what_is_allowed_always_is_listed_and_taken_back() {
    let place = Place::new();
    let (mine, other) = (instance("g1"), instance("g2"));
    place
        .rules
        .add_rule(yes("mine", &mine, 1_000))
        .await
        .unwrap();
    place
        .rules
        .add_rule(yes("theirs", &other, 2_000))
        .await
        .unwrap();
    place
        .rules
        .add_rule(yes("local", &Origin::Local, 3_000))
        .await
        .unwrap();
    let no = Rule::refuse(&["git".to_owned(), "push".to_owned()], "/srv".as_ref());
    let deny = row("deny", &Origin::Local, 4_000, no.data);
    place.rules.add_rule(deny).await.unwrap();
    // Answers from here make no rules, and the list is readable all the same; paused, too.
    place.set(|remote| remote.approvals = lembas::config::Approvals::Once);
    let client = place.instance().await;
    place.set(|remote| remote.enabled = false);
    let answer = list(&client, Value::Null).await;
    assert_eq!(
        ids(&answer),
        ["deny", "mine"],
        "its own, and noes that count for all"
    );
    assert_eq!(answer["total"], 2);
    let rule = &answer["rules"][1];
    assert_eq!(
        (
            &rule["verdict"],
            &rule["origin"],
            &rule["folder"],
            &rule["at"]
        ),
        (
            &json!("allow"),
            &json!("instance"),
            &json!("/srv/api"),
            &json!(1_000)
        )
    );
    assert_eq!(rule["command"], "cargo test login");
    assert_eq!(rule.get("used"), None);
    assert!(
        rule["words"]
            .as_str()
            .unwrap()
            .starts_with("cargo test *, boxed, in this folder.")
    );
    let no = &answer["rules"][0];
    assert_eq!(
        (&no["verdict"], &no["origin"]),
        (&json!("deny"), &json!("local"))
    );
    assert_eq!(
        no["words"],
        "Refused: git push *, in this folder and those in it."
    );

    // It was used; within a minute that is noted once.
    place
        .rules
        .rules_used(vec!["mine".to_owned()], 500_000)
        .await
        .unwrap();
    place
        .rules
        .rules_used(vec!["mine".to_owned()], 530_000)
        .await
        .unwrap();
    assert_eq!(list(&client, json!({})).await["rules"][1]["used"], 500_000);

    let remove = |id: &str| client.ask("_lembas/rules/remove", json!({ "id": id }));
    for gone in ["theirs", "local", "never was"] {
        assert_eq!(
            refused(remove(gone).await),
            (-32004, "unknown".to_owned()),
            "{gone}"
        );
    }
    let error = remove("deny").await.unwrap_err();
    let data = error.data.unwrap();
    assert_eq!((error.code, &data["reason"]), (-32053, &json!("deny")));
    assert_eq!(data["try"], "lembas rules remove deny");
    assert!(error.message.contains("zephyr"), "{}", error.message);
    assert_eq!(remove("mine").await.unwrap(), json!({ "removed": true }));
    assert_eq!(
        refused(remove("mine").await),
        (-32004, "unknown".to_owned())
    );
    let left = place.rules.rules().await.unwrap();
    assert_eq!(left.len(), 3, "nothing else went");
}

#[tokio::test]
async fn a_change_is_told_to_who_named_it() {
    let place = Place::new();
    let client = place.instance().await;
    let old = place.connect(instance("g1"));
    old.ask("initialize", hello(&["resume", "asks"]))
        .await
        .unwrap();
    assert_eq!(
        old.ask("_lembas/rules", json!({})).await.unwrap_err().code,
        lembas::rpc::RpcError::METHOD_NOT_FOUND
    );
    // Before a round trip nothing may be lost: the handshake's answer is out.
    list(&client, json!({})).await;
    place
        .rules
        .add_rule(yes("r1", &instance("g1"), 1))
        .await
        .unwrap();
    let told = |(method, params): (String, Value)| {
        assert_eq!(
            (method.as_str(), params),
            ("_lembas/rules/changed", json!({}))
        );
    };
    told(client.notice().await);
    assert_eq!(ids(&list(&client, json!({})).await), ["r1"]);
    client
        .ask("_lembas/rules/remove", json!({ "id": "r1" }))
        .await
        .unwrap();
    told(client.notice().await);
    place
        .rules
        .add_rule(yes("r2", &instance("g1"), 1))
        .await
        .unwrap();
    told(client.notice().await);
    place
        .rules
        .rules_used(vec!["r2".to_owned()], 1_000_000)
        .await
        .unwrap();
    told(client.notice().await);
    assert_eq!(old.notices().await, vec![]);
}

#[tokio::test]
async fn a_long_list_comes_in_pages_that_fit_a_frame() {
    let place = Place::new();
    let origin = instance("g1");
    for n in 0..70 {
        // Two of each moment: a page ends between them, too.
        let mut rule = yes(&format!("r{n:03}"), &origin, 1_000 + n / 2);
        rule.data["patterns"][0]["words"] = json!(["x".repeat(3_000)]);
        rule.data["cwd"] = format!("/srv/{}", "y".repeat(3_000)).into();
        place.rules.add_rule(rule).await.unwrap();
    }
    let client = place.instance().await;
    let mut seen: Vec<String> = Vec::new();
    let mut after = Value::Null;
    let mut pages = 0;
    loop {
        let page = list(&client, json!({ "after": after })).await;
        assert!(page.to_string().len() < 120 * 1024);
        assert_eq!(page["total"], 70);
        assert!(page["rules"][0]["words"].as_str().unwrap().ends_with('…'));
        seen.extend(ids(&page).into_iter().map(str::to_owned));
        pages += 1;
        match page.get("next") {
            Some(next) => after = next.clone(),
            None => break,
        }
    }
    let mut all: Vec<String> = (0..70).map(|n| format!("r{n:03}")).collect();
    all.reverse();
    assert_eq!(seen, all, "newest first, each once");
    assert!(pages > 1);
}
