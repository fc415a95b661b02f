//! How a command ends: exit codes, and errors in three lines.

use std::borrow::Cow;
use std::path::Path;
use std::process::ExitCode;

use serde_json::{Value, json};

use crate::store::db::StoreError;

/// How a command ended; the numbers are those of sysexits.h, and of a shell for signals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exit {
    /// As wished.
    Well = 0,
    /// Answered, and it is not as it should be.
    Not = 1,
    /// Wrong use.
    Usage = 64,
    /// Cannot reach or ask.
    Unavailable = 69,
    /// Our fault.
    Internal = 70,
    /// The settings.
    Config = 78,
    /// Ctrl-C ended it.
    Interrupted = 130,
    /// It was told to end otherwise.
    Terminated = 143,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why a command did not do what was wished: what happened to what, why, and what now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) exit: Exit,
    /// A word of a closed set, for `--json`.
    pub(super) code: Cow<'static, str>,
    /// The number a spec gives it, where there is one: then `--json` has it as `code` and the
    /// word as `reason`.
    pub(super) number: Option<i64>,
    pub(super) text: String,
    pub(super) why: Option<String>,
    pub(super) fix: Fix,
}

/// The next step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fix {
    /// Lines to paste, the best first.
    Try(Vec<String>),
    /// There is none, for this reason (read by tests, not by people).
    None(&'static str),
}

impl Failure {
    /// A failure and the line to paste that mends it.
    pub(super) fn new(
        exit: Exit,
        code: impl Into<Cow<'static, str>>,
        text: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self {
            exit,
            code: code.into(),
            number: None,
            text: text.into(),
            why: None,
            fix: Fix::Try(vec![fix.into()]),
        }
    }

    /// A failure that no command of ours can mend, and why so.
    pub(super) fn without_fix(
        exit: Exit,
        code: impl Into<Cow<'static, str>>,
        text: impl Into<String>,
        reason: &'static str,
    ) -> Self {
        Self {
            exit,
            code: code.into(),
            number: None,
            text: text.into(),
            why: None,
            fix: Fix::None(reason),
        }
    }

    #[must_use]
    pub(super) fn why(mut self, why: impl Into<String>) -> Self {
        self.why = Some(why.into());
        self
    }

    /// Another line that mends it.
    #[must_use]
    pub(super) fn or(mut self, fix: impl Into<String>) -> Self {
        match &mut self.fix {
            Fix::Try(all) => all.push(fix.into()),
            Fix::None(_) => self.fix = Fix::Try(vec![fix.into()]),
        }
        self
    }

    /// The three lines.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("error: {}", self.text)];
        lines.extend(self.why.iter().map(|why| format!("  why: {why}")));
        if let Fix::Try(all) = &self.fix {
            lines.extend(all.iter().enumerate().map(|(n, fix)| match n {
                0 => format!("  try: {fix}"),
                _ => format!("  or:  {fix}"),
            }));
        }
        lines
    }

    /// The object of `--json`.
    pub(super) fn json(&self) -> Value {
        let mut error = match self.number {
            Some(number) => json!({ "code": number, "reason": self.code, "text": self.text }),
            None => json!({ "code": self.code, "text": self.text }),
        };
        if let Value::Object(fields) = &mut error {
            if let Some(why) = &self.why {
                fields.insert("why".to_owned(), json!(why));
            }
            if let Fix::Try(all) = &self.fix {
                fields.insert("try".to_owned(), json!(all));
            }
        }
        json!({ "ok": false, "error": error })
    }
}

/// What is our own fault: said as such, with the cause.
pub(super) fn internal(error: &anyhow::Error) -> Failure {
    Failure::without_fix(
        Exit::Internal,
        "internal",
        "lembas failed by a fault of its own",
        "a fault of ours has no cure by command",
    )
    .why(chain(error))
}

/// An error and its sources on one line.
pub(super) fn chain(error: &anyhow::Error) -> String {
    error
        .chain()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        let store = error
            .chain()
            .find_map(|one| one.downcast_ref::<StoreError>());
        store.and_then(unopened).unwrap_or_else(|| internal(&error))
    }
}

/// A store that cannot be opened; nothing was written to it. None: the fault is another.
pub(super) fn unopened(error: &StoreError) -> Option<Failure> {
    let failed = |path: &Path, text: String, fix: &dyn Fn(&str) -> String| {
        let shown = crate::text::words::quoted(&path.display().to_string());
        Failure::new(Exit::Unavailable, "store", text, fix(&shown))
    };
    Some(match error {
        StoreError::Open { path, source } => {
            let text = format!("the store {} cannot be opened", path.display());
            let why = error
                .cause()
                .map_or_else(|| source.to_string(), str::to_owned);
            if error.is_damage() {
                failed(path, text, &|path| {
                    format!(
                        "mv {path} {path}.broken      (then begin anew, or put a copy of it there)"
                    )
                })
                .why("it is no store, or a damaged one; nothing was written to it")
            } else {
                failed(path, text, &|path| format!("ls -ld {path}")).why(why)
            }
        }
        StoreError::Newer { path, found, known } => failed(
            path,
            format!("the store {} is a newer lembas's", path.display()),
            &|_| "lembas --version      (it has to be updated on this computer)".to_owned(),
        )
        .why(format!(
            "its version is {found}, and this lembas knows {known}"
        )),
        StoreError::Full(_) => Failure::new(
            Exit::Unavailable,
            "disk_full",
            "lembas cannot save: the disk is full",
            "df -h ~",
        ),
        StoreError::Sql(_) | StoreError::Closed => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use insta::assert_snapshot;

    #[test]
    fn three_lines_and_the_same_in_json() {
        let failure = Failure::new(
            Exit::Unavailable,
            "in_use",
            "cannot listen on 127.0.0.1:8787",
            "lembas up --listen 127.0.0.1:0",
        )
        .why("the port is in use")
        .or("lembas status");
        assert_snapshot!(failure.lines().join("\n"), @r"
        error: cannot listen on 127.0.0.1:8787
          why: the port is in use
          try: lembas up --listen 127.0.0.1:0
          or:  lembas status
        ");
        assert_snapshot!(failure.json(), @r#"{"ok":false,"error":{"code":"in_use","text":"cannot listen on 127.0.0.1:8787","why":"the port is in use","try":["lembas up --listen 127.0.0.1:0","lembas status"]}}"#);
    }
}
