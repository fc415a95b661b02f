//! Completions for a shell: what the command line knows by itself, and the words that only this
//! computer knows, which the script asks `lembas words` for.

use std::path::Path;

use clap::CommandFactory as _;
use clap_complete::Shell;
use serde::Deserialize;
use serde_json::json;

use super::args::{Args, Words};
use super::failure::Exit;
use super::out::Out;
use super::{Ending, ask};
use crate::config::{Paths, load};
use crate::session::OpenAsk;
use crate::text::{cut, escape};

/// After which words which kind of word comes.
const PLACES: [(&str, &str); 4] = [
    ("answer", "asks"),
    ("roots remove", "roots"),
    ("rules remove", "rules"),
    ("allow --pending", "pending"),
];

pub(super) fn script(out: Out, shell: Shell) -> Ending {
    let mut made = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "lembas", &mut made);
    let mut made = String::from_utf8_lossy(&made).into_owned();
    match shell {
        Shell::Bash => made.push_str(&bash()),
        Shell::Zsh => made = zsh(&made),
        Shell::Fish => made.push_str(&fish()),
        _ => {}
    }
    out.bytes(made.as_bytes());
    Ok(Exit::Well)
}

fn bash() -> String {
    let cases: String = PLACES
        .iter()
        .map(|(behind, kind)| format!("        *\"{behind}\") kind={kind} ;;\n"))
        .collect();
    format!(
        "\n_lembas_words() {{\n    local line=\"${{COMP_WORDS[*]:1:COMP_CWORD-1}}\" kind=\"\" IFS=$'\\n'\n    \
         case \"$line\" in\n{cases}    esac\n    if [[ -n $kind ]]; then\n        \
         COMPREPLY=($(compgen -W \"$(\"$1\" words $kind 2>/dev/null | cut -f1)\" -- \"$2\"))\n    \
         else\n        unset IFS\n        _lembas \"$@\"\n    fi\n}}\n\
         complete -F _lembas_words -o bashdefault -o default lembas\n"
    )
}

/// The function that was made becomes the one that ours falls back to.
fn zsh(made: &str) -> String {
    let cases: String = PLACES
        .iter()
        .map(|(behind, kind)| format!("        *\"{behind}\") kind={kind} ;;\n"))
        .collect();
    let ours = format!(
        "_lembas() {{\n    local line=\"${{words[2,CURRENT-1]}}\" kind=\"\"\n    \
         case \"$line\" in\n{cases}    esac\n    if [[ -n $kind ]]; then\n        \
         local -a found=(\"${{(@f)$($words[1] words $kind 2>/dev/null | cut -f1)}}\")\n        \
         compadd -a found\n    else\n        _lembas_plain \"$@\"\n    fi\n}}\n\n"
    );
    let made = made.replacen("_lembas() {", "_lembas_plain() {", 1);
    match made.rfind("if [ \"$funcstack[1]\"") {
        Some(at) => {
            let (before, behind) = made.split_at(at);
            format!("{before}{ours}{behind}")
        }
        None => format!("{made}{ours}"),
    }
}

fn fish() -> String {
    let mut text = "\n".to_owned();
    for (behind, kind) in PLACES {
        let seen: Vec<String> = behind
            .split(' ')
            .filter(|word| !word.starts_with('-'))
            .map(|word| format!("__fish_seen_subcommand_from {word}"))
            .collect();
        let option = behind
            .split_once(" --")
            .map(|(_, option)| format!(" -l {option} -x"))
            .unwrap_or_default();
        text.push_str(&format!(
            "complete -c lembas -n \"{}\"{option} -f -a \"(lembas words {kind})\"\n",
            seen.join("; and ")
        ));
    }
    text
}

#[derive(Deserialize)]
struct Asks {
    asks: Vec<OpenAsk>,
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

#[derive(Deserialize)]
struct Pending {
    pending: Vec<Refused>,
}

#[derive(Deserialize)]
struct Refused {
    number: u64,
    command: String,
}

/// `lembas words KIND`: a word and what it means a line. Nothing where it cannot be asked: a
/// completion is no place for an error.
pub(super) fn words(out: Out, paths: &Paths, kind: Words) -> Ending {
    let none = json!({});
    let found: Vec<(String, String)> = match kind {
        Words::Asks => ask::or_kept(paths, "asks", &none).map_or_else(
            |_| Vec::new(),
            |Asks { asks }| {
                let word = |ask: &OpenAsk| cut::prefix(ask.body.ask.as_str(), 6).to_owned();
                asks.iter()
                    .map(|ask| (word(ask), ask.body.command.clone()))
                    .collect()
            },
        ),
        Words::Rules => ask::or_kept(paths, "rules", &none).map_or_else(
            |_| Vec::new(),
            |Rules { rules }| {
                let word = |rule: &Rule| cut::prefix(&rule.id, 6).to_owned();
                rules
                    .iter()
                    .map(|rule| (word(rule), rule.words.clone()))
                    .collect()
            },
        ),
        Words::Pending => ask::or_kept(paths, "pending", &none).map_or_else(
            |_| Vec::new(),
            |Pending { pending }| {
                let row = |one: Refused| (one.number.to_string(), one.command);
                pending.into_iter().map(row).collect()
            },
        ),
        Words::Roots => load(&paths.config_file(), &paths.home).map_or_else(
            |_| Vec::new(),
            |config| {
                let row = |root: &Path| (paths.show(root), String::new());
                config.remote.roots.iter().map(|root| row(root)).collect()
            },
        ),
    };
    for (word, about) in found {
        let about = cut::one_line(&escape::visible_line(&about), 60);
        out.line(format!("{}\t{about}", escape::visible_line(&word)));
    }
    Ok(Exit::Well)
}
