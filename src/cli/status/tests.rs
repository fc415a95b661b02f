use std::path::PathBuf;

use insta::assert_snapshot;

use super::*;
use crate::config::{Approvals, Mode};
use crate::daemon::status::{Device, Limits};
use crate::ids::{Seq, SessionId};
use crate::session::Progress;

const NOW: i64 = 1_796_036_520_000;

fn session(id: &str, progress: Option<(Phase, Value)>, running: bool, asks: usize) -> Summary {
    Summary {
        id: SessionId::new(id),
        cwd: PathBuf::from("/home/ana/projects/api"),
        title: None,
        origin: "page".into(),
        scheduled: false,
        model: "m".into(),
        mode: Mode::Edit,
        updated: NOW - 3_600_000,
        head: Seq(9),
        running,
        progress: progress.map(|(phase, data)| Progress {
            phase,
            since: NOW - 48_000,
            data: data.as_object().cloned().unwrap_or_default(),
        }),
        asks,
        turn: 1,
    }
}

fn status(state: &str) -> Status {
    Status {
        now: NOW,
        device: Device {
            id: Some("d1".into()),
            name: "zephyr".into(),
            version: "1.0".into(),
        },
        pid: 41_233,
        since: NOW - 9_000_000,
        what: "daemon".into(),
        page: None,
        linked: Linked {
            state: state.into(),
            since: Some(NOW - 7_200_000),
            instance: Some("https://box.example".into()),
            ..Linked::default()
        },
        limits: Limits {
            remote: true,
            paused: false,
            roots: vec!["/home/ana/projects".into(), "/home/ana/notes".into()],
            max_mode: Mode::Edit,
            scheduled: true,
            approvals: Approvals::Once,
            approval_timeout_s: Some(600),
        },
        r#box: "full".into(),
        config_problems: Vec::new(),
        strange: Vec::new(),
        sessions: Vec::new(),
        asks: Vec::new(),
    }
}

fn zone() -> TimeZone {
    TimeZone::UTC
}

fn said(status: &Status) -> String {
    let mut all = lines(status, Path::new("/home/ana"), &zone());
    all.extend(hints(status));
    all.push(format!("exit {}", if is_well(status) { 0 } else { 1 }));
    all.join("\n")
}

/// U58: every state has its word, its exit code and its next step.
#[test]
fn every_state_of_the_link_has_its_words() {
    let mut all = Vec::new();
    for state in [
        "linked", "dialling", "offline", "revoked", "replaced", "version", "never",
    ] {
        let mut status = status(state);
        match state {
            "offline" => {
                status.linked.reason = Some("connection refused".into());
                status.linked.next_try = Some(NOW + 12_000);
            }
            "revoked" => status.linked.reason = Some("access was taken back".into()),
            "never" => {
                status.linked = Linked {
                    state: state.into(),
                    ..Linked::default()
                };
                status.limits.roots.clear();
                status.limits.approval_timeout_s = None;
            }
            _ => {}
        }
        all.push(said(&status));
    }
    let mut paused = status("linked");
    paused.limits.paused = true;
    paused.config_problems =
        vec!["line 7: max_mod is not a setting. The nearest is max_mode.".into()];
    all.push(said(&paused));
    assert_snapshot!(all.join("\n\n"), @r"
    zephyr · linked to box.example since 2 h · up to Edit · scheduled on · approvals wait 10 min
    works in ~/projects, ~/notes
    exit 0

    zephyr · dialling box.example since 2 h · up to Edit · scheduled on · approvals wait 10 min
    works in ~/projects, ~/notes
    exit 0

    zephyr · no link to box.example since 2 h, next try in 12 s · up to Edit · scheduled on · approvals wait 10 min
    works in ~/projects, ~/notes
    why: connection refused

    Dial now:  lembas link retry
    exit 1

    zephyr · linked no more to box.example since 2 h · up to Edit · scheduled on · approvals wait 10 min
    works in ~/projects, ~/notes
    why: access was taken back

    Linked no more: run lembas link https://box.example
    exit 1

    zephyr · another process has the link to box.example since 2 h · up to Edit · scheduled on · approvals wait 10 min
    works in ~/projects, ~/notes

    Take it over:  lembas link take
    exit 1

    zephyr · box.example speaks another link protocol since 2 h · up to Edit · scheduled on · approvals wait 10 min
    works in ~/projects, ~/notes
    exit 1

    zephyr · not linked · up to Edit · scheduled on · approvals wait as long as it takes
    works in no folder yet

    Link it:  lembas link https://your.address
    exit 0

    zephyr · linked to box.example since 2 h · up to Edit · scheduled on · approvals wait 10 min
    paused; works in ~/projects, ~/notes
    config.toml line 7: max_mod is not a setting. The nearest is max_mode.

    Go on:  lembas resume-work
    exit 1
    ");
}

#[test]
fn what_a_chat_does_is_said() {
    let status = status("linked");
    let cases = [
        session(
            "a",
            Some((
                Phase::RunningTool,
                json!({"tool": "bash", "purpose": "cargo test"}),
            )),
            true,
            0,
        ),
        session(
            "b",
            Some((Phase::LoadingModel, json!({"model": "qwen"}))),
            true,
            0,
        ),
        session(
            "c",
            Some((
                Phase::Failed,
                json!({"reason": "the model does not answer"}),
            )),
            false,
            0,
        ),
        session("d", Some((Phase::Writing, json!({}))), false, 0),
        session("e", None, false, 1),
    ];
    let all: Vec<String> = cases.iter().map(|case| now(case, &status)).collect();
    assert_snapshot!(all.join("\n"), @r"
    running cargo test
    loading qwen
    failed: the model does not answer
    done
    waits for you
    ");
}

#[test]
fn json_has_times_with_zone_and_leaves_out_what_is_not_known() {
    let mut status = status("offline");
    status.linked.reason = Some("connection refused".into());
    status.sessions = vec![session("a", Some((Phase::Thinking, json!({}))), true, 0)];
    let object = object(&status, false, &zone());
    assert_snapshot!(serde_json::to_string_pretty(&object).unwrap(), @r#"
    {
      "ok": false,
      "device": {
        "id": "d1",
        "name": "zephyr",
        "version": "1.0"
      },
      "pid": 41233,
      "since": "2026-11-30T08:32:00.000+00:00",
      "linked": {
        "state": "offline",
        "instance": "https://box.example",
        "reason": "connection refused",
        "since": "2026-11-30T09:02:00.000+00:00"
      },
      "limits": {
        "remote": true,
        "paused": false,
        "roots": [
          "/home/ana/projects",
          "/home/ana/notes"
        ],
        "max_mode": "edit",
        "scheduled": true,
        "approvals": "once",
        "approval_timeout_s": 600
      },
      "box": "full",
      "sessions": [
        {
          "id": "a",
          "cwd": "/home/ana/projects/api",
          "origin": "page",
          "model": "m",
          "mode": "edit",
          "running": true,
          "asks": 0,
          "updated": "2026-11-30T10:02:00.000+00:00",
          "progress": {
            "phase": "thinking",
            "since": "2026-11-30T11:01:12.000+00:00"
          }
        }
      ],
      "asks": [],
      "try": [
        "lembas link retry"
      ]
    }
    "#);
}

#[test]
fn a_computer_without_a_box_says_so_and_what_helps() {
    let mut status = status("linked");
    assert!(!said(&status).contains("box none") && !said(&status).contains("For a box"));
    status.r#box = "none".into();
    let said = said(&status);
    let line = said.lines().find(|line| line.starts_with("box none: "));
    assert!(
        line.is_some_and(
            |line| line.ends_with("mode Edit asks before each command that does more than read")
        ),
        "{said}"
    );
    assert!(said.contains("\nFor a box:  "), "{said}");
}
