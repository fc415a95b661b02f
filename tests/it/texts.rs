//! What texts tell a person to type exists: every `lembas …` that a message, a page, the spec or
//! the documents name is a command of the program.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Words that follow the program's name where it is the subject of a sentence.
const SAID: [&str; 18] = [
    "cannot",
    "knows",
    "makes",
    "that",
    "itself",
    "again",
    "is",
    "on",
    "has",
    "reads",
    "keeps",
    "owns",
    "does",
    "failed",
    "broke",
    "there",
    "of",
    "judgement",
];

/// Words that may follow a command in a sentence.
const GOES_ON: [&str; 17] = [
    "the", "an", "so", "there", "on", "again", "needs", "still", "says", "does", "has", "takes",
    "and", "or", "in", "for", "to",
];

fn files(at: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(at).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            files(&path, into);
        } else if name != "tests.rs"
            && ["rs", "js", "json", "md", "html"]
                .iter()
                .any(|e| name.ends_with(&format!(".{e}")))
        {
            into.push(path);
        }
    }
}

/// The command words after each `lembas ` of a text: at most three, up to what is no command word.
fn named(text: &str) -> Vec<Vec<String>> {
    let word = |w: &&str| {
        !w.starts_with('-')
            && !w.is_empty()
            && w.chars().all(|c| c.is_ascii_lowercase() || c == '-')
    };
    text.match_indices("lembas ")
        .filter(|(at, _)| {
            !text[..*at].ends_with(|c: char| c.is_alphanumeric() || "_-./".contains(c))
        })
        .map(|(at, name)| {
            let rest = &text[at + name.len()..];
            let line = rest.lines().next().unwrap_or_default();
            line.split(' ')
                .map(|w| w.trim_end_matches(['`', '.', ',', ';', ':', ')', '"', '\'', '\\']))
                .take_while(word)
                .take(3)
                .map(str::to_owned)
                .collect::<Vec<_>>()
        })
        .filter(|words: &Vec<String>| !words.is_empty() && !SAID.contains(&words[0].as_str()))
        .collect()
}

#[test]
fn every_command_that_a_text_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut all = Vec::new();
    for folder in ["src", "spec", "docs"] {
        files(&root.join(folder), &mut all);
    }
    all.push(root.join("README.md"));
    let mut typed = BTreeSet::new();
    for path in &all {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        // What tests type wrongly on purpose is not told to anybody.
        let told = text.split("#[cfg(test)]").next().unwrap_or_default();
        for words in named(told) {
            typed.insert((
                words,
                path.strip_prefix(root).unwrap().display().to_string(),
            ));
        }
    }
    assert!(typed.len() > 60, "the texts are not found: {typed:?}");
    let mut known = std::collections::BTreeMap::new();
    let mut wrong = Vec::new();
    for (words, place) in typed {
        let found = *known.entry(words.clone()).or_insert_with(|| exists(&words));
        if !found {
            wrong.push(format!("{place}: lembas {}", words.join(" ")));
        }
    }
    assert!(wrong.is_empty(), "no such command:\n{}", wrong.join("\n"));
}

/// Whether the first word is a command, and the second one too where that has further ones.
fn exists(words: &[String]) -> bool {
    let help = |words: &[String]| {
        let output = Command::new(env!("CARGO_BIN_EXE_lembas"))
            .args(words)
            .arg("--help")
            .output()
            .unwrap();
        (
            output.status.success(),
            String::from_utf8_lossy(&output.stdout).into_owned(),
        )
    };
    let (known, text) = help(&words[..1]);
    if !known {
        return false;
    }
    match words.get(1) {
        Some(second) if text.contains("Commands:\n") && !GOES_ON.contains(&second.as_str()) => {
            help(&words[..2]).0
        }
        _ => true,
    }
}
