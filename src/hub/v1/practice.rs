//! The practice model on the wire: its script as a paced stream, or as one object.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::response::{IntoResponse, Response};
use futures_util::stream::unfold;
use serde_json::{Value, json};

use super::answer;
use crate::clock::{now, sleep};
use crate::hub::Shared;
use crate::ids::random_hex;
use crate::model::practice::{self, Answer};
use crate::store::item::Tokens;

/// Answers a request; what it would have cost is counted like any model's.
pub(super) fn answer(shared: &Arc<Shared>, account: &str, body: &Value) -> Response {
    let list = |key: &str| {
        let list = body.get(key).and_then(Value::as_array);
        list.cloned().unwrap_or_default()
    };
    let messages = list("messages");
    let said = practice::next(&messages, &list("tools"));
    let used = Tokens {
        input: messages
            .iter()
            .map(|m| practice::tokens(&m.to_string()))
            .sum(),
        cached_input: 0,
        output: practice::tokens(&said.text) + practice::tokens(&said.thought),
    };
    count(shared, account, used);
    let id = format!("chatcmpl-{}", random_hex(8));
    if body.get("stream").and_then(Value::as_bool) != Some(true) {
        return Json(whole(&id, &said, used)).into_response();
    }
    let pause = match shared.facts.pace {
        0 => Duration::ZERO,
        pace => Duration::from_secs(1) / pace,
    };
    answer::stream(unfold(
        chunks(&id, &said, used),
        move |mut chunks| async move {
            let chunk = chunks.pop_front()?;
            if !pause.is_zero() && !chunks.is_empty() {
                sleep(pause).await;
            }
            Some((Ok(chunk.into_bytes()), chunks))
        },
    ))
}

fn count(shared: &Arc<Shared>, account: &str, used: Tokens) {
    let (store, account) = (shared.store.clone(), account.to_owned());
    shared.tasks.spawn("usage", async move {
        let counted = store.count_usage(super::month(), account, practice::ID.to_owned(), used);
        if let Err(error) = counted.await {
            tracing::warn!(%error, "could not count what was used");
        }
    });
}

fn usage(used: Tokens) -> Value {
    json!({
        "prompt_tokens": used.input, "completion_tokens": used.output,
        "total_tokens": used.input + used.output,
        "prompt_tokens_details": { "cached_tokens": used.cached_input },
    })
}

fn calls(said: &Answer) -> Vec<Value> {
    said.calls
        .iter()
        .enumerate()
        .map(|(n, (name, args))| {
            json!({ "index": n, "id": format!("call_{}", random_hex(6)), "type": "function",
                    "function": { "name": name, "arguments": args.to_string() } })
        })
        .collect()
}

fn finish(said: &Answer) -> &'static str {
    if said.calls.is_empty() {
        "stop"
    } else {
        "tool_calls"
    }
}

fn whole(id: &str, said: &Answer, used: Tokens) -> Value {
    let mut message = json!({ "role": "assistant", "content": said.text });
    if let (false, Some(message)) = (said.calls.is_empty(), message.as_object_mut()) {
        message.insert("tool_calls".to_owned(), calls(said).into());
    }
    json!({
        "id": id, "object": "chat.completion", "created": now().as_second(), "model": practice::ID,
        "choices": [{ "index": 0, "message": message, "finish_reason": finish(said) }],
        "usage": usage(used),
    })
}

/// The stream's events, in order.
fn chunks(id: &str, said: &Answer, used: Tokens) -> VecDeque<String> {
    let created = now().as_second();
    let event = |choices: Value, extra: Option<Value>| {
        let mut event = json!({ "id": id, "object": "chat.completion.chunk", "created": created,
                                "model": practice::ID, "choices": choices });
        if let (Some(used), Some(event)) = (extra, event.as_object_mut()) {
            event.insert("usage".to_owned(), used);
        }
        format!("data: {event}\n\n")
    };
    let delta = |delta: Value, finish: Option<&str>| {
        event(
            json!([{ "index": 0, "delta": delta, "finish_reason": finish }]),
            None,
        )
    };
    let mut out = VecDeque::new();
    out.push_back(delta(json!({ "role": "assistant", "content": "" }), None));
    for piece in Answer::pieces(&said.thought) {
        out.push_back(delta(json!({ "reasoning_content": piece }), None));
    }
    for piece in Answer::pieces(&said.text) {
        out.push_back(delta(json!({ "content": piece }), None));
    }
    for call in calls(said) {
        out.push_back(delta(json!({ "tool_calls": [call] }), None));
    }
    out.push_back(delta(json!({}), Some(finish(said))));
    out.push_back(event(json!([]), Some(usage(used))));
    out.push_back("data: [DONE]\n\n".to_owned());
    out
}
