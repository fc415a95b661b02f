use super::*;
use crate::acp::Limits as _;
use crate::config::Config;

struct Place {
    _folder: tempfile::TempDir,
    root: PathBuf,
    live: Live,
    limits: Limits,
}

/// A shared folder `root` with `root/in`, beside it `other`; links in the root to both.
fn place() -> Place {
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path().canonicalize().unwrap();
    let root = base.join("root");
    std::fs::create_dir_all(root.join("in")).unwrap();
    std::fs::create_dir_all(base.join("other/deep")).unwrap();
    std::fs::write(root.join("file"), "").unwrap();
    std::os::unix::fs::symlink(base.join("other"), root.join("out")).unwrap();
    std::os::unix::fs::symlink(root.join("in"), root.join("within")).unwrap();
    std::os::unix::fs::symlink(&root, base.join("alias")).unwrap();
    let live = Live::new(Config::default());
    let name = Arc::new(|| "zephyr".to_owned());
    let limits = Limits::new(live.clone(), name, "full");
    let place = Place {
        _folder: folder,
        root: root.clone(),
        live,
        limits,
    };
    place.set(|remote| remote.roots = vec![root]);
    place
}

impl Place {
    fn set(&self, change: impl FnOnce(&mut Remote)) {
        let mut config = (*self.live.now()).clone();
        change(&mut config.remote);
        self.live.set(config);
    }
}

#[test]
fn a_folder_is_judged_with_its_links_resolved() {
    let place = place();
    let base = place.root.parent().unwrap();
    for (asked, expected) in [
        (place.root.clone(), Ok(place.root.clone())),
        (place.root.join("in"), Ok(place.root.join("in"))),
        (place.root.join("within"), Ok(place.root.join("in"))),
        (base.join("alias/in"), Ok(place.root.join("in"))),
        (place.root.join("in/../in"), Ok(place.root.join("in"))),
        (place.root.join("out"), Err("outside")),
        (place.root.join("out/deep"), Err("outside")),
        (place.root.join("../other"), Err("outside")),
        (base.join("other"), Err("outside")),
        (base.join("root-not"), Err("outside")),
        (base.join("nowhere"), Err("outside")),
        (place.root.join("../nowhere"), Err("outside")),
        (PathBuf::from("/"), Err("outside")),
        (place.root.join("nowhere"), Err("missing")),
        (place.root.join("file"), Err("missing")),
        (PathBuf::from("in"), Err("params")),
        (PathBuf::new(), Err("params")),
    ] {
        let judged = place.limits.folder(&asked);
        let judged = judged.map_err(|no| {
            assert_eq!(no.code, RpcError::INVALID_PARAMS, "{asked:?}");
            assert!(
                no.text.contains(&asked.display().to_string()),
                "{}",
                no.text
            );
            no.reason
        });
        assert_eq!(judged, expected, "{asked:?}");
    }
}

#[test]
fn what_is_not_there_and_what_is_outside_are_told_apart_by_name_alone() {
    let place = place();
    let base = place.root.parent().unwrap();
    let text = |path: PathBuf| {
        let text = place.limits.folder(&path).unwrap_err().text;
        text.replace(&path.display().to_string(), "X")
    };
    assert_eq!(text(base.join("other")), text(base.join("nowhere")));
}

#[test]
fn each_switch_refuses_with_its_reason_and_words() {
    type Change = fn(&mut Remote);
    let cases: [(&str, Change); 3] = [
        ("remote_off", |remote| remote.enabled = false),
        ("paused", |remote| remote.paused = true),
        ("roots", |remote| remote.roots = Vec::new()),
    ];
    let mut said = Vec::new();
    for (reason, change) in cases {
        let place = place();
        place.set(change);
        let no = place.limits.folder(&place.root).unwrap_err();
        assert_eq!((no.code, no.reason), (REFUSED, reason));
        assert_eq!(place.limits.work().is_err(), reason != "roots");
        said.push(no.text);
    }
    insta::assert_snapshot!(said.join("\n"), @"
    Remote work is off on zephyr. Turn it on there: enabled = true under [remote] in config.toml.
    Remote work is paused on zephyr. Go on there: lembas resume-work.
    zephyr works in no folder yet. Allow one there: lembas roots add FOLDER.
    ");
}

#[test]
fn a_limit_counts_from_the_moment_it_changes() {
    let place = place();
    assert!(place.limits.folder(&place.root).is_ok());
    place.live.hold(true);
    assert_eq!(
        place.limits.folder(&place.root).unwrap_err().reason,
        "paused"
    );
    place.live.hold(false);
    place.set(|remote| remote.roots.clear());
    assert_eq!(
        place.limits.folder(&place.root).unwrap_err().reason,
        "roots"
    );
}

#[test]
fn a_mode_is_lowered_and_plan_is_always_possible() {
    use Mode::{Auto, Edit, Manual, Plan};
    let place = place();
    for (max, asked, mode) in [
        (Manual, Plan, Plan),
        (Manual, Manual, Manual),
        (Manual, Edit, Manual),
        (Manual, Auto, Manual),
        (Edit, Edit, Edit),
        (Edit, Auto, Edit),
        (Auto, Auto, Auto),
    ] {
        place.set(|remote| remote.max_mode = max);
        let lowered = place.limits.mode(asked);
        assert_eq!(
            (lowered.mode, lowered.lowered),
            (mode, mode != asked),
            "{asked} under {max}"
        );
    }
}

#[test]
fn scheduled_work_is_refused_lowered_and_bounded() {
    let place = place();
    let asked = |mode, wait| Schedule {
        schedule: "s".to_owned(),
        run: "r".to_owned(),
        mode,
        approval_wait: wait,
    };
    let judge = |mode, wait| place.limits.schedule(&asked(mode, wait));
    let off = judge(None, None).unwrap_err();
    assert_eq!((off.code, off.reason), (acp::SCHEDULED, "off"));
    insta::assert_snapshot!(off.text, @r#"This computer does not accept scheduled work. Turn on "Accept scheduled work" on it (lembas service scheduled on)."#);
    assert_eq!(place.limits.scheduled(), Err(off));
    place.set(|remote| remote.scheduled = true);
    assert_eq!(place.limits.scheduled(), Ok(()));
    let plan = judge(Some(Mode::Plan), None).unwrap_err();
    assert_eq!((plan.code, plan.reason), (acp::SCHEDULED, "plan"));
    let (run, mode) = judge(None, None).unwrap();
    assert_eq!(
        (run.approval_wait, mode.mode, mode.lowered),
        (1800, Mode::Manual, true)
    );
    place.set(|remote| {
        remote.max_mode = Mode::Auto;
        remote.approval_max = 3600;
    });
    assert_eq!(
        judge(None, None).unwrap().1.mode,
        Mode::Edit,
        "never wider unless it was chosen"
    );
    assert_eq!(
        judge(Some(Mode::Auto), Some(60)).unwrap().1.mode,
        Mode::Auto
    );
    assert_eq!(
        judge(None, Some(86_400)).unwrap().0.approval_wait,
        3600,
        "bounded by approval_max"
    );
    for wait in [0, 59, 86_401, u64::MAX] {
        assert_eq!(
            judge(None, Some(wait)).unwrap_err().reason,
            "params",
            "{wait}"
        );
    }
    for id in ["", "a b", "a\nb", "é", &"x".repeat(129)] {
        let asked = Schedule {
            run: id.to_owned(),
            ..asked(None, None)
        };
        assert_eq!(
            place.limits.schedule(&asked).unwrap_err().reason,
            "params",
            "{id:?}"
        );
    }
}

#[test]
fn answers_from_the_instance_count_as_far_as_approvals_says() {
    let place = place();
    let all = [Scope::Once, Scope::Session, Scope::Always];
    for (approvals, expected) in [
        (Approvals::Once, &all[..2]),
        (Approvals::Full, &all[..]),
        (Approvals::Local, &[]),
    ] {
        place.set(|remote| remote.approvals = approvals);
        assert_eq!(place.limits.scopes(&all), expected, "{approvals:?}");
    }
}

#[test]
fn what_a_change_ends_and_with_which_words() {
    let place = place();
    let inside = place.root.join("in");
    assert_eq!(place.limits.ends(&inside), None);
    place.set(|remote| remote.max_mode = Mode::Auto);
    assert_eq!(place.limits.ends(&inside), None, "judgements read it live");
    place.set(|remote| remote.scheduled = false);
    assert_eq!(place.limits.ends(&inside), None, "a running one goes on");
    let gone = place.root.join("in");
    place.set(|remote| remote.roots = vec![gone]);
    assert_eq!(place.limits.ends(&inside), None, "still under a root");
    assert_eq!(
        place.limits.ends(&place.root).as_deref(),
        Some("folder no longer shared")
    );
    place.set(|remote| remote.paused = true);
    assert_eq!(
        place.limits.ends(&inside).as_deref(),
        Some("paused on this computer")
    );
    place.set(|remote| remote.enabled = false);
    assert!(
        place
            .limits
            .ends(&inside)
            .unwrap()
            .starts_with("Remote work is off")
    );
}

#[test]
fn the_handshake_says_the_limits() {
    let place = place();
    place.set(|remote| {
        remote.roots = vec![PathBuf::from("/srv/api")];
        remote.approval_timeout = Some(600);
    });
    insta::assert_snapshot!(place.limits.describe().to_string(), @r#"{"remote":true,"paused":false,"roots":["/srv/api"],"max_mode":"manual","scheduled":false,"terminal":false,"approvals":"once","approval_timeout":600,"approval_max":86400,"box":"full","max_sessions":8}"#);
    place.set(|remote| remote.paused = true);
    assert_eq!(place.limits.describe()["roots"], json!([]));
}
