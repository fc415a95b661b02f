//! Paths as a person writes and reads them: `~` for the home folder.

use std::path::{Component, Path, PathBuf};

/// The path with `~` for `home` at its start, hidden characters shown.
pub fn tilde(path: &Path, home: Option<&Path>) -> String {
    let shown = match home.and_then(|home| path.strip_prefix(home).ok()) {
        Some(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
        Some(rest) => format!("~/{}", rest.display()),
        None => path.display().to_string(),
    };
    super::escape::visible_line(&shown)
}

/// The path with a leading `~` or `~/` replaced by `home`, without `.` and with `..` resolved by
/// name only. Other users' homes (`~ana`) are not looked up.
pub fn expand(text: &str, home: Option<&Path>) -> PathBuf {
    let path = match (text.strip_prefix('~'), home) {
        (Some(""), Some(home)) => home.to_owned(),
        (Some(rest), Some(home)) if rest.starts_with('/') => {
            home.join(rest.trim_start_matches('/'))
        }
        _ => PathBuf::from(text),
    };
    clean(&path)
}

/// The path without `.`, doubled slashes and what `..` takes back, by name only.
pub fn clean(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                if !out.pop() {
                    out.push(Component::ParentDir);
                }
            }
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn home_is_a_tilde_both_ways() {
        let home = Path::new("/home/ana");
        for (path, shown) in [
            ("/home/ana", "~"),
            ("/home/ana/projects/api", "~/projects/api"),
            ("/home/anabel", "/home/anabel"),
            ("/etc", "/etc"),
        ] {
            assert_eq!(tilde(Path::new(path), Some(home)), shown);
            assert_eq!(expand(shown, Some(home)), PathBuf::from(path));
        }
        assert_eq!(tilde(Path::new("/a\u{202e}b"), None), "/a<U+202E>b");
        assert_eq!(
            expand("~/a/./b/../c/", Some(home)),
            PathBuf::from("/home/ana/a/c")
        );
        assert_eq!(expand("~bob/x", Some(home)), PathBuf::from("~bob/x"));
    }
}
