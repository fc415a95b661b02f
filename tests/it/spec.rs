//! The spec holds together: files fit their schemas, the link's page fits its schema and ACP's
//! published types, names that are used exist.

use std::collections::BTreeMap;

use agent_client_protocol_schema::v1;
use lembas::spec::{Contents, Spec};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::schema::Schema;

fn json(path: &str) -> Value {
    serde_json::from_str(Contents::embedded().text(path).unwrap()).unwrap()
}

#[test]
fn every_file_fits_its_schema() {
    let contents = Contents::embedded();
    let mut checked = 0;
    for path in contents.paths().filter(|path| path.ends_with(".json")) {
        let schema = match path.split('/').collect::<Vec<_>>().as_slice() {
            ["tools", _] => "schema/tool.json",
            ["purpose.json"] => "schema/purpose.json",
            ["loop.json"] => "schema/loop.json",
            ["prompts", "index.json"] => "schema/prompts.json",
            ["conformance", _] => "schema/conformance.json",
            // Schemas themselves; the permission tables have their own reader and tests.
            ["schema", ..] | ["models", ..] | ["permission", ..] => continue,
            _ => panic!("{path} has no schema"),
        };
        assert_eq!(
            Schema::read(schema).check(&json(path)),
            Vec::<String>::new(),
            "{path}"
        );
        checked += 1;
    }
    assert!(checked > 10);
}

/// A frame of acp.md's examples, with the line it stands in.
struct Frame {
    line: usize,
    value: Value,
}

/// The examples, block by block.
fn examples() -> Vec<Vec<Frame>> {
    let contents = Contents::embedded();
    let mut blocks = Vec::new();
    let mut block: Option<Vec<Frame>> = None;
    for (index, line) in contents.text("acp.md").unwrap().lines().enumerate() {
        match (line, &mut block) {
            ("```json", None) => block = Some(Vec::new()),
            ("```", Some(_)) => blocks.extend(block.take()),
            (line, Some(frames)) => {
                let line_number = index + 1;
                let value = serde_json::from_str(line)
                    .unwrap_or_else(|e| panic!("acp.md:{line_number}: {e}"));
                frames.push(Frame {
                    line: line_number,
                    value,
                });
            }
            _ => {}
        }
    }
    blocks
}

#[test]
fn every_example_of_the_link_fits_its_schema() {
    let schema = Schema::read("schema/link.json");
    let methods = &schema.value()["x-methods"];
    let metas = &schema.value()["x-meta"];
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for block in examples() {
        let mut asked: BTreeMap<String, String> = BTreeMap::new();
        for Frame { line, value } in block {
            let fits = |def: &str, value: &Value| {
                assert_eq!(
                    schema.check_def(def, value),
                    Vec::<String>::new(),
                    "acp.md:{line} against {def}"
                );
            };
            let def = |value: &Value| {
                value
                    .as_str()
                    .unwrap()
                    .trim_start_matches("#/$defs/")
                    .to_owned()
            };
            let id = value.get("id").map(Value::to_string);
            match value.get("method").and_then(Value::as_str) {
                Some(method) => {
                    *seen.entry(method.to_owned()).or_default() += 1;
                    if let Some(known) = methods.get(method) {
                        fits(&def(&known["params"]["$ref"]), &value["params"]);
                        assert_eq!(
                            known["kind"] == "request",
                            id.is_some(),
                            "acp.md:{line}: a request has an id"
                        );
                    } else if let Some(known) = metas.get(method) {
                        let meta = value["params"].pointer("/_meta/lembas").or_else(|| {
                            value["params"].pointer("/clientCapabilities/_meta/lembas")
                        });
                        fits(
                            &def(&known["params"]),
                            meta.unwrap_or_else(|| panic!("acp.md:{line}: no _meta.lembas")),
                        );
                    }
                    if method == "_lembas/event" {
                        let kind = value["params"]["type"].as_str().unwrap();
                        *seen.entry(format!("event.{kind}")).or_default() += 1;
                        fits(
                            &format!("event.{}", value["params"]["type"].as_str().unwrap()),
                            &value["params"]["data"],
                        );
                    }
                    if let Some(id) = id {
                        asked.insert(id, method.to_owned());
                    }
                }
                None if value.get("jsonrpc").is_none() => {
                    let def = if value.get("access_token").is_some() {
                        "grant"
                    } else {
                        "discovery"
                    };
                    fits(def, &value);
                }
                None => {
                    let method = id.and_then(|id| asked.get(&id).cloned());
                    let (Some(result), Some(method)) = (value.get("result"), method) else {
                        continue;
                    };
                    if let Some(known) = methods.get(&method) {
                        fits(&def(&known["result"]["$ref"]), result);
                    } else if let Some(known) = metas.get(&method) {
                        let meta = result.pointer("/_meta/lembas");
                        let meta =
                            meta.or_else(|| result.pointer("/agentCapabilities/_meta/lembas"));
                        fits(
                            &def(&known["result"]),
                            meta.unwrap_or_else(|| panic!("acp.md:{line}: no _meta.lembas")),
                        );
                    }
                }
            }
        }
    }
    let defs = schema.value()["$defs"].as_object().unwrap().keys();
    let events = defs.filter(|name| name.starts_with("event.") && *name != "event.params");
    let acp = [
        "new",
        "load",
        "resume",
        "list",
        "close",
        "delete",
        "set_mode",
        "set_config_option",
        "prompt",
        "cancel",
        "update",
        "request_permission",
    ];
    let missing: Vec<String> = methods
        .as_object()
        .unwrap()
        .keys()
        .chain(events)
        .cloned()
        .chain(acp.map(|name| format!("session/{name}")))
        .filter(|name| !seen.contains_key(name))
        .collect();
    assert_eq!(
        missing,
        Vec::<String>::new(),
        "methods and events without an example frame"
    );
}

#[test]
fn every_example_fits_the_published_types() {
    fn fits<T: DeserializeOwned>(value: &Value, line: usize) {
        if let Err(error) = serde_json::from_value::<T>(value.clone()) {
            panic!("acp.md:{line}: {error}");
        }
    }
    let mut checked = 0;
    for block in examples() {
        let mut asked: BTreeMap<String, String> = BTreeMap::new();
        for Frame { line, value } in block {
            let id = value.get("id").map(Value::to_string).unwrap_or_default();
            let params = &value["params"];
            match value.get("method").and_then(Value::as_str) {
                Some("initialize") => fits::<v1::InitializeRequest>(params, line),
                Some("session/new") => fits::<v1::NewSessionRequest>(params, line),
                Some("session/prompt") => fits::<v1::PromptRequest>(params, line),
                Some("session/update") => fits::<v1::SessionNotification>(params, line),
                Some("session/request_permission") => {
                    fits::<v1::RequestPermissionRequest>(params, line);
                }
                Some("session/list") => fits::<v1::ListSessionsRequest>(params, line),
                Some("session/load") => fits::<v1::LoadSessionRequest>(params, line),
                Some("session/resume") => fits::<v1::ResumeSessionRequest>(params, line),
                Some("session/set_mode") => fits::<v1::SetSessionModeRequest>(params, line),
                Some("session/set_config_option") => {
                    fits::<v1::SetSessionConfigOptionRequest>(params, line);
                }
                Some("session/close") => fits::<v1::CloseSessionRequest>(params, line),
                Some("session/delete") => fits::<v1::DeleteSessionRequest>(params, line),
                Some("session/cancel") => fits::<v1::CancelNotification>(params, line),
                Some(_) => continue,
                None => match (asked.get(&id).map(String::as_str), value.get("result")) {
                    (Some("initialize"), Some(result)) => {
                        fits::<v1::InitializeResponse>(result, line);
                    }
                    (Some("session/new"), Some(result)) => {
                        fits::<v1::NewSessionResponse>(result, line);
                    }
                    (Some("session/prompt"), Some(result)) => {
                        fits::<v1::PromptResponse>(result, line);
                    }
                    (Some("session/list"), Some(result)) => {
                        fits::<v1::ListSessionsResponse>(result, line);
                    }
                    (Some("session/load"), Some(result)) => {
                        fits::<v1::LoadSessionResponse>(result, line);
                    }
                    (Some("session/resume"), Some(result)) => {
                        fits::<v1::ResumeSessionResponse>(result, line);
                    }
                    (Some("session/set_mode"), Some(result)) => {
                        fits::<v1::SetSessionModeResponse>(result, line);
                    }
                    (Some("session/set_config_option"), Some(result)) => {
                        fits::<v1::SetSessionConfigOptionResponse>(result, line);
                    }
                    _ => continue,
                },
            }
            if let Some(method) = value.get("method").and_then(Value::as_str) {
                asked.insert(id, method.to_owned());
            }
            checked += 1;
        }
    }
    assert!(checked >= 31, "{checked}");
}

#[test]
fn every_sentence_of_the_link_has_its_own_number() {
    let contents = Contents::embedded();
    let mut numbers: Vec<&str> = Vec::new();
    for line in contents.text("acp.md").unwrap().lines() {
        if let Some(number) = line
            .strip_prefix("- **")
            .and_then(|rest| rest.split("**").next())
        {
            assert!(!numbers.contains(&number), "{number} twice");
            numbers.push(number);
        }
    }
    assert!(numbers.len() > 100);
}

#[test]
fn tools_that_texts_name_exist() {
    let spec = Spec::embedded();
    let tools: Vec<&str> = spec.tools.keys().map(String::as_str).collect();
    let texts = spec
        .prompts
        .all()
        .map(|(path, text)| (path.to_owned(), text.to_owned()));
    let descriptions = spec
        .tools
        .values()
        .map(|tool| (tool.name.clone(), tool.description.clone()));
    for (place, text) in texts.chain(descriptions) {
        let words = text.split(|c: char| !(c.is_ascii_lowercase() || c == '_'));
        for word in words.filter(|word| {
            ["plan_", "job_", "team_"]
                .iter()
                .any(|p| word.starts_with(p) && *word != *p)
        }) {
            assert!(
                tools.contains(&word) || text.contains(&format!("{{{{{word}}}}}")),
                "{place} names {word}"
            );
        }
    }
}

#[test]
fn texts_of_the_limits_and_the_wire_are_the_same() {
    let spec = Spec::embedded();
    let contents = Contents::embedded();
    let page = contents.text("acp.md").unwrap();
    for name in ["older", "newer"] {
        assert!(
            page.contains(spec.numbers.limits.raw(name)),
            "D6 and loop.json limits.{name}"
        );
    }
    assert_eq!(
        json("loop.json")["scheduled"]["texts"]["off"],
        spec.numbers.scheduled.texts.raw("off")
    );
}
