//! Models that do not do as they should, and servers that say things their own way: each ends in
//! words, or goes on.

use lembas::store::item::{Body, Stop};
use lembas::testing::model::{Act, Reply, call, done, finish, say, think, usage};
use serde_json::{Value, json};

use super::home::{Home, bash, journal, prompt, soon};

/// The last message of a request, as text.
fn told(request: &Value) -> String {
    let last = request["messages"].as_array().unwrap().last().unwrap();
    last["content"].as_str().unwrap().to_owned()
}

async fn play(replies: impl IntoIterator<Item = Reply>) -> (Home, lembas::session::TurnDone) {
    let mut home = Home::new().await;
    home.real = true;
    let (_registry, session) = home.local().await;
    home.model.play(replies);
    let ended = soon(session.prompt(prompt("k", "go"))).await.unwrap();
    home.no_faults();
    (home, ended)
}

#[tokio::test]
async fn arguments_that_are_no_json_and_tools_that_are_not_there_are_told_to_the_model() {
    let raw = |name: &str, args: &str| {
        Reply::stream(vec![call(0, name, args), finish("tool_calls"), done()])
    };
    let (home, ended) = play([
        raw("read", r#"{"path": "a.t"#),
        raw("read", "[1]"),
        raw("open_file", "{}"),
        raw("read", ""),
        Reply::text("I give up"),
    ])
    .await;
    assert_eq!(ended.stop, Stop::EndTurn);
    let requests = home.model.requests();
    let heard: Vec<String> = requests[1..].iter().map(told).collect();
    assert!(
        heard[0].contains("The arguments of read could not be read: EOF"),
        "{heard:?}"
    );
    assert!(heard[1].contains("they are no JSON object"), "{heard:?}");
    assert!(
        heard[2].contains("There is no tool called open_file. There are: bash, read,"),
        "{heard:?}"
    );
    assert!(heard[3].contains("path is missing"), "{heard:?}");
}

#[tokio::test]
async fn an_empty_answer_is_asked_again_and_then_said() {
    let empty = || Reply::stream(vec![think("hm"), finish("stop"), done()]);
    let (home, ended) = play([empty(), Reply::text("here")]).await;
    assert_eq!((ended.stop, ended.reason), (Stop::EndTurn, None));
    assert!(told(&home.model.requests()[1]).contains("Your last answer was empty."));
    let (home, ended) = play([empty(), empty(), empty()]).await;
    assert_eq!(home.model.requests().len(), 3);
    assert_eq!(
        ended.reason.as_deref(),
        Some("The model answered with nothing.")
    );
}

#[tokio::test]
async fn a_call_that_was_written_as_text_is_not_run_but_told() {
    let wrote = "<tool_call>\n{\"name\":\"bash\",\"arguments\":{}}\n</tool_call>";
    let (home, ended) = play([Reply::text(wrote), Reply::text("done")]).await;
    assert_eq!((ended.stop, ended.reason), (Stop::EndTurn, None));
    assert!(told(&home.model.requests()[1]).contains("held a call written as text"));
}

#[tokio::test]
async fn an_answer_that_never_ends_is_cut_off_and_its_connection_closed() {
    let home = Home::new().await;
    let (_registry, session) = home.local().await;
    let gate = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
    let mut acts = vec![say(&"I will look at it again. ".repeat(400))];
    acts.push(Act::Wait(gate));
    home.model
        .play([Reply::stream(acts), Reply::text("fine now")]);
    let ended = soon(session.prompt(prompt("k", "go"))).await.unwrap();
    assert_eq!(ended.stop, Stop::EndTurn);
    assert_eq!(
        ended.reason.as_deref(),
        Some("The model repeated itself without end; its answer was cut off.")
    );
    soon(home.model.hung_up(1)).await;
    // The next turn is not made to read all of it again.
    session.prompt(prompt("k2", "go")).await.unwrap();
    let sent = home.model.requests()[1]["messages"].to_string();
    assert!(sent.len() < 5_000, "{}", sent.len());
    home.no_faults();
}

#[tokio::test]
async fn the_same_call_over_and_over_is_stopped_and_then_the_turn_ends() {
    let home = Home::new().await;
    let (_registry, session) = home.local().await;
    home.model.play((0..9).map(|_| Reply::calls(&[bash("x")])));
    let ended = soon(session.prompt(prompt("k", "go"))).await.unwrap();
    assert_eq!(ended.stop, Stop::EndTurn);
    assert_eq!(
        ended.reason.as_deref(),
        Some("The turn was ended: the model made the same call again and again.")
    );
    assert_eq!(home.ran().len(), 3);
    let requests = home.model.requests();
    assert_eq!(requests.len(), 6);
    assert!(
        told(&requests[4]).contains("for the 4. time"),
        "{}",
        told(&requests[4])
    );
    home.no_faults();
}

#[tokio::test]
async fn a_call_whose_result_changes_is_no_loop() {
    let home = Home::new().await;
    let (_registry, session) = home.local().await;
    home.model.play((0..6).map(|_| Reply::calls(&[bash("x")])));
    home.model.play([Reply::text("it moved")]);
    let world = home.world.clone();
    let server = home.model.clone();
    home.tasks.spawn("change", async move {
        for n in 1..7 {
            server.asked(n).await;
            *world.says.lock() = n.to_string();
        }
    });
    let ended = soon(session.prompt(prompt("k", "go"))).await.unwrap();
    assert_eq!((ended.stop, ended.reason), (Stop::EndTurn, None));
    assert_eq!(home.ran().len(), 6);
}

#[tokio::test]
async fn however_a_server_says_the_end_it_is_the_end() {
    let said = |acts: Vec<Act>| Reply::stream([vec![say("words")], acts].concat());
    let raw = |data: &str| Act::Data(data.to_owned());
    for (reply, stop) in [
        (said(vec![finish("stop"), done()]), Stop::EndTurn),
        (said(vec![finish("eos")]), Stop::EndTurn),
        (said(vec![done()]), Stop::EndTurn),
        (said(vec![finish("tool_calls"), done()]), Stop::EndTurn),
        (
            said(vec![finish("length"), usage(), done()]),
            Stop::MaxTokens,
        ),
        (said(vec![finish("max_tokens")]), Stop::MaxTokens),
        (said(vec![finish("content_filter"), done()]), Stop::Refusal),
        (
            said(vec![
                raw(
                    r#"{"choices":[{"delta":{"content":null},"finish_reason":null}],"usage":null}"#,
                ),
                finish("stop"),
            ]),
            Stop::EndTurn,
        ),
        (
            Reply::error(
                200,
                "application/json",
                r#"{"choices":[{"message":{"content":"words"},"finish_reason":"stop"}]}"#,
            ),
            Stop::EndTurn,
        ),
    ] {
        let home = Home::new().await;
        let (_registry, session) = home.local().await;
        home.model.play([reply]);
        let ended = soon(session.prompt(prompt("k", "go"))).await.unwrap();
        assert_eq!((ended.stop, ended.reason), (stop, None));
        let items = journal(&session).await;
        let text = items.iter().find_map(|i| match &i.body {
            Body::Message { text } => Some(text.as_str()),
            _ => None,
        });
        assert_eq!(text, Some("words"));
    }
}

#[tokio::test]
async fn each_failure_is_said_in_words_that_help() {
    let json = "application/json";
    let far = Reply::error(429, json, r#"{"error":"no credits"}"#).header("retry-after", "90000");
    for (reply, tries, words) in [
        (far, 1, "m has no quota left until"),
        (
            Reply::error(401, json, r#"{"error":{"message":"bad key"}}"#),
            1,
            "m's server does not accept the key it was given",
        ),
        (
            Reply::error(
                502,
                json,
                r#"{"error":{"code":"model_key","text":"The key is refused."}}"#,
            ),
            1,
            "m's server does not accept the key it was given",
        ),
        (
            Reply::error(404, json, r#"{"error":{"message":"no such model"}}"#),
            1,
            "m is not served by this instance any more",
        ),
        (
            Reply::error(400, json, r#"{"error":{"message":"tools are not for me"}}"#),
            1,
            "m did not take the request: ",
        ),
        (
            Reply::error(
                200,
                "text/html; charset=utf-8",
                "<html>Sign in to the network</html>",
            ),
            5,
            "a web page came instead of the model's answer",
        ),
        (
            Reply::stream(vec![Act::Data("{not json".to_owned())]),
            1,
            "an event is not JSON",
        ),
        (
            Reply::stream(vec![Act::Line(
                "event: error\ndata: {\"message\":\"overloaded\"}\n\n".into(),
            )]),
            1,
            "overloaded",
        ),
    ] {
        let home = Home::new().await;
        let (_registry, session) = home.local().await;
        home.model.play(std::iter::repeat_n(reply, tries));
        let ended = soon(session.prompt(prompt("k", "go"))).await.unwrap();
        assert_eq!(ended.stop, Stop::Failed, "{words}");
        let reason = ended.reason.unwrap();
        assert!(reason.contains(words), "{words} in {reason}");
        assert!(reason.contains("Your message is kept"), "{reason}");
        assert_eq!(home.model.requests().len(), tries, "{words}");
        home.no_faults();
    }
}

#[tokio::test]
async fn several_calls_at_once_all_have_their_results_whatever_became_of_them() {
    let home = Home::new().await;
    let (_registry, session) = home.local().await;
    home.model.play([
        Reply::calls(&[
            bash("a"),
            ("nothing", json!({})),
            bash("no b"),
            ("bash", json!({ "wrong": 1 })),
            bash("c"),
        ]),
        Reply::text("ok"),
    ]);
    session.prompt(prompt("k", "go")).await.unwrap();
    assert_eq!(home.ran(), ["a", "c"]);
    // The server noted no call without a result.
    home.no_faults();
}
