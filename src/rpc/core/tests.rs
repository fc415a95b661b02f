//! Two cores joined by two pipes, driven by random schedules and compared with what must hold.

use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;
use serde_json::json;

use super::*;

/// One end: a core, what it has written, and what it saw.
struct End {
    core: Core,
    out: VecDeque<String>,
    next: i64,
    /// Requests of this end: what became of each.
    asked: BTreeMap<i64, Fate>,
    /// Calls from the other side that run here, with their number, and whether they were cancelled.
    running: Vec<(Id, u64, bool)>,
    /// Numbers of everything the other side sent and this one heard, in order.
    heard: Vec<u64>,
    sent: u64,
    answered: usize,
    called: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Waiting,
    Dropped,
    /// The number that the answer carried.
    Answered(u64),
}

impl End {
    fn new(calls: usize) -> Self {
        Self {
            core: Core::new(calls),
            out: VecDeque::new(),
            next: 1,
            asked: BTreeMap::new(),
            running: Vec::new(),
            heard: Vec::new(),
            sent: 0,
            answered: 0,
            called: 0,
        }
    }

    fn number(&mut self) -> u64 {
        self.sent += 1;
        self.sent
    }

    fn ask(&mut self) {
        let id = self.next;
        self.next += 1;
        assert_eq!(self.core.step(Event::Asked(id)), []);
        self.asked.insert(id, Fate::Waiting);
        let number = self.number();
        let params = json!({ "n": number });
        self.out
            .push_back(message::asking(Some(id), "ask", &params));
    }

    fn tell(&mut self) {
        let number = self.number();
        let frame = message::asking(None, "tell", &json!({ "n": number }));
        self.out.push_back(frame);
    }

    fn drop_one(&mut self, pick: usize) {
        let waiting = self.asked.iter().filter(|(_, f)| **f == Fate::Waiting);
        let ids: Vec<i64> = waiting.map(|(id, _)| *id).collect();
        if ids.is_empty() {
            return;
        }
        let id = ids[pick % ids.len()];
        self.asked.insert(id, Fate::Dropped);
        self.act(Event::Dropped(id));
    }

    fn answer_one(&mut self, pick: usize) {
        if self.running.is_empty() {
            return;
        }
        let (id, _, _) = self.running.remove(pick % self.running.len());
        let number = self.number();
        let frame = message::answer(Some(&id), Ok(&json!({ "n": number })));
        self.act(Event::Answered { id, ok: true });
        self.answered += 1;
        self.out.push_back(frame);
    }

    fn act(&mut self, event: Event) {
        for action in self.core.step(event) {
            match action {
                Action::Write(frame) => self.out.push_back(frame),
                Action::Call {
                    id, params, order, ..
                } => {
                    let n = params["n"].as_u64().unwrap();
                    self.heard.push(n);
                    assert!(
                        self.running
                            .iter()
                            .all(|(other, o, _)| *other != id && *o < order)
                    );
                    self.running.push((id, order, false));
                    self.called += 1;
                }
                Action::Notice { params, .. } => self.heard.push(params["n"].as_u64().unwrap()),
                Action::Cancel(id) => {
                    let call = self.running.iter_mut().find(|(other, ..)| *other == id);
                    let call = call.expect("only a running call is cancelled");
                    assert!(!call.2, "a call is cancelled once");
                    call.2 = true;
                }
                Action::Resolve { id, outcome } => {
                    let fate = self.asked.get_mut(&id).unwrap();
                    assert_eq!(*fate, Fate::Waiting, "one answer for each request");
                    let n = outcome.unwrap().unwrap()["n"].as_u64().unwrap();
                    *fate = Fate::Answered(n);
                    self.heard.push(n);
                }
                Action::Open => {}
                Action::Stray(id) => panic!("nobody sent a stray answer: {id}"),
                Action::Close { .. } => panic!("nothing here closes"),
            }
        }
    }
}

#[derive(Clone, Debug)]
enum Move {
    Ask,
    Tell,
    Drop(usize),
    Answer(usize),
    Deliver,
}

fn moves() -> impl Strategy<Value = Vec<(bool, Move)>> {
    let one = prop_oneof![
        2 => Just(Move::Ask),
        2 => Just(Move::Tell),
        1 => any::<usize>().prop_map(Move::Drop),
        2 => any::<usize>().prop_map(Move::Answer),
        4 => Just(Move::Deliver),
    ];
    prop::collection::vec((any::<bool>(), one), 0..200)
}

fn deliver(from: &mut End, to: &mut End) -> bool {
    let Some(frame) = from.out.pop_front() else {
        return false;
    };
    to.act(Event::Frame(frame));
    true
}

proptest! {
    #[test]
    fn every_request_has_one_fate_and_order_holds(moves in moves()) {
        let mut ends = [End::new(1000), End::new(1000)];
        for (second, action) in moves {
            let [left, right] = &mut ends;
            let (it, other) = if second { (right, left) } else { (left, right) };
            match action {
                Move::Ask => it.ask(),
                Move::Tell => it.tell(),
                Move::Drop(pick) => it.drop_one(pick),
                Move::Answer(pick) => it.answer_one(pick),
                Move::Deliver => { deliver(it, other); }
            }
        }
        // Let everything arrive and be answered.
        let [left, right] = &mut ends;
        loop {
            while deliver(left, right) | deliver(right, left) {}
            if left.running.is_empty() && right.running.is_empty() {
                break;
            }
            left.answer_one(0);
            right.answer_one(0);
        }
        for (it, other) in [(&*left, &*right), (&*right, &*left)] {
            prop_assert!(it.asked.values().all(|fate| *fate != Fate::Waiting));
            prop_assert_eq!(other.called, it.asked.len(), "each request was one call");
            prop_assert_eq!(other.answered, it.asked.len(), "a cancelled call is answered too");
            // What was heard is what was sent, in order, but for answers nobody wanted any more.
            prop_assert!(it.heard.is_sorted(), "{:?}", it.heard);
            let dropped = it.asked.values().filter(|fate| **fate == Fate::Dropped).count();
            prop_assert_eq!(it.heard.len() + dropped, usize::try_from(other.sent).unwrap());
            prop_assert!(it.core.waiting.is_empty() && it.core.cancelled.is_empty());
            prop_assert!(it.core.running.is_empty());
        }
    }

    #[test]
    fn no_frame_makes_it_fail(frames in prop::collection::vec("[{}\\[\\]\",:a-c0-2 ]{0,40}", 0..40)) {
        let mut core = Core::new(2);
        for frame in frames {
            let actions = core.step(Event::Frame(frame));
            prop_assert!(actions.len() <= 2);
        }
    }
}

fn frame(text: &str) -> Event {
    Event::Frame(text.into())
}

fn call(id: i64) -> Event {
    frame(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#))
}

fn written(actions: &[Action]) -> Vec<Value> {
    let frames = actions.iter().filter_map(|action| match action {
        Action::Write(frame) => Some(serde_json::from_str(frame).unwrap()),
        _ => None,
    });
    frames.collect()
}

#[test]
fn a_call_over_the_bound_is_busy_and_goes_when_another_ended() {
    let mut core = Core::new(1);
    assert!(matches!(core.step(call(1))[..], [Action::Call { .. }]));
    let busy = written(&core.step(call(2)));
    assert_eq!(busy[0]["error"]["code"], -32052);
    assert_eq!(busy[0]["id"], 2);
    core.step(Event::Answered {
        id: Id::Number(1),
        ok: false,
    });
    assert!(matches!(core.step(call(2))[..], [Action::Call { .. }]));
}

#[test]
fn an_id_that_is_running_is_refused_and_the_running_call_goes_on() {
    let mut core = Core::new(9);
    core.step(call(1));
    assert_eq!(written(&core.step(call(1)))[0]["error"]["code"], -32600);
    assert!(core.running.contains(&Id::Number(1)));
    core.step(Event::Answered {
        id: Id::Number(1),
        ok: true,
    });
    assert!(matches!(core.step(call(1))[..], [Action::Call { .. }]));
}

#[test]
fn a_batch_is_one_refusal_without_an_id() {
    let mut core = Core::new(9);
    let answers = written(&core.step(frame(
        r#"[{"jsonrpc":"2.0","id":1,"method":"m"},{"jsonrpc":"2.0","id":2,"method":"m"}]"#,
    )));
    assert_eq!(answers.len(), 1);
    assert_eq!(answers[0]["error"]["code"], -32600);
    assert_eq!(answers[0]["id"], Value::Null);
}

#[test]
fn unknown_and_second_answers_are_ignored_with_few_log_lines() {
    let mut core = Core::new(9);
    core.step(Event::Asked(1));
    let answer = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    assert!(matches!(
        core.step(frame(answer))[..],
        [Action::Open, Action::Resolve { .. }]
    ));
    let mut lines = 0;
    for _ in 0..100 {
        let actions = core.step(frame(answer));
        assert!(
            actions
                .iter()
                .all(|action| matches!(action, Action::Stray(_)))
        );
        lines += actions.len();
    }
    assert_eq!(lines, 8);
    assert!(
        core.step(frame(r#"{"jsonrpc":"2.0","id":"1","result":{}}"#))
            .is_empty()
    );
}

#[test]
fn cancelled_requests_are_remembered_within_bounds() {
    let mut core = Core::new(9);
    for id in 1..=3000 {
        core.step(Event::Asked(id));
        let cancel = written(&core.step(Event::Dropped(id)));
        assert_eq!(cancel[0]["params"]["requestId"], id);
        assert!(core.step(Event::Dropped(id)).is_empty(), "told once");
    }
    assert_eq!(core.waiting.len(), 1024);
    assert!(
        core.step(frame(r#"{"jsonrpc":"2.0","id":3000,"result":1}"#))
            .is_empty()
    );
    let forgotten = core.step(frame(r#"{"jsonrpc":"2.0","id":1,"result":1}"#));
    assert!(matches!(forgotten[..], [Action::Stray(_)]));
}

#[test]
fn cancelling_knows_string_ids_and_ignores_what_is_not_running() {
    let mut core = Core::new(9);
    let cancel = |id: &str| {
        frame(&format!(
            r#"{{"jsonrpc":"2.0","method":"$/cancel_request","params":{{"requestId":{id}}}}}"#
        ))
    };
    core.step(frame(r#"{"jsonrpc":"2.0","id":"a","method":"m"}"#));
    assert_eq!(
        core.step(cancel("\"a\"")),
        [Action::Cancel(Id::Text("a".into()))]
    );
    assert!(core.step(cancel("1")).is_empty());
    assert!(core.step(cancel("null")).is_empty());
    assert!(
        core.step(frame(r#"{"jsonrpc":"2.0","method":"$/cancel_request"}"#))
            .is_empty()
    );
}

#[test]
fn a_frame_too_long_is_answered_where_its_id_can_be_read_and_closes() {
    let too_long = |head: &str, over| Event::TooLong {
        head: head.into(),
        bytes: 9,
        over,
    };
    let mut core = Core::new(9);
    let actions = core.step(too_long(
        r#"{"jsonrpc":"2.0","id":5,"method":"m","par"#,
        true,
    ));
    assert_eq!(written(&actions)[0]["id"], 5);
    assert!(matches!(actions[1], Action::Close { code: 1009, .. }));
    let actions = core.step(too_long("{\"method", true));
    assert!(matches!(actions[..], [Action::Close { code: 1009, .. }]));
    let actions = core.step(too_long("{\"method", false));
    assert_eq!(written(&actions)[0]["id"], Value::Null);
    assert_eq!(actions.len(), 1, "a stream of lines goes on");
}
