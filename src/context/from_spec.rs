//! The agent's texts as the harness spec has them.

use std::collections::BTreeSet;

use super::texts::{Facts, Note, Texts};
use crate::config::Mode;
use crate::model::ToolDef;
use crate::spec::{self, Block, BoxKind, Offer, Project, Spec, SystemFacts};

/// Fills the spec's texts for the sessions of this computer.
#[derive(Clone, Debug)]
pub struct SpecTexts {
    shut: BoxKind,
    have: BTreeSet<String>,
}

impl SpecTexts {
    /// `shut`: how well commands are shut in here. `have`: the tools that can be run here; one
    /// that the spec offers and that is not among them is left out.
    pub fn new(shut: BoxKind, have: impl IntoIterator<Item = String>) -> Self {
        Self {
            shut,
            have: have.into_iter().collect(),
        }
    }

    fn mode_name(&self, mode: Mode) -> &str {
        let word = match mode {
            Mode::Plan => "plan",
            Mode::Manual => "manual",
            Mode::Edit => "edit",
            Mode::Auto => "auto",
        };
        spec::numbers()
            .mode_names
            .get(word)
            .map_or(word, String::as_str)
    }
}

/// Parsed by the first turn, not by the start.
fn spec() -> &'static Spec {
    Spec::embedded()
}

impl Texts for SpecTexts {
    fn system(&self, facts: &Facts) -> String {
        let also: Vec<String> = facts.also.iter().map(|p| p.display().to_string()).collect();
        spec().system(&SystemFacts {
            project: &facts.project,
            system: facts.os,
            also: &also,
            instructions: &facts.instructions,
            mode: facts.mode,
            scheduled: facts.scheduled,
            given: facts.context.as_deref().unwrap_or_default(),
            ..SystemFacts::default()
        })
    }

    fn tools(&self, _facts: &Facts) -> Vec<ToolDef> {
        let offer = Offer::agent(spec().facts(self.shut));
        let offered = match spec().offered(&offer) {
            Ok(offered) => offered,
            // A test fills them all; a tool with something unfilled must not reach a model.
            Err(unfilled) => {
                tracing::error!(%unfilled, "the tools cannot be offered");
                Vec::new()
            }
        };
        let here = offered
            .into_iter()
            .filter(|tool| self.have.contains(&tool.name));
        here.map(|tool| ToolDef {
            name: tool.name,
            description: tool.description,
            parameters: tool.parameters,
        })
        .collect()
    }

    fn note(&self, note: &Note) -> String {
        let texts = spec::numbers();
        match note {
            Note::Date(date) => texts.context.note.say("date", &[("date", date)]),
            Note::Mode(mode) => {
                let text = spec().prompts.mode(*mode);
                let facts = [("name", self.mode_name(*mode)), ("text", text)];
                texts.context.note.say("mode", &facts)
            }
            Note::Model(model) => texts.context.note.say("model", &[("model", model)]),
            Note::Instructions {
                path,
                text: Some(text),
            } => {
                let facts = [("path", path.as_str()), ("text", text.trim())];
                texts.context.note.say("instructions", &facts)
            }
            Note::Instructions { path, text: None } => texts
                .context
                .note
                .say("instructions_gone", &[("path", path)]),
            Note::Empty => texts.nudges.say("empty", &[]),
            Note::InText => texts.nudges.say("in_text", &[]),
            Note::WrapUp { left } => texts.steps.say("wrap_up", &[("left", &left.to_string())]),
        }
    }

    fn block(&self, tool: &str) -> String {
        let block = spec()
            .tool(tool, Project::Cli)
            .map_or(Block::Tool, |tool| tool.block);
        block.word().to_owned()
    }

    fn steps(&self) -> u32 {
        let steps = spec::numbers().backstop.get("cli").copied();
        steps
            .and_then(|steps| u32::try_from(steps).ok())
            .unwrap_or(u32::MAX)
    }

    fn wrap_up(&self) -> u32 {
        u32::try_from(spec::numbers().wrap_up).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(have: &[&str]) -> SpecTexts {
        SpecTexts::new(BoxKind::Full, have.iter().map(|name| (*name).to_owned()))
    }

    fn facts() -> Facts {
        Facts {
            project: "api".into(),
            cwd: "/w/api".into(),
            also: Vec::new(),
            os: "linux",
            mode: Mode::Edit,
            said: None,
            context: Some("The chat is called Login.".into()),
            scheduled: false,
            instructions: vec![("AGENTS.md".into(), "Use tabs.\n".into())],
        }
    }

    #[test]
    fn only_tools_that_can_be_run_here_are_offered_in_a_fixed_order() {
        let names = |have: &[&str]| -> Vec<String> {
            texts(have)
                .tools(&facts())
                .into_iter()
                .map(|tool| tool.name)
                .collect()
        };
        assert_eq!(names(&["read", "bash", "unheard_of"]), ["bash", "read"]);
        assert_eq!(names(&["bash", "read"]), ["bash", "read"]);
        assert!(names(&[]).is_empty());
    }

    #[test]
    fn the_system_text_holds_what_the_session_is() {
        let text = texts(&[]).system(&facts());
        for part in [
            "Project: api.",
            "System: linux.",
            "Mode: Edit.",
            "The chat is called Login.",
            "<instructions file=\"AGENTS.md\">\nUse tabs.\n</instructions>",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(!text.contains("scheduled run"));
    }

    #[test]
    fn notes_say_what_changed() {
        let texts = texts(&[]);
        let said = [
            texts.note(&Note::Date("2026-11-30".into())),
            texts.note(&Note::Mode(Mode::Plan)),
            texts.note(&Note::Model("qwen3-32b".into())),
            texts.note(&Note::WrapUp { left: 2 }),
        ];
        insta::assert_snapshot!(said.join("\n"), @r"
        Today is 2026-11-30.
        The mode is Plan now. Mode: Plan. Nothing is changed and nothing is run: you read, search and think. Work out how the task should be done, write it with plan_write, and put it before the person with plan_submit when it is complete.
        You are qwen3-32b from here on; what came before was another model's.
        2 more steps are possible in this turn. Bring the work to a state that can be left, and say what remains.
        ");
    }

    #[test]
    fn a_call_is_shown_as_its_tool_says() {
        let texts = texts(&[]);
        let shown = ["bash", "edit", "todo", "unheard_of"].map(|tool| texts.block(tool));
        assert_eq!(shown, ["shell", "edit", "plan", "tool"]);
    }
}
