//! Command lines of every command that are wrong, with and without a daemon.

use std::fmt::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use serde_json::Value;

use super::{hold, sound};
use crate::cli::{Home, Ran};

/// What each command is given wrongly, by hand; to these come the wrong flag and the stray word
/// that [`commands`] gives every one.
const WRONG: &str = "
    stauts
    --nonsense
    --data
    --data a-file status
    --data loop status
    up --listen
    up --listen here
    up --listen 127.0.0.1
    up --listen 127.0.0.1:99999
    up --listen 203.0.113.1:8787
    link
    roots add project
    monitor --cwd project -- ls
    monitor -- \"\"
    answer \"\" allow
    rules remove \"\"
    link http://box.example
    link https://ana:secret@box.example
    link ftp://box.example
    link https://
    link retry
    link take
    unlink
    status
    hub --listen here
    hub --tls-cert cert.pem
    hub --listen 127.0.0.1:0 --tls-cert cert.pem --tls-key key.pem
    hub --listen 127.0.0.1:0 --tls-cert projects --tls-key projects
    hub --listen 127.0.0.1:0 --tls-cert a-file --tls-key a-file
    hub link
    hub user
    hub user add
    hub user add ben
    hub model
    hub model add
    hub model add qwen
    hub model add qwen --url
    hub model add qwen --url nonsense
    hub model add qwen --url http://127.0.0.1:1/v1
    hub model add qwen --url http://127.0.0.1:1/v1 --key-file nowhere
    hub model add qwen --url http://127.0.0.1:1/v1 --key-file projects
    hub model remove
    hub model remove nothing
    hub model test nothing
    roots add
    roots add nowhere
    roots add a-file
    roots add loop
    roots add /
    roots remove
    roots remove nowhere
    mode pln
    mode a
    mode plan
    approvals never
    service
    service scheduled
    service scheduled maybe
    asks --json=yes
    answer
    answer 7f
    answer 7f yes
    answer 7f refuse --always
    answer 7f allow --session --always
    answer 7f allow --note
    answer 7f allow
    allow
    allow --pending
    allow --pending none
    allow --pending 0
    allow --pending 3
    rules remove
    rules remove 7f
    log -n 0
    log --lines many
    sessions -n 0
    monitor
    monitor echo hi
    monitor --
    monitor --cwd nowhere -- ls
    monitor --cwd a-file -- ls
    monitor --cwd loop -- ls
    monitor --mode plan -- ls
    monitor --mode nonsense -- ls
    monitor --timeout 0 -- ls
    monitor --timeout 601 -- ls
    monitor --timeout soon -- ls
    completions
    completions csh
    spec check
    spec check nowhere
    spec check a-file
    spec check projects
    config
    config nonsense
    help fone
    help hub fone
";

/// What a daemon refuses.
const WITH_DAEMON: &str = "
    daemon
    link retry
    answer 7f allow
    allow --pending 3
    rules remove 7f
    monitor --cwd projects -- sudo true
    monitor --cwd projects -- git push
    monitor --cwd projects --timeout 1 -- sleep 30
";

fn home() -> Home {
    let home = Home::new();
    std::fs::write(home.home().join("a-file"), "text").unwrap();
    symlink("loop", home.home().join("loop")).unwrap();
    home
}

/// Every command by its words, from the help itself.
fn commands(home: &Home) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut at = 0;
    while let Some(place) = all.get(at).cloned() {
        let help = home.run(format!("{place} --help").trim()).out;
        let list = help.split("Commands:\n").nth(1).unwrap_or_default();
        for line in list.lines().take_while(|line| line.starts_with("  ")) {
            let name = line.split_whitespace().next().unwrap_or_default();
            // Further lines of an explanation stand deeper.
            if !line.starts_with("   ") {
                all.push(format!("{place} {name}").trim().to_owned());
            }
        }
        at += 1;
    }
    all.retain(|name| !name.is_empty());
    all
}

fn check(line: &str, ran: &Ran) -> String {
    let mut whole = format!("$ lembas {line}\n");
    whole.extend(ran.out.lines().map(|l| format!("{l}\n")));
    whole.extend(ran.err.lines().map(|l| format!("! {l}\n")));
    writeln!(whole, "exit {}", ran.code).unwrap();
    assert!(matches!(ran.code, 1 | 64 | 69 | 78), "{whole}");
    assert_eq!(ran.out, "", "{whole}");
    let (text, next) = ran.err.split_once("\n  try: ").unwrap_or((&ran.err, ""));
    assert!(text.starts_with("error: "), "{whole}");
    assert!(ran.err.lines().count() <= 12, "{whole}");
    sound(&whole, text, next);
    whole
}

/// Runs lines four at a time, and gives what was said in their order.
fn all(home: &Home, lines: &[String]) -> String {
    let said = Mutex::new(vec![String::new(); lines.len()]);
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(line) = lines.get(at) else { return };
                    let whole = check(line, &home.run(line));
                    if let Some(place) = said.lock().get_mut(at) {
                        *place = whole;
                    }
                }
            });
        }
    });
    said.into_inner().join("\n")
}

fn lines(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.map(str::to_owned).collect()
}

#[test]
fn every_wrong_command_line() {
    let home = home();
    let mut wrong = lines(WRONG);
    for command in commands(&home) {
        wrong.push(format!("{command} --nonsense"));
    }
    wrong.push("status nonsense".to_owned());
    hold("lines", &all(&home, &wrong));
}

#[test]
fn a_folder_that_is_shut_is_told() {
    if rustix::process::geteuid().is_root() {
        // Nothing is shut for root.
        return;
    }
    let home = home();
    let shut = home.home().join("shut");
    std::fs::create_dir_all(shut.join("inside")).unwrap();
    std::fs::set_permissions(&shut, std::fs::Permissions::from_mode(0o000)).unwrap();
    let ran = home.run("roots add shut/inside");
    std::fs::set_permissions(&shut, std::fs::Permissions::from_mode(0o700)).unwrap();
    let said = check("roots add shut/inside", &ran);
    assert!(
        said.contains("why: you are not allowed to use it"),
        "{said}"
    );
}

#[test]
fn what_a_daemon_refuses() {
    let home = home();
    let mut daemon = crate::tied::lembas()
        .env_clear()
        .env("HOME", home.home())
        .env("PATH", "/usr/bin:/bin")
        .args(["daemon", "--json"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let mut first = String::new();
    let out = daemon.stdout.take().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut first).unwrap();
    let pid = daemon.id().to_string();
    // One after the other: numbers of refused commands are in it.
    let said: Vec<String> = lines(WITH_DAEMON)
        .iter()
        .map(|line| check(line, &home.run(line)).replace(&pid, "PID"))
        .collect();
    let _ = daemon.kill();
    daemon.wait().unwrap();
    assert!(first.contains("started"), "{first}");
    hold("lines_with_daemon", &said.join("\n"));
}

#[test]
fn the_same_in_json_alone_on_stdout() {
    let home = home();
    for line in [
        "stauts",
        "mode pln",
        "status",
        "roots add nowhere",
        "link ftp://box",
        "monitor --cwd nowhere -- ls",
    ] {
        let words = home.run(line);
        let place = line.find(" --").unwrap_or(line.len());
        let json = home.run(&format!("{} --json{}", &line[..place], &line[place..]));
        assert_eq!(json.code, words.code, "{line}");
        assert_eq!(json.err, "", "{line}");
        let said: Value = serde_json::from_str(&json.out).unwrap();
        let error = &said["error"];
        let first = words.err.lines().next().unwrap();
        assert_eq!(said["ok"], false, "{line}");
        assert_eq!(
            Some(first),
            error["text"]
                .as_str()
                .map(|t| format!("error: {t}"))
                .as_deref()
        );
        assert!(
            error["code"].is_string() && error["try"][0].is_string(),
            "{said}"
        );
    }
}
