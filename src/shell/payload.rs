//! What a command would run in turn: wrapped commands, text for a shell, code of other languages.

use std::collections::HashSet;

use super::word::{HOLE, Word};
use super::wrappers::{Command, base, wrapper};

/// Something that a command runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inner {
    /// Words that are a command as they stand. `open_ended`: more arguments follow at run time.
    Words { words: Vec<Word>, open_ended: bool },
    /// Text that a shell reads.
    Text(String),
    /// A command that is only made at run time.
    Unknown,
    /// A value that a program may give to a shell: for the wide reader only.
    Command(String),
    /// Text of another language, in which strings may be commands: for the wide reader only.
    Code(String),
}

/// What a command runs in turn, and whether it does nothing else (it can then be judged by that).
pub fn inner(words: &[Word]) -> (Vec<Inner>, bool) {
    let Some((program, arguments)) = words.split_first() else {
        return (Vec::new(), false);
    };
    let Some(name) = program.literal() else {
        return (Vec::new(), false);
    };
    match base(name) {
        "sh" | "bash" | "dash" | "zsh" | "ksh" | "ash" | "mksh" | "fish" | "rbash" => {
            shell(arguments)
        }
        "eval" => text(arguments),
        "trap" => match arguments.first() {
            Some(first) if first.text() != "-" && !first.text().starts_with('-') => {
                text(std::slice::from_ref(first)).opaque()
            }
            Some(first) if first.text() == "--" => {
                text(arguments.get(1..2).unwrap_or_default()).opaque()
            }
            _ => (Vec::new(), false),
        },
        "alias" => (
            arguments
                .iter()
                .filter_map(|w| w.text().split_once('='))
                .map(|(_, value)| Inner::Command(value.to_owned()))
                .collect(),
            false,
        ),
        "find" => find(arguments),
        "fd" | "fdfind" => after_option(arguments, &["-x", "-X", "--exec", "--exec-batch"]),
        "su" | "script" | "runuser" => option_text(arguments, 'c', "command"),
        "flock" if has_cluster(arguments, 'c') => option_text(arguments, 'c', "command"),
        "ssh" => ssh(arguments),
        "env" => env(arguments),
        "xargs" if arguments.is_empty() => (Vec::new(), false),
        name => match wrapper(name) {
            Some(found) => match found.command(arguments) {
                Command::Nothing => (Vec::new(), false),
                Command::Unknown => (vec![Inner::Unknown], false),
                Command::At(rest) if found.joined => text(rest).opaque(),
                Command::At(rest) => {
                    let skip = if found.assigns { assignments(rest) } else { 0 };
                    let words = rest.get(skip..).unwrap_or_default().to_vec();
                    if words.is_empty() {
                        return (Vec::new(), false);
                    }
                    let inner = Inner::Words {
                        words,
                        open_ended: found.open_ended,
                    };
                    (vec![inner], found.transparent)
                }
            },
            None => (code(name, arguments), false),
        },
    }
}

trait Opaque {
    fn opaque(self) -> Self;
}

impl Opaque for (Vec<Inner>, bool) {
    fn opaque(self) -> Self {
        (self.0, false)
    }
}

/// Words joined with blanks and read as a script.
fn text(words: &[Word]) -> (Vec<Inner>, bool) {
    if words.is_empty() {
        return (Vec::new(), false);
    }
    let joined = words.iter().map(Word::text).collect::<Vec<_>>().join(" ");
    if words.iter().any(|w| w.literal().is_none()) || joined.contains(HOLE) {
        return (vec![Inner::Unknown, Inner::Command(joined)], false);
    }
    (vec![Inner::Text(joined)], true)
}

/// `sh -c TEXT …`: options may stand in a cluster with `c`. The other options make it opaque.
fn shell(arguments: &[Word]) -> (Vec<Inner>, bool) {
    let mut plain = true;
    let mut rest = arguments;
    while let Some((word, after)) = rest.split_first() {
        let option = word.text();
        if !(option.starts_with('-') || option.starts_with('+')) || option.len() < 2 {
            break;
        }
        rest = after;
        if !option.starts_with("--") && option.contains('c') {
            let (inner, whole) = text(rest.get(..1).unwrap_or_default());
            return (inner, whole && plain && option == "-c");
        }
        plain = false;
        if matches!(
            option,
            "-o" | "+o" | "-O" | "+O" | "--rcfile" | "--init-file"
        ) {
            rest = rest.split_first().map_or(&[][..], |(_, r)| r);
        }
    }
    (Vec::new(), false)
}

/// `env [options] [NAME=value]… command`, and `-S` with a command as one string.
fn env(arguments: &[Word]) -> (Vec<Inner>, bool) {
    for (at, word) in arguments.iter().enumerate() {
        let option = word.text();
        if !option.starts_with('-') {
            break;
        }
        let value = if let Some(value) = option.strip_prefix("--split-string=") {
            Some((value.to_owned(), at + 1))
        } else if let Some(value) = option.strip_prefix("-S").filter(|v| !v.is_empty()) {
            Some((value.to_owned(), at + 1))
        } else if matches!(option, "-S" | "--split-string" | "-vS" | "-iS") {
            arguments.get(at + 1).map(|v| (v.text().to_owned(), at + 2))
        } else {
            None
        };
        if let Some((value, next)) = value {
            let rest = arguments.get(next..).unwrap_or_default();
            let words = std::iter::once(Word::plain(value)).chain(rest.iter().cloned());
            return text(&words.collect::<Vec<_>>()).opaque();
        }
    }
    match wrapper("env").map(|w| w.command(arguments)) {
        Some(Command::At(rest)) => match rest.get(assignments(rest)..).unwrap_or_default() {
            [] => (Vec::new(), false),
            words => (
                vec![Inner::Words {
                    words: words.to_vec(),
                    open_ended: false,
                }],
                true,
            ),
        },
        Some(Command::Unknown) => (vec![Inner::Unknown], false),
        _ => (Vec::new(), false),
    }
}

/// How many words at the front are assignments.
fn assignments(words: &[Word]) -> usize {
    words
        .iter()
        .take_while(|w| w.text().contains('=') && !w.text().starts_with('='))
        .count()
}

/// Every `-exec`, `-execdir`, `-ok`, `-okdir` up to `;` or `+`.
fn find(arguments: &[Word]) -> (Vec<Inner>, bool) {
    let mut found = Vec::new();
    let mut rest = arguments;
    while let Some((word, after)) = rest.split_first() {
        rest = after;
        if !matches!(word.text(), "-exec" | "-execdir" | "-ok" | "-okdir") {
            continue;
        }
        let end = rest
            .iter()
            .position(|w| w.text() == ";" || w.text() == "+")
            .unwrap_or(rest.len());
        let words = rest.get(..end).unwrap_or_default().to_vec();
        rest = rest.get(end..).unwrap_or_default();
        if words.is_empty() {
            found.push(Inner::Unknown);
        } else {
            found.push(Inner::Words {
                words,
                open_ended: true,
            });
        }
    }
    (found, false)
}

/// What stands behind the first of these options is a command.
fn after_option(arguments: &[Word], options: &[&str]) -> (Vec<Inner>, bool) {
    let at = arguments.iter().position(|w| {
        options.contains(&w.text().split('=').next().unwrap_or_default())
            || (w.text().starts_with('-')
                && !w.text().starts_with("--")
                && w.text().to_ascii_lowercase().ends_with('x'))
    });
    let words = at
        .and_then(|at| arguments.get(at + 1..))
        .unwrap_or_default()
        .to_vec();
    if words.is_empty() {
        return (Vec::new(), false);
    }
    (
        vec![Inner::Words {
            words,
            open_ended: true,
        }],
        false,
    )
}

fn has_cluster(arguments: &[Word], letter: char) -> bool {
    arguments.iter().any(|w| {
        let t = w.text();
        t.starts_with('-') && !t.starts_with("--") && t.contains(letter) || t == "--command"
    })
}

/// The text behind `-c` (also in a cluster) or `--command[=]`.
fn option_text(arguments: &[Word], letter: char, long: &str) -> (Vec<Inner>, bool) {
    for (at, word) in arguments.iter().enumerate() {
        let option = word.text();
        if let Some(value) = option.strip_prefix("--").and_then(|o| o.strip_prefix(long)) {
            return match value.strip_prefix('=') {
                Some(value) => text(&[Word::plain(value)]).opaque(),
                None => text(arguments.get(at + 1..at + 2).unwrap_or_default()).opaque(),
            };
        }
        if option.starts_with('-') && !option.starts_with("--") && option.ends_with(letter) {
            return text(arguments.get(at + 1..at + 2).unwrap_or_default()).opaque();
        }
    }
    (Vec::new(), false)
}

/// `ssh [options] host command…`, and options that start a program here.
fn ssh(arguments: &[Word]) -> (Vec<Inner>, bool) {
    const TAKES: &str = "BbcDEeFIiJLlmOopQRSWw";
    let mut found = Vec::new();
    let mut rest = arguments;
    while let Some((word, after)) = rest.split_first() {
        let option = word.text();
        if !option.starts_with('-') {
            break;
        }
        rest = after;
        let mut letters = option.chars().skip(1);
        let Some(letter) = letters.find(|c| TAKES.contains(*c)) else {
            continue;
        };
        let joined: String = letters.collect();
        let value = if joined.is_empty() {
            let value = rest.first().map(|w| w.text().to_owned());
            rest = rest.split_first().map_or(&[][..], |(_, r)| r);
            value
        } else {
            Some(joined)
        };
        if let (Some(value), 'o') = (value, letter)
            && let Some((_, command)) = value.split_once(['=', ' '])
        {
            found.push(Inner::Command(command.to_owned()));
        }
    }
    let command = rest.get(1..).unwrap_or_default();
    if !command.is_empty() {
        let joined: Vec<_> = command.iter().map(Word::text).collect();
        found.push(Inner::Command(joined.join(" ")));
    }
    (found, false)
}

/// What a program of another language, or one with options that start programs, may run.
fn code(name: &str, arguments: &[Word]) -> Vec<Inner> {
    let texts = || arguments.iter().map(Word::text);
    let mut found: Vec<String> = Vec::new();
    let mut make: fn(String) -> Inner = Inner::Command;
    match name {
        "git" => {
            for (at, text) in texts().enumerate() {
                let next = || arguments.get(at + 1).map(|w| w.text().to_owned());
                match text {
                    "-c" | "--upload-pack" | "--receive-pack" | "--exec" | "-x" | "-u"
                    | "--config" => found.extend(next()),
                    _ if text.starts_with("ext::") => {
                        found.push(text.trim_start_matches("ext::").replace("% ", " "));
                    }
                    _ if text.starts_with("-O") || text.starts_with("--") => {
                        found.extend(value_of(text));
                    }
                    _ => {}
                }
            }
            found = found
                .into_iter()
                .map(|v| v.split_once('=').map_or(v.clone(), |(_, v)| v.to_owned()))
                .map(|v| v.trim_start_matches('!').to_owned())
                .collect();
        }
        "tar" | "bsdtar" | "sort" | "rg" | "ag" | "ack" | "man" | "rsync" | "make" | "gmake"
        | "scp" | "sftp" | "zip" | "unzip" => {
            for (at, text) in texts().enumerate() {
                if text.starts_with("--") {
                    found.extend(value_of(text));
                }
                if matches!(
                    text,
                    "-I" | "-F"
                        | "-P"
                        | "-H"
                        | "-e"
                        | "-S"
                        | "-o"
                        | "-TT"
                        | "--to-command"
                        | "--use-compress-program"
                        | "--checkpoint-action"
                        | "--rsh-command"
                        | "--info-script"
                        | "--compress-program"
                        | "--pre"
                        | "--hostname-bin"
                        | "--pager"
                        | "--rsh"
                        | "--eval"
                ) {
                    found.extend(arguments.get(at + 1).map(|w| w.text().to_owned()));
                }
            }
            if matches!(name, "rg" | "ag" | "ack") {
                // `-e` of these is what they look for.
                let pairs = texts().zip(texts().skip(1));
                let sought: HashSet<&str> =
                    pairs.filter(|(o, _)| *o == "-e").map(|(_, v)| v).collect();
                found.retain(|f| !sought.contains(f.as_str()));
            }
        }
        _ if is_code(name) => {
            make = Inner::Code;
            found.extend(texts().map(str::to_owned));
            if name.ends_with("awk") {
                let values = texts().filter_map(|t| t.split_once('='));
                let values = values.map(|(_, v)| format!("'{v}'"));
                found.extend(values.collect::<Vec<_>>());
            }
        }
        _ => {}
    }
    found.into_iter().map(make).collect()
}

/// Whether a program's arguments or input are code in which strings may be commands.
pub(super) fn is_code(name: &str) -> bool {
    matches!(
        base(name),
        "awk"
            | "gawk"
            | "mawk"
            | "nawk"
            | "perl"
            | "ruby"
            | "node"
            | "nodejs"
            | "deno"
            | "bun"
            | "php"
            | "lua"
            | "tclsh"
            | "osascript"
            | "pwsh"
            | "powershell"
            | "vim"
            | "vi"
            | "nvim"
            | "ex"
            | "view"
            | "ed"
            | "emacs"
            | "sqlite3"
            | "psql"
            | "mysql"
            | "gdb"
            | "less"
            | "more"
            | "m4"
            | "sed"
            | "expect"
    ) || base(name).starts_with("python")
        || base(name).starts_with("pypy")
}

/// What stands behind the first `=`.
fn value_of(option: &str) -> Option<String> {
    if let Some(value) = option.strip_prefix("-O") {
        return Some(value.to_owned());
    }
    let (_, value) = option.split_once('=')?;
    // `--checkpoint-action=exec=…`
    Some(value.strip_prefix("exec=").unwrap_or(value).to_owned())
}
