//! The texts that the agent needs from the spec, behind a trait: `spec` fills it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::config::Mode;
use crate::ids::Digest;
use crate::model::ToolDef;

/// What a system prompt may say of a session. No absolute path and no clock (context.md §10, §11).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The last part of the session's folder.
    pub project: String,
    /// Where instruction files are read; not for the prompt itself.
    pub cwd: PathBuf,
    /// Further folders that count as inside, which have no other name than their path.
    pub also: Vec<PathBuf>,
    /// `linux`, `macos`.
    pub os: &'static str,
    pub mode: Mode,
    /// The person's earlier words, handed over by the client.
    pub said: Option<String>,
    /// What only the client knows.
    pub context: Option<String>,
    /// A scheduled run: nobody is there.
    pub scheduled: bool,
    /// Instruction files: path relative to the session's folder, and text; outermost first.
    pub instructions: Vec<(String, String)>,
}

impl Facts {
    /// The name a project has in a prompt.
    pub fn project(cwd: &Path) -> String {
        cwd.file_name()
            .map_or_else(|| "project".into(), |n| n.to_string_lossy().into_owned())
    }
}

/// A change that the model is told of with the next message (loop.json `context.note`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// `2025-03-09`.
    Date(String),
    Mode(Mode),
    /// Another model answers from here on: its name.
    Model(String),
    /// An instruction file has this text now; none: it is gone.
    Instructions {
        path: String,
        text: Option<String>,
    },
    /// The last answer was empty.
    Empty,
    /// The last answer held a call as text.
    InText,
    /// The turn nears its last step: so many more are possible.
    WrapUp {
        left: u32,
    },
}

/// The texts. All of them are the spec's; implementations only fill them.
pub trait Texts: Send + Sync {
    /// The whole system prompt.
    fn system(&self, facts: &Facts) -> String;
    /// The tools as a model is told of them, in a fixed order.
    fn tools(&self, facts: &Facts) -> Vec<ToolDef>;
    /// A note's words, without the tag around it.
    fn note(&self, note: &Note) -> String;
    /// How a call of this tool is shown: `shell`, `edit`, `read` …
    fn block(&self, tool: &str) -> String;
    /// Model requests in one turn (loop.json `steps`).
    fn steps(&self) -> u32 {
        200
    }
    /// From so many steps before the last one on, each request says what is left.
    fn wrap_up(&self) -> u32 {
        3
    }
}

/// What is made once a session and resent byte for byte.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fixed {
    pub system: String,
    pub tools: Arc<Vec<ToolDef>>,
}

impl Fixed {
    pub fn make(texts: &dyn Texts, facts: &Facts) -> Self {
        Self {
            system: texts.system(facts),
            tools: Arc::new(texts.tools(facts)),
        }
    }
}

/// What the model was last told of what can change; kept with the session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    pub date: Option<String>,
    pub mode: Option<Mode>,
    #[serde(default)]
    pub model: Option<String>,
    /// Instruction files by path, with the hash of what was told.
    #[serde(default)]
    pub instructions: BTreeMap<String, Digest>,
}

/// What can change, as it is now.
#[derive(Clone, Copy, Debug)]
pub struct Now<'a> {
    /// `2025-03-09`.
    pub date: &'a str,
    pub mode: Mode,
    pub model: &'a str,
    pub instructions: &'a [(String, String)],
}

impl Told {
    /// The note for the next message, and what the model then knows.
    pub fn next(&self, now: Now<'_>, texts: &dyn Texts) -> (Option<String>, Self) {
        let mut notes = Vec::new();
        if self.date.as_deref() != Some(now.date) {
            notes.push(texts.note(&Note::Date(now.date.to_owned())));
        }
        if self.mode != Some(now.mode) {
            notes.push(texts.note(&Note::Mode(now.mode)));
        }
        // The first one needs no word: there is nothing before it.
        if self
            .model
            .as_deref()
            .is_some_and(|model| model != now.model)
        {
            notes.push(texts.note(&Note::Model(now.model.to_owned())));
        }
        let mut instructions = BTreeMap::new();
        for (path, text) in now.instructions {
            let digest = Digest::of(text.as_bytes());
            // The first message of a session comes with a system text that has them.
            if self.date.is_some() && self.instructions.get(path) != Some(&digest) {
                notes.push(texts.note(&Note::Instructions {
                    path: path.clone(),
                    text: Some(text.clone()),
                }));
            }
            instructions.insert(path.clone(), digest);
        }
        for path in self
            .instructions
            .keys()
            .filter(|p| !instructions.contains_key(*p))
        {
            notes.push(texts.note(&Note::Instructions {
                path: path.clone(),
                text: None,
            }));
        }
        let now = Self {
            date: Some(now.date.to_owned()),
            mode: Some(now.mode),
            model: Some(now.model.to_owned()),
            instructions,
        };
        ((!notes.is_empty()).then(|| notes.join("\n")), now)
    }
}
