//! Completions in real shells: what only this computer knows, and how long a shell takes to load them.

use std::process::Command;
use std::time::{Duration, Instant};

use super::Home;

/// A home in which the program is on the path, and folders are shared.
fn home() -> Home {
    let home = Home::new();
    let bin = home.home().join("bin");
    std::fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(assert_cmd::cargo::cargo_bin("lembas"), bin.join("lembas")).unwrap();
    home.run("roots add projects");
    home.run("roots add projects/api");
    home
}

fn shell(home: &Home, program: &str, script: &str) -> String {
    let plain: &[&str] = match program {
        "bash" => &["--norc"],
        "zsh" => &["-f"],
        _ => &["--no-config"],
    };
    let output = Command::new(program)
        .args(plain)
        .args(["-c", script])
        .env_clear()
        .env("HOME", home.home())
        .env("TERM", "dumb")
        .env(
            "PATH",
            format!("{}:/usr/bin:/bin", home.home().join("bin").display()),
        )
        .current_dir(home.home())
        .output()
        .unwrap_or_else(|error| panic!("{program} is needed for this test: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(errors, "", "{program}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What bash and fish offer for a line.
fn offered(home: &Home, program: &str, words: &[&str]) -> Vec<String> {
    let script = match program {
        "bash" => {
            let all: String = words.iter().map(|word| format!("'{word}' ")).collect();
            format!(
                "source <(lembas completions bash); COMP_WORDS=({all}); COMP_CWORD={}
                 _clap_complete_lembas lembas '{}'; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
                words.len() - 1,
                words.last().unwrap(),
            )
        }
        _ => format!(
            "lembas completions fish | source; complete -C '{}' | cut -f1",
            words.join(" ")
        ),
    };
    let said = shell(home, program, &script);
    said.lines().map(str::to_owned).collect()
}

#[test]
fn a_shell_offers_what_only_this_computer_knows() {
    let home = home();
    for program in ["bash", "fish"] {
        let offered = |words: &[&str]| offered(&home, program, words);
        assert_eq!(
            offered(&["lembas", "roots", "remove", "~/"]),
            ["~/projects", "~/projects/api"],
            "{program}"
        );
        let from_root = format!("{}/projects/", home.home().display());
        let one = offered(&["lembas", "roots", "remove", &from_root]);
        assert_eq!(one, [format!("{from_root}api")], "{program}");
        assert_eq!(offered(&["lembas", "mod"]), ["mode"], "{program}");
        assert_eq!(offered(&["lembas", "mode", "e"]), ["edit"], "{program}");
        let topics = offered(&["lembas", "help", "r"]);
        for topic in ["remote", "roots", "rules", "resume-work"] {
            assert!(
                topics.iter().any(|one| one == topic),
                "{program}: {topics:?}"
            );
        }
        // Where no daemon runs and nothing is kept there is nothing to offer, and no error.
        for words in [
            ["lembas", "answer", "x"].as_slice(),
            &["lembas", "sessions", "delete", "x"],
            &["lembas", "rules", "remove", "x"],
            &["lembas", "hub", "model", "remove", "x"],
        ] {
            let none = offered(words);
            assert!(
                none.iter().all(String::is_empty),
                "{program} {words:?}: {none:?}"
            );
        }
        let elsewhere = offered(&["lembas", "--data", "other", "roots", "remove", "~/p"]);
        assert!(
            elsewhere.iter().all(String::is_empty),
            "{program}: {elsewhere:?}"
        );
    }
}

/// Zsh in a terminal of its own: what Tab puts there is what runs.
#[test]
fn tab_in_zsh_completes_command_and_folder() {
    let home = home();
    let said = shell(
        &home,
        "zsh",
        r#"
        zmodload zsh/zpty
        zpty z 'TERM=dumb zsh -f -i'
        zpty -w z 'autoload -Uz compinit; compinit -D -u; source <(lembas completions zsh); print RE""ADY'
        zpty -r z seen '*READY*'
        zpty -w z $'lembas roots rem\t~/projects/a\t'
        zpty -w z 'print EN""DED'
        zpty -r z seen '*ENDED*'
        print -r -- $seen
        zpty -d z
        "#,
    );
    assert!(said.contains("Removed  ~/projects/api"), "{said}");
    assert_eq!(home.run("roots list").out, "~/projects\n");
}

/// Loading the completions takes a shell at most 20 ms more; once of twenty times is enough where
/// others work beside it.
#[test]
fn a_shell_starts_as_fast_with_completions() {
    let home = home();
    for (program, load) in [
        ("bash", "source <(lembas completions bash)"),
        (
            "zsh",
            "autoload -Uz compinit; compinit -D -u; source <(lembas completions zsh)",
        ),
        ("fish", "lembas completions fish | source"),
    ] {
        // What zsh needs for any completion is not ours.
        let plain = load.rsplit_once("; ").map_or(":", |(before, _)| before);
        let time = |script: &str| {
            let begun = Instant::now();
            shell(&home, program, script);
            begun.elapsed()
        };
        let least = (0..20)
            .map(|_| {
                let without = time(plain);
                time(load).saturating_sub(without)
            })
            .find(|more| *more <= Duration::from_millis(20));
        assert!(least.is_some(), "{program} took more than 20 ms each time");
    }
}
