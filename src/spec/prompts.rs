//! `prompts/`: the texts, and the system text made of them once per session (context.md §10, §11).
//!
//! Nothing here reads a clock, a disk or the environment: the same facts give the same bytes.

use std::collections::BTreeMap;

use super::Spec;
use super::fill::{self, Facts};
use super::read::Files;
use super::tool::named;
use crate::config::Mode;

/// The prompt texts by their path under `prompts/`.
#[derive(Clone, Debug, Default)]
pub struct Prompts {
    texts: BTreeMap<String, String>,
}

/// What a session's system text is made of.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemFacts<'a> {
    /// The project's name: the last part of the session's folder.
    pub project: &'a str,
    /// The system in words: `Linux, x86_64`.
    pub system: &'a str,
    /// Further folders of the session.
    pub also: &'a [String],
    /// The mode the session is opened in.
    pub mode: Mode,
    /// A schedule opened it: nobody is there.
    pub scheduled: bool,
    /// What can go on in the background, one sentence; empty: nothing can.
    pub background: &'a str,
    /// Instruction files: path relative to the root, and text; outermost first.
    pub instructions: &'a [(String, String)],
    /// The plan as text, when there is one.
    pub plan: &'a str,
    /// What the client gave with `session/new`.
    pub given: &'a str,
}

const TEXTS: [&str; 12] = [
    "system/default.md",
    "modes/manual.md",
    "modes/edit.md",
    "modes/auto.md",
    "modes/plan.md",
    "blocks/context.md",
    "blocks/instructions.md",
    "blocks/instruction_file.md",
    "blocks/plan.md",
    "blocks/given.md",
    "blocks/scheduled.md",
    "blocks/compaction.md",
];

impl Prompts {
    pub(super) fn parse(files: &Files<'_>) -> Self {
        let json = files.json("prompts/index.json");
        let node = json.node();
        node.only(&["prompts"]);
        let mut texts = BTreeMap::new();
        for entry in node.get("prompts").list() {
            entry.only(&["file", "shared", "fragment", "use", "variables"]);
            entry.get("shared").flag();
            entry.get("use").text();
            if let Some(fragment) = entry.opt("fragment") {
                fragment.text();
            }
            let file = entry.get("file").text();
            let text = files.text(&format!("prompts/{file}"));
            let meanings = named(&entry.get("variables"), |n| n.text());
            let used = fill::variables(text);
            for name in used.iter().filter(|name| !meanings.contains_key(**name)) {
                entry
                    .get("variables")
                    .wrong(format!("a meaning for {name}"));
            }
            for name in meanings
                .keys()
                .filter(|name| !used.contains(&name.as_str()))
            {
                entry
                    .get("variables")
                    .get(name)
                    .wrong("a variable that the text uses");
            }
            texts.insert(file, text.trim_end().to_owned());
        }
        for text in TEXTS.iter().filter(|text| !texts.contains_key(**text)) {
            node.get("prompts").wrong(format!("an entry for {text}"));
        }
        Self { texts }
    }

    /// A text as written, without its final line feed; empty when there is none.
    pub fn text(&self, path: &str) -> &str {
        self.texts.get(path).map_or("", String::as_str)
    }

    /// All texts with their paths.
    pub fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// What a mode means, for the system text or a session note.
    pub fn mode(&self, mode: Mode) -> &str {
        self.text(match mode {
            Mode::Manual => "modes/manual.md",
            Mode::Edit => "modes/edit.md",
            Mode::Auto => "modes/auto.md",
            Mode::Plan => "modes/plan.md",
        })
    }

    /// The request for a summary (context.md §7).
    pub fn compaction(&self) -> &str {
        self.text("blocks/compaction.md")
    }

    fn filled(&self, path: &str, facts: &[(&str, &str)]) -> String {
        let facts: Facts = facts
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect();
        // Each text's variables are checked against its entry by the parse, and by a test against
        // what is filled here; were one missing all the same, the text is left out, not sent raw.
        fill::fill(&paragraphs(self.text(path), &facts), &facts).unwrap_or_default()
    }
}

impl Spec {
    /// The system text of a session. Made once, kept, and sent byte for byte.
    pub fn system(&self, facts: &SystemFacts<'_>) -> String {
        let prompts = &self.prompts;
        let output = &self.numbers.context.output;
        let rules = prompts.filled(
            "blocks/context.md",
            &[
                ("max_lines", &output.max_lines.to_string()),
                ("max_chars", &output.max_chars.to_string()),
            ],
        );
        let around = |path: &str, name: &str, text: &str| match text.trim() {
            "" => String::new(),
            text => prompts.filled(path, &[(name, text)]),
        };
        let files: Vec<String> = facts
            .instructions
            .iter()
            .map(|(path, text)| {
                prompts.filled(
                    "blocks/instruction_file.md",
                    &[("path", path), ("text", text.trim())],
                )
            })
            .collect();
        prompts.filled(
            "system/default.md",
            &[
                ("environment", &self.environment(facts)),
                ("background", facts.background),
                ("mode", prompts.mode(facts.mode)),
                ("scheduled", &self.attended(facts.scheduled)),
                ("context_rules", &rules),
                (
                    "plan_context",
                    &around("blocks/plan.md", "plan", facts.plan),
                ),
                (
                    "instructions",
                    &around("blocks/instructions.md", "files", &files.join("\n\n")),
                ),
                (
                    "given_context",
                    &around("blocks/given.md", "context", facts.given),
                ),
            ],
        )
    }

    /// What a session that a schedule opened is told; empty for others.
    fn attended(&self, scheduled: bool) -> String {
        let silent = self.numbers.scheduled.texts.raw("silent");
        let text = scheduled.then(|| {
            self.prompts
                .filled("blocks/scheduled.md", &[("silent", silent)])
        });
        text.unwrap_or_default()
    }

    /// The environment lines; one with an empty variable is left out.
    fn environment(&self, facts: &SystemFacts<'_>) -> String {
        let values: Facts = [
            ("project", facts.project.to_owned()),
            ("system", facts.system.to_owned()),
            ("also", facts.also.join(", ")),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
        let lines = self.numbers.context.env.iter().filter(|line| {
            let names = fill::variables(line);
            names
                .iter()
                .all(|name| values.get(*name).is_some_and(|value| !value.is_empty()))
        });
        let lines: Vec<String> = lines
            .filter_map(|line| fill::fill(line, &values).ok())
            .collect();
        lines.join("\n")
    }

    /// A `<session-note>` of these lines; none when there are none.
    pub fn note(&self, lines: &[String]) -> Option<String> {
        let facts = Facts::from([("lines".to_owned(), lines.join("\n"))]);
        (!lines.is_empty())
            .then(|| fill::fill(&self.numbers.context.note_wrap, &facts).unwrap_or_default())
    }
}

/// Leaves out each paragraph that is nothing but one variable that is empty (context.md §10, 5).
fn paragraphs(text: &str, facts: &Facts) -> String {
    let empty = |paragraph: &&str| {
        let name = paragraph
            .trim()
            .strip_prefix("{{")
            .and_then(|rest| rest.strip_suffix("}}"));
        name.is_some_and(|name| facts.get(name).is_some_and(String::is_empty))
    };
    let kept: Vec<&str> = text
        .split("\n\n")
        .filter(|paragraph| !empty(paragraph))
        .collect();
    kept.join("\n\n")
}
