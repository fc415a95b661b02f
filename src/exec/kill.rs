//! Ending everything a command started: its session, its descendants, and whatever left both.

use std::collections::HashSet;
use std::time::Duration;

use rustix::process::{Pid, Signal};

use crate::clock;

/// How long a command may take to end after it was told to, before it is killed.
pub(super) const GRACE: Duration = Duration::from_secs(5);

/// The processes of one call: the session that its shell leads, everyone with its mark, and all
/// that descend from them.
#[derive(Clone, Debug)]
pub(super) struct Family {
    /// The shell's process, whose number is also that of its session and group. A number is not
    /// given anew while a session of that number has members.
    pub(super) leader: u32,
    pub(super) mark: String,
    /// Whether the leader is a box, whose processes end with it.
    pub(super) boxed: bool,
}

impl Family {
    /// Tells them to end. A box itself is not told: it would take its processes along at once.
    pub(super) fn term(&self) {
        for pid in self.members() {
            if !(self.boxed && self.is_box(pid)) {
                signal(pid, Signal::TERM);
            }
        }
    }

    /// Kills them until none is left, at most a second. Answers how many were killed.
    pub(super) async fn kill(&self) -> usize {
        let mut ended = HashSet::new();
        for _ in 0..50 {
            let left = self.kill_now();
            if left.is_empty() {
                break;
            }
            ended.extend(left);
            clock::sleep(Duration::from_millis(20)).await;
        }
        ended.len()
    }

    /// Kills whoever is there at this moment and answers who that was.
    pub(super) fn kill_now(&self) -> Vec<u32> {
        let left = self.members();
        for pid in &left {
            signal(*pid, Signal::KILL);
        }
        left
    }

    fn members(&self) -> Vec<u32> {
        let mark = format!("{}={}", super::command::MARK, self.mark);
        let all: Vec<Stat> = pids().into_iter().filter_map(stat).collect();
        let mut found: HashSet<u32> = all
            .iter()
            .filter(|p| p.session == self.leader || p.group == self.leader || marked(p.pid, &mark))
            .map(|p| p.pid)
            .collect();
        // Descendants, also those that left the session and cleared their environment.
        loop {
            let before = found.len();
            found.extend(
                all.iter()
                    .filter(|p| found.contains(&p.parent))
                    .map(|p| p.pid)
                    .collect::<Vec<_>>(),
            );
            if found.len() == before {
                return found.into_iter().collect();
            }
        }
    }

    fn is_box(&self, pid: u32) -> bool {
        pid == self.leader
            || std::fs::read_to_string(format!("/proc/{pid}/comm"))
                .is_ok_and(|name| name.trim_end() == "bwrap")
    }
}

fn pids() -> Vec<u32> {
    std::fs::read_dir("/proc")
        .map(|entries| {
            entries
                .filter_map(Result::ok)
                .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
                .collect()
        })
        .unwrap_or_default()
}

/// What `/proc` says of a process that has not ended.
#[derive(Clone, Copy, Debug)]
struct Stat {
    pid: u32,
    parent: u32,
    group: u32,
    session: u32,
}

fn stat(pid: u32) -> Option<Stat> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold blanks and brackets: what follows the last bracket is fixed.
    let mut rest = stat.rsplit_once(')')?.1.split_whitespace();
    if rest.next()? == "Z" {
        return None;
    }
    let mut number = || rest.next()?.parse().ok();
    Some(Stat {
        pid,
        parent: number()?,
        group: number()?,
        session: number()?,
    })
}

fn marked(pid: u32, mark: &str) -> bool {
    std::fs::read(format!("/proc/{pid}/environ"))
        .is_ok_and(|environ| environ.split(|b| *b == 0).any(|var| var == mark.as_bytes()))
}

fn pid_of(pid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(pid).ok()?)
}

// A process that is gone already is what was wanted.
fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = pid_of(pid) {
        let _gone = rustix::process::kill_process(pid, signal);
    }
}

/// Kills a command's processes when its run is given up midway (a panic, an abort).
#[derive(Debug)]
pub(super) struct Guard {
    pub(super) family: Family,
    pub(super) done: bool,
}

impl Drop for Guard {
    fn drop(&mut self) {
        if !self.done {
            self.family.kill_now();
        }
    }
}
