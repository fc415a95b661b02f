//! Keeps [`Live`] as the file is: whatever way an editor saves it, a change counts at once.
//!
//! The folder is watched, not the file, because most editors put a new file in its place. A file
//! that is broken, or gone for a moment in the middle of a save, leaves the settings as they were.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use notify::{RecursiveMode, Watcher as _};
use tokio::sync::Notify;

use super::{Config, ConfigError, Live, Paths, Problem, load};
use crate::rt::Tasks;
use crate::{clock, rt};

/// Events of one save come together: the file is read when this long nothing more came.
const SETTLE: Duration = Duration::from_millis(150);
/// A file that is gone or empty may be half saved. After this it counts: nothing is allowed.
const GONE: Duration = Duration::from_secs(2);
/// How often the file is looked at where the system cannot watch it.
const POLL: Duration = Duration::from_secs(10);

/// Follows the file until the tasks are told to end. `again` may be marked to look at once (a
/// hang-up signal).
pub fn start(paths: &Paths, live: Live, again: Arc<Notify>, tasks: &Tasks) {
    let file = paths.config_file();
    let home = paths.home.clone();
    let stop = tasks.stop().clone();
    tasks.spawn("config watch", async move {
        tokio::select! {
            () = stop.cancelled() => {}
            () = follow(&file, &home, &live, &again) => {}
        }
    });
}

/// Reads the file now and puts it in force, or says what is wrong with it: for a command that has
/// just changed it and whose person expects that it counts.
pub async fn now(paths: &Paths, live: &Live) {
    let (file, home) = (paths.config_file(), paths.home.clone());
    let read = rt::blocking(move || Seen::read(&file, &home)).await;
    if let Some(seen) = read.filter(|seen| !seen.absent) {
        apply(live, &seen);
    }
}

async fn follow(file: &Path, home: &Path, live: &Live, again: &Notify) {
    let saved = Arc::new(Notify::new());
    let mut watched = Watched::default();
    let mut last = Seen::default();
    loop {
        // Watching first, then reading: a save between the two is heard.
        let watching = watched.renew(file, &saved);
        let read = {
            let (file, home) = (file.to_owned(), home.to_owned());
            rt::blocking(move || Seen::read(&file, &home)).await
        };
        let mut wait = if watching { None } else { Some(POLL) };
        if let Some(seen) = read {
            if seen.absent && !last.absent && !last.waited {
                last.waited = true;
                wait = Some(GONE);
            } else if seen != last {
                last = seen;
                apply(live, &last);
            }
        }
        let more = async {
            match wait {
                Some(time) => clock::sleep(time).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = again.notified() => {}
            () = more => {}
            () = saved.notified() => {
                // One save is several events: wait until they have settled.
                while clock::timeout(SETTLE, saved.notified()).await.is_ok() {}
            }
        }
    }
}

fn apply(live: &Live, seen: &Seen) {
    match &seen.result {
        Ok(config) => {
            if *config != *live.now() || !live.problems().is_empty() {
                tracing::info!("the settings changed and are in force");
            }
            live.set(config.clone());
        }
        Err(problems) => {
            let first = problems.first().map(ToString::to_string);
            tracing::error!(
                problems = problems.len(),
                first,
                "config.toml is wrong: the settings before it stay in force"
            );
            live.broken(problems.clone());
        }
    }
}

/// What was seen at one look.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    result: Result<Config, Vec<Problem>>,
    /// There is no file, or an empty one.
    absent: bool,
    waited: bool,
}

impl Default for Seen {
    fn default() -> Self {
        // Nothing was seen yet: whatever the first look finds is applied.
        Self {
            result: Err(Vec::new()),
            absent: true,
            waited: false,
        }
    }
}

impl Seen {
    fn read(file: &Path, home: &Path) -> Self {
        let absent = std::fs::metadata(file).map_or(true, |meta| meta.len() == 0);
        let result = load(file, home).map_err(|error| match error {
            ConfigError::Wrong { problems, .. } => problems,
            ConfigError::Read { source, .. } => {
                let why = crate::text::words::io(&source);
                vec![Problem::at(0, format!("It cannot be read: {why}."))]
            }
        });
        Self {
            result,
            absent,
            waited: false,
        }
    }
}

/// The folders being watched: the file's own, and where it is a link, the one it leads to.
#[derive(Default)]
struct Watched {
    watcher: Option<notify::RecommendedWatcher>,
    /// With their inodes: a folder that was made anew has to be watched anew.
    folders: Vec<(PathBuf, u64)>,
}

impl Watched {
    /// Watches the folders as they are now. False where the system cannot.
    fn renew(&mut self, file: &Path, saved: &Arc<Notify>) -> bool {
        let mut folders: Vec<PathBuf> = file.parent().map(Path::to_owned).into_iter().collect();
        if let Ok(real) = std::fs::canonicalize(file)
            && let Some(folder) = real.parent()
            && folders.iter().all(|known| known != folder)
        {
            folders.push(folder.to_owned());
        }
        let folders: Vec<(PathBuf, u64)> = folders
            .into_iter()
            .map(|folder| {
                let inode = std::fs::metadata(&folder).map_or(0, |meta| meta.ino());
                (folder, inode)
            })
            .collect();
        if self.watcher.is_some() && folders == self.folders {
            return true;
        }
        let saved = Arc::clone(saved);
        // One mark stands for any number of events: nothing queues up.
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            if event.map_or(true, |event| !event.kind.is_access()) {
                saved.notify_one();
            }
        });
        let watching = watcher.and_then(|mut watcher| {
            for (folder, _) in &folders {
                watcher.watch(folder, RecursiveMode::NonRecursive)?;
            }
            Ok(watcher)
        });
        match watching {
            Ok(watcher) => {
                self.watcher = Some(watcher);
                self.folders = folders;
                true
            }
            Err(error) => {
                tracing::warn!(%error, "the settings cannot be watched and are looked at every 10 s");
                self.watcher = None;
                self.folders.clear();
                false
            }
        }
    }
}

#[cfg(test)]
mod tests;
