//! The architecture as a test: arrows between modules point down, files stay short and say what
//! they are for.

use std::path::{Path, PathBuf};

/// From the top down. A module may use what stands in a later row; in its own row only itself,
/// but for the last row, which is ground.
const LAYERS: [&[&str]; 13] = [
    &["cli"],
    &["daemon", "hub", "service"],
    &["remote"],
    &["acp", "link"],
    &["rpc"],
    &["session"],
    &["agent"],
    &["tools"],
    &["permission"],
    &["exec", "fs", "context"],
    &["model"],
    &["store"],
    &["edit", "plan", "shell", "spec"],
];
const GROUND: [&str; 6] = ["clock", "config", "ids", "rt", "secret", "text"];

/// Upward arrows with a reason.
const EXCEPTIONS: [(&str, &str, &str); 2] = [
    (
        "exec",
        "permission",
        "it spends the grant that permission alone makes",
    ),
    (
        "fs",
        "permission",
        "it spends the grant that permission alone makes",
    ),
];

/// What the hub may use, and nothing else of the device's.
const HUB: [&str; 7] = ["hub", "rpc", "link", "acp", "spec", "store", "model"];

/// Lines that are not tests.
const MAX_LINES: usize = 600;

#[test]
fn arrows_point_down() {
    let mut wrong = Vec::new();
    for file in sources() {
        let (module, depth) = place(&file);
        if module == "testing" || module == "lib" || module == "main" {
            continue;
        }
        for (line, used) in uses(&code(&file), depth) {
            let allowed = used == module
                || GROUND.contains(&used.as_str())
                || EXCEPTIONS
                    .iter()
                    .any(|(from, to, _)| *from == module && *to == used)
                || (module == "hub" && HUB.contains(&used.as_str()))
                || (module != "hub" && rank(&used) > rank(&module));
            if !allowed {
                wrong.push(format!("{}:{line}: {module} uses {used}", file.display()));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new(), "{}", wrong.join("\n"));
}

#[test]
fn files_are_short_and_say_what_they_are_for() {
    let mut wrong = Vec::new();
    for file in sources() {
        let text = std::fs::read_to_string(&file).unwrap();
        if !text.starts_with("//!") {
            wrong.push(format!("{}: does not begin with //!", file.display()));
        }
        let lines = code(&file).lines().count();
        if lines > MAX_LINES && !text.contains("//! table:") {
            wrong.push(format!(
                "{}: {lines} lines that are not tests",
                file.display()
            ));
        }
    }
    assert_eq!(wrong, Vec::<String>::new(), "{}", wrong.join("\n"));
}

#[test]
fn the_reader_of_imports_sees_what_is_used() {
    let text = "use crate::rt::Tasks; // crate::cli\nuse crate::{store::{db, item}, ids};\n/// [`crate::hub`]\nlet x = crate::text::cut(\"crate::link\");\nuse super::super::model::X;\nuse super::own;\n";
    let found: Vec<String> = uses(text, 2)
        .into_iter()
        .map(|(line, used)| format!("{line} {used}"))
        .collect();
    assert_eq!(found, ["1 rt", "2 ids", "2 store", "4 text", "5 model"]);
}

/// The row of a module; none when it has no place.
fn place_of(module: &str) -> Option<usize> {
    let row = LAYERS.iter().position(|row| row.contains(&module));
    row.or_else(|| GROUND.contains(&module).then_some(LAYERS.len()))
}

fn rank(module: &str) -> usize {
    place_of(module).unwrap_or_else(|| panic!("the module {module} has no place in the layers"))
}

/// All source files that are not tests.
fn sources() -> Vec<PathBuf> {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() && name != "tests" {
                walk(&path, found);
            } else if name.ends_with(".rs") && name != "tests.rs" {
                found.push(path);
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    walk(&root.join("src"), &mut found);
    found.sort();
    assert!(found.len() > 20, "the sources are elsewhere");
    found
        .into_iter()
        .map(|path| path.strip_prefix(root).unwrap().to_owned())
        .collect()
}

/// The top module of a file, and how deep the file is: `src/a.rs` 1, `src/a/b.rs` 2.
fn place(file: &Path) -> (String, usize) {
    let inside = file.strip_prefix("src").unwrap().with_extension("");
    let parts: Vec<_> = inside
        .iter()
        .map(|part| part.to_string_lossy().into_owned())
        .collect();
    (parts[0].clone(), parts.len())
}

/// A file without its tests: they are the last thing in it.
fn code(file: &Path) -> String {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
    let tests = text.find("\n#[cfg(test)]\nmod ").unwrap_or(text.len());
    text[..tests].to_owned()
}

/// Top modules that a text names, with their lines: by `crate::…`, `crate::{…}` or enough `super::`.
fn uses(text: &str, depth: usize) -> Vec<(usize, String)> {
    let plain: String = text
        .lines()
        .map(|line| format!("{}\n", without_words(line)))
        .collect();
    let climb = "super::".repeat(depth);
    let mut found = Vec::new();
    for start in ["crate::", climb.as_str()] {
        for (at, _) in plain.match_indices(start) {
            let before = plain[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '$' || c == ':') {
                continue;
            }
            let line =
                plain[..at].lines().count().max(1) + usize::from(plain[..at].ends_with('\n'));
            // An inline module is one deeper than its file: there `super::` is the file itself.
            let known = |name: &String| start == "crate::" || place_of(name).is_some();
            let names = names(&plain[at + start.len()..]).into_iter().filter(known);
            found.extend(names.map(|name| (line, name)));
        }
    }
    found.sort();
    found
}

/// The name at the start, or those of a group at its top level.
fn names(rest: &str) -> Vec<String> {
    let Some(group) = rest.strip_prefix('{') else {
        return vec![word(rest)];
    };
    let mut level = 0;
    let mut names = Vec::new();
    let mut fresh = true;
    for (at, c) in group.char_indices() {
        match c {
            '}' if level == 0 => break,
            '{' => level += 1,
            '}' => level -= 1,
            ',' if level == 0 => fresh = true,
            c if fresh && !c.is_whitespace() => {
                names.push(word(&group[at..]));
                fresh = false;
            }
            _ => {}
        }
    }
    names
}

fn word(text: &str) -> String {
    text.chars()
        .take_while(|c| c.is_alphanumeric() || *c == '_')
        .collect()
}

/// A line without its comment and what stands in quotes.
fn without_words(line: &str) -> String {
    let mut kept = String::new();
    let mut quoted = false;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' if quoted => {
                chars.next();
            }
            '"' => quoted = !quoted,
            '/' if !quoted && chars.peek() == Some(&'/') => break,
            c if !quoted => kept.push(c),
            _ => {}
        }
    }
    kept
}
