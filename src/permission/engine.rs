//! The judgement: parts in, one verdict out. The strictest part decides.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::command::{self, Effect, Finding, Ground, Part};
use super::rule::{Pattern, Terms, Wanted, pattern};
use super::{
    Action, Attended, BoxKind, BoxPlan, Command, Context, Facts, Grant, Origin, Pending, Purpose,
    Refusal, Request, Rule, Run, Sees, Strength, Verdict, floor, paths, words,
};
use crate::config::{Approvals, Mode, Sudo};
use crate::ids::{AskId, CallId, Digest};
use crate::shell::{self, DoubtKind};
use crate::spec::permission::{Access, Does, Row, permission};
use crate::store::item::{Allowed, AskBody, Scope};

/// What only reads runs no longer than this.
const LONGEST_READ: Duration = Duration::from_secs(10);

/// The engine: the spec's floor and tables, the machine's facts (box, programs), the rules.
#[derive(Clone, Debug)]
pub struct Engine {
    facts: Arc<dyn Facts>,
}

/// How grave a finding is. The order is the order of strictness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Allow,
    Ask,
    AskOnce,
    Refuse,
}

/// What one part comes to.
#[derive(Debug)]
struct Ruling {
    level: Level,
    layer: &'static str,
    reason: String,
    segment: Option<String>,
    /// A rule that turned an ask into an allow.
    rule: Option<Terms>,
    /// What a yes for longer than once would have to cover.
    wanted: Option<Wanted>,
}

impl Ruling {
    fn allow() -> Self {
        Self {
            level: Level::Allow,
            layer: "mode",
            reason: String::new(),
            segment: None,
            rule: None,
            wanted: None,
        }
    }

    fn of(level: Level, layer: &'static str, reason: impl Into<String>) -> Self {
        Self {
            level,
            layer,
            reason: reason.into(),
            ..Self::allow()
        }
    }

    fn on(mut self, segment: &str) -> Self {
        self.segment = Some(segment.to_owned());
        self
    }

    fn wanting(mut self, wanted: Option<Wanted>) -> Self {
        self.wanted = wanted;
        self
    }
}

impl Engine {
    /// An engine on given facts.
    pub fn with(facts: Arc<dyn Facts>) -> Self {
        Self { facts }
    }

    pub fn facts(&self) -> &Arc<dyn Facts> {
        &self.facts
    }

    /// Judges a request. Pure but for looking up programs and resolving links.
    pub fn judge(&self, request: &Request, context: &Context, rules: &[Rule]) -> Verdict {
        let judging = Judging {
            engine: self,
            request,
            context,
            rules: rules.iter().filter_map(Rule::terms).collect(),
            row: permission().modes.modes.get(words::key(context.mode)),
        };
        match &request.action {
            Action::Interact => judging.interact(),
            Action::Read { paths } => judging.read(paths),
            Action::Write { path, digest, diff } => judging.write(path, digest, diff),
            Action::Execute(command) => judging.execute(command),
        }
    }
}

struct Judging<'a> {
    engine: &'a Engine,
    request: &'a Request,
    context: &'a Context,
    rules: Vec<Terms>,
    row: Option<&'a Row>,
}

/// What is asked about or granted, apart from the verdict.
struct Subject<'a> {
    kind: &'static str,
    command: String,
    run: Option<Run>,
    places: Vec<PathBuf>,
    programs: Vec<String>,
    variables: Vec<String>,
    diff: Option<&'a str>,
    /// What a plain allow is put down to.
    source: &'static str,
    text: String,
}

impl Judging<'_> {
    fn does(&self, cell: fn(&Row) -> Does) -> Does {
        // A mode that the data does not know lets nothing through.
        self.row.map_or(Does::Refuse, cell)
    }

    fn remote(&self) -> bool {
        matches!(self.context.origin, Origin::Remote { .. })
    }

    fn free(&self, list: &[String]) -> Vec<PathBuf> {
        let home = self.engine.facts.home();
        list.iter().map(|t| paths::at_home(t, &home)).collect()
    }

    /// What the table says of one class, with the rules.
    fn table(&self, does: Does, reason: &str, wanted: Option<Wanted>, kind: BoxKind) -> Ruling {
        let does = match does {
            Does::RemoteAsk if self.remote() => Does::Ask,
            Does::RemoteAsk => Does::Allow,
            other => other,
        };
        match does {
            Does::Allow => Ruling::allow(),
            Does::Refuse => Ruling::of(
                Level::Refuse,
                "mode",
                format!(
                    "{} mode does not do this: {reason}",
                    words::mode(self.context.mode)
                ),
            ),
            Does::Ask | Does::RemoteAsk => {
                let covering = wanted.as_ref().and_then(|wanted| {
                    self.rules.iter().find(|terms| {
                        terms.applies(&self.request.cwd, self.context)
                            && terms.covers_box(kind)
                            && terms.patterns.iter().any(|p| p.covers(wanted))
                    })
                });
                match covering {
                    Some(terms) => Ruling {
                        rule: Some(terms.clone()),
                        ..Ruling::allow()
                    },
                    None => Ruling::of(Level::Ask, "mode", reason).wanting(wanted),
                }
            }
        }
    }

    /// What a protected path comes to.
    fn protected(&self, path: &Path, text: &str, read: bool) -> Ruling {
        let what = if read { "read or changed" } else { "changed" };
        let shown = path.display();
        if self.remote() {
            return Ruling::of(
                Level::Refuse,
                "protected",
                format!("{shown} is protected ({text}): over the link it is not {what}."),
            );
        }
        Ruling::of(
            Level::AskOnce,
            "protected",
            format!("{shown} is protected: {text}."),
        )
    }

    fn interact(&self) -> Verdict {
        let subject = Subject {
            kind: "question",
            command: self.request.tool.clone(),
            run: None,
            places: Vec::new(),
            programs: Vec::new(),
            variables: Vec::new(),
            diff: None,
            source: "interact",
            text: "it touches nothing but the session".to_owned(),
        };
        let ruling = self.table(
            self.does(|r| r.interact),
            "It asks you something.",
            None,
            BoxKind::Read,
        );
        self.verdict(vec![ruling], subject)
    }

    fn read(&self, asked: &[PathBuf]) -> Verdict {
        let defaults = &permission().defaults;
        let free = self.free(&defaults.free);
        let home = self.engine.facts.home();
        let own = self.engine.facts.own();
        let mut rulings = Vec::new();
        let mut places = Vec::new();
        for path in asked {
            let real = paths::resolve(path);
            let shown = real.display().to_string();
            places.push(real.clone());
            if let Some(hit) = paths::protected(&real, &home, &own)
                && hit.access == Access::All
                && !paths::beneath(&real, &self.context.released)
            {
                rulings.push(self.protected(&real, hit.text, true).on(&shown));
            } else if paths::beneath(&real, &self.context.roots) {
                let secret = paths::secret_name(&real) || paths::private_key(&real);
                rulings.push(if secret {
                    self.secret(&real)
                } else {
                    self.table(
                        self.does(|r| r.read_inside),
                        "It reads.",
                        None,
                        BoxKind::Read,
                    )
                });
            } else if paths::beneath(&real, &free) {
                let does = self.does(|r| r.read_inside);
                rulings.push(self.table(does, "It reads.", None, BoxKind::Read));
            } else {
                let reason = format!("{shown} lies outside of the shared folders.");
                let does = self.does(|r| r.read_outside);
                let wanted = Some(Wanted::Read(real.clone()));
                rulings.push(self.table(does, &reason, wanted, BoxKind::Read).on(&shown));
            }
        }
        let shown: Vec<_> = asked.iter().map(|p| p.display().to_string()).collect();
        let subject = Subject {
            kind: "read",
            command: shown.join("\n"),
            run: None,
            places,
            programs: Vec::new(),
            variables: Vec::new(),
            diff: None,
            source: "read",
            text: "plain read".to_owned(),
        };
        self.verdict(rulings, subject)
    }

    fn secret(&self, path: &Path) -> Ruling {
        let reason = format!("{} may hold secrets.", path.display());
        let wanted = Some(Wanted::File(path.to_path_buf()));
        self.table(Does::Ask, &reason, wanted, BoxKind::Read)
            .on(&path.display().to_string())
    }

    fn write(&self, path: &Path, digest: &Digest, diff: &str) -> Verdict {
        let real = paths::resolve(path);
        let shown = real.display().to_string();
        let home = self.engine.facts.home();
        let own = self.engine.facts.own();
        let mut rulings = Vec::new();
        // Also by its spelling: a link at a protected name is still that name.
        for real in [&real, &paths::spelled(path)] {
            if let Some(hit) = paths::protected(real, &home, &own)
                && !paths::beneath(real, &self.context.released)
            {
                rulings.push(match hit.access {
                    Access::Instructions => self.instructions(real),
                    access => self
                        .protected(real, hit.text, access == Access::All)
                        .on(&shown),
                });
            }
        }
        let wanted = Some(Wanted::File(real.clone()));
        rulings.push(if paths::beneath(&real, &self.context.roots) {
            let reason = format!("It changes {shown}.");
            self.table(
                self.does(|r| r.write_inside),
                &reason,
                wanted,
                BoxKind::Roots,
            )
        } else {
            let reason = format!("It changes {shown}, outside of the shared folders.");
            self.table(
                self.does(|r| r.write_outside),
                &reason,
                wanted,
                BoxKind::Roots,
            )
        });
        let subject = Subject {
            kind: "write",
            command: shown,
            run: None,
            places: vec![real],
            programs: Vec::new(),
            variables: vec![digest.to_string()],
            diff: Some(diff),
            source: "mode",
            text: format!("{} mode", words::mode(self.context.mode)),
        };
        self.verdict(rulings, subject)
    }

    fn instructions(&self, path: &Path) -> Ruling {
        let shown = path.display().to_string();
        let reason = format!("{shown} holds what agents are told in this folder.");
        self.table(
            Does::Ask,
            &reason,
            Some(Wanted::File(path.to_path_buf())),
            BoxKind::Roots,
        )
        .on(&shown)
    }

    fn execute(&self, command: &Command) -> Verdict {
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
        };
        let mut parts = command::parts(&script, &ground);
        if !whole {
            parts.push(command::doubt(&shell::Doubt {
                kind: DoubtKind::Bound,
                segment: String::new(),
            }));
        }
        let kind = self.kind(command, &parts, strength);
        let mut rulings: Vec<Ruling> = parts
            .iter()
            .flat_map(|part| self.part(part, kind, strength))
            .collect();
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
        self.verdict(rulings, subject)
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
                    let reason = format!(
                        "{} is set in this repository and starts a program.",
                        setting
                    );
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
            environment: if monitor {
                facts.monitor_environment()
            } else {
                facts.environment()
            },
        }
    }

    /// The strictest ruling decides.
    fn verdict(&self, rulings: Vec<Ruling>, subject: Subject<'_>) -> Verdict {
        let level = rulings
            .iter()
            .map(|r| r.level)
            .max()
            .unwrap_or(Level::Allow);
        let Some(worst) = rulings.iter().find(|r| r.level == level) else {
            return Verdict::Allow(self.grant(subject, None));
        };
        match (level, self.context.attended) {
            (Level::Allow, _) => {
                let rule = rulings.iter().find_map(|r| r.rule.clone());
                Verdict::Allow(self.grant(subject, rule.as_ref()))
            }
            (Level::Refuse, _) => Verdict::Refuse(Refusal {
                layer: worst.layer,
                segment: worst.segment.clone(),
                text: worst.reason.clone(),
            }),
            (_, Attended::Nobody) => Verdict::Refuse(Refusal {
                layer: "unattended",
                segment: worst.segment.clone(),
                text: format!("Nobody is here to be asked. {}", worst.reason),
            }),
            (Level::Ask | Level::AskOnce, _) => {
                let (reason, segment) = (worst.reason.clone(), worst.segment.clone());
                self.ask(&rulings, level, reason, segment, subject)
            }
        }
    }

    fn grant(&self, subject: Subject<'_>, rule: Option<&Terms>) -> Grant {
        let digest = self.digest(&subject);
        let (source, text) = match rule {
            Some(terms) if terms.session.is_some() => (
                "session",
                format!("you allowed {} for this session", terms.from),
            ),
            Some(terms) => ("rule", format!("you allowed {} in this folder", terms.from)),
            None => (subject.source, subject.text),
        };
        let allowed = Allowed {
            source: source.to_owned(),
            text,
            r#box: subject
                .run
                .as_ref()
                .map_or("", |run| run.r#box.kind.word())
                .to_owned(),
        };
        Grant::new(
            self.request.clone(),
            digest,
            allowed,
            subject.run,
            subject.places,
        )
    }

    fn ask(
        &self,
        rulings: &[Ruling],
        level: Level,
        reason: String,
        segment: Option<String>,
        subject: Subject<'_>,
    ) -> Verdict {
        let asking = rulings.iter().filter(|r| r.level > Level::Allow);
        let wanted: Option<Vec<_>> = asking.map(|r| r.wanted.as_ref()).collect();
        let mut patterns: Vec<Pattern> = Vec::new();
        for wanted in wanted.iter().flatten() {
            if let Some(made) = pattern(wanted)
                && !patterns.contains(&made)
            {
                patterns.push(made);
            }
        }
        let kind = subject.run.as_ref().map(|run| run.r#box.kind);
        let once = level == Level::AskOnce || wanted.is_none() || patterns.is_empty();
        let scopes = if once {
            vec![Scope::Once]
        } else {
            self.scopes()
        };
        let kind_word = kind.map_or("", BoxKind::word);
        let rule = (!once).then(|| {
            Rule::of(Terms {
                allow: true,
                cwd: self.request.cwd.clone(),
                origin: self.context.origin.clone(),
                session: Some(self.context.session.clone()),
                kind: match subject.kind {
                    "write" => BoxKind::Roots.word().to_owned(),
                    _ if kind_word.is_empty() => BoxKind::Read.word().to_owned(),
                    _ => kind_word.to_owned(),
                },
                patterns: patterns.clone(),
                from: subject.command.chars().take(200).collect(),
            })
        });
        let body = AskBody {
            ask: AskId::new(""),
            call: CallId::new(""),
            digest: self.digest(&subject),
            kind: subject.kind.to_owned(),
            command: subject.command.clone(),
            cwd: self.request.cwd.display().to_string(),
            reason,
            segment,
            r#box: kind_word.to_owned(),
            covers: (!once).then(|| {
                let always = scopes.contains(&Scope::Always);
                words::covers(&patterns, kind_word, !always)
            }),
            widest: if once { None } else { words::widest(&patterns) },
            scopes,
            programs: subject.programs.clone(),
            variables: if subject.kind == "execute" {
                subject.variables.clone()
            } else {
                Vec::new()
            },
            diff: subject.diff.map(str::to_owned),
            wait_ms: None,
        };
        let grant = self.grant(subject, None);
        Verdict::Ask(Box::new(Pending::new(body, grant, rule)))
    }

    /// The yeses that would count, by who can give them.
    fn scopes(&self) -> Vec<Scope> {
        match (&self.context.origin, self.context.approvals) {
            (Origin::Remote { .. }, Approvals::Once) => vec![Scope::Once, Scope::Session],
            _ => vec![Scope::Once, Scope::Session, Scope::Always],
        }
    }

    /// Over everything that was judged: program bytes, folder, environment, box, programs.
    fn digest(&self, subject: &Subject<'_>) -> Digest {
        let mut all = String::from("lembas judgement 1\0");
        let mut add = |text: &str| {
            all.push_str(&text.len().to_string());
            all.push(':');
            all.push_str(text);
        };
        add(&self.request.tool);
        add(subject.kind);
        add(&subject.command);
        add(&self.request.cwd.to_string_lossy());
        if let Some(run) = &subject.run {
            add(&format!("{:?}", run.r#box));
            add(&format!("{:?} {:?}", run.purpose, run.timeout));
            for (name, value) in &run.environment {
                add(name);
                add(value);
            }
        }
        for place in &subject.places {
            add(&place.to_string_lossy());
        }
        for program in subject.programs.iter().chain(&subject.variables) {
            add(program);
        }
        Digest::of(all.as_bytes())
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

fn secret_path(finding: &Finding) -> Option<PathBuf> {
    match finding {
        Finding::Secret { path } => Some(path.clone()),
        Finding::Protected {
            path, read: true, ..
        } => Some(path.clone()),
        _ => None,
    }
}

/// The programs of a script as they are found on the path, for the digest and the curious.
fn programs(script: &shell::Script, path: &[PathBuf]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for invocation in &script.invocations {
        let Some(name) = invocation.program() else {
            continue;
        };
        let place = if name.contains('/') {
            Some(name.to_owned())
        } else {
            path.iter()
                .map(|folder| folder.join(name))
                .find(|p| p.is_file())
                .map(|p| p.display().to_string())
        };
        let said = place.unwrap_or_else(|| format!("{name} (not found)"));
        if !found.contains(&said) && found.len() < 64 {
            found.push(said);
        }
    }
    found
}

fn variables(script: &shell::Script) -> Vec<String> {
    let of = script.invocations.iter().flat_map(|i| &i.assignments);
    of.chain(&script.assignments)
        .map(|a| a.segment.clone())
        .take(64)
        .collect()
}
