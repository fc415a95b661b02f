//! What must be known of this computer before anything is judged: the login `PATH`, the
//! environment a command gets, and whether a box works. Found out once, lazily, with limits.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::sync::OnceCell;

use super::fence;
use crate::clock;
use crate::config::env;
use crate::permission::{BoxStrength, Facts};

/// A login shell that takes longer is not waited for: the daemon's own `PATH` is used.
const LOGIN: Duration = Duration::from_secs(3);
const PROBE: Duration = Duration::from_secs(3);
/// Bytes of what the login shell says that are looked at.
const MAX_SAID: usize = 64 * 1024;
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
    ("TERM", "dumb"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("DEBIAN_FRONTEND", "noninteractive"),
];

static FACTS: OnceCell<Facts> = OnceCell::const_new();

/// The facts of this computer. The first caller waits for them, a few seconds at most.
pub async fn facts(covered: &[PathBuf]) -> Facts {
    FACTS
        .get_or_init(|| async {
            let (path, strength) = tokio::join!(login_path(), strength());
            let mut known: Vec<(String, String)> = env::all()
                .filter_map(|(name, value)| {
                    Some((name.into_string().ok()?, value.into_string().ok()?))
                })
                .filter(|(name, _)| INHERITED.contains(&name.as_str()))
                .chain(
                    SET.iter()
                        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
                )
                .chain([("PATH".to_owned(), joined(&path))])
                .collect();
            known.sort();
            Facts {
                env: known,
                path,
                strength,
                covered: covered.to_vec(),
            }
        })
        .await
        .clone()
}

fn joined(path: &[PathBuf]) -> String {
    path.iter()
        .map(|folder| folder.display().to_string())
        .collect::<Vec<_>>()
        .join(":")
}

/// The folders of the person's login `PATH`, or of the daemon's when the shell does not say.
async fn login_path() -> Vec<PathBuf> {
    let shell = env::text(&env::SHELL).unwrap_or_else(|| "/bin/bash".to_owned());
    let said = match clock::timeout(LOGIN, ask(&shell)).await {
        Ok(Some(path)) => path,
        _ => env::text(&env::PATH).unwrap_or_else(|| PLAIN.to_owned()),
    };
    let mut folders: Vec<PathBuf> = Vec::new();
    for folder in std::env::split_paths(&said) {
        // A relative entry would make the folder a command runs in decide what runs.
        if folder.is_absolute() && !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    folders
}

async fn ask(shell: &str) -> Option<String> {
    const BEFORE: &str = "LEMBAS-PATH=";
    if !Path::new(shell).is_absolute() {
        return None;
    }
    #[expect(clippy::disallowed_methods, reason = "this is the exec module")]
    let output = Command::new(shell)
        .args(["-lc", "printf '\\nLEMBAS-PATH=%s\\n' \"$PATH\""])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .ok()?;
    let said = output.stdout.get(..output.stdout.len().min(MAX_SAID))?;
    let said = String::from_utf8_lossy(said);
    // Start-up files may print too: the last such line is ours.
    said.lines()
        .rev()
        .find_map(|line| line.strip_prefix(BEFORE))
        .filter(|path| !path.is_empty())
        .map(str::to_owned)
}

/// Whether a box can be made here: tried, not guessed.
async fn strength() -> BoxStrength {
    let mut words = fence::base();
    words.extend(["--unshare-net", "--", "true"].map(Into::into));
    let Some((program, args)) = words.split_first() else {
        return BoxStrength::None;
    };
    #[expect(clippy::disallowed_methods, reason = "this is the exec module")]
    let tried = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .status();
    match clock::timeout(PROBE, tried).await {
        Ok(Ok(status)) if status.success() => BoxStrength::Full,
        _ => BoxStrength::None,
    }
}
