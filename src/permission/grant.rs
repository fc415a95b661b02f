//! Grants: permission to do one thing, once, with everything that was judged.

use std::path::PathBuf;
use std::time::Duration;

use super::{Pending, Purpose, Request, Rule};
use crate::ids::Digest;
use crate::store::item::{Allowed, Scope};

/// Permission to do one thing, once. Only this module makes one.
#[derive(Debug)]
pub struct Grant {
    request: Request,
    digest: Digest,
    allowed: Allowed,
    /// Of an execution: how it runs.
    run: Option<Run>,
    /// Of a read or write: where the paths really are.
    places: Vec<PathBuf>,
    /// The rules that let it through.
    rules: Vec<String>,
    /// Of a read: what beneath its folders is not looked into.
    closed: Vec<PathBuf>,
}

/// How a command runs: what was judged, and nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    pub text: String,
    pub cwd: PathBuf,
    pub timeout: Duration,
    pub purpose: Purpose,
    pub r#box: BoxPlan,
    /// The whole environment.
    pub environment: Vec<(String, String)>,
}

/// The box a command runs in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoxPlan {
    pub kind: BoxKind,
    pub sees: Sees,
    pub network: bool,
    /// A git command that writes was allowed: the repository's own files may change, but not its
    /// hooks and settings.
    pub git: bool,
    /// Writable in `Roots`, visible in `Read`.
    pub roots: Vec<PathBuf>,
    /// Further paths that may be read.
    pub also: Vec<PathBuf>,
    /// This program's own folders, covered.
    pub own: Vec<PathBuf>,
    /// Protected paths that this command may change: the person said so, once or for good.
    pub released: Vec<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoxKind {
    /// Nothing is writable but a private temporary folder.
    Read,
    /// The roots are writable too.
    Roots,
    /// No box.
    Open,
}

impl BoxKind {
    /// As it is stored and said over the link.
    pub fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Roots => "roots",
            Self::Open => "open",
        }
    }
}

/// What of the disk a boxed command sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sees {
    /// The roots and what every build needs.
    Roots,
    /// All but what holds credentials.
    Disk,
}

impl Grant {
    pub(super) fn new(
        request: Request,
        digest: Digest,
        allowed: Allowed,
        run: Option<Run>,
        places: Vec<PathBuf>,
    ) -> Self {
        Self {
            request,
            digest,
            allowed,
            run,
            places,
            closed: Vec::new(),
            rules: Vec::new(),
        }
    }

    pub(super) fn by(mut self, mut rules: Vec<String>) -> Self {
        rules.sort();
        rules.dedup();
        self.rules = rules;
        self
    }

    pub(super) fn closing(mut self, closed: Vec<PathBuf>) -> Self {
        self.closed = closed;
        self
    }

    pub fn request(&self) -> &Request {
        &self.request
    }
    pub fn digest(&self) -> &Digest {
        &self.digest
    }
    /// What let it through, in words.
    pub fn decision(&self) -> &Allowed {
        &self.allowed
    }
    /// Ids of the rules that let it through; none where the mode or a person did.
    pub fn rules(&self) -> &[String] {
        &self.rules
    }
    /// How a command runs; none when nothing is executed.
    pub fn run(&self) -> Option<&Run> {
        self.run.as_ref()
    }
    /// Where the paths of a read or write really are, in the order of the request.
    pub fn places(&self) -> &[PathBuf] {
        &self.places
    }
    /// What beneath the folders of a read is not looked into on the way: credential stores, this
    /// program's own folders.
    pub fn closed(&self) -> &[PathBuf] {
        &self.closed
    }

    #[cfg(any(test, feature = "testing"))]
    pub(super) fn of_test_run(run: Run) -> Self {
        use super::{Action, Command};
        let request = Request {
            tool: "bash".to_owned(),
            cwd: run.cwd.clone(),
            action: Action::Execute(Command {
                text: run.text.clone(),
                timeout: run.timeout,
                purpose: run.purpose,
                open: None,
            }),
        };
        Self {
            run: Some(run),
            ..Self::of_test(request)
        }
    }

    #[cfg(any(test, feature = "testing"))]
    pub(super) fn of_test(request: Request) -> Self {
        use super::Action;
        let digest = Digest::of(format!("{request:?}").as_bytes());
        let run = match &request.action {
            Action::Execute(command) => Some(Run {
                text: command.text.clone(),
                cwd: request.cwd.clone(),
                timeout: command.timeout,
                purpose: command.purpose,
                r#box: BoxPlan {
                    kind: BoxKind::Open,
                    sees: Sees::Disk,
                    network: true,
                    git: true,
                    roots: vec![request.cwd.clone()],
                    also: Vec::new(),
                    own: Vec::new(),
                    released: Vec::new(),
                },
                environment: vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())],
            }),
            _ => None,
        };
        let places = match &request.action {
            Action::Read { paths } => paths.iter().map(|p| super::resolve(p)).collect(),
            Action::Write { path, .. } => vec![super::resolve(path)],
            _ => Vec::new(),
        };
        let allowed = Allowed {
            source: "once".into(),
            text: "you allowed it".into(),
            r#box: run.as_ref().map_or("", |r| r.r#box.kind.word()).into(),
        };
        Self::new(request, digest, allowed, run, places)
    }
}

impl Pending {
    pub(super) fn new(body: crate::store::item::AskBody, grant: Grant, rule: Option<Rule>) -> Self {
        Self { body, grant, rule }
    }

    /// The person said yes to exactly this. A rule is made where the scope is wider than once and
    /// the question offered that scope.
    pub fn allowed(self, scope: Scope) -> (Grant, Option<Rule>) {
        let offered = self.body.scopes.contains(&scope);
        let mut grant = self.grant;
        let (source, text) = match scope {
            Scope::Session if offered => ("session", "you allowed it for this session"),
            Scope::Always if offered => ("rule", "you allowed it always in this folder"),
            _ => ("once", "you allowed it once"),
        };
        source.clone_into(&mut grant.allowed.source);
        text.clone_into(&mut grant.allowed.text);
        let rule = self
            .rule
            .filter(|_| offered && scope != Scope::Once)
            .map(|rule| rule.of_scope(scope));
        (grant, rule)
    }
}
