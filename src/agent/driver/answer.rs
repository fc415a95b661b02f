//! Answers to questions of the turn, and questions that nobody answered.
//!
//! What was asked is judged again at the moment of the answer, by the limits and rules of then.
//! An ask's end, the rule it made and its audit line are one transaction.

use std::collections::HashSet;
use std::time::Duration;

use crate::agent::asks::{Answer, AnswerError, Outcome};
use crate::agent::driver::{AnswerCmd, Driver};
use crate::agent::gate::Gated;
use crate::agent::turn::{Call, result};
use crate::agent::words;
use crate::clock;
use crate::config::Approvals;
use crate::ids::AskId;
use crate::permission::{Origin, Rule};
use crate::store::db::{Durability, StoreError};
use crate::store::device::items::Also;
use crate::store::device::rules::RuleRow;
use crate::store::item::{Allowed, AskBody, Body, CallStatus, Question, Scope, Settled};

impl Driver {
    /// Takes an answer and says what became of it. Only an error of the store ends the turn.
    pub(super) async fn take_answer(&mut self, cmd: AnswerCmd) -> Result<(), StoreError> {
        let said = self.answer(&cmd.answer).await;
        let (reply, failed) = match said {
            Ok(reply) => (reply, None),
            Err(error) => (Err(AnswerError::Store(error.to_string())), Some(error)),
        };
        // Whoever asked may have gone; the answer counts all the same.
        let _gone = cmd.reply.send(reply);
        failed.map_or(Ok(()), Err)
    }

    async fn answer(&mut self, answer: &Answer) -> Result<Result<i64, AnswerError>, StoreError> {
        let Some((call, open)) = self.turn.asking(&answer.ask) else {
            return Ok(Err(self.settled(&answer.ask).await?));
        };
        let (call, body) = (call.clone(), open.body.clone());
        if body.digest != answer.digest {
            return Ok(Err(AnswerError::Changed));
        }
        let local = self.gate.config.now().remote.approvals == Approvals::Local;
        if local && body.question.is_none() && answer.origin != Origin::Local {
            // No word from there counts, not a no either: the question stays for this computer.
            return Ok(Err(AnswerError::LocalOnly));
        }
        if answer.outcome != Outcome::Allow {
            let at = self.refuse(&call, &body, answer).await?;
            return Ok(Ok(at));
        }
        if let Err(error) = self.counts(answer, &body) {
            return Ok(Err(error));
        }
        let gated = self.gate.pass(&call.tool, &call.args).await?;
        let rule = match gated {
            Gated::Ask(_, pending) if pending.body.digest == body.digest => {
                let (_, rule) = pending.allowed(answer.scope);
                rule
            }
            Gated::Allow(_, grant) if *grant.digest() == body.digest => None,
            _ => {
                self.gone(&body).await?;
                return Ok(Err(AnswerError::Changed));
            }
        };
        if let Some(question) = &body.question {
            let text = words::chosen(question, answer);
            return Ok(Ok(self.told(&call, &body, answer, text).await?));
        }
        let wider = rule.is_some();
        let at = self.allow(&body, answer, rule).await?;
        if wider {
            self.release_covered().await?;
        }
        Ok(Ok(at))
    }

    /// How an ask that is not open ended.
    async fn settled(&mut self, ask: &AskId) -> Result<AnswerError, StoreError> {
        Ok(match self.gate.store.ask(ask).await? {
            Some(row) => match row.end {
                Some(end) => AnswerError::Settled {
                    how: end.how,
                    by: end.by,
                    at: end.at,
                },
                None => AnswerError::Unknown,
            },
            None => AnswerError::Unknown,
        })
    }

    /// Whether a yes from there counts, as the settings are now.
    fn counts(&self, answer: &Answer, body: &AskBody) -> Result<(), AnswerError> {
        if let Some(question) = &body.question {
            // What the person wants to say gives nobody any right, so it counts from wherever.
            return choice(question, answer);
        }
        if !answer.selected.is_empty() {
            let text = "this question has no choices: it is allowed or refused";
            return Err(AnswerError::Choice(text.to_owned()));
        }
        if answer.origin != Origin::Local {
            match self.gate.config.now().remote.approvals {
                Approvals::Local => return Err(AnswerError::LocalOnly),
                Approvals::Once if answer.scope == Scope::Always => {
                    return Err(AnswerError::Scope(answer.scope));
                }
                Approvals::Once | Approvals::Full => {}
            }
        }
        if body.scopes.contains(&answer.scope) {
            Ok(())
        } else {
            Err(AnswerError::Scope(answer.scope))
        }
    }

    async fn refuse(
        &mut self,
        call: &Call,
        body: &AskBody,
        answer: &Answer,
    ) -> Result<i64, StoreError> {
        let (how, verdict, text) = match answer.outcome {
            Outcome::Cancel => (Settled::Cancelled, "cancelled", words::closed()),
            _ if body.question.is_some() => {
                let text = words::declined(answer.note.as_deref());
                (Settled::Refused, "declined", text)
            }
            _ => (
                Settled::Refused,
                "refused",
                words::refused(answer.note.as_deref()),
            ),
        };
        let bodies = vec![
            answered(body, how, answer),
            result(&call.call, CallStatus::Refused, text),
        ];
        let line = self.line(&answer.by, &body.kind, verdict, Some(&body.digest));
        self.settle(
            bodies,
            Also {
                audit: vec![line],
                ..Also::default()
            },
        )
        .await
    }

    /// A question of the agent is answered: the person's words are the call's result.
    async fn told(
        &mut self,
        call: &Call,
        body: &AskBody,
        answer: &Answer,
        text: String,
    ) -> Result<i64, StoreError> {
        let mut settled = answered(body, Settled::Allowed, answer);
        if let Body::Answered { scope, .. } = &mut settled {
            *scope = None;
        }
        let bodies = vec![
            settled,
            Body::Started {
                call: call.call.clone(),
                digest: body.digest.clone(),
                allowed: Allowed {
                    source: "interact".to_owned(),
                    text: words::answered(),
                    r#box: String::new(),
                },
            },
            result(&call.call, CallStatus::Ok, text),
        ];
        self.settle(bodies, Also::default()).await
    }

    async fn allow(
        &mut self,
        body: &AskBody,
        answer: &Answer,
        rule: Option<Rule>,
    ) -> Result<i64, StoreError> {
        let verdict = match answer.scope {
            Scope::Once => "allowed once",
            Scope::Session => "allowed for the session",
            Scope::Always => "allowed always",
        };
        let line = self.line(&answer.by, &body.kind, verdict, Some(&body.digest));
        let rules = rule
            .into_iter()
            .map(|rule| RuleRow {
                id: rule.id,
                origin: self.facts().origin_text.clone(),
                session: (answer.scope == Scope::Session).then(|| self.facts().id.clone()),
                made: clock::now_ms(),
                by: answer.by.clone(),
                data: rule.data,
                used: None,
            })
            .collect();
        self.settle(
            vec![answered(body, Settled::Allowed, answer)],
            Also {
                rules,
                audit: vec![line],
                ..Also::default()
            },
        )
        .await
    }

    /// What was judged is not what would run any more: the call is asked about anew.
    async fn gone(&mut self, body: &AskBody) -> Result<(), StoreError> {
        let line = self.line("lembas", &body.kind, "gone", Some(&body.digest));
        self.settle(
            vec![ended(body, Settled::Gone, "lembas")],
            Also {
                audit: vec![line],
                ..Also::default()
            },
        )
        .await?;
        Ok(())
    }

    /// A rule was made: open questions that it covers need no answer of their own.
    async fn release_covered(&mut self) -> Result<(), StoreError> {
        let open: Vec<_> = self
            .turn
            .open_asks()
            .map(|(call, open)| (call.clone(), open.body.clone()))
            .collect();
        for (call, body) in open {
            if let Gated::Allow(_, grant) = self.gate.pass(&call.tool, &call.args).await?
                && *grant.digest() == body.digest
            {
                let line = self.line("a rule", &body.kind, "allowed", Some(&body.digest));
                self.settle(
                    vec![ended(&body, Settled::Allowed, "a rule just made")],
                    Also {
                        audit: vec![line],
                        ..Also::default()
                    },
                )
                .await?;
            }
        }
        Ok(())
    }

    /// Questions whose wait is over count as a no to that one call; the turn goes on.
    pub(super) async fn expire(&mut self) -> Result<(), StoreError> {
        let over: Vec<_> = self
            .turn
            .open_asks()
            .filter(|(_, open)| self.shared.waits.due(&open.body.ask) == Some(Duration::ZERO))
            .map(|(call, open)| (call.call.clone(), open.body.clone()))
            .collect();
        for (call, body) in over {
            let line = self.line("nobody", &body.kind, "expired", Some(&body.digest));
            let text = match body.question {
                Some(_) => words::unanswered(),
                None => words::expired(body.wait_ms),
            };
            let bodies = vec![
                ended(&body, Settled::Expired, "nobody"),
                result(&call, CallStatus::Refused, text),
            ];
            self.settle(
                bodies,
                Also {
                    audit: vec![line],
                    ..Also::default()
                },
            )
            .await?;
        }
        Ok(())
    }

    /// Commits an ask's end; there may be a place for the next question then.
    async fn settle(&mut self, bodies: Vec<Body>, also: Also) -> Result<i64, StoreError> {
        let items = self.commit(bodies, Durability::Disk, also).await?;
        self.surveyed = false;
        Ok(items.first().map_or_else(clock::now_ms, |i| i.time))
    }
}

/// Whether an answer to a question names what can be chosen.
fn choice(question: &Question, answer: &Answer) -> Result<(), AnswerError> {
    let wrong = |text: &str| Err(AnswerError::Choice(text.to_owned()));
    let known = |id: &String| question.options.iter().any(|option| option.id == *id);
    let selected = &answer.selected;
    if !selected.iter().all(known) {
        return wrong("the question has no such choice");
    }
    let different = selected.iter().collect::<HashSet<_>>().len();
    if different < selected.len() || (different > 1 && !question.multiple) {
        return wrong("one choice counts, or several of a question that takes several, each once");
    }
    let words = answer
        .note
        .as_deref()
        .is_some_and(|note| !note.trim().is_empty());
    match (selected.is_empty(), words && question.custom) {
        (true, false) => wrong("nothing was chosen"),
        _ => Ok(()),
    }
}

fn answered(body: &AskBody, how: Settled, answer: &Answer) -> Body {
    Body::Answered {
        ask: body.ask.clone(),
        how,
        scope: (how == Settled::Allowed).then_some(answer.scope),
        by: answer.by.clone(),
        note: answer.note.clone(),
        selected: answer.selected.clone(),
    }
}

fn ended(body: &AskBody, how: Settled, by: &str) -> Body {
    Body::Answered {
        ask: body.ask.clone(),
        how,
        scope: None,
        by: by.to_owned(),
        note: None,
        selected: Vec::new(),
    }
}
