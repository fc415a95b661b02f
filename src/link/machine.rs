//! When to dial, when to wait and when to stop: the link as a state machine. One event in, actions
//! out; it does no I/O and reads no clock (spec/acp.md section 4).
//!
//! One dial or one socket at a time: there is one owner of reconnecting, and what fails while a
//! dial is under way does not start another.

mod tell;
mod words;

use std::time::Duration;

use super::state::{LinkState, Phase};
use super::ws::code;
use crate::clock::Instant;

/// A link that lived this long ends the count of failures.
const LIVED: Duration = Duration::from_secs(30);
/// How often a device that is linked no more looks again, and one of another protocol.
const LOOK_REVOKED: Duration = Duration::from_secs(15 * 60);
const LOOK_VERSION: Duration = Duration::from_secs(60 * 60);
/// How long the other side has to answer after a wake or a change of the network.
const SIGN_OF_LIFE: Duration = Duration::from_secs(3);

/// The moment of a step: time on both clocks, and a number in [0, 1) drawn for it.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    pub at: Instant,
    /// Milliseconds since the epoch.
    pub wall: i64,
    pub draw: f64,
}

/// How a dial failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// 401 with the product's own body.
    Revoked { text: String },
    /// The same of a token that was not used yet: the one before it counts again.
    Superseded,
    /// 409: another process holds the link.
    Held { holder: String },
    /// 426, or the handshake.
    Version { theirs: Option<u64> },
    /// 429 or 503.
    Later { wait: Duration, text: String },
    /// Anything else, with who answered or why nothing did.
    Failed { text: String },
}

/// What happens to the link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// There is a pairing to dial with; none: this computer is not linked.
    Paired(bool),
    /// The upgrade is through.
    Up,
    /// The handshake is done.
    Initialized,
    /// The dial failed.
    Refused(Refusal),
    /// The socket is gone.
    Closed { code: Option<u16>, text: String },
    /// A person asks for a dial now; `take`: also in the place of another holder.
    Retry { take: bool },
    /// The device's own limits changed: say them anew.
    Redial,
    /// The computer woke from sleep, or the network changed.
    Stirred,
    /// Whether the other side answered the sign of life that was asked for.
    Alive(bool),
    /// The time that [`Machine::wake_at`] named has come.
    Tick,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Dial, with the pairing as it is on disk now.
    Dial { take: bool },
    /// Let the dial under way go.
    Abandon,
    /// Close the socket. [`Event::Closed`] follows.
    Close { code: u16, reason: &'static str },
    /// Let the socket go without waiting for anything: nobody is at its other end.
    Drop,
    /// Ask the other side for a sign of life. [`Event::Alive`] follows.
    Ask(Duration),
    /// The state changed.
    Tell(LinkState),
    /// One line for the log, at the level of a warning when `bad`.
    Log { text: String, bad: bool },
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum At {
    /// Not linked and nothing to do.
    Rest,
    Dialling,
    /// The socket is there; whether the handshake is done.
    Up {
        since: Instant,
        ready: bool,
    },
    /// We closed it, to dial again at once.
    Closing,
    Waiting {
        until: Instant,
        hold: bool,
    },
}

/// The link's state.
#[derive(Debug)]
pub struct Machine {
    at: At,
    failures: u32,
    /// The next dial after a close that we asked for.
    redial: bool,
    state: LinkState,
    logged: Option<(Phase, String, Instant)>,
}

impl Default for Machine {
    fn default() -> Self {
        Self::new()
    }
}

impl Machine {
    pub fn new() -> Self {
        Self {
            at: At::Rest,
            failures: 0,
            redial: false,
            state: LinkState::default(),
            logged: None,
        }
    }

    /// When [`Event::Tick`] is due.
    pub fn wake_at(&self) -> Option<Instant> {
        match self.at {
            At::Waiting { until, .. } => Some(until),
            _ => None,
        }
    }

    /// The state as last told.
    pub fn state(&self) -> &LinkState {
        &self.state
    }

    pub fn step(&mut self, event: Event, now: Now) -> Vec<Action> {
        let mut out = Vec::new();
        match event {
            Event::Paired(false) => self.unpaired(now, &mut out),
            Event::Paired(true) => match self.at {
                At::Up { .. } | At::Closing => self.close_for_redial("paired", &mut out),
                At::Dialling => {
                    // It carries what was on the disk before.
                    out.push(Action::Abandon);
                    self.dial(now, false, &mut out);
                }
                At::Rest | At::Waiting { .. } => self.dial(now, false, &mut out),
            },
            Event::Up => {
                let since = now.at;
                self.at = At::Up {
                    since,
                    ready: false,
                };
            }
            Event::Initialized => self.initialized(now, &mut out),
            Event::Refused(refusal) => self.refused(refusal, now, &mut out),
            Event::Closed { code, text } => self.closed(code, &text, now, &mut out),
            Event::Retry { take } => match self.at {
                At::Up { .. } | At::Closing => {}
                At::Dialling if !take => {}
                At::Dialling => {
                    out.push(Action::Abandon);
                    self.dial(now, true, &mut out);
                }
                At::Rest if self.state.phase == Phase::Never => {}
                At::Rest | At::Waiting { .. } => self.dial(now, take, &mut out),
            },
            Event::Redial => {
                if matches!(self.at, At::Up { .. }) {
                    self.close_for_redial("limits", &mut out);
                }
            }
            Event::Stirred => match self.at {
                At::Up { .. } => out.push(Action::Ask(SIGN_OF_LIFE)),
                At::Waiting { hold: false, .. } => self.dial(now, false, &mut out),
                At::Dialling => {
                    // It may hang on an address that is no longer ours.
                    out.push(Action::Abandon);
                    self.dial(now, false, &mut out);
                }
                At::Rest | At::Closing | At::Waiting { hold: true, .. } => {}
            },
            Event::Alive(true) => {}
            Event::Alive(false) => {
                if matches!(self.at, At::Up { .. }) {
                    out.push(Action::Drop);
                    self.dial(now, false, &mut out);
                }
            }
            Event::Tick => {
                if let At::Waiting { until, .. } = self.at
                    && until <= now.at
                {
                    self.dial(now, false, &mut out);
                }
            }
        }
        out
    }

    fn unpaired(&mut self, now: Now, out: &mut Vec<Action>) {
        match self.at {
            At::Dialling => out.push(Action::Abandon),
            At::Up { .. } => out.push(Action::Close {
                code: code::NORMAL,
                reason: "unlinked",
            }),
            At::Rest | At::Closing | At::Waiting { .. } => {}
        }
        self.at = At::Rest;
        self.redial = false;
        self.failures = 0;
        self.tell(Phase::Never, words::never(), None, now, out);
    }

    fn initialized(&mut self, now: Now, out: &mut Vec<Action>) {
        let At::Up { since, .. } = self.at else {
            return;
        };
        self.at = At::Up { since, ready: true };
        self.state.last_linked = Some(now.wall);
        self.tell(Phase::Linked, String::new(), None, now, out);
    }

    fn refused(&mut self, refusal: Refusal, now: Now, out: &mut Vec<Action>) {
        if self.at != At::Dialling {
            return;
        }
        match refusal {
            Refusal::Revoked { text } => {
                self.look_later(
                    Phase::Revoked,
                    words::revoked(&text),
                    LOOK_REVOKED,
                    now,
                    out,
                );
            }
            Refusal::Superseded => self.dial(now, false, out),
            Refusal::Held { holder } => {
                self.at = At::Rest;
                self.tell(Phase::Replaced, words::held(&holder), None, now, out);
            }
            Refusal::Version { theirs } => {
                self.look_later(
                    Phase::Version,
                    words::version(theirs),
                    LOOK_VERSION,
                    now,
                    out,
                );
            }
            Refusal::Later { wait, text } => self.obey(wait, text, now, out),
            Refusal::Failed { text } => {
                let text = match self.state.phase {
                    // The slow look met nobody: what was known still holds.
                    Phase::Revoked => {
                        return self.look_later(
                            Phase::Revoked,
                            self.state.reason.clone(),
                            LOOK_REVOKED,
                            now,
                            out,
                        );
                    }
                    _ => text,
                };
                self.fail(text, now, out);
            }
        }
    }

    fn closed(&mut self, code: Option<u16>, text: &str, now: Now, out: &mut Vec<Action>) {
        let lived = match self.at {
            At::Up { since, .. } => now.at.saturating_duration_since(since) >= LIVED,
            At::Closing => false,
            _ => return,
        };
        if lived {
            self.failures = 0;
        }
        if std::mem::take(&mut self.redial) {
            self.dial(now, false, out);
            return;
        }
        match code {
            Some(code::REPLACED) if text == "taken" => {
                self.at = At::Rest;
                self.tell(Phase::Replaced, words::taken(), None, now, out);
            }
            Some(code::LATER) => {
                let wait = super::ws::read_retry_after(text);
                match wait {
                    Some(wait) => self.obey(wait, words::asked_to_wait(), now, out),
                    None => self.fail(words::closed(Some(code::LATER), text), now, out),
                }
            }
            Some(code::REFUSED) if text == "protocol" => {
                self.look_later(Phase::Version, words::version(None), LOOK_VERSION, now, out);
            }
            Some(code::REFUSED) if text == "instance" => {
                self.at = At::Rest;
                self.tell(Phase::Revoked, words::other_instance(), None, now, out);
            }
            code => self.fail(words::closed(code, text), now, out),
        }
    }

    /// Closes the socket to dial again at once.
    fn close_for_redial(&mut self, reason: &'static str, out: &mut Vec<Action>) {
        self.redial = true;
        if self.at == At::Closing {
            return;
        }
        self.at = At::Closing;
        let code = match reason {
            "limits" => code::RESTART,
            _ => code::NORMAL,
        };
        out.push(Action::Close { code, reason });
    }

    fn dial(&mut self, now: Now, take: bool, out: &mut Vec<Action>) {
        self.at = At::Dialling;
        out.push(Action::Dial { take });
        // A look from a stopped state does not look like a recovery before it is one.
        let quiet = matches!(self.state.phase, Phase::Revoked | Phase::Version);
        let phase = if quiet {
            self.state.phase
        } else {
            Phase::Dialling
        };
        let reason = self.state.reason.clone();
        self.tell(phase, reason, None, now, out);
    }
}

#[cfg(test)]
mod tests;
