use std::fs::{self, OpenOptions};
use std::io::Write as _;

use super::*;
use crate::config::Mode;

struct Rig {
    base: tempfile::TempDir,
    paths: Paths,
    live: Live,
    changes: tokio::sync::watch::Receiver<u64>,
    again: Arc<Notify>,
    tasks: Tasks,
}

fn text(mode: &str) -> String {
    format!("[remote]\nmax_mode = \"{mode}\"\n")
}

impl Rig {
    async fn start() -> Self {
        let base = tempfile::tempdir().unwrap();
        let paths = Paths::under(&base.path().join("d"), PathBuf::from("/home/ana"));
        paths.create().unwrap();
        fs::write(paths.config_file(), text("manual")).unwrap();
        let live = Live::new(Config::default());
        let changes = live.changes();
        let tasks = Tasks::new();
        let again = Arc::new(Notify::new());
        start(&paths, live.clone(), Arc::clone(&again), &tasks);
        let mut rig = Self {
            base,
            paths,
            live,
            changes,
            again,
            tasks,
        };
        // The first look is applied: from here on every save is heard.
        rig.changes.changed().await.unwrap();
        rig
    }

    async fn until(&mut self, what: &str, is: impl Fn(&Live) -> bool) {
        let wait = async {
            while !is(&self.live) {
                self.changes.changed().await.unwrap();
            }
        };
        clock::timeout(Duration::from_secs(10), wait)
            .await
            .unwrap_or_else(|_| panic!("not seen: {what}"));
    }

    async fn until_mode(&mut self, what: &str, mode: Mode) {
        self.until(what, |live| live.now().remote.max_mode == mode)
            .await;
    }
}

type Save = fn(&Path, &Path, &str);

/// The ways in which editors and tools save a file.
const WAYS: &[(&str, Save)] = &[
    ("write in place", |file, _, text| {
        fs::write(file, text).unwrap();
    }),
    ("truncate, then write in parts", |file, _, text| {
        let mut open = OpenOptions::new()
            .write(true)
            .truncate(true)
            .open(file)
            .unwrap();
        for byte in text.as_bytes() {
            open.write_all(&[*byte]).unwrap();
        }
    }),
    ("rename over", |file, base, text| {
        let new = file.with_extension("new");
        fs::write(&new, text).unwrap();
        fs::rename(&new, file).unwrap();
        let _ = base;
    }),
    ("rename over from another folder", |file, base, text| {
        let new = base.join("elsewhere");
        fs::write(&new, text).unwrap();
        fs::rename(&new, file).unwrap();
    }),
    ("move away, then write anew", |file, _, text| {
        fs::rename(file, file.with_extension("toml~")).unwrap();
        fs::write(file, text).unwrap();
    }),
    ("delete, then write anew", |file, _, text| {
        fs::remove_file(file).unwrap();
        fs::write(file, text).unwrap();
    }),
    ("hard link in its place", |file, base, text| {
        let new = base.join("linked");
        let _ = fs::remove_file(&new);
        fs::write(&new, text).unwrap();
        fs::remove_file(file).unwrap();
        fs::hard_link(&new, file).unwrap();
    }),
    ("turn it into a link", |file, base, text| {
        let real = base.join("dotfiles");
        fs::write(&real, text).unwrap();
        fs::remove_file(file).unwrap();
        std::os::unix::fs::symlink(&real, file).unwrap();
    }),
    ("write behind the link", |_, base, text| {
        fs::write(base.join("dotfiles"), text).unwrap();
    }),
    ("rename over behind the link", |_, base, text| {
        let new = base.join("dotfiles.new");
        fs::write(&new, text).unwrap();
        fs::rename(&new, base.join("dotfiles")).unwrap();
    }),
    ("point the link elsewhere", |file, base, text| {
        let real = base.join("dotfiles2");
        fs::write(&real, text).unwrap();
        let link = base.join("newlink");
        std::os::unix::fs::symlink(&real, &link).unwrap();
        fs::rename(&link, file).unwrap();
    }),
];

#[tokio::test]
async fn every_way_of_saving_is_seen() {
    let mut rig = Rig::start().await;
    for (n, (what, save)) in WAYS.iter().enumerate() {
        let (word, mode) = if n % 2 == 0 {
            ("edit", Mode::Edit)
        } else {
            ("manual", Mode::Manual)
        };
        save(&rig.paths.config_file(), rig.base.path(), &text(word));
        rig.until_mode(what, mode).await;
        assert!(rig.live.problems().is_empty(), "{what}");
    }
    rig.tasks.end().await;
}

#[tokio::test]
async fn a_broken_file_keeps_the_settings_and_says_so() {
    let mut rig = Rig::start().await;
    fs::write(rig.paths.config_file(), text("edit")).unwrap();
    rig.until_mode("edit", Mode::Edit).await;
    fs::write(rig.paths.config_file(), "[remote]\nmax_mode = 3\n").unwrap();
    rig.until("the problem", |live| !live.problems().is_empty())
        .await;
    assert_eq!(rig.live.now().remote.max_mode, Mode::Edit);
    fs::write(rig.paths.config_file(), text("auto")).unwrap();
    rig.until_mode("mended", Mode::Auto).await;
    assert!(rig.live.problems().is_empty());
    rig.tasks.end().await;
}

#[tokio::test]
async fn a_file_that_stays_away_allows_nothing() {
    let mut rig = Rig::start().await;
    fs::write(rig.paths.config_file(), text("auto")).unwrap();
    rig.until_mode("auto", Mode::Auto).await;
    fs::remove_file(rig.paths.config_file()).unwrap();
    rig.until_mode("defaults", Mode::Manual).await;
    rig.tasks.end().await;
}

#[tokio::test]
async fn a_hang_up_looks_at_once() {
    let mut rig = Rig::start().await;
    let seen = *rig.changes.borrow_and_update();
    fs::write(rig.paths.config_file(), text("edit")).unwrap();
    rig.again.notify_one();
    rig.until_mode("edit", Mode::Edit).await;
    assert!(*rig.changes.borrow() > seen);
    rig.tasks.end().await;
}
