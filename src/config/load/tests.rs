use super::*;
use insta::assert_snapshot;

fn home() -> PathBuf {
    PathBuf::from("/home/ana")
}

fn said(text: &str) -> String {
    match parse(text, &home()) {
        Ok(_) => "all well".to_owned(),
        Err(problems) => problems
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join("\n"),
    }
}

#[test]
fn a_whole_file_is_read() {
    let config = parse(
        r#"
name = "zephyr"
[remote]
enabled = true
roots = ["~/projects", "/srv/notes/../work"] # comments are fine
max_mode = "auto"
scheduled = true
approvals = "local"
approval_timeout = 600
max_sessions = 3
sudo = "ask"
[protected]
release = ["~/.envrc"]
[link]
ca_file = "/etc/ca.pem"
"#,
        &home(),
    )
    .unwrap();
    assert_eq!(config.name.as_deref(), Some("zephyr"));
    assert_eq!(
        config.remote.roots,
        ["/home/ana/projects", "/srv/work"].map(PathBuf::from)
    );
    assert_eq!(config.remote.max_mode, Mode::Auto);
    assert_eq!(config.remote.approvals, Approvals::Local);
    assert_eq!(config.remote.approval_timeout, Some(600));
    assert_eq!(config.remote.sudo, Sudo::Ask);
    assert_eq!(config.remote.max_sessions, 3);
    assert_eq!(
        config.protected.release,
        [PathBuf::from("/home/ana/.envrc")]
    );
    assert_eq!(config.link.ca_file, Some(PathBuf::from("/etc/ca.pem")));
}

#[test]
fn nothing_is_allowed_by_default() {
    let config = parse("", &home()).unwrap();
    assert_eq!(config, Config::default());
    assert!(config.remote.roots.is_empty());
    assert!(!config.remote.scheduled);
    assert_eq!(config.remote.max_mode, Mode::Manual);
}

#[test]
fn everything_wrong_is_said_at_once() {
    assert_snapshot!(said(r#"nane = "zephyr"
max_mode = "edit"

[remote]
max_mod = "edit"
roots = ["projects", "/", 7, "~/ok"]
scheduled = "yes"
approvals = "always"
approval_timeout = 5
max_sessions = -1
colour = true
[link]
pin = "abc"
proxy = "socks5://x"
[extra]
"#), @r#"
    line 1: nane is not a setting. The nearest is name.
    line 2: max_mode belongs into [remote].
    line 5: max_mod is not a setting. The nearest is max_mode.
    line 6: roots: "projects" must be a whole path that begins with / or ~/.
    line 6: roots: / is the whole computer. Name the folders to work in.
    line 6: roots: every entry must be a path in quotes.
    line 7: scheduled must be true or false, not "yes".
    line 8: approvals must be once, full or local, not "always".
    line 9: approval_timeout must be a number of seconds from 60 to 86400, not 5.
    line 10: max_sessions must be a number of sessions from 1 to 64, not -1.
    line 11: colour is not a setting. In [remote] there are enabled, paused, roots, max_mode, scheduled, approvals, approval_timeout, approval_max, max_sessions and sudo.
    line 13: pin must be sha256: and the 64 hexadecimal digits of a certificate's hash.
    line 14: proxy must begin with http:// or https://.
    line 15: extra is not a setting. There are name, remote, protected and link.
    "#);
}

#[test]
fn auto_counts_only_as_the_full_word() {
    for word in ["a", "Auto", "AUTO", "unrestricted", "aut"] {
        let text = format!("[remote]\nmax_mode = \"{word}\"");
        assert_eq!(
            said(&text),
            format!("line 2: max_mode must be manual, edit or auto, not \"{word}\".")
        );
    }
    assert_eq!(
        said("[remote]\nmax_mode = \"plan\""),
        "line 2: max_mode is the most that is possible, and plan is always possible. \
         It can be manual, edit or auto."
    );
}

#[test]
fn what_is_not_toml_names_its_line() {
    assert_snapshot!(said("[remote]\nroots = [\"~/a\"\nscheduled = true"), @"line 3: This is not TOML: missing comma between array elements, expected `,`.");
    assert_snapshot!(said("remote = 3"), @"line 1: remote must be a table, as in [remote], not 3.");
}

#[test]
fn a_file_that_others_can_change_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let base = tempfile::tempdir().unwrap();
    let path = base.path().join("config.toml");
    assert_eq!(load(&path, &home()).unwrap(), Config::default());
    std::fs::write(&path, "").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
    let error = load(&path, &home()).unwrap_err();
    assert!(matches!(error, ConfigError::Wrong { .. }), "{error:?}");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o664)).unwrap();
    load(&path, &home()).unwrap();
}

#[test]
fn a_pipe_in_its_place_holds_nobody_up() {
    let base = tempfile::tempdir().unwrap();
    let file = base.path().join("config.toml");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &file, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let error = load(&file, &home()).unwrap_err();
    let ConfigError::Wrong { problems, .. } = error else {
        panic!("{error:?}")
    };
    assert!(problems[0].text.contains("must be a file"), "{problems:?}");
}
