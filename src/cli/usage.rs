//! Wrong use, in three lines: what clap found, in our words.

use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::failure::{Exit, Failure};
use crate::text::nearest::nearest;
use crate::text::{escape, words};

/// What is wrong with the words typed. `words` are the arguments behind the program's name.
pub(super) fn failure(error: &clap::Error, words: &[String], command: &clap::Command) -> Failure {
    let place = place(words, command);
    let help = format!("{} --help", place.name);
    let what = |kind| context(error, kind);
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let typed = what(ContextKind::InvalidSubcommand).unwrap_or_default();
            let known: Vec<&str> = place
                .command
                .get_subcommands()
                .filter(|c| !c.is_hide_set())
                .map(clap::Command::get_name)
                .collect();
            let fix = nearest(&typed, known.iter().copied())
                .map_or(help, |near| format!("{} {near}", place.name));
            wrong(format!("{} has no command {typed}", place.name), fix)
        }
        ErrorKind::UnknownArgument => {
            let typed = what(ContextKind::InvalidArg).unwrap_or_default();
            // Only one that was meant: a guess from afar is no next step.
            let suggested = what(ContextKind::SuggestedArg)
                .filter(|near| nearest(&typed, [near.as_str()]).is_some());
            let fix = suggested.map_or(help, |near| format!("{} {near}", place.name));
            if place.name.ends_with(" monitor") && !typed.starts_with('-') {
                let at = words.iter().position(|word| *word == typed).unwrap_or(1);
                let own = words.get(..at).unwrap_or_default();
                let command = words.get(at..).unwrap_or_default();
                let line: Vec<String> = std::iter::once("lembas".to_owned())
                    .chain(own.iter().map(|word| words::quoted(word)))
                    .chain(std::iter::once("--".to_owned()))
                    .chain(command.iter().map(|word| words::quoted(word)))
                    .collect();
                wrong(
                    "lembas monitor takes the command behind --".to_owned(),
                    line.join(" "),
                )
            } else if typed.starts_with('-') {
                wrong(format!("{} does not know {typed}", place.name), fix)
            } else {
                wrong(
                    format!("{} does not know what to do with {typed}", place.name),
                    fix,
                )
            }
        }
        ErrorKind::InvalidValue => {
            let arg = what(ContextKind::InvalidArg).unwrap_or_default();
            let arg = bare(&arg);
            let value = what(ContextKind::InvalidValue).unwrap_or_default();
            let valid = error
                .get(ContextKind::ValidValue)
                .map(many)
                .unwrap_or_default();
            if value.is_empty() {
                return wrong(format!("{arg} needs a value"), help);
            }
            let near = what(ContextKind::SuggestedValue)
                .or_else(|| nearest(&value, valid.iter().map(String::as_str)).map(str::to_owned));
            let fix = near.map_or(help, |near| replaced(words, &value, &near));
            wrong(not_possible(&place, arg, &value), fix)
                .why(format!("it can be {}", words::list(&valid, "or")))
        }
        ErrorKind::ValueValidation => {
            let arg = what(ContextKind::InvalidArg).unwrap_or_default();
            let value = what(ContextKind::InvalidValue).unwrap_or_default();
            let why = std::error::Error::source(error).map(ToString::to_string);
            let text = match value.is_empty() {
                true => format!("{} is empty", bare(&arg)),
                false => not_possible(&place, bare(&arg), &value),
            };
            let failure = wrong(text, help);
            match why {
                Some(why) => failure.why(why),
                None => failure,
            }
        }
        ErrorKind::TooManyValues => {
            let arg = what(ContextKind::InvalidArg).unwrap_or_default();
            wrong(format!("{} takes no value", bare(&arg)), help)
        }
        ErrorKind::MissingRequiredArgument => {
            let missing = error
                .get(ContextKind::InvalidArg)
                .map(many)
                .unwrap_or_default();
            let missing: Vec<&str> = missing.iter().map(|arg| bare(arg)).collect();
            wrong(
                format!("{} needs {}", place.name, words::list(&missing, "and")),
                help,
            )
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
            let known: Vec<&str> = place
                .command
                .get_subcommands()
                .map(clap::Command::get_name)
                .collect();
            wrong(
                format!(
                    "{} needs a command: {}",
                    place.name,
                    words::list(&known, "or")
                ),
                help,
            )
        }
        ErrorKind::ArgumentConflict => {
            let arg = what(ContextKind::InvalidArg).unwrap_or_default();
            match error.get(ContextKind::PriorArg).map(many) {
                Some(other) if other.iter().any(|o| *o != arg) => wrong(
                    format!(
                        "{} and {} do not go together",
                        arg,
                        words::list(&other, "and")
                    ),
                    help,
                ),
                _ => wrong(format!("{arg} is given more than once"), help),
            }
        }
        _ => {
            let text = error.to_string();
            let first = text.lines().next().unwrap_or_default();
            let first = first.strip_prefix("error: ").unwrap_or(first);
            wrong(escape::visible_line(first), help)
        }
    }
}

fn not_possible(place: &Place<'_>, arg: &str, value: &str) -> String {
    if arg.starts_with('-') {
        format!("{value} is not possible for {arg}")
    } else {
        format!("{value} is not possible for {}", place.name)
    }
}

fn wrong(text: String, fix: String) -> Failure {
    Failure::new(Exit::Usage, "usage", text, fix)
}

struct Place<'a> {
    name: String,
    command: &'a clap::Command,
}

/// The command that was being typed: the known words at the beginning.
fn place<'a>(words: &[String], root: &'a clap::Command) -> Place<'a> {
    let mut at = Place {
        name: root.get_name().to_owned(),
        command: root,
    };
    for word in words.iter().take_while(|word| *word != "--") {
        if let Some(next) = at.command.find_subcommand(word) {
            at.name = format!("{} {}", at.name, next.get_name());
            at.command = next;
        }
    }
    at
}

fn context(error: &clap::Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(escape::visible_line(text)),
        ContextValue::Strings(all) => all.first().map(|text| escape::visible_line(text)),
        _ => None,
    }
}

fn many(value: &ContextValue) -> Vec<String> {
    match value {
        ContextValue::String(text) => vec![text.clone()],
        ContextValue::Strings(all) => all.clone(),
        _ => Vec::new(),
    }
}

/// `<URL>` and `--listen <ADDR:PORT>` as a person says them.
fn bare(arg: &str) -> &str {
    let name = arg.split(' ').next().unwrap_or(arg);
    name.trim_start_matches(['<', '['])
        .trim_end_matches("...")
        .trim_end_matches(['>', ']'])
}

/// The words again, with the wrong one made right.
fn replaced(words: &[String], wrong: &str, right: &str) -> String {
    let mut line = "lembas".to_owned();
    for word in words {
        line.push(' ');
        let word = if word == wrong { right } else { word };
        line.push_str(&escape::visible_line(&words::quoted(word)));
    }
    line
}

#[cfg(test)]
mod tests;
