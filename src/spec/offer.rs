//! Which tools a session is offered, and exactly what its model is sent of each.
//!
//! The list is fixed for the session (context.md §10, rule 4): a requirement that can come and go
//! does not take a tool out of it.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Spec;
use super::fill::{Facts, Unfilled, fill, fill_schema};
use super::read::Node;
use super::tool::{Offered, Project, Requires, Risk, Sessions, ToolSpec};

/// The kind of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionKind {
    /// A conversation at the instance, over its files.
    Chat,
    /// A session on a device, over its disk.
    Agent,
}

/// Whom the tools are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Main,
    Subagent,
}

/// What a session is, as far as its tools depend on it.
#[derive(Clone, Debug)]
pub struct Offer {
    pub project: Project,
    pub kind: SessionKind,
    pub role: Role,
    /// Requirements that hold or can come to hold in this session. Plan mode always can.
    pub possible: BTreeSet<Requires>,
    /// What the variables of the descriptions stand for here; see [`Spec::facts`].
    pub facts: Facts,
}

impl Offer {
    /// The main agent of a session on this computer, which has no display and no team.
    pub fn agent(facts: Facts) -> Self {
        Self {
            project: Project::Cli,
            kind: SessionKind::Agent,
            role: Role::Main,
            possible: BTreeSet::new(),
            facts,
        }
    }
}

/// How well commands are shut in on this computer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoxKind {
    Full,
    WritesOnly,
    None,
}

/// A tool as a model is sent it: nothing in it is left to fill.
#[derive(Clone, Debug, PartialEq)]
pub struct OfferedTool {
    pub name: String,
    pub description: String,
    pub parameters: Value,
    pub risk: Risk,
    pub exclusive: bool,
}

/// Less of a tool: properties left out, values kept (README of the spec, Offering less).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Narrowed {
    /// Optional properties that are left out.
    pub drop: Vec<String>,
    /// Properties whose values are only these.
    pub values: Vec<(String, Vec<Value>)>,
}

impl Spec {
    /// The tools of a session, in the order of their names.
    ///
    /// # Errors
    /// A variable that `offer.facts` does not name: such a tool must not reach a model.
    pub fn offered(&self, offer: &Offer) -> Result<Vec<OfferedTool>, Unfilled> {
        let tools = self.tools.values().filter(|tool| fits(tool, offer));
        tools.map(|tool| self.sent(tool, offer)).collect()
    }

    fn sent(&self, tool: &ToolSpec, offer: &Offer) -> Result<OfferedTool, Unfilled> {
        let mut parameters = tool.parameters.clone();
        if let Some(narrow) = tool.narrow.get(&offer.project) {
            // A place that is not there was told when the spec was parsed.
            let _ = narrow.apply(&mut parameters);
        }
        if tool.purpose {
            self.add_purpose(&mut parameters);
        }
        fill_schema(&mut parameters, &offer.facts)?;
        Ok(OfferedTool {
            name: tool.name.clone(),
            description: fill(&tool.description, &offer.facts)?,
            parameters,
            risk: tool.risk,
            exclusive: tool.exclusive,
        })
    }

    fn add_purpose(&self, parameters: &mut Value) {
        if let Some(properties) = parameters
            .get_mut("properties")
            .and_then(Value::as_object_mut)
        {
            properties.insert(self.purpose.name.clone(), self.purpose.schema.clone());
        }
        if self.purpose.required
            && let Some(map) = parameters.as_object_mut()
            && let Some(required) = map
                .entry("required")
                .or_insert_with(|| json!([]))
                .as_array_mut()
        {
            required.push(Value::String(self.purpose.name.clone()));
        }
    }

    /// What the descriptions' variables stand for on a device: the numbers of loop.json, and what
    /// its box can do.
    pub fn facts(&self, shut: BoxKind) -> Facts {
        let mut facts = Facts::new();
        let budgets = self.numbers.budgets.get("cli").into_iter().flatten();
        for (name, number) in budgets {
            let name = name.strip_suffix("_seconds").unwrap_or(name);
            facts.insert(name.to_owned(), number.to_string());
        }
        let text = match shut {
            BoxKind::Full => "box_full",
            BoxKind::WritesOnly => "box_writes",
            BoxKind::None => "box_none",
        };
        facts.insert("bash_box".to_owned(), self.numbers.exec.say(text, &[]));
        facts.insert(
            "bash_background".to_owned(),
            self.numbers.exec.say("background_none", &[]),
        );
        facts
    }
}

fn fits(tool: &ToolSpec, offer: &Offer) -> bool {
    let kind = match tool.sessions {
        Sessions::Both => true,
        Sessions::Chat => offer.kind == SessionKind::Chat,
        Sessions::Agent => offer.kind == SessionKind::Agent,
    };
    let role = match tool.offered {
        None => true,
        Some(Offered::Main) => offer.role == Role::Main,
        Some(Offered::Subagent) => offer.role == Role::Subagent,
    };
    let possible = match tool.requires {
        None | Some(Requires::Plan) => true,
        Some(required) => offer.possible.contains(&required),
    };
    tool.scope.has(offer.project) && kind && role && possible
}

impl Narrowed {
    pub(super) fn parse(node: &Node<'_>) -> Self {
        node.only(&["drop", "enum"]);
        let values = |(path, node): (&str, Node<'_>)| {
            (path.to_owned(), node.list().iter().map(Node::raw).collect())
        };
        Self {
            drop: node.opt("drop").map(|n| n.texts()).unwrap_or_default(),
            values: node
                .opt("enum")
                .map(|n| n.map().into_iter().map(values).collect())
                .unwrap_or_default(),
        }
    }

    /// Makes a schema smaller: never another type, never a value it did not have.
    ///
    /// # Errors
    /// The first path that is not in it, or that it cannot do without.
    pub fn apply(&self, schema: &mut Value) -> Result<(), String> {
        for path in &self.drop {
            drop_property(schema, path).ok_or_else(|| path.clone())?;
        }
        for (path, keep) in &self.values {
            let values = place(schema, path)
                .and_then(|property| property.get_mut("enum"))
                .and_then(Value::as_array_mut)
                .ok_or_else(|| path.clone())?;
            if keep.is_empty() || !keep.iter().all(|value| values.contains(value)) {
                return Err(path.clone());
            }
            values.retain(|value| keep.contains(value));
        }
        Ok(())
    }
}

/// `a.b` is b inside a, `a[].b` is b inside the items of a.
fn place<'v>(schema: &'v mut Value, path: &str) -> Option<&'v mut Value> {
    path.split('.').try_fold(schema, |inside, step| {
        let (name, items) = step
            .strip_suffix("[]")
            .map_or((step, false), |name| (name, true));
        let property = inside.get_mut("properties")?.get_mut(name)?;
        if items {
            property.get_mut("items")
        } else {
            Some(property)
        }
    })
}

fn drop_property(schema: &mut Value, path: &str) -> Option<()> {
    let (inside, name) = match path.rsplit_once('.') {
        Some((before, name)) => (place(schema, before)?, name),
        None => (schema, path),
    };
    let required = inside.get("required").and_then(Value::as_array);
    if required.is_some_and(|names| names.iter().any(|n| n == name)) {
        return None;
    }
    inside
        .get_mut("properties")?
        .as_object_mut()?
        .remove(name)
        .map(|_| ())
}
