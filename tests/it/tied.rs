//! The program as a child that does not outlive the tests: when whoever started it is killed, it is
//! told to end, and ends what it runs.

use std::path::Path;
use std::process::Command;

/// The wrapper of the system that ties a child to its parent's life.
const WRAPPER: &str = "/usr/bin/setpriv";

/// A command of the program; arguments and all else are the caller's.
pub(crate) fn lembas() -> Command {
    tie(&[], &assert_cmd::cargo::cargo_bin("lembas"))
}

/// The same in a session of its own, with its stdin as the terminal of that.
pub(crate) fn lembas_at_a_terminal() -> Command {
    tie(
        &["/usr/bin/setsid", "-c"],
        &assert_cmd::cargo::cargo_bin("lembas"),
    )
}

fn tie(before: &[&str], program: &Path) -> Command {
    let mut line: Vec<&str> = before.to_vec();
    if Path::new(WRAPPER).exists() {
        line.extend([WRAPPER, "--pdeathsig", "TERM", "--"]);
    }
    let program = program.to_str().unwrap();
    line.push(program);
    let mut command = Command::new(line[0]);
    command.args(&line[1..]);
    command
}

#[test]
fn a_child_ends_with_the_process_that_started_it() {
    use std::io::BufRead as _;
    if !Path::new(WRAPPER).exists() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // A shell stands for a test run. It starts a daemon, says so, and is killed.
    let tied = lembas();
    let line: Vec<String> = std::iter::once(tied.get_program())
        .chain(tied.get_args())
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let mut run = Command::new("/bin/bash")
        .args(["-c", "\"$@\" & wait", "run"])
        .args(&line)
        .args(["daemon", "--json"])
        .env("LEMBAS_DATA", folder.path())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = std::io::BufReader::new(run.stdout.take().unwrap()).lines();
    let started = lines.next().unwrap().unwrap();
    assert!(started.contains("started"), "{started}");
    run.kill().unwrap();
    run.wait().unwrap();
    // The daemon held the other end: it has let go of it when it has ended.
    assert!(lines.next().is_none());
}
