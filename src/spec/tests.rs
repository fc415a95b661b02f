//! What the embedded spec promises, and what a broken one is told.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::*;
use crate::config::Mode;

fn names(offer: &Offer) -> Vec<String> {
    let tools = Spec::embedded().offered(offer).unwrap();
    tools.into_iter().map(|tool| tool.name).collect()
}

fn agent() -> Offer {
    Offer::agent(Spec::embedded().facts(BoxKind::Full))
}

#[test]
fn the_embedded_spec_parses() {
    let spec = Spec::parse(&Contents::embedded()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(spec.version, "3.6.0");
}

#[test]
fn an_agent_session_is_offered_its_tools_and_nothing_is_left_to_fill() {
    let expected = [
        "ask_user",
        "bash",
        "edit",
        "glob",
        "grep",
        "list",
        "plan_submit",
        "plan_update",
        "plan_write",
        "read",
        "write",
    ];
    for shut in [BoxKind::Full, BoxKind::WritesOnly, BoxKind::None] {
        let offer = Offer::agent(Spec::embedded().facts(shut));
        assert_eq!(names(&offer), expected);
        for tool in Spec::embedded().offered(&offer).unwrap() {
            let sent = format!("{} {}", tool.description, tool.parameters);
            assert!(!sent.contains("{{"), "{sent}");
        }
    }
}

#[test]
fn a_tool_goes_where_its_scope_and_sessions_say() {
    let chat = Offer {
        project: Project::Llembas,
        kind: SessionKind::Chat,
        ..agent()
    };
    assert!(!names(&chat).contains(&"bash".to_owned()));
    assert!(names(&chat).contains(&"read".to_owned()));
}

#[test]
fn requirements_and_roles_decide() {
    let contents = Contents::embedded()
        .with(
            "tools/show.json",
            &tool(
                "show",
                json!({
        "requires": "display", "unavailable": "Nothing to show it on." }),
            ),
        )
        .with(
            "tools/report.json",
            &tool("report", json!({ "offered": "subagent" })),
        );
    let spec = Spec::parse(&contents).unwrap_or_else(|error| panic!("{error}"));
    let has = |offer: &Offer, name: &str| {
        spec.offered(offer)
            .unwrap()
            .iter()
            .any(|tool| tool.name == name)
    };
    let shown = Offer {
        possible: BTreeSet::from([Requires::Display]),
        ..agent()
    };
    let sub = Offer {
        role: Role::Subagent,
        ..agent()
    };
    assert!(!has(&agent(), "show") && has(&shown, "show"));
    assert!(!has(&agent(), "report") && has(&sub, "report"));
}

#[test]
fn purpose_is_added_where_a_tool_wants_it() {
    let tools = Spec::embedded().offered(&agent()).unwrap();
    let bash = tools.iter().find(|tool| tool.name == "bash").unwrap();
    assert_eq!(bash.parameters["required"], json!(["command", "purpose"]));
    assert!(bash.parameters["properties"]["purpose"]["description"].is_string());
    let read = tools.iter().find(|tool| tool.name == "read").unwrap();
    assert!(read.parameters["properties"].get("purpose").is_none());
}

#[test]
fn a_former_name_finds_its_tool() {
    let spec = Spec::embedded();
    assert_eq!(spec.tool("todo", Project::Cli).unwrap().name, "plan_write");
    assert_eq!(spec.tool("read", Project::Cli).unwrap().name, "read");
    assert!(spec.tool("mkdir", Project::Cli).is_none());
}

#[test]
fn narrowing_leaves_less_and_never_other_things() {
    let whole = json!({ "type": "object", "required": ["a"], "properties": {
        "a": { "enum": ["x", "y", "z"] }, "b": { "type": "string" },
        "c": { "type": "object", "properties": { "d": { "type": "string" }, "e": { "enum": [1, 2] } } },
        "l": { "type": "array", "items": { "type": "object", "properties": { "f": { "enum": ["p", "q"] }, "g": {} } } },
    } });
    let narrowed = |drop: &[&str], values: &[(&str, Value)]| {
        let narrowed = Narrowed {
            drop: drop.iter().map(|path| (*path).to_owned()).collect(),
            values: values
                .iter()
                .map(|(path, list)| ((*path).to_owned(), list.as_array().unwrap().clone()))
                .collect(),
        };
        let mut schema = whole.clone();
        narrowed.apply(&mut schema).map(|()| schema)
    };
    let less = narrowed(
        &["b", "c.d", "l[].g"],
        &[("a", json!(["x"])), ("l[].f", json!(["q"]))],
    )
    .unwrap();
    assert_eq!(
        less,
        json!({ "type": "object", "required": ["a"], "properties": {
        "a": { "enum": ["x"] },
        "c": { "type": "object", "properties": { "e": { "enum": [1, 2] } } },
        "l": { "type": "array", "items": { "type": "object", "properties": { "f": { "enum": ["q"] } } } },
    } })
    );
    for (drop, values) in [
        (&["a"][..], vec![]),
        (&["nothing"][..], vec![]),
        (&["c.nothing"][..], vec![]),
        (&[][..], vec![("a", json!(["w"]))]),
        (&[][..], vec![("a", json!([]))]),
        (&[][..], vec![("b", json!(["x"]))]),
    ] {
        assert!(narrowed(drop, &values).is_err(), "{drop:?} {values:?}");
    }
}

#[test]
fn every_mistake_is_told_with_its_place() {
    let contents = Contents::embedded()
        .with("tools/broken.json", r#"{"name":"other","scope":"all","sessions":3,"risk":"read","exclusive":"no","block":"read","purpose":false,"aliases":{"web":[]},"renamed":{"gone":{}},"variables":{"unused":"x"},"narrow":{"cli":{"drop":["zz"]}},"requires":"plan","description":"{{used}}","parameters":[],"colour":1}"#)
        .with("purpose.json", "{")
        .with("prompts/modes/auto.md", "{{who}}\n");
    let SpecError(problems) = Spec::parse(&contents).unwrap_err();
    let told: Vec<String> = problems.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(told.join("\n"), @"");
}

#[test]
fn the_system_text_is_the_same_bytes_every_time_and_has_no_clock_and_no_path() {
    let facts = SystemFacts {
        project: "api",
        system: "Linux, x86_64",
        mode: Mode::Edit,
        ..SystemFacts::default()
    };
    let text = Spec::embedded().system(&facts);
    assert_eq!(text, Spec::embedded().system(&facts));
    assert!(
        !text.contains("{{") && !text.contains("/home") && !text.contains("\n\n\n"),
        "{text}"
    );
    insta::assert_snapshot!(text, @"");
}

#[test]
fn the_system_text_takes_in_what_there_is() {
    let instructions = [
        (
            "AGENTS.md".to_owned(),
            "Use tabs.\n\n\nLeave {{this}}.\n".to_owned(),
        ),
        ("src/AGENTS.md".to_owned(), "No unwrap.".to_owned()),
    ];
    let also = ["/srv/notes".to_owned()];
    let facts = SystemFacts {
        project: "api",
        system: "Linux",
        also: &also,
        mode: Mode::Plan,
        background: "Jobs can run on.",
        instructions: &instructions,
        plan: "1. Look",
        given: "The chat is called Login.",
    };
    let text = Spec::embedded().system(&facts);
    let (_, end) = text.split_once("Mode: Plan.").unwrap();
    insta::assert_snapshot!(end, @"");
    assert!(text.contains("Further folders you may work in: /srv/notes."));
    assert!(text.contains("- Jobs can run on.\n"));
}

#[test]
fn notes_are_wrapped() {
    let spec = Spec::embedded();
    assert_eq!(spec.note(&[]), None);
    let line = spec
        .numbers
        .context
        .note
        .say("date", &[("date", "Monday, 30 November 2026")]);
    assert_eq!(
        spec.note(&[line]).unwrap(),
        "<session-note>\nToday is Monday, 30 November 2026.\n</session-note>"
    );
}

#[test]
fn progress_is_said_in_words() {
    let cases = [
        ("queued", json!({}), "waiting in line for the model"),
        (
            "queued",
            json!({ "position": 2 }),
            "number 2 in line for the model",
        ),
        (
            "waiting_for_model",
            json!({ "model": "qwen3-32b" }),
            "waiting for qwen3-32b",
        ),
        (
            "loading_model",
            json!({ "model": "qwen3-32b", "percent": 40 }),
            "loading qwen3-32b 40 %",
        ),
        (
            "loading_model",
            json!({ "model": "qwen3-32b" }),
            "loading qwen3-32b",
        ),
        (
            "reading_prompt",
            json!({ "model": "m", "tokens": 512, "total": 2048 }),
            "m is reading, 512 of 2048 tokens",
        ),
        (
            "reading_prompt",
            json!({ "model": "m", "tokens": 512 }),
            "m is reading",
        ),
        ("thinking", json!({}), "thinking"),
        (
            "writing",
            json!({ "tokens": 90 }),
            "writing, 90 tokens so far",
        ),
        (
            "running_tool",
            json!({ "tool": "bash", "purpose": "the unit tests", "call": "c1" }),
            "running the unit tests",
        ),
        (
            "running_tool",
            json!({ "tool": "read", "purpose": "", "call": "c1" }),
            "running read",
        ),
        (
            "waiting_for_person",
            json!({ "ask": "a", "kind": "question" }),
            "waits for your answer",
        ),
        (
            "waiting_for_person",
            json!({ "ask": "a", "kind": "new kind" }),
            "waits for you",
        ),
        (
            "waiting_for_subagents",
            json!({ "count": 2, "names": ["Ada", "Bo"] }),
            "waiting for Ada, Bo",
        ),
        ("compacting", json!({}), "shortening the conversation"),
        (
            "retrying",
            json!({ "attempt": 3, "of": 5, "reason": "connection refused", "at": 1 }),
            "trying again, attempt 3 of 5 (connection refused)",
        ),
        ("stopped", json!({ "by": "you" }), "stopped by you"),
        (
            "failed",
            json!({ "reason": "the disk is full" }),
            "failed: the disk is full",
        ),
        ("failed", json!({ "reason": null }), "failed"),
        ("dreaming_up", json!({ "x": 1 }), "dreaming up"),
    ];
    for (phase, data, expected) in cases {
        let text = Spec::embedded()
            .numbers
            .progress
            .text(phase, data.as_object().unwrap());
        assert_eq!(text, expected, "{phase} {data}");
    }
}

/// A tool file with these fields on top of plain ones.
fn tool(name: &str, fields: Value) -> String {
    let mut tool = json!({
        "name": name, "scope": "shared", "sessions": "both", "risk": "read", "exclusive": false, "block": "tool",
        "purpose": false, "aliases": {}, "renamed": {}, "variables": {}, "narrow": {}, "description": "x",
        "parameters": { "type": "object" },
    });
    tool.as_object_mut()
        .unwrap()
        .extend(fields.as_object().unwrap().clone());
    tool.to_string()
}
