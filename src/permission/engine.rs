//! The judgement: parts in, one verdict out. The strictest part decides.

mod execute;
mod files;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::tz::TimeZone;

use super::rule::{Pattern, Terms, WATCH, Wanted, pattern};
use super::{
    Action, Attended, BoxKind, Context, Facts, Grant, Origin, Pending, Purpose, Refusal, Request,
    Rule, Run, Verdict, paths, words,
};
use crate::clock;
use crate::config::Approvals;
use crate::ids::{AskId, CallId, Digest};
use crate::spec::permission::{Does, Row, permission};
use crate::store::item::{Allowed, AskBody, Scope};
use crate::text::words::day;

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

/// A rule with its id.
#[derive(Clone, Debug)]
struct Known {
    id: String,
    made: i64,
    terms: Terms,
}

/// What one part comes to.
#[derive(Debug)]
struct Ruling {
    level: Level,
    layer: &'static str,
    reason: String,
    segment: Option<String>,
    /// A rule that turned an ask into an allow.
    rule: Option<Known>,
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

    /// Judges a request. Pure but for looking up programs, resolving links, and the zone in which the
    /// day of a rule is told.
    pub fn judge(&self, request: &Request, context: &Context, rules: &[Rule]) -> Verdict {
        let judging = Judging {
            engine: self,
            request,
            context,
            rules: rules
                .iter()
                .filter_map(|rule| {
                    let (id, made) = (rule.id.clone(), rule.made);
                    rule.terms().map(|terms| Known { id, made, terms })
                })
                .collect(),
            row: permission().modes.modes.get(words::key(context.mode)),
        };
        match &request.action {
            Action::Interact => judging.interact(),
            Action::Question(question) => judging.question(question),
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
    rules: Vec<Known>,
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
                    self.rules.iter().find(|Known { terms, .. }| {
                        terms.applies(&self.request.cwd, self.context)
                            && terms.covers_box(kind, self.watches())
                            && terms.patterns.iter().any(|p| p.covers(wanted))
                    })
                });
                match covering {
                    Some(known) => Ruling {
                        rule: Some(known.clone()),
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
        if paths::beneath(path, &self.engine.facts.own()) {
            return Ruling::of(
                Level::Refuse,
                "protected",
                format!("{shown} is protected ({text}): it is not {what}, whoever asks."),
            );
        }
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

    /// The strictest ruling decides.
    fn verdict(&self, rulings: &[Ruling], subject: Subject<'_>) -> Verdict {
        let level = rulings
            .iter()
            .map(|r| r.level)
            .max()
            .unwrap_or(Level::Allow);
        let Some(worst) = rulings.iter().find(|r| r.level == level) else {
            return Verdict::Allow(self.grant(subject, &[]));
        };
        match (level, self.context.attended) {
            (Level::Allow, _) => {
                let rules: Vec<&Known> = rulings.iter().filter_map(|r| r.rule.as_ref()).collect();
                Verdict::Allow(self.grant(subject, &rules))
            }
            (Level::Refuse, _) => Verdict::Refuse(Refusal {
                layer: worst.layer,
                segment: worst.segment.clone(),
                text: worst.reason.clone(),
            }),
            (Level::AskOnce, Attended::Scheduled) if worst.layer == "unbounded" => {
                Verdict::Refuse(Refusal {
                    layer: "unreadable",
                    segment: worst.segment.clone(),
                    text: format!("Nobody is here to be asked. {}", worst.reason),
                })
            }
            (_, Attended::Nobody) => Verdict::Refuse(Refusal {
                layer: "unattended",
                segment: worst.segment.clone(),
                text: format!("Nobody is here to be asked. {}", worst.reason),
            }),
            (Level::Ask | Level::AskOnce, _) => {
                let (reason, segment) = (worst.reason.clone(), worst.segment.clone());
                self.ask(rulings, level, reason, segment, subject)
            }
        }
    }

    fn grant(&self, subject: Subject<'_>, rules: &[&Known]) -> Grant {
        let digest = self.digest(&subject);
        let (source, text) = match rules.first() {
            Some(Known { terms, .. }) if terms.session.is_some() => (
                "session",
                format!("you allowed {} for this session", terms.from),
            ),
            Some(Known { terms, made, .. }) => {
                let day = day(*made, clock::now_ms(), &TimeZone::system());
                let from = &terms.from;
                (
                    "rule",
                    format!("you allowed {from} in this folder on {day}"),
                )
            }
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
        let closed = match &self.request.action {
            Action::Read { .. } => paths::closed(
                &subject.places,
                &self.engine.facts.home(),
                &self.engine.facts.own(),
                &self.context.released,
            ),
            _ => Vec::new(),
        };
        let (run, places) = (subject.run, subject.places);
        Grant::new(self.request.clone(), digest, allowed, run, places)
            .closing(closed)
            .by(rules.iter().map(|known| known.id.clone()).collect())
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
        let mut seen = HashSet::new();
        let made = wanted.iter().flatten().filter_map(|w| pattern(w));
        let patterns: Vec<Pattern> = made.filter(|p| seen.insert(p.clone())).collect();
        let kind = subject.run.as_ref().map(|run| run.r#box.kind);
        let once = level == Level::AskOnce || wanted.is_none() || patterns.is_empty();
        let scopes = if once {
            vec![Scope::Once]
        } else {
            self.scopes()
        };
        let kind_word = kind.map_or("", BoxKind::word);
        let covered = if self.watches() { WATCH } else { kind_word };
        let rule = (!once).then(|| {
            Rule::of(&Terms {
                allow: true,
                cwd: self.request.cwd.clone(),
                origin: self.context.origin.clone(),
                session: Some(self.context.session.clone()),
                kind: match subject.kind {
                    "write" => BoxKind::Roots.word().to_owned(),
                    _ if covered.is_empty() => BoxKind::Read.word().to_owned(),
                    _ => covered.to_owned(),
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
                words::covers(&patterns, covered, !always)
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
            question: match &self.request.action {
                Action::Question(question) => Some(question.clone()),
                _ => None,
            },
        };
        let grant = self.grant(subject, &[]);
        Verdict::Ask(Box::new(Pending::new(body, grant, rule)))
    }

    /// Whether it is a watch command.
    fn watches(&self) -> bool {
        matches!(&self.request.action, Action::Execute(c) if c.purpose == Purpose::Monitor)
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
