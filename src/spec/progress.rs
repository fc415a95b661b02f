//! The progress line's text (progress.md, loop.json `progress`).

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::fill::{Facts, fill};
use super::read::Node;
use super::tool::named;

/// The thirteen phases of progress.md.
pub(super) const PHASES: [&str; 13] = [
    "queued",
    "waiting_for_model",
    "loading_model",
    "reading_prompt",
    "thinking",
    "writing",
    "running_tool",
    "waiting_for_person",
    "waiting_for_subagents",
    "compacting",
    "retrying",
    "stopped",
    "failed",
];

/// The texts of the phases.
#[derive(Clone, Debug)]
pub struct ProgressTexts {
    /// Between the text and the time since.
    pub separator: String,
    /// What stands for no phase at all.
    pub idle: String,
    /// After this long without any event, the line says so.
    pub quiet_after_ms: u64,
    /// With `elapsed`.
    pub quiet: String,
    phases: BTreeMap<String, Vec<Variant>>,
}

/// A text that fits when its conditions hold.
#[derive(Clone, Debug)]
struct Variant {
    /// Field → `*` (it is there) or the word that it is.
    when: BTreeMap<String, String>,
    text: String,
}

impl ProgressTexts {
    pub(super) fn parse(node: &Node<'_>) -> Self {
        node.only(&[
            "about",
            "separator",
            "idle",
            "quiet_after_ms",
            "quiet",
            "phases",
        ]);
        let phases = named(&node.get("phases"), |phase| {
            phase.only(&["data", "texts"]);
            let data: Vec<String> = phase
                .get("data")
                .map()
                .iter()
                .map(|(name, _)| (*name).to_owned())
                .collect();
            phase
                .get("texts")
                .list()
                .iter()
                .map(|node| Variant::parse(node, &data))
                .collect()
        });
        for phase in PHASES {
            let last: Option<&Variant> = phases.get(phase).and_then(|v: &Vec<Variant>| v.last());
            if last.is_none_or(|variant| !variant.when.is_empty()) {
                node.get("phases")
                    .get(phase)
                    .get("texts")
                    .wrong("texts whose last one needs nothing");
            }
        }
        for name in phases
            .keys()
            .filter(|name| !PHASES.contains(&name.as_str()))
        {
            node.get("phases")
                .get(name)
                .wrong("one of the thirteen phases");
        }
        Self {
            separator: node.get("separator").text(),
            idle: node.get("idle").text(),
            quiet_after_ms: node.get("quiet_after_ms").number(),
            quiet: node.get("quiet").text(),
            phases,
        }
    }

    /// The text of a phase with its data, without the time since. A phase that is not known is
    /// shown by its name: a newer peer may have one more.
    pub fn text(&self, phase: &str, data: &Map<String, Value>) -> String {
        let words = |(name, value): (&String, &Value)| Some((name.clone(), said(value)?));
        let facts: Facts = data.iter().filter_map(words).collect();
        let variants = self.phases.get(phase).into_iter().flatten();
        variants
            .filter(|variant| variant.holds(&facts))
            .find_map(|variant| fill(&variant.text, &facts).ok())
            .unwrap_or_else(|| phase.replace('_', " "))
    }
}

impl Variant {
    fn parse(node: &Node<'_>, data: &[String]) -> Self {
        node.only(&["when", "text"]);
        let variant = Self {
            when: named(&node.get("when"), |n| n.text()),
            text: node.get("text").text(),
        };
        for name in super::fill::variables(&variant.text) {
            if !variant.when.contains_key(name) || !data.iter().any(|field| field == name) {
                node.get("text").wrong(format!(
                    "no variable {name} without its condition and its field"
                ));
            }
        }
        variant
    }

    fn holds(&self, facts: &Facts) -> bool {
        self.when.iter().all(|(field, wanted)| {
            facts
                .get(field)
                .is_some_and(|value| wanted == "*" || wanted == value)
        })
    }
}

/// A value as words of the line; empty ones count as missing.
fn said(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        Value::Array(list) => {
            let names: Vec<String> = list.iter().filter_map(said).collect();
            names.join(", ")
        }
        Value::Null | Value::Bool(_) | Value::Object(_) => String::new(),
    };
    (!text.is_empty()).then_some(text)
}
