use super::*;
use crate::ids::Seq;
use crate::store::item::{CallStatus, Source, Stop, Tokens};

struct Build {
    items: Vec<Item>,
    turn: u32,
}

impl Build {
    fn new() -> Self {
        Self {
            items: vec![],
            turn: 0,
        }
    }
    fn add(mut self, body: Body) -> Self {
        if matches!(body, Body::Prompt { .. }) {
            self.turn += 1;
        }
        self.items.push(Item {
            seq: Seq(self.items.len() as u64 + 1),
            turn: self.turn,
            time: 0,
            body,
        });
        self
    }
    fn prompt(self, text: &str, note: Option<&str>) -> Self {
        self.add(Body::Prompt {
            key: "k".into(),
            source: Source::Person,
            parts: vec![Part::Text { text: text.into() }],
            note: note.map(Into::into),
            run: None,
        })
    }
    fn step(self) -> Self {
        self.add(Body::Step {
            model: "m".into(),
            note: None,
        })
    }
    fn thought(self, text: &str) -> Self {
        self.add(Body::Thought { text: text.into() })
    }
    fn message(self, text: &str) -> Self {
        self.add(Body::Message { text: text.into() })
    }
    fn call(self, id: &str) -> Self {
        self.add(Body::Call {
            call: CallId::new(id),
            model_call: format!("m{id}"),
            tool: "bash".into(),
            args: "{}".into(),
            title: String::new(),
            block: "shell".into(),
            locations: vec![],
        })
    }
    fn sampled(self) -> Self {
        self.add(Body::Sampled {
            tokens: Tokens::default(),
            finish: "stop".into(),
            ms: 1,
        })
    }
    fn result(self, id: &str, text: &str) -> Self {
        self.add(Body::Result {
            call: CallId::new(id),
            status: CallStatus::Ok,
            text: text.into(),
            diff: None,
            path: None,
            exit: None,
            bytes: 0,
            spill: None,
            saw: None,
            ms: 1,
        })
    }
    fn end(self, stop: Stop) -> Self {
        self.add(Body::TurnEnd {
            stop,
            reason: None,
            tokens: Tokens::default(),
            run: None,
        })
    }
    fn show(self) -> String {
        History::new(self.items)
            .messages(true)
            .iter()
            .map(|m| match m {
                Message::User(parts) => format!("user {parts:?}\n"),
                Message::Assistant {
                    text,
                    reasoning,
                    calls,
                } => format!(
                    "assistant {text:?} {:?} {:?}\n",
                    reasoning.as_deref().unwrap_or("-"),
                    calls.iter().map(|c| c.id.as_str()).collect::<Vec<_>>()
                ),
                Message::Tool { call, text } => format!("tool {call} {text:?}\n"),
            })
            .collect()
    }
}

#[test]
fn results_follow_their_calls_in_the_order_of_the_calls() {
    let shown = Build::new()
        .prompt("hi", Some("Today is 2025-03-09."))
        .step()
        .message("Let me ")
        .message("look.")
        .call("0001")
        .call("0002")
        .sampled()
        .result("0002", "two")
        .result("0001", "one")
        .step()
        .message("Done.")
        .sampled()
        .end(Stop::EndTurn)
        .show();
    insta::assert_snapshot!(shown, @r#"
    user [Text("<session-note>\nToday is 2025-03-09.\n</session-note>\n\nhi")]
    assistant "Let me look." "-" ["m0001", "m0002"]
    tool m0001 "[#0001]\none"
    tool m0002 "[#0002]\ntwo"
    assistant "Done." "-" []
    "#);
}

#[test]
fn reasoning_goes_back_during_its_turn_only() {
    let first = Build::new()
        .prompt("a", None)
        .step()
        .thought("old")
        .call("0001")
        .sampled()
        .result("0001", "r");
    let going_on = || Build {
        items: first.items.clone(),
        turn: 1,
    };
    for shown in [
        going_on().show(),
        going_on().step().show(),
        going_on().step().call("0009").sampled().show(),
    ] {
        assert!(shown.contains("\"old\""), "{shown}");
    }
    let later = first
        .step()
        .message("b")
        .sampled()
        .end(Stop::EndTurn)
        .prompt("c", None)
        .step()
        .thought("new")
        .call("0002")
        .sampled()
        .result("0002", "r")
        .show();
    assert!(
        !later.contains("\"old\"") && later.contains("\"new\""),
        "{later}"
    );
}

#[test]
fn an_answer_asked_for_again_counts_once_and_a_stopped_one_is_kept() {
    let shown = Build::new()
        .prompt("a", None)
        .step()
        .message("cut o")
        .step()
        .message("whole")
        .sampled()
        .end(Stop::EndTurn)
        .prompt("b", None)
        .step()
        .message("stopped he")
        .end(Stop::Cancelled)
        .prompt("c", None)
        .step()
        .call("0001")
        .sampled()
        .end(Stop::Cancelled)
        .show();
    insta::assert_snapshot!(shown, @r#"
    user [Text("a")]
    assistant "whole" "-" []
    user [Text("b")]
    assistant "stopped he" "-" []
    user [Text("c")]
    assistant "" "-" ["m0001"]
    tool m0001 "Not run: the turn ended before this call."
    "#);
}

#[test]
fn a_longer_history_begins_with_the_bytes_of_the_shorter() {
    let first = Build::new()
        .prompt("a", Some("note"))
        .step()
        .message("x")
        .call("0001")
        .sampled()
        .result("0001", "r");
    let before = Build {
        items: first.items.clone(),
        turn: 1,
    }
    .show();
    let after = first
        .step()
        .message("y")
        .sampled()
        .end(Stop::EndTurn)
        .show();
    assert!(after.starts_with(&before));
}

#[test]
fn parts_that_are_no_text_are_sent_as_what_they_are() {
    let shown = Build::new()
        .add(Body::Prompt {
            key: "k".into(),
            source: Source::Person,
            parts: vec![
                Part::Text { text: "see".into() },
                Part::Image {
                    mime: "image/png".into(),
                    data: "AA".into(),
                },
                Part::Link {
                    uri: "file:///a".into(),
                    name: "a".into(),
                },
            ],
            note: None,
            run: None,
        })
        .show();
    insta::assert_snapshot!(shown, @r#"user [Text("see"), Image { mime: "image/png", data: "AA" }, Text("[a](file:///a)")]"#);
}
