//! `lembas spec`: the harness spec inside this program, and whether a copy of it is the same.

use std::path::Path;

use serde_json::json;

use super::Ending;
use super::args::SpecAction;
use super::failure::{Exit, Failure};
use super::out::Out;
use crate::spec::{Contents, Difference, Spec};
use crate::text::words::quoted;
use crate::text::{escape, words};

/// Differences that are listed; more are counted.
const LISTED: usize = 8;

pub(super) fn run(out: Out, action: Option<&SpecAction>) -> Ending {
    match action {
        None => said(out),
        Some(SpecAction::Check { folder }) => check(out, folder),
    }
}

fn said(out: Out) -> Ending {
    let files = Contents::embedded();
    let (version, hash) = (&Spec::embedded().version, files.hash());
    let count = files.paths().count();
    if out.json {
        out.object(&json!({
            "ok": true, "version": version, "hash": hash, "files": count,
        }));
    } else {
        out.line(format!("{version} {hash}"));
        out.hint(format!(
            "{count} files. Compare a copy:  lembas spec check DIR"
        ));
    }
    Ok(Exit::Well)
}

fn check(out: Out, folder: &Path) -> Ending {
    let shown = escape::visible_line(&folder.display().to_string());
    let copy = Contents::read(folder).map_err(|error| {
        Failure::new(
            Exit::Not,
            "no_folder",
            format!("{shown} cannot be read as a spec"),
            format!("ls -la {}", quoted(&shown)),
        )
        .why(match folder.is_file() {
            true => "it is a file, and a folder is needed".to_owned(),
            false => words::io(&error),
        })
    })?;
    let ours = Contents::embedded();
    let differences = ours.differences(&copy);
    if differences.is_empty() {
        if out.json {
            out.object(&json!({ "ok": true, "state": "same", "hash": ours.hash() }));
        } else {
            out.verb(
                "Same",
                format!("{} {}", Spec::embedded().version, ours.hash()),
            );
        }
        return Ok(Exit::Well);
    }
    let all: Vec<String> = differences.iter().map(line).collect();
    // A program gets all of them.
    let most = if out.json { all.len() } else { LISTED };
    let mut why: Vec<String> = all.iter().take(most).cloned().collect();
    if all.len() > most {
        why.push(format!("and {} more", all.len() - most));
    }
    let count = words::plural(all.len() as u64, "file", "files");
    Err(Failure::new(
        Exit::Not,
        "differs",
        format!("{shown} differs from the spec in this program in {count}"),
        format!(
            "lembas spec          (this program has {})",
            Spec::embedded().version
        ),
    )
    .why(why.join("\n       ")))
}

fn line(difference: &Difference) -> String {
    let (what, path) = match difference {
        Difference::Missing(path) => ("is missing", path),
        Difference::Changed(path) => ("is not the same", path),
        Difference::Extra(path) => ("is not in this program", path),
    };
    format!("{} {what}", escape::visible_line(path))
}
