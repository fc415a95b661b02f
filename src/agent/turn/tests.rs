use super::*;
use crate::store::item::{Allowed, Part, Scope, Source};

struct Build(Turn, u64);

impl Build {
    fn new(run: Option<Value>) -> Self {
        Self(Turn::default(), 0).add(Body::Prompt {
            key: "k".into(),
            source: Source::Person,
            parts: vec![Part::Text { text: "hi".into() }],
            note: None,
            run,
        })
    }
    fn add(mut self, body: Body) -> Self {
        self.1 += 1;
        self.0.apply(&Item {
            seq: Seq(self.1),
            turn: 1,
            time: 5,
            body,
        });
        self
    }
    fn step(self) -> Self {
        self.add(Body::Step {
            model: "m".into(),
            note: None,
        })
    }
    fn text(self, text: &str) -> Self {
        self.add(Body::Message { text: text.into() })
    }
    fn call(self, id: &str) -> Self {
        self.call_with(id, "{}")
    }
    /// Call 1 with arguments of its own.
    fn other(self, n: u64) -> Self {
        self.call_with("1", &n.to_string())
    }
    fn call_with(self, id: &str, args: &str) -> Self {
        self.add(Body::Call {
            call: CallId::new(id),
            model_call: "x".into(),
            tool: "bash".into(),
            args: args.into(),
            title: String::new(),
            block: "shell".into(),
            locations: vec![],
        })
    }
    fn sampled(self, finish: &str) -> Self {
        self.add(Body::Sampled {
            tokens: Tokens {
                input: 10,
                cached_input: 4,
                output: 2,
            },
            finish: finish.into(),
            ms: 1,
        })
    }
    fn ask(self, call: &str, ask: &str) -> Self {
        let mut body = crate::store::device::tests::ask(ask);
        body.call = CallId::new(call);
        self.add(Body::Ask(Box::new(body)))
    }
    fn answered(self, ask: &str, how: Settled) -> Self {
        self.add(Body::Answered {
            ask: AskId::new(ask),
            how,
            scope: Some(Scope::Once),
            by: "you".into(),
            note: None,
            selected: vec![],
        })
    }
    fn started(self, call: &str) -> Self {
        self.add(Body::Started {
            call: CallId::new(call),
            digest: Digest::of(b"x"),
            allowed: Allowed {
                source: "once".into(),
                text: String::new(),
                r#box: String::new(),
            },
        })
    }
    fn result(self, call: &str) -> Self {
        self.add(result(&CallId::new(call), CallStatus::Ok, "r".into()))
    }
    fn next(&self) -> Next {
        self.0.next(200)
    }
}

/// The next request, for the turn as it stands.
fn sample(turn: &Build) -> Next {
    let steps = turn.0.steps + u32::from(!turn.0.blank());
    Next::Sample {
        left: 200 - steps,
        nudge: None,
    }
}

fn ends(stop: Stop) -> Next {
    Next::End { stop, reason: None }
}

#[test]
fn a_turn_samples_runs_and_ends() {
    let turn = Build::new(None);
    assert_eq!(turn.next(), sample(&turn));
    let turn = turn.step();
    assert!(turn.0.blank());
    assert_eq!(turn.next(), sample(&turn));
    let turn = turn.text("look").call("1").call("2").sampled("tool_calls");
    assert_eq!(turn.next(), Next::Calls);
    let turn = turn.started("1").result("1");
    assert_eq!(turn.next(), Next::Calls);
    assert_eq!(turn.0.front().unwrap().call.as_str(), "2");
    let turn = turn.started("2").result("2");
    assert_eq!(turn.next(), sample(&turn));
    let turn = turn.step().text("done").sampled("stop");
    assert_eq!(turn.next(), ends(Stop::EndTurn));
    assert_eq!(turn.0.tokens.input, 20);
}

#[test]
fn how_the_answer_finished_is_how_the_turn_ends() {
    for (finish, stop) in [
        ("length", Stop::MaxTokens),
        ("content_filter", Stop::Refusal),
        ("stop", Stop::EndTurn),
        ("anything", Stop::EndTurn),
    ] {
        let turn = Build::new(None).step().text("t").sampled(finish);
        assert_eq!(turn.next(), ends(stop), "{finish}");
    }
    let nothing = Build::new(None).step().sampled("stop");
    let nudged = |turn: &Build| {
        matches!(
            turn.next(),
            Next::Sample {
                nudge: Some(Nudge::Empty),
                ..
            }
        )
    };
    assert!(nudged(&nothing));
    let again = nothing.step().sampled("stop");
    assert!(nudged(&again));
    let third = again.step().sampled("stop");
    assert_eq!(third.next(), end(Stop::EndTurn, words::ended("nothing")));
}

#[test]
fn an_answer_that_was_cut_is_asked_for_again() {
    let turn = Build::new(None).step().text("ha");
    assert!(!turn.0.blank());
    assert_eq!(turn.next(), sample(&turn));
    let turn = turn.step().text("hallo").sampled("stop");
    assert_eq!(turn.next(), ends(Stop::EndTurn));
}

#[test]
fn a_yes_holds_for_its_digest_and_a_gone_ask_is_made_again() {
    let turn = Build::new(None)
        .step()
        .call("1")
        .sampled("tool_calls")
        .ask("1", "a");
    assert_eq!(turn.0.open_asks().count(), 1);
    let yes = Build(turn.0.clone(), turn.1).answered("a", Settled::Allowed);
    assert_eq!(yes.0.calls[0].place, Place::Yes(Digest::of(b"x")));
    let gone = turn.answered("a", Settled::Gone);
    assert_eq!(gone.0.calls[0].place, Place::Made);
    assert_eq!(gone.next(), Next::Calls);
}

#[test]
fn the_fourth_refusal_ends_the_turn() {
    let mut turn = Build::new(None);
    for n in 1..=4 {
        assert_eq!(turn.next(), sample(&turn), "before refusal {n}");
        let (call, ask) = (format!("c{n}"), format!("a{n}"));
        let how = if n == 2 {
            Settled::Expired
        } else {
            Settled::Refused
        };
        turn = turn
            .step()
            .call(&call)
            .call("other")
            .sampled("tool_calls")
            .ask(&call, &ask)
            .answered(&ask, how)
            .result(&call)
            .started("other")
            .result("other");
    }
    assert_eq!(turn.next(), end(Stop::EndTurn, words::too_many_refusals()));
}

#[test]
fn steps_are_counted_and_the_last_one_concludes() {
    let mut turn = Build::new(None);
    for n in 0..3 {
        assert_eq!(
            turn.0.next(3),
            Next::Sample {
                left: 2 - n,
                nudge: None
            }
        );
        turn = turn.step();
        assert_eq!(
            turn.0.next(3),
            Next::Sample {
                left: 2 - n,
                nudge: None
            }
        );
        turn = turn.call("1").sampled("tool_calls");
        if n < 2 {
            turn = turn.started("1").result("1");
        }
    }
    assert_eq!(
        turn.0.next(3),
        end(Stop::MaxTurnRequests, words::steps_used(3))
    );
}

#[test]
fn steps_in_which_nothing_can_run_are_bounded() {
    let mut turn = Build::new(None);
    let fruitless = words::numbers().fruitless;
    for n in 0..fruitless {
        assert_eq!(turn.next(), sample(&turn), "step {n}");
        turn = turn.step().other(n).sampled("tool_calls").result("1");
    }
    assert_eq!(turn.next(), end(Stop::EndTurn, words::fruitless()));
    let mut turn = Build::new(None);
    for n in 0..3 * fruitless {
        turn = turn.step().other(n).sampled("tool_calls");
        if n % 5 == 0 {
            turn = turn.started("1");
        }
        turn = turn.result("1");
    }
    assert_eq!(turn.next(), sample(&turn));
}

#[test]
fn what_was_running_is_known_after_a_restart() {
    let turn = Build::new(None)
        .step()
        .call("1")
        .call("2")
        .sampled("tool_calls")
        .started("1");
    assert_eq!(turn.0.running(), [CallId::new("1")]);
    assert!(turn.result("1").0.running().is_empty());
}

#[test]
fn closing_ends_every_ask_and_every_call() {
    let turn = Build::new(None)
        .step()
        .call("1")
        .call("2")
        .call("3")
        .sampled("tool_calls")
        .result("1")
        .ask("2", "a");
    let bodies = turn.0.closing(Stop::Cancelled, None, "stop");
    let kinds: Vec<_> = bodies
        .iter()
        .map(crate::store::device::items::kind)
        .collect();
    assert_eq!(kinds, ["answered", "result", "result", "turn_end"]);
}

#[test]
fn a_scheduled_run_says_how_it_went() {
    let run = |text: &str, stop, reason: Option<&str>| {
        let turn = Build::new(Some(json!({ "schedule": "s", "run": "r" })))
            .step()
            .text(text)
            .sampled("stop");
        match turn.0.closing(stop, reason.map(Into::into), "x").pop() {
            Some(Body::TurnEnd { run: Some(run), .. }) => (
                run["status"].as_str().unwrap().to_owned(),
                run["reply"].as_str().unwrap().to_owned(),
            ),
            other => panic!("{other:?}"),
        }
    };
    let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    assert_eq!(run("All well", Stop::EndTurn, None), pair("ok", "All well"));
    assert_eq!(run("[SILENT]\nx", Stop::EndTurn, None), pair("silent", "x"));
    assert_eq!(run("", Stop::EndTurn, None), pair("failed", ""));
    assert_eq!(run("a", Stop::Cancelled, None), pair("cancelled", "a"));
    assert_eq!(run("a", Stop::Failed, Some("down")), pair("failed", "a"));
    assert_eq!(run("a", Stop::EndTurn, Some("why")), pair("failed", "a"));
}

#[test]
fn the_same_call_with_the_same_result_is_not_run_for_ever() {
    let same = |turn: Build, ran: bool| {
        let turn = turn.step().call("1").sampled("tool_calls");
        if ran {
            turn.started("1").result("1")
        } else {
            turn.result("1")
        }
    };
    let last = |turn: &Build| turn.0.repeated(&turn.0.calls[0]);
    let mut turn = Build::new(None);
    for _ in 0..3 {
        turn = same(turn, true);
    }
    assert_eq!(last(&turn), Some(4));
    for times in 5..=7 {
        assert_eq!(turn.next(), sample(&turn));
        turn = same(turn, false);
        assert_eq!(last(&turn), Some(times));
    }
    assert_eq!(turn.next(), end(Stop::EndTurn, words::ended("stuck")));
    // Something else in between begins anew, and so does another result.
    let mut turn = Build::new(None);
    for n in 0..9 {
        turn = same(turn, true).step().other(n).sampled("tool_calls");
        turn = turn.started("1").result("1");
        assert_eq!(last(&turn), None);
    }
}

#[test]
fn a_call_written_as_text_is_told_from_one_that_is_talked_about() {
    for text in [
        "I will look.\n<tool_call>\n{\"name\": \"bash\", \"arguments\": {}}\n</tool_call>",
        "<function=bash><parameter=command>ls</parameter></function>",
        "[TOOL_CALLS][{\"name\":\"bash\",\"arguments\":{}}]",
        "```json\n{\"name\": \"bash\", \"arguments\": {\"command\": \"ls\"}}\n```",
        " {\"name\":\"bash\",\"parameters\":{}} ",
    ] {
        let turn = Build::new(None).step().text(text).sampled("stop");
        assert!(
            matches!(
                turn.next(),
                Next::Sample {
                    nudge: Some(Nudge::InText),
                    ..
                }
            ),
            "{text}"
        );
        let turn = turn.step().text(text).sampled("stop");
        let turn = turn.step().text(text).sampled("stop");
        assert_eq!(turn.next(), ends(Stop::EndTurn), "{text}");
    }
    for text in [
        "Models write <tool_call> around a call, and </tool_call> behind it.",
        "{\"name\": \"lembas\", \"version\": 1}",
        "Use `<function=x>`.",
    ] {
        let turn = Build::new(None).step().text(text).sampled("stop");
        assert_eq!(turn.next(), ends(Stop::EndTurn), "{text}");
    }
}
