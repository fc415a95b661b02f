//! Processes of the program in a home of their own: started, read line by line, and always ended.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

/// Whatever is awaited comes within this, also on a machine that has much else to do.
pub(super) const LONG: Duration = Duration::from_secs(60);

pub(super) async fn within<F: Future>(what: &str, future: F) -> F::Output {
    match tokio::time::timeout(LONG, future).await {
        Ok(output) => output,
        Err(_) => panic!("{what}: it did not come"),
    }
}

/// A person's home with a folder for projects.
pub(super) struct Home {
    _base: tempfile::TempDir,
    path: PathBuf,
}

/// A command that has ended.
pub(super) struct Ran {
    pub(super) code: Option<i32>,
    pub(super) out: String,
    pub(super) err: String,
}

impl Home {
    pub(super) fn new() -> Self {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().canonicalize().unwrap().join("ana");
        std::fs::create_dir_all(path.join("projects")).unwrap();
        let home = Self { _base: base, path };
        std::fs::create_dir_all(home.settings()).unwrap();
        home
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Where `config.toml` and the pairing are.
    pub(super) fn settings(&self) -> PathBuf {
        self.path.join(".config/lembas")
    }

    pub(super) fn config(&self) -> String {
        std::fs::read_to_string(self.settings().join("config.toml")).unwrap()
    }

    /// Saves the settings as an editor does: a new file in the old one's place.
    pub(super) fn save(&self, text: &str) {
        let new = self.settings().join("config.toml.new");
        std::fs::write(&new, text).unwrap();
        std::fs::rename(new, self.settings().join("config.toml")).unwrap();
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::from(crate::tied::lembas());
        command
            .env_clear()
            .env("HOME", &self.path)
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .current_dir(&self.path)
            .kill_on_drop(true)
            .stdin(Stdio::null())
            .args(words);
        command
    }

    /// Runs a command to its end.
    pub(super) async fn run(&self, line: &str) -> Ran {
        let words: Vec<&str> = line.split_whitespace().collect();
        self.run_words(&words).await
    }

    pub(super) async fn run_words(&self, words: &[&str]) -> Ran {
        let output = within(&words.join(" "), self.command(words).output()).await;
        let output = output.unwrap();
        Ran {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Runs a command that must go well.
    pub(super) async fn well(&self, line: &str) -> Ran {
        let ran = self.run(line).await;
        assert_eq!(ran.code, Some(0), "{line}: {} {}", ran.out, ran.err);
        ran
    }

    /// The first object that a command prints.
    pub(super) async fn json(&self, line: &str) -> Value {
        let ran = self.run(line).await;
        serde_json::from_str(ran.out.lines().next().unwrap_or_default())
            .unwrap_or_else(|_| panic!("{line}: {} {}", ran.out, ran.err))
    }

    /// Starts a command that stays.
    pub(super) fn start(&self, line: &str) -> Running {
        let words: Vec<&str> = line.split_whitespace().collect();
        let log = self.path.join(format!("{}.log", words[0]));
        let file = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&log)
            .unwrap();
        let mut child = self
            .command(&words)
            .stdout(Stdio::piped())
            .stderr(file)
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Running { child, lines, log }
    }

    /// The state of the daemon once it is as wanted.
    pub(super) async fn status(&self, what: &str, want: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        let wait = async {
            loop {
                last = self.json("status --json").await;
                if want(&last) {
                    return last.clone();
                }
            }
        };
        match tokio::time::timeout(LONG, wait).await {
            Ok(found) => found,
            Err(_) => panic!("{what}: {last}"),
        }
    }
}

/// A process that runs until it is told to end, or killed: at the latest when this goes.
pub(super) struct Running {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    log: PathBuf,
}

impl Running {
    /// The next object it prints.
    pub(super) async fn line(&mut self) -> Value {
        let line = within("a line", self.lines.next_line()).await.unwrap();
        let line = line.unwrap_or_else(|| panic!("it ended: {}", self.log()));
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("not JSON: {line:?}"))
    }

    /// All that it wrote to stderr.
    pub(super) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id().expect("it runs")
    }

    /// `kill -9`.
    pub(super) async fn kill(&mut self) {
        self.child.start_kill().unwrap();
        within("the end", self.child.wait()).await.unwrap();
    }

    /// Tells it to end; its exit code.
    pub(super) async fn end(mut self) -> Option<i32> {
        let pid = Pid::from_raw(i32::try_from(self.pid()).unwrap()).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
        self.wait().await
    }

    /// Its exit code, once it has ended by itself.
    pub(super) async fn wait(&mut self) -> Option<i32> {
        within("the end", self.child.wait()).await.unwrap().code()
    }
}

impl Drop for Running {
    #[expect(
        clippy::print_stderr,
        reason = "a test that fails shows what its processes said"
    )]
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = self.log();
            let from = log.len().saturating_sub(4000);
            let tail = log.get(from..).unwrap_or_default();
            eprintln!("{}:\n{tail}", self.log.display());
        }
    }
}
