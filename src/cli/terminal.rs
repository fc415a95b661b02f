//! What only a terminal gets: a line that counts down, a QR code, a browser, questions about the
//! folder one stands in.

use std::convert::Infallible;
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::process::getpgrp;
use rustix::termios::{self, LocalModes, OptionalActions, QueueSelector, Termios};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::failure::Exit;
use super::out::Out;
use crate::clock::{self, Instant};
use crate::config::{Paths, env};
use crate::text::{escape, words};

/// A line `Waiting, 9 min 58 s left.`, rewritten each second on a terminal and nowhere else.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    until: Option<Instant>,
    trouble: Option<String>,
}

impl Waiting {
    pub(super) fn begin(&self, time: Duration) {
        self.state.lock().until = Some(clock::instant() + time);
    }

    /// What is in the way just now; none when nothing is.
    pub(super) fn trouble(&self, trouble: Option<String>) {
        self.state.lock().trouble = trouble;
    }

    /// Rewrites the line until it is dropped, which takes the line away.
    pub(super) async fn tick(&self, out: Out) -> Infallible {
        let mut shown = Shown(false);
        loop {
            if out.person
                && let Some(line) = self.line()
            {
                overwrite(&line);
                shown.0 = true;
            }
            clock::sleep(Duration::from_secs(1)).await;
        }
    }

    fn line(&self) -> Option<String> {
        let state = self.state.lock();
        let left = state.until?.saturating_duration_since(clock::instant());
        let left = words::duration(Duration::from_secs(left.as_secs()));
        let trouble = match &state.trouble {
            Some(trouble) => format!(" ({})", escape::visible_line(trouble)),
            None => String::new(),
        };
        Some(format!("Waiting, {left} left.{trouble}"))
    }
}

/// Whether a line stands there that goes with this.
struct Shown(bool);

impl Drop for Shown {
    fn drop(&mut self) {
        if self.0 {
            overwrite("");
        }
    }
}

/// A terminal that does not show what is typed, for as long as this lives: a line that is rewritten
/// each second would be broken by it. What was typed meanwhile is thrown away in the end, so that it
/// answers no question and reaches no shell.
#[derive(Debug)]
pub(super) struct Quiet {
    before: Option<(OwnedFd, Termios)>,
}

impl Quiet {
    /// Makes the person's terminal quiet; nothing where nobody sits at one.
    pub(super) fn begin(out: Out) -> Self {
        let stdin = io::stdin();
        if !out.person {
            return Self { before: None };
        }
        // One in the background would be stopped for touching the terminal.
        let ours = termios::tcgetpgrp(&stdin).is_ok_and(|group| group == getpgrp());
        match stdin.as_fd().try_clone_to_owned() {
            Ok(terminal) if ours => Self::of(terminal),
            _ => Self { before: None },
        }
    }

    fn of(terminal: OwnedFd) -> Self {
        let Ok(before) = termios::tcgetattr(&terminal) else {
            return Self { before: None };
        };
        let mut quiet = before.clone();
        // Ctrl-C still ends the command: signals stay as they are.
        quiet.local_modes -= LocalModes::ECHO | LocalModes::ECHONL;
        let made = termios::tcsetattr(&terminal, OptionalActions::Now, &quiet);
        Self {
            before: made.ok().map(|()| (terminal, before)),
        }
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        if let Some((terminal, before)) = &self.before {
            // A terminal that is gone needs neither.
            let _ = termios::tcflush(terminal, QueueSelector::IFlush);
            let _ = termios::tcsetattr(terminal, OptionalActions::Now, before);
        }
    }
}

/// Waits until this command is told to end, by Ctrl-C or otherwise.
pub(super) async fn told_to_end() -> Exit {
    let listen = |kind| signal(kind).ok();
    let heard = |signal: Option<Signal>| async move {
        match signal {
            Some(mut signal) => {
                signal.recv().await;
            }
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = heard(listen(SignalKind::interrupt())) => Exit::Interrupted,
        () = heard(listen(SignalKind::terminate())) => Exit::Terminated,
        () = heard(listen(SignalKind::hangup())) => Exit::Terminated,
    }
}

fn overwrite(line: &str) {
    let mut err = io::stderr().lock();
    // A terminal that is gone needs no line.
    let _ = write!(err, "\r\u{1b}[K{line}").and_then(|()| err.flush());
}

/// A QR code of half blocks, light on dark.
pub(super) fn qr(text: &str) -> Option<String> {
    use qrcode::render::unicode::Dense1x2;
    let code = qrcode::QrCode::new(text).ok()?;
    let picture = code
        .render::<Dense1x2>()
        .dark_color(Dense1x2::Light)
        .light_color(Dense1x2::Dark)
        .build();
    let lines: Vec<String> = picture.lines().map(|line| format!("  {line}")).collect();
    Some(format!("{}\n", lines.join("\n")))
}

/// The folder the person stands in, where it is one to work in: never the home folder or `/`.
pub(super) fn here(paths: &Paths) -> Option<PathBuf> {
    let folder = std::fs::canonicalize(".").ok()?;
    let home = std::fs::canonicalize(&paths.home).unwrap_or_else(|_| paths.home.clone());
    // A folder that holds the home folder is as wide as it.
    (!home.starts_with(&folder)).then_some(folder)
}

/// Opens a page in the person's browser, where there is one on this screen. The address holds a
/// one-time token, which must not stand in a process's arguments: what is opened is a private
/// file that leads there.
pub(super) fn browse(paths: &Paths, url: &str) -> bool {
    use std::os::unix::process::CommandExt as _;

    let screen = cfg!(target_os = "macos")
        || env::os(&env::DISPLAY).is_some()
        || env::os(&env::WAYLAND_DISPLAY).is_some();
    if !screen || env::os(&env::SSH_CONNECTION).is_some() {
        return false;
    }
    let page = paths.runtime.join("open.html");
    let text = format!(
        "<!doctype html><meta charset=utf-8><meta http-equiv=refresh content=\"0;url={url}\">"
    );
    if crate::config::files::replace(&page, text.as_bytes(), 0o600).is_err() {
        return false;
    }
    let opener = if cfg!(target_os = "macos") {
        "open"
    } else {
        "xdg-open"
    };
    #[expect(
        clippy::disallowed_methods,
        reason = "the person's own browser, opened for the person; nothing of a model or an instance is in it"
    )]
    let started = std::process::Command::new(opener)
        .arg(&page)
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        // A Ctrl-C that ends lembas is not for the browser.
        .process_group(0)
        .spawn();
    started.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

    /// The two ends of a terminal.
    fn terminal() -> (OwnedFd, OwnedFd) {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY;
        let slave = rustix::fs::open(&name, flags, rustix::fs::Mode::empty()).unwrap();
        (master, slave)
    }

    fn modes(terminal: &OwnedFd) -> LocalModes {
        termios::tcgetattr(terminal).unwrap().local_modes
    }

    #[test]
    fn a_quiet_terminal_is_as_before_also_after_a_panic() {
        let (_master, slave) = terminal();
        let before = modes(&slave);
        assert!(before.contains(LocalModes::ECHO));
        let quiet = Quiet::of(slave.try_clone().unwrap());
        assert!(!modes(&slave).contains(LocalModes::ECHO));
        assert!(modes(&slave).contains(LocalModes::ISIG | LocalModes::ICANON));
        drop(quiet);
        assert_eq!(modes(&slave), before);
        let given = slave.try_clone().unwrap();
        let ended = std::panic::catch_unwind(move || {
            let _quiet = Quiet::of(given);
            panic!("as a fault of ours would");
        });
        assert!(ended.is_err());
        assert_eq!(modes(&slave), before);
    }
}
