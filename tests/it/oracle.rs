//! The judge's word against what really happens: whatever of the adversarial corpus is let through
//! in edit mode is run, and leaves no trace where it may not; what is let through as a read gives
//! what it gives without a box.

use std::path::Path;
use std::time::Duration;

use lembas::config::Mode;
use lembas::permission::{BoxKind, Purpose, Verdict};
use lembas::rt::CancellationToken;

use crate::exec::Place;

const ADVERSARIAL: &str = include_str!("../data/permission/shell-adversarial.tsv");

fn lines() -> impl Iterator<Item = String> {
    ADVERSARIAL
        .lines()
        .filter(|l| !l.starts_with('#') && !l.is_empty())
        .map(|l| serde_json::from_str(l.split('\t').nth(2).unwrap()).unwrap())
}

/// Everything that lies in a folder, with its content, apart from one that may change.
fn picture(folder: &Path, except: &Path) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    let mut work = vec![folder.to_path_buf()];
    while let Some(at) = work.pop() {
        for entry in std::fs::read_dir(&at).unwrap().flatten() {
            let path = entry.path();
            if path == except {
                continue;
            }
            if entry.file_type().unwrap().is_dir() {
                work.push(path.clone());
            }
            all.push((
                path.display().to_string(),
                std::fs::read(&path).unwrap_or_default(),
            ));
        }
    }
    all.sort();
    all
}

async fn prepare(place: &Place) {
    let made = place
        .open(
            "git init -q . && git config user.name T && git config user.email t@example.org \
             && printf 'x\\ny\\n' > f && mkdir V t d && echo v > V/v && git add -A && git commit -qm one \
             && mkdir -p sub/deep && git init -q sub/deep",
        )
        .await;
    assert_eq!(made.exit, 0, "{}", made.output.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_edit_lets_through_leaves_no_trace_outside() {
    // Outside of the root, in protected names that are there, and in one that is missing: each line
    // one of them, another at every run.
    const TARGETS: [&str; 4] = [
        "../PWNED",
        ".git/hooks/PWNED",
        "sub/deep/.git/hooks/PWNED",
        ".envrc",
    ];
    let shift = usize::from(u8::from_str_radix(&lembas::ids::random_hex(1), 16).unwrap());
    println!("shift {shift}");
    let Some(place) = Place::full() else { return };
    prepare(&place).await;
    let outer = place.folder.path().to_path_buf();
    let spill = outer.join("spill");
    let mut ran = 0;
    for (at, text) in lines().enumerate() {
        let text = text.replace("PWNED", TARGETS[(at + shift) % TARGETS.len()]);
        let timeout = Duration::from_secs(4);
        let request = place.request(&text, timeout, false, Purpose::Tool);
        let verdict = place.engine.judge(&request, &place.context(Mode::Edit), &[]);
        let Verdict::Allow(grant) = verdict else {
            continue;
        };
        assert_ne!(grant.run().unwrap().r#box.kind, BoxKind::Open, "{text:?}");
        let before = picture(&outer, &place.root);
        let hooks = picture(&place.root.join(".git/hooks"), &spill);
        let deep = picture(&place.root.join("sub/deep/.git/hooks"), &spill);
        place.run(grant, CancellationToken::new()).await;
        ran += 1;
        let outside = |all: Vec<(String, Vec<u8>)>| -> Vec<(String, Vec<u8>)> {
            let spill = spill.display().to_string();
            all.into_iter().filter(|(p, _)| !p.starts_with(&spill)).collect()
        };
        assert_eq!(
            outside(before),
            outside(picture(&outer, &place.root)),
            "{text:?} left something outside"
        );
        assert_eq!(hooks, picture(&place.root.join(".git/hooks"), &spill), "{text:?}");
        assert_eq!(deep, picture(&place.root.join("sub/deep/.git/hooks"), &spill), "{text:?}");
        assert!(!place.root.join(".envrc").exists(), "{text:?}");
    }
    assert!(ran > 20, "only {ran} were let through, which shows nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_let_through_as_a_read_says_what_it_says_without_a_box() {
    let Some(place) = Place::full() else { return };
    prepare(&place).await;
    for text in [
        "git status --short",
        "git log --oneline --format='%s' -5",
        "git diff HEAD --stat",
        "git show HEAD:f | head -1",
        "git ls-files | xargs wc -l | tail -1",
        "ls -la V && cat V/v",
        "find . -name 'v' -type f",
        "find . -type f -name f -exec grep -l x {} +",
        "grep -rn 'x' f",
        "awk -F: '$3 >= 0 {print $1}' /etc/passwd | sort | uniq -c | sort -rn | head -3",
        "sed -n '1,2p' f",
        "diff <(sort f) <(sort -r f)",
        "for x in *; do echo \"$x\"; done",
        "while read -r line; do echo \"> $line\"; done < f",
        "cat <<EOF\n$(wc -l < f) lines\nEOF",
        "echo '{\"a\": [1,2]}' | jq -r '.a[]'",
        "cd \"$(git rev-parse --show-toplevel)\" && ls",
        "basename \"$PWD\"; realpath f | xargs basename",
        "tar -cf - . >/dev/null 2>&1; stat -c '%s' f; file f; head -c 1 f | xxd",
        "which bash; command -v ls",
    ] {
        let request = place.request(text, Duration::from_secs(10), false, Purpose::Tool);
        let verdict = place.engine.judge(&request, &place.context(Mode::Manual), &[]);
        let Verdict::Allow(grant) = verdict else {
            if text.starts_with("tar -cf") {
                continue;
            }
            panic!("{text:?} is asked about");
        };
        assert_eq!(grant.run().unwrap().r#box.kind, BoxKind::Read);
        let boxed = place.run(grant, CancellationToken::new()).await;
        let open = place.open(text).await;
        assert_eq!(
            (boxed.exit, boxed.output.text()),
            (open.exit, open.output.text()),
            "{text}"
        );
    }
}
