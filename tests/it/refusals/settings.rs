//! Files on this computer that are wrong: the settings, and the file with the token.

use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::{hold, sound};
use crate::cli::Home;

/// What stands in `config.toml`.
const WRONG: [(&str, &str); 21] = [
    ("no TOML", "remote = ["),
    ("no TOML in the third line", "name = \"a\"\n\n[remote\n"),
    (
        "the same twice",
        "[remote]\npaused = true\npaused = false\n",
    ),
    ("a key that is nearly one", "[remote]\nmax_mod = \"edit\"\n"),
    ("a key that is none", "[remote]\ncolour = \"red\"\n"),
    ("a table that is none", "[romote]\npaused = true\n"),
    ("a key in the wrong table", "max_mode = \"edit\"\n"),
    ("no table", "remote = true\n"),
    ("no text", "name = 4\n"),
    ("an empty name", "name = \"\"\n"),
    ("no yes or no", "[remote]\nscheduled = \"yes\"\n"),
    ("a mode that is none", "[remote]\nmax_mode = \"all\"\n"),
    ("plan as the most", "[remote]\nmax_mode = \"plan\"\n"),
    ("a number out of range", "[remote]\napproval_timeout = 5\n"),
    ("no number", "[remote]\nmax_sessions = \"eight\"\n"),
    (
        "roots that are no list",
        "[remote]\nroots = \"~/projects\"\n",
    ),
    (
        "a root that is no whole path",
        "[remote]\nroots = [\"projects\", 4]\n",
    ),
    ("the whole computer", "[remote]\nroots = [\"/\"]\n"),
    ("a pin that is none", "[link]\npin = \"sha256:00\"\n"),
    (
        "a proxy that is none",
        "[link]\nproxy = \"socks5://127.0.0.1\"\n",
    ),
    (
        "a file of authorities that is none",
        "[link]\nca_file = \"ca.pem\"\n",
    ),
];

fn said(home: &Home, what: &str, line: &str) -> String {
    let ran = home.run(line);
    let whole = format!("{what}\n{}", home.see(line));
    let (text, next) = ran.err.split_once("\n  try: ").unwrap_or((&ran.err, ""));
    assert!(matches!(ran.code, 1 | 69 | 78), "{whole}");
    sound(&whole, text, next);
    whole
}

#[test]
fn every_way_the_settings_can_be_wrong() {
    let home = Home::new();
    home.run("mode");
    let file = home.config();
    let mut all = Vec::new();
    for (what, text) in WRONG {
        std::fs::write(&file, text).unwrap();
        all.push(said(&home, what, "mode edit"));
        assert_eq!(
            std::fs::read_to_string(&file).unwrap(),
            text,
            "{what}: it was changed"
        );
    }
    std::fs::write(&file, [0xff, 0xfe, b'a']).unwrap();
    all.push(said(&home, "no UTF-8", "mode edit"));
    std::fs::write(&file, "#".repeat(1024 * 1024 + 1)).unwrap();
    all.push(said(&home, "too large", "mode edit"));
    std::fs::write(&file, "").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o666)).unwrap();
    all.push(said(&home, "everybody may write it", "mode edit"));
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    if rustix::process::geteuid().is_root() {
        let other = rustix::fs::Uid::from_raw(12_345);
        rustix::fs::chown(&file, Some(other), None).unwrap();
        let told = said(&home, "of another user", "mode edit");
        assert!(told.contains("It belongs to another user"), "{told}");
    }
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    all.push(said(&home, "a folder", "mode edit"));
    std::fs::remove_dir(&file).unwrap();
    symlink("config.toml", &file).unwrap();
    all.push(said(&home, "a link to itself", "mode edit"));
    // What else reads the settings says the same.
    for line in [
        "up --listen 127.0.0.1:0",
        "daemon",
        "hub --listen 127.0.0.1:0",
        "unlink",
    ] {
        all.push(said(&home, "for another command", line));
    }
    hold("settings", &all.join("\n"));
}

#[test]
fn every_way_the_token_file_can_be_wrong() {
    let home = Home::new();
    home.run("mode");
    let file = home.config().with_file_name("instance.json");
    let mut all = Vec::new();
    std::fs::create_dir(&file).unwrap();
    all.push(said(&home, "a folder", "unlink"));
    std::fs::remove_dir(&file).unwrap();
    symlink("elsewhere.json", &file).unwrap();
    all.push(said(&home, "a link", "unlink"));
    std::fs::remove_file(&file).unwrap();
    std::fs::write(&file, "x".repeat(1024 * 1024 + 1)).unwrap();
    all.push(said(&home, "too large", "unlink"));
    for text in ["", "{}", "not JSON"] {
        std::fs::write(&file, text).unwrap();
        all.push(said(&home, &format!("{text:?}"), "up --listen 127.0.0.1:0"));
    }
    // One that others can read is repaired and not refused.
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    all.push(said(&home, "readable by all", "up --listen 127.0.0.1:0"));
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    hold("token_file", &all.join("\n"));
}
