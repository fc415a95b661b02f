//! `lembas up` in a terminal: what a person needs is said before anything is waited for, a browser
//! is opened where the person sits and nowhere else, Ctrl-C ends it cleanly.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use lembas::clock::instant;

use super::Home;

/// What `up` said until a Ctrl-C ended it, its exit code, and the file that the browser's
/// arguments are written to.
fn up(home: &Home, environment: &[(&str, &str)]) -> (String, Option<i32>, PathBuf) {
    let bin = home.home().join("bin");
    let opened = home.home().join("opened");
    std::fs::create_dir_all(&bin).unwrap();
    let browser = bin.join("xdg-open");
    let script = format!("#!/bin/sh\necho \"$@\" > {}\n", opened.display());
    std::fs::write(&browser, script).unwrap();
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(&browser, std::fs::Permissions::from_mode(0o700)).unwrap();

    let program = assert_cmd::cargo::cargo_bin("lembas");
    // `script` is a terminal around it, and ends as it ends.
    let mut child = Command::new("script")
        .args(["-q", "-e", "-f", "-c"])
        .arg(format!(
            "exec {} up --listen 127.0.0.1:0",
            program.display()
        ))
        .arg("/dev/null")
        .env_clear()
        .env("HOME", home.home())
        .env("TERM", "xterm")
        .env("SHELL", "/bin/sh")
        .env("PATH", format!("{}:/usr/bin:/bin", bin.display()))
        .envs(environment.iter().copied())
        .current_dir(home.home())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut said = String::new();
    while !said.contains("Ctrl-C stops it.") {
        assert!(out.read_line(&mut said).unwrap() > 0, "it ended: {said}");
    }
    stdin.write_all(b"\x03").unwrap();
    out.read_to_string(&mut said).unwrap();
    let code = child.wait().unwrap().code();
    (said, code, opened)
}

#[test]
fn a_browser_is_opened_where_the_person_sits_and_never_gets_the_token() {
    let home = Home::new();
    let (said, code, opened) = up(&home, &[("DISPLAY", ":7")]);
    assert_eq!(code, Some(0), "{said}");
    // The browser is on its own: its line may come after the end of the other.
    let until = instant() + Duration::from_secs(30);
    let opened = loop {
        match std::fs::read_to_string(&opened) {
            Ok(line) if line.ends_with('\n') => break line,
            _ => assert!(instant() < until, "no browser was started: {said}"),
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    assert!(opened.ends_with("open.html\n"), "{opened}");
    let (_, token) = said.split_once("/in/").unwrap();
    let token = token.split_whitespace().next().unwrap();
    assert!(
        token.len() > 12 && !opened.contains(token),
        "{token} {opened}"
    );
}

#[test]
fn over_ssh_or_without_a_screen_no_browser_is_opened() {
    for environment in [
        [
            ("DISPLAY", ":7"),
            ("SSH_CONNECTION", "192.0.2.1 4 192.0.2.2 22"),
        ]
        .as_slice(),
        &[],
    ] {
        let home = Home::new();
        let (said, code, opened) = up(&home, environment);
        assert_eq!(code, Some(0), "{said}");
        assert!(said.contains("Open  http://127.0.0.1:"), "{said}");
        assert!(!opened.exists(), "{said}");
    }
}
