//! A command's parts, each with its effect and what stands against it. No verdict is made here.

mod places;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

pub(super) use self::places::{Ground, Looks};
use self::places::{Places, literal, meant, read_word, write_word};
use super::rule::{Wanted, wanted};
use super::{git, paths, programs, reader};
use crate::shell::{Assignment, Doubt, DoubtKind, Invocation, Redirect, Script, Word, inner};
use crate::spec::permission::{Access, Operands, permission};

/// What a part does at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Effect {
    Nothing,
    Read,
    /// Runs a program or changes files; the box can hold it.
    Boxed,
    /// Can do its work only outside of the box.
    Open,
}

/// One part: an invocation, a redirection, an assignment, a doubt.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) segment: String,
    pub(super) effect: Effect,
    /// The program, for sentences.
    pub(super) program: String,
    pub(super) read_outside: Vec<PathBuf>,
    pub(super) write_outside: Option<PathBuf>,
    /// Reads what only the box can keep inside.
    pub(super) sealed: bool,
    /// A setting of the repository that starts a program.
    pub(super) starts: Option<String>,
    /// A git command that reads: it needs the box even where nothing is set.
    pub(super) repository: bool,
    pub(super) git_writes: bool,
    pub(super) elevates: bool,
    pub(super) findings: Vec<Finding>,
    pub(super) doubt: Option<DoubtKind>,
    pub(super) wanted: Option<Wanted>,
}

/// What stands against a part by its paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    /// Under a protected entry that may not be written (or, with `read`, not even read).
    Protected {
        path: PathBuf,
        text: &'static str,
        read: bool,
    },
    Instructions {
        path: PathBuf,
    },
    Secret {
        path: PathBuf,
    },
    /// Prints environments or other processes.
    Environment,
}

impl Part {
    fn of(segment: &str, effect: Effect, program: &str) -> Self {
        Self {
            segment: segment.to_owned(),
            effect,
            program: program.to_owned(),
            read_outside: Vec::new(),
            write_outside: None,
            sealed: false,
            starts: None,
            repository: false,
            git_writes: false,
            elevates: false,
            findings: Vec::new(),
            doubt: None,
            wanted: None,
        }
    }

    fn raise(&mut self, effect: Effect) {
        self.effect = self.effect.max(effect);
    }
}

/// A doubt as a part.
pub(super) fn doubt(doubt: &Doubt) -> Part {
    let mut part = Part::of(&doubt.segment, Effect::Boxed, "it");
    part.doubt = Some(doubt.kind);
    part
}

/// All parts of a script.
pub(super) fn parts(script: &Script, ground: &Ground<'_>) -> Vec<Part> {
    let mut places = Places::of(ground);
    let mut found: Vec<Part> = script.doubts.iter().map(doubt).collect();
    let defined = script.defined.iter().map(String::as_str).collect();
    for invocation in &script.invocations {
        found.push(invoked(invocation, &defined, ground, &mut places));
    }
    for assignment in &script.assignments {
        found.extend(assigned(assignment));
    }
    for redirect in &script.redirects {
        found.extend(redirected(redirect, ground, &places));
    }
    if ground.overlooks() {
        found.push(doubt(&Doubt {
            kind: DoubtKind::Bound,
            segment: String::new(),
        }));
    }
    found
}

fn assigned(assignment: &Assignment) -> Option<Part> {
    grave(&assignment.name).then(|| {
        Part::of(
            &assignment.segment,
            Effect::Boxed,
            &format!("setting {}", assignment.name),
        )
    })
}

fn grave(name: &str) -> bool {
    let variables = &permission().defaults.variables;
    !variables.harmless.contains(name)
        && (variables.grave.contains(name)
            || variables.grave_starts.iter().any(|s| name.starts_with(s)))
}

fn redirected(redirect: &Redirect, ground: &Ground<'_>, places: &Places) -> Option<Part> {
    let nowhere = matches!(
        redirect.target.literal(),
        Some("/dev/null" | "/dev/stdout" | "/dev/stderr" | "/dev/stdin" | "/dev/tty")
    ) || redirect.target.literal().is_some_and(|t| {
        t.strip_prefix("/dev/fd/")
            .is_some_and(|n| n.parse::<u8>().is_ok())
    });
    if nowhere || redirect.target.dynamic == Some(crate::shell::Dynamic::Process) {
        return None;
    }
    let mut part = Part::of(&redirect.segment, Effect::Read, "a redirection");
    if redirect
        .target
        .literal()
        .is_some_and(|t| t.starts_with("/dev/tcp/") || t.starts_with("/dev/udp/"))
    {
        part.raise(Effect::Open);
        return Some(part);
    }
    if redirect.writes {
        write_word(&redirect.target, &mut part, ground, places);
        if let Some(path) = meant(&redirect.target, ground, places).first() {
            part.wanted = Some(Wanted::File(ground.real(path)));
        }
    } else {
        read_word(&redirect.target, &mut part, ground, places);
    }
    Some(part)
}

/// One invocation.
fn invoked(
    invocation: &Invocation,
    defined: &HashSet<&str>,
    ground: &Ground<'_>,
    places: &mut Places,
) -> Part {
    let program = invocation.program().unwrap_or_default();
    let name = known_name(program, defined, ground);
    let shown = if program.is_empty() {
        invocation.words.first().map_or("it", |w| &*w.raw)
    } else {
        program
    };
    let mut part = Part::of(&invocation.segment, Effect::Boxed, shown);
    // With any other variable set, whatever it is, it is no read.
    let innocent = invocation.assignments.iter().all(|a| {
        permission().defaults.variables.harmless.contains(&a.name)
            || !grave(&a.name) && name.is_some_and(declares)
    });
    credentials(invocation, &mut part, ground, places);
    let base = program.rsplit('/').next().unwrap_or(program);
    if permission().options.elevating.contains(base) {
        part.elevates = true;
        part.raise(Effect::Open);
        return part;
    }
    if invocation.transparent && innocent && harmless_wrapper(invocation, name) {
        part.effect = Effect::Nothing;
        return part;
    }
    if let Some(name) = name
        && innocent
        && let Some(reads) = reader::reads(name, &invocation.words, invocation.open_ended)
    {
        looked(&reads, &mut part, invocation, ground, places);
        return part;
    }
    if name == Some("cd") || name == Some("pushd") {
        places.unknown = true;
    }
    ran(
        name.unwrap_or_default(),
        base,
        invocation,
        &mut part,
        ground,
        places,
    );
    part
}

fn declares(name: &str) -> bool {
    matches!(
        name,
        "declare" | "local" | "readonly" | "typeset" | "export"
    )
}

/// The name under which the tables know the program: a bare word that is no function or alias of
/// the text, or a path into a trusted folder.
fn known_name<'a>(
    program: &'a str,
    defined: &HashSet<&str>,
    ground: &Ground<'_>,
) -> Option<&'a str> {
    if program.is_empty() || defined.contains(program) {
        return None;
    }
    if !program.contains('/') {
        return Some(program);
    }
    let path = Path::new(program);
    let (folder, name) = (path.parent()?, path.file_name()?.to_str()?);
    let spelled = paths::spelled(folder);
    (folder.is_absolute()
        && ground.path.contains(&spelled)
        && !ground.overlooks()
        && ground
            .real(path)
            .starts_with(ground.real(&spelled).parent()?))
    .then_some(name)
}

/// A wrapper that changes nothing about what it wraps, options included.
fn harmless_wrapper(invocation: &Invocation, name: Option<&str>) -> bool {
    let Some(name) = name else { return false };
    let words = invocation.words.get(1..).unwrap_or_default();
    match name {
        "time" => !words
            .iter()
            .take_while(|w| w.text().starts_with('-'))
            .any(|w| w.text().contains('o') || w.text().contains('a')),
        "env" => words
            .iter()
            .take_while(|w| w.text().starts_with('-') || w.text().contains('='))
            .all(|w| match w.text().split_once('=') {
                Some((variable, _)) if !variable.starts_with('-') => {
                    permission().defaults.variables.harmless.contains(variable)
                }
                _ => {
                    !matches!(w.text(), "-C" | "--chdir" | "-S" | "-a")
                        && !w.text().starts_with("--chdir")
                }
            }),
        "xargs" => !words
            .iter()
            .take_while(|w| w.text().starts_with('-'))
            .any(|w| {
                w.text().starts_with("-a") || w.text().starts_with("--arg-file") || w.text() == "-o"
            }),
        _ => true,
    }
}

/// Words of any program that name what holds credentials.
fn credentials(invocation: &Invocation, part: &mut Part, ground: &Ground<'_>, places: &Places) {
    let mut seen = HashSet::new();
    let mut look = |word: &Word| {
        let text = word.text();
        let path = text.contains('/') || text.starts_with('.') || word.tilde;
        if !path && !word.raw.contains("$HOME") {
            return;
        }
        for path in meant(word, ground, places) {
            let real = ground.real(&path);
            let Some(hit) = paths::protected(&real, ground.home, ground.own) else {
                continue;
            };
            if hit.access == Access::All && !ground.released(&real) && seen.insert(real.clone()) {
                part.findings.push(Finding::Protected {
                    path: real,
                    text: hit.text,
                    read: true,
                });
            }
        }
    };
    for word in invocation.words.iter().skip(1) {
        look(word);
        if let Some((name, _)) = word.text().split_once('=') {
            look(&word.after(name.len() + 1));
        }
    }
}

/// A command that only reads.
fn looked(
    reads: &reader::Reads<'_>,
    part: &mut Part,
    invocation: &Invocation,
    ground: &Ground<'_>,
    places: &mut Places,
) {
    part.effect = Effect::Read;
    part.sealed = invocation.open_ended;
    part.repository = reads.repository;
    for word in &reads.paths {
        if reads.enters {
            // Only where a relative path is meant from: what is read there is judged by itself.
            continue;
        }
        read_word(word, part, ground, places);
    }
    for text in &reads.named {
        if text.starts_with(['/', '~']) || text.contains("..") {
            read_word(&Word::read(text), part, ground, places);
        }
    }
    if reads.enters {
        places.enter(reads.paths.first().copied(), ground);
    }
    if reads.repository {
        for at in &places.at {
            let folder = reads
                .paths
                .first()
                .and_then(|w| literal(w, ground))
                .map_or_else(|| at.clone(), |to| at.join(to));
            part.starts = part.starts.take().or_else(|| ground.starts(&folder));
        }
        part.sealed |= places.unknown;
        if places.unknown {
            // Which repository it is, is not told: only the box keeps its settings harmless.
            part.sealed = true;
        }
    }
}

/// A command that may do more than read.
fn ran(
    name: &str,
    base: &str,
    invocation: &Invocation,
    part: &mut Part,
    ground: &Ground<'_>,
    places: &Places,
) {
    part.wanted = wanted(invocation);
    let arguments = invocation.words.get(1..).unwrap_or_default();
    let first = arguments
        .iter()
        .map(Word::text)
        .find(|t| !t.starts_with('-'))
        .unwrap_or_default();
    if base == "git" {
        let subcommand = git::subcommand(arguments).map_or(first, |(name, _, _)| name);
        part.git_writes = permission().options.git_writes.contains(subcommand);
        if subcommand == "worktree" || git::subcommand(arguments).is_none() {
            part.raise(Effect::Boxed);
        }
        open_program("git", subcommand, part);
    } else {
        open_program(base, first, part);
    }
    if prints_environment(base, arguments) && inner(&invocation.words).0.is_empty() {
        part.findings.push(Finding::Environment);
    }
    if matches!(name, "source" | ".")
        && let Some(word) = arguments.first()
    {
        read_word(word, part, ground, places);
        part.effect = part.effect.max(Effect::Boxed);
    }
    writer(base, arguments, part, ground, places);
}

fn open_program(name: &str, first: &str, part: &mut Part) {
    if let Some(with) = permission().options.open.programs.get(name)
        && (with.is_empty() || with.iter().any(|w| w == first))
    {
        part.raise(Effect::Open);
    }
}

fn prints_environment(base: &str, arguments: &[Word]) -> bool {
    match base {
        "env" | "printenv" | "ps" | "top" | "htop" | "pgrep" | "pstree" => true,
        "export" | "declare" | "typeset" => {
            arguments.is_empty() || arguments.iter().any(|w| w.text() == "-p")
        }
        _ => false,
    }
}

/// What a known writer changes.
fn writer(base: &str, arguments: &[Word], part: &mut Part, ground: &Ground<'_>, places: &Places) {
    let Some(table) = permission().options.writers.get(base) else {
        return;
    };
    let takes: Vec<String> = table.options.iter().chain(&table.script).cloned().collect();
    let split = reader::split(arguments, &takes);
    let scripted = split.values.iter().any(|(option, _)| {
        table
            .script
            .iter()
            .any(|s| option.ends_with(s.trim_start_matches('-')))
    });
    let when: Vec<&str> = table.when.iter().map(String::as_str).collect();
    if !when.is_empty() && !programs::any_gated(&split.options, &when) {
        return;
    }
    let mut changed: Vec<Word> = Vec::new();
    for (option, value) in &split.values {
        if table.options.iter().any(|o| o == option) {
            changed.push((*value).clone());
        }
    }
    for word in arguments {
        let text = word.text();
        for option in &table.options {
            let joined = format!("{option}=");
            if text.starts_with(&joined) {
                changed.push(word.after(joined.len()));
            } else if option.len() == 2 && text.starts_with(option.as_str()) && text.len() > 2 {
                changed.push(word.after(2));
            }
        }
    }
    let mut operands = split.operands.iter().map(|w| (*w).clone());
    match table.operands {
        Operands::All => changed.extend(operands),
        Operands::Rest if scripted => changed.extend(operands),
        Operands::Rest => changed.extend(operands.skip(1)),
        Operands::Last => changed.extend(operands.next_back()),
        Operands::None => {}
    }
    for word in &changed {
        if word.text() != "-" {
            write_word(word, part, ground, places);
        }
    }
}
