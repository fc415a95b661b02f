//! Real processes: what a command may do in its box, and that nothing survives it.

mod watch;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use lembas::config::{Approvals, Mode, Sudo};
use lembas::exec::{self, Computer, Ended, How};
use lembas::ids::SessionId;
use lembas::permission::{
    Action, Attended, Command, Context, Engine, Grant, Origin, Purpose, Request, Strength, Verdict,
};
use lembas::rt::CancellationToken;
use lembas::store::item::Scope;

/// A folder to work in, and an engine of this computer.
pub(crate) struct Place {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) root: PathBuf,
    pub(crate) engine: Engine,
}

impl Place {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("work");
        std::fs::create_dir(&root).unwrap();
        let engine = Engine::with(Arc::new(Computer::new(vec![])));
        Self {
            folder,
            root,
            engine,
        }
    }

    pub(crate) fn full() -> Option<Self> {
        let place = Self::new();
        let full = place.engine.facts().strength() == Strength::Full;
        let bwrap = Path::new("/usr/bin/bwrap").exists();
        assert!(full || !bwrap, "bubblewrap is here and makes no box");
        full.then_some(place)
    }

    pub(crate) fn context(&self, mode: Mode) -> Context {
        Context {
            session: SessionId::new("s"),
            origin: Origin::Local,
            mode,
            roots: vec![self.root.clone()],
            attended: Attended::Person,
            approvals: Approvals::Once,
            sudo: Sudo::Refuse,
            released: vec![],
        }
    }

    pub(crate) fn request(
        &self,
        text: &str,
        timeout: Duration,
        open: bool,
        purpose: Purpose,
    ) -> Request {
        Request {
            tool: "bash".into(),
            action: Action::Execute(Command {
                text: text.into(),
                timeout,
                purpose,
                open: open.then(|| "a test".into()),
            }),
            cwd: self.root.clone(),
        }
    }

    /// Judged in a mode; a question is answered with yes.
    pub(crate) fn grant(&self, text: &str, mode: Mode, timeout: Duration, open: bool) -> Grant {
        let request = self.request(text, timeout, open, Purpose::Tool);
        match self.engine.judge(&request, &self.context(mode), &[]) {
            Verdict::Allow(grant) => grant,
            Verdict::Ask(pending) => pending.allowed(Scope::Once).0,
            Verdict::Refuse(refusal) => panic!("{text}: {refusal:?}"),
        }
    }

    pub(crate) async fn run(&self, grant: Grant, stop: CancellationToken) -> Ended {
        let spill = self.folder.path().join("spill/out");
        exec::run(grant, spill, u64::MAX, &|_| {}, stop)
            .await
            .unwrap()
    }

    pub(crate) async fn boxed(&self, text: &str) -> Ended {
        let grant = self.grant(text, Mode::Edit, Duration::from_secs(20), false);
        self.run(grant, CancellationToken::new()).await
    }

    pub(crate) async fn open(&self, text: &str) -> Ended {
        let grant = self.grant(text, Mode::Auto, Duration::from_secs(20), true);
        self.run(grant, CancellationToken::new()).await
    }
}

/// Whether any process has this among its arguments.
fn alive(mark: &str) -> bool {
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter(|e| {
            e.file_name()
                .to_string_lossy()
                .bytes()
                .all(|b| b.is_ascii_digit())
        })
        .filter_map(|e| std::fs::read(e.path().join("cmdline")).ok())
        .any(|line| String::from_utf8_lossy(&line).contains(mark))
}

/// Seconds that make a sleep tell itself from any other.
fn mark() -> String {
    format!(
        "9{}",
        u32::from_str_radix(&lembas::ids::random_hex(3), 16).unwrap()
    )
}

#[tokio::test]
async fn output_and_status_are_what_the_shell_gives() {
    let place = Place::new();
    for open in [false, true] {
        let run = |text: &'static str| {
            let grant = place.grant(text, Mode::Auto, Duration::from_secs(20), open);
            place.run(grant, CancellationToken::new())
        };
        let ended = run("echo out; echo err >&2; exit 3").await;
        assert_eq!((ended.exit, ended.how), (3, How::Finished));
        assert_eq!(ended.output.text(), "out\nerr\n");
        assert_eq!(run("kill -TERM $$").await.exit, 143);
        assert_eq!(run("nosuchprogram").await.exit, 127);
        assert_eq!(
            run("-x; echo ok").await.output.text().lines().last(),
            Some("ok")
        );
        let ended = run("read x; echo \"[$x]\"").await;
        assert_eq!(ended.output.text(), "[]\n", "there is nothing to read");
    }
}

#[tokio::test]
async fn nothing_survives_the_end_of_the_shell() {
    let place = Place::new();
    for (boxed, text) in [
        (false, "sleep MARK & echo started"),
        (false, "setsid sleep MARK >/dev/null 2>&1 & echo started"),
        (
            false,
            "(setsid -f sleep MARK >/dev/null 2>&1); echo started",
        ),
        (
            false,
            "(env -i setsid -f nohup sleep MARK >/dev/null 2>&1); echo started",
        ),
        (true, "sleep MARK & echo started"),
        (true, "(setsid -f sleep MARK >/dev/null 2>&1); echo started"),
    ] {
        let mark = mark();
        let text = text.replace("MARK", &mark);
        let ended = if boxed {
            place.boxed(&text).await
        } else {
            place.open(&text).await
        };
        assert_eq!(ended.output.text(), "started\n", "{text}");
        assert!(ended.duration < Duration::from_secs(3), "{text}");
        assert!(!alive(&mark), "{text} survived");
    }
}

#[tokio::test]
async fn a_timeout_ends_the_whole_group_and_a_deaf_one_after_its_grace() {
    let place = Place::new();
    for open in [false, true] {
        let mark = mark();
        let text = format!("echo before; sleep {mark} & sleep {mark}");
        let grant = place.grant(&text, Mode::Auto, Duration::from_millis(500), open);
        let ended = place.run(grant, CancellationToken::new()).await;
        assert_eq!(ended.how, How::TimedOut, "open: {open}");
        assert_eq!(ended.output.text(), "before\n");
        assert!(
            ended.duration < Duration::from_secs(4),
            "{:?}",
            ended.duration
        );
        assert!(!alive(&mark));
        let mark = self::mark();
        let text = format!("trap '' TERM; while :; do sleep {mark} & wait; done");
        let grant = place.grant(&text, Mode::Auto, Duration::from_millis(300), open);
        let ended = place.run(grant, CancellationToken::new()).await;
        assert_eq!(ended.how, How::TimedOut);
        assert!(
            ended.duration < Duration::from_secs(9),
            "{:?}",
            ended.duration
        );
        assert!(!alive(&mark));
    }
}

#[tokio::test]
async fn a_program_that_hears_the_word_may_tidy_up() {
    let place = Place::new();
    for open in [false, true] {
        let text = "trap 'echo tidied; exit 7' TERM; sleep 60 & wait";
        let grant = place.grant(text, Mode::Auto, Duration::from_millis(500), open);
        let ended = place.run(grant, CancellationToken::new()).await;
        assert_eq!(ended.output.text(), "tidied\n", "open: {open}");
        assert_eq!(ended.exit, 7);
    }
}

#[tokio::test]
async fn stop_ends_it_and_a_flood_does_not_keep_it_alive() {
    let place = Place::new();
    for text in ["sleep 60", "yes"] {
        for open in [false, true] {
            let stop = CancellationToken::new();
            let grant = place.grant(text, Mode::Auto, Duration::from_secs(50), open);
            let (ended, ()) = tokio::join!(place.run(grant, stop.clone()), async {
                tokio::time::sleep(Duration::from_millis(500)).await;
                stop.cancel();
            });
            assert_eq!(ended.how, How::Stopped);
            assert!(
                ended.duration < Duration::from_secs(4),
                "{text}: {:?}",
                ended.duration
            );
        }
    }
}

/// A word that came before there was anybody in the box to hear it was lost, and the command then
/// had the whole grace.
#[tokio::test]
async fn stopped_while_its_box_is_being_made_it_ends_as_soon_as_ever() {
    let place = Place::new();
    for wait in 0..10 {
        let stop = CancellationToken::new();
        let grant = place.grant("sleep 60", Mode::Auto, Duration::from_secs(50), false);
        let (ended, ()) = tokio::join!(place.run(grant, stop.clone()), async {
            tokio::time::sleep(Duration::from_millis(3 * wait)).await;
            stop.cancel();
        });
        assert_eq!(ended.how, How::Stopped);
        assert!(
            ended.duration < Duration::from_secs(4),
            "{wait}: {:?}",
            ended.duration
        );
    }
}

#[tokio::test]
async fn dropping_the_run_ends_it_too() {
    let place = Place::new();
    let mark = mark();
    let grant = place.grant(
        &format!("setsid sleep {mark}"),
        Mode::Auto,
        Duration::from_secs(60),
        true,
    );
    let run = place.run(grant, CancellationToken::new());
    let _ = tokio::time::timeout(Duration::from_millis(500), run).await;
    for _ in 0..100 {
        if !alive(&mark) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("it is still there");
}

#[tokio::test]
async fn long_output_is_kept_at_both_ends_and_whole_on_disk() {
    let place = Place::new();
    let ended = place.open("seq 1 400000").await;
    let text = ended.output.text();
    assert!(text.starts_with("1\n2\n") && text.ends_with("399999\n400000\n"));
    assert!(text.len() < 600_000);
    let spill = std::fs::read_to_string(ended.output.spill.unwrap()).unwrap();
    assert_eq!(spill.len() as u64, ended.output.bytes);
    assert_eq!(spill.lines().count(), 400_000);
}

#[tokio::test]
async fn the_environment_holds_what_was_judged_and_nothing_of_ours() {
    let place = Place::new();
    // Whatever runs this test has variables that no command may see, CARGO_PKG_NAME for one.
    assert!(std::env::vars().any(|(name, _)| name == "CARGO_PKG_NAME"));
    for ended in [place.open("env").await, place.boxed("bash -c env").await] {
        let text = ended.output.text();
        assert!(text.contains("PATH=/") && text.contains("HOME=/"), "{text}");
        for absent in ["CARGO_PKG_NAME", "BASH_ENV", "LD_", "RUSTC", "LEMBAS_"] {
            assert!(
                !text.lines().any(|l| l.starts_with(absent)),
                "{absent} in {text}"
            );
        }
    }
}

#[tokio::test]
async fn a_boxed_command_writes_nothing_but_the_roots() {
    let Some(place) = Place::full() else { return };
    let outside = place.folder.path().join("outside");
    std::fs::write(&outside, "as it was").unwrap();
    let home = Path::new("/").join("lembas-was-here");
    let text = format!(
        "echo in > inside.txt; echo x > {}; echo x > {}; echo x > /etc/lembas; echo x > ~/lembas-x; echo t > /tmp/t; cat /tmp/t",
        outside.display(),
        home.display()
    );
    // Through a variable, so that the text alone does not say it.
    let ended = place.boxed(&format!("x='{text}'; python3 -c \"import subprocess,sys; subprocess.run(['sh','-c',sys.argv[1]])\" \"$x\"")).await;
    assert!(
        ended.output.text().contains("Read-only"),
        "{}",
        ended.output.text()
    );
    assert!(ended.output.text().ends_with("t\n"));
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "as it was");
    assert!(!home.exists() && !Path::new("/etc/lembas").exists());
    assert_eq!(
        std::fs::read_to_string(place.root.join("inside.txt")).unwrap(),
        "in\n"
    );
}

#[tokio::test]
async fn protected_names_stay_as_they_are_and_missing_ones_do_not_appear() {
    let Some(place) = Place::full() else { return };
    let git = |args: &[&str]| {
        #[expect(clippy::disallowed_methods, reason = "a test makes a repository")]
        let status = std::process::Command::new("git")
            .args(args)
            .current_dir(&place.root)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output()
            .unwrap();
        assert!(status.status.success());
    };
    git(&["init", "-q", "."]);
    git(&["config", "user.name", "T"]);
    git(&["config", "user.email", "t@example.org"]);
    std::fs::create_dir_all(place.root.join("deep/er")).unwrap();
    git(&["init", "-q", "deep/er"]);
    let text = r#"python3 - <<'E'
import os
for path in [".git/hooks/pre-commit", ".git/config", "deep/er/.git/hooks/x", ".envrc", ".vscode/tasks.json", ".lembas/skills", ".github/workflows/ci.yml"]:
    try:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        open(path, "a").write("touch PWNED\n")
        print("wrote", path)
    except OSError as e:
        pass
for path in [".git", ".envrc", "deep", "deep/er", "deep/er/.git"]:
    try:
        os.rename(path, path + "-gone"); print("moved", path)
    except OSError: pass
E"#;
    let before = std::fs::read_to_string(place.root.join(".git/config")).unwrap();
    let ended = place.boxed(text).await;
    assert_eq!(ended.output.text(), "");
    assert_eq!(
        std::fs::read_to_string(place.root.join(".git/config")).unwrap(),
        before
    );
    for absent in [
        ".git/hooks/pre-commit",
        "deep/er/.git/hooks/x",
        ".envrc",
        ".vscode",
        ".github",
        ".lembas",
    ] {
        assert!(!place.root.join(absent).exists(), "{absent}");
    }
    // Two at once: the first that ends does not uncover the second.
    let (slow, _) = tokio::join!(
        place.boxed("python3 -c \"import time,os; time.sleep(1); os.mkdir('.envrc')\""),
        place.boxed("python3 -c 1")
    );
    assert_ne!(slow.exit, 0);
    assert!(!place.root.join(".envrc").exists());
}

#[tokio::test]
async fn a_boxed_commit_writes_the_repository_but_not_its_hooks() {
    let Some(place) = Place::full() else { return };
    let setup = place
        .open("git init -q . && git config user.name T && git config user.email t@e && echo a > a")
        .await;
    assert_eq!(setup.exit, 0, "{}", setup.output.text());
    let ended = place
        .boxed("git add -A && git commit -q -m first; echo x > h; python3 -c \"open('.git/hooks/post-commit','w')\"; python3 -c \"open('.git/config','a')\"; git log --oneline | cat")
        .await;
    let text = ended.output.text();
    assert!(text.contains("first"), "{text}");
    assert_eq!(text.matches("Read-only").count(), 2, "{text}");
    assert!(!place.root.join(".git/hooks/post-commit").exists());
}

#[tokio::test]
async fn a_yes_to_a_protected_path_lets_that_one_be_changed() {
    let Some(place) = Place::full() else { return };
    place.open("git init -q .").await;
    let text = "echo x > .git/hooks/pre-commit; echo y > .envrc; echo z > AGENTS.md; \
                python3 -c \"open('.git/config','a')\"";
    let request = place.request(text, Duration::from_secs(10), false, Purpose::Tool);
    let verdict = place
        .engine
        .judge(&request, &place.context(Mode::Edit), &[]);
    let Verdict::Ask(pending) = verdict else {
        panic!("not asked")
    };
    assert_eq!(pending.body.scopes, [Scope::Once]);
    assert_eq!(pending.body.r#box, "roots");
    let ended = place
        .run(pending.allowed(Scope::Once).0, CancellationToken::new())
        .await;
    assert!(
        ended.output.text().contains("Read-only"),
        "{}",
        ended.output.text()
    );
    for (path, content) in [
        (".git/hooks/pre-commit", "x\n"),
        (".envrc", "y\n"),
        ("AGENTS.md", "z\n"),
    ] {
        assert_eq!(
            std::fs::read_to_string(place.root.join(path)).unwrap(),
            content
        );
    }
}

#[tokio::test]
async fn there_is_no_network_and_no_other_process_in_the_box() {
    let Some(place) = Place::full() else { return };
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let text =
        format!("python3 -c \"import socket; socket.create_connection(('127.0.0.1', {port}), 2)\"");
    let ended = place.boxed(&text).await;
    assert_ne!(ended.exit, 0);
    assert!(
        ended
            .blocked
            .as_deref()
            .is_some_and(|b| b.contains("refused")),
        "{ended:?}"
    );
    assert_eq!(place.open(&text).await.exit, 0);
    let ended = place.boxed("python3 -c \"import os; print(len([p for p in os.listdir('/proc') if p.isdigit()]) < 6)\"").await;
    assert_eq!(ended.output.text(), "True\n");
    // A socket in the file system is a way out too.
    let path = place.root.join("sock");
    let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let ended = place
        .boxed("python3 -c \"import socket; socket.socket(socket.AF_UNIX).connect('sock')\"")
        .await;
    assert_ne!(ended.exit, 0);
}

#[tokio::test]
async fn where_not_every_socket_can_be_covered_nothing_is_boxed() {
    use std::io::BufRead as _;
    let Some(place) = Place::full() else { return };
    let mut holder = std::process::Command::new("python3")
        .args(["-c", "import os, socket, sys\nheld = []\nfor n in range(513):\n s = socket.socket(socket.AF_UNIX); s.bind(os.path.abspath(f's{n}')); s.listen(); held.append(s)\nprint(flush=True)\nsys.stdin.read()"])
        .current_dir(&place.root)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    std::io::BufReader::new(holder.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let grant = place.grant("touch ran", Mode::Edit, Duration::from_secs(20), false);
    let refused = exec::run(
        grant,
        place.folder.path().join("spill/out"),
        u64::MAX,
        &|_| {},
        CancellationToken::new(),
    )
    .await
    .unwrap_err()
    .to_string();
    drop(holder.stdin.take());
    holder.wait().unwrap();
    assert_eq!(
        refused,
        "no box can be made here: more than 512 sockets would have to be covered"
    );
    assert!(!place.root.join("ran").exists());
}

#[tokio::test]
async fn a_read_sees_the_roots_and_nothing_of_anybody() {
    let Some(place) = Place::full() else { return };
    let outside = place.folder.path().join("private");
    std::fs::write(&outside, "secret").unwrap();
    std::fs::write(place.root.join("mine"), "mine").unwrap();
    std::fs::write(place.root.join(".env"), "KEY=secret").unwrap();
    let text = format!(
        "x={}; cat mine; cat $x; cat .e?v; echo x > /dev/null",
        outside.display()
    );
    let grant = place.grant(&text, Mode::Manual, Duration::from_secs(10), false);
    assert_eq!(grant.decision().r#box, "read");
    assert_eq!(grant.decision().source, "read");
    let ended = place.run(grant, CancellationToken::new()).await;
    let said = ended.output.text();
    assert!(
        said.starts_with("mine") && !said.contains("secret"),
        "{said}"
    );
}
