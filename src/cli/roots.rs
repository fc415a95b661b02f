//! The folders that instances work in: added, taken back, listed.

use std::path::Path;

use serde_json::json;

use super::Ending;
use super::args::Roots;
use super::failure::{Exit, Failure};
use super::limits::{absolute, change, existing_folder, read};
use super::out::Out;
use crate::config::Paths;
use crate::config::edit::{Change, Edited};
use crate::daemon::about;
use crate::permission;
use crate::text::nearest::nearest;
use crate::text::words;

pub(super) fn roots(out: Out, paths: &Paths, action: Option<Roots>) -> Ending {
    match action.unwrap_or(Roots::List) {
        Roots::Add { folder } => add_root(out, paths, &folder),
        Roots::Remove { folder } => remove_root(out, paths, &folder),
        Roots::List => list_roots(out, paths),
    }
}

fn add_root(out: Out, paths: &Paths, folder: &Path) -> Ending {
    let root = existing_folder(paths, "lembas roots add FOLDER", folder)?;
    shareable(paths, &root)?;
    let edited = change(paths, &[Change::AddRoot(root.clone())])?;
    if root == paths.home {
        out.warning(
            "this is your whole home folder: an instance can read nearly everything of yours",
            "lembas roots remove ~        and add single folders",
        );
    }
    tell_roots(
        out,
        paths,
        if edited.changed { "Added" } else { "Unchanged" },
        &root,
        &edited,
    )
}

/// That a folder can be one to work in: not the whole computer, nothing of lembas' own, nothing that
/// is protected as a whole. `root` has its links followed.
fn shareable(paths: &Paths, root: &Path) -> Result<(), Failure> {
    let refused =
        |text: String| Failure::new(Exit::Usage, "root", text, "lembas roots add ~/projects");
    if root == Path::new("/") {
        return Err(refused(
            "/ is the whole computer, and cannot be allowed as one folder".to_owned(),
        ));
    }
    let shown = paths.show(root);
    let own = paths.own().map(permission::resolve);
    if own.iter().any(|own| root.starts_with(own)) {
        let text = format!("{shown} is a folder of lembas itself, and cannot be allowed");
        return Err(refused(text).why("its tokens, rules and chats are nobody's to read or change"));
    }
    if holds_only(root, &own) {
        let text = format!("{shown} holds only folders of lembas itself, and cannot be allowed");
        return Err(refused(text).why("its tokens, rules and chats are nobody's to read or change"));
    }
    let home = permission::resolve(&paths.home);
    match permission::unshareable(root, &home) {
        Some(what) => {
            let text = format!("{shown} is protected, and cannot be allowed");
            Err(refused(text).why(format!("it holds {what}")))
        }
        None => Ok(()),
    }
}

/// Whether there is something in a folder, and all of it is our own.
fn holds_only(folder: &Path, own: &[std::path::PathBuf]) -> bool {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return false;
    };
    let mut entries = entries.flatten().map(|entry| entry.path()).peekable();
    entries.peek().is_some()
        && entries.all(|path| {
            own.iter().any(|own| path.starts_with(own))
                || own.iter().any(|own| own.starts_with(&path)) && holds_only(&path, own)
        })
}

fn remove_root(out: Out, paths: &Paths, folder: &Path) -> Ending {
    let config = read(paths)?;
    let typed = absolute(paths, folder)?;
    // A folder that is gone can still be taken back, by the name it has in the file.
    let resolved = std::fs::canonicalize(&typed).unwrap_or_else(|_| typed.clone());
    let Some(root) = [typed.clone(), resolved]
        .into_iter()
        .find(|root| config.remote.roots.contains(root))
    else {
        let known: Vec<String> = config.remote.roots.iter().map(|r| paths.show(r)).collect();
        let shown = paths.show(&typed);
        let fix = nearest(&shown, known.iter().map(String::as_str)).map_or_else(
            || "lembas roots list".to_owned(),
            |near| format!("lembas roots remove {}", words::quoted(near)),
        );
        return Err(Failure::new(
            Exit::Not,
            "not_a_root",
            format!("{shown} is not a folder that is allowed"),
            fix,
        ));
    };
    let edited = change(paths, &[Change::RemoveRoot(root.clone())])?;
    tell_roots(out, paths, "Removed", &root, &edited)
}

fn tell_roots(out: Out, paths: &Paths, verb: &str, root: &Path, edited: &Edited) -> Ending {
    if out.json {
        out.object(&json!({
            "ok": true,
            "state": verb.to_lowercase(),
            "root": root,
            "roots": edited.config.remote.roots,
        }));
    } else {
        out.verb(verb, paths.show(root));
        out.verb("Works in", about::works_in(paths, &edited.config));
    }
    Ok(Exit::Well)
}

fn list_roots(out: Out, paths: &Paths) -> Ending {
    let config = read(paths)?;
    if out.json {
        out.object(&json!({ "ok": true, "roots": config.remote.roots }));
    } else if config.remote.roots.is_empty() {
        out.line("No folder is allowed.");
        out.hint("Allow one:  lembas roots add ~/projects");
    } else {
        for root in &config.remote.roots {
            let gone = if root.is_dir() { "" } else { "   is not there" };
            out.line(format!("{}{gone}", paths.show(root)));
        }
    }
    Ok(Exit::Well)
}
