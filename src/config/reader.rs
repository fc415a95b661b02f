//! Picks typed values out of a TOML table and writes down everything that is wrong.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use toml_edit::{Item, TableLike, Value};

use super::load::{Problem, line_of};
use crate::text::nearest::nearest;
use crate::text::{path, words};

/// Every setting with the table it belongs to, to name the right place for a stray one.
const PLACES: &[(&str, &str)] = &[
    ("enabled", "remote"),
    ("paused", "remote"),
    ("roots", "remote"),
    ("max_mode", "remote"),
    ("scheduled", "remote"),
    ("approvals", "remote"),
    ("approval_timeout", "remote"),
    ("approval_max", "remote"),
    ("max_sessions", "remote"),
    ("sudo", "remote"),
    ("release", "protected"),
    ("ca_file", "link"),
    ("pin", "link"),
    ("proxy", "link"),
];

/// Reads values and collects problems. A wrong value leaves the default in place.
pub(super) struct Reader<'t> {
    text: &'t str,
    home: &'t Path,
    problems: Vec<Problem>,
}

impl<'t> Reader<'t> {
    pub(super) fn new(text: &'t str, home: &'t Path) -> Self {
        Self {
            text,
            home,
            problems: Vec::new(),
        }
    }

    /// What was wrong, in the order of the lines.
    pub(super) fn problems(mut self) -> Vec<Problem> {
        self.problems.sort_by_key(|problem| problem.line);
        self.problems
    }

    /// Writes down every key that is not known.
    pub(super) fn known(&mut self, table: &dyn TableLike, section: &str, known: &[&str]) {
        let unknown: Vec<String> = table
            .iter()
            .map(|(key, _)| key.to_owned())
            .filter(|key| !known.contains(&key.as_str()))
            .collect();
        for key in unknown {
            let place = PLACES.iter().find(|(name, _)| *name == key);
            let text = if let Some((_, right)) = place {
                format!("{key} belongs into [{right}].")
            } else if let Some(near) = nearest(&key, known.iter().copied()) {
                format!("{key} is not a setting. The nearest is {near}.")
            } else if let Some((name, right)) = nearest(&key, PLACES.iter().map(|(name, _)| *name))
                .and_then(|near| PLACES.iter().find(|(name, _)| *name == near))
            {
                format!(
                    "{key} is not a setting. The nearest is {name}, which belongs into [{right}]."
                )
            } else if section.is_empty() {
                format!(
                    "{key} is not a setting. There are {}.",
                    words::list(known, "and")
                )
            } else {
                format!(
                    "{key} is not a setting. In [{section}] there are {}.",
                    words::list(known, "and")
                )
            };
            self.wrong(table, &key, &text);
        }
    }

    /// A problem with a key of a table.
    pub(super) fn wrong(&mut self, table: &dyn TableLike, key: &str, text: &str) {
        let span = table
            .get_key_value(key)
            .and_then(|(key, item)| key.span().or_else(|| item.span()));
        let line = span.map_or(0, |span| line_of(self.text, span.start));
        self.problems.push(Problem::at(line, text));
    }

    fn expected(&mut self, table: &dyn TableLike, key: &str, what: &str, found: &Item) {
        let text = format!("{key} must be {what}, not {}.", shown(found));
        self.wrong(table, key, &text);
    }

    pub(super) fn table<'d>(
        &mut self,
        root: &'d dyn TableLike,
        key: &str,
    ) -> Option<&'d dyn TableLike> {
        let item = root.get(key)?;
        let table = item.as_table_like();
        if table.is_none() {
            self.expected(root, key, &format!("a table, as in [{key}]"), item);
        }
        table
    }

    pub(super) fn flag(&mut self, table: &dyn TableLike, key: &str, into: &mut bool) {
        let Some(item) = table.get(key) else { return };
        match item.as_bool() {
            Some(value) => *into = value,
            None => self.expected(table, key, "true or false", item),
        }
    }

    pub(super) fn text(
        &mut self,
        table: &dyn TableLike,
        key: &str,
        chars: RangeInclusive<usize>,
        into: &mut Option<String>,
    ) {
        let Some(item) = table.get(key) else { return };
        match item.as_str() {
            Some(value)
                if chars.contains(&value.chars().count())
                    && !value.chars().any(char::is_control) =>
            {
                *into = Some(value.to_owned());
            }
            Some(_) => {
                let text = format!(
                    "{key} must be text of {} to {} characters without control characters.",
                    chars.start(),
                    chars.end()
                );
                self.wrong(table, key, &text);
            }
            None => self.expected(table, key, "text in quotes", item),
        }
    }

    pub(super) fn number(
        &mut self,
        table: &dyn TableLike,
        key: &str,
        range: RangeInclusive<u64>,
        unit: &str,
        into: &mut Option<u64>,
    ) {
        let Some(item) = table.get(key) else { return };
        let value = item.as_integer().and_then(|n| u64::try_from(n).ok());
        match value {
            Some(value) if range.contains(&value) => *into = Some(value),
            _ => {
                let what = format!(
                    "a number of {unit} from {} to {}",
                    range.start(),
                    range.end()
                );
                self.expected(table, key, &what, item);
            }
        }
    }

    pub(super) fn word<T: Copy>(
        &mut self,
        table: &dyn TableLike,
        key: &str,
        known: &[(&str, T)],
        into: &mut T,
    ) {
        let Some(item) = table.get(key) else { return };
        let found = item
            .as_str()
            .and_then(|word| known.iter().find(|(name, _)| *name == word));
        match found {
            Some((_, value)) => *into = *value,
            None => {
                let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
                self.expected(table, key, &words::list(&names, "or"), item);
            }
        }
    }

    pub(super) fn path(&mut self, table: &dyn TableLike, key: &str, into: &mut Option<PathBuf>) {
        let Some(item) = table.get(key) else { return };
        match item.as_str() {
            Some(text) => match self.absolute(text) {
                Ok(path) => *into = Some(path),
                Err(why) => self.wrong(table, key, &format!("{key}: {why}")),
            },
            None => self.expected(table, key, "a path in quotes", item),
        }
    }

    pub(super) fn paths(&mut self, table: &dyn TableLike, key: &str, into: &mut Vec<PathBuf>) {
        let Some(item) = table.get(key) else { return };
        let Some(array) = item.as_array() else {
            self.expected(table, key, "a list, as in [\"~/projects\"]", item);
            return;
        };
        for value in array {
            let line = value
                .span()
                .map_or(0, |span| line_of(self.text, span.start));
            let read = match value {
                Value::String(text) => self.absolute(text.value()),
                _ => Err("every entry must be a path in quotes.".to_owned()),
            };
            match read {
                Ok(path) if path == Path::new("/") && key == "roots" => {
                    self.problems.push(Problem::at(
                        line,
                        "roots: / is the whole computer. Name the folders to work in.",
                    ));
                }
                Ok(path) if into.contains(&path) => {}
                Ok(path) => into.push(path),
                Err(why) => self
                    .problems
                    .push(Problem::at(line, format!("{key}: {why}"))),
            }
        }
    }

    fn absolute(&self, text: &str) -> Result<PathBuf, String> {
        let full = path::expand(text, Some(self.home));
        if text.is_empty() || !full.is_absolute() {
            return Err(format!(
                "{text:?} must be a whole path that begins with / or ~/."
            ));
        }
        Ok(full)
    }
}

/// A value as it stands in the file, short.
fn shown(item: &Item) -> String {
    match item {
        Item::Value(value) => {
            crate::text::cut::one_line(value.clone().decorated("", "").to_string().trim(), 40)
        }
        Item::None => "nothing".to_owned(),
        Item::Table(_) | Item::ArrayOfTables(_) => "a table".to_owned(),
    }
}
