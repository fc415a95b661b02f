//! Git: which of its commands only read, and what a repository's own settings could start.

use std::path::{Path, PathBuf};

use super::programs::any_gated;
use super::reader::{Reads, split};
use crate::shell::Word;

/// Options of any reading command that write or start something.
const GATED: &[&str] = &[
    "--output",
    "--ext-diff",
    "--textconv",
    "--open-files-in-pager",
    "--exec",
    "--upload-pack",
    "--show-signature",
    "--filters",
    "--orderfile",
    "-O",
    "--contents",
    "--no-index",
    "--batch-command",
];

const READS: &[&str] = &[
    "status",
    "log",
    "diff",
    "show",
    "rev-parse",
    "ls-files",
    "ls-tree",
    "blame",
    "annotate",
    "describe",
    "shortlog",
    "rev-list",
    "name-rev",
    "merge-base",
    "cat-file",
    "grep",
    "diff-tree",
    "diff-index",
    "diff-files",
    "for-each-ref",
    "show-ref",
    "count-objects",
    "whatchanged",
    "cherry",
    "range-diff",
    "check-ignore",
    "check-attr",
    "version",
    "show-branch",
];

/// The subcommand of a call and what follows it; none where other options than these stand first.
pub(super) fn subcommand(arguments: &[Word]) -> Option<(&str, &[Word], Option<&Word>)> {
    let mut rest = arguments;
    let mut folder = None;
    while let Some((word, after)) = rest.split_first() {
        match word.text() {
            "-C" => {
                folder = after.first();
                rest = after.get(1..)?;
            }
            "--no-pager" | "-P" | "--no-optional-locks" | "--literal-pathspecs" | "--bare" => {
                rest = after;
            }
            text if text.starts_with('-') => return None,
            _ => return Some((word.literal()?, after, folder)),
        }
    }
    None
}

/// What a git command reads, where it only reads.
pub(super) fn check(arguments: &[Word], open_ended: bool) -> Option<Reads<'_>> {
    if let [only] = arguments
        && only.text() == "--version"
    {
        return Some(Reads::default());
    }
    let (name, rest, folder) = subcommand(arguments)?;
    let split = split(rest, &[]);
    if open_ended || split.unsure || any_gated(&split.options, GATED) {
        return None;
    }
    // `%G?` of a format starts the program that checks signatures.
    if rest.iter().any(|w| w.text().contains("%G")) {
        return None;
    }
    let first = split.operands.first().map(|w| w.text());
    let given = |options: &[&str]| {
        split
            .options
            .iter()
            .any(|o| options.contains(&o.split('=').next().unwrap_or_default()))
    };
    let all = |options: &[&str]| {
        split
            .options
            .iter()
            .all(|o| options.contains(&o.split('=').next().unwrap_or_default()))
    };
    let reads = match name {
        "branch" => {
            all(&[
                "-a",
                "-r",
                "-v",
                "-vv",
                "-l",
                "--all",
                "--remotes",
                "--verbose",
                "--list",
                "--show-current",
                "--merged",
                "--no-merged",
                "--contains",
                "--no-contains",
                "--sort",
                "--format",
                "--column",
                "--points-at",
            ]) && (split.operands.is_empty()
                || given(&[
                    "-l",
                    "--list",
                    "--merged",
                    "--no-merged",
                    "--contains",
                    "--points-at",
                ]))
        }
        "tag" => {
            all(&[
                "-l",
                "-n",
                "--list",
                "--sort",
                "--format",
                "--contains",
                "--merged",
                "--points-at",
            ]) && (split.operands.is_empty()
                || given(&["-l", "--list", "--contains", "--merged", "--points-at"]))
        }
        "remote" => all(&["-v", "--verbose"]) && (first.is_none() || first == Some("get-url")),
        "stash" => matches!(first, Some("list" | "show")),
        "worktree" => first == Some("list"),
        "reflog" => matches!(first, None | Some("show")),
        "notes" => matches!(first, Some("list" | "show")),
        name => READS.contains(&name),
    };
    reads.then(|| Reads {
        paths: folder
            .into_iter()
            .chain(split.operands.iter().copied().filter(|w| {
                w.text().starts_with(['/', '~'])
                    || w.text().split('/').any(|p| p == "..") && !w.text().contains("...")
            }))
            .collect(),
        repository: true,
        ..Reads::default()
    })
}

/// What the repository around a folder sets that starts a program when it is only read; none when
/// nothing of the kind is set.
pub(super) fn starts(folder: &Path) -> Option<String> {
    let folder = repository(folder)?;
    let mut files = vec![folder.join("config"), folder.join("config.worktree")];
    if let Ok(common) = std::fs::read_to_string(folder.join("commondir")) {
        files.push(folder.join(common.trim()).join("config"));
    }
    files.iter().find_map(|file| setting(file))
}

/// The repository's own folder, looked for upwards.
fn repository(folder: &Path) -> Option<PathBuf> {
    for at in folder.ancestors() {
        let git = at.join(".git");
        if git.is_dir() {
            return Some(git);
        }
        if let Ok(text) = std::fs::read_to_string(&git)
            && let Some(path) = text.strip_prefix("gitdir:")
        {
            return Some(at.join(path.trim()));
        }
        // A bare repository, or one pretending to be.
        if at.join("HEAD").is_file() && at.join("objects").is_dir() && at.join("config").is_file() {
            return Some(at.to_path_buf());
        }
    }
    None
}

/// The first setting of a file that starts a program.
fn setting(file: &Path) -> Option<String> {
    // Longer than any honest one: treated as if it set something.
    const MOST: u64 = 256 * 1024;
    if file.metadata().is_ok_and(|m| m.len() > MOST) {
        return Some("more than can be read".to_owned());
    }
    let bytes = std::fs::read(file).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let mut section = String::new();
    for line in text.lines() {
        let mut line = line.trim();
        if let Some(rest) = line.strip_prefix('[') {
            let end = if rest.contains('"') { "\"]" } else { "]" };
            let Some((head, after)) = rest.split_once(end) else {
                return Some("something that cannot be read".to_owned());
            };
            section = head
                .split([' ', '.', '"'])
                .next()
                .unwrap_or_default()
                .to_ascii_lowercase();
            line = after.trim();
        }
        let (key, value) = line.split_once('=').unwrap_or((line, "true"));
        let key = key.trim().to_ascii_lowercase();
        let off = matches!(value.trim(), "false" | "no" | "off" | "0" | "");
        let starts = match (section.as_str(), key.as_str()) {
            (
                "core",
                "fsmonitor" | "hookspath" | "sshcommand" | "gitproxy" | "askpass" | "worktree",
            )
            | ("diff", "external" | "command" | "textconv")
            | ("filter", "clean" | "smudge" | "process")
            | ("gpg", "program")
            | ("log", "showsignature")
            | ("interactive", "difffilter")
            | ("extensions", "partialclone")
            | ("remote", "promisor") => !off,
            ("include" | "includeif", "path") => true,
            _ => false,
        };
        if starts {
            return Some(format!("{section}.{key}"));
        }
    }
    None
}
