//! The floor: commands that are refused in every mode, on every reading of the text.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;
use std::sync::LazyLock;

use super::paths::pattern;
use crate::shell::{Found, Word, shown};
use crate::spec::permission::{Floor, permission};

/// A command of the floor that was found: the class' words and the segment.
#[derive(Debug)]
pub(super) struct Hit {
    pub(super) text: &'static str,
    pub(super) segment: String,
}

/// The classes by what they are known by: most commands are of none.
struct Index {
    names: HashMap<&'static str, Vec<usize>>,
    /// Names with a `*`.
    patterns: Vec<(&'static str, usize)>,
    redirects: Vec<usize>,
}

static INDEX: LazyLock<Index> = LazyLock::new(|| {
    let mut index = Index {
        names: HashMap::new(),
        patterns: Vec::new(),
        redirects: Vec::new(),
    };
    for (at, class) in permission().hardline.commands.iter().enumerate() {
        for name in &class.programs {
            if name.contains('*') {
                index.patterns.push((name, at));
            } else {
                index.names.entry(name).or_default().push(at);
            }
        }
        if !class.redirects.is_empty() {
            index.redirects.push(at);
        }
    }
    index
});

/// Looks for commands of the floor among what the wide reader found.
pub(super) fn find(text: &str, found: &[Found], home: &Path) -> Option<Hit> {
    let classes = &permission().hardline.commands;
    if let Some(class) = classes.iter().find(|class| class.bomb)
        && bomb(text)
    {
        return Some(Hit {
            text: &class.text,
            segment: crate::shell::segment(text),
        });
    }
    let index = &*INDEX;
    for (place, command) in found.iter().enumerate() {
        let name = command.words.first().map(Word::text).unwrap_or_default();
        let name = name.rsplit('/').next().unwrap_or_default();
        let name = if name.bytes().any(|b| b.is_ascii_uppercase()) {
            Cow::Owned(name.to_ascii_lowercase())
        } else {
            Cow::Borrowed(name)
        };
        let named = index.names.get(&*name).into_iter().flatten();
        let patterned = index.patterns.iter().filter(|(p, _)| pattern(p, &name));
        let mut at: Vec<usize> = named.copied().chain(patterned.map(|(_, at)| *at)).collect();
        if command.redirects.iter().any(|r| r.writes) {
            at.extend(&index.redirects);
        }
        // The first class of the list that it is of is told.
        at.sort_unstable();
        let mut hit = at.iter().filter_map(|at| classes.get(*at));
        if let Some(class) = hit.find(|class| matches(class, &name, command, home)) {
            return Some(Hit {
                text: &class.text,
                segment: shown(found, place),
            });
        }
    }
    None
}

fn matches(class: &Floor, name: &str, command: &Found, home: &Path) -> bool {
    let writes = command.redirects.iter().filter(|r| r.writes);
    if !class.redirects.is_empty()
        && writes
            .map(|r| plain_path(&r.target, home))
            .any(|target| class.redirects.iter().any(|p| pattern(p, &target)))
    {
        return true;
    }
    let Some((_, arguments)) = command.words.split_first() else {
        return false;
    };
    if !class.programs.iter().any(|p| pattern(p, name)) {
        return false;
    }
    let bare = class.paths.is_empty() && class.arguments.is_empty() && class.last.is_empty();
    let text = |w: &Word| w.text().to_owned();
    bare || arguments
        .iter()
        .map(|w| plain_path(w, home))
        .any(|path| class.paths.contains(&path))
        || arguments
            .iter()
            .map(text)
            .any(|a| class.arguments.iter().any(|p| pattern(p, &a)))
        || arguments
            .last()
            .map(text)
            .is_some_and(|a| class.last.iter().any(|p| pattern(p, &a)))
}

/// A path in its plain spelling: quotes away, the home folder as `~`, doubled slashes, `.` and
/// `..` taken out, and a trailing `*` with what it stands for.
fn plain_path(word: &Word, home: &Path) -> String {
    let raw: String = word.raw.chars().filter(|c| !"'\"\\".contains(*c)).collect();
    let mut text = raw.replace("${HOME}", "~").replace("$HOME", "~");
    if word.literal().is_some() || word.is_glob() && word.dynamic.is_none() {
        word.text().clone_into(&mut text);
    }
    let home = home.to_string_lossy();
    if home.len() > 1
        && let Some(rest) = text.strip_prefix(home.as_ref())
        && (rest.is_empty() || rest.starts_with('/'))
    {
        text = format!("~{rest}");
    }
    let absolute = text.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in text.split('/') {
        match part {
            "" | "." => {}
            ".." if absolute || !parts.is_empty() => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    // `/*`, `~/*`, `/.*` reach everything that is there.
    while parts.len() + usize::from(absolute) > 1 && parts.last().is_some_and(|p| all(p)) {
        parts.pop();
    }
    let joined = parts.join("/");
    if absolute {
        format!("/{joined}")
    } else {
        joined
    }
}

fn all(part: &str) -> bool {
    matches!(part, "*" | ".*" | "{*,.*}" | "**" | ".[!.]*" | "?*")
}

/// `f(){ f|f& };f` in any name and spacing.
fn bomb(text: &str) -> bool {
    if text.len() > 4_096 {
        return text
            .as_bytes()
            .chunks(2_048)
            .filter_map(|c| std::str::from_utf8(c).ok())
            .any(bomb);
    }
    let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    text.match_indices("(){").any(|(at, _)| {
        let before = text.get(..at).unwrap_or_default();
        let from = before
            .rfind([';', '&', '|', '\n', '(', ')', '{', '}'])
            .map_or(0, |p| p + 1);
        let name = before.get(from..).unwrap_or_default();
        let name = name.strip_prefix("function").unwrap_or(name);
        let body = text.get(at + 3..).unwrap_or_default();
        !name.is_empty() && body.starts_with(&format!("{name}|{name}&"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::greedy;

    fn hit(text: &str) -> bool {
        find(text, &greedy(text).0, Path::new("/home/ana")).is_some()
    }

    #[test]
    fn the_floor_is_found_in_every_spelling() {
        for text in [
            "rm -rf /",
            "rm -rf //",
            "rm -rf /.",
            "rm -rf /..",
            "rm -rf / *",
            "rm -rf /*",
            "rm -fr \"/\"",
            "rm -r ~",
            "rm -rf $HOME",
            "rm -rf \"${HOME}/\"",
            "rm -rf /home/ana/*",
            "rm -rf /etc/",
            "r\"\"m -rf /usr",
            "'rm' -rf /var/*",
            "\\rm -rf /",
            "$'\\x72m' -rf /",
            "rm${IFS}-rf${IFS}/",
            "a=rm; $a -rf /",
            "{rm,-rf,/}",
            "true && rm -rf /",
            "echo $(rm -rf /)",
            "echo `rm -rf /`",
            "sudo rm -rf /",
            "env A=1 nice -n 5 rm -rf /",
            "sh -c 'rm -rf /'",
            "bash -lc \"bash -c 'rm -rf /'\"",
            "eval 'rm -rf /'",
            "trap 'rm -rf /' EXIT",
            "find . -exec rm -rf / \\;",
            "echo x | xargs -I{} rm -rf /",
            "cat <<EOF\n$(rm -rf /)\nEOF",
            "sh <<'EOF'\nrm -rf /\nEOF",
            "sh <<< 'rm -rf /'",
            "echo 'rm -rf /' | sh",
            "echo 'rm -rf /' > s; sh s",
            "awk 'BEGIN{system(\"rm -rf /\")}'",
            "python3 -c 'import os; os.system(\"rm -rf /\")'",
            "git -c alias.x='!rm -rf /' x",
            "ssh host 'rm -rf /'",
            "mkfs.ext4 /dev/sda1",
            "dd if=/dev/zero of=/dev/sda",
            "echo x > /dev/nvme0n1",
            ":(){ :|:& };:",
            "bomb() { bomb | bomb & }; bomb",
            "kill -9 -1",
            "shutdown -h now",
            "init 0",
            "systemctl poweroff",
            "ls\u{a0}; rm -rf /",
            "if true; then rm -rf /; fi",
            "f() { rm -rf /; }; f",
        ] {
            assert!(hit(text), "{text:?}");
        }
    }

    #[test]
    fn what_only_speaks_of_it_is_left_alone() {
        for text in [
            "git commit -m \"fix rm -rf / handling\"",
            "cat >> notes.md <<'EOF'\nrm -rf /\nEOF",
            "echo 'curl x | sh'",
            "grep -rn 'shutdown' src",
            "rm -rf ./target /tmp/x",
            "rm -rf /home/ana/project/target",
            "rm -rf /etcetera",
            "kill -1 1234",
            "rg -n 'mkfs|rm -rf /' docs",
            "systemctl status reboot.target",
            "echo ...",
            "ls /",
            "f() { echo a | cat & }; f",
        ] {
            assert!(!hit(text), "{text:?}");
        }
    }
}
