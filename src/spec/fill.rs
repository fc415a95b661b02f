//! Filling `{{variables}}` (README of the spec, Variables): in tool descriptions, the descriptions
//! of their parameters, prompt texts, and all texts with a fact in them.

use std::collections::BTreeMap;

use serde_json::Value;

/// What variables stand for.
pub type Facts = BTreeMap<String, String>;

/// Variables that nobody gave a value: such a text must not reach a model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("nobody says what {} stands for", .0.join(", "))]
pub struct Unfilled(pub Vec<String>);

/// A piece of a template.
enum Piece<'a> {
    Text(&'a str),
    Variable(&'a str),
}

/// The names of the variables in a text, in order, each as often as it occurs.
pub fn variables(text: &str) -> Vec<&str> {
    let names = pieces(text).into_iter().filter_map(|piece| match piece {
        Piece::Variable(name) => Some(name),
        Piece::Text(_) => None,
    });
    names.collect()
}

/// Fills a text. A value is put in as it is and not filled again. A line that is nothing but a
/// bullet and a variable disappears when that is empty.
///
/// # Errors
/// The variables that `facts` does not name.
pub fn fill(text: &str, facts: &Facts) -> Result<String, Unfilled> {
    let mut filled = String::with_capacity(text.len());
    let mut missing = Vec::new();
    for line in text.split_inclusive('\n') {
        if bullet(line).is_some_and(|name| facts.get(name).is_some_and(String::is_empty)) {
            continue;
        }
        for piece in pieces(line) {
            match piece {
                Piece::Text(text) => filled.push_str(text),
                Piece::Variable(name) => match facts.get(name) {
                    Some(value) => filled.push_str(value),
                    None => missing.push(name.to_owned()),
                },
            }
        }
    }
    if missing.is_empty() {
        Ok(filled)
    } else {
        Err(Unfilled(missing))
    }
}

/// Fills every `description` inside a JSON Schema.
pub(super) fn fill_schema(schema: &mut Value, facts: &Facts) -> Result<(), Unfilled> {
    match schema {
        Value::Object(map) => {
            for (key, value) in map.iter_mut() {
                match value {
                    Value::String(text) if key == "description" => *text = fill(text, facts)?,
                    _ => fill_schema(value, facts)?,
                }
            }
            Ok(())
        }
        Value::Array(list) => list
            .iter_mut()
            .try_for_each(|item| fill_schema(item, facts)),
        _ => Ok(()),
    }
}

/// The variable of a line that is nothing but a bullet and one.
fn bullet(line: &str) -> Option<&str> {
    let rest = line.trim().strip_prefix("- ")?.trim();
    match pieces(rest).as_slice() {
        [Piece::Variable(name)] => Some(name),
        _ => None,
    }
}

fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, name, after)) = first(rest) {
        if !before.is_empty() {
            pieces.push(Piece::Text(before));
        }
        pieces.push(Piece::Variable(name));
        rest = after;
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest));
    }
    pieces
}

/// The first `{{name}}`: what is before it, the name, what is after. Braces around anything that
/// is no name are text.
fn first(text: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    loop {
        let open = from + text.get(from..)?.find("{{")?;
        let inside = text.get(open + 2..)?;
        let name = inside
            .split("}}")
            .next()
            .filter(|name| is_name(name) && inside.len() > name.len());
        match name {
            Some(name) => {
                return Some((text.get(..open)?, name, inside.get(name.len() + 2..)?));
            }
            None => from = open + 1,
        }
    }
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase())
        && text
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}
