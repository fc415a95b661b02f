//! What the service manager hears: ready, how the link stands, alive, stopping. Nothing where
//! there is none (`NOTIFY_SOCKET` is not set).

use sd_notify::NotifyState;
use tokio::sync::watch;

use crate::clock;
use crate::link::{LinkState, Phase};
use crate::rt::Tasks;

/// The daemon answers: said after the start, whether or not the link is up.
pub fn ready() {
    tell(&[NotifyState::Ready]);
}

pub(super) fn stopping() {
    tell(&[NotifyState::Stopping]);
}

/// Says how the link stands, and at half the interval of the watchdog that we live.
pub(super) fn follow(mut state: watch::Receiver<LinkState>, tasks: &Tasks) {
    let stop = tasks.stop().clone();
    let beat = sd_notify::watchdog_enabled().map(|interval| interval / 2);
    tasks.spawn("service manager", async move {
        loop {
            let words = words(&state.borrow_and_update());
            tell(&[NotifyState::Status(&words)]);
            tokio::select! {
                () = stop.cancelled() => return,
                changed = state.changed() => if changed.is_err() { return },
                () = async {
                    match beat {
                        Some(beat) => clock::sleep(beat).await,
                        None => std::future::pending().await,
                    }
                } => tell(&[NotifyState::Watchdog]),
            }
        }
    });
}

fn words(state: &LinkState) -> String {
    match state.phase {
        Phase::Linked => "linked".to_owned(),
        phase if state.reason.is_empty() => phase.to_string(),
        phase => format!("{phase}: {}", state.reason),
    }
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::debug!(%error, "the service manager could not be told");
    }
}
