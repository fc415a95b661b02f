//! What must be known of this computer before anything is judged: the login `PATH`, the
//! environment a command gets, and whether a box works. Found out once, lazily, with limits.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use super::fence;
use crate::clock;
use crate::config::env;
use crate::permission::{Facts, Strength};

/// A login shell that takes longer is not waited for: the daemon's own `PATH` is used.
const LOGIN: Duration = Duration::from_secs(3);
const PROBE: Duration = Duration::from_secs(3);
/// Bytes of what the login shell says that are looked at.
const MAX_SAID: u64 = 64 * 1024;
/// The path when nothing else is known.
const PLAIN: &str = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";

/// Variables that a command may inherit. Everything else of the daemon's stays with it: secrets,
/// and variables that make programs run code.
const INHERITED: &[&str] = &[
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "GOPATH",
    "GOROOT",
    "GOCACHE",
    "JAVA_HOME",
    "NVM_DIR",
    "PYENV_ROOT",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
];

/// Variables that a command always has.
const SET: &[(&str, &str)] = &[
    ("DEBIAN_FRONTEND", "noninteractive"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("PAGER", "cat"),
    ("TERM", "dumb"),
];

/// What a watch command has besides HOME, USER, SHELL, PATH and LC_ALL (spec, Monitor).
const WATCH: &[(&str, &str)] = &[
    ("COLUMNS", "80"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("NO_COLOR", "1"),
    ("TERM", "dumb"),
    ("TZ", "UTC"),
];

/// This computer.
#[derive(Debug)]
pub struct Machine {
    own: Vec<PathBuf>,
    path: OnceLock<Vec<PathBuf>>,
    strength: OnceLock<Strength>,
    locale: OnceLock<String>,
}

impl Machine {
    /// `own` are the folders of this program itself: token, store, spill.
    pub fn new(own: Vec<PathBuf>) -> Self {
        Self {
            own,
            path: OnceLock::new(),
            strength: OnceLock::new(),
            locale: OnceLock::new(),
        }
    }

    /// Finds everything out now, a few seconds at most. Blocks.
    pub fn warm(&self) {
        self.strength();
        self.path();
    }

    fn inherited(&self, names: &[&str]) -> Vec<(String, String)> {
        let path = self
            .path()
            .iter()
            .map(|folder| folder.display().to_string())
            .collect::<Vec<_>>()
            .join(":");
        env::all()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .filter(|(name, _)| names.contains(&name.as_str()))
            .chain([("PATH".to_owned(), path)])
            .collect()
    }
}

impl Facts for Machine {
    fn strength(&self) -> Strength {
        *self.strength.get_or_init(strength)
    }

    fn path(&self) -> Vec<PathBuf> {
        self.path.get_or_init(login_path).clone()
    }

    fn home(&self) -> PathBuf {
        env::os(&env::HOME).map_or_else(|| PathBuf::from("/nonexistent"), PathBuf::from)
    }

    fn environment(&self) -> Vec<(String, String)> {
        let mut all = self.inherited(INHERITED);
        all.extend(SET.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())));
        all.sort();
        all
    }

    fn monitor_environment(&self) -> Vec<(String, String)> {
        let mut all = self.inherited(&["HOME", "USER", "SHELL"]);
        all.extend(
            WATCH
                .iter()
                .map(|(n, v)| ((*n).to_owned(), (*v).to_owned())),
        );
        let locale = self.locale.get_or_init(locale).clone();
        all.push(("LC_ALL".to_owned(), locale));
        all.sort();
        all
    }

    fn own(&self) -> Vec<PathBuf> {
        self.own.clone()
    }
}

/// The first of C.UTF-8, C.utf8 and C that this system has.
fn locale() -> String {
    let known = run("locale", &["-a"], PROBE).unwrap_or_default();
    ["C.UTF-8", "C.utf8"]
        .into_iter()
        .find(|name| known.lines().any(|line| line == *name))
        .unwrap_or("C")
        .to_owned()
}

/// The folders of the person's login `PATH`, or of the daemon's when the shell does not say.
fn login_path() -> Vec<PathBuf> {
    const BEFORE: &str = "LEMBAS-PATH=";
    let shell = env::text(&env::SHELL)
        .filter(|shell| Path::new(shell).is_absolute())
        .unwrap_or_else(|| "/bin/bash".to_owned());
    // Start-up files may print too: the last such line is ours.
    let said = run(
        &shell,
        &["-lc", "printf '\\nLEMBAS-PATH=%s\\n' \"$PATH\""],
        LOGIN,
    )
    .and_then(|said| {
        said.lines()
            .rev()
            .find_map(|line| line.strip_prefix(BEFORE))
            .filter(|path| !path.is_empty())
            .map(str::to_owned)
    })
    .or_else(|| env::text(&env::PATH))
    .unwrap_or_else(|| PLAIN.to_owned());
    let mut folders: Vec<PathBuf> = Vec::new();
    for folder in std::env::split_paths(&said) {
        // A relative entry would make the folder a command runs in decide what runs.
        if folder.is_absolute() && !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    folders
}

/// Whether a box can be made here: tried, not guessed.
fn strength() -> Strength {
    let words = fence::base();
    let mut words: Vec<_> = words.iter().filter_map(|word| word.to_str()).collect();
    words.extend(["--unshare-net", "--", "true"]);
    match words.split_first() {
        Some((program, args)) if run(program, args, PROBE).is_some() => Strength::Full,
        _ => Strength::None,
    }
}

/// What a program of ours says, when it ends well within the time.
fn run(program: &str, args: &[&str], limit: Duration) -> Option<String> {
    use std::io::Read as _;
    #[expect(clippy::disallowed_methods, reason = "this is the exec module")]
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let output = child.stdout.take()?;
    // Read beside the wait: a program that writes much would never end otherwise.
    let (tell, hear) = std::sync::mpsc::sync_channel(1);
    std::thread::Builder::new()
        .name("probe".to_owned())
        .spawn(move || {
            let mut said = String::new();
            let _partial = output.take(MAX_SAID).read_to_string(&mut said);
            let _nobody = tell.send(said);
        })
        .ok()?;
    if !wait(&mut child, limit) {
        return None;
    }
    // Something a start-up file left in the background may hold the pipe: not waited for.
    hear.recv_timeout(limit).ok()
}

fn wait(child: &mut Child, limit: Duration) -> bool {
    let until = clock::boottime() + limit;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) if clock::boottime() < until => {
                std::thread::sleep(Duration::from_millis(2));
            }
            _ => {
                let _gone = child.kill();
                let _reaped = child.wait();
                return false;
            }
        }
    }
}
