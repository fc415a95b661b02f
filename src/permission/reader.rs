//! Which commands only read, by the tables of `spec/permission/defaults.json`.

use super::programs;
use crate::shell::Word;
use crate::spec::permission::{Reader, ReaderOperands, permission};

/// What a command that only reads looks at.
#[derive(Debug, Default)]
pub(super) struct Reads<'a> {
    /// Words that are paths, literal or not.
    pub(super) paths: Vec<&'a Word>,
    /// Paths inside of options, as text.
    pub(super) named: Vec<String>,
    /// What it does depends on settings of the repository: a read only in the full box.
    pub(super) repository: bool,
    /// Changes the folder of what follows.
    pub(super) enters: bool,
}

/// The words of a call, split by a table into options and operands.
#[derive(Debug, Default)]
pub(super) struct Split<'a> {
    pub(super) options: Vec<&'a str>,
    pub(super) operands: Vec<&'a Word>,
    /// Values of options that are a word of their own, with the option.
    pub(super) values: Vec<(&'a str, &'a Word)>,
    /// A word that may turn out to be an option.
    pub(super) unsure: bool,
}

/// What the command reads, or none when it is not known to only read.
///
/// `open_ended`: more arguments follow that the text does not say.
pub(super) fn reads<'a>(name: &str, words: &'a [Word], open_ended: bool) -> Option<Reads<'a>> {
    let table = permission().defaults.read.get(name)?;
    let arguments = words.get(1..)?;
    if let Some(check) = &table.check {
        return programs::check(check, arguments, open_ended);
    }
    let split = split(arguments, &table.takes);
    let strict = !table.gated.is_empty() || table.only.is_some();
    if strict && (split.unsure || open_ended) {
        return None;
    }
    innocent(table, &split).then_some(())?;
    let operands = operands(table, &split)?;
    let values = split
        .values
        .iter()
        .filter(|(option, _)| !table.text.iter().any(|t| t == option))
        .map(|(_, value)| *value);
    let named = split
        .options
        .iter()
        .filter(|o| o.starts_with("--"))
        .filter(|o| !table.text.iter().any(|t| o.split('=').next() == Some(t)))
        .filter_map(|o| o.split_once('='))
        .map(|(_, value)| value.to_owned())
        .collect();
    Some(Reads {
        paths: operands.into_iter().chain(values).collect(),
        named,
        ..Reads::default()
    })
}

/// Whether the options leave it a read.
fn innocent(table: &Reader, split: &Split<'_>) -> bool {
    let given = |want: &String| {
        split
            .options
            .iter()
            .any(|option| gated(option, want, &table.takes))
    };
    if table.gated.iter().any(given) {
        return false;
    }
    if !table.needs.is_empty() && !table.needs.iter().any(given) {
        return false;
    }
    table.only.as_ref().is_none_or(|only| {
        split
            .options
            .iter()
            .all(|option| only.iter().any(|o| o == option))
    })
}

/// Whether an option as written is, or could be, the one of the table: long ones in any
/// abbreviation of three characters and more, short ones anywhere in a cluster.
pub(super) fn gated(option: &str, want: &str, takes: &[String]) -> bool {
    if want.starts_with("--") {
        let name = option.split('=').next().unwrap_or(option);
        return name.len() >= 3 && name.starts_with("--") && want.starts_with(name);
    }
    if option.starts_with("--") {
        return false;
    }
    let Some(letter) = want.strip_prefix(['-', '+']) else {
        return option == want;
    };
    if letter.chars().count() > 1 {
        // `-revert` in any abbreviation; a cluster is not told apart from one.
        return option == want || option.len() > 2 && want.starts_with(option);
    }
    for c in option.chars().skip(1) {
        if letter.starts_with(c) {
            return true;
        }
        if takes.iter().any(|t| t.len() == 2 && t.ends_with(c)) {
            return false;
        }
    }
    false
}

fn operands<'a>(table: &Reader, split: &Split<'a>) -> Option<Vec<&'a Word>> {
    if table.most.is_some_and(|most| split.operands.len() > most) {
        return None;
    }
    let operands = &split.operands;
    Some(match table.operands {
        ReaderOperands::Paths => operands.clone(),
        ReaderOperands::Pattern => {
            let given = table.pattern.iter().any(|p| {
                split.options.iter().any(|o| o == p)
                    || split.values.iter().any(|(o, _)| o == p)
                    || split
                        .options
                        .iter()
                        .any(|o| p.starts_with("--") && gated(o, p, &[]))
            });
            operands.iter().skip(usize::from(!given)).copied().collect()
        }
        ReaderOperands::Text => Vec::new(),
        ReaderOperands::Names => {
            if operands.iter().any(|w| w.text().contains('[')) {
                return None;
            }
            Vec::new()
        }
        ReaderOperands::Tests => operands
            .iter()
            .filter(|w| w.text().contains('/'))
            .copied()
            .collect(),
    })
}

/// Splits a call's arguments; `takes` are the options whose value is the next word.
pub(super) fn split<'a>(arguments: &'a [Word], takes: &[String]) -> Split<'a> {
    let mut split = Split::default();
    let mut rest = arguments;
    while let Some((word, after)) = rest.split_first() {
        rest = after;
        let text = word.text();
        if text == "--" {
            split.operands.extend(rest);
            return split;
        }
        split.unsure |= word.may_be_option();
        let is_option = text.len() > 1 && text.starts_with('-');
        if !is_option {
            split.operands.push(word);
            continue;
        }
        split.unsure |= word.dynamic.is_some();
        split.options.push(text);
        let value = takes.iter().find(|t| {
            if t.starts_with("--") {
                t.as_str() == text
            } else if t.len() == 2 && !text.starts_with("--") {
                text.ends_with(t.get(1..).unwrap_or_default())
            } else {
                t.as_str() == text
            }
        });
        if value.is_some()
            && let Some((value, after)) = rest.split_first()
        {
            split.values.push((text, value));
            rest = after;
        }
    }
    split
}
