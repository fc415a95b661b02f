//! `lembas config edit` with an editor that a script stands in for, and `lembas remote`.

use insta::assert_snapshot;

use super::Home;

/// An editor that a script stands in for: it gets the file's name as its last argument.
fn editor(home: &Home, script: &str) -> String {
    let path = home.home().join("editor.sh");
    std::fs::write(
        &path,
        format!("#!/bin/sh\nfor file; do :; done\n{script}\n"),
    )
    .unwrap();
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
    // With an argument, as `code --wait` has.
    format!("{} --wait", path.display())
}

#[test]
fn settings_are_edited_in_ones_own_editor_and_count_once_understood() {
    let home = Home::new();
    let edit = |script: &str| {
        let output = home
            .command("config edit")
            .env("EDITOR", editor(&home, script))
            .output()
            .unwrap();
        let text = |bytes: &[u8]| {
            String::from_utf8_lossy(bytes).replace(&home.home().display().to_string(), "HOME")
        };
        format!(
            "{}{}exit {}\n",
            text(&output.stdout),
            text(&output.stderr),
            output.status.code().unwrap_or(-1)
        )
    };
    let all = [
        // Looked at and left alone: no file comes of it.
        edit("true"),
        home.see("config check"),
        edit("printf '[remote]\\nmax_mode = \"edit\" # mine\\n' > \"$file\""),
        home.see("mode"),
        edit("printf 'max_mod = \"auto\"\\n[remote]\\nroots = 1\\n' > \"$file\""),
        home.see("mode"),
        // The next edit goes on with what was typed.
        edit("printf '[remote]\\nmax_mode = \"manual\"\\n' > \"$file\""),
        // Another writer meanwhile: neither is lost.
        edit(&format!(
            "printf '\\n# typed\\n' >> \"$file\"; echo '# other' >> {}",
            home.config().display()
        )),
        // Begins with the settings of now, so that the other's change is not taken back.
        edit("exit 3"),
        edit("rm \"$file\""),
        home.see("mode"),
    ]
    .join("\n");
    assert_snapshot!(all, @r#"
       Unchanged  ~/.config/lembas/config.toml
    exit 0

    $ lembas config check
            Well  ~/.config/lembas/config.toml
    exit 0

         Changed  ~/.config/lembas/config.toml
          Limits  works in no folder yet, up to Edit, scheduled work off
    exit 0

    $ lembas mode
    edit
    ! It changes files in the allowed folders and runs boxed commands without asking; what leaves the box asks.
    exit 0

    error: ~/.config/lembas/config.draft.toml has 2 mistakes
      why: line 1: max_mod is not a setting. The nearest is max_mode, which belongs into [remote].
           line 3: roots must be a list, as in ["~/projects"], not 1.
      try: lembas config edit
    exit 78

    $ lembas mode
    edit
    ! It changes files in the allowed folders and runs boxed commands without asking; what leaves the box asks.
    exit 0

         Changed  ~/.config/lembas/config.toml
          Limits  works in no folder yet, up to Manual, scheduled work off
    Going on with what was left in ~/.config/lembas/config.draft.toml.
    exit 0

    error: ~/.config/lembas/config.toml was changed by another while it was edited
      why: what you wrote is in ~/.config/lembas/config.draft.toml
      try: lembas config edit
    exit 78

    The settings were changed since you wrote ~/.config/lembas/config.draft.old.toml: this begins with them.
    error: the editor HOME/editor.sh --wait did not end well, and nothing was changed
      why: exit status: 3
      try: EDITOR=/path/to/another lembas config edit
    exit 69

       Unchanged  ~/.config/lembas/config.toml
    exit 0

    $ lembas mode
    manual
    ! It reads, and asks before every change and every command.
    exit 0
    "#);
    let draft = home.home().join(".config/lembas/config.draft.old.toml");
    assert!(
        std::fs::read_to_string(home.config())
            .unwrap()
            .ends_with("# other\n")
    );
    assert!(std::fs::read_to_string(draft).unwrap().contains("# typed"));
}

#[test]
fn remote_work_is_switched_off_and_on() {
    let home = Home::new();
    let all = [
        "remote",
        "remote off",
        "remote --json",
        "remote off",
        "remote on",
        "sessions delete 3f9c",
    ]
    .map(|line| home.see(line))
    .join("\n");
    assert_snapshot!(all, @r#"
    $ lembas remote
    on
    exit 0

    $ lembas remote off
             Set  remote work off; what an instance had running was ended
    exit 0

    $ lembas remote --json
    {"ok":true,"remote":false}
    exit 0

    $ lembas remote off
       Unchanged  remote work off; what an instance had running was ended
    exit 0

    $ lembas remote on
             Set  remote work on: works in no folder yet, up to Manual, scheduled work off
    exit 0

    $ lembas sessions delete 3f9c
    ! error: there is no chat whose id begins with 3f9c
    !   try: lembas sessions
    exit 1
    "#);
}
/// A start is quick because of what it leaves: texts, tools and permissions of the spec are parsed
/// by the first turn or judgement.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "a test that answers while the program runs"
)]
fn an_editor_is_answered_before_the_spec_is_parsed() {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::process::Stdio;
    let home = Home::new();
    let mut editor = std::process::Command::new(assert_cmd::cargo::cargo_bin("lembas"))
        .arg("acp")
        .env_clear()
        .envs([("PATH", "/usr/bin:/bin"), ("LEMBAS_LOG", "debug")])
        .env("HOME", home.home())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}"#;
    writeln!(editor.stdin.as_mut().unwrap(), "{hello}").unwrap();
    let mut answered = String::new();
    let mut said = BufReader::new(editor.stdout.take().unwrap());
    said.read_line(&mut answered).unwrap();
    assert!(answered.contains(r#""protocolVersion":1"#), "{answered}");
    let log = editor.wait_with_output().unwrap().stderr;
    let log = String::from_utf8_lossy(&log);
    assert!(log.contains("DEBUG"), "nothing is logged: {log}");
    for part in ["texts and tools", "permissions"] {
        assert!(!log.contains(&format!("{part} are parsed")), "{log}");
    }
}
