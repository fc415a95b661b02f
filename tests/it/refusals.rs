//! Bad input, all of it, provoked through what a person or another program can reach: command
//! lines, settings, discovery and pairing, tokens, frames, HTTP. The texts are held whole in
//! `tests/data/refusals/`, and each must keep the rule of [`sound`]: what happened, to what, and
//! the next step, in words of ours.

mod frames;
mod http;
mod instances;
mod lines;
mod settings;
mod stores;
pub(crate) mod words;

/// Holds a table of refusals.
fn hold(name: &str, table: &str) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/refusals");
    insta::with_settings!({
        snapshot_path => folder,
        prepend_module_to_snapshot => false,
        omit_expression => true,
    }, { insta::assert_snapshot!(name, table) });
}

/// What a text for people must not hold: names of types, values as a debugger prints them,
/// the places of a parser, and nothing at all.
const FOREIGN: [&str; 30] = [
    "Some(",
    "None",
    "Ok(",
    "Err(",
    "Os {",
    "Error {",
    "kind:",
    "::",
    "os error",
    " at line ",
    "column ",
    "missing field",
    "invalid type",
    "invalid value",
    "unknown field",
    "unknown variant",
    "expected struct",
    "deserialize",
    "serde",
    "usize",
    "u64",
    "i64",
    "Deserialize",
    "panicked",
    "unwrap",
    "null,",
    "0x",
    "\u{1b}",
    "\t",
    "  why: \n",
];

/// Whether a refusal reads as one of ours. `next` is its next step: a line to paste, or words.
fn sound(whole: &str, text: &str, next: &str) {
    let foreign: Vec<&str> = FOREIGN
        .into_iter()
        .filter(|word| text.contains(word) || next.contains(word))
        .collect();
    assert!(foreign.is_empty(), "{foreign:?} in\n{whole}");
    assert!(text.split_whitespace().count() > 2, "no text in\n{whole}");
    assert!(
        next.split_whitespace().count() > 1,
        "no next step in\n{whole}"
    );
}
