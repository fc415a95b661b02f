//! `ask_user`: one question to the person, with choices.
//!
//! It never runs: the question is the ask, and the person's answer is the call's result
//! (`agent::driver`). Not here: who can be asked (`permission`).

use futures_util::future::BoxFuture;
use serde_json::Value;

use super::{Outcome, OutputSink, Prepared, Tool, ToolContext, ToolFailure, args};
use crate::ids::CallId;
use crate::permission::{Action, Grant, Request};
use crate::rt::CancellationToken;
use crate::store::item::{Choice, Question};
use crate::text::cut;

/// Characters of a question, of its header, of a choice and of what a choice would mean. More is
/// told to the model, which can say it shorter.
const QUESTION: usize = 4000;
const HEADER: usize = 30;
const LABEL: usize = 200;
const MEANING: usize = 1000;
/// How many choices there may be.
const CHOICES: std::ops::RangeInclusive<usize> = 2..=8;

pub(super) struct AskUser;

impl Tool for AskUser {
    fn name(&self) -> &'static str {
        "ask_user"
    }

    fn prepare(&self, args: &Value, context: &ToolContext) -> Result<Prepared, ToolFailure> {
        let question = question(args)?;
        Ok(Prepared {
            title: cut::one_line(&question.text, 200),
            request: Request {
                tool: self.name().to_owned(),
                action: Action::Question(question),
                cwd: context.cwd.clone(),
            },
            locations: Vec::new(),
            state: Box::new(()),
        })
    }

    fn run<'a>(
        &'a self,
        _call: &'a CallId,
        _prepared: Prepared,
        _grant: Grant,
        _context: &'a ToolContext,
        _output: &'a dyn OutputSink,
        _stop: CancellationToken,
    ) -> BoxFuture<'a, Outcome> {
        Box::pin(async { Outcome::failed("The question was not put to anybody.") })
    }
}

fn question(args: &Value) -> Result<Question, ToolFailure> {
    let text = short(args::text(args, "question")?, "question", QUESTION)?;
    let header = match args::maybe_text(args, "header")? {
        Some(header) => short(header, "header", HEADER)?,
        None => String::new(),
    };
    let list = args.get("options").and_then(Value::as_array);
    let list = list.filter(|list| CHOICES.contains(&list.len()));
    let Some(list) = list else {
        return Err(ToolFailure(format!(
            "options must be a list of {} to {} choices",
            CHOICES.start(),
            CHOICES.end()
        )));
    };
    let mut options: Vec<Choice> = Vec::new();
    for (n, option) in list.iter().enumerate() {
        let label = short(args::text(option, "label")?, "label", LABEL)?;
        if options.iter().any(|known| known.label == label) {
            return Err(ToolFailure(format!("two choices are called {label:?}")));
        }
        let description = args::maybe_text(option, "description")?;
        options.push(Choice {
            id: (n + 1).to_string(),
            label,
            description: description
                .map(|text| short(text, "description", MEANING))
                .transpose()?,
        });
    }
    Ok(Question {
        header,
        text,
        options,
        multiple: args::flag(args, "multiple")?,
        custom: true,
    })
}

fn short(text: String, what: &str, most: usize) -> Result<String, ToolFailure> {
    let text = text.trim();
    match text.chars().count() {
        0 => Err(ToolFailure(format!("{what} is empty"))),
        n if n > most => Err(ToolFailure(format!(
            "{what} has {n} characters: at most {most}"
        ))),
        _ => Ok(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_question_is_read_with_its_choices_numbered() {
        let asked = question(&json!({
            "question": " Which port? ", "header": "Port",
            "options": [{ "label": "8080" }, { "label": "3000", "description": "as before" }],
        }))
        .unwrap();
        let ids: Vec<_> = asked.options.iter().map(|o| o.id.as_str()).collect();
        assert_eq!((asked.text.as_str(), ids), ("Which port?", vec!["1", "2"]));
        assert_eq!(asked.options[1].description.as_deref(), Some("as before"));
        assert!(asked.custom && !asked.multiple);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let two = json!([{ "label": "a" }, { "label": "b" }]);
        for (args, said) in [
            (json!({ "options": two }), "question is missing"),
            (
                json!({ "question": " ", "options": two }),
                "question is empty",
            ),
            (
                json!({ "question": "q", "header": "h".repeat(31), "options": two }),
                "header has 31 characters: at most 30",
            ),
            (
                json!({ "question": "q" }),
                "options must be a list of 2 to 8 choices",
            ),
            (
                json!({ "question": "q", "options": [{ "label": "a" }] }),
                "options must be a list of 2 to 8 choices",
            ),
            (
                json!({ "question": "q", "options": [{ "label": "a" }, {}] }),
                "label is missing",
            ),
            (
                json!({ "question": "q", "options": [{ "label": "a" }, { "label": "a" }] }),
                "two choices are called \"a\"",
            ),
        ] {
            assert_eq!(question(&args).unwrap_err().0, said, "{args}");
        }
    }
}
