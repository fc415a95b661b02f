//! The program as a person runs it: exit codes, texts, JSON, in a home of its own.

use std::path::PathBuf;

use assert_cmd::Command;
use insta::assert_snapshot;
use serde_json::Value;

/// A home with nothing in it, and no environment but what is needed.
struct Home {
    base: tempfile::TempDir,
}

struct Ran {
    code: i32,
    out: String,
    err: String,
}

impl Home {
    fn new() -> Self {
        let base = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(base.path().join("ana/projects/api")).unwrap();
        Self { base }
    }

    fn home(&self) -> PathBuf {
        self.base.path().join("ana")
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::cargo_bin("lembas").unwrap();
        command
            .env_clear()
            .env("HOME", self.home())
            .env("PATH", "/usr/bin:/bin")
            .current_dir(self.home())
            .timeout(std::time::Duration::from_secs(60))
            .args(line.split_whitespace());
        command
    }

    fn run(&self, line: &str) -> Ran {
        let output = self.command(line).output().unwrap();
        let clean = |bytes: &[u8]| {
            // The home of this run is not the same twice.
            String::from_utf8_lossy(bytes).replace(&self.home().display().to_string(), "HOME")
        };
        Ran {
            code: output.status.code().unwrap_or(-1),
            out: clean(&output.stdout),
            err: clean(&output.stderr),
        }
    }

    /// What a person sees of a command: its exit code, stdout, and stderr marked with `!`.
    fn see(&self, line: &str) -> String {
        let ran = self.run(line);
        let mut text = format!("$ lembas {line}\n");
        text.extend(ran.out.lines().map(|l| format!("{l}\n")));
        text.extend(ran.err.lines().map(|l| format!("! {l}\n")));
        text.push_str(&format!("exit {}\n", ran.code));
        text
    }

    fn config(&self) -> PathBuf {
        self.home().join(".config/lembas/config.toml")
    }
}

#[test]
fn roots_are_added_listed_and_taken_back() {
    let home = Home::new();
    let all: String = [
        "roots list",
        "roots add projects",
        "roots add ~/projects",
        "roots add nowhere",
        "roots add /",
        "roots list",
        "roots remove ~/project",
        "roots remove projects",
        "roots list --json",
    ]
    .map(|line| home.see(line))
    .join("\n");
    assert_snapshot!(all, @r#"
    $ lembas roots list
    No folder is allowed.
    ! Allow one:  lembas roots add ~/projects
    exit 0

    $ lembas roots add projects
           Added  ~/projects
        Works in  ~/projects
    exit 0

    $ lembas roots add ~/projects
       Unchanged  ~/projects
        Works in  ~/projects
    exit 0

    $ lembas roots add nowhere
    ! error: the folder ~/nowhere cannot be used
    !   why: it does not exist
    !   try: ls -ld HOME/nowhere
    exit 1

    $ lembas roots add /
    ! error: / is the whole computer, and cannot be allowed as one folder
    !   try: lembas roots add ~/projects
    exit 64

    $ lembas roots list
    ~/projects
    exit 0

    $ lembas roots remove ~/project
    ! error: ~/project is not a folder that is allowed
    !   try: lembas roots remove ~/projects
    exit 1

    $ lembas roots remove projects
         Removed  ~/projects
        Works in  no folder yet
    exit 0

    $ lembas roots list --json
    {"ok":true,"roots":[]}
    exit 0
    "#);
}

#[test]
fn the_mode_is_set_and_auto_needs_its_whole_word() {
    let home = Home::new();
    let all: String = [
        "mode",
        "mode edit",
        "mode edit",
        "mode a",
        "mode plan",
        "mode edti",
        "mode auto",
        "approvals",
        "approvals local",
        "service scheduled on",
        "pause",
        "resume-work",
        "mode --json",
    ]
    .map(|line| home.see(line))
    .join("\n");
    assert_snapshot!(all, @r#"
    $ lembas mode
    manual
    ! It reads, and asks before every change and every command.
    exit 0

    $ lembas mode edit
             Set  up to Edit
    ! It changes files in the allowed folders and runs boxed commands without asking; what leaves the box asks.
    exit 0

    $ lembas mode edit
       Unchanged  up to Edit
    ! It changes files in the allowed folders and runs boxed commands without asking; what leaves the box asks.
    exit 0

    $ lembas mode a
    ! error: a is not a mode that can be the most
    !   why: auto asks almost nothing, so it counts only as the full word
    !   try: lembas mode auto
    exit 64

    $ lembas mode plan
    ! error: plan is not a mode that can be the most
    !   why: plan is always possible; the most is manual, edit or auto
    !   try: lembas mode manual
    exit 64

    $ lembas mode edti
    ! error: edti is not a mode that can be the most
    !   try: lembas mode edit
    exit 64

    $ lembas mode auto
             Set  up to Auto
    ! It asks almost nothing: every command may run, with the network.
    exit 0

    $ lembas approvals
    once
    ! Answers from the instance count once or for the session, and make no rules.
    exit 0

    $ lembas approvals local
             Set  local
    ! Only answers given on this computer count: lembas asks
    exit 0

    $ lembas service scheduled on
             Set  scheduled work on, up to Auto
    exit 0

    $ lembas pause
          Paused  all remote work, until:  lembas resume-work
    exit 0

    $ lembas resume-work
         Working  works in no folder yet, up to Auto, scheduled work on
    exit 0

    $ lembas mode --json
    {"ok":true,"max_mode":"auto"}
    exit 0
    "#);
}

#[test]
fn a_broken_file_is_told_whole_and_left_alone() {
    let home = Home::new();
    std::fs::create_dir_all(home.config().parent().unwrap()).unwrap();
    let text = "# mine\n[remote]\nmax_mod = \"edit\"\nscheduled = 1\n";
    std::fs::write(home.config(), text).unwrap();
    assert_snapshot!(home.see("mode auto"), @r"
    $ lembas mode auto
    ! error: ~/.config/lembas/config.toml has 2 mistakes
    !   why: line 3: max_mod is not a setting. The nearest is max_mode.
    !        line 4: scheduled must be true or false, not 1.
    !   try: lembas help config
    exit 78
    ");
    assert_eq!(std::fs::read_to_string(home.config()).unwrap(), text);
    let ran = home.run("mode auto --json");
    assert_eq!(ran.code, 78);
    let json: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(json["ok"], false);
    assert_eq!(json["error"]["code"], "config");
    assert!(ran.err.is_empty(), "{}", ran.err);
}

#[test]
fn where_no_daemon_runs_that_is_said_with_what_to_do() {
    let home = Home::new();
    let all: String = ["status", "status --json", "asks", "answer 7f allow"]
        .map(|line| home.see(line))
        .join("\n");
    assert_snapshot!(all, @r#"
    $ lembas status
    ! error: the daemon on this computer is not running
    !   try: lembas up
    !   or:  lembas daemon
    exit 69

    $ lembas status --json
    {"ok":false,"error":{"code":"not_running","text":"the daemon on this computer is not running","try":["lembas up","lembas daemon"]}}
    exit 69

    $ lembas asks
    ! error: the daemon on this computer is not running
    !   try: lembas up
    !   or:  lembas daemon
    exit 69

    $ lembas answer 7f allow
    ! error: the daemon on this computer is not running
    !   try: lembas up
    !   or:  lembas daemon
    exit 69
    "#);
}

#[test]
fn without_a_home_it_says_so() {
    let home = Home::new();
    let output = home
        .command("mode")
        .env("HOME", "")
        .env("LEMBAS_DATA", home.home().join("here"))
        .output()
        .unwrap();
    // The account's own home stands in, and the folder that was named is used.
    assert_eq!(output.status.code(), Some(0));
    assert!(home.home().join("here/config").is_dir());
}

#[test]
fn wrong_use_is_an_error_of_three_lines_and_no_wall_of_help() {
    let home = Home::new();
    assert_snapshot!(home.see("stauts"), @r"
    $ lembas stauts
    ! error: lembas has no command stauts
    !   try: lembas status
    exit 64
    ");
    let ran = home.run("stauts --json");
    assert_eq!(ran.code, 64);
    let json: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(json["error"]["try"][0], "lembas status");
}

#[test]
fn every_command_has_help_with_an_end() {
    let home = Home::new();
    for line in [
        "",
        "--help",
        "help",
        "help up",
        "up --help",
        "help hub model add",
        "--version",
    ] {
        let ran = home.run(line);
        assert_eq!(ran.code, 0, "{line}");
        assert!(!ran.out.is_empty(), "{line}");
        assert!(ran.err.is_empty(), "{line}: {}", ran.err);
        assert!(!ran.out.contains('\u{1b}'), "{line}");
    }
    for topic in ["phone", "remote", "config", "environment"] {
        assert!(home.run(&format!("help {topic}")).out.lines().count() > 3);
    }
    assert_snapshot!(home.see("help fone"), @r"
    $ lembas help fone
    ! error: there is no help about fone
    !   try: lembas help phone
    exit 64
    ");
    assert!(home.run("man").out.contains(".TH lembas"));
    for shell in ["bash", "zsh", "fish"] {
        assert!(
            home.run(&format!("completions {shell}"))
                .out
                .contains("lembas")
        );
    }
}

#[test]
fn folders_are_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = Home::new();
    home.run("mode edit");
    for folder in [
        ".config/lembas",
        ".local/share/lembas",
        ".local/state/lembas",
    ] {
        let meta = std::fs::metadata(home.home().join(folder)).unwrap();
        assert_eq!(meta.permissions().mode() & 0o777, 0o700, "{folder}");
    }
    let meta = std::fs::metadata(home.config()).unwrap();
    assert_eq!(meta.permissions().mode() & 0o777, 0o600);
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
