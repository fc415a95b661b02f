//! The spec's own cases, run against this implementation. An area without a runner fails.

mod unattended;

use lembas::plan::{Change, Plan};
use lembas::spec::{Contents, Facts, Narrowed, Reply, Spec, fill, silent};
use serde_json::{Value, json};

/// What the implementation makes of a case's `given`.
type Runner = fn(&Value) -> Value;

fn runner(area: &str) -> Option<Runner> {
    match area {
        "fill" => Some(run_fill),
        "narrow" => Some(run_narrow),
        "silent" => Some(run_silent),
        "scheduled" => Some(unattended::scheduled),
        "monitor" => Some(unattended::monitor),
        "progress" => Some(run_progress),
        "plan" => Some(run_plan),
        _ => None,
    }
}

#[test]
fn every_case_of_every_area() {
    let contents = Contents::embedded();
    let mut wrong = Vec::new();
    let mut cases = 0;
    for path in contents
        .paths()
        .filter(|path| path.starts_with("conformance/"))
    {
        let file: Value = serde_json::from_str(contents.text(path).unwrap()).unwrap();
        let area = file["area"].as_str().unwrap();
        assert_eq!(path, format!("conformance/{area}.json"));
        let run = runner(area).unwrap_or_else(|| panic!("the area {area} has no runner"));
        let mut names = Vec::new();
        for case in file["cases"].as_array().unwrap() {
            let name = case["name"].as_str().unwrap();
            assert!(!names.contains(&name), "{area}: {name} twice");
            names.push(name);
            let got = run(&case["given"]);
            if got != case["expect"] {
                wrong.push(format!(
                    "{area}: {name}\n  expected {}\n  got      {got}",
                    case["expect"]
                ));
            }
            cases += 1;
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {cases} cases\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(cases > 50);
}

fn run_fill(given: &Value) -> Value {
    let facts: Facts = serde_json::from_value(given["facts"].clone()).unwrap();
    match fill(given["text"].as_str().unwrap(), &facts) {
        Ok(text) => json!({ "text": text }),
        Err(unfilled) => json!({ "unfilled": unfilled.0 }),
    }
}

fn run_narrow(given: &Value) -> Value {
    let narrow = &given["narrow"];
    let paths = narrow["drop"].as_array().into_iter().flatten();
    let values = narrow["enum"].as_object().into_iter().flatten();
    let narrowed = Narrowed {
        drop: paths
            .map(|path| path.as_str().unwrap().to_owned())
            .collect(),
        values: values
            .map(|(path, keep)| (path.clone(), keep.as_array().unwrap().clone()))
            .collect(),
    };
    let mut parameters = given["parameters"].clone();
    match narrowed.apply(&mut parameters) {
        Ok(()) => json!({ "parameters": parameters }),
        Err(path) => json!({ "refused": path }),
    }
}

fn run_silent(given: &Value) -> Value {
    let sentinel = &Spec::embedded().numbers.scheduled.sentinel;
    match silent(given["reply"].as_str().unwrap(), sentinel) {
        Reply::Said(text) => json!({ "status": "said", "text": text }),
        Reply::Silent(text) => json!({ "status": "silent", "text": text }),
        Reply::Empty => json!({ "status": "empty", "text": "" }),
    }
}

fn run_progress(given: &Value) -> Value {
    let texts = &Spec::embedded().numbers.progress;
    json!({ "text": texts.text(given["phase"].as_str().unwrap(), given["data"].as_object().unwrap()) })
}

fn run_plan(given: &Value) -> Value {
    let mut plan = Plan::default();
    for call in given["calls"].as_array().unwrap() {
        let args = &call["args"];
        let change = match call["tool"].as_str().unwrap() {
            "plan_write" => Change::Write(args),
            "plan_update" => Change::Update(args),
            "todo" => Change::Todo(args),
            other => panic!("{other} is no tool of the plan"),
        };
        match plan.changed(change) {
            Ok(changed) => plan = changed,
            Err(_) => return json!({ "refused": true }),
        }
    }
    let plan = plan.to_value();
    json!({ "title": plan["title"], "phases": plan["phases"] })
}
