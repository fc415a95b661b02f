//! Prompts, their ends, and what cancels which.

use lembas::permission::Origin;
use lembas::rpc::RpcError;
use lembas::session::StopWhy;
use lembas::store::item::{Body, Stop};
use serde_json::json;

use super::client::text;
use super::*;

#[tokio::test]
async fn a_turn_is_streamed_before_it_is_answered() {
    let place = Place::new();
    let editor = place.editor().await;
    let id = open(&editor, &place).await;
    let fake = place.sessions.one();
    let asked = editor.ask("session/prompt", prompt(&id, "hi", "k"));
    let turn = async {
        fake.prompted(1).await;
        for n in 0..500 {
            fake.say(&format!("{n} "));
            if n % 50 == 0 {
                tokio::task::yield_now().await;
            }
        }
        fake.finish(Stop::EndTurn, None);
    };
    let (answer, ()) = tokio::join!(asked, turn);
    let answer = answer.unwrap();
    assert_eq!(answer["stopReason"], "end_turn");
    assert_eq!(
        answer["_meta"]["lembas"]["tokens"],
        json!({ "input": 3, "cached_input": 1, "output": 2 })
    );
    let said: String = editor
        .notices()
        .await
        .iter()
        .filter_map(text)
        .map(|t| t.2)
        .collect();
    let whole: String = (0..500).map(|n| format!("{n} ")).collect();
    assert!(said.ends_with(&whole), "everything before the answer");
}

#[tokio::test]
async fn each_end_has_its_reason() {
    let place = Place::new();
    let client = place.instance().await;
    let id = open(&client, &place).await;
    let fake = place.sessions.one();
    for (n, (stop, reason)) in [
        (Stop::EndTurn, "end_turn"),
        (Stop::MaxTokens, "max_tokens"),
        (Stop::MaxTurnRequests, "max_turn_requests"),
        (Stop::Refusal, "refusal"),
        (Stop::Cancelled, "cancelled"),
    ]
    .into_iter()
    .enumerate()
    {
        let asked = client.ask("session/prompt", prompt(&id, "hi", &format!("k{n}")));
        let end = async {
            fake.prompted(n + 1).await;
            fake.finish(stop, Some("why"));
        };
        let (answer, ()) = tokio::join!(asked, end);
        let answer = answer.unwrap();
        assert_eq!(answer["stopReason"], reason);
        assert_eq!(answer["_meta"]["lembas"]["turn"], n + 1);
        assert_eq!(answer["_meta"]["lembas"]["reason"], "why");
    }
    let asked = client.ask("session/prompt", prompt(&id, "hi", "k9"));
    let end = async {
        fake.prompted(6).await;
        fake.finish(Stop::Failed, Some("the model is gone"));
    };
    let (answer, ()) = tokio::join!(asked, end);
    let error = answer.unwrap_err();
    assert_eq!(
        (error.code, error.message.as_str()),
        (RpcError::INTERNAL, "the model is gone")
    );
    let data = error.data.unwrap();
    assert_eq!(
        (data["reason"].as_str(), data["turn"].as_u64()),
        (Some("failed"), Some(6))
    );
}

#[tokio::test]
async fn the_same_key_joins_its_turn_and_another_is_busy() {
    let place = Place::new();
    let client = place.instance().await;
    let id = open(&client, &place).await;
    let fake = place.sessions.one();
    let first = client.ask("session/prompt", prompt(&id, "hi", "k"));
    let rest = async {
        fake.prompted(1).await;
        let busy = client.ask("session/prompt", prompt(&id, "ho", "k2")).await;
        assert_eq!(refused(busy), (-32052, "turn".to_owned()));
        // The link dropped, so the instance asks again on a new one.
        let again = place.instance().await;
        let joined = again.ask("session/prompt", prompt(&id, "hi", "k"));
        let end = async {
            tokio::task::yield_now().await;
            fake.finish(Stop::EndTurn, None);
        };
        tokio::join!(joined, end).0
    };
    let (first, joined) = tokio::join!(first, rest);
    assert_eq!(first, joined);
    let later = client.ask("session/prompt", prompt(&id, "hi", "k")).await;
    assert_eq!(first, later, "how it ended");
    assert_eq!(
        fake.state
            .lock()
            .items
            .iter()
            .filter(|i| matches!(i.body, Body::Prompt { .. }))
            .count(),
        1
    );
}

#[tokio::test]
async fn both_ways_of_cancelling_answer_cancelled() {
    let place = Place::new();
    let client = place.instance().await;
    let id = open(&client, &place).await;
    let fake = place.sessions.one();
    let asked = client.ask("session/prompt", prompt(&id, "hi", "k1"));
    let cancel = async {
        fake.prompted(1).await;
        client
            .tell("session/cancel", json!({ "sessionId": id }))
            .await;
    };
    let (answer, ()) = tokio::join!(asked, cancel);
    assert_eq!(answer.unwrap()["stopReason"], "cancelled");
    assert_eq!(fake.state.lock().stops, [(Some(1), StopWhy::Asked)]);

    // Dropping the request sends $/cancel_request.
    let asked = Box::pin(
        client
            .peer
            .request("session/prompt", prompt(&id, "hi", "k2")),
    );
    let prompted = fake.prompted(2);
    tokio::select! { _ = asked => panic!("it has an answer"), () = prompted => {} }
    fake.when("it is stopped", |state| state.stops.len() == 2)
        .await;
    assert_eq!(fake.state.lock().stops[1], (Some(2), StopWhy::Asked));

    // The session and the link are well after that.
    let asked = client.ask("session/prompt", prompt(&id, "hi", "k3"));
    let end = async {
        fake.prompted(3).await;
        fake.finish(Stop::EndTurn, None);
    };
    assert_eq!(
        tokio::join!(asked, end).0.unwrap()["stopReason"],
        "end_turn"
    );
}

#[tokio::test]
async fn a_cancel_means_the_turn_that_ran_when_it_was_read() {
    let place = Place::new();
    let client = place.instance().await;
    let id = open(&client, &place).await;
    let fake = place.sessions.one();
    for round in 0..50 {
        // In one burst: a cancel with nothing to cancel, a prompt behind it.
        let key = format!("a{round}");
        client
            .tell("session/cancel", json!({ "sessionId": id }))
            .await;
        let asked = client.ask("session/prompt", prompt(&id, "hi", &key));
        let end = async {
            fake.prompted(2 * round + 1).await;
            tokio::task::yield_now().await;
            fake.finish(Stop::EndTurn, None);
        };
        assert_eq!(
            tokio::join!(asked, end).0.unwrap()["stopReason"],
            "end_turn",
            "round {round}"
        );
        // And a prompt with its cancel right behind it, before it can have begun.
        let key = format!("b{round}");
        let asked = client.ask("session/prompt", prompt(&id, "hi", &key));
        let cancel = client.tell("session/cancel", json!({ "sessionId": id }));
        let (answer, ()) = tokio::join!(asked, cancel);
        assert_eq!(answer.unwrap()["stopReason"], "cancelled", "round {round}");
    }
    assert!(
        fake.state
            .lock()
            .stops
            .iter()
            .all(|(turn, _)| turn.is_some())
    );
}

#[tokio::test]
async fn a_cancel_reaches_a_turn_of_an_earlier_link() {
    let place = Place::new();
    let first = place.instance().await;
    let id = open(&first, &place).await;
    let fake = place.sessions.one();
    let asked = first.ask("session/prompt", prompt(&id, "hi", "k"));
    let cancel = async {
        fake.prompted(1).await;
        let second = place.instance().await;
        second
            .tell("session/cancel", json!({ "sessionId": id }))
            .await;
    };
    assert_eq!(
        tokio::join!(asked, cancel).0.unwrap()["stopReason"],
        "cancelled"
    );
}

#[tokio::test]
async fn a_dropped_link_ends_no_turn_and_a_program_that_goes_ends_its_own() {
    let place = Place::new();
    let client = place.instance().await;
    let id = open(&client, &place).await;
    let remote = place.sessions.one();
    let asked = client
        .peer
        .request("session/prompt", prompt(&id, "hi", "k"));
    let drop = async {
        remote.prompted(1).await;
        client.peer.close(1001, "stopping");
    };
    assert!(tokio::join!(asked, drop).0.is_err());
    let editor = place.editor().await;
    let id = open(&editor, &place).await;
    let local = place.sessions.one();
    let asked = editor
        .peer
        .request("session/prompt", prompt(&id, "hi", "k"));
    let drop = async {
        local.prompted(1).await;
        editor.peer.close(1001, "gone");
    };
    assert!(tokio::join!(asked, drop).0.is_err());
    local
        .when("the editor's turn is stopped", |state| !state.running)
        .await;
    assert!(remote.state.lock().running);
}

#[tokio::test]
async fn stop_says_what_it_ended() {
    let place = Place::new();
    let client = place.instance().await;
    let id = open(&client, &place).await;
    let fake = place.sessions.one();
    let asked = client.ask("session/prompt", prompt(&id, "hi", "k"));
    let stop = async {
        fake.prompted(1).await;
        let gone = client
            .ask(
                "_lembas/stop",
                json!({ "sessionId": id, "turn": 7, "key": "s0" }),
            )
            .await
            .unwrap();
        assert_eq!(
            (gone["outcome"].as_str(), gone["commands"].as_u64()),
            (Some("gone"), Some(0))
        );
        let stop = || {
            client.ask(
                "_lembas/stop",
                json!({ "sessionId": id, "turn": 1, "key": "s1" }),
            )
        };
        let first = stop().await.unwrap();
        assert_eq!(
            (first["outcome"].as_str(), first["commands"].as_u64()),
            (Some("stopped"), Some(1))
        );
        assert_eq!(
            stop().await.unwrap(),
            first,
            "repeated until it is answered"
        );
    };
    assert_eq!(
        tokio::join!(asked, stop).0.unwrap()["stopReason"],
        "cancelled"
    );
}

#[tokio::test]
async fn a_machine_and_a_person_are_told_apart() {
    let place = Place::new();
    let client = place.instance().await;
    let id = open(&client, &place).await;
    let fake = place.sessions.one();
    let mut params = prompt(&id, "done", "k");
    params["_meta"]["lembas"]["machine"] = json!(true);
    let asked = client.ask("session/prompt", params);
    let end = async {
        fake.prompted(1).await;
        fake.finish(Stop::EndTurn, None);
    };
    tokio::join!(asked, end).0.unwrap();
    let item = fake.state.lock().items[0].clone();
    assert!(matches!(
        item.body,
        Body::Prompt {
            source: lembas::store::item::Source::Machine,
            ..
        }
    ));
    assert_eq!(fake.new.origin, instance("g1"));
    assert_ne!(fake.new.origin, Origin::Local);
}
