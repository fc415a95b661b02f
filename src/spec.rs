//! The harness spec: embeds `spec/` and parses it into types. The only module that knows its files.
//!
//! A spec is data and half of the product: tools, prompt texts, numbers and words are there and
//! nowhere else. Parsing gives all problems at once, each with its file, the place in it and what
//! was expected there. Not here: what the rules do with the data (`tools`, `agent`, `context`,
//! `permission`), and the person's own settings (`config`).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

mod contents;
mod fill;
mod looping;
mod offer;
pub mod permission;
mod progress;
mod prompts;
mod read;
mod silent;
mod tool;

pub use contents::{Contents, Difference};
pub use fill::{Facts, Unfilled, fill, variables};
pub use looping::{Context, Instructions, Loop, Monitor, Output, Retries, Scheduled, Texts};
pub use offer::{BoxKind, Narrowed, Offer, OfferedTool, Role, SessionKind};
pub use progress::ProgressTexts;
pub use prompts::{Prompts, SystemFacts};
pub use read::Problem;
pub use silent::{Reply, RunEnd, run_status, silent};
pub use tool::{
    Block, Confirm, Offered, Project, Purpose, Requires, Risk, Scope, Sessions, ToolSpec,
};

/// The whole spec, parsed.
#[derive(Clone, Debug)]
pub struct Spec {
    /// `VERSION`.
    pub version: String,
    /// `purpose.json`.
    pub purpose: Purpose,
    /// `tools/*.json`, by name.
    pub tools: BTreeMap<String, ToolSpec>,
    /// `prompts/`.
    pub prompts: Prompts,
    /// `loop.json`.
    pub numbers: Loop,
}

/// Everything that is wrong with a spec, one problem a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct SpecError(pub Vec<Problem>);

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the spec has {} problems", self.0.len())?;
        self.0
            .iter()
            .try_for_each(|problem| write!(f, "\n  {problem}"))
    }
}

/// The version of the spec that this program carries. Nothing of it is parsed for this.
pub fn version() -> &'static str {
    include_str!("../spec/VERSION").trim_ascii_end()
}

/// `loop.json` of the spec that this program carries, by itself: what a start needs. The texts and
/// tools, which only a turn needs, are parsed by the first ([`Spec::embedded`]).
///
/// # Panics
/// As [`Spec::embedded`].
#[expect(clippy::panic, reason = "a program without its spec can do nothing")]
pub fn numbers() -> &'static Loop {
    static NUMBERS: LazyLock<Loop> = LazyLock::new(|| {
        tracing::debug!("numbers are parsed");
        let problems = read::Problems::default();
        let contents = Contents::default().with("loop.json", include_str!("../spec/loop.json"));
        let files = read::Files::new(&contents, &problems);
        let numbers = Loop::parse(&files.json("loop.json").node());
        match problems.take() {
            problems if problems.is_empty() => numbers,
            problems => panic!("{}", SpecError(problems)),
        }
    });
    &NUMBERS
}

impl Spec {
    /// The whole spec that this program carries, parsed when it is first asked for.
    ///
    /// # Panics
    /// When the embedded files do not parse: they are part of the program, and a test reads them.
    #[expect(clippy::panic, reason = "a program without its spec can do nothing")]
    pub fn embedded() -> &'static Self {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            tracing::debug!("texts and tools are parsed");
            match Spec::parse(&Contents::embedded()) {
                Ok(spec) => spec,
                Err(error) => panic!("{error}"),
            }
        });
        &SPEC
    }

    /// Parses the files of a spec.
    ///
    /// # Errors
    /// All problems of all files.
    pub fn parse(contents: &Contents) -> Result<Self, SpecError> {
        let problems = read::Problems::default();
        let files = read::Files::new(contents, &problems);
        let spec = Self {
            version: files.text("VERSION").trim().to_owned(),
            purpose: Purpose::parse(&files.json("purpose.json").node()),
            tools: tool::parse_all(&files),
            prompts: Prompts::parse(&files),
            numbers: Loop::parse(&files.json("loop.json").node()),
        };
        match problems.take() {
            problems if problems.is_empty() => Ok(spec),
            problems => Err(SpecError(problems)),
        }
    }

    /// A tool by its name, or by a former name that the project still takes.
    pub fn tool(&self, name: &str, project: Project) -> Option<&ToolSpec> {
        self.tools.get(name).or_else(|| {
            self.tools.values().find(|tool| {
                tool.scope.has(project)
                    && tool
                        .aliases
                        .get(&project)
                        .is_some_and(|names| names.iter().any(|n| n == name))
            })
        })
    }
}

#[cfg(test)]
mod tests;
