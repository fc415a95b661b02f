//! Judging what touches files and what touches nothing.

use std::path::{Path, PathBuf};

use super::super::rule::Wanted;
use super::super::{Attended, BoxKind, Refusal, Verdict, paths, words};
use super::{Judging, Level, Ruling, Subject};
use crate::ids::Digest;
use crate::spec::permission::{Access, Does, permission};
use crate::store::item::Question;

impl Judging<'_> {
    pub(super) fn interact(&self) -> Verdict {
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
        self.verdict(&[ruling], subject)
    }

    /// A question is always put to the person: no mode and no rule answers it.
    pub(super) fn question(&self, question: &Question) -> Verdict {
        if self.context.attended != Attended::Person {
            return Verdict::Refuse(Refusal {
                layer: "unattended",
                segment: None,
                text: words::NOBODY_TO_ASK.to_owned(),
            });
        }
        let subject = Subject {
            kind: "question",
            command: question.text.clone(),
            run: None,
            places: Vec::new(),
            programs: Vec::new(),
            // The choices too are what the digest is of.
            variables: vec![serde_json::to_string(question).unwrap_or_default()],
            diff: None,
            source: "interact",
            text: words::ANSWERED.to_owned(),
        };
        let ruling = Ruling::of(Level::AskOnce, "question", "The agent asks you.");
        self.verdict(&[ruling], subject)
    }

    pub(super) fn read(&self, asked: &[PathBuf]) -> Verdict {
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
                && !hit.released(&real, &self.context.released)
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
        self.verdict(&rulings, subject)
    }

    pub(super) fn secret(&self, path: &Path) -> Ruling {
        let reason = format!("{} may hold secrets.", path.display());
        let wanted = Some(Wanted::File(path.to_path_buf()));
        self.table(Does::Ask, &reason, wanted, BoxKind::Read)
            .on(&path.display().to_string())
    }

    pub(super) fn write(&self, path: &Path, digest: &Digest, diff: &str) -> Verdict {
        let real = paths::resolve(path);
        let shown = real.display().to_string();
        let home = self.engine.facts.home();
        let own = self.engine.facts.own();
        let mut rulings = Vec::new();
        // Also by its spelling: a link at a protected name is still that name.
        for real in [&real, &paths::spelled(path)] {
            if let Some(hit) = paths::protected(real, &home, &own)
                && !hit.released(real, &self.context.released)
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
        self.verdict(&rulings, subject)
    }

    pub(super) fn instructions(&self, path: &Path) -> Ruling {
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
}
