//! Commands as they really run: boxes, groups, timeouts, output, watch hashes.

use std::path::{Path, PathBuf};
use std::time::Duration;

use lembas::exec::facts::Machine;
use lembas::exec::monitor::{WatchError, watch};
use lembas::exec::run::{Ended, Places, Ran, run};
use lembas::permission::testing::grant_to_run;
use lembas::permission::{BoxKind, BoxPlan, Facts as _, Purpose, Run, Sees, Strength};
use lembas::rt::CancellationToken;

struct Bench {
    folder: tempfile::TempDir,
    kind: BoxKind,
    timeout: Duration,
    git: bool,
}

impl Bench {
    fn new(kind: BoxKind) -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            kind,
            timeout: Duration::from_secs(30),
            git: false,
        }
    }

    fn root(&self) -> PathBuf {
        let root = self.folder.path().canonicalize().unwrap().join("root");
        std::fs::create_dir_all(&root).unwrap();
        root
    }

    fn judged(&self, text: &str) -> Run {
        Run {
            text: text.to_owned(),
            cwd: self.root(),
            timeout: self.timeout,
            purpose: Purpose::Tool,
            r#box: BoxPlan {
                kind: self.kind,
                sees: if self.kind == BoxKind::Read {
                    Sees::Roots
                } else {
                    Sees::Disk
                },
                network: self.kind == BoxKind::Open,
                git: self.git,
                roots: vec![self.root()],
                also: Vec::new(),
            },
            environment: Machine::new(Vec::new()).environment(),
        }
    }

    async fn run(&self, text: &str) -> Ran {
        self.stopped_by(text, &CancellationToken::new()).await
    }

    async fn stopped_by(&self, text: &str, stop: &CancellationToken) -> Ran {
        let grant = grant_to_run(self.judged(text));
        let places = Places {
            spill: self.folder.path().join("spill/1.out"),
            scratch: self.folder.path().join("scratch"),
            own: Vec::new(),
        };
        run(grant, &places, &|_| {}, stop).await.unwrap()
    }
}

fn boxed() -> bool {
    Machine::new(Vec::new()).strength() == Strength::Full
}

fn alive(mark: &str) -> bool {
    std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(Result::ok)
        .any(|entry| {
            std::fs::read(entry.path().join("cmdline"))
                .is_ok_and(|line| String::from_utf8_lossy(&line).contains(mark))
        })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_box_keeps_writes_in_the_roots_and_the_network_out() {
    assert!(boxed(), "bubblewrap must work where the tests run");
    let bench = Bench::new(BoxKind::Roots);
    let outside = bench.folder.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    let ran = bench
        .run(&format!(
            "echo in > inside.txt; echo x > {}/x; echo y > /tmp/y && cat /tmp/y; \
             cat /proc/net/route | wc -l; ls /proc | grep -c '^[0-9]'",
            outside.display()
        ))
        .await;
    assert_eq!(ran.ended, Ended::Exit(0), "{}", ran.output.text);
    assert!(bench.root().join("inside.txt").exists());
    assert!(!outside.join("x").exists(), "{}", ran.output.text);
    assert!(ran.output.text.contains("y\n1\n"), "{}", ran.output.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn protected_names_stay_as_they_are_in_a_box() {
    for git in [false, true] {
        let mut bench = Bench::new(BoxKind::Roots);
        bench.git = git;
        let root = bench.root();
        for folder in [".git/hooks", "sub/.git/hooks", ".github/workflows"] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        std::fs::write(root.join(".git/config"), "[core]\n").unwrap();
        std::fs::write(root.join(".envrc"), "export A=1\n").unwrap();
        let ran = bench
            .run(
                "for f in .git/hooks/post-commit sub/.git/hooks/x .github/workflows/x.yml .git/config .envrc; \
                 do echo evil >> $f && echo wrote $f; done; echo ok > .git/index; mv .git/hooks h2; ls",
            )
            .await;
        assert!(!ran.output.text.contains("wrote"), "{}", ran.output.text);
        let config = std::fs::read_to_string(root.join(".git/config")).unwrap();
        assert_eq!(config, "[core]\n");
        // Only a git command that was judged to write may change the repository's own files.
        assert_eq!(root.join(".git/index").exists(), git);
        assert!(root.join(".git/hooks").is_dir());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_box_writes_nothing() {
    let bench = Bench::new(BoxKind::Read);
    let ran = bench
        .run("echo a > x; echo b > /tmp/x; echo c > /dev/shm/x; echo d > /run/x; ls; ls /tmp; echo end")
        .await;
    assert!(ran.output.text.ends_with("end\n"), "{}", ran.output.text);
    assert!(!bench.root().join("x").exists());
    assert!(!Path::new("/dev/shm/x").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_survives_its_call() {
    for kind in [BoxKind::Open, BoxKind::Roots] {
        for (n, text) in [
            "sleep 9871.MARK & echo started",
            "(setsid sleep 9871.MARK &) ; echo started",
            "setsid bash -c 'trap \"\" TERM HUP; (sleep 9871.MARK & wait) & disown' >/dev/null 2>&1; echo started",
            "env -i setsid sleep 9871.MARK >/dev/null 2>&1 & echo started",
        ]
        .iter()
        .enumerate()
        {
            // Without a box, a process that leaves its session and clears its environment is not
            // found again; a box takes it along.
            if kind == BoxKind::Open && text.starts_with("env -i") {
                continue;
            }
            let mark = format!("{}{n}{}", std::process::id(), u8::from(kind == BoxKind::Open));
            let bench = Bench::new(kind);
            let ran = bench.run(&text.replace("MARK", &mark)).await;
            assert!(ran.output.text.contains("started"), "{}", ran.output.text);
            assert!(!alive(&format!("9871.{mark}")), "{kind:?} {text}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timeout_ends_the_whole_group_after_a_grace() {
    for kind in [BoxKind::Open, BoxKind::Roots] {
        let mut bench = Bench::new(kind);
        bench.timeout = Duration::from_millis(700);
        let mark = format!("{}7{}", std::process::id(), u8::from(kind == BoxKind::Open));
        let ran = bench
            .run(&format!(
                "trap 'echo told; exit 3' TERM; sleep 9872.{mark} & wait; echo not reached"
            ))
            .await;
        assert_eq!(ran.ended, Ended::Timeout);
        assert!(
            ran.output.text.contains("told"),
            "{kind:?}: {}",
            ran.output.text
        );
        assert!(!alive(&format!("9872.{mark}")));
        assert!(ran.time < Duration::from_secs(5), "{:?}", ran.time);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn stop_ends_a_command_that_does_not_listen() {
    let bench = Bench::new(BoxKind::Roots);
    let stop = CancellationToken::new();
    let told = stop.clone();
    let mark = format!("{}8", std::process::id());
    let text = format!(
        "trap '' TERM; echo begun; while :; do sleep 0.2 9873.{mark} 2>/dev/null || sleep 0.1; done"
    );
    let running = bench.stopped_by(&text, &stop);
    let stopper = async move {
        lembas::clock::sleep(Duration::from_millis(500)).await;
        told.cancel();
    };
    let (ran, ()) = tokio::join!(running, stopper);
    assert_eq!(ran.ended, Ended::Stopped);
    assert!(ran.time < Duration::from_secs(8), "{:?}", ran.time);
    assert!(!alive(&format!("9873.{mark}")));
}

#[tokio::test(flavor = "multi_thread")]
async fn long_output_is_whole_in_its_file_and_bounded_in_memory() {
    let bench = Bench::new(BoxKind::Open);
    let ran = bench.run("seq 1 400000; exit 4").await;
    assert_eq!(ran.ended, Ended::Exit(4));
    let whole: String = (1..=400_000).map(|n| format!("{n}\n")).collect();
    assert_eq!(ran.output.bytes, whole.len() as u64);
    assert!(ran.output.text.len() < 300 * 1024);
    assert!(ran.output.text.starts_with("1\n2\n"));
    assert!(ran.output.text.ends_with("400000\n"));
    let spill = ran.output.spill.unwrap();
    assert_eq!(std::fs::read_to_string(spill).unwrap(), whole);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_daemons_environment_stays_with_it() {
    let bench = Bench::new(BoxKind::Open);
    let ran = bench.run("env").await;
    for line in ran.output.text.lines() {
        let name = line.split('=').next().unwrap();
        assert!(
            !name.starts_with("CARGO_PKG") && !name.starts_with("LD_") && name != "BASH_ENV",
            "{line}"
        );
    }
}

fn hash_of(exit: i32, bytes: &[u8]) -> String {
    let mut all = format!("{exit}\n").into_bytes();
    all.extend_from_slice(bytes);
    lembas::ids::Digest::of(&all).as_str().to_owned()
}

async fn watched(bench: &Bench, text: &str) -> Result<lembas::exec::monitor::Watched, WatchError> {
    let grant = grant_to_run(bench.judged(text));
    let scratch = bench.folder.path().join("scratch");
    watch(grant, &scratch, &[], &CancellationToken::new()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_hash_is_over_the_status_and_every_byte() {
    let bench = Bench::new(BoxKind::Open);
    let zeros = vec![b'x'; 3 * 1024 * 1024];
    for (text, exit, bytes) in [
        ("printf 'a\\nb'", 0, b"a\nb".to_vec()),
        (
            "printf '\\377\\376\\0x'; printf err >&2; exit 3",
            3,
            b"\xff\xfe\0xerr".to_vec(),
        ),
        ("true", 0, Vec::new()),
        ("echo a; kill -9 $$", 137, b"a\n".to_vec()),
        ("head -c 3145728 /dev/zero | tr '\\0' x", 0, zeros.clone()),
        ("head -c 3145728 /dev/zero | tr '\\0' x; exit 7", 7, zeros),
    ] {
        let got = watched(&bench, text).await.unwrap();
        assert_eq!(got.exit, exit, "{text}");
        assert_eq!(got.bytes, bytes.len() as u64, "{text}");
        assert_eq!(got.hash, hash_of(exit, &bytes), "{text}");
        assert!(got.excerpt.chars().count() <= 4_000);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_without_a_whole_output_has_no_hash() {
    let mut bench = Bench::new(BoxKind::Open);
    let held = watched(&bench, "sleep 30 & echo a").await;
    assert!(matches!(held, Err(WatchError::Background)), "{held:?}");
    bench.timeout = Duration::from_millis(400);
    let late = watched(&bench, "echo a; sleep 30").await;
    assert!(matches!(late, Err(WatchError::Timeout { .. })), "{late:?}");
}
