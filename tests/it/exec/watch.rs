//! Watch commands: their hashes against ones computed by another program, and what has none.

use std::process::Command as Program;

use lembas::exec::{MonitorError, Watched};
use lembas::permission::{Refusal, Rule};

use super::*;

/// The hashes of statuses and what this Python makes, by Python's own SHA-256. What is made is an
/// expression of bytes, or `(bytes, times)`.
fn elsewhere(all: &[(i32, &str)]) -> Vec<String> {
    let list: String = all
        .iter()
        .map(|(status, bytes)| format!("({status}, {bytes}),"))
        .collect();
    let code = format!(
        "import hashlib\nfor status, part in [{list}]:\n    h = hashlib.sha256(b'%d\\n' % status)\n    part, times = part if isinstance(part, tuple) else (part, 1)\n    for _ in range(times): h.update(part)\n    print('sha256:' + h.hexdigest())"
    );
    let output = Program::new("python3")
        .args(["-c", &code])
        .output()
        .unwrap();
    assert!(output.status.success(), "{code}\n{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    said.lines().map(str::to_owned).collect()
}

impl Place {
    fn watched(&self, text: &str, mode: Mode, limit: Duration) -> Verdict {
        let request = self.request(text, limit, false, Purpose::Monitor);
        let mut context = self.context(mode);
        context.attended = Attended::Nobody;
        self.engine.judge(&request, &context, &[])
    }

    async fn watch_until(
        &self,
        text: &str,
        limit: Duration,
        stop: CancellationToken,
    ) -> Result<Watched, MonitorError> {
        let Verdict::Allow(grant) = self.watched(text, Mode::Auto, limit) else {
            panic!("not allowed: {text}");
        };
        exec::monitor(grant, &self.folder.path().join("room"), stop).await
    }

    async fn watch(&self, text: &str) -> Result<Watched, MonitorError> {
        self.watch_until(text, Duration::from_secs(60), CancellationToken::new())
            .await
    }
}

#[tokio::test]
async fn status_and_bytes_are_hashed_as_another_program_hashes_them() {
    let Some(place) = Place::full() else { return };
    let cases = [
        ("true", 0, "b''"),
        ("echo a; echo b >&2; exit 2", 2, r"b'a\nb\n'"),
        (
            r"printf '\xff\xfe\0abc\x80\r\n'; printf '\xc3' >&2; exit 3",
            3,
            r"b'\xff\xfe\0abc\x80\r\n\xc3'",
        ),
        (r"printf '\xf0\x9f\x8c'", 0, r"b'\xf0\x9f\x8c'"),
        (
            "seq 1 300000; exit 1",
            1,
            r"b''.join(b'%d\n' % n for n in range(1, 300001))",
        ),
        // What waits in memory, and one byte more.
        ("head -c 524288 /dev/zero; exit 7", 7, "bytes(524288)"),
        ("head -c 524289 /dev/zero; exit 255", 255, "bytes(524289)"),
        ("head -c 524289 /dev/zero", 0, "bytes(524289)"),
        ("false | true", 0, "b''"),
        ("nosuchprogram 2>/dev/null", 127, "b''"),
        ("kill -KILL $$", 137, "b''"),
        ("echo a; kill -TERM $$", 143, r"b'a\n'"),
        ("kill -SEGV $$", 139, "b''"),
        ("exec bash -c 'kill -ABRT $$'", 134, "b''"),
        (
            "{ bash -c 'kill -KILL $$'; } 2>/dev/null; exit $?",
            137,
            "b''",
        ),
        (
            "-x 2>/dev/null; echo '$1' \"$0 $#\"",
            0,
            r"b'$1 /bin/bash 0\n'",
        ),
    ];
    let list: Vec<(i32, &str)> = cases.iter().map(|case| (case.1, case.2)).collect();
    for ((text, status, _), hash) in cases.iter().zip(elsewhere(&list)) {
        let seen = place.watch(text).await.unwrap();
        assert_eq!(seen.exit, *status, "{text}: {}", seen.excerpt);
        assert_eq!(seen.hash, hash, "{text}: {}", seen.excerpt);
    }
    let seen = place.watch("seq 1 300000; exit 1").await.unwrap();
    assert!(seen.truncated && seen.excerpt.chars().count() <= 4_000);
    assert_eq!(seen.bytes, 1_988_895);
    let room = place.folder.path().join("room");
    assert_eq!(std::fs::read_dir(room).unwrap().count(), 0, "a file stays");
}

#[tokio::test]
async fn three_hundred_megabytes_run_once_also_with_another_status() {
    let Some(place) = Place::full() else { return };
    // It calls, so that it is known how often it ran.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let text = format!(
        ": </dev/tcp/127.0.0.1/{}; yes 0123456789abcde | head -c 300000000; exit 3",
        port.local_addr().unwrap().port()
    );
    let seen = place.watch(&text).await.unwrap();
    assert_eq!((seen.bytes, seen.exit), (300_000_000, 3));
    let lines = r"(b'0123456789abcde\n' * 1250, 15000)";
    assert_eq!(seen.hash, elsewhere(&[(3, lines)])[0]);
    assert!(seen.excerpt.starts_with("0123456789abcde\n") && seen.truncated);
    port.set_nonblocking(true).unwrap();
    assert!(port.accept().is_ok(), "it ran");
    assert!(port.accept().is_err(), "it ran twice");
}

#[tokio::test]
async fn a_crash_is_the_same_every_time() {
    let Some(place) = Place::full() else { return };
    // The shell says which process it was. The numbers are the box's own.
    let crash = "bash -c 'kill -SEGV $$'; echo $$ after";
    let first = place.watch(crash).await.unwrap();
    assert!(first.excerpt.contains("Segmentation fault"), "{first:?}");
    for _ in 0..3 {
        // Numbers outside of the box move on.
        assert!(Program::new("true").status().unwrap().success());
        assert_eq!(place.watch(crash).await.unwrap().hash, first.hash);
    }
}

#[tokio::test]
async fn what_is_left_behind_is_noticed_and_ended() {
    let Some(place) = Place::full() else { return };
    let mark = mark();
    let text = format!("sleep {mark} & echo a");
    let error = place.watch(&text).await.unwrap_err();
    assert_eq!(error.reason(), "background");
    assert!(!alive(&mark));
    // One that writes on is not waited for any longer.
    let error = place.watch("yes & sleep 0.1").await.unwrap_err();
    assert_eq!(error.reason(), "background");
    // One that has let go of the pipe is nobody's concern, and gone too.
    let text = format!("sleep {mark} >/dev/null 2>&1 & echo a");
    let seen = place.watch(&text).await.unwrap();
    assert!(!alive(&mark));
    // What comes within the second counts.
    let late = place.watch("(sleep 0.2; echo late) & echo first").await;
    let hashes = elsewhere(&[(0, r"b'a\n'"), (0, r"b'first\nlate\n'")]);
    assert_eq!(hashes, [seen.hash, late.unwrap().hash]);
}

#[tokio::test]
async fn a_timeout_or_a_stop_is_no_hash_and_nothing_stays() {
    let Some(place) = Place::full() else { return };
    let (quick, deaf) = (mark(), mark());
    let text = format!("echo a; sleep {quick}");
    let limit = Duration::from_millis(300);
    let error = place
        .watch_until(&text, limit, CancellationToken::new())
        .await;
    assert!(
        matches!(error, Err(MonitorError::Timeout(for_)) if for_ == limit),
        "{error:?}"
    );
    assert!(!alive(&quick));
    let stop = CancellationToken::new();
    let text = format!("trap '' TERM; yes | head -c 100; while :; do sleep {deaf}; done");
    let began = lembas::clock::instant();
    let (error, ()) = tokio::join!(
        place.watch_until(&text, Duration::from_secs(60), stop.clone()),
        async {
            while !alive(&deaf) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            stop.cancel();
        }
    );
    assert_eq!(error.unwrap_err().reason(), "interrupted");
    assert!(began.elapsed() < Duration::from_secs(10), "TERM, then KILL");
    assert!(!alive(&deaf));
}

#[tokio::test]
async fn what_may_not_run_or_would_ask_is_refused() {
    let Some(place) = Place::full() else { return };
    let refused = |text: &str, mode| match place.watched(text, mode, Duration::from_secs(10)) {
        Verdict::Refuse(Refusal { layer, .. }) => layer,
        other => panic!("{text}: {other:?}"),
    };
    for mode in [Mode::Manual, Mode::Edit, Mode::Auto] {
        assert_eq!(refused("rm -rf /", mode), "floor");
        assert_eq!(refused("sudo id", mode), "sudo");
    }
    assert_eq!(refused("python3 -c 1", Mode::Manual), "unattended");
    assert_eq!(refused("git push", Mode::Edit), "unattended");
    for (text, mode) in [
        ("ls", Mode::Manual),
        ("python3 -c 1", Mode::Edit),
        ("git push", Mode::Auto),
    ] {
        let verdict = place.watched(text, mode, Duration::from_secs(10));
        assert!(matches!(verdict, Verdict::Allow(_)), "{text} {verdict:?}");
    }
}

#[tokio::test]
async fn a_yes_to_a_watch_command_is_one_to_watch_commands_alone() {
    let Some(place) = Place::full() else { return };
    let limit = Duration::from_secs(10);
    let request = |purpose| place.request("git push", limit, false, purpose);
    let judge = |purpose, rules: &[Rule]| {
        let context = place.context(Mode::Edit);
        place.engine.judge(&request(purpose), &context, rules)
    };
    let yes = |verdict| match verdict {
        Verdict::Ask(pending) => pending,
        other => panic!("{other:?}"),
    };
    let pending = yes(judge(Purpose::Monitor, &[]));
    let covers = pending.body.covers.clone().unwrap();
    assert!(covers.contains("as a watch command"), "{covers}");
    let rules = [pending.allowed(Scope::Always).1.unwrap()];
    let verdict = judge(Purpose::Monitor, &rules);
    let Verdict::Allow(grant) = verdict else {
        panic!("{verdict:?}");
    };
    let run = &grant.run().unwrap().r#box;
    assert_eq!((run.kind.word(), run.network), ("read", true));
    // A session that would do the same asks all the same.
    let pending = yes(judge(Purpose::Tool, &rules));
    // A yes to that one is more, and spares the watch command its question too.
    let rules = [pending.allowed(Scope::Always).1.unwrap()];
    let verdict = judge(Purpose::Monitor, &rules);
    assert!(matches!(verdict, Verdict::Allow(_)), "{verdict:?}");
}

#[tokio::test]
async fn it_sees_a_fixed_world_that_it_cannot_change() {
    let Some(place) = Place::full() else { return };
    let seen = place
        .watch("env -0 | cut -z -d= -f1 | sort -z | tr '\\0' ' '; umask; pwd; ulimit -c; wc -c");
    let excerpt = seen.await.unwrap().excerpt;
    assert_eq!(
        excerpt,
        format!(
            "COLUMNS GIT_OPTIONAL_LOCKS HOME LC_ALL LOGNAME NO_COLOR PATH PWD SHELL SHLVL TERM TMPDIR TZ USER _ 0022\n{}\n0\n0\n",
            place.root.display()
        )
    );
    let seen = place.watch("echo $TZ $TERM $NO_COLOR $COLUMNS $LC_ALL $GIT_OPTIONAL_LOCKS $TMPDIR");
    let excerpt = seen.await.unwrap().excerpt;
    assert!(
        ["C.UTF-8", "C.utf8", "C"]
            .iter()
            .any(|locale| excerpt == format!("UTC dumb 1 80 {locale} 0 /tmp\n")),
        "{excerpt}"
    );
    let tried = place.watch("echo x > here; echo y > /tmp/there && cat /tmp/there");
    let tried = tried.await.unwrap().excerpt;
    assert!(
        tried.contains("Read-only") && tried.ends_with("y\n"),
        "{tried}"
    );
    assert!(!place.root.join("here").exists());
    // Its temporary folder is new every time.
    let there = place.watch("ls -A /tmp/there 2>/dev/null").await.unwrap();
    assert_eq!((there.exit, there.bytes), (2, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_state_gives_the_same_hash_a_hundred_times_under_load() {
    let Some(place) = Place::full() else { return };
    for n in 0..50 {
        std::fs::write(place.root.join(format!("file-{n}")), vec![n; 1000]).unwrap();
    }
    let text =
        "ls -l; cat file-*; echo $$; bash -c 'kill -SEGV $$'; (exit 4) | cat; ls | wc -l; exit 5";
    let done = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let busy: Vec<_> = (0..4)
        .map(|_| {
            let done = done.clone();
            std::thread::spawn(move || {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            })
        })
        .collect();
    let place = &place;
    let lane = || async move {
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..25 {
            let watched = place.watch(text).await.unwrap();
            assert_eq!(watched.exit, 5);
            seen.insert((watched.hash, watched.excerpt));
        }
        seen
    };
    let (a, b, c, d) = tokio::join!(lane(), lane(), lane(), lane());
    done.store(true, std::sync::atomic::Ordering::Relaxed);
    for thread in busy {
        thread.join().unwrap();
    }
    let all: std::collections::BTreeSet<_> = [a, b, c, d].into_iter().flatten().collect();
    assert_eq!(all.len(), 1, "{all:#?}");
}
