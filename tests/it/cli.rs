//! The program as a person runs it: exit codes, texts, JSON, in a home of its own.

mod settings;
mod shells;
mod terminal;

use std::path::PathBuf;

use assert_cmd::Command;
use insta::assert_snapshot;
use serde_json::Value;

/// A home with nothing in it, and no environment but what is needed.
pub(crate) struct Home {
    base: tempfile::TempDir,
}

pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Home {
    pub(crate) fn new() -> Self {
        let base = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(base.path().join("ana/projects/api")).unwrap();
        Self { base }
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.base.path().join("ana")
    }

    pub(crate) fn command(&self, line: &str) -> Command {
        let mut command = Command::cargo_bin("lembas").unwrap();
        command
            .env_clear()
            .env("HOME", self.home())
            .env("PATH", "/usr/bin:/bin")
            .current_dir(self.home())
            .timeout(std::time::Duration::from_secs(60))
            .args(words(line));
        command
    }

    pub(crate) fn run(&self, line: &str) -> Ran {
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
    pub(crate) fn see(&self, line: &str) -> String {
        let ran = self.run(line);
        let mut text = format!("$ lembas {line}\n");
        text.extend(ran.out.lines().map(|l| format!("{l}\n")));
        text.extend(ran.err.lines().map(|l| format!("! {l}\n")));
        text.push_str(&format!("exit {}\n", ran.code));
        text
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.home().join(".config/lembas/config.toml")
    }
}

/// The words of a line as a test writes it: `""` is an empty one.
fn words(line: &str) -> impl Iterator<Item = &str> {
    let word = |word| if word == "\"\"" { "" } else { word };
    line.split_whitespace().map(word)
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
    ! error: a cannot be the most that is allowed: that is manual, edit or auto
    !   why: auto asks almost nothing, so it counts only as the full word
    !   try: lembas mode auto
    exit 64

    $ lembas mode plan
    ! error: plan cannot be the most that is allowed: that is manual, edit or auto
    !   why: plan is always possible; the most is manual, edit or auto
    !   try: lembas mode manual
    exit 64

    $ lembas mode edti
    ! error: edti cannot be the most that is allowed: that is manual, edit or auto
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
    assert_snapshot!(home.see("mode auto"), @"
    $ lembas mode auto
    ! error: ~/.config/lembas/config.toml has 2 mistakes
    !   why: line 3: max_mod is not a setting. The nearest is max_mode.
    !        line 4: scheduled must be true or false, not 1.
    !   try: lembas config edit
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
    let all: String = ["status", "status --json", "answer 7f allow"]
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
        let script = home.run(&format!("completions {shell}")).out;
        assert!(script.starts_with("# Install:  echo '"), "{script}");
        // The way that the help names is the one that the script names.
        let install = script
            .lines()
            .next()
            .unwrap()
            .trim_start_matches("# Install:  ");
        assert!(
            home.run("help completions").out.contains(install),
            "{install}"
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

#[test]
fn what_is_on_the_disk_is_read_where_no_daemon_runs() {
    let home = Home::new();
    let all: String = [
        "sessions",
        "asks",
        "rules",
        "rules pending",
        "log",
        "sessions --json",
        "asks --json",
        "rules --json",
        "rules pending --json",
        "log --json",
    ]
    .map(|line| home.see(line))
    .join("\n");
    assert_snapshot!(all, @r#"
    $ lembas sessions
    There are no chats yet.
    exit 0

    $ lembas asks
    No question waits.
    exit 0

    $ lembas rules
    Nothing is allowed without asking but what the mode allows.
    exit 0

    $ lembas rules pending
    No watch command was refused for want of a yes.
    exit 0

    $ lembas log
    Nothing was allowed or refused yet.
    exit 0

    $ lembas sessions --json
    {"ok":true,"sessions":[],"more":false}
    exit 0

    $ lembas asks --json
    {"ok":true,"asks":[]}
    exit 0

    $ lembas rules --json
    {"ok":true,"rules":[]}
    exit 0

    $ lembas rules pending --json
    {"ok":true,"pending":[]}
    exit 0

    $ lembas log --json
    exit 0
    "#);
}

#[test]
fn the_spec_says_what_it_is_and_whether_a_copy_is_it() {
    let home = Home::new();
    let ran = home.run("spec");
    let (version, hash) = ran.out.trim().split_once(' ').unwrap();
    assert_eq!(version, include_str!("../../spec/VERSION").trim());
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/spec");
    let same = home.run(&format!("spec check {own}"));
    assert_eq!(
        (same.code, same.out),
        (0, format!("        Same  {version} {hash}\n"))
    );
    let json: Value = serde_json::from_str(&home.run("spec --json").out).unwrap();
    assert_eq!(json["hash"], hash);
    let copy = home.home().join("copy");
    std::fs::create_dir(&copy).unwrap();
    std::fs::write(copy.join("VERSION"), "9.9.9\n").unwrap();
    std::fs::write(copy.join("more.json"), "{}").unwrap();
    let ran = home.run("spec check copy");
    assert_eq!(ran.code, 1);
    for line in ["VERSION is not the same", "acp.md is missing"] {
        let json = home.run("spec check copy --json").out;
        assert!(json.contains(line), "{line}: {json}");
    }
    assert_eq!(ran.err.lines().count(), 11, "{}", ran.err);
}

#[test]
fn the_folder_one_stands_in_is_a_folder() {
    let home = Home::new();
    let ran = home.run("roots add ./projects/../projects/api/.");
    assert!(
        ran.out.contains("Added  ~/projects/api"),
        "{} {}",
        ran.out,
        ran.err
    );
    let ran = home.run("roots add .");
    assert!(ran.out.contains("Added  ~\n"), "{} {}", ran.out, ran.err);
    assert!(ran.err.contains("whole home folder"), "{}", ran.err);
}

#[test]
fn the_folder_one_stands_in_can_be_allowed() {
    let home = Home::new();
    for typed in [".", "./", "api/..", "./api"] {
        let ran = home
            .command("roots add")
            .current_dir(home.home().join("projects"))
            .arg(typed)
            .output()
            .unwrap();
        assert!(ran.status.success(), "{typed}: {ran:?}");
    }
    let list = home.run("roots list").out;
    assert_eq!(list, "~/projects\n~/projects/api\n");
}
