//! Reading JSON so that every mistake is told, not only the first: a node knows its file and its
//! place, notes what was expected there, and goes on with an empty value.

use std::cell::RefCell;
use std::fmt;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::contents::Contents;

/// One mistake in a spec file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// Path inside the spec.
    pub file: String,
    /// JSON pointer (RFC 6901), empty for the whole file.
    pub pointer: String,
    /// What should be there, in words.
    pub expected: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}{}{}: expected {}",
            self.file,
            if self.pointer.is_empty() { "" } else { "#" },
            self.pointer,
            self.expected
        )
    }
}

/// Where the mistakes are gathered.
#[derive(Debug, Default)]
pub(super) struct Problems(RefCell<Vec<Problem>>);

impl Problems {
    pub(super) fn note(&self, file: &str, pointer: &str, expected: impl Into<String>) {
        self.0.borrow_mut().push(Problem {
            file: file.to_owned(),
            pointer: pointer.to_owned(),
            expected: expected.into(),
        });
    }

    pub(super) fn take(self) -> Vec<Problem> {
        let mut problems = self.0.into_inner();
        problems.sort();
        problems.dedup();
        problems
    }
}

/// The files of a spec while they are read.
#[derive(Debug)]
pub(super) struct Files<'a> {
    contents: &'a Contents,
    problems: &'a Problems,
}

impl<'a> Files<'a> {
    pub(super) fn new(contents: &'a Contents, problems: &'a Problems) -> Self {
        Self { contents, problems }
    }

    /// A text file; empty, and noted, when it is not there.
    pub(super) fn text(&self, path: &str) -> &'a str {
        match self.contents.text(path) {
            Some(text) => text,
            None => {
                self.problems.note(path, "", "a file of UTF-8 text");
                ""
            }
        }
    }

    pub(super) fn json(&self, path: &str) -> Json<'a> {
        let value = serde_json::from_str(self.text(path)).unwrap_or_else(|error| {
            self.problems.note(path, "", format!("JSON ({error})"));
            Value::Null
        });
        Json {
            file: path.to_owned(),
            value,
            problems: self.problems,
        }
    }

    /// Paths directly in a folder, in order.
    pub(super) fn folder(&self, folder: &str) -> Vec<&'a str> {
        let inside = |path: &&str| {
            path.strip_prefix(folder)
                .and_then(|rest| rest.strip_prefix('/'))
                .is_some_and(|name| !name.contains('/'))
        };
        self.contents.paths().filter(inside).collect()
    }

    pub(super) fn problems(&self) -> &'a Problems {
        self.problems
    }
}

/// One parsed file.
#[derive(Debug)]
pub(super) struct Json<'a> {
    file: String,
    value: Value,
    problems: &'a Problems,
}

impl Json<'_> {
    pub(super) fn node(&self) -> Node<'_> {
        Node {
            file: &self.file,
            pointer: String::new(),
            value: &self.value,
            problems: self.problems,
        }
    }
}

/// A place in a file.
#[derive(Clone, Debug)]
pub(super) struct Node<'a> {
    file: &'a str,
    pointer: String,
    value: &'a Value,
    problems: &'a Problems,
}

impl<'a> Node<'a> {
    pub(super) fn wrong(&self, expected: impl Into<String>) {
        self.problems.note(self.file, &self.pointer, expected);
    }

    fn at(&self, key: &str, value: &'a Value) -> Self {
        Self {
            file: self.file,
            pointer: format!(
                "{}/{}",
                self.pointer,
                key.replace('~', "~0").replace('/', "~1")
            ),
            value,
            problems: self.problems,
        }
    }

    /// A field that must be there; a missing one is noted when it is read.
    pub(super) fn get(&self, key: &str) -> Self {
        self.at(key, self.value.get(key).unwrap_or(&Value::Null))
    }

    /// A field that may be missing or null.
    pub(super) fn opt(&self, key: &str) -> Option<Self> {
        self.value
            .get(key)
            .filter(|value| !value.is_null())
            .map(|value| self.at(key, value))
    }

    /// Notes every field that is not one of these.
    pub(super) fn only(&self, known: &[&str]) {
        for (key, node) in self.map() {
            if !known.contains(&key) {
                node.wrong(format!("no such field; known are {}", known.join(", ")));
            }
        }
    }

    pub(super) fn text(&self) -> String {
        let text = self.value.as_str();
        if text.is_none() {
            self.wrong("a text");
        }
        text.unwrap_or_default().to_owned()
    }

    pub(super) fn flag(&self) -> bool {
        let flag = self.value.as_bool();
        if flag.is_none() {
            self.wrong("true or false");
        }
        flag.unwrap_or_default()
    }

    pub(super) fn number(&self) -> u64 {
        let number = self.value.as_u64();
        if number.is_none() {
            self.wrong("a whole number, not negative");
        }
        number.unwrap_or_default()
    }

    pub(super) fn size(&self) -> usize {
        usize::try_from(self.number()).unwrap_or(usize::MAX)
    }

    pub(super) fn list(&self) -> Vec<Self> {
        let Some(list) = self.value.as_array() else {
            self.wrong("a list");
            return Vec::new();
        };
        let item = |(index, value)| self.at(&format!("{index}"), value);
        list.iter().enumerate().map(item).collect()
    }

    pub(super) fn map(&self) -> Vec<(&'a str, Self)> {
        let Some(map) = self.value.as_object() else {
            self.wrong("an object");
            return Vec::new();
        };
        map.iter()
            .map(|(key, value)| (key.as_str(), self.at(key, value)))
            .collect()
    }

    /// One of a closed set of words.
    pub(super) fn word<T: DeserializeOwned>(&self, words: &str) -> Option<T> {
        let word = serde_json::from_value(self.value.clone()).ok();
        if word.is_none() {
            self.wrong(format!("one of {words}"));
        }
        word
    }

    pub(super) fn texts(&self) -> Vec<String> {
        self.list().iter().map(Self::text).collect()
    }

    pub(super) fn raw(&self) -> Value {
        self.value.clone()
    }
}
