//! `tools/<name>.json`: one tool each, as both projects know it (README of the spec, Vocabulary).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::fill;
use super::read::{Files, Node};

/// Which of the two implementations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Project {
    /// The device's agent.
    Cli,
    /// The instance's chats.
    Llembas,
}

/// Who implements a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    Shared,
    Cli,
    Llembas,
}

impl Scope {
    pub fn has(self, project: Project) -> bool {
        match self {
            Self::Shared => true,
            Self::Cli => project == Project::Cli,
            Self::Llembas => project == Project::Llembas,
        }
    }
}

/// Where a tool is offered: over the instance's files, on a device's disk, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sessions {
    Chat,
    Agent,
    Both,
}

/// The four risk classes. Reading and writing are never one tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    Read,
    Write,
    Execute,
    Interact,
}

/// How a call is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Block {
    Shell,
    Edit,
    Read,
    Search,
    Web,
    Task,
    /// Not drawn: the plan card refreshes.
    Plan,
    Hidden,
    Tool,
}

impl Block {
    /// The word as it stands in the spec and on the wire.
    pub fn word(self) -> &'static str {
        match self {
            Self::Shell => "shell",
            Self::Edit => "edit",
            Self::Read => "read",
            Self::Search => "search",
            Self::Web => "web",
            Self::Task => "task",
            Self::Plan => "plan",
            Self::Hidden => "hidden",
            Self::Tool => "tool",
        }
    }
}

/// What must hold for a tool to be of use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Requires {
    Page,
    Display,
    Forge,
    Plan,
    Team,
    Phone,
}

/// To whom alone a tool is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Offered {
    Main,
    Subagent,
}

/// `always`: the person is asked in every mode, and nothing remembers the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confirm {
    Always,
}

/// One tool.
#[derive(Clone, Debug)]
pub struct ToolSpec {
    pub name: String,
    pub scope: Scope,
    pub sessions: Sessions,
    pub risk: Risk,
    /// Runs alone, not beside other calls of its step.
    pub exclusive: bool,
    pub block: Block,
    /// Its calls say what they are for: `purpose.json` is added to the parameters.
    pub purpose: bool,
    /// Former names that still run, per project.
    pub aliases: BTreeMap<Project, Vec<String>>,
    /// For a former name, which argument became which.
    pub renamed: BTreeMap<String, BTreeMap<String, String>>,
    /// What each variable of the descriptions means.
    pub variables: BTreeMap<String, String>,
    pub narrow: BTreeMap<Project, super::offer::Narrowed>,
    pub offered: Option<Offered>,
    pub requires: Option<Requires>,
    /// What a call answers, word for word, while the requirement does not hold.
    pub unavailable: Option<String>,
    pub confirm: Option<Confirm>,
    /// With variables.
    pub description: String,
    /// JSON Schema, with variables in its descriptions.
    pub parameters: Value,
}

/// `purpose.json`: the argument of a call that says what it is for.
#[derive(Clone, Debug)]
pub struct Purpose {
    pub name: String,
    pub required: bool,
    pub schema: Value,
}

impl Purpose {
    pub(super) fn parse(node: &Node<'_>) -> Self {
        node.only(&["name", "required", "schema"]);
        Self {
            name: node.get("name").text(),
            required: node.get("required").flag(),
            schema: node.get("schema").raw(),
        }
    }
}

const FIELDS: [&str; 17] = [
    "name",
    "scope",
    "sessions",
    "risk",
    "exclusive",
    "block",
    "purpose",
    "aliases",
    "renamed",
    "variables",
    "narrow",
    "offered",
    "requires",
    "unavailable",
    "confirm",
    "description",
    "parameters",
];
const PROJECTS: &str = "cli, llembas";

pub(super) fn parse_all(files: &Files<'_>) -> BTreeMap<String, ToolSpec> {
    let mut tools = BTreeMap::new();
    for path in files.folder("tools") {
        let json = files.json(path);
        let node = json.node();
        if let Some(tool) = parse(&node) {
            if path != format!("tools/{}.json", tool.name) {
                node.get("name").wrong("the name of the file");
            }
            tools.insert(tool.name.clone(), tool);
        }
    }
    if tools.is_empty() {
        files.problems().note("tools", "", "at least one tool");
    }
    tools
}

fn parse(node: &Node<'_>) -> Option<ToolSpec> {
    node.only(&FIELDS);
    // Everything is read before anything is given up, so that all mistakes are told.
    let scope = node.get("scope").word("shared, cli, llembas");
    let sessions = node.get("sessions").word("chat, agent, both");
    let risk = node.get("risk").word("read, write, execute, interact");
    let block = node
        .get("block")
        .word("shell, edit, read, search, web, task, plan, hidden, tool");
    let tool = ToolSpec {
        name: node.get("name").text(),
        scope: scope.unwrap_or(Scope::Shared),
        sessions: sessions.unwrap_or(Sessions::Both),
        risk: risk.unwrap_or(Risk::Execute),
        exclusive: node.get("exclusive").flag(),
        block: block.unwrap_or(Block::Tool),
        purpose: node.get("purpose").flag(),
        aliases: projects(&node.get("aliases"), |n| n.texts()),
        renamed: named(&node.get("renamed"), |node| named(node, |n| n.text())),
        variables: named(&node.get("variables"), |n| n.text()),
        narrow: projects(&node.get("narrow"), super::offer::Narrowed::parse),
        offered: node.opt("offered").and_then(|n| n.word("main, subagent")),
        requires: node
            .opt("requires")
            .and_then(|n| n.word("page, display, forge, plan, team, phone")),
        unavailable: node.opt("unavailable").map(|n| n.text()),
        confirm: node.opt("confirm").and_then(|n| n.word("always")),
        description: node.get("description").text(),
        parameters: node.get("parameters").raw(),
    };
    check(node, &tool);
    (scope.is_some() && sessions.is_some() && risk.is_some() && block.is_some()).then_some(tool)
}

/// What the fields owe to each other.
fn check(node: &Node<'_>, tool: &ToolSpec) {
    if tool.requires.is_some() != tool.unavailable.is_some() {
        node.get("unavailable")
            .wrong("a text exactly when the tool requires something");
    }
    if tool.parameters.get("type").and_then(Value::as_str) != Some("object") {
        node.get("parameters").wrong("a JSON Schema of type object");
    }
    let mut used: Vec<String> = fill::variables(&tool.description)
        .into_iter()
        .map(str::to_owned)
        .collect();
    in_schema(&tool.parameters, &mut used);
    for name in &used {
        if !tool.variables.contains_key(name) {
            node.get("variables").wrong(format!("a meaning for {name}"));
        }
    }
    for name in tool.variables.keys().filter(|name| !used.contains(name)) {
        node.get("variables")
            .get(name)
            .wrong("a variable that the descriptions use");
    }
    for name in tool.renamed.keys() {
        if !tool.aliases.values().flatten().any(|alias| alias == name) {
            node.get("renamed")
                .get(name)
                .wrong("a former name that aliases lists");
        }
    }
    for narrow in tool.narrow.values() {
        let mut narrowed = tool.parameters.clone();
        if let Err(path) = narrow.apply(&mut narrowed) {
            node.get("narrow")
                .wrong(format!("a place in the parameters instead of {path}"));
        }
    }
}

fn in_schema(schema: &Value, used: &mut Vec<String>) {
    match schema {
        Value::Object(map) => {
            for (key, value) in map {
                match value {
                    Value::String(text) if key == "description" => {
                        used.extend(fill::variables(text).into_iter().map(str::to_owned));
                    }
                    _ => in_schema(value, used),
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|item| in_schema(item, used)),
        _ => {}
    }
}

/// A map whose keys are the projects.
fn projects<T>(node: &Node<'_>, value: impl Fn(&Node<'_>) -> T) -> BTreeMap<Project, T> {
    let entry = |(key, node): (&str, Node<'_>)| {
        let project = serde_json::from_value(Value::String(key.to_owned())).ok();
        if project.is_none() {
            node.wrong(format!("under one of {PROJECTS}"));
        }
        Some((project?, value(&node)))
    };
    node.map().into_iter().filter_map(entry).collect()
}

pub(super) fn named<T>(node: &Node<'_>, value: impl Fn(&Node<'_>) -> T) -> BTreeMap<String, T> {
    let entry = |(key, node): (&str, Node<'_>)| (key.to_owned(), value(&node));
    node.map().into_iter().map(entry).collect()
}
