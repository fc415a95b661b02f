//! Model servers that mean harm, or do not know better: every answer is bounded and told.

use reqwest::Method;
use serde_json::{Value, json};

use super::rig::{Rig, soon};
use super::upstream::{Say, Upstream, start};

fn stream() -> String {
    let call = json!({ "choices": [{ "delta": { "tool_calls": [
        { "id": "a", "function": { "name": "ready", "arguments": "{}" } }] } }] });
    format!("data: {call}\n\ndata: [DONE]\n\n")
}

/// A model that was fine when it was added, and then its server turns.
async fn turned(say: impl Fn() -> Say + Send + Sync + 'static) -> (Rig, Upstream) {
    let rig = Rig::signed().await;
    let up = start(move |request| {
        if request.contains("Call the tool") {
            return Say::Events(vec![stream()]);
        }
        if request.starts_with("POST /v1/chat/completions") {
            return say();
        }
        Say::Whole(404, "", "{}".to_owned())
    })
    .await;
    let new = json!({ "name": "m", "url": up.url, "key": "the-key", "model": "m" });
    let added = rig.post("/models", new).await;
    assert_eq!(
        added["tools"], true,
        "one that always streams is taken: {added}"
    );
    (rig, up)
}

async fn complete(rig: &Rig, streamed: bool) -> (u16, String) {
    let body = json!({ "model": "m", "stream": streamed, "messages": [] });
    let answer = rig
        .http
        .post(rig.url("/v1/chat/completions"))
        .header("cookie", &rig.cookie)
        .header("x-lembas", "1")
        .json(&body)
        .send();
    let answer = soon(answer).await.unwrap();
    let status = answer.status().as_u16();
    (status, soon(answer.text()).await.unwrap())
}

fn error(text: &str) -> Value {
    let said: Value = serde_json::from_str(text).unwrap_or_default();
    assert!(said["error"]["text"].is_string(), "{text}");
    said["error"].clone()
}

#[tokio::test]
async fn a_redirect_is_told_and_the_key_stays_here() {
    let other = start(|_| Say::Whole(200, "", "{}".to_owned())).await;
    let to: &'static str = format!("location: {}/chat/completions\r\n", other.url).leak();
    for status in [301, 302, 307, 308] {
        let (rig, _up) = turned(move || Say::Whole(status, to, String::new())).await;
        for streamed in [false, true] {
            let (status, text) = complete(&rig, streamed).await;
            assert_eq!(status, 502, "{text}");
            assert!(
                error(&text)["text"].as_str().unwrap().contains("sends on"),
                "{text}"
            );
        }
        // Nor is it followed while a model is tried.
        let redirects = start(move |_| Say::Whole(302, to, String::new())).await;
        let tried = json!({ "url": redirects.url, "key": "the-key", "model": "m" });
        let (status, answer) = rig.call(Method::POST, "/models/test", Some(tried)).await;
        assert_eq!(status, 422, "{answer}");
    }
    assert!(other.heard.lock().is_empty(), "the other host was asked");
}

#[tokio::test]
async fn a_web_page_is_no_answer() {
    let page = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\n\r\n<html>Welcome</html>";
    let (rig, _up) = turned(move || Say::Raw(page.to_owned())).await;
    for streamed in [false, true] {
        let (status, text) = complete(&rig, streamed).await;
        assert_eq!(status, 502, "{text}");
        assert!(
            error(&text)["text"].as_str().unwrap().contains("web page"),
            "{text}"
        );
    }
}

#[tokio::test]
async fn heads_bodies_and_lines_without_end_are_bounded() {
    let head = |name: &str, value: usize| {
        let lines = format!("{name}: {}\r\n", "x".repeat(100)).repeat(value);
        format!("HTTP/1.1 200 OK\r\n{lines}\r\n{{}}")
    };
    // More heads than anybody reads.
    let (rig, _up) = turned(move || Say::Raw(head("x-more", 20_000))).await;
    let (status, text) = complete(&rig, false).await;
    assert_eq!(status, 502, "{text}");
    error(&text);
    // An answer that says it is packed is not unpacked: what it is, is no answer.
    let packed = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-encoding: gzip\r\nconnection: close\r\n\r\n\u{1f}\u{8b}";
    let (rig, _up) = turned(move || Say::Raw(packed.to_owned())).await;
    let (status, text) = complete(&rig, false).await;
    assert_eq!(status, 502, "{text}");
    error(&text);
    // One line of ten million bytes goes on as it came, and what was used is read behind it.
    let long = format!("data: {{\"x\":\"{}\"}}\n\n", "x".repeat(10_000_000));
    let used = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":1}}\n\ndata: [DONE]\n\n";
    let events = vec![long, used.to_owned()];
    let (rig, _up) = turned(move || Say::Events(events.clone())).await;
    let (status, text) = complete(&rig, true).await;
    assert_eq!(status, 200);
    assert!(text.len() > 10_000_000 && text.ends_with("[DONE]\n\n"));
    // A body without an end: more than is taken in one piece, and more than a stream may have.
    let endless = vec![format!("data: {}\n\n", "x".repeat(1 << 20)); 66];
    let (rig, _up) = turned(move || Say::Events(endless.clone())).await;
    let (status, text) = complete(&rig, true).await;
    assert_eq!(status, 200);
    assert!(text.len() < 66 << 20, "{}", text.len());
    assert!(
        text.contains("event: error") && text.contains("64 MiB"),
        "{}",
        &text[text.len() - 300..]
    );
    let (status, text) = complete(&rig, false).await;
    assert_eq!(status, 502, "{text:.200}");
    error(&text);
}
