//! What is wrong with somebody's JSON, in words: which field, what it must be, what it was.
//!
//! The parser speaks of types of ours and of columns; a person or a program at the other end has
//! fields. Used by everything that reads JSON from outside: HTTP bodies, frames, the control socket.

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_path_to_error::{Path, Segment};

use super::{cut, escape, words};

/// Characters of an explanation. A longer one is cut: a hostile body is not echoed at length.
const MOST: usize = 300;

/// Reads a value that was parsed already.
///
/// # Errors
/// What is wrong with it, as a sentence without its full stop.
pub fn read<T: DeserializeOwned>(value: Value) -> Result<T, String> {
    serde_path_to_error::deserialize(&value)
        .map_err(|error| choices::<T>(&value, &error).unwrap_or_else(|| said(&error)))
}

/// Why bytes could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// They are JSON, and say something that is not possible.
    pub json: bool,
    /// A sentence without its full stop.
    pub why: String,
}

/// Reads bytes that are one value of JSON and nothing behind it.
///
/// # Errors
/// What is wrong with them.
pub fn whole<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Unread> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let error = match serde_path_to_error::deserialize::<_, T>(&mut reader) {
        Ok(read) => match reader.end() {
            Ok(()) => return Ok(read),
            Err(error) => {
                return Err(Unread {
                    json: false,
                    why: about("", &error.to_string()),
                });
            }
        },
        Err(error) => error,
    };
    // Of a value in pieces the parser says only where it stopped: of the whole one, what it is.
    Err(match serde_json::from_slice::<Value>(bytes) {
        Ok(value) => Unread {
            json: true,
            why: read::<T>(value).err().unwrap_or_else(|| said(&error)),
        },
        Err(error) => Unread {
            json: false,
            why: about("", &error.to_string()),
        },
    })
}

/// Where one of several words is wanted and something else than text stands, the parser does not
/// say the words; asked with a word that is none of them, it does.
fn choices<T: DeserializeOwned>(
    value: &Value,
    error: &serde_path_to_error::Error<serde_json::Error>,
) -> Option<String> {
    let what = error.inner().to_string();
    let wanted = [
        "expected string or map",
        "expected map with a single key",
        "expected variant identifier",
    ];
    if !wanted.iter().any(|wanted| what.contains(wanted)) {
        return None;
    }
    let mut other = value.clone();
    let place = at(&mut other, error.path())?;
    let found = match place {
        Value::Null => "nothing".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        ref plain => cut::one_line(&plain.to_string(), 60),
    };
    *place = Value::String("\0".to_owned());
    let again = serde_path_to_error::deserialize::<_, T>(&other).err()?;
    let again = again.inner().to_string();
    let known: Vec<&str> = again
        .strip_prefix("unknown variant ")?
        .split('`')
        .skip(1)
        .step_by(2)
        .skip(1)
        .collect();
    let path = error.path().to_string();
    let path = path.trim_matches(['.', '?']);
    let own = if path.is_empty() { "it" } else { path };
    let text = format!("{own} must be {}, not {found}", words::list(&known, "or"));
    Some(cut::one_line(&escape::visible_line(&text), MOST))
}

/// The value at a place.
fn at<'v>(value: &'v mut Value, path: &Path) -> Option<&'v mut Value> {
    path.iter().try_fold(value, |value, segment| match segment {
        Segment::Map { key } => value.get_mut(key),
        Segment::Seq { index } => value.get_mut(index),
        Segment::Enum { .. } | Segment::Unknown => None,
    })
}

/// What an error with its place says.
pub fn said(error: &serde_path_to_error::Error<serde_json::Error>) -> String {
    let path = error.path().to_string();
    // Where nothing could be followed, as inside of an untagged choice, it says `?` or `.`.
    let path = path.trim_matches(['.', '?']);
    about(path, &error.inner().to_string())
}

/// What the text of an error says of the value at `path`, which is empty for the whole.
pub fn about(path: &str, error: &str) -> String {
    let what = match error.rfind(" at line ") {
        Some(at) => error.get(..at).unwrap_or(error),
        None => error,
    };
    let own = if path.is_empty() { "it" } else { path };
    let quoted: Vec<&str> = what.split('`').skip(1).step_by(2).collect();
    let first = quoted.first().copied().unwrap_or_default();
    let inside = |field: &str| match path {
        "" => field.to_owned(),
        _ if path.ends_with(field) => path.to_owned(),
        _ => format!("{path}.{field}"),
    };
    let text = if what.starts_with("missing field") {
        format!("{} is missing", inside(first))
    } else if what.starts_with("duplicate field") {
        format!("{} is there more than once", inside(first))
    } else if what.starts_with("unknown field") {
        let known = quoted.get(1..).unwrap_or_default();
        match known {
            [] => format!("{} is not known", inside(first)),
            known => format!(
                "{} is not known; there are {}",
                inside(first),
                words::list(known, "and")
            ),
        }
    } else if what.starts_with("unknown variant") {
        let known = quoted.get(1..).unwrap_or_default();
        format!("{own} is {first:?} and can be {}", words::list(known, "or"))
    } else if let Some((found, wanted)) = of_two(what, "invalid type: ") {
        format!("{own} must be {}, not {}", kind(wanted), kind(found))
    } else if let Some((found, wanted)) = of_two(what, "invalid value: ") {
        format!("{own} must be {}, not {}", kind(wanted), value(found))
    } else if let Some((_, wanted)) = of_two(what, "invalid length ") {
        format!("{own} must be {}", kind(wanted))
    } else if what == "invalid digit found in string"
        || what == "cannot parse integer from empty string"
    {
        format!("{own} must be a whole number")
    } else if what.starts_with("number too ") {
        format!("{own} is a number out of range")
    } else if what.starts_with("provided string was not `true`") {
        format!("{own} must be true or false")
    } else if what.starts_with("data did not match any variant") {
        format!("{own} has none of the forms that are known")
    } else {
        syntax(what, error, own)
    };
    cut::one_line(&escape::visible_line(&text), MOST)
}

/// `found, expected wanted` behind a beginning.
fn of_two<'a>(text: &'a str, begins: &str) -> Option<(&'a str, &'a str)> {
    text.strip_prefix(begins)?.split_once(", expected ")
}

/// What is no JSON at all, and where it stops to be.
fn syntax(what: &str, error: &str, own: &str) -> String {
    let place = error.rsplit_once(" at line ").map(|(_, place)| place);
    let at = place
        .and_then(|place| place.split_once(" column "))
        .map(|(line, column)| match line {
            "1" => format!(" at character {column}"),
            _ => format!(" in line {line}, character {column}"),
        })
        .unwrap_or_default();
    if what.starts_with("EOF") {
        "it ends in the middle".to_owned()
    } else if what.starts_with("recursion limit") {
        "it is nested too deep".to_owned()
    } else if what.starts_with("trailing characters") {
        format!("something stands behind its end{at}")
    } else if at.is_empty() {
        // A sentence of our own, from a type that checks itself.
        match own {
            "it" => what.to_owned(),
            own => format!("{own}: {what}"),
        }
    } else {
        format!("it stops to be JSON{at}")
    }
}

/// A kind of value, as the parser calls it, in words.
fn kind(name: &str) -> String {
    let name = name.trim();
    let plain = match name {
        "null" | "unit value" | "unit" => "nothing",
        "path string" | "a path string" => "a path",
        "map" | "a map" => "an object",
        "sequence" | "a sequence" => "a list",
        "a string" | "string" | "borrowed string" | "a borrowed string" => "text",
        "a boolean" | "boolean" => "true or false",
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number from 0 on",
        "i8" | "i16" | "i32" | "i64" => "a whole number",
        "f32" | "f64" | "a floating point number" => "a number",
        _ if name.starts_with("string ") => "text",
        _ if name.starts_with("integer ") || name.starts_with("floating point ") => {
            return value(name);
        }
        _ if name.starts_with("boolean ") => return value(name),
        _ if name.starts_with("struct ") || name.starts_with("internally tagged") => "an object",
        _ if name.starts_with("tuple ") || name.starts_with("an array of") => "a list",
        _ if name.starts_with("newtype ") || name.starts_with("enum ") => "one of the known words",
        _ if name.contains("enum ") || name.contains("variant") => "one of the known words",
        _ => name,
    };
    plain.to_owned()
}

/// A found value, in words: the number itself, or what kind of thing it is.
fn value(found: &str) -> String {
    match found.split_once('`') {
        Some((_, rest)) => rest.trim_end_matches('`').to_owned(),
        None => match found.strip_prefix("string ") {
            Some(text) => cut::one_line(text, 60),
            None => kind_plain(found),
        },
    }
}

fn kind_plain(found: &str) -> String {
    match found {
        "map" => "an object".to_owned(),
        "sequence" => "a list".to_owned(),
        "null" => "nothing".to_owned(),
        other => other.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only its reading is looked at")]
    struct Asked {
        name: String,
        seconds: u64,
        #[serde(default)]
        parts: Vec<Part>,
        #[serde(default)]
        how: How,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only its reading is looked at")]
    struct Part {
        text: String,
        #[serde(default, rename = "as")]
        how: How,
    }

    #[derive(Debug, Default, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum How {
        #[default]
        Once,
        Always,
    }

    fn wrong(value: Value) -> String {
        read::<Asked>(value).unwrap_err()
    }

    #[test]
    fn a_field_is_named_and_what_it_must_be() {
        let said = [
            json!({ "seconds": 1 }),
            json!({ "name": 1, "seconds": 1 }),
            json!({ "name": null, "seconds": 1 }),
            json!({ "name": "a", "seconds": -1 }),
            json!({ "name": "a", "seconds": "soon" }),
            json!({ "name": "a", "seconds": 1.5 }),
            json!({ "name": "a", "seconds": 1, "parts": {} }),
            json!({ "name": "a", "seconds": 1, "parts": [{ "text": "a" }, { "text": true }] }),
            json!({ "name": "a", "seconds": 1, "parts": [{ "txt": "a" }] }),
            json!({ "name": "a", "seconds": 1, "parts": [{}] }),
            json!({ "name": "a", "seconds": 1, "how": "never" }),
            json!({ "name": "a", "seconds": 1, "how": 4 }),
            json!({ "name": "a", "seconds": 1, "how": {} }),
            json!({ "name": "a", "seconds": 1, "how": ["once"] }),
            json!({ "name": "a", "seconds": 1, "parts": [{ "text": "a" }, { "text": "a", "as": true }] }),
            json!([1]),
            json!("text"),
            json!(null),
        ]
        .map(wrong)
        .join("\n");
        insta::assert_snapshot!(said, @r#"
        name is missing
        name must be text, not 1
        name must be text, not nothing
        seconds must be a whole number from 0 on, not -1
        seconds must be a whole number from 0 on, not text
        seconds must be a whole number from 0 on, not 1.5
        parts must be a list, not an object
        parts[1].text must be text, not true
        parts[0].txt is not known; there are text and as
        parts[0].text is missing
        how is "never" and can be once or always
        how must be once or always, not 4
        how must be once or always, not an object
        how must be once or always, not a list
        parts[1].as must be once or always, not true
        [0] must be text, not 1
        it must be an object, not text
        it must be an object, not nothing
        "#);
    }

    #[test]
    fn text_that_is_no_json_says_where_it_stops() {
        let said = [
            "",
            "{",
            "{\"name\": }",
            "{} x",
            "nul",
            "{\n\"a\": 1,}",
            "\u{1b}[2J",
        ]
        .map(|text| {
            let mut reader = serde_json::Deserializer::from_str(text);
            let read = serde_path_to_error::deserialize::<_, Value>(&mut reader)
                .map_err(|error| said(&error));
            read.and_then(|_| reader.end().map_err(|error| about("", &error.to_string())))
                .unwrap_err()
        })
        .join("\n");
        insta::assert_snapshot!(said, @r"
        it ends in the middle
        it ends in the middle
        it stops to be JSON at character 10
        something stands behind its end at character 4
        it ends in the middle
        it stops to be JSON in line 2, character 8
        it stops to be JSON at character 1
        ");
    }
}
