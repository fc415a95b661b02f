//! Models: tried before they are saved, passed through as they are, and counted.

use reqwest::Method;
use serde_json::{Value, json};

use super::rig::{Rig, soon};
use super::upstream::{Say, start};

const ID: &str = "0123456789abcdef";

fn answers() -> String {
    json!({ "choices": [{ "message": { "role": "assistant", "tool_calls": [{ "id": "a", "function": { "name": "ready", "arguments": "{}" } }] } }],
            "usage": { "prompt_tokens": 1, "completion_tokens": 1 } })
    .to_string()
}

fn good(request: &str) -> Say {
    if request.starts_with("GET /v1/models") {
        return Say::Whole(
            200,
            "",
            json!({ "data": [{ "id": "qwen3-32b" }, { "id": "qwen3-8b" }] }).to_string(),
        );
    }
    if request.starts_with("POST /v1/chat/completions") {
        return Say::Whole(200, "", answers());
    }
    Say::Whole(404, "", "{}".to_owned())
}

async fn with_model(
    say: impl Fn(&str) -> Say + Send + Sync + 'static,
) -> (Rig, super::upstream::Upstream) {
    let rig = Rig::signed().await;
    let up = start(move |r| {
        if r.contains("Call the tool") || r.starts_with("GET /v1/models") || r.contains("/api/") {
            good(r)
        } else {
            say(r)
        }
    })
    .await;
    let new = json!({ "name": "qwen", "url": up.url, "key": "secret-key", "model": "qwen3-32b" });
    let added = rig.post("/models", new).await;
    assert_eq!(added["tools"], true, "{added}");
    (rig, up)
}

async fn complete(rig: &Rig, token: Option<&str>, body: Value) -> reqwest::Response {
    let request = rig.http.post(rig.url("/v1/chat/completions")).json(&body);
    let request = match token {
        Some(token) => request.bearer_auth(token),
        None => request
            .header("cookie", &rig.cookie)
            .header("x-lembas", "1"),
    };
    soon(request.send()).await.unwrap()
}

#[tokio::test]
async fn six_broken_servers_six_texts() {
    let rig = Rig::signed().await;
    let try_it = async |url: String| {
        let begun = std::time::Instant::now();
        let (status, body) = rig
            .call(
                Method::POST,
                "/models/test",
                Some(json!({ "url": url, "key": "k", "model": "qwen3-32" })),
            )
            .await;
        assert_eq!(status, 422, "{body}");
        assert!(begun.elapsed().as_secs() <= 10);
        assert!(body["error"]["try"].is_string(), "{body}");
        (
            body["error"]["code"].as_str().unwrap().to_owned(),
            body["error"]["text"].as_str().unwrap().to_owned(),
        )
    };
    let mut codes = Vec::new();
    codes.push(try_it("ftp://nowhere".to_owned()).await.0);
    let free = {
        std::net::TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
    };
    let (code, text) = try_it(format!("http://{free}/v1")).await;
    assert!(text.contains("refused"), "{text}");
    codes.push(code);
    let up = start(|r| {
        if r.starts_with("POST") {
            Say::Whole(
                401,
                "",
                json!({ "error": { "message": "bad key" } }).to_string(),
            )
        } else {
            good(r)
        }
    })
    .await;
    codes.push(try_it(up.url).await.0);
    let up = start(|r| {
        if r.starts_with("POST") {
            Say::Whole(404, "", json!({ "error": "model not found" }).to_string())
        } else {
            good(r)
        }
    })
    .await;
    codes.push(try_it(up.url).await.0);
    let up = start(|_| {
        Say::Raw(
            "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 12\r\n\r\n<html>hello<"
                .to_owned(),
        )
    })
    .await;
    codes.push(try_it(up.url).await.0);
    assert_eq!(
        codes,
        [
            "address",
            "unreachable",
            "key_refused",
            "name_unknown",
            "not_a_server"
        ]
    );
    let list = rig.get("/models").await;
    assert_eq!(
        list["models"].as_array().unwrap().len(),
        1,
        "only the practice model"
    );
}

#[tokio::test]
async fn a_silent_server_is_given_ten_seconds() {
    let rig = Rig::signed().await;
    let up = start(|_| Say::Nothing).await;
    let request = rig
        .http
        .post(rig.url("/api/v2/models/test"))
        .header("cookie", &rig.cookie)
        .header("x-lembas", "1")
        .header("origin", rig.hub.url())
        .json(&json!({ "url": up.url, "model": "m" }));
    let answer = tokio::time::timeout(std::time::Duration::from_secs(15), request.send())
        .await
        .unwrap()
        .unwrap();
    let body: Value = answer.json().await.unwrap();
    assert_eq!(body["error"]["code"], "silent", "{body}");
}

#[tokio::test]
async fn a_model_is_saved_without_showing_its_key() {
    let (rig, up) = with_model(good).await;
    assert!(
        up.heard.lock()[0]
            .to_lowercase()
            .contains("authorization: bearer secret-key")
    );
    let list = rig.get("/models").await.to_string();
    assert!(
        list.contains("qwen3-32b") && !list.contains("secret-key"),
        "{list}"
    );
    assert!(list.contains("answers in") && list.contains("\"default\":true"));
    let (status, _) = rig.call(Method::DELETE, "/models/qwen", None).await;
    assert_eq!(status, 200);
    assert_eq!(
        rig.get("/models").await["models"][0]["default"],
        true,
        "the practice model again"
    );
}

#[tokio::test]
async fn a_stream_passes_through_and_is_counted() {
    let (rig, up) = with_model(|_| {
        Say::Events(vec![
            "data: {\"choices\":[{\"delta\":{\"content\":\"Hel\"}}]}\n\n".to_owned(),
            "data: {\"choices\":[{\"delta\":{\"content\":\"lo\"},\"finish_reason\":\"stop\"}]}\n\n".to_owned(),
            "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":100,\"completion_tokens\":7,\"prompt_tokens_details\":{\"cached_tokens\":80}}}\n\ndata: [DONE]\n\n".to_owned(),
        ])
    })
    .await;
    let (_, token) = rig.pair(ID, "zephyr").await;
    let answer = complete(
        &rig,
        Some(&token),
        json!({ "model": "qwen", "stream": true, "messages": [] }),
    )
    .await;
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    let text = answer.text().await.unwrap();
    assert!(
        text.contains("Hel") && text.ends_with("data: [DONE]\n\n"),
        "{text}"
    );
    let last = up.heard.lock().last().unwrap().clone();
    assert!(
        last.contains("\"model\":\"qwen3-32b\"")
            && last.contains("include_usage")
            && last.to_lowercase().contains("bearer secret-key"),
        "{last}"
    );
    assert!(!last.contains(&token), "the device's token stays here");
    let used = async {
        loop {
            let used: Value = rig
                .http
                .get(rig.url("/v1/usage"))
                .bearer_auth(&token)
                .send()
                .await
                .unwrap()
                .json()
                .await
                .unwrap();
            if used["month"]["requests"] == 1 {
                return used;
            }
        }
    };
    let used = soon(used).await;
    assert_eq!(
        (
            &used["month"]["input_tokens"],
            &used["month"]["cached_input_tokens"],
            &used["month"]["output_tokens"]
        ),
        (&json!(100), &json!(80), &json!(7))
    );
}

#[tokio::test]
async fn a_client_that_goes_ends_the_models_work() {
    let (rig, mut up) = with_model(|_| {
        Say::Stalls("data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n".to_owned())
    })
    .await;
    let mut answer = complete(
        &rig,
        None,
        json!({ "model": "qwen", "stream": true, "messages": [] }),
    )
    .await;
    let first = soon(answer.chunk()).await.unwrap().unwrap();
    assert!(String::from_utf8_lossy(&first).contains("content"));
    drop(answer);
    soon(up.gone.recv()).await.unwrap();
}

#[tokio::test]
async fn failures_of_a_server_are_told_as_its_own() {
    for (say, status, code) in [
        (
            Say::Whole(
                401,
                "",
                json!({ "error": { "message": "bad key" } }).to_string(),
            ),
            502,
            "model_key",
        ),
        (
            Say::Whole(429, "retry-after: 34\r\n", "{}".to_owned()),
            429,
            "model_busy",
        ),
        (Say::Whole(500, "", "boom".to_owned()), 502, "model_failed"),
        (
            Say::Whole(
                400,
                "",
                json!({ "error": { "message": "too long" } }).to_string(),
            ),
            400,
            "model_refused",
        ),
    ] {
        let said = say.clone();
        let (rig, _up) = with_model(move |_| said.clone()).await;
        for stream in [true, false] {
            let answer = complete(
                &rig,
                None,
                json!({ "model": "qwen", "stream": stream, "messages": [] }),
            )
            .await;
            assert_eq!(answer.status(), status, "{say:?}");
            let retry = answer.headers().get("retry-after").cloned();
            let body: Value = answer.json().await.unwrap();
            assert_eq!(
                (&body["error"]["code"], body["error"]["message"].is_string()),
                (&json!(code), true),
                "{body}"
            );
            assert_eq!(retry.is_some(), code == "model_busy");
        }
    }
    let (rig, _up) = with_model(|_| Say::Breaks("data: {\"choices\":[]}\n\n".to_owned())).await;
    let answer = complete(
        &rig,
        None,
        json!({ "model": "qwen", "stream": true, "messages": [] }),
    )
    .await;
    let text = soon(answer.text()).await.unwrap();
    assert!(
        text.contains("event: error") && text.contains("broke off"),
        "{text}"
    );
}

#[tokio::test]
async fn a_server_that_loads_is_waited_for_in_words() {
    let count = std::sync::atomic::AtomicUsize::new(0);
    let (rig, _up) = with_model(move |_| {
        if count.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 0 {
            return Say::Whole(
                503,
                "",
                json!({ "error": { "message": "Loading model" } }).to_string(),
            );
        }
        Say::Events(vec!["data: [DONE]\n\n".to_owned()])
    })
    .await;
    let answer = complete(
        &rig,
        None,
        json!({ "model": "qwen", "stream": true, "messages": [] }),
    )
    .await;
    let text = soon(answer.text()).await.unwrap();
    assert!(
        text.starts_with(": {\"lembas\":")
            && text.contains("loading_model")
            && text.ends_with("data: [DONE]\n\n"),
        "{text}"
    );
}

#[tokio::test]
async fn the_practice_model_answers_streamed_and_whole() {
    let rig = Rig::signed().await;
    let (_, token) = rig.pair(ID, "zephyr").await;
    let body = json!({ "model": "practice", "stream": true, "messages": [{ "role": "user", "content": "hello" }],
                       "tools": [{ "type": "function", "function": { "name": "list" } }] });
    let text = complete(&rig, Some(&token), body)
        .await
        .text()
        .await
        .unwrap();
    let events: Vec<Value> = text
        .lines()
        .filter_map(|l| l.strip_prefix("data: "))
        .filter_map(|d| serde_json::from_str(d).ok())
        .collect();
    let words: String = events
        .iter()
        .filter_map(|e| e["choices"][0]["delta"]["content"].as_str())
        .collect();
    assert!(
        words.contains("script without intelligence") && words.contains("“hello”"),
        "{words}"
    );
    assert!(
        events
            .iter()
            .any(|e| e["choices"][0]["delta"]["tool_calls"][0]["function"]["name"] == "list")
    );
    assert!(
        events
            .iter()
            .any(|e| e["usage"]["completion_tokens"].as_u64() > Some(0))
    );
    let whole: Value = complete(
        &rig,
        Some(&token),
        json!({ "model": "practice", "messages": [] }),
    )
    .await
    .json()
    .await
    .unwrap();
    assert_eq!(whole["choices"][0]["finish_reason"], "stop");
    let list: Value = rig
        .http
        .get(rig.url("/v1/models"))
        .bearer_auth(&token)
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    assert_eq!(list["data"][0]["id"], "practice");
}

#[tokio::test]
async fn only_who_may_uses_models() {
    let rig = Rig::signed().await;
    assert_eq!(
        complete(&rig, Some("nonsense"), json!({ "model": "practice" }))
            .await
            .status(),
        401
    );
    let bare = rig
        .http
        .post(rig.url("/v1/chat/completions"))
        .header("cookie", &rig.cookie)
        .json(&json!({}))
        .send()
        .await
        .unwrap();
    assert_eq!(bare.status(), 403, "a cookie alone is not a page");
    let (_, token) = rig.pair(ID, "zephyr").await;
    assert_eq!(
        complete(
            &rig,
            Some(&token),
            json!({ "model": "gpt-none", "messages": [] })
        )
        .await
        .status(),
        404
    );
    rig.call(Method::DELETE, &format!("/devices/{ID}"), None)
        .await;
    assert_eq!(
        complete(&rig, Some(&token), json!({ "model": "practice" }))
            .await
            .status(),
        401
    );
}
