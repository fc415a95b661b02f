//! `lembas monitor` as a person runs it: with a daemon and without.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

struct Home {
    base: tempfile::TempDir,
}

struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

/// The hash of `hi` and a line feed with status 0, by `printf '0\nhi\n' | sha256sum`.
const HI: &str = "sha256:762097821024b9bac69d876841ec885ca8e7148de25c1f285be84ac8e7abe589";

impl Home {
    /// None where no box can be made: there a watch command does not run.
    fn new() -> Option<Self> {
        if !Path::new("/usr/bin/bwrap").exists() {
            return None;
        }
        let base = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(base.path().join("ana/projects")).unwrap();
        Some(Self { base })
    }

    fn home(&self) -> PathBuf {
        self.base.path().join("ana")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = crate::tied::lembas();
        command
            .env_clear()
            .env("HOME", self.home())
            .env("PATH", "/usr/bin:/bin")
            .env("A_TOKEN", "not to be seen")
            .current_dir(self.home().join("projects"))
            .stdin(Stdio::null())
            .args(arguments);
        command
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        let output = self.command(arguments).output().unwrap();
        Ran {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    fn check(&self, command: &str) -> Ran {
        self.run(&["monitor", "--", command])
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let ran = self.run(arguments);
        serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{} {}", ran.out, ran.err))
    }
}

#[test]
fn without_a_daemon_it_runs_by_itself() {
    let Some(home) = Home::new() else { return };
    let ran = home.check("echo hi");
    assert_eq!((ran.code, ran.out.trim()), (Some(0), HI), "{}", ran.err);
    assert!(ran.err.starts_with("exit 0 · 3 bytes · "), "{}", ran.err);
    assert!(ran.err.ends_with(" · mode Edit\n\nhi\n"), "{}", ran.err);
    // Its own status is part of the hash, and not ours; nothing of our environment is in it.
    let ran = home.check("echo \"$A_TOKEN\"; exit 3");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.err.starts_with("exit 3 · 1 byte"), "{}", ran.err);
    let folder = home.home().canonicalize().unwrap();
    let json = home.json(&[
        "monitor", "--cwd", "..", "--json", "--mode", "manual", "--", "pwd",
    ]);
    assert_eq!(json["excerpt"], format!("{}\n", folder.display()));
    assert_eq!(
        (&json["ok"], &json["mode"]),
        (&true.into(), &"manual".into())
    );

    // What would ask, what may not be, what takes too long: no hash, and why.
    for (arguments, reason, words) in [
        (&["--", "git", "push"][..], "ask", "would need your yes"),
        (&["--", "rm", "-rf", "/"], "refused", "may not run here"),
        (
            &["--timeout", "1", "--", "sleep 60"],
            "timeout",
            "ran longer than 1 s",
        ),
        (
            &["--", "sleep 60 & echo a"],
            "background",
            "still held its output",
        ),
    ] {
        let all = [&["monitor", "--json"], arguments].concat();
        let json = home.json(&all);
        assert_eq!(json["error"]["code"], -32051, "{json}");
        assert_eq!(json["error"]["reason"], reason, "{json}");
        let ran = home.run(&[&["monitor"], arguments].concat());
        assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{}", ran.err);
        assert!(ran.err.contains(words), "{}", ran.err);
        assert!(ran.err.contains("\n  try: "), "{}", ran.err);
    }
    let ask = home.check("git push");
    assert!(
        ask.err.contains("try: lembas allow --pending 1"),
        "{}",
        ask.err
    );
    for (arguments, words) in [
        (
            &["--mode", "plan", "--", "ls"][..],
            "cannot run in the mode plan",
        ),
        (&["--timeout", "601", "--", "ls"], "601"),
        (&["ls"], "behind --"),
    ] {
        let ran = home.run(&[&["monitor"], arguments].concat());
        assert_eq!(ran.code, Some(64), "{}", ran.err);
        assert!(ran.err.contains(words), "{}", ran.err);
    }
    let ran = home.run(&["monitor", "--cwd", "nowhere", "--", "ls"]);
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert!(ran.err.contains("it does not exist"), "{}", ran.err);
}

#[test]
fn a_daemon_may_start_while_one_runs_and_its_rules_count_without_it() {
    let Some(home) = Home::new() else { return };
    let mut slow = home.command(&["monitor", "--", "sleep 3; echo hi"]);
    let slow = slow.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let slow = slow.unwrap();
    // It holds the store no longer than it reads the rules.
    let mut daemon = home.command(&["daemon", "--json"]);
    let mut daemon = daemon
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut out = std::io::BufReader::new(daemon.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut out, &mut line).unwrap();
    assert!(line.contains("started"), "{line}");
    // The daemon keeps what it refused; the yes to it counts for ever.
    let network = "git push";
    let ask = home.json(&["monitor", "--json", "--", network]);
    assert_eq!(ask["error"]["try"][0], "lembas allow --pending 1", "{ask}");
    assert_eq!(home.run(&["allow", "--pending", "1"]).code, Some(0));
    let with = home.check(network);
    assert_eq!(with.code, Some(0), "{}", with.err);
    let pid = rustix::process::Pid::from_child(&daemon);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert!(daemon.wait().unwrap().success());
    let without = home.check(network);
    assert_eq!(without.code, Some(0), "{}", without.err);
    assert_eq!(without.out, with.out);
    let slow = slow.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(slow.stdout).unwrap().trim(), HI);
}

#[test]
fn memory_does_not_grow_with_the_output() {
    let Some(home) = Home::new() else { return };
    // The kernel's own account of the most memory that the process ever had, in KiB.
    let most = |megabytes: u32, status: u32| {
        let text = format!("yes 0123456789abcde | head -c {megabytes}000000; exit {status}");
        let code = "import os, sys\npid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)\n_, status, used = os.wait4(pid, 0)\nassert status == 0\nprint(used.ru_maxrss, file=sys.stderr)";
        let lembas = assert_cmd::cargo::cargo_bin("lembas");
        let output = Command::new("python3")
            .args(["-c", code])
            .arg(lembas)
            .args(["monitor", "--json", "--", &text])
            .env_clear()
            .env("HOME", home.home())
            .env("PATH", "/usr/bin:/bin")
            .current_dir(home.home())
            .output()
            .unwrap();
        let (out, err) = (
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        );
        assert!(output.status.success(), "{out} {err}");
        let seen: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(seen["bytes"], u64::from(megabytes) * 1_000_000);
        assert_eq!(seen["exit"], status);
        (
            seen["hash"].as_str().unwrap().to_owned(),
            err.trim().parse::<u64>().unwrap(),
        )
    };
    let (_, little) = most(1, 3);
    let (first, much) = most(300, 3);
    assert!(much < little + 4096, "{little} KiB, then {much} KiB");
    let (second, much) = most(300, 0);
    assert!(much < little + 4096, "{little} KiB, then {much} KiB");
    assert_ne!(first, second);
}
