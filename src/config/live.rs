//! The settings in force, shared by everyone who judges by them.

use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::{Config, Problem};

/// The settings as they are now, for everyone who judges by them. Cheap to clone.
///
/// A limit is read at the moment of use: call [`Live::now`] for each judgement and keep nothing.
#[derive(Clone, Debug)]
pub struct Live {
    current: Arc<ArcSwap<Config>>,
    problems: Arc<ArcSwap<Vec<Problem>>>,
    file: Arc<Mutex<File>>,
    changed: watch::Sender<u64>,
}

/// What the file says, and what was said besides it.
#[derive(Debug)]
struct File {
    config: Config,
    held: bool,
}

impl Live {
    pub fn new(config: Config) -> Self {
        Self {
            current: Arc::new(ArcSwap::from_pointee(config.clone())),
            problems: Arc::default(),
            file: Arc::new(Mutex::new(File {
                config,
                held: false,
            })),
            changed: watch::Sender::new(0),
        }
    }

    pub fn now(&self) -> Arc<Config> {
        self.current.load_full()
    }

    /// Puts new settings in force and tells everyone who waits on [`Live::changes`]. Nothing
    /// happens when they are the same as before.
    pub fn set(&self, config: Config) {
        let mut file = self.file.lock();
        file.config = config;
        self.problems.store(Arc::default());
        self.publish(&file);
    }

    /// `lembas pause` at work: holds all remote work whatever the file says, until it is let go.
    /// This must work also while the file is broken and cannot be put in force.
    pub fn hold(&self, held: bool) {
        let mut file = self.file.lock();
        file.held = held;
        self.publish(&file);
    }

    /// The file is wrong: the settings stay as they were, and say so.
    pub fn broken(&self, problems: Vec<Problem>) {
        self.problems.store(Arc::new(problems));
        self.changed.send_modify(|n| *n += 1);
    }

    /// What is wrong with the file, when the settings in force are older than it.
    pub fn problems(&self) -> Arc<Vec<Problem>> {
        self.problems.load_full()
    }

    /// A receiver that is marked changed whenever the settings in force, or what is wrong with
    /// the file, changed.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    fn publish(&self, file: &File) {
        let mut config = file.config.clone();
        config.remote.paused |= file.held;
        if *self.current.load_full() != config {
            self.current.store(Arc::new(config));
        }
        self.changed.send_modify(|n| *n += 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hold_survives_a_reload() {
        let live = Live::new(Config::default());
        let mut changes = live.changes();
        live.hold(true);
        assert!(changes.has_changed().unwrap());
        changes.mark_unchanged();
        live.set(Config::default());
        assert!(live.now().remote.paused);
        live.hold(false);
        assert!(!live.now().remote.paused);
    }

    #[test]
    fn a_broken_file_changes_nothing_in_force() {
        let mut config = Config::default();
        config.remote.max_mode = super::super::Mode::Edit;
        let live = Live::new(config.clone());
        live.broken(vec![Problem::at(3, "x is not a setting")]);
        assert_eq!(*live.now(), config);
        assert_eq!(live.problems().len(), 1);
        live.set(config);
        assert!(live.problems().is_empty());
    }
}
