//! A terminal for a program: what it shows, what is typed into it, and how it is set.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

/// Whatever is waited for comes within this.
const LONG: Duration = Duration::from_secs(60);

pub(crate) struct Terminal {
    keys: File,
    /// The program's end; held open so that what is shown is read to its end.
    screen: OwnedFd,
    shown: Arc<(Mutex<String>, Condvar)>,
}

impl Terminal {
    pub(crate) fn new(columns: u16) -> Self {
        let master =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        use rustix::fs::{Mode, OFlags, open};
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let screen = open(&name, flags, Mode::empty()).unwrap();
        let size = Winsize {
            ws_row: 40,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&screen, size).unwrap();
        let keys = File::from(master);
        let shown = Arc::new((Mutex::new(String::new()), Condvar::new()));
        let (mut from, into) = (keys.try_clone().unwrap(), Arc::clone(&shown));
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // It ends with the terminal.
            while let Ok(count @ 1..) = from.read(&mut bytes) {
                let text = String::from_utf8_lossy(&bytes[..count]);
                into.0.lock().push_str(&text);
                into.1.notify_all();
            }
        });
        Self {
            keys,
            screen,
            shown,
        }
    }

    /// Starts a command with this as its terminal.
    pub(crate) fn start(&self, mut command: Command) -> Child {
        let end = || Stdio::from(self.screen.try_clone().unwrap());
        command.stdin(end()).stdout(end()).stderr(end());
        command.spawn().unwrap()
    }

    /// All that a command shows, until it has ended: lines end in line feeds alone.
    pub(crate) fn seen(&self, command: Command) -> String {
        let status = self.start(command).wait().unwrap();
        // What comes last says that everything before it was read.
        let mark = format!("[{}]", lembas::ids::random_hex(8));
        File::from(self.screen.try_clone().unwrap())
            .write_all(mark.as_bytes())
            .unwrap();
        let shown = self.until("its end", |text| text.contains(&mark));
        let (text, _) = shown.split_once(&mark).unwrap();
        assert!(status.code().is_some(), "{text}");
        text.replace("\r\n", "\n")
    }

    /// What is shown, once it is as wanted.
    pub(crate) fn until(&self, what: &str, want: impl Fn(&str) -> bool) -> String {
        let (text, news) = &*self.shown;
        let mut text = text.lock();
        let waited = news.wait_while_for(&mut text, |text| !want(text), LONG);
        assert!(!waited.timed_out(), "{what}: {text}");
        text.clone()
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Whether it shows what is typed.
    pub(crate) fn echoes(&self) -> bool {
        let modes = tcgetattr(&self.screen).unwrap().local_modes;
        modes.contains(LocalModes::ECHO)
    }
}
