//! What is streamed, from where, and at whose pace.

use lembas::session::Phase;
use lembas::store::item::Body;
use serde_json::json;

use super::client::text;
use super::*;

fn follow(id: &str, seq: u64, at: u64) -> Value {
    json!({ "sessionId": id, "seq": seq, "at": at })
}

#[tokio::test]
async fn an_instance_hears_only_what_it_follows() {
    let place = Place::new();
    let client = place.instance().await;
    let quiet = open(&client, &place).await;
    place.sessions.one().say("unheard");
    let id = open(&client, &place).await;
    let fake = place.sessions.one();
    fake.say("Hello");
    client
        .ask("_lembas/follow", follow(&id, 0, 0))
        .await
        .unwrap();
    assert_eq!(
        text(&client.notice().await).unwrap(),
        (2, 5, "Hello".to_owned())
    );
    fake.say(", you");
    assert_eq!(
        text(&client.notice().await).unwrap(),
        (2, 10, ", you".to_owned())
    );
    fake.phase(Phase::Writing);
    let (method, phase) = client.notice().await;
    assert_eq!(
        (method.as_str(), phase["type"].as_str()),
        ("_lembas/event", Some("phase"))
    );
    client
        .ask("_lembas/unfollow", json!({ "sessionId": id }))
        .await
        .unwrap();
    fake.say("!");
    client
        .ask("_lembas/unfollow", json!({ "sessionId": id }))
        .await
        .unwrap();
    client
        .ask("_lembas/status", json!({ "sessionId": quiet }))
        .await
        .unwrap();
    assert!(client.heard().await.is_empty());
    // From a position: the missing tail of the open item, then what follows.
    client
        .ask("_lembas/follow", follow(&id, 2, 7))
        .await
        .unwrap();
    assert_eq!(
        text(&client.notice().await).unwrap(),
        (2, 11, "you!".to_owned())
    );
}

#[tokio::test]
async fn any_cut_and_a_follow_from_there_give_the_whole() {
    let place = Place::new();
    let first = place.instance().await;
    let id = open(&first, &place).await;
    let fake = place.sessions.one();
    let words: Vec<String> = (0..40).map(|n| format!("wörd{n} ")).collect();
    for (n, word) in words.iter().enumerate() {
        fake.say(word);
        if n % 9 == 8 {
            fake.add(Body::Notice {
                text: format!("n{n}"),
                compacted: None,
            });
        }
    }
    let whole: String = words.concat();
    for cut in 0..12 {
        let mut read = String::new();
        let (mut seq, mut at) = (0, 0);
        let before = place.instance().await;
        before
            .ask("_lembas/follow", follow(&id, 0, 0))
            .await
            .unwrap();
        for _ in 0..cut {
            let notice = before.notice().await;
            match text(&notice) {
                Some((s, a, more)) => {
                    read.push_str(&more);
                    (seq, at) = (s, a);
                }
                None => (seq, at) = (notice.1["seq"].as_u64().unwrap(), 0),
            }
            if read == whole {
                break;
            }
        }
        before.peer.close(1001, "cut");
        let after = place.instance().await;
        after
            .ask("_lembas/follow", follow(&id, seq, at))
            .await
            .unwrap();
        while read.len() < whole.len() {
            if let Some((_, _, more)) = text(&after.notice().await) {
                read.push_str(&more);
            }
        }
        assert_eq!(read, whole, "cut after {cut}");
    }
}

#[tokio::test]
async fn a_link_that_takes_nothing_slows_nobody() {
    let place = Place::new();
    let (here, there) = lembas::rpc::pair::pair(4);
    let device = place.device.clone();
    let limits = lembas::rpc::Limits {
        keepalive: None,
        ..lembas::rpc::Limits::device()
    };
    lembas::rpc::start_with(
        there,
        |peer| device.serve(peer, instance("g1")),
        limits,
        &place.tasks,
    );
    // A client that says its part and then reads no more.
    let (mut source, mut sink) = here;
    let send = |id: u64, method: &str, params: Value| {
        lembas::rpc::Outgoing::Text(
            json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string(),
        )
    };
    use lembas::rpc::{Sink as _, Source as _};
    sink.send(send(1, "initialize", hello(ALL))).await.unwrap();
    source.next(usize::MAX).await.unwrap();
    sink.send(send(2, "session/new", new_in(&place, json!({}))))
        .await
        .unwrap();
    source.next(usize::MAX).await.unwrap();
    let fake = place.sessions.one();
    sink.send(send(3, "_lembas/follow", follow("s1", 0, 0)))
        .await
        .unwrap();
    source.next(usize::MAX).await.unwrap();
    for _ in 0..2000 {
        fake.say(&"x".repeat(10_000));
        tokio::task::yield_now().await;
    }
    // 20 MB were said. Another connection is served meanwhile, and hears all of it.
    let other = place.instance().await;
    other
        .ask("_lembas/follow", follow("s1", 0, 0))
        .await
        .unwrap();
    let mut heard = 0;
    while heard < 20_000_000 {
        heard += text(&other.notice().await).unwrap().2.len();
    }
    assert_eq!(heard, 20_000_000);
    // The stuck one goes on where it was when it reads again.
    let mut late = 0;
    while late < 20_000_000 {
        let Some(lembas::rpc::Incoming::Text(frame)) = source.next(usize::MAX).await.unwrap()
        else {
            continue;
        };
        let frame: Value = serde_json::from_str(&frame).unwrap();
        assert!(frame.to_string().len() <= 128 * 1024);
        late += frame["params"]["update"]["content"]["text"]
            .as_str()
            .map_or(0, str::len);
    }
}

#[tokio::test]
async fn sessions_take_turns() {
    let place = Place::new();
    let client = place.instance().await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(open(&client, &place).await);
        for _ in 0..20 {
            place.sessions.one().say(&"x".repeat(50_000));
        }
    }
    let follows = ids
        .iter()
        .map(|id| client.ask("_lembas/follow", follow(id, 0, 0)));
    for answer in futures_util::future::join_all(follows).await {
        answer.unwrap();
    }
    let mut heard: std::collections::HashMap<String, usize> =
        ids.iter().map(|id| (id.clone(), 0)).collect();
    let mut furthest = 0;
    while heard.values().any(|bytes| *bytes < 1_000_000) {
        let notice = client.notice().await;
        let id = notice.1["sessionId"].as_str().unwrap().to_owned();
        *heard.get_mut(&id).unwrap() += text(&notice).unwrap().2.len();
        let unfinished = heard.values().filter(|bytes| **bytes < 1_000_000);
        let spread = heard.values().max().unwrap() - unfinished.min().unwrap_or(&1_000_000);
        furthest = furthest.max(spread);
    }
    assert!(furthest <= 400_000, "one was {furthest} bytes ahead");
}

#[tokio::test]
async fn open_asks_and_states_come_before_any_stream() {
    let place = Place::new();
    let first = place.instance().await;
    let id = open(&first, &place).await;
    let fake = place.sessions.one();
    let asked = first.peer.request("session/prompt", prompt(&id, "hi", "k"));
    let rest = async {
        fake.prompted(1).await;
        fake.say(&"x".repeat(200_000));
        fake.ask("a1", &[lembas::store::item::Scope::Once]);
        fake.phase(Phase::WaitingForPerson);
        let client = place.connect(instance("g1"));
        let hello = client.peer.request("initialize", hello(ALL));
        let follow = client.peer.request("_lembas/follow", follow(&id, 0, 0));
        let (hello, follow) = tokio::join!(hello, follow);
        hello.unwrap();
        follow.unwrap();
        let mut order = Vec::new();
        while order.last() != Some(&"update") {
            order.push(match client.hear().await {
                client::Heard::Asked(_) => "ask",
                client::Heard::Notice(method, _) if method == "_lembas/event" => "state",
                client::Heard::Notice(..) => "update",
            });
        }
        assert_eq!(order, ["ask", "state", "update"]);
        fake.finish(lembas::store::item::Stop::EndTurn, None);
    };
    tokio::join!(asked, rest).0.unwrap();
}

#[tokio::test]
async fn a_claim_above_our_numbers_begins_a_new_epoch() {
    let place = Place::new();
    let client = place.instance().await;
    let id = open(&client, &place).await;
    place.sessions.one().say("x");
    // What a crash may have left given and not stored is no claim.
    client
        .ask("_lembas/follow", follow(&id, 900, 0))
        .await
        .unwrap();
    assert!(place.epoch.0.lock().is_empty());
    let error = client
        .ask("_lembas/follow", follow(&id, 5000, 0))
        .await
        .unwrap_err();
    assert_eq!(error.data.unwrap()["epoch"], "e1");
    assert_eq!(client.closed().await.code(), Some(1012));
    let again = place.connect(instance("g1"));
    let answer = again.ask("initialize", hello(ALL)).await.unwrap();
    assert_eq!(
        answer["agentCapabilities"]["_meta"]["lembas"]["epoch"],
        "e1"
    );
}

#[tokio::test]
async fn a_head_above_ours_begins_a_new_epoch_in_the_handshake() {
    let place = Place::new();
    let client = place.instance().await;
    open(&client, &place).await;
    let head = |answer: &Value| answer["agentCapabilities"]["_meta"]["lembas"]["head"].clone();
    let seen = |epoch: &str, head: Value| {
        let mut hello = hello(ALL);
        let ours = &mut hello["clientCapabilities"]["_meta"]["lembas"];
        ours["epoch"] = epoch.into();
        ours["head"] = head;
        hello
    };
    let link = place.connect(instance("g1"));
    let first = link.ask("initialize", hello(ALL)).await.unwrap();
    // What it has seen, and what it saw in another epoch, claim nothing.
    for (epoch, head) in [("e0", head(&first)), ("other", json!(1_i64 << 50))] {
        let link = place.connect(instance("g1"));
        link.ask("initialize", seen(epoch, head)).await.unwrap();
        assert!(place.epoch.0.lock().is_empty(), "{epoch}");
    }
    let link = place.connect(instance("g1"));
    let hello = seen("e0", json!(1_i64 << 50));
    let answer = link.ask("initialize", hello).await.unwrap();
    assert_eq!(
        answer["agentCapabilities"]["_meta"]["lembas"]["epoch"],
        "e1"
    );
}

#[tokio::test]
async fn a_plain_client_hears_its_sessions_and_no_events() {
    let place = Place::new();
    let editor = place.editor().await;
    let id = open(&editor, &place).await;
    let fake = place.sessions.one();
    let stranger = place.editor().await;
    fake.add(Body::Notice {
        text: "ours alone".to_owned(),
        compacted: None,
    });
    fake.phase(Phase::Writing);
    fake.say("hello");
    let (method, params) = editor.notice().await;
    assert_eq!(
        (method.as_str(), params["sessionId"].as_str()),
        ("session/update", Some(id.as_str()))
    );
    assert_eq!(params["update"]["content"]["text"], "hello");
    stranger.ask("session/list", json!({})).await.unwrap();
    assert!(stranger.heard().await.is_empty());
}

#[tokio::test]
async fn each_of_the_thirteen_phases_is_an_event_and_in_the_status() {
    let all = [
        Phase::Queued,
        Phase::WaitingForModel,
        Phase::LoadingModel,
        Phase::ReadingPrompt,
        Phase::Thinking,
        Phase::Writing,
        Phase::RunningTool,
        Phase::WaitingForPerson,
        Phase::WaitingForSubagents,
        Phase::Compacting,
        Phase::Retrying,
        Phase::Stopped,
        Phase::Failed,
    ];
    let contents = lembas::spec::Contents::embedded();
    let numbers: Value = serde_json::from_str(contents.text("loop.json").unwrap()).unwrap();
    let phases = numbers["progress"]["phases"].as_object().unwrap();
    let mut named: Vec<String> = phases.keys().cloned().collect();
    let place = Place::new();
    let client = place.instance().await;
    let id = open(&client, &place).await;
    let fake = place.sessions.one();
    let followed = client.ask("_lembas/follow", follow(&id, 0, 0)).await;
    followed.unwrap();
    let mut texts = std::collections::BTreeSet::new();
    for phase in all {
        fake.phase(phase);
        let (method, event) = client.notice().await;
        let name = serde_json::to_value(phase).unwrap();
        assert_eq!(
            (method.as_str(), &event["type"], &event["data"]["phase"]),
            ("_lembas/event", &json!("phase"), &name)
        );
        assert_eq!(event["data"]["since"], 7);
        let status = client.ask("_lembas/status", json!({ "sessionId": id }));
        let status = status.await.unwrap();
        assert_eq!(status["progress"], event["data"]);
        texts.insert(status["status"].as_str().unwrap().to_owned());
        named.retain(|known| *known != name.as_str().unwrap());
    }
    assert_eq!(
        named,
        Vec::<String>::new(),
        "a phase of the spec is missing"
    );
    assert_eq!(texts.len(), 13, "each has its own words: {texts:?}");
}
