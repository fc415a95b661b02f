//! What the model is sent: bytes that stay, results that are cut and recalled, conversations that
//! are shortened.

use lembas::agent::About;
use lembas::permission::Origin;
use lembas::store::item::{Body, CallStatus, Stop};
use lembas::testing::model::{Reply, call, done, finish, say};
use serde_json::{Value, json};

use super::home::{Home, bash, journal, prompt, result_of, soon};

fn messages(request: &Value) -> Vec<Value> {
    request["messages"].as_array().unwrap().clone()
}

/// Each request begins with the whole of the one before.
fn prefixes(requests: &[Value]) {
    for pair in requests.windows(2) {
        let (before, after) = (messages(&pair[0]), messages(&pair[1]));
        assert_eq!(before[..], after[..before.len()], "{after:#?}");
        assert_eq!(pair[0]["tools"], pair[1]["tools"]);
    }
}

#[tokio::test]
async fn every_request_begins_with_the_bytes_of_the_one_before() {
    let mut home = Home::new().await;
    home.steps = 6;
    let (_registry, session) = home.local().await;
    home.model.play([
        Reply::calls(&[bash("x"), bash("y")]),
        // An empty answer, then steps that are told how many are left.
        Reply::stream(vec![finish("stop"), done()]),
        Reply::calls(&[("nonsense", json!({}))]),
        Reply::calls(&[bash("z")]),
        Reply::text("done"),
        Reply::text("again"),
    ]);
    let ended = session.prompt(prompt("1", "go")).await.unwrap();
    assert_eq!(ended.stop, Stop::EndTurn);
    session.prompt(prompt("2", "more")).await.unwrap();
    let requests = home.model.requests();
    assert_eq!(requests.len(), 6);
    prefixes(&requests);
    let all = requests[4]["messages"].to_string();
    assert!(
        all.contains("Empty") && all.contains("WrapUp { left: 1 }"),
        "{all}"
    );
    home.no_faults();
}

#[tokio::test]
async fn another_model_is_told_that_it_is_another_once_also_after_a_restart() {
    let home = Home::new().await;
    let tasks = lembas::rt::Tasks::new();
    let registry = home.start(&tasks).await;
    let session = registry
        .open(home.new_session(Origin::Local))
        .await
        .unwrap();
    home.model
        .play([Reply::text("one"), Reply::text("two"), Reply::text("three")]);
    session.prompt(prompt("1", "go")).await.unwrap();
    session.set_model("other".to_owned()).await.unwrap();
    session.prompt(prompt("2", "more")).await.unwrap();
    let id = session.id().clone();
    drop((registry, session));
    tasks.end().await;
    let registry = home.start(&home.tasks).await;
    let session = registry.get(&id, &Origin::Local).await.unwrap();
    session.prompt(prompt("3", "again")).await.unwrap();
    let requests = home.model.requests();
    prefixes(&requests);
    let noted = |request: &Value| request.to_string().matches("Model(").count();
    let noted: Vec<usize> = requests.iter().map(noted).collect();
    assert_eq!(noted, [0, 1, 1]);
    let said = messages(&requests[1]);
    let said = said.last().unwrap()["content"].to_string();
    assert!(said.contains("other"), "{said}");
    home.no_faults();
}

#[tokio::test]
async fn a_long_result_loses_its_middle_and_every_part_can_be_recalled() {
    let mut home = Home::new().await;
    home.real = true;
    let text: String = (1..=2000).map(|n| format!("line {n}\n")).collect();
    std::fs::write(home.cwd().join("long.txt"), text).unwrap();
    let (_registry, session) = home.local().await;
    home.model.play([
        Reply::calls(&[("read", json!({ "path": "long.txt", "limit": 2000 }))]),
        Reply::calls(&[(
            "recall",
            json!({ "id": "#0001", "offset": 700, "limit": 2 }),
        )]),
        Reply::calls(&[("recall", json!({ "id": "0999" }))]),
        Reply::text("ok"),
    ]);
    session.prompt(prompt("1", "go")).await.unwrap();
    let items = journal(&session).await;
    let (_, long) = result_of(&items, "0001");
    assert_eq!(long.lines().count(), 401);
    assert!(
        long.contains("[1601 lines elided, full output #0001]"),
        "{long}"
    );
    let (_, part) = result_of(&items, "0002");
    assert_eq!(
        part,
        "[#0001, lines 700 to 701 of 2001]\n700\t699\tline 699\n701\t700\tline 700"
    );
    let (status, none) = result_of(&items, "0003");
    assert_eq!(status, CallStatus::Failed);
    assert_eq!(none, "There is no result #0999 in this session.");
    home.no_faults();
}

#[tokio::test]
async fn what_has_not_changed_is_answered_by_its_number_also_after_a_restart() {
    let mut home = Home::new().await;
    home.real = true;
    let file = home.cwd().join("a.txt");
    let text = |word: &str| {
        (1..=40)
            .map(|n| format!("{word} {n}\n"))
            .collect::<String>()
    };
    std::fs::write(&file, text("one")).unwrap();
    let folder = home.cwd().join("folder");
    std::fs::create_dir(&folder).unwrap();
    for n in 0..30 {
        std::fs::write(folder.join(format!("file-{n}")), "").unwrap();
    }
    let tasks = lembas::rt::Tasks::new();
    let registry = home.start(&tasks).await;
    let session = registry
        .open(home.new_session(Origin::Local))
        .await
        .unwrap();
    let read = |args: Value| ("read", args);
    let whole = || read(json!({ "path": "a.txt" }));
    let part = || read(json!({ "path": "./a.txt", "offset": 3, "limit": 30 }));
    let list = || ("list", json!({ "path": "folder" }));
    home.model.play([
        Reply::calls(&[whole(), list()]),
        Reply::calls(&[part(), list()]),
        Reply::text("ok"),
    ]);
    session.prompt(prompt("1", "go")).await.unwrap();
    let items = journal(&session).await;
    assert_eq!(
        result_of(&items, "0003").1,
        "[./a.txt has not changed since #0001, which holds these lines.]"
    );
    assert_eq!(result_of(&items, "0004").1, "[The same result as #0002.]");

    // A start later the file may still be edited, and is still known.
    let id = session.id().clone();
    registry.park().await;
    drop((registry, session));
    tasks.end().await;
    let registry = home.start(&home.tasks).await;
    let session = registry.get(&id, &Origin::Local).await.unwrap();
    home.model.play([
        Reply::calls(&[whole()]),
        Reply::calls(&[(
            "edit",
            json!({ "path": "a.txt", "old": "one 7\n", "new": "seven\n",
                    "old_string": "one 7\n", "new_string": "seven\n" }),
        )]),
        Reply::calls(&[whole()]),
        Reply::text("ok"),
    ]);
    session.prompt(prompt("2", "go")).await.unwrap();
    let items = journal(&session).await;
    assert!(result_of(&items, "0005").1.contains("since #0001"));
    let (status, edited) = result_of(&items, "0006");
    assert_eq!(status, CallStatus::Ok, "{edited}");
    assert!(result_of(&items, "0007").1.contains("\tseven\n"));
    home.no_faults();
}

/// More than a small model takes.
fn long() -> String {
    (0..6_000).map(|n| format!("word {n} ")).collect()
}

/// A model with little context: from about 2,400 tokens on it is shortened.
fn small(home: &Home) {
    *home.about.lock() = About {
        context: Some(4_000),
        images: None,
    };
}

#[tokio::test]
async fn a_full_context_is_shortened_as_the_next_turn_of_the_same_conversation() {
    let home = Home::new().await;
    small(&home);
    let tasks = lembas::rt::Tasks::new();
    let registry = home.start(&tasks).await;
    let session = registry
        .open(home.new_session(Origin::Local))
        .await
        .unwrap();
    home.model.play([
        Reply::text(&long()),
        Reply::text("They want a bridge."),
        Reply::text("going on"),
        Reply::text("and on"),
    ]);
    session.prompt(prompt("1", "first wish")).await.unwrap();
    session.prompt(prompt("2", "second wish")).await.unwrap();
    let requests = home.model.requests();
    let wish = messages(&requests[1]);
    let last = wish.last().unwrap()["content"].as_str().unwrap();
    assert!(last.starts_with("This conversation is about to be shortened"));
    assert_eq!(wish[..2], messages(&requests[0])[..2]);
    assert_eq!(requests[0]["tools"], requests[1]["tools"]);
    let after = messages(&requests[2]);
    let first = after[1]["content"].as_str().unwrap();
    assert!(
        first.starts_with("<summary>\nThey want a bridge.\n</summary>"),
        "{first}"
    );
    assert!(first.ends_with("second wish"), "{first}");
    assert_eq!(after.len(), 2);
    let items = journal(&session).await;
    let notice = items.iter().find_map(|i| match &i.body {
        Body::Notice { text, .. } => Some(text.clone()),
        _ => None,
    });
    assert!(
        notice
            .unwrap()
            .starts_with("The conversation was shortened: ")
    );

    // Nothing of it is gone from the journal, and a start later it goes on from the summary.
    assert!(
        items
            .iter()
            .any(|i| matches!(&i.body, Body::Prompt { key, .. } if key == "1"))
    );
    let id = session.id().clone();
    drop((registry, session));
    tasks.end().await;
    let registry = home.start(&home.tasks).await;
    let session = registry.get(&id, &Origin::Local).await.unwrap();
    session.prompt(prompt("3", "third")).await.unwrap();
    prefixes(&home.model.requests()[2..]);
    home.no_faults();
}

fn too_long() -> Reply {
    Reply::error(
        400,
        "application/json",
        r#"{"error":{"message":"This is 9000 tokens.","code":"context_length_exceeded"}}"#,
    )
}

#[tokio::test]
async fn a_refusal_for_length_in_the_middle_of_a_turn_loses_nothing() {
    let home = Home::new().await;
    let tasks = lembas::rt::Tasks::new();
    let registry = home.start(&tasks).await;
    let session = registry
        .open(home.new_session(Origin::Local))
        .await
        .unwrap();
    home.model.play([
        Reply::calls(&[bash("x")]),
        too_long(),
        // Even the request for the summary is too long, twice.
        too_long(),
        too_long(),
        Reply::text("x ran; say so"),
        Reply::text("done"),
    ]);
    let ended = soon(session.prompt(prompt("1", "run x"))).await.unwrap();
    assert_eq!((ended.stop, ended.reason), (Stop::EndTurn, None));
    assert_eq!(home.ran(), ["x"]);
    let requests = home.model.requests();
    let last = messages(&requests[5]);
    assert_eq!(last.len(), 2);
    let first = last[1]["content"].as_str().unwrap();
    assert!(
        first.contains("x ran; say so") && first.ends_with("run x"),
        "{first}"
    );
    // Of the request for the summary too it is known what it took.
    assert_eq!(ended.tokens.input, 300);
    // A start later the prompt whose turn was shortened is still there.
    let id = session.id().clone();
    drop((registry, session));
    tasks.end().await;
    let registry = home.start(&home.tasks).await;
    let session = registry.get(&id, &Origin::Local).await.unwrap();
    home.model.play([Reply::text("ok")]);
    session.prompt(prompt("2", "more")).await.unwrap();
    prefixes(&home.model.requests()[5..]);
    home.no_faults();
}

#[tokio::test]
async fn what_does_not_fit_at_all_ends_in_words_and_the_chat_goes_on_elsewhere() {
    let home = Home::new().await;
    let (_registry, session) = home.local().await;
    home.model.play([
        Reply::text("hi"),
        too_long(),
        Reply::text("summary"),
        too_long(),
        Reply::text("a larger model answers"),
    ]);
    session.prompt(prompt("1", "hello")).await.unwrap();
    let ended = session.prompt(prompt("2", "more")).await.unwrap();
    assert_eq!(ended.stop, Stop::Failed);
    let reason = ended.reason.unwrap();
    assert!(
        reason.starts_with("This chat does not fit into m any more"),
        "{reason}"
    );
    assert!(reason.contains("Nothing of it is lost"), "{reason}");
    session.set_model("large".into()).await.unwrap();
    let ended = session.prompt(prompt("3", "again")).await.unwrap();
    assert_eq!(ended.stop, Stop::EndTurn);
    let sent = home.model.requests()[4]["messages"].to_string();
    assert!(sent.contains("summary") && sent.contains("more") && sent.contains("again"));
    home.no_faults();
}

#[tokio::test]
async fn no_summary_does_not_keep_a_turn_from_being_tried() {
    let home = Home::new().await;
    small(&home);
    let (_registry, session) = home.local().await;
    home.model.play([
        Reply::text(&long()),
        Reply::error(400, "application/json", r#"{"error":"no"}"#),
        Reply::text("it fit all the same"),
    ]);
    session.prompt(prompt("1", "a")).await.unwrap();
    let ended = session.prompt(prompt("2", "b")).await.unwrap();
    assert_eq!(ended.stop, Stop::EndTurn);
    assert_eq!(home.model.requests().len(), 3);
}

#[tokio::test]
async fn images_go_to_a_model_that_takes_them_and_are_refused_for_one_that_does_not() {
    use lembas::session::SessionError;
    use lembas::store::item::Part;
    let home = Home::new().await;
    let (_registry, session) = home.local().await;
    let mut with_image = prompt("1", "look");
    with_image.parts.push(Part::Image {
        mime: "image/png".into(),
        data: "AAAA".into(),
    });
    home.model.play([Reply::text("a cat"), Reply::text("ok")]);
    session.prompt(with_image.clone()).await.unwrap();
    let sent = home.model.requests()[0]["messages"].to_string();
    assert!(sent.contains("data:image/png;base64,AAAA"), "{sent}");

    home.about.lock().images = Some(false);
    with_image.key = "2".into();
    match session.prompt(with_image).await {
        Err(SessionError::Refused(why)) => assert_eq!(
            why,
            "m takes no images. Send the prompt without them, or choose a model that does."
        ),
        other => panic!("{other:?}"),
    }
    // What was sent to another model before does not end the chat with this one.
    session.prompt(prompt("3", "go on")).await.unwrap();
    let sent = home.model.requests()[1]["messages"].to_string();
    assert!(
        sent.contains("[An image was here; this model takes none.]"),
        "{sent}"
    );
    assert!(!sent.contains("base64"), "{sent}");
    home.no_faults();
}

#[tokio::test]
async fn a_plan_is_known_in_the_next_turn() {
    let mut home = Home::new().await;
    home.real = true;
    let (_registry, session) = home.local().await;
    let plan = json!({ "title": "Bridge", "summary": "s", "phases": [
        { "title": "First", "tasks": [{ "title": "Dig" }] }] });
    home.model.play([
        Reply::calls(&[("plan_write", plan)]),
        Reply::text("planned"),
        Reply::stream(vec![
            say("on it"),
            call(0, "plan_update", r#"{"id":"t1","status":"done"}"#),
            finish("tool_calls"),
            done(),
        ]),
        Reply::text("done"),
    ]);
    session.prompt(prompt("1", "plan")).await.unwrap();
    session.prompt(prompt("2", "go")).await.unwrap();
    let items = journal(&session).await;
    let (status, text) = result_of(&items, "0002");
    assert!(
        status == CallStatus::Ok || !text.contains("no plan"),
        "{text}"
    );
    home.no_faults();
}
