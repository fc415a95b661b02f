//! Every line that a text shows to be typed can be typed: it is read by the real parser of
//! arguments, with what stands for something of the reader's own replaced by a sample.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::{CommandFactory as _, Parser as _};

use super::args::Args;

/// What may stand where a text has a word in capitals or a value of the moment: one of these fits
/// every kind of argument.
const SAMPLES: [&str; 6] = ["1", "edit", "on", "allow", "hub", "127.0.0.1:8787"];

/// Lines after a text of ours: from `lembas` to where the line, its string or its example ends.
fn lines(text: &str, quote: &str) -> Vec<String> {
    let ends = ["  ", "\n", "\\n", "`", quote];
    text.match_indices("lembas ")
        .filter(|(at, _)| {
            // Where a line to type begins: a string, a line of an example, a piece of code.
            let before = text.get(..*at).unwrap_or_default();
            ["  ", "`", quote, "try: ", "Next: "]
                .iter()
                .any(|start| before.ends_with(start))
        })
        .map(|(at, _)| {
            let rest = text.get(at..).unwrap_or_default();
            // What a page puts in is a value of the moment, whatever code says which.
            let rest = match (rest.find("${"), rest.find('}')) {
                (Some(from), Some(to)) if from < to => {
                    let (before, after) = (rest.get(..from), rest.get(to + 1..));
                    format!(
                        "{}{{}}{}",
                        before.unwrap_or_default(),
                        after.unwrap_or_default()
                    )
                }
                _ => rest.to_owned(),
            };
            let end = ends.iter().filter_map(|end| rest.find(end)).min();
            let line = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
            line.trim_end_matches(['.', ',', ';', ' ']).to_owned()
        })
        .collect()
}

/// Whether the second word is a command at all: else it is a sentence about the program.
fn commands() -> BTreeSet<String> {
    let command = Args::command();
    let named = command.get_subcommands().flat_map(|c| {
        let names = c.get_all_aliases().chain([c.get_name()]);
        names.map(str::to_owned).collect::<Vec<_>>()
    });
    named.chain(["help".to_owned()]).collect()
}

/// Each way to read `a|b` in a line.
fn spread(words: &[String]) -> Vec<Vec<String>> {
    let mut all = vec![Vec::new()];
    for word in words {
        let ways: Vec<&str> = word.split('|').collect();
        all = all
            .iter()
            .flat_map(|before: &Vec<String>| {
                ways.iter().map(|way| {
                    let mut line = before.clone();
                    line.push((*way).to_owned());
                    line
                })
            })
            .collect();
    }
    all
}

/// The words as a shell would give them on; a pipe or a redirection ends the command.
fn shell_words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = false;
    for c in line.chars() {
        match c {
            '\'' => quote = !quote,
            ' ' if !quote => words.push(String::new()),
            c => words.last_mut().unwrap().push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    let end = words
        .iter()
        .position(|word| ["|", ">", "#"].contains(&word.as_str()));
    words.truncate(end.unwrap_or(words.len()));
    words
}

fn stands_for_something(word: &str) -> bool {
    let letters = word.trim_matches(|c: char| !c.is_alphanumeric());
    word.contains('{') || !letters.is_empty() && letters.chars().all(|c| c.is_ascii_uppercase())
}

fn parses(line: &str) -> bool {
    spread(&shell_words(line)).iter().all(|words| {
        SAMPLES.iter().any(|sample| {
            let words = words.iter().map(|word| match stands_for_something(word) {
                true => (*sample).to_owned(),
                false => word.clone(),
            });
            match Args::try_parse_from(words) {
                Ok(_) => true,
                Err(error) => matches!(
                    error.kind(),
                    clap::error::ErrorKind::DisplayHelp | clap::error::ErrorKind::DisplayVersion
                ),
            }
        })
    })
}

fn files(at: &Path, ends: &str, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(at).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, ends, into);
        } else if path.to_string_lossy().ends_with(ends) && !path.ends_with("tests.rs") {
            into.push(path);
        }
    }
}

#[test]
fn every_line_to_type_is_understood() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let commands = commands();
    let mut seen = BTreeSet::new();
    for (folder, ends) in [
        ("src", ".rs"),
        ("src", ".js"),
        ("docs", ".md"),
        ("spec", ".json"),
        ("spec", ".md"),
        ("tests/data/refusals", ".snap"),
    ] {
        let mut all = Vec::new();
        files(&root.join(folder), ends, &mut all);
        all.retain(|path| !path.ends_with("cli/pasted.rs"));
        for path in all {
            let text = std::fs::read_to_string(&path).unwrap();
            // What tests type wrongly on purpose is not told to anybody.
            let told = text.split("#[cfg(test)]\nmod").next().unwrap_or_default();
            let shown = |line: &&str| match ends {
                ".snap" => line.contains("try: ") || line.contains("Next: "),
                _ => !line.trim_start().starts_with("//"),
            };
            for line in told.lines().filter(shown) {
                let place = path.strip_prefix(root).unwrap().display().to_string();
                let found = lines(line, if ends == ".snap" { "\\\"" } else { "\"" });
                seen.extend(found.into_iter().map(|line| (line, place.clone())));
            }
        }
    }
    let typed: Vec<&(String, String)> = seen
        .iter()
        .filter(|(line, _)| {
            ![" needs ", " takes "]
                .iter()
                .any(|word| line.contains(word))
                && line.split(' ').nth(1).is_some_and(|word| {
                    let word = word.split('|').next().unwrap_or_default();
                    commands.contains(word)
                })
        })
        .collect();
    assert!(typed.len() > 80, "the lines are not found: {typed:#?}");
    let wrong: Vec<String> = typed
        .iter()
        .filter(|(line, _)| !parses(line))
        .map(|(line, place)| format!("{place}: {line}"))
        .collect();
    assert!(
        wrong.is_empty(),
        "it cannot be typed so:\n{}",
        wrong.join("\n")
    );
}
