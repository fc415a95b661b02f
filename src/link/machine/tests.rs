//! Tables of events and what follows, with time as numbers.

use super::*;

struct Bench {
    machine: Machine,
    start: Instant,
    at: Duration,
    draw: f64,
    lines: Vec<String>,
}

impl Bench {
    fn new() -> Self {
        Self {
            machine: Machine::new(),
            start: crate::clock::instant(),
            at: Duration::ZERO,
            draw: 0.5,
            lines: Vec::new(),
        }
    }

    fn step(&mut self, event: Event) -> Vec<Action> {
        let now = Now {
            at: self.start + self.at,
            wall: 1_000_000 + i64::try_from(self.at.as_millis()).unwrap(),
            draw: self.draw,
        };
        let mut actions = self.machine.step(event, now);
        actions.retain(|action| match action {
            Action::Log { text, .. } => {
                self.lines.push(text.clone());
                false
            }
            Action::Tell(state) => {
                assert_eq!(state, self.machine.state());
                false
            }
            _ => true,
        });
        actions
    }

    /// Lets time pass up to the wait's end; how long that was.
    fn wait(&mut self) -> Duration {
        let until = self.machine.wake_at().expect("it waits");
        let wait = until - (self.start + self.at);
        self.at += wait;
        assert_eq!(self.step(Event::Tick), dial());
        wait
    }

    fn pass(&mut self, seconds: u64) {
        self.at += Duration::from_secs(seconds);
    }

    fn phase(&self) -> Phase {
        self.machine.state().phase
    }

    fn linked(&mut self) {
        self.step(Event::Up);
        assert_ne!(self.phase(), Phase::Linked, "the upgrade alone is no link");
        self.step(Event::Initialized);
        assert_eq!(self.phase(), Phase::Linked);
    }
}

fn started() -> Bench {
    let mut bench = Bench::new();
    assert_eq!(bench.step(Event::Paired(true)), dial());
    bench
}

fn dial() -> Vec<Action> {
    vec![Action::Dial { take: false }]
}

fn failed(text: &str) -> Event {
    Event::Refused(Refusal::Failed { text: text.into() })
}

fn closed(code: u16, text: &str) -> Event {
    Event::Closed {
        code: Some(code),
        text: text.into(),
    }
}

#[test]
fn the_wait_doubles_up_to_thirty_seconds_and_is_drawn_from_the_whole_of_it() {
    let mut bench = started();
    let mut waits = Vec::new();
    for _ in 0..11 {
        bench.step(failed("refused"));
        waits.push(bench.wait().as_millis());
    }
    assert_eq!(
        waits,
        [
            250, 500, 500, 500, 1000, 2000, 4000, 8000, 15000, 15000, 15000
        ]
    );
    for (draw, wait) in [(0.0, 0), (0.999, 29970)] {
        bench.draw = draw;
        bench.step(failed("refused"));
        assert_eq!(bench.wait().as_millis(), wait);
    }
}

#[test]
fn a_link_that_lived_thirty_seconds_ends_the_count() {
    let mut bench = started();
    for _ in 0..10 {
        bench.step(failed("refused"));
        bench.wait();
    }
    bench.linked();
    bench.pass(29);
    bench.step(closed(1001, "stopping"));
    assert_eq!(bench.wait().as_millis(), 15000, "it lived too short");
    bench.linked();
    bench.pass(30);
    bench.step(closed(1001, "stopping"));
    assert_eq!(bench.wait().as_millis(), 250);
}

#[test]
fn what_each_refusal_leads_to() {
    use Refusal::{Held, Later, Revoked, Version};
    let secs = Duration::from_secs;
    for (refusal, phase, wait) in [
        (
            Revoked { text: "x".into() },
            Phase::Revoked,
            Some(secs(900)),
        ),
        (
            Version { theirs: Some(2) },
            Phase::Version,
            Some(secs(3600)),
        ),
        (Held { holder: "h".into() }, Phase::Replaced, None),
        (
            Later {
                wait: secs(100),
                text: "t".into(),
            },
            Phase::Offline,
            Some(secs(105)),
        ),
        (
            Later {
                wait: secs(0),
                text: "t".into(),
            },
            Phase::Offline,
            Some(Duration::from_millis(500)),
        ),
        (
            Later {
                wait: secs(99999),
                text: "t".into(),
            },
            Phase::Offline,
            Some(secs(3615)),
        ),
    ] {
        let mut bench = started();
        assert_eq!(
            bench.step(Event::Refused(refusal.clone())),
            [],
            "{refusal:?}"
        );
        assert_eq!(bench.phase(), phase, "{refusal:?}");
        assert!(!bench.machine.state().reason.is_empty());
        // Neither a wake nor a new network overrides it, a person does.
        assert_eq!(bench.step(Event::Stirred), [], "{refusal:?}");
        match wait {
            Some(wait) => assert_eq!(bench.wait(), wait, "{refusal:?}"),
            None => {
                assert_eq!(bench.machine.wake_at(), None, "{refusal:?}");
                assert_eq!(bench.step(Event::Tick), []);
                assert_eq!(bench.step(Event::Retry { take: false }), dial());
            }
        }
        bench.linked();
    }
}

#[test]
fn what_each_close_leads_to() {
    for (code, text, phase, wait) in [
        (1000, "", Phase::Offline, Some(250)),
        (1001, "stopping", Phase::Offline, Some(250)),
        (1009, "too long", Phase::Offline, Some(250)),
        (1012, "restart", Phase::Offline, Some(250)),
        (1013, "retry_after=20", Phase::Offline, Some(21_000)),
        (1013, "soon", Phase::Offline, Some(250)),
        (4001, "taken", Phase::Replaced, None),
        // A dial of ours that was let go arrived late: this process is still the one.
        (4001, "boot", Phase::Offline, Some(250)),
        (4002, "initialize", Phase::Offline, Some(250)),
        (4003, "revoked", Phase::Offline, Some(250)),
        (4004, "protocol", Phase::Version, Some(3_600_000)),
        (4004, "instance", Phase::Revoked, None),
        (3999, "?", Phase::Offline, Some(250)),
    ] {
        let mut bench = started();
        bench.linked();
        bench.pass(60);
        assert_eq!(bench.step(closed(code, text)), [], "{code} {text}");
        assert_eq!(bench.phase(), phase, "{code} {text}");
        match wait {
            Some(wait) => assert_eq!(bench.wait().as_millis(), wait, "{code} {text}"),
            None => assert_eq!(bench.machine.wake_at(), None, "{code} {text}"),
        }
    }
}

#[test]
fn changed_limits_close_and_dial_at_once() {
    let mut bench = started();
    assert_eq!(
        bench.step(Event::Redial),
        [],
        "the dial under way will say them"
    );
    bench.linked();
    let close = Action::Close {
        code: 1012,
        reason: "limits",
    };
    assert_eq!(bench.step(Event::Redial), [close]);
    assert_eq!(bench.step(Event::Redial), [], "it is closing");
    assert_eq!(
        bench.step(Event::Retry { take: false }),
        [],
        "it is closing"
    );
    assert_eq!(bench.step(closed(1012, "limits")), dial());
    bench.linked();
}

#[test]
fn a_wake_asks_first_and_dials_when_nothing_answers() {
    let mut bench = started();
    bench.linked();
    assert_eq!(
        bench.step(Event::Stirred),
        [Action::Ask(Duration::from_secs(3))]
    );
    assert_eq!(bench.step(Event::Alive(true)), []);
    assert_eq!(bench.phase(), Phase::Linked);
    bench.step(Event::Stirred);
    let both = [Action::Drop, Action::Dial { take: false }];
    assert_eq!(bench.step(Event::Alive(false)), both);
    assert_eq!(bench.phase(), Phase::Dialling);
    assert_eq!(
        bench.step(closed(1001, "late")),
        [],
        "that socket is nobody's any more"
    );
}

#[test]
fn a_wake_or_a_person_ends_the_wait() {
    for event in [Event::Stirred, Event::Retry { take: false }] {
        let mut bench = started();
        bench.step(failed("no route"));
        assert_eq!(bench.step(event.clone()), dial());
        assert_eq!(bench.phase(), Phase::Dialling);
        // The wait that was is void.
        bench.pass(100);
        assert_eq!(bench.step(Event::Tick), []);
    }
    let mut bench = started();
    assert_eq!(
        bench.step(Event::Stirred),
        [Action::Abandon, Action::Dial { take: false }]
    );
    assert_eq!(
        bench.step(Event::Retry { take: false }),
        [],
        "one dial at a time"
    );
}

#[test]
fn a_person_takes_the_link_from_another_process() {
    let mut bench = started();
    bench.step(Event::Refused(Refusal::Held {
        holder: String::new(),
    }));
    assert_eq!(
        bench.step(Event::Retry { take: true }),
        [Action::Dial { take: true }]
    );
    bench.linked();
    bench.step(closed(4001, "taken"));
    assert_eq!(bench.phase(), Phase::Replaced);
    bench.pass(100_000);
    assert_eq!(bench.step(Event::Tick), []);
}

#[test]
fn a_token_refused_before_its_first_use_is_replaced_at_once() {
    let mut bench = started();
    assert_eq!(bench.step(Event::Refused(Refusal::Superseded)), dial());
    let revoked = Refusal::Revoked {
        text: String::new(),
    };
    assert_eq!(bench.step(Event::Refused(revoked)), []);
    assert_eq!(bench.phase(), Phase::Revoked);
}

#[test]
fn a_revoked_computer_looks_slowly_and_stays_revoked_while_nobody_answers() {
    let mut bench = started();
    bench.step(Event::Refused(Refusal::Revoked {
        text: "gone".into(),
    }));
    let since = bench.machine.state().since;
    for _ in 0..4 {
        assert_eq!(bench.wait().as_secs(), 900);
        assert_eq!(bench.phase(), Phase::Revoked);
        bench.step(failed("no route"));
        assert_eq!(bench.phase(), Phase::Revoked);
        assert!(bench.machine.state().reason.contains("gone"));
        assert_eq!(bench.machine.state().since, since);
    }
    bench.wait();
    bench.step(Event::Up);
    bench.step(Event::Initialized);
    assert_eq!(bench.phase(), Phase::Linked);
    // And a new pairing dials at once.
    bench.step(Event::Refused(Refusal::Failed {
        text: "late".into(),
    }));
    assert_eq!(bench.phase(), Phase::Linked, "no dial was under way");
}

#[test]
fn pairing_anew_and_unlinking_act_in_every_state() {
    let close = |code, reason| Action::Close { code, reason };
    let mut bench = started();
    let both = [Action::Abandon, Action::Dial { take: false }];
    assert_eq!(bench.step(Event::Paired(true)), both);
    bench.step(failed("x"));
    assert_eq!(bench.step(Event::Paired(true)), dial());
    bench.linked();
    assert_eq!(bench.step(Event::Paired(true)), [close(1000, "paired")]);
    assert_eq!(bench.step(closed(1000, "paired")), dial());
    bench.linked();
    assert_eq!(bench.step(Event::Paired(false)), [close(1000, "unlinked")]);
    assert_eq!(bench.phase(), Phase::Never);
    assert_eq!(bench.step(closed(1000, "unlinked")), []);
    assert_eq!(bench.step(Event::Retry { take: false }), []);
    assert_eq!(bench.step(Event::Stirred), []);
    assert_eq!(bench.step(Event::Paired(true)), dial());
    assert_eq!(bench.step(Event::Paired(false)), [Action::Abandon]);
}

#[test]
fn an_hour_of_refused_dials_is_a_few_lines_of_log() {
    let mut bench = started();
    let mut tries = 0;
    while bench.at < Duration::from_secs(3600) {
        tries += 1;
        // Reasons that change each time.
        bench.step(failed(["refused", "timed out", "no route"][tries % 3]));
        bench.wait();
    }
    assert!(tries > 200);
    assert!(
        bench.lines.len() < 20,
        "{}: {:#?}",
        bench.lines.len(),
        bench.lines
    );
    bench.linked();
    assert_eq!(bench.lines.last().unwrap(), "link: linked");
}

#[test]
fn the_state_says_since_when_and_until_when() {
    let mut bench = started();
    bench.linked();
    let linked = bench.machine.state().since;
    bench.pass(100);
    bench.step(closed(1001, "stopping"));
    let state = bench.machine.state().clone();
    assert_eq!(state.since, linked + 100_000);
    assert_eq!(state.next_try, Some(state.since + 250));
    assert_eq!(state.last_linked, Some(linked));
    for _ in 0..3 {
        bench.wait();
        bench.step(failed("refused"));
        assert_eq!(
            bench.machine.state().since,
            state.since,
            "offline since the drop"
        );
    }
}

/// The figures of a whole outage, over many draws: half of all devices are back within 10 s of its
/// end, 95 of 100 within 25 s, and half within a second after outages of up to two seconds.
#[test]
fn reconnecting_is_as_fast_as_promised() {
    use rand::{Rng as _, SeedableRng as _};
    let seed: u64 = rand::rng().random();
    println!("seed {seed}");
    let mut rng = rand::rngs::StdRng::seed_from_u64(seed);
    for (outage, median, high) in [(2.0, 1.0, 8.0), (60.0, 10.0, 25.0), (3600.0, 10.0, 25.0)] {
        let most = outage;
        let mut late: Vec<f64> = (0..2000)
            .map(|_| {
                let outage = if most > 2.0 {
                    most
                } else {
                    most * rng.random::<f64>()
                };
                let mut bench = started();
                bench.linked();
                bench.pass(60);
                let down = bench.at;
                bench.draw = rng.random();
                bench.step(closed(1001, "stopping"));
                loop {
                    bench.wait();
                    let out = (bench.at - down).as_secs_f64();
                    if out >= outage {
                        return out - outage;
                    }
                    bench.draw = rng.random();
                    bench.step(failed("refused"));
                }
            })
            .collect();
        late.sort_by(f64::total_cmp);
        println!(
            "after {outage} s: median {:.2}, p95 {:.2}",
            late[1000], late[1900]
        );
        assert!(
            late[1000] <= median,
            "after {outage}: median {}",
            late[1000]
        );
        assert!(late[1900] <= high, "after {outage}: p95 {}", late[1900]);
    }
}
