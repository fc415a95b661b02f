//! The command line: clap types, one file a subcommand, exit codes.

mod answers;
mod args;
mod ask;
mod chats;
mod completions;
mod daemon;
mod failure;
mod help;
mod hub;
mod limits;
mod link;
mod logs;
mod monitor;
mod out;
#[cfg(test)]
mod pasted;
mod port;
mod roots;
mod rules;
mod settings;
mod spec;
mod status;
mod terminal;
mod up;
mod usage;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};

use self::args::{Args, Command};
use self::failure::{Exit, Failure};
use self::out::Out;
use crate::config::Paths;
use crate::config::paths::PathsError;
use crate::text::words;

/// What a command comes to.
type Ending = Result<Exit, Failure>;

/// Parses the arguments, runs the command and says how it ended.
pub fn main() -> ExitCode {
    let typed: Vec<OsString> = std::env::args_os().collect();
    run(&typed).into()
}

fn run(typed: &[OsString]) -> Exit {
    let typed_words: Vec<String> = typed
        .iter()
        .skip(1)
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    // Also where the arguments cannot be understood, errors go where they are looked for.
    let json = typed_words
        .iter()
        .take_while(|w| *w != "--")
        .any(|w| w == "--json");
    let out = Out::new(json);
    match completions::answer(typed) {
        Ok(false) => {}
        Ok(true) => return Exit::Well,
        Err(failure) => {
            out.failure(&failure);
            return failure.exit;
        }
    }
    let args = match Args::try_parse_from(typed) {
        Ok(args) => args,
        Err(error) if !error.use_stderr() => {
            out.line(error.render().to_string().trim_end());
            return Exit::Well;
        }
        Err(error) => {
            let mut command = Args::command();
            command.build();
            let failure = usage::failure(&error, &typed_words, &command);
            out.failure(&failure);
            return failure.exit;
        }
    };
    match dispatch(args, out) {
        Ok(exit) => exit,
        Err(failure) => {
            out.failure(&failure);
            failure.exit
        }
    }
}

fn dispatch(args: Args, out: Out) -> Ending {
    let Some(command) = args.command else {
        return help::overview(out);
    };
    let paths = || paths(args.data.as_deref());
    match command {
        Command::Help { topic } => help::topic(out, &topic),
        Command::Man => help::man(out),
        Command::Completions { shell } => completions::script(out, shell),
        Command::Roots { action } => roots::roots(out, &paths()?, action),
        Command::Mode { mode } => limits::mode(out, &paths()?, mode.as_deref()),
        Command::Approvals { whose } => limits::approvals(out, &paths()?, whose),
        Command::Service { action } => limits::service(out, &paths()?, &action),
        Command::Config { action } => settings::run(out, &paths()?, &action),
        Command::Remote { switch } => limits::remote(out, &paths()?, switch),
        Command::Pause => limits::pause(out, &paths()?),
        Command::ResumeWork => limits::resume(out, &paths()?),
        Command::Status => status::run(out, &paths()?),
        Command::Asks => answers::list(out, &paths()?),
        Command::Answer(args) => answers::answer(out, &paths()?, &args),
        Command::Link(args) => link::run(out, &paths()?, &args),
        Command::Unlink => link::unlink(out, &paths()?),
        Command::Up(args) => up::run(out, &paths()?, &args),
        Command::Hub(args) => hub::run(out, &paths()?, args),
        Command::Daemon => daemon::run(out, &paths()?),
        Command::Acp => daemon::acp(&paths()?),
        Command::Rules { action } => rules::run(out, &paths()?, action),
        Command::Allow { pending } => rules::allow(out, &paths()?, pending),
        Command::Sessions { action: None, n } => chats::sessions(out, &paths()?, n),
        Command::Sessions {
            action: Some(args::Chats::Delete { id, yes }),
            ..
        } => chats::delete(out, &paths()?, &id, yes),
        Command::Log { n } => chats::log(out, &paths()?, n),
        Command::Spec { action } => spec::run(out, action.as_ref()),
        Command::Monitor(args) => monitor::run(out, &paths()?, &args),
    }
}

/// The folders, found and made.
fn paths(data: Option<&std::path::Path>) -> Result<Paths, Failure> {
    let failed = |error: PathsError| match error {
        PathsError::NoHome => Failure::new(
            Exit::Config,
            "no_home",
            error.to_string(),
            "lembas --data /path/to/a/folder …",
        ),
        PathsError::Folder { path, source } => Failure::new(
            Exit::Config,
            "folder",
            format!("the folder {} cannot be used", path.display()),
            format!(
                "ls -ld {}",
                words::quoted(&there(&path).display().to_string())
            ),
        )
        .why(words::io(&source)),
    };
    let paths = Paths::find(data).map_err(failed)?;
    paths.create().map_err(failed)?;
    Ok(paths)
}

/// The part of a path that is there: what is in the way of the rest.
fn there(path: &std::path::Path) -> &std::path::Path {
    path.ancestors()
        .find(|part| part.symlink_metadata().is_ok())
        .unwrap_or(path)
}
