//! What this computer is: its shell, its search path, its box. Each found out once.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::fence;
use crate::permission::{Engine, Facts, Strength};

/// How long the login shell has to say its search path.
const PROBE: Duration = Duration::from_secs(5);

/// Variables that a command gets from this program's own environment. Everything else is scrubbed:
/// what starts programs, what holds tokens, what belongs to this program.
const PASSED: &[&str] = &[
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "LC_MESSAGES",
    "LC_COLLATE",
    "LANGUAGE",
    "TZ",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "GOPATH",
    "GOROOT",
    "GOMODCACHE",
    "JAVA_HOME",
    "ANDROID_HOME",
    "M2_HOME",
    "GRADLE_USER_HOME",
    "NVM_DIR",
    "VOLTA_HOME",
    "PNPM_HOME",
    "BUN_INSTALL",
    "DENO_DIR",
    "PYENV_ROOT",
    "RBENV_ROOT",
    "SDKMAN_DIR",
    "ASDF_DIR",
    "ASDF_DATA_DIR",
    "XDG_CACHE_HOME",
    "XDG_DATA_HOME",
    "HOMEBREW_PREFIX",
    "NIX_PATH",
    "NIX_PROFILES",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NIX_SSL_CERT_FILE",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "DOTNET_ROOT",
    "FLUTTER_ROOT",
];

/// This computer.
#[derive(Debug, Default)]
pub struct Computer {
    strength: OnceLock<Strength>,
    path: OnceLock<Vec<PathBuf>>,
    own: Vec<PathBuf>,
}

impl Computer {
    /// `own`: this program's own folders (settings, state, tokens), which no command sees.
    pub fn new(mut own: Vec<PathBuf>) -> Self {
        // By their names and by where they really are: what is judged has its links followed.
        let real: Vec<PathBuf> = own.iter().map(|p| crate::permission::resolve(p)).collect();
        own.extend(real);
        own.sort();
        own.dedup();
        Self {
            own,
            ..Self::default()
        }
    }
}

impl Computer {
    /// Why commands run in no box here, and what helps: for people.
    pub fn why_no_box() -> (&'static str, &'static str) {
        fence::why_none()
    }

    /// What decides whether a box can be made, in one line.
    pub fn circumstances() -> String {
        fence::circumstances()
    }
}

impl Engine {
    /// The engine for this computer, with this program's usual folders as its own.
    pub fn load() -> Self {
        let mut own = Vec::new();
        if let Some(folders) = directories::ProjectDirs::from("", "", "lembas") {
            own.extend([
                folders.config_dir().to_path_buf(),
                folders.data_dir().to_path_buf(),
            ]);
            own.extend(folders.state_dir().map(Path::to_path_buf));
            own.extend(folders.runtime_dir().map(Path::to_path_buf));
        }
        Self::with(Arc::new(Computer::new(own)))
    }

    /// Finds out now what would otherwise be found out at the first command. Blocks.
    pub fn warm(&self) {
        self.facts().strength();
        self.facts().path();
    }
}

impl Facts for Computer {
    fn strength(&self) -> Strength {
        *self.strength.get_or_init(fence::strength)
    }

    fn path(&self) -> Vec<PathBuf> {
        self.path.get_or_init(search_path).clone()
    }

    fn home(&self) -> PathBuf {
        home()
    }

    fn environment(&self) -> Vec<(String, String)> {
        let mut list = self.basic();
        for (name, value) in std::env::vars() {
            if PASSED.contains(&name.as_str()) && !list.iter().any(|(n, _)| *n == name) {
                list.push((name, value));
            }
        }
        for (name, value) in [
            ("TERM", "dumb"),
            ("NO_COLOR", "1"),
            ("PAGER", "cat"),
            ("GIT_PAGER", "cat"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("GIT_EDITOR", "true"),
            ("DEBIAN_FRONTEND", "noninteractive"),
            ("COLUMNS", "120"),
            ("LEMBAS", "1"),
        ] {
            list.push((name.to_owned(), value.to_owned()));
        }
        if !list.iter().any(|(n, _)| n == "LANG" || n == "LC_ALL") {
            list.push(("LANG".to_owned(), utf8_locale().to_owned()));
        }
        list
    }

    fn monitor_environment(&self) -> Vec<(String, String)> {
        let mut list = self.basic();
        for (name, value) in [
            ("TZ", "UTC"),
            ("LC_ALL", utf8_locale()),
            ("TERM", "dumb"),
            ("NO_COLOR", "1"),
            ("COLUMNS", "80"),
            ("GIT_OPTIONAL_LOCKS", "0"),
        ] {
            list.push((name.to_owned(), value.to_owned()));
        }
        list
    }

    fn own(&self) -> Vec<PathBuf> {
        self.own.clone()
    }
}

impl Computer {
    fn basic(&self) -> Vec<(String, String)> {
        let path: Vec<String> = self
            .path()
            .iter()
            .map(|p| p.display().to_string())
            .collect();
        let user = std::env::vars()
            .find(|(name, _)| name == "USER" || name == "LOGNAME")
            .map_or_else(|| "user".to_owned(), |(_, value)| value);
        vec![
            ("HOME".to_owned(), home().display().to_string()),
            ("USER".to_owned(), user.clone()),
            ("LOGNAME".to_owned(), user),
            (
                "SHELL".to_owned(),
                shell().map_or_else(|| "/bin/sh".to_owned(), |s| s.display().to_string()),
            ),
            ("PATH".to_owned(), path.join(":")),
            ("TMPDIR".to_owned(), "/tmp".to_owned()),
        ]
    }
}

fn home() -> PathBuf {
    directories::BaseDirs::new().map_or_else(|| PathBuf::from("/"), |b| b.home_dir().to_path_buf())
}

/// The bash that commands run in.
pub(super) fn shell() -> Option<PathBuf> {
    static SHELL: OnceLock<Option<PathBuf>> = OnceLock::new();
    SHELL
        .get_or_init(|| {
            [
                "/bin",
                "/usr/bin",
                "/usr/local/bin",
                "/opt/homebrew/bin",
                "/run/current-system/sw/bin",
            ]
            .iter()
            .map(|folder| Path::new(folder).join("bash"))
            .find(|bash| bash.is_file())
        })
        .clone()
}

fn utf8_locale() -> &'static str {
    static LOCALE: OnceLock<&'static str> = OnceLock::new();
    LOCALE.get_or_init(|| {
        let there = |name: &str| {
            Path::new("/usr/lib/locale").join(name).exists()
                || Path::new("/usr/share/i18n/locales").join(name).exists()
        };
        if there("C.UTF-8") {
            "C.UTF-8"
        } else if there("C.utf8") {
            "C.utf8"
        } else {
            "C"
        }
    })
}

/// The search path of a login shell, absolute folders only, and the usual ones behind it.
fn search_path() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = Vec::new();
    let own = std::env::vars().find(|(n, _)| n == "PATH").map(|(_, v)| v);
    let said = login_path().or(own).unwrap_or_default();
    let usual = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";
    for folder in said.split(':').chain(usual.split(':')) {
        let folder = PathBuf::from(folder);
        if folder.is_absolute() && !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    folders
}

/// Asks the person's login shell, once, within a limit. Nothing else of what it sets is used.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the module that runs programs"
)]
fn login_path() -> Option<String> {
    const MARK: &str = "lembas-path:";
    let shell = std::env::vars()
        .find(|(n, _)| n == "SHELL")
        .map(|(_, v)| v)
        .filter(|s| Path::new(s).is_absolute())
        .or_else(|| shell().map(|s| s.display().to_string()))?;
    let mut child = std::process::Command::new(shell)
        .args(["-l", "-c", &format!("echo \"{MARK}$PATH\"")])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let until = crate::clock::boottime() + PROBE;
    loop {
        match child.try_wait() {
            Ok(Some(_)) => break,
            Ok(None) if crate::clock::boottime() < until => {
                std::thread::sleep(Duration::from_millis(5));
            }
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
        }
    }
    let mut said = String::new();
    std::io::Read::read_to_string(&mut child.stdout.take()?, &mut said).ok()?;
    said.lines()
        .find_map(|line| line.strip_prefix(MARK))
        .map(str::to_owned)
}
