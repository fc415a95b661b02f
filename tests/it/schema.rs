//! JSON Schema, as much of draft 2020-12 as `spec/schema` uses: spec files and recorded frames are
//! held against it. A keyword that is not known fails, so that no rule is silently left out.

use serde_json::{Map, Value};

/// A schema document.
pub(crate) struct Schema(Value);

impl Schema {
    pub(crate) fn read(path: &str) -> Self {
        let file = format!("{}/spec/{path}", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{file}: {error}"));
        Self(serde_json::from_str(&text).unwrap_or_else(|error| panic!("{file}: {error}")))
    }

    pub(crate) fn value(&self) -> &Value {
        &self.0
    }

    /// All mistakes of a value under the whole schema.
    pub(crate) fn check(&self, value: &Value) -> Vec<String> {
        self.mistakes(&self.0, value)
    }

    /// All mistakes of a value under `#/$defs/<name>`.
    pub(crate) fn check_def(&self, name: &str, value: &Value) -> Vec<String> {
        self.mistakes(self.def(name), value)
    }

    fn def(&self, name: &str) -> &Value {
        self.0["$defs"]
            .get(name)
            .unwrap_or_else(|| panic!("there is no $defs/{name}"))
    }

    fn mistakes(&self, schema: &Value, value: &Value) -> Vec<String> {
        let mut found = Vec::new();
        self.walk(schema, value, "", &mut found);
        found
    }

    fn walk(&self, schema: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
        let Some(rules) = schema.as_object() else {
            panic!("a schema is an object, not {schema}");
        };
        for (keyword, rule) in rules {
            match keyword.as_str() {
                "$schema" | "$id" | "$defs" | "title" | "description" | "default" => {}
                _ if keyword.starts_with("x-") => {}
                "$ref" => {
                    let name = rule.as_str().and_then(|r| r.strip_prefix("#/$defs/"));
                    self.walk(self.def(name.expect("a local reference")), value, at, found);
                }
                "anyOf" => {
                    let options = rule.as_array().expect("a list");
                    let tried: Vec<_> = options
                        .iter()
                        .map(|option| self.mistakes(option, value))
                        .collect();
                    if tried.iter().all(|mistakes| !mistakes.is_empty()) {
                        found.push(format!("{at}: fits none of {tried:?}"));
                    }
                }
                _ if value_rule(keyword, rule, value, found, at) => {}
                "properties" => {
                    for (name, inner) in rule.as_object().expect("an object") {
                        if let Some(value) = value.get(name) {
                            self.walk(inner, value, &format!("{at}/{name}"), found);
                        }
                    }
                }
                "additionalProperties" => self.additional(rules, rule, value, at, found),
                "items" => {
                    for (index, value) in value.as_array().into_iter().flatten().enumerate() {
                        self.walk(rule, value, &format!("{at}/{index}"), found);
                    }
                }
                other => panic!("the keyword {other} is not known here"),
            }
        }
    }

    fn additional(
        &self,
        rules: &Map<String, Value>,
        rule: &Value,
        value: &Value,
        at: &str,
        found: &mut Vec<String>,
    ) {
        let known = rules.get("properties").and_then(Value::as_object);
        for (name, value) in value.as_object().into_iter().flatten() {
            if known.is_some_and(|known| known.contains_key(name)) {
                continue;
            }
            match rule {
                Value::Bool(true) => {}
                Value::Bool(false) => found.push(format!("{at}/{name}: no such field")),
                schema => self.walk(schema, value, &format!("{at}/{name}"), found),
            }
        }
    }
}

/// The keywords that look at one value alone; false: it is another keyword.
fn value_rule(
    keyword: &str,
    rule: &Value,
    value: &Value,
    found: &mut Vec<String>,
    at: &str,
) -> bool {
    let number = || rule.as_f64().expect("a number");
    let holds = match keyword {
        "type" => match rule {
            Value::Array(types) => types.iter().any(|name| is_type(name, value)),
            name => is_type(name, value),
        },
        "enum" => rule.as_array().expect("a list").contains(value),
        "const" => rule == value,
        "required" => {
            for name in rule.as_array().expect("a list") {
                let name = name.as_str().expect("a name");
                if value.is_object() && value.get(name).is_none() {
                    found.push(format!("{at}: {name} is missing"));
                }
            }
            true
        }
        "minimum" => value.as_f64().is_none_or(|n| n >= number()),
        "maximum" => value.as_f64().is_none_or(|n| n <= number()),
        "minLength" => value
            .as_str()
            .is_none_or(|s| s.chars().count() as f64 >= number()),
        "maxLength" => value
            .as_str()
            .is_none_or(|s| s.chars().count() as f64 <= number()),
        "minItems" => value.as_array().is_none_or(|l| l.len() as f64 >= number()),
        "maxItems" => value.as_array().is_none_or(|l| l.len() as f64 <= number()),
        _ => return false,
    };
    if !holds {
        let shown: String = value.to_string().chars().take(80).collect();
        found.push(format!("{at}: {shown} is not {keyword} {rule}"));
    }
    true
}

fn is_type(name: &Value, value: &Value) -> bool {
    match name.as_str().expect("a type's name") {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("no type is called {other}"),
    }
}

#[test]
fn a_schema_finds_what_is_wrong() {
    use serde_json::json;
    let schema = Schema(json!({
        "type": "object", "required": ["a"], "additionalProperties": false,
        "properties": {
            "a": { "$ref": "#/$defs/small" },
            "b": { "anyOf": [{ "type": "null" }, { "enum": ["x", "y"] }] },
            "c": { "type": "array", "minItems": 1, "items": { "type": "string", "maxLength": 2 } },
        },
        "$defs": { "small": { "type": "integer", "minimum": 0, "maximum": 9 } },
    }));
    for good in [
        json!({ "a": 1 }),
        json!({ "a": 0, "b": null, "c": ["äö"] }),
        json!({ "a": 9, "b": "x" }),
    ] {
        assert_eq!(schema.check(&good), Vec::<String>::new(), "{good}");
    }
    for bad in [
        json!([]),
        json!({}),
        json!({ "a": 10 }),
        json!({ "a": "1" }),
        json!({ "a": 1.5 }),
        json!({ "a": 1, "b": "z" }),
        json!({ "a": 1, "c": [] }),
        json!({ "a": 1, "c": ["abc"] }),
        json!({ "a": 1, "d": 1 }),
    ] {
        assert!(!schema.check(&bad).is_empty(), "{bad}");
    }
}
