//! Judging commands: every part by the table, and the box that the whole runs in.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::super::command::{self, Effect, Finding, Ground, Looks, Part};
use super::super::rule::{Pattern, Wanted};
use super::super::{
    Attended, BoxKind, BoxPlan, Command, Purpose, Refusal, Run, Sees, Strength, Verdict, floor,
    paths, words,
};
use super::{Judging, Level, Ruling, Subject};
use crate::config::{Mode, Sudo};
use crate::shell::{self, DoubtKind};
use crate::spec::permission::{Does, permission};

/// What only reads runs no longer than this.
const LONGEST_READ: Duration = Duration::from_secs(10);

/// Caches that tools insist on writing lie in the session's temporary folder in the box, where
/// the home folder is read-only.
const CACHES: [(&str, &str); 3] = [
    ("GOCACHE", "/tmp/go-build"),
    ("npm_config_cache", "/tmp/npm"),
    ("CCACHE_DIR", "/tmp/ccache"),
];

impl Judging<'_> {
    pub(super) fn execute(&self, command: &Command) -> Verdict {
        let text = &command.text;
        let facts = &self.engine.facts;
        let home = facts.home();
        if text.len() > shell::MAX_BYTES {
            return Verdict::Refuse(Refusal {
                layer: "unreadable",
                segment: None,
                text: format!(
                    "Refused: the command is longer than {} KiB. Put the text into a file first.",
                    shell::MAX_BYTES / 1024
                ),
            });
        }
        let (found, whole) = shell::greedy(text);
        if let Some(hit) = floor::find(text, &found, &home) {
            return Verdict::Refuse(Refusal {
                layer: "floor",
                segment: Some(hit.segment),
                text: format!("Refused in every mode: {}.", hit.text),
            });
        }
        let script = shell::read(text);
        let own = facts.own();
        let defaults = &permission().defaults;
        let strength = facts.strength();
        let private = if strength == Strength::Full {
            self.free(&defaults.private)
        } else {
            Vec::new()
        };
        let (free, path) = (self.free(&defaults.free), facts.path());
        let ground = Ground {
            cwd: &self.request.cwd,
            roots: &self.context.roots,
            home: &home,
            own: &own,
            free: &free,
            private: &private,
            released: &self.context.released,
            path: &path,
            looks: Looks::default(),
        };
        let parts = command::parts(&script, &ground);
        let kind = self.kind(command, &parts, strength);
        let mut rulings: Vec<Ruling> = parts
            .iter()
            .flat_map(|part| self.part(part, kind, strength))
            .collect();
        if !whole {
            // Something on the floor may stand where nobody looked.
            let words = DoubtKind::Bound.words();
            let reason = format!("The command was not understood: {words}.");
            // Before the others: it is told, and decides, where several weigh the same.
            rulings.insert(0, Ruling::of(Level::AskOnce, "unbounded", reason));
        }
        if let Some(why) = &command.open {
            rulings.push(self.open(why, &parts));
        }
        rulings.extend(self.refused_by_rule(&script));
        let run = self.run(command, kind, &parts);
        let programs = programs(&script, &path);
        let variables = variables(&script);
        let reads = kind == BoxKind::Read && command.purpose == Purpose::Tool;
        let subject = Subject {
            kind: "execute",
            command: text.clone(),
            run: Some(run),
            places: Vec::new(),
            programs,
            variables,
            diff: None,
            source: if reads { "read" } else { "mode" },
            text: if reads {
                "plain read".to_owned()
            } else {
                words::allowed(self.context.mode, kind)
            },
        };
        self.verdict(&rulings, subject)
    }

    /// The box that the whole runs in: the widest that a part needs.
    fn kind(&self, command: &Command, parts: &[Part], strength: Strength) -> BoxKind {
        let effect = parts.iter().map(|p| p.effect).max();
        if command.open.is_some() || effect == Some(Effect::Open) {
            return BoxKind::Open;
        }
        let needs_box = parts.iter().any(|p| p.sealed || p.repository);
        match effect {
            Some(Effect::Boxed) if strength == Strength::Full => BoxKind::Roots,
            Some(Effect::Boxed) => BoxKind::Open,
            _ if strength == Strength::Full || !needs_box => BoxKind::Read,
            _ => BoxKind::Open,
        }
    }

    /// Everything that one part comes to.
    fn part(&self, part: &Part, kind: BoxKind, strength: Strength) -> Vec<Ruling> {
        let mut rulings = Vec::new();
        if let Some(doubt) = part.doubt {
            let reason = format!("The command was not understood: {}.", doubt.words());
            rulings.push(Ruling::of(Level::AskOnce, "unreadable", reason));
        }
        if part.elevates {
            rulings.push(self.elevated(part));
        }
        for finding in &part.findings {
            rulings.push(match finding {
                Finding::Protected { path, text, read } => self.protected(path, text, *read),
                Finding::Instructions { path } => self.instructions(path),
                Finding::Secret { path } => self.secret(path),
                Finding::Environment => {
                    let reason = format!("{} shows environments or other programs.", part.program);
                    let does = self.does(|r| r.execute_open);
                    self.table(does, &reason, part.wanted.clone(), kind)
                }
            });
        }
        for path in &part.read_outside {
            let reason = format!("{} lies outside of the shared folders.", path.display());
            let does = self.does(|r| r.read_outside);
            rulings.push(self.table(does, &reason, Some(Wanted::Read(path.clone())), kind));
        }
        if let Some(path) = &part.write_outside {
            let reason = format!(
                "It changes {}, outside of the shared folders.",
                path.display()
            );
            let does = self.does(|r| r.write_outside);
            rulings.push(self.table(does, &reason, part.wanted.clone(), kind));
        }
        rulings.push(self.effect(part, kind, strength));
        rulings
            .into_iter()
            .map(|r| {
                if r.segment.is_some() || part.segment.is_empty() {
                    r
                } else {
                    r.on(&part.segment)
                }
            })
            .collect()
    }

    /// What the table says of what a part does.
    fn effect(&self, part: &Part, kind: BoxKind, strength: Strength) -> Ruling {
        let row = |cell| self.does(cell);
        match part.effect {
            Effect::Nothing => Ruling::allow(),
            Effect::Read => {
                if let Some(setting) = &part.starts {
                    let reason =
                        format!("{setting} is set in this repository and starts a program.");
                    let does = row(|r| r.execute_boxed);
                    return self.table(does.max_ask(), &reason, None, kind);
                }
                if (part.sealed || part.repository) && strength != Strength::Full {
                    let reason = words::open(&part.program, strength);
                    return self.table(row(|r| r.execute_open), &reason, part.wanted.clone(), kind);
                }
                if part.sealed && kind == BoxKind::Open {
                    let reason = "What it reads is only known when it runs.";
                    return self.table(row(|r| r.read_outside), reason, None, kind);
                }
                self.table(row(|r| r.read_inside), "It reads.", None, kind)
            }
            Effect::Boxed if kind != BoxKind::Open => {
                let reason = format!("It runs {}, which does more than read.", part.program);
                self.table(row(|r| r.execute_boxed), &reason, part.wanted.clone(), kind)
            }
            Effect::Boxed => {
                let reason = if strength == Strength::Full {
                    format!("It runs {} outside of the box.", part.program)
                } else {
                    words::open(&part.program, strength)
                };
                self.table(row(|r| r.execute_open), &reason, part.wanted.clone(), kind)
            }
            Effect::Open => {
                let reason = match &part.write_outside {
                    Some(path) => format!("{} changes {}.", part.program, path.display()),
                    None => words::open(&part.program, strength),
                };
                self.table(row(|r| r.execute_open), &reason, part.wanted.clone(), kind)
            }
        }
    }

    /// The model asked to leave the box.
    fn open(&self, why: &str, parts: &[Part]) -> Ruling {
        const MOST: usize = 200;
        let why: String = why.chars().filter(|c| !c.is_control()).take(MOST).collect();
        let reason = if why.is_empty() {
            "It asks to run outside of the box.".to_owned()
        } else {
            format!("It asks to run outside of the box: {why}")
        };
        // Covered where a rule covers every part as open, which the parts themselves check.
        let covered = parts
            .iter()
            .filter(|p| p.effect > Effect::Read)
            .all(|p| p.wanted.is_some());
        let ruling = self.table(self.does(|r| r.execute_open), &reason, None, BoxKind::Open);
        if covered && ruling.level == Level::Ask {
            let asks = parts.iter().any(|p| {
                p.effect > Effect::Read
                    && self
                        .table(Does::Ask, "", p.wanted.clone(), BoxKind::Open)
                        .level
                        == Level::Ask
            });
            if !asks && parts.iter().any(|p| p.effect > Effect::Read) {
                return Ruling::allow();
            }
            return Ruling {
                // What is remembered are the parts' own patterns.
                wanted: parts.iter().find_map(|p| p.wanted.clone()),
                ..ruling
            };
        }
        ruling
    }

    fn elevated(&self, part: &Part) -> Ruling {
        let name = part.program.clone();
        if self.context.attended != Attended::Person {
            return Ruling::of(
                Level::Refuse,
                "sudo",
                format!("Refused: {name} is not run where nobody is there to be asked."),
            );
        }
        if self.remote() && self.context.sudo == Sudo::Refuse {
            return Ruling::of(
                Level::Refuse,
                "sudo",
                format!("Refused: {name} is not run over the link."),
            );
        }
        if self.context.mode == Mode::Plan {
            return Ruling::of(
                Level::Refuse,
                "mode",
                format!("Plan mode does not run {name}."),
            );
        }
        Ruling::of(
            Level::AskOnce,
            "sudo",
            format!("{name} runs with the rights of another user, outside of the box."),
        )
    }

    /// A no of the person.
    fn refused_by_rule(&self, script: &shell::Script) -> Option<Ruling> {
        let cwd = &self.request.cwd;
        for invocation in &script.invocations {
            let said: Vec<&str> = invocation
                .words
                .iter()
                .map(shell::Word::text)
                .filter(|t| !t.starts_with('-'))
                .collect();
            for terms in self
                .rules
                .iter()
                .map(|known| &known.terms)
                .filter(|t| !t.allow && cwd.starts_with(&t.cwd))
            {
                let hit = terms.patterns.iter().any(|p| match p {
                    Pattern::Prefix { words } | Pattern::Exact { words } => {
                        words.len() <= said.len() && words.iter().zip(&said).all(|(a, b)| a == b)
                    }
                    _ => false,
                });
                if hit {
                    let reason = format!("Refused by a rule of this computer: {}.", terms.from);
                    let ruling = Ruling::of(Level::Refuse, "rule", reason);
                    return Some(ruling.on(&invocation.segment));
                }
            }
        }
        None
    }

    /// Folders that the agent can write come last on the search path: nothing in them stands in
    /// for a program of the system.
    fn trusted_first(&self, mut environment: Vec<(String, String)>) -> Vec<(String, String)> {
        for (name, value) in &mut environment {
            if name == "PATH" {
                let (inside, outside): (Vec<&str>, Vec<&str>) = value
                    .split(':')
                    .filter(|folder| folder.starts_with('/'))
                    .partition(|folder| {
                        paths::beneath(&paths::resolve(Path::new(folder)), &self.context.roots)
                    });
                *value = [outside, inside].concat().join(":");
            }
        }
        environment
    }

    /// How it would run.
    fn run(&self, command: &Command, kind: BoxKind, parts: &[Part]) -> Run {
        let facts = &self.engine.facts;
        let monitor = command.purpose == Purpose::Monitor;
        let kind = match kind {
            // A watch command never writes, and what lets it out of the box is only the network.
            BoxKind::Roots | BoxKind::Open if monitor => BoxKind::Read,
            other => other,
        };
        let network = if monitor {
            self.context.mode == Mode::Auto || parts.iter().any(|p| p.effect == Effect::Open)
        } else {
            kind == BoxKind::Open
        };
        let reads = kind == BoxKind::Read && !monitor;
        Run {
            text: command.text.clone(),
            cwd: self.request.cwd.clone(),
            timeout: if reads {
                command.timeout.min(LONGEST_READ)
            } else {
                command.timeout
            },
            purpose: command.purpose,
            r#box: BoxPlan {
                kind,
                sees: if reads { Sees::Roots } else { Sees::Disk },
                network,
                git: parts.iter().any(|p| p.git_writes),
                roots: self.context.roots.clone(),
                own: facts.own(),
                released: self
                    .context
                    .released
                    .iter()
                    .cloned()
                    .chain(
                        parts
                            .iter()
                            .flat_map(|p| p.findings.iter().filter_map(released)),
                    )
                    .collect(),
                also: parts
                    .iter()
                    .flat_map(|p| {
                        p.read_outside
                            .iter()
                            .cloned()
                            .chain(p.findings.iter().filter_map(secret_path))
                    })
                    .collect(),
            },
            environment: self.trusted_first(if monitor {
                facts.monitor_environment()
            } else {
                let mut environment = facts.environment();
                if kind != BoxKind::Open {
                    // Without a network they are of no use, and they may hold a password.
                    environment.retain(|(name, _)| !name.to_lowercase().ends_with("_proxy"));
                }
                if kind == BoxKind::Roots {
                    environment.extend(CACHES.map(|(n, v)| (n.to_owned(), v.to_owned())));
                }
                environment
            }),
        }
    }
}

impl Does {
    /// At least an ask.
    fn max_ask(self) -> Self {
        match self {
            Self::Allow => Self::Ask,
            other => other,
        }
    }
}

/// A protected path that is changed when the question about it is answered with yes.
fn released(finding: &Finding) -> Option<PathBuf> {
    match finding {
        Finding::Protected {
            path, read: false, ..
        }
        | Finding::Instructions { path } => Some(path.clone()),
        _ => None,
    }
}

fn secret_path(finding: &Finding) -> Option<PathBuf> {
    match finding {
        Finding::Secret { path }
        | Finding::Protected {
            path, read: true, ..
        } => Some(path.clone()),
        _ => None,
    }
}

/// The programs of a script as they are found on the path, for the digest and the curious.
fn programs(script: &shell::Script, path: &[PathBuf]) -> Vec<String> {
    // More are not looked up: the text of the command is in the digest all the same.
    const MOST: usize = 64;
    let mut seen = HashSet::new();
    let names = script.invocations.iter().filter_map(|i| i.program());
    let names = names.filter(|name| seen.insert(*name)).take(MOST);
    names
        .map(|name| {
            let place = if name.contains('/') {
                Some(name.to_owned())
            } else {
                path.iter()
                    .map(|folder| folder.join(name))
                    .find(|p| p.is_file())
                    .map(|p| p.display().to_string())
            };
            place.unwrap_or_else(|| format!("{name} (not found)"))
        })
        .collect()
}

fn variables(script: &shell::Script) -> Vec<String> {
    let of = script.invocations.iter().flat_map(|i| &i.assignments);
    of.chain(&script.assignments)
        .map(|a| a.segment.clone())
        .take(64)
        .collect()
}
