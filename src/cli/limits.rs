//! The limits of this computer: mode, approvals, scheduled, pause. They change the file; a daemon
//! that runs sees it at once. Not here: the roots (`roots`).

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::args::{OnOff, Service, Whose};
use super::failure::{Exit, Failure};
use super::out::Out;
use super::{Ending, ask};
use crate::config::edit::{Change, EditError, Edited, edit};
use crate::config::load::OPEN;
use crate::config::{Approvals, Config, ConfigError, Mode, Paths, load};
use crate::daemon::about;
use crate::daemon::control::client::Client;
use crate::text::nearest::nearest;
use crate::text::{path, words};

pub(super) fn mode(out: Out, paths: &Paths, word: Option<&str>) -> Ending {
    let Some(word) = word else {
        let mode = read(paths)?.remote.max_mode;
        if out.json {
            out.object(&json!({ "ok": true, "max_mode": mode }));
        } else {
            out.line(mode.word());
            out.hint(about_mode(mode));
        }
        return Ok(Exit::Well);
    };
    let mode = read_mode(word)?;
    let edited = change(paths, &[Change::MaxMode(mode)])?;
    if out.json {
        out.object(&json!({ "ok": true, "state": state(&edited), "max_mode": mode }));
    } else {
        out.verb(
            if edited.changed { "Set" } else { "Unchanged" },
            format!("up to {}", mode.title()),
        );
        out.hint(about_mode(mode));
    }
    Ok(Exit::Well)
}

/// The most that may be possible. `auto` is understood only as the full word.
fn read_mode(word: &str) -> Result<Mode, Failure> {
    match word {
        "manual" => return Ok(Mode::Manual),
        "edit" => return Ok(Mode::Edit),
        "auto" => return Ok(Mode::Auto),
        _ => {}
    }
    let failure = |fix: &str| {
        Failure::new(
            Exit::Usage,
            "usage",
            format!("{word} cannot be the most that is allowed: that is manual, edit or auto"),
            fix,
        )
    };
    Err(match word {
        "plan" => failure("lembas mode manual")
            .why("plan is always possible; the most is manual, edit or auto"),
        _ if "auto".starts_with(&word.to_lowercase()) || word == "unrestricted" => {
            failure("lembas mode auto")
                .why("auto asks almost nothing, so it counts only as the full word")
        }
        _ => match nearest(word, ["manual", "edit"]) {
            Some(near) => failure(&format!("lembas mode {near}")),
            None => failure("lembas mode manual"),
        },
    })
}

fn about_mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Plan => "It reads, and changes nothing.",
        Mode::Manual => "It reads, and asks before every change and every command.",
        Mode::Edit => {
            "It changes files in the allowed folders and runs boxed commands without asking; \
             what leaves the box asks."
        }
        Mode::Auto => "It asks almost nothing: every command may run, with the network.",
    }
}

pub(super) fn approvals(out: Out, paths: &Paths, whose: Option<Whose>) -> Ending {
    let (whose, verb) = match whose {
        None => (read(paths)?.remote.approvals, None),
        Some(whose) => {
            let whose = match whose {
                Whose::Once => Approvals::Once,
                Whose::Full => Approvals::Full,
                Whose::Local => Approvals::Local,
            };
            let edited = change(paths, &[Change::Approvals(whose)])?;
            (
                whose,
                Some(if edited.changed { "Set" } else { "Unchanged" }),
            )
        }
    };
    let about = match whose {
        Approvals::Once => {
            "Answers from the instance count once or for the session, and make no rules."
        }
        Approvals::Full => "Answers from the instance count, and may make rules that stay.",
        Approvals::Local => "Only answers given on this computer count: lembas asks",
    };
    match verb {
        Some(verb) if out.json => {
            let state = if verb == "Set" {
                "changed"
            } else {
                "unchanged"
            };
            out.object(&json!({ "ok": true, "state": state, "approvals": whose }));
        }
        None if out.json => out.object(&json!({ "ok": true, "approvals": whose })),
        Some(verb) => {
            out.verb(verb, whose.word());
            out.hint(about);
        }
        None => {
            out.line(whose.word());
            out.hint(about);
        }
    }
    Ok(Exit::Well)
}

pub(super) fn remote(out: Out, paths: &Paths, switch: Option<OnOff>) -> Ending {
    let Some(switch) = switch else {
        let on = read(paths)?.remote.enabled;
        if out.json {
            out.object(&json!({ "ok": true, "remote": on }));
        } else {
            out.line(if on { "on" } else { "off" });
        }
        return Ok(Exit::Well);
    };
    let on = switch == OnOff::On;
    let edited = change(paths, &[Change::Enabled(on)])?;
    if out.json {
        out.object(&json!({ "ok": true, "state": state(&edited), "remote": on }));
    } else {
        let verb = if edited.changed { "Set" } else { "Unchanged" };
        if on {
            let limits = about::limits(paths, &edited.config);
            out.verb(verb, format!("remote work on: {limits}"));
        } else {
            out.verb(
                verb,
                "remote work off; what an instance had running was ended",
            );
        }
    }
    Ok(Exit::Well)
}

pub(super) fn service(out: Out, paths: &Paths, action: &Service) -> Ending {
    let Service::Scheduled { switch } = action;
    let on = *switch == OnOff::On;
    let edited = change(paths, &[Change::Scheduled(on)])?;
    if out.json {
        out.object(&json!({ "ok": true, "state": state(&edited), "scheduled": on }));
    } else {
        let verb = if edited.changed { "Set" } else { "Unchanged" };
        let max = edited.config.remote.max_mode.title();
        if on {
            out.verb(verb, format!("scheduled work on, up to {max}"));
        } else {
            out.verb(
                verb,
                "scheduled work off; a run that is going on ends by itself",
            );
        }
    }
    Ok(Exit::Well)
}

pub(super) fn pause(out: Out, paths: &Paths) -> Ending {
    set_paused(out, paths, true)
}

pub(super) fn resume(out: Out, paths: &Paths) -> Ending {
    set_paused(out, paths, false)
}

fn set_paused(out: Out, paths: &Paths, paused: bool) -> Ending {
    // The daemon is told first: this must hold also where the file is broken.
    let told = ask::if_running::<Value>(paths, "hold", &json!({ "held": paused }))?;
    let edited = match change(paths, &[Change::Paused(paused)]) {
        Ok(edited) => edited,
        Err(failure) if paused && told.is_some() => {
            out.step("Paused", "all remote work, until the daemon starts again");
            return Err(failure);
        }
        Err(failure) => return Err(failure),
    };
    let state = if paused { "paused" } else { "working" };
    if out.json {
        out.object(&json!({ "ok": true, "state": state, "changed": edited.changed }));
    } else if paused {
        out.verb("Paused", "all remote work, until:  lembas resume-work");
    } else {
        out.verb("Working", about::limits(paths, &edited.config));
    }
    Ok(Exit::Well)
}

fn state(edited: &Edited) -> &'static str {
    if edited.changed {
        "changed"
    } else {
        "unchanged"
    }
}

pub(super) fn absolute(paths: &Paths, folder: &Path) -> Result<PathBuf, Failure> {
    if folder.as_os_str().is_empty() {
        return Err(Failure::new(
            Exit::Usage,
            "usage",
            "the name of the folder is empty",
            "lembas roots add ~/projects",
        ));
    }
    // A shell expands ~ itself; one that is quoted arrives here.
    let typed = path::expand(&folder.to_string_lossy(), Some(&paths.home));
    if typed.is_absolute() {
        return Ok(typed);
    }
    let here = std::env::current_dir().map_err(|error| {
        Failure::new(
            Exit::Not,
            "no_folder",
            "the folder you stand in cannot be used",
            "cd",
        )
        .why(words::io(&error))
    })?;
    Ok(path::clean(&here.join(typed)))
}

/// The real path of a folder that was typed, which must be there. `command` is the line to type
/// with another one, where `FOLDER` stands for it.
pub(super) fn existing_folder(
    paths: &Paths,
    command: &str,
    folder: &Path,
) -> Result<PathBuf, Failure> {
    let typed = absolute(paths, folder)?;
    let shown = paths.show(&typed);
    let line = |path: &Path| command.replacen("FOLDER", &words::quoted(&paths.show(path)), 1);
    let real = std::fs::canonicalize(&typed).map_err(|error| {
        let fix = match beside(&typed) {
            Some(near) => line(&near),
            None => format!("ls -ld {}", words::quoted(&typed.display().to_string())),
        };
        let text = format!("the folder {shown} cannot be used");
        Failure::new(Exit::Not, "no_folder", text, fix).why(words::io(&error))
    })?;
    if real.is_dir() {
        return Ok(real);
    }
    let parent = real.parent().unwrap_or(&real);
    let fix = match parent == paths.home {
        // Nobody means the whole home folder by a file in it.
        true => command.replacen("FOLDER", "~/projects", 1),
        false => line(parent),
    };
    let text = format!("{shown} is a file, and a folder is needed");
    Err(Failure::new(Exit::Not, "no_folder", text, fix))
}

/// A folder beside one that is not there, with nearly its name.
fn beside(typed: &Path) -> Option<PathBuf> {
    let name = typed.file_name()?.to_str()?;
    let parent = typed.parent()?;
    let names: Vec<String> = std::fs::read_dir(parent)
        .ok()?
        .flatten()
        .filter(|entry| entry.path().is_dir())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    let near = nearest(name, names.iter().map(String::as_str))?;
    Some(parent.join(near))
}

/// The settings of the file.
pub(super) fn read(paths: &Paths) -> Result<Config, Failure> {
    load(&paths.config_file(), &paths.home).map_err(|error| wrong(paths, &error))
}

/// Changes the settings in the file.
pub(super) fn change(paths: &Paths, changes: &[Change]) -> Result<Edited, Failure> {
    let edited = edit(paths, changes).map_err(|error| unwritable(paths, error))?;
    if edited.changed {
        told(paths);
    }
    Ok(edited)
}

/// Why the settings could not be changed.
pub(super) fn unwritable(paths: &Paths, error: EditError) -> Failure {
    match error {
        EditError::Config(error) => wrong(paths, &error),
        EditError::Write { path, source } => Failure::new(
            Exit::Config,
            "config",
            format!("{} cannot be written", paths.show(&path)),
            format!("ls -ld {}", words::quoted(&paths.show(&paths.config))),
        )
        .why(words::io(&source)),
        EditError::Form { path, key } => Failure::new(
            Exit::Config,
            "config",
            format!(
                "{} has {key} in a form that a command cannot change",
                paths.show(&path)
            ),
            "lembas config edit",
        ),
        EditError::Moved { path, draft } => Failure::new(
            Exit::Config,
            "config",
            format!(
                "{} was changed by another while it was edited",
                paths.show(&path)
            ),
            "lembas config edit",
        )
        .why(format!("what you wrote is in {}", paths.show(&draft))),
    }
}

/// Has a daemon that runs read the file, so that the change counts when the command returns. It
/// sees it by itself too, a moment later.
pub(super) fn told(paths: &Paths) {
    let look = async {
        let mut client = Client::connect(&paths.socket()).await.ok()?;
        client.request::<Value>("look", &json!({})).await.ok()
    };
    // Inside a runtime already (link, up) the daemon's own watch is enough.
    if tokio::runtime::Handle::try_current().is_err()
        && let Ok(runtime) = ask::runtime()
    {
        runtime.block_on(look);
    }
}

/// What is wrong with the settings, all of it.
pub(super) fn wrong(paths: &Paths, error: &ConfigError) -> Failure {
    match error {
        ConfigError::Read { path, source } => Failure::new(
            Exit::Config,
            "config",
            format!("{} cannot be read", paths.show(path)),
            format!("ls -l {}", words::quoted(&paths.show(path))),
        )
        .why(words::io(source)),
        ConfigError::Wrong { path, problems } => {
            let count = words::plural(problems.len() as u64, "mistake", "mistakes");
            let all: Vec<String> = problems.iter().map(ToString::to_string).collect();
            let open = problems.iter().any(|problem| problem.text == OPEN);
            let fix = match open {
                true => format!("chmod o-w {}", words::quoted(&paths.show(path))),
                false => "lembas config edit".to_owned(),
            };
            Failure::new(
                Exit::Config,
                "config",
                format!("{} has {count}", paths.show(path)),
                fix,
            )
            .why(all.join("\n       "))
        }
    }
}
