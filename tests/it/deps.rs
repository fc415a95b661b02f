//! What is built into the program: no second of what should be one, no library that was decided
//! against, licences that fit, and not more crates than there were.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// Crates in the build on all systems together. Lower it when there are fewer; raise it only with
/// a reason in the change that does.
const MAX_CRATES: usize = 331;

/// Never in the build: another TLS or crypto library than rustls with ring, another clock library.
const REFUSED: [&str; 6] = [
    "openssl",
    "openssl-sys",
    "native-tls",
    "aws-lc-rs",
    "aws-lc-sys",
    "chrono",
];

/// Only one version of each.
const SINGLE: [&str; 9] = [
    "rustls",
    "hyper",
    "tungstenite",
    "tokio-tungstenite",
    "ring",
    "tokio",
    "axum",
    "reqwest",
    "rusqlite",
];

const LICENCES: [&str; 12] = [
    "MIT",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "0BSD",
    "Zlib",
    "Unicode-3.0",
    "Unlicense",
    "CC0-1.0",
    "BSL-1.0",
];

/// Licences that only these crates may have: files of theirs stay under it, unchanged by us; and
/// certificates as data.
const NAMED: [(&str, &str); 4] = [
    ("cssparser", "MPL-2.0"),
    ("dtoa-short", "MPL-2.0"),
    ("option-ext", "MPL-2.0"),
    ("webpki-root-certs", "CDLA-Permissive-2.0"),
];

/// Name, version and licence of everything built.
fn built() -> BTreeSet<(String, String, String)> {
    #[expect(
        clippy::disallowed_methods,
        reason = "a test asks cargo what it builds"
    )]
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
    cargo.args([
        "tree",
        "--locked",
        "-e",
        "normal,build",
        "--target",
        "all",
        "--prefix",
        "none",
    ]);
    let output = cargo.args(["-f", "{p}|{l}"]).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo tree: {errors}");
    let text = String::from_utf8(output.stdout).unwrap();
    let read = |line: &str| {
        let (package, licence) = line.trim_end_matches(" (*)").split_once('|')?;
        let mut words = package.split(' ');
        let name = words.next()?.to_owned();
        Some((
            name,
            words.next()?.to_owned(),
            licence.trim_end_matches(" (*)").to_owned(),
        ))
    };
    let built: BTreeSet<_> = text.lines().filter_map(read).collect();
    assert!(built.len() > 100, "cargo tree said too little");
    built
}

#[test]
fn nothing_refused_and_nothing_twice() {
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (name, version, _) in built() {
        assert!(
            !REFUSED.contains(&name.as_str()),
            "{name} is in the build: cargo tree -i {name}"
        );
        versions.entry(name).or_default().insert(version);
    }
    for name in SINGLE {
        let count = versions.get(name).map_or(0, BTreeSet::len);
        assert_eq!(count, 1, "{name}: {:?}", versions.get(name));
    }
}

#[test]
fn licences_fit() {
    for (name, version, licence) in built() {
        let named = NAMED.contains(&(name.as_str(), licence.as_str()));
        assert!(
            named || fits(&licence),
            "{name} {version} is under {licence:?}"
        );
    }
}

#[test]
fn not_more_crates_than_there_were() {
    let count = built().len();
    assert!(
        count <= MAX_CRATES,
        "{count} crates are built, {MAX_CRATES} were"
    );
}

/// Whether an SPDX expression can be met with allowed licences alone.
fn fits(expression: &str) -> bool {
    let expression = expression.trim();
    if let Some(parts) = split(expression, " AND ") {
        return parts.iter().all(|part| fits(part));
    }
    if let Some(parts) = split(expression, " OR ").or_else(|| split(expression, "/")) {
        return parts.iter().any(|part| fits(part));
    }
    match expression
        .strip_prefix('(')
        .and_then(|rest| rest.strip_suffix(')'))
    {
        Some(inside) => fits(inside),
        None => LICENCES.contains(&expression),
    }
}

/// The parts between an operator outside of parentheses; none when it is not there.
fn split<'a>(expression: &'a str, operator: &str) -> Option<Vec<&'a str>> {
    let mut parts = Vec::new();
    let (mut start, mut level) = (0, 0);
    for (at, c) in expression.char_indices() {
        match c {
            '(' => level += 1,
            ')' => level -= 1,
            _ if level == 0 && expression[at..].starts_with(operator) => {
                parts.push(&expression[start..at]);
                start = at + operator.len();
            }
            _ => {}
        }
    }
    parts.push(&expression[start..]);
    (parts.len() > 1).then_some(parts)
}

#[test]
fn licence_expressions_are_understood() {
    for good in [
        "MIT",
        "MIT OR GPL-3.0",
        "MIT/Apache-2.0",
        "(Apache-2.0 OR MIT) AND BSD-3-Clause",
        "(GPL-2.0 OR MIT) AND ISC",
    ] {
        assert!(fits(good), "{good}");
    }
    for bad in [
        "",
        "GPL-3.0",
        "MIT AND GPL-3.0",
        "(MIT OR ISC) AND LGPL-2.1",
        "MPL-2.0",
        "MITT",
    ] {
        assert!(!fits(bad), "{bad}");
    }
}
