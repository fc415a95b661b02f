//! Completions for a shell: a few lines that ask this program at each press of Tab, and the words
//! that only this computer knows. What the command line knows by itself is clap's.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::CommandFactory as _;
use clap_complete::CompleteEnv;
use clap_complete::engine::{ArgValueCandidates, ArgValueCompleter, CompletionCandidate};
use clap_complete::env::Shells;
use serde::Deserialize;
use serde_json::{Value, json};

use super::args::{Args, Shell};
use super::failure::{Exit, Failure};
use super::out::Out;
use super::{Ending, ask, help, hub};
use crate::config::{Paths, load};
use crate::session::{OpenAsk, Summary};
use crate::text::{cut, escape};

/// Set to a shell's name, this program answers what could come next instead of running.
const ASKED: &str = "LEMBAS_COMPLETE";

/// The most words of one kind that are offered; the newest come first, the rest is not offered.
const MOST: usize = 200;

/// `lembas completions SHELL`. A shell that reads it at its start costs one start of this program
/// and always has the script that this version understands.
pub(super) fn script(out: Out, shell: Shell) -> Ending {
    let (shell, install) = match shell {
        Shell::Bash => (
            "bash",
            "echo 'source <(lembas completions bash)' >> ~/.bashrc",
        ),
        Shell::Zsh => (
            "zsh",
            "echo 'source <(lembas completions zsh)' >> ~/.zshrc      (after compinit)",
        ),
        Shell::Fish => (
            "fish",
            "echo 'lembas completions fish | source' > ~/.config/fish/completions/lembas.fish",
        ),
    };
    let mut made = format!("# Install:  {install}\n").into_bytes();
    if let Some(completer) = Shells::builtins().completer(shell) {
        completer
            .write_registration(ASKED, "lembas", "lembas", &program(), &mut made)
            .map_err(anyhow::Error::from)?;
    }
    out.bytes(&made);
    Ok(Exit::Well)
}

/// How a shell finds this program again: by its name where it was found so.
fn program() -> String {
    let typed = std::env::args_os().next().unwrap_or_default();
    match Path::new(&typed).components().count() {
        0 | 1 => "lembas".to_owned(),
        _ => std::env::current_exe().map_or_else(
            |_| "lembas".to_owned(),
            |path| path.to_string_lossy().into_owned(),
        ),
    }
}

/// Answers a shell, when it is one that asks. Before anything else of the program: it must not
/// have threads yet, and must not have written.
pub(super) fn answer(typed: &[OsString]) -> Result<bool, Failure> {
    let here = std::env::current_dir().ok();
    CompleteEnv::with_factory(Args::command)
        .var(ASKED)
        .try_complete(typed.iter().cloned(), here.as_deref())
        .map_err(|_| {
            Failure::new(
                Exit::Usage,
                "usage",
                format!("{ASKED} names no shell whose completions are known"),
                format!("unset {ASKED}"),
            )
        })
}

/// Nothing where it cannot be asked: a completion is no place for an error.
fn paths() -> Option<Paths> {
    // The words of the line that is being written come as arguments; a folder among them counts.
    let typed: Vec<OsString> = std::env::args_os().collect();
    let data = typed.iter().enumerate().find_map(|(at, word)| {
        let word = word.to_str()?;
        match word.strip_prefix("--data") {
            Some("") => typed.get(at + 1).map(OsString::as_os_str),
            Some(rest) => rest.strip_prefix('=').map(OsStr::new),
            None => None,
        }
    });
    super::paths(data.map(Path::new)).ok()
}

fn candidates(found: impl IntoIterator<Item = (String, String)>) -> Vec<CompletionCandidate> {
    let candidate = |(word, about): (String, String)| {
        let about = cut::one_line(&escape::visible_line(&about), 60);
        CompletionCandidate::new(escape::visible_line(&word)).help(Some(about.into()))
    };
    found.into_iter().take(MOST).map(candidate).collect()
}

/// The first letters of an id, as the lists show it.
fn beginning(id: &str) -> String {
    cut::prefix(id, 6).to_owned()
}

#[derive(Deserialize)]
struct Asks {
    asks: Vec<OpenAsk>,
}

pub(super) fn asks() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let asked = paths().map(|paths| ask::or_kept(&paths, "asks", &json!({})));
        let Some(Ok(Asks { asks })) = asked else {
            return Vec::new();
        };
        let row = |one: OpenAsk| (beginning(one.body.ask.as_str()), one.body.command);
        candidates(asks.into_iter().map(row))
    })
}

#[derive(Deserialize)]
struct Sessions {
    sessions: Vec<Summary>,
}

pub(super) fn chats() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let params = json!({ "limit": MOST });
        let asked = paths().map(|paths| ask::or_kept(&paths, "sessions", &params));
        let Some(Ok(Sessions { sessions })) = asked else {
            return Vec::new();
        };
        let row = |one: Summary| (beginning(one.id.as_str()), one.title.unwrap_or_default());
        candidates(sessions.into_iter().map(row))
    })
}

#[derive(Deserialize)]
struct Rules {
    rules: Vec<Rule>,
}

#[derive(Deserialize)]
struct Rule {
    id: String,
    words: String,
}

pub(super) fn rules() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let asked = paths().map(|paths| ask::or_kept(&paths, "rules", &json!({})));
        let Some(Ok(Rules { rules })) = asked else {
            return Vec::new();
        };
        candidates(rules.into_iter().map(|one| (beginning(&one.id), one.words)))
    })
}

#[derive(Deserialize)]
struct Pending {
    pending: Vec<Refused>,
}

#[derive(Deserialize)]
struct Refused {
    number: u64,
    command: String,
}

pub(super) fn pending() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let asked = paths().map(|paths| ask::or_kept(&paths, "pending", &json!({})));
        let Some(Ok(Pending { pending })) = asked else {
            return Vec::new();
        };
        let row = |one: Refused| (one.number.to_string(), one.command);
        candidates(pending.into_iter().map(row))
    })
}

/// The shared folders, with the tilde unless a path from the root has been begun.
pub(super) fn roots() -> ArgValueCompleter {
    ArgValueCompleter::new(|begun: &OsStr| {
        let Some(paths) = paths() else {
            return Vec::new();
        };
        let Ok(config) = load(&paths.config_file(), &paths.home) else {
            return Vec::new();
        };
        let begun = begun.to_string_lossy();
        let row = |root: &std::path::PathBuf| match begun.starts_with('/') {
            true => root.display().to_string(),
            false => paths.show(root),
        };
        let shown = config.remote.roots.iter().map(row);
        let fits = shown.filter(|root| root.starts_with(begun.as_ref()));
        candidates(fits.map(|root| (root, String::new())))
    })
}

/// Names that the hub of this computer knows; none where no hub runs.
fn of_hub(method: &'static str, list: &'static str, about: &'static str) -> ArgValueCandidates {
    ArgValueCandidates::new(move || {
        let answer = paths().and_then(|paths| hub::if_running(&paths, method));
        let all = answer
            .as_ref()
            .and_then(|answer| answer.get(list)?.as_array());
        let text = |one: &Value, key: &str| one.get(key).and_then(Value::as_str).map(str::to_owned);
        candidates(
            all.into_iter()
                .flatten()
                .filter_map(|one| Some((text(one, "name")?, text(one, about).unwrap_or_default()))),
        )
    })
}

pub(super) fn models() -> ArgValueCandidates {
    of_hub(hub::MODELS, "models", "url")
}

pub(super) fn users() -> ArgValueCandidates {
    of_hub(hub::USERS, "users", "")
}

/// Words of a closed set that the command line takes as text, to refuse others in its own words.
pub(super) fn words(words: &'static [&'static str]) -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        candidates(words.iter().map(|word| ((*word).to_owned(), String::new())))
    })
}

pub(super) fn topics() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let command = Args::command();
        let about = |one: &clap::Command| one.get_about().map(ToString::to_string);
        let commands: Vec<(String, String)> = command
            .get_subcommands()
            .filter(|one| !one.is_hide_set())
            .map(|one| (one.get_name().to_owned(), about(one).unwrap_or_default()))
            .collect();
        let topics = help::TOPICS.map(|topic| (topic.to_owned(), String::new()));
        candidates(commands.into_iter().chain(topics))
    })
}
