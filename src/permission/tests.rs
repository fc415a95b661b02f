//! Verdicts: over both corpora in every mode, and the engine's properties.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::testing::Fixed;
use super::*;
use crate::config::Sudo;
use crate::store::item::{Choice, Question, Scope};

const ORDINARY: &str = include_str!("../../tests/data/permission/shell-ordinary.tsv");
const ADVERSARIAL: &str = include_str!("../../tests/data/permission/shell-adversarial.tsv");

fn rows(text: &str) -> impl Iterator<Item = (&str, String)> {
    text.lines()
        .filter(|l| !l.starts_with('#') && !l.is_empty())
        .map(|l| {
            let cells: Vec<&str> = l.split('\t').collect();
            let json = cells.iter().skip(1).find(|c| c.starts_with('"')).unwrap();
            (cells[0], serde_json::from_str(json).unwrap())
        })
}

fn engine(strength: Strength) -> Engine {
    Engine::with(Arc::new(Fixed {
        strength,
        ..Fixed::default()
    }))
}

struct World {
    folder: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        // Not below the temporary folder, which is private to each boxed command.
        let base = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/permission");
        let folder = tempfile::Builder::new()
            .prefix(".judged")
            .tempdir_in(base)
            .unwrap();
        Self { folder }
    }
    fn root(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }
    fn context(&self, mode: Mode) -> Context {
        Context {
            session: SessionId::new("s"),
            origin: Origin::Local,
            mode,
            roots: vec![self.root()],
            attended: Attended::Person,
            approvals: Approvals::Once,
            sudo: Sudo::Refuse,
            released: Vec::new(),
        }
    }
    fn request(&self, text: &str) -> Request {
        Request {
            tool: "bash".into(),
            action: Action::Execute(Command {
                text: text.into(),
                timeout: Duration::from_secs(60),
                purpose: Purpose::Tool,
                open: None,
            }),
            cwd: self.root(),
        }
    }
    fn judge(&self, text: &str, mode: Mode) -> Verdict {
        engine(Strength::Full).judge(&self.request(text), &self.context(mode), &[])
    }
}

fn remote() -> Origin {
    Origin::Remote {
        instance: "i".into(),
        grant: "g".into(),
    }
}

/// One word for a verdict: `read`, `roots`, `open` where allowed, `ask`, `once`, `no`.
fn word(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Allow(grant) => grant.run().map_or("allow", |r| r.r#box.kind.word()).into(),
        Verdict::Ask(pending) if pending.body.scopes == [Scope::Once] => "once".into(),
        Verdict::Ask(_) => "ask".into(),
        Verdict::Refuse(refusal) => format!("no:{}", refusal.layer),
    }
}

#[test]
fn no_adversarial_line_runs_unasked_in_manual_and_plan_and_only_boxed_in_edit() {
    let world = World::new();
    let mut wrong = Vec::new();
    for (family, text) in rows(ADVERSARIAL) {
        // Nothing in the text of these tells: see the test on repositories.
        let by_state = ["git diff", "git status"].contains(&text.as_str());
        for mode in [Mode::Manual, Mode::Plan] {
            let said = word(&world.judge(&text, mode));
            if ["read", "roots", "open"].contains(&said.as_str()) && !by_state {
                wrong.push(format!("{mode:?} {family} {text:?}: {said}"));
            }
        }
        let said = word(&world.judge(&text, Mode::Edit));
        if said == "open" {
            wrong.push(format!("Edit {family} {text:?}: {said}"));
        }
        // Without a box nothing of it runs unasked in edit.
        let unboxed =
            engine(Strength::None).judge(&world.request(&text), &world.context(Mode::Edit), &[]);
        if matches!(unboxed, Verdict::Allow(_)) {
            wrong.push(format!("Edit unboxed {family} {text:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn visible_payloads_of_the_floor_are_refused() {
    let world = World::new();
    let mut missed = Vec::new();
    for (family, text) in rows(ADVERSARIAL) {
        if !text.contains("touch PWNED") {
            continue;
        }
        let text = text.replace("touch PWNED", "rm -rf /");
        let said = word(&world.judge(&text, Mode::Auto));
        if said != "no:floor" {
            missed.push(format!("{family} {text:?}: {said}"));
        }
    }
    insta::assert_snapshot!(missed.join("\n"), @r#"misread "true\rrm -rf /": once"#);
}

#[test]
fn readers_are_never_asked_about_and_builds_never_in_edit() {
    let world = World::new();
    let mut lines = Vec::new();
    for (family, text) in rows(ORDINARY) {
        let manual = word(&world.judge(&text, Mode::Manual));
        let edit = word(&world.judge(&text, Mode::Edit));
        lines.push(format!("{family}\t{manual}\t{edit}\t{text:?}"));
    }
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn repositories_that_start_programs_are_asked_about() {
    let world = World::new();
    let git = world.root().join(".git");
    std::fs::create_dir(&git).unwrap();
    for (config, said) in [
        ("[core]\n\tbare = false\n", "read"),
        ("[core]\n\tfsmonitor = touch PWNED\n", "ask"),
        ("[diff \"a]b\"]\n command = x\n", "ask"),
        ("[diff]\n\texternal=x", "ask"),
        ("[filter \"lfs\"] clean = x", "ask"),
        ("[include]\npath = x", "ask"),
        ("[core] fsmonitor = false", "read"),
    ] {
        std::fs::write(git.join("config"), config).unwrap();
        for command in ["git status", "git diff", "git log -p", "git show HEAD"] {
            let word = word(&world.judge(command, Mode::Manual));
            let word = word.replace("once", "ask");
            assert_eq!(word, said, "{command} with {config:?}");
        }
    }
}

#[test]
fn protected_paths_are_asked_about_once_here_and_refused_over_the_link() {
    let world = World::new();
    for text in [
        "cp f .git/hooks/pre-commit",
        "echo x >> ~/.bashrc",
        "echo x > $HOME/.profile",
        "cat > .github/workflows/ci.yml <<'E'\nx\nE",
        "cat ~/.ssh/id_ed25519",
        "cat ~/.config/lembas/token",
        "cd .git && echo x > config",
        "tee .envrc",
        "mv a .git",
        "sed -i s/a/b/ /etc/hosts",
    ] {
        for mode in [Mode::Manual, Mode::Edit, Mode::Auto] {
            let said = word(&world.judge(text, mode));
            // What is our own is nobody's, whoever asks.
            let ours = text.contains("/.config/lembas/");
            let here = if ours { "no:protected" } else { "once" };
            assert_eq!(said, here, "{text} in {mode:?}");
            let mut context = world.context(mode);
            context.origin = remote();
            let verdict = engine(Strength::Full).judge(&world.request(text), &context, &[]);
            assert_eq!(word(&verdict), "no:protected", "{text} in {mode:?}");
        }
    }
}

#[test]
fn sudo_asks_in_every_mode_and_is_never_remembered() {
    let world = World::new();
    for mode in [Mode::Manual, Mode::Edit, Mode::Auto] {
        assert_eq!(word(&world.judge("sudo -n true", mode)), "once");
        let mut context = world.context(mode);
        context.origin = remote();
        let judge = |c: &Context| {
            word(&engine(Strength::Full).judge(&world.request("env sudo ls"), c, &[]))
        };
        assert_eq!(judge(&context), "no:sudo");
        context.sudo = Sudo::Ask;
        assert_eq!(judge(&context), "once");
        context.attended = Attended::Scheduled;
        assert_eq!(judge(&context), "no:sudo");
    }
}

#[test]
fn a_yes_covers_what_it_says_in_its_folder_for_its_origin() {
    let world = World::new();
    let engine = engine(Strength::Full);
    let context = world.context(Mode::Manual);
    let ask = |text: &str, context: &Context, rules: &[Rule]| {
        engine.judge(&world.request(text), context, rules)
    };
    let Verdict::Ask(pending) = ask("cargo test --lib", &context, &[]) else {
        panic!("not asked")
    };
    assert_eq!(
        pending.body.covers.as_deref(),
        Some("cargo test *, boxed, in this folder. It runs code that the agent can change.")
    );
    assert_eq!(
        pending.body.scopes,
        [Scope::Once, Scope::Session, Scope::Always]
    );
    let digest = pending.body.digest.clone();
    let (grant, rule) = pending.allowed(Scope::Always);
    assert_eq!(grant.digest(), &digest);
    let rules = [rule.unwrap()];
    assert_eq!(
        grant.rules(),
        [] as [String; 0],
        "the person said it, no rule"
    );
    assert_eq!(word(&ask("cargo test x", &context, &rules)), "roots");
    let Verdict::Allow(grant) = ask("cargo test a && cargo test b", &context, &rules) else {
        panic!("asked again")
    };
    assert_eq!(grant.rules(), [rules[0].id.clone()], "each rule once");
    assert_eq!(
        word(&ask("cargo test x 2>&1 | tail -5", &context, &rules)),
        "roots"
    );
    assert_eq!(
        word(&ask("cargo test && cargo run", &context, &rules)),
        "ask"
    );
    assert_eq!(word(&ask("A=1 cargo test", &context, &rules)), "once");
    assert_eq!(
        word(&ask("cargo test $(touch x)", &context, &rules)),
        "once"
    );
    let mut other = context.clone();
    other.origin = remote();
    assert_eq!(word(&ask("cargo test", &other, &rules)), "ask");
    let mut plan = context.clone();
    plan.mode = Mode::Plan;
    assert_eq!(word(&ask("cargo test", &plan, &rules)), "no:mode");
    // A rule spares the question, never the box.
    let mut open = world.request("cargo test");
    if let Action::Execute(command) = &mut open.action {
        command.open = Some("network".into());
    }
    assert_eq!(word(&engine.judge(&open, &context, &rules)), "ask");
    let no = [Rule::refuse(
        &["cargo".into(), "test".into()],
        &world.root(),
    )];
    for mode in [Mode::Manual, Mode::Edit, Mode::Auto] {
        let context = world.context(mode);
        assert_eq!(word(&ask("cd x && cargo test", &context, &no)), "no:rule");
    }
}

#[test]
fn scopes_follow_who_can_answer() {
    let world = World::new();
    let mut context = world.context(Mode::Manual);
    context.origin = remote();
    for (approvals, scopes) in [
        (Approvals::Once, vec![Scope::Once, Scope::Session]),
        (
            Approvals::Full,
            vec![Scope::Once, Scope::Session, Scope::Always],
        ),
        (
            Approvals::Local,
            vec![Scope::Once, Scope::Session, Scope::Always],
        ),
    ] {
        context.approvals = approvals;
        let verdict = engine(Strength::Full).judge(&world.request("cargo test"), &context, &[]);
        let Verdict::Ask(pending) = verdict else {
            panic!("not asked")
        };
        assert_eq!(pending.body.scopes, scopes);
    }
}

#[test]
fn judged_again_the_digest_is_the_same_and_another_box_makes_another() {
    let world = World::new();
    let digest = |strength, mode| match engine(strength).judge(
        &world.request("cargo test"),
        &world.context(mode),
        &[],
    ) {
        Verdict::Ask(pending) => pending.body.digest,
        Verdict::Allow(grant) => grant.digest().clone(),
        Verdict::Refuse(refusal) => panic!("{refusal:?}"),
    };
    let first = digest(Strength::Full, Mode::Manual);
    assert_eq!(first, digest(Strength::Full, Mode::Manual));
    assert_eq!(first, digest(Strength::Full, Mode::Edit));
    assert_ne!(first, digest(Strength::None, Mode::Manual));
}

#[test]
fn reads_and_writes_follow_the_table() {
    let world = World::new();
    let engine = engine(Strength::Full);
    let judge = |action: Action, mode| {
        let request = Request {
            tool: "t".into(),
            action,
            cwd: world.root(),
        };
        word(&engine.judge(&request, &world.context(mode), &[]))
    };
    let read = |p: &str| Action::Read {
        paths: vec![world.root().join(p)],
    };
    let write = |p: &str| Action::Write {
        path: world.root().join(p),
        digest: Digest::of(b""),
        diff: String::new(),
    };
    std::fs::write(
        world.root().join("key"),
        "-----BEGIN OPENSSH PRIVATE KEY-----\n",
    )
    .unwrap();
    std::os::unix::fs::symlink("/home", world.root().join("out")).unwrap();
    for (action, expected) in [
        (read("a"), "allow allow allow allow"),
        (read("/usr/include/x.h"), "allow allow allow allow"),
        (read("/home/ana/other"), "ask ask allow ask"),
        (read("out/bob"), "ask ask allow ask"),
        (read(".env"), "ask ask ask ask"),
        (read(".env.example"), "allow allow allow allow"),
        (read("key"), "ask ask ask ask"),
        (read("/home/ana/.aws/credentials"), "once once once once"),
        (write("a"), "ask allow allow no:mode"),
        (write("/srv/a"), "ask ask allow no:mode"),
        (write("out/bob"), "ask ask allow no:mode"),
        (write(".git/config"), "once once once no:mode"),
        (write("sub/AGENTS.md"), "ask ask ask no:mode"),
        (Action::Interact, "allow allow allow allow"),
    ] {
        let said: Vec<_> = [Mode::Manual, Mode::Edit, Mode::Auto, Mode::Plan]
            .map(|mode| judge(action.clone(), mode))
            .to_vec();
        assert_eq!(said.join(" "), expected, "{action:?}");
    }
}

#[test]
fn a_watch_command_never_asks_and_never_writes() {
    let world = World::new();
    let mut request = world.request("cargo test");
    if let Action::Execute(command) = &mut request.action {
        command.purpose = Purpose::Monitor;
    }
    let mut context = world.context(Mode::Edit);
    context.attended = Attended::Nobody;
    let verdict = engine(Strength::Full).judge(&request, &context, &[]);
    assert_eq!(word(&verdict), "read");
    context.mode = Mode::Manual;
    let verdict = engine(Strength::Full).judge(&request, &context, &[]);
    assert_eq!(word(&verdict), "no:unattended");
}

/// Order of strictness of a verdict, box included.
fn rank(verdict: &Verdict) -> u8 {
    match verdict {
        Verdict::Allow(grant) => match grant.run().map(|r| r.r#box.kind) {
            Some(BoxKind::Roots) => 1,
            Some(BoxKind::Open) => 2,
            _ => 0,
        },
        Verdict::Ask(pending) if pending.body.scopes == [Scope::Once] => 4,
        Verdict::Ask(_) => 3,
        Verdict::Refuse(_) => 5,
    }
}

#[test]
fn adding_a_segment_a_wrapper_an_assignment_or_a_redirection_never_relaxes() {
    let world = World::new();
    let lines: Vec<String> = rows(ORDINARY)
        .chain(rows(ADVERSARIAL))
        .map(|(_, text)| text)
        .filter(|t| {
            !t.contains('\n')
                && !t.contains("<<")
                && !t.contains('#')
                && !t.trim_end().ends_with('&')
        })
        .collect();
    for (at, a) in lines.iter().enumerate().step_by(3) {
        let b = &lines[(at * 7 + 13) % lines.len()];
        for mode in [Mode::Manual, Mode::Edit, Mode::Auto, Mode::Plan] {
            let alone = rank(&world.judge(a, mode));
            let other = rank(&world.judge(b, mode));
            let both = rank(&world.judge(&format!("{a}; {b}"), mode));
            // Two asks may become one that can only be answered once, never less than either.
            assert!(
                both >= alone.max(other),
                "{mode:?}: {a:?} + {b:?}: {alone} {other} {both}"
            );
            let bare = a.split(' ').next().unwrap_or_default();
            let simple = !a.contains([';', '|', '&', '(', '{', '`', '!', '=', '>', '<', '['])
                && !["for", "while", "if", "until", "case", "time", "function"].contains(&bare);
            if simple {
                for wrapper in [
                    "env",
                    "nice -n 5",
                    "timeout 5",
                    "command",
                    "nohup",
                    "sudo",
                    "xargs",
                    "env env nice",
                    "X=1",
                    "PATH=.",
                ] {
                    let wrapped = rank(&world.judge(&format!("{wrapper} {a}"), mode));
                    assert!(
                        wrapped >= alone,
                        "{mode:?}: {wrapper} {a}: {wrapped} < {alone}"
                    );
                }
                let redirected = rank(&world.judge(&format!("{a} > out"), mode));
                assert!(redirected >= alone, "{mode:?}: {a} > out");
            }
        }
    }
}

#[test]
fn quoting_changes_nothing() {
    let world = World::new();
    for line in [
        "ls -la src",
        "cargo test x",
        "rm -rf /",
        "git status",
        "curl -s x",
        "sort -o a b",
        "cat /etc/shadow",
        "touch .git/x",
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        for mode in [Mode::Manual, Mode::Edit, Mode::Auto] {
            let plain = word(&world.judge(line, mode));
            for quote in [
                |w: &str| format!("'{w}'"),
                |w: &str| format!("\"{w}\""),
                |w: &str| w.chars().map(|c| format!("\\{c}")).collect::<String>(),
                |w: &str| format!("$'{w}'"),
                |w: &str| format!("{}''{}", &w[..1], &w[1..]),
            ] {
                for at in 0..words.len() {
                    let mut quoted: Vec<String> = words.iter().map(ToString::to_string).collect();
                    quoted[at] = quote(words[at]);
                    let quoted = quoted.join(" ");
                    assert_eq!(word(&world.judge(&quoted, mode)), plain, "{quoted}");
                }
            }
        }
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() })]
    #[test]
    fn any_text_gets_a_verdict(text in "[a-z $`'\"(){}\\[\\];|&<>\\\\\n~*=/!#-]{0,120}") {
        let world = World::new();
        let _ = world.judge(&text, Mode::Manual);
    }
}

#[test]
fn verdicts_are_quick() {
    // The bound is ten times the figure for a release build: this one is not optimised. The best of
    // several rounds counts: other tests run beside this one.
    let world = World::new();
    let engine = engine(Strength::Full);
    let context = world.context(Mode::Edit);
    let mut times: Vec<Duration> = rows(ORDINARY)
        .map(|(_, text)| world.request(&text))
        .map(|request| {
            let time = |_| {
                let began = crate::clock::instant();
                let _verdict = engine.judge(&request, &context, &[]);
                began.elapsed()
            };
            (0..5).map(time).min().unwrap()
        })
        .collect();
    times.sort();
    let p99 = times[times.len() * 99 / 100];
    println!("median {:?}, p99 {p99:?}", times[times.len() / 2]);
    assert!(p99 < Duration::from_millis(5), "{p99:?}");
}

#[test]
fn a_question_is_for_the_person_in_every_mode_and_for_nobody_else() {
    let world = World::new();
    let ask = |text: &str, label: &str| Request {
        tool: "ask_user".into(),
        action: Action::Question(Question {
            header: String::new(),
            text: text.into(),
            options: [label, "b"].map(choice).to_vec(),
            multiple: false,
            custom: true,
        }),
        cwd: world.root(),
    };
    let pending = |request: &Request, mode| match engine(Strength::Full).judge(
        request,
        &world.context(mode),
        &[],
    ) {
        Verdict::Ask(pending) => pending.body,
        other => panic!("{other:?}"),
    };
    let asked = ask("Which?", "a");
    for mode in [Mode::Manual, Mode::Edit, Mode::Auto, Mode::Plan] {
        let body = pending(&asked, mode);
        assert_eq!(
            (body.kind.as_str(), body.command.as_str()),
            ("question", "Which?")
        );
        assert_eq!(body.scopes, [Scope::Once]);
        assert!(body.variables.is_empty() && body.question.is_some());
    }
    // Other choices are another question.
    let digest = pending(&asked, Mode::Edit).digest;
    assert_ne!(digest, pending(&ask("Which?", "c"), Mode::Edit).digest);
    for attended in [Attended::Scheduled, Attended::Nobody] {
        let mut context = world.context(Mode::Edit);
        context.attended = attended;
        let verdict = engine(Strength::Full).judge(&asked, &context, &[]);
        assert_eq!(word(&verdict), "no:unattended");
    }
}

fn choice(label: &str) -> Choice {
    Choice {
        id: label.to_owned(),
        label: label.to_owned(),
        description: None,
    }
}

mod hostile;
