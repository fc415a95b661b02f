//! `lembas config`: the settings file opened in the person's own editor, checked, and where it is.

use std::path::Path;

use serde_json::json;

use super::args::Settings;
use super::failure::{Exit, Failure};
use super::out::Out;
use super::{Ending, limits};
use crate::config::edit::{Draft, EditError};
use crate::config::{ConfigError, Paths, env, files};
use crate::text::words;

/// Where no editor is set; the first that is installed is taken.
const EDITORS: [&str; 3] = ["nano", "vim", "vi"];

pub(super) fn run(out: Out, paths: &Paths, action: &Settings) -> Ending {
    match action {
        Settings::Edit => edit(out, paths),
        Settings::Check => check(out, paths),
        Settings::Path => path(out, paths),
    }
}

fn path(out: Out, paths: &Paths) -> Ending {
    let file = paths.config_file();
    if out.json {
        out.object(&json!({ "ok": true, "path": file, "exists": file.exists() }));
    } else {
        out.line(file.display());
    }
    Ok(Exit::Well)
}

fn check(out: Out, paths: &Paths) -> Ending {
    limits::read(paths)?;
    if out.json {
        out.object(&json!({ "ok": true, "path": paths.config_file() }));
    } else {
        out.verb("Well", paths.show(&paths.config_file()));
    }
    Ok(Exit::Well)
}

/// The person edits a copy; it takes the file's place only once it is understood, so that a
/// mistake never leaves this computer without its limits, and two writers never mix.
fn edit(out: Out, paths: &Paths) -> Ending {
    if out.json {
        return Err(Failure::new(
            Exit::Usage,
            "not_json",
            "an editor is for a person, and --json is for a script",
            "lembas config path --json",
        ));
    }
    let draft = Draft::begin(paths).map_err(|error| limits::unwritable(paths, error))?;
    if draft.left {
        out.hint(format!(
            "Going on with what was left in {}.",
            paths.show(&draft.path)
        ));
    }
    if let Some(aside) = &draft.aside {
        out.hint(format!(
            "The settings were changed since you wrote {}: this begins with them.",
            paths.show(aside)
        ));
    }
    loop {
        if let Err(failure) = open(&draft.path) {
            let kept = draft.forget_untouched();
            return Err(if kept {
                failure.or(format!(
                    "cat {}    what you wrote",
                    words::quoted(&draft.path.display().to_string())
                ))
            } else {
                failure
            });
        }
        let error = match draft.finish(paths) {
            Ok(edited) if edited.changed => {
                limits::told(paths);
                out.verb("Changed", paths.show(&paths.config_file()));
                out.verb(
                    "Limits",
                    crate::daemon::about::limits(paths, &edited.config),
                );
                return Ok(Exit::Well);
            }
            Ok(_) => {
                out.verb("Unchanged", paths.show(&paths.config_file()));
                return Ok(Exit::Well);
            }
            Err(EditError::Config(error @ ConfigError::Wrong { .. })) => error,
            Err(error) => return Err(limits::unwritable(paths, error)),
        };
        let failure = limits::wrong(paths, &error);
        if !out.person {
            return Err(failure);
        }
        out.failure(&failure);
        out.hint(format!(
            "The settings before it stay in force; what you wrote is in {}.",
            paths.show(&draft.path)
        ));
        if !out.yes("Edit it again?") {
            return Ok(Exit::Config);
        }
    }
}

fn open(file: &Path) -> Result<(), Failure> {
    let named = [&env::VISUAL, &env::EDITOR].into_iter().find_map(env::text);
    let editor = named
        .or_else(|| {
            EDITORS
                .into_iter()
                .find(|name| installed(name))
                .map(str::to_owned)
        })
        .ok_or_else(|| {
            Failure::new(
                Exit::Unavailable,
                "no_editor",
                "there is no editor: none is set, and nano, vim and vi are not installed",
                "EDITOR=/path/to/your/editor lembas config edit",
            )
        })?;
    // The setting may hold arguments (`code --wait`): the shell splits it, the file's name is given apart.
    #[expect(
        clippy::disallowed_methods,
        reason = "the person's own editor, opened for the person; nothing of a model or an instance is in it"
    )]
    let status = std::process::Command::new("/bin/sh")
        .args(["-c", &format!("{editor} \"$1\""), "sh"])
        .arg(file)
        .status();
    let why = match status {
        Ok(status) if status.success() => return Ok(()),
        Ok(status) => status.to_string(),
        Err(error) => words::io(&error),
    };
    Err(Failure::new(
        Exit::Unavailable,
        "editor",
        format!("the editor {editor} did not end well, and nothing was changed"),
        "EDITOR=/path/to/another lembas config edit",
    )
    .why(why))
}

fn installed(name: &str) -> bool {
    env::os(&env::PATH).is_some_and(|path| {
        std::env::split_paths(&path).any(|folder| files::is_program(&folder.join(name)))
    })
}
