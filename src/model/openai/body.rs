//! The JSON of a chat completion request. The same conversation gives the same bytes, so that a
//! server's cache of the prefix holds (context.md §10).

use serde_json::{Map, Value, json};

use crate::model::{Content, Level, Message, Request};

/// The bytes to send.
pub fn write(request: &Request) -> Vec<u8> {
    let mut messages = Vec::with_capacity(request.messages.len() + 1);
    if !request.system.is_empty() {
        messages.push(json!({ "role": "system", "content": request.system }));
    }
    messages.extend(request.messages.iter().map(message));
    let mut body = Map::new();
    body.insert("model".into(), json!(request.model));
    body.insert("messages".into(), Value::Array(messages));
    if !request.tools.is_empty() {
        let tools: Vec<Value> = request
            .tools
            .iter()
            .map(|t| json!({ "type": "function", "function": t }))
            .collect();
        body.insert("tools".into(), Value::Array(tools));
    }
    match &request.level {
        Level::Default => {}
        Level::Off => {
            body.insert(
                "chat_template_kwargs".into(),
                json!({ "enable_thinking": false }),
            );
        }
        Level::Effort(effort) => {
            body.insert("reasoning_effort".into(), json!(effort));
        }
    }
    body.insert("stream".into(), json!(true));
    body.insert("stream_options".into(), json!({ "include_usage": true }));
    Value::Object(body).to_string().into_bytes()
}

fn message(message: &Message) -> Value {
    match message {
        Message::User(parts) => match parts.as_slice() {
            // Plain text for the servers that take nothing else.
            [Content::Text(text)] => json!({ "role": "user", "content": text }),
            parts => json!({
                "role": "user",
                "content": parts.iter().map(content).collect::<Vec<_>>(),
            }),
        },
        Message::Assistant {
            text,
            reasoning,
            calls,
        } => {
            let mut object = Map::new();
            object.insert("role".into(), json!("assistant"));
            object.insert("content".into(), json!(text));
            if let Some(reasoning) = reasoning {
                object.insert("reasoning_content".into(), json!(reasoning));
            }
            if !calls.is_empty() {
                let calls: Vec<Value> = calls
                    .iter()
                    .map(|c| {
                        json!({
                            "id": c.id,
                            "type": "function",
                            "function": { "name": c.name, "arguments": arguments(&c.args) },
                        })
                    })
                    .collect();
                object.insert("tool_calls".into(), Value::Array(calls));
            }
            Value::Object(object)
        }
        Message::Tool { call, text } => {
            json!({ "role": "tool", "tool_call_id": call, "content": text })
        }
    }
}

/// Chat templates parse the arguments of earlier calls and fail on what is no JSON object: the
/// model is shown its own mistake in the call's result instead.
fn arguments(args: &str) -> &str {
    match serde_json::from_str::<Map<String, Value>>(args) {
        Ok(_) => args,
        Err(_) => "{}",
    }
}

fn content(part: &Content) -> Value {
    match part {
        Content::Text(text) => json!({ "type": "text", "text": text }),
        Content::Image { mime, data } => json!({
            "type": "image_url",
            "image_url": { "url": format!("data:{mime};base64,{data}") },
        }),
    }
}
