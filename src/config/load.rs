//! Reading `config.toml`: everything that is wrong with it at once, each with its line.

use std::fmt;
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use super::reader::Reader;
use super::{Approvals, Config, Mode, Sudo};

/// A larger file is refused unread: nobody writes this much by hand.
const MAX_BYTES: u64 = 1024 * 1024;

/// What is said of a file that others can change; `chmod o-w` mends it.
pub const OPEN: &str = "Everybody on this computer can change it, and with it what may run here.";

/// One thing that is wrong with the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Counted from 1; 0 when it is about the whole file.
    pub line: usize,
    /// What is wrong and what is expected, in one or two sentences.
    pub text: String,
}

impl Problem {
    pub fn at(line: usize, text: impl Into<String>) -> Self {
        Self {
            line,
            text: text.into(),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "line {}: ", self.line)?;
        }
        f.write_str(&self.text)
    }
}

/// Why the settings could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("{} cannot be read", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{} has {} that {} not understood", path.display(),
        crate::text::words::plural(problems.len() as u64, "line", "lines"),
        if problems.len() == 1 { "is" } else { "are" })]
    Wrong {
        path: PathBuf,
        problems: Vec<Problem>,
    },
}

/// Reads the file. One that does not exist is the defaults: nothing is allowed to an instance.
pub fn load(path: &Path, home: &Path) -> Result<Config, ConfigError> {
    match text(path)? {
        Some(text) => parse(&text, home).map_err(|problems| ConfigError::Wrong {
            path: path.to_owned(),
            problems,
        }),
        None => Ok(Config::default()),
    }
}

/// The text of the file; none when it does not exist. A file that others can change is refused:
/// whoever writes it decides what may run here.
pub(super) fn text(path: &Path) -> Result<Option<String>, ConfigError> {
    let failed = |source| ConfigError::Read {
        path: path.to_owned(),
        source,
    };
    // Without waiting: a pipe in its place would hold up whoever opens it.
    let opened = std::fs::OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path);
    let file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let meta = file.metadata().map_err(failed)?;
    let wrong = |text: &str| ConfigError::Wrong {
        path: path.to_owned(),
        problems: vec![Problem::at(0, text)],
    };
    if !meta.is_file() && !meta.is_dir() {
        return Err(wrong("It is a pipe or a device, and must be a file."));
    }
    if meta.uid() != rustix::process::geteuid().as_raw() && meta.uid() != 0 {
        return Err(wrong("It belongs to another user, who could change it."));
    }
    if meta.mode() & 0o002 != 0 {
        return Err(wrong(OPEN));
    }
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(wrong("It is larger than 1 MiB."));
    }
    String::from_utf8(bytes)
        .map(Some)
        .map_err(|_| wrong("It is not UTF-8 text."))
}

/// Reads the text of a config file.
pub fn parse(text: &str, home: &Path) -> Result<Config, Vec<Problem>> {
    let document = match toml_edit::Document::parse(text) {
        Ok(document) => document,
        Err(error) => {
            let line = error.span().map_or(0, |span| line_of(text, span.start));
            let what = error.message().lines().next().unwrap_or_default().trim();
            return Err(vec![Problem::at(
                line,
                format!("This is not TOML: {what}."),
            )]);
        }
    };
    let mut reader = Reader::new(text, home);
    let config = read(&mut reader, document.as_table());
    let problems = reader.problems();
    if problems.is_empty() {
        Ok(config)
    } else {
        Err(problems)
    }
}

/// The line of a byte, counted from 1.
pub(super) fn line_of(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|b| *b == b'\n').count() + 1
}

fn read(reader: &mut Reader<'_>, root: &dyn toml_edit::TableLike) -> Config {
    let mut config = Config::default();
    reader.known(root, "", &["name", "remote", "protected", "link"]);
    reader.text(root, "name", 1..=64, &mut config.name);

    if let Some(table) = reader.table(root, "remote") {
        let remote = &mut config.remote;
        reader.known(
            table,
            "remote",
            &[
                "enabled",
                "paused",
                "roots",
                "max_mode",
                "scheduled",
                "approvals",
                "approval_timeout",
                "approval_max",
                "max_sessions",
                "sudo",
            ],
        );
        reader.flag(table, "enabled", &mut remote.enabled);
        reader.flag(table, "paused", &mut remote.paused);
        reader.paths(table, "roots", &mut remote.roots);
        max_mode(reader, table, &mut remote.max_mode);
        reader.flag(table, "scheduled", &mut remote.scheduled);
        let words = [
            ("once", Approvals::Once),
            ("full", Approvals::Full),
            ("local", Approvals::Local),
        ];
        reader.word(table, "approvals", &words, &mut remote.approvals);
        let mut wait = None;
        reader.number(table, "approval_timeout", 60..=86_400, "seconds", &mut wait);
        remote.approval_timeout = wait;
        let mut most = Some(remote.approval_max);
        reader.number(table, "approval_max", 60..=86_400, "seconds", &mut most);
        remote.approval_max = most.unwrap_or(remote.approval_max);
        let mut sessions = None;
        reader.number(table, "max_sessions", 1..=64, "sessions", &mut sessions);
        if let Some(count) = sessions.and_then(|n| usize::try_from(n).ok()) {
            remote.max_sessions = count;
        }
        let words = [("refuse", Sudo::Refuse), ("ask", Sudo::Ask)];
        reader.word(table, "sudo", &words, &mut remote.sudo);
    }
    if let Some(table) = reader.table(root, "protected") {
        reader.known(table, "protected", &["release"]);
        reader.paths(table, "release", &mut config.protected.release);
    }
    if let Some(table) = reader.table(root, "link") {
        reader.known(table, "link", &["ca_file", "pin", "proxy"]);
        reader.path(table, "ca_file", &mut config.link.ca_file);
        reader.text(table, "pin", 1..=128, &mut config.link.pin);
        reader.text(table, "proxy", 1..=2_048, &mut config.link.proxy);
        check_link(reader, table, &config.link);
    }
    config
}

/// `auto` counts only as the full word, and `plan` is no maximum: it is always possible.
fn max_mode(reader: &mut Reader<'_>, table: &dyn toml_edit::TableLike, into: &mut Mode) {
    if table.get("max_mode").and_then(toml_edit::Item::as_str) == Some("plan") {
        reader.wrong(
            table,
            "max_mode",
            "max_mode is the most that is possible, and plan is always possible. \
             It can be manual, edit or auto.",
        );
        return;
    }
    let words = [
        ("manual", Mode::Manual),
        ("edit", Mode::Edit),
        ("auto", Mode::Auto),
    ];
    reader.word(table, "max_mode", &words, into);
}

fn check_link(reader: &mut Reader<'_>, table: &dyn toml_edit::TableLike, link: &super::Link) {
    if let Some(pin) = &link.pin {
        let hex = pin.strip_prefix("sha256:").unwrap_or_default();
        if hex.len() != 64 || !hex.bytes().all(|b| b.is_ascii_hexdigit()) {
            reader.wrong(
                table,
                "pin",
                "pin must be sha256: and the 64 hexadecimal digits of a certificate's hash.",
            );
        }
    }
    if let Some(proxy) = &link.proxy
        && !["http://", "https://"].iter().any(|s| proxy.starts_with(s))
    {
        reader.wrong(table, "proxy", "proxy must begin with http:// or https://.");
    }
}

#[cfg(test)]
mod tests;
