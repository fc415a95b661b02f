//! The processes of a command, seen from outside of its box by a mark in their command lines.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::home::within;

/// A number that no other command line has, for a `sleep` that goes on until it is ended.
pub(super) fn mark() -> String {
    format!("9{:08}.5", rand::random::<u32>() % 100_000_000)
}

/// Starts two more processes, one of them in a session of its own, says so, and goes on.
pub(super) fn command(mark: &str) -> String {
    format!("echo ran >> ran.txt; sleep {mark} & setsid sleep {mark} & echo ready; wait")
}

/// Processes, held so that their numbers mean them and nobody else.
pub(super) struct Tree(Vec<OwnedFd>);

impl Tree {
    /// Those that have the mark now.
    pub(super) fn marked(mark: &str) -> Self {
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let held = processes.filter_map(|entry| {
            let line = std::fs::read(entry.path().join("cmdline")).ok()?;
            let found = line.windows(mark.len()).any(|part| part == mark.as_bytes());
            let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
            found.then(|| pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok())?
        });
        Self(held.collect())
    }

    /// The same once there are some: nothing tells of a process that begins.
    pub(super) async fn begun(mark: &str) -> Self {
        within("a process", async {
            loop {
                let tree = Self::marked(mark);
                if tree.len() > 0 {
                    return tree;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Waits for the end of all of them; how long that took.
    pub(super) fn gone(self) -> Duration {
        let began = Instant::now();
        for process in &self.0 {
            let mut look = [PollFd::new(process, PollFlags::IN)];
            let most = Timespec {
                tv_sec: 30,
                tv_nsec: 0,
            };
            assert_eq!(
                poll(&mut look, Some(&most)).unwrap(),
                1,
                "it is still there"
            );
        }
        began.elapsed()
    }
}
