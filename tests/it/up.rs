//! `lembas up`, `daemon`, `hub` and `acp` as processes: they start, find each other, and end.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use lembas::clock::instant;
use serde_json::{Value, json};

/// A home of its own, and the processes started in it; they are ended with it.
struct Home {
    base: tempfile::TempDir,
}

struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

/// A process that runs until it is told to end.
struct Running {
    child: Child,
    out: BufReader<std::process::ChildStdout>,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Home {
    fn new() -> Self {
        let base = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(base.path().join("ana/projects")).unwrap();
        Self { base }
    }

    fn home(&self) -> PathBuf {
        self.base.path().join("ana")
    }

    fn command(&self, line: &str) -> Command {
        let mut command = crate::tied::lembas();
        command
            .env_clear()
            .env("HOME", self.home())
            .env("PATH", "/usr/bin:/bin")
            .current_dir(self.home())
            .args(line.split_whitespace());
        command
    }

    fn run(&self, line: &str) -> Ran {
        let output = self.command(line).stdin(Stdio::null()).output().unwrap();
        Ran {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    fn json(&self, line: &str) -> Value {
        let ran = self.run(line);
        serde_json::from_str(ran.out.lines().next().unwrap_or_default())
            .unwrap_or_else(|_| panic!("{line}: {} {}", ran.out, ran.err))
    }

    /// Starts a command that stays; its stderr is thrown away.
    fn start(&self, line: &str) -> Running {
        let mut child = self
            .command(line)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Running { child, out }
    }
}

impl Running {
    fn line(&mut self) -> Value {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("not JSON: {line:?}"))
    }

    fn send(&mut self, message: &Value) {
        let stdin = self.child.stdin.as_mut().unwrap();
        writeln!(stdin, "{message}").unwrap();
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Waits for the end; how it ended.
    fn end(mut self) -> Option<i32> {
        let until = instant() + Duration::from_secs(30);
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(instant() < until, "it did not end");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn initialize() -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "protocolVersion": 1 } })
}

#[test]
fn up_links_itself_says_so_and_ends_when_told() {
    let home = Home::new();
    let mut up = home.start("up --listen 127.0.0.1:0 --json");
    let said = up.line();
    assert_eq!(said["ok"], true);
    assert_eq!(said["state"], "started");
    assert_eq!(said["limits"]["roots"], json!([]));
    assert_eq!(said["limits"]["max_mode"], "edit");
    assert_eq!(said["limits"]["scheduled"], false);
    assert_eq!(said["model"]["practice"], true);
    assert_eq!(said["pid"], up.child.id());

    let status = home.json("status --json");
    assert_eq!(status["ok"], true, "{status}");
    assert_eq!(status["linked"]["state"], "linked");
    assert_eq!(status["linked"]["instance"], said["url"]);
    assert_eq!(status["page"], said["url"]);
    assert_eq!(status["device"]["id"], said["device"]["id"]);

    // A second copy attaches, with a link of its own.
    let again = home.json("up --json");
    assert_eq!(again["state"], "running");
    assert_eq!(again["url"], said["url"]);
    assert_ne!(again["token"], said["token"]);
    // A second daemon does not begin.
    let daemon = home.run("daemon");
    assert_eq!(daemon.code, Some(69), "{}", daemon.err);
    assert!(
        daemon.err.contains("runs on this computer already"),
        "{}",
        daemon.err
    );

    // A change of the limits counts when the command returns.
    assert_eq!(home.run("roots add projects").code, Some(0));
    let status = home.json("status --json");
    let root = home.home().canonicalize().unwrap().join("projects");
    assert_eq!(status["limits"]["roots"], json!([root]));
    assert_eq!(home.run("pause").code, Some(0));
    assert_eq!(home.json("status --json")["limits"]["paused"], true);
    assert_eq!(home.run("resume-work").code, Some(0));

    up.signal(rustix::process::Signal::TERM);
    assert_eq!(up.end(), Some(0));
    assert_eq!(home.run("status").code, Some(69));
}

#[test]
fn up_begins_again_with_the_same_pairing_on_another_port() {
    let home = Home::new();
    let mut first = home.start("up --listen 127.0.0.1:0 --json");
    let one = first.line();
    // Killed: the lock and the socket that are left over keep nobody out.
    first.signal(rustix::process::Signal::KILL);
    first.end();
    let mut second = home.start("up --listen 127.0.0.1:0 --json");
    let two = second.line();
    assert_eq!(two["state"], "started");
    assert_eq!(two["device"]["id"], one["device"]["id"]);
    let status = home.json("status --json");
    assert_eq!(status["linked"]["state"], "linked", "{status}");
    assert_eq!(status["linked"]["instance"], two["url"]);
}

#[test]
fn a_port_in_use_is_told_with_who_has_it() {
    let home = Home::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = taken.local_addr().unwrap();
    let ran = home.run(&format!("up --listen {at}"));
    assert_eq!(ran.code, Some(69));
    let begins = format!("error: cannot listen on {at}: the port is in use");
    assert!(ran.err.contains(&begins), "{}", ran.err);
    if cfg!(target_os = "linux") {
        let who = format!("(pid {})", std::process::id());
        assert!(ran.err.contains(&who), "{}", ran.err);
    }
    assert!(
        ran.err.contains("try: lembas up --listen 127.0.0.1:0"),
        "{}",
        ran.err
    );
}

#[test]
fn the_data_folder_holds_everything() {
    let home = Home::new();
    let mut up = home.start("--data here up --listen 127.0.0.1:0 --json");
    up.line();
    assert_eq!(
        home.json("--data here status --json")["linked"]["state"],
        "linked"
    );
    // The one in the usual folders is another one.
    assert_eq!(home.run("status").code, Some(69));
    let left: Vec<String> = std::fs::read_dir(home.home())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    // `status` made the usual folders; nothing else is outside of `here`.
    for name in left {
        assert!(
            ["here", "projects", ".config", ".local"].contains(&name.as_str()),
            "{name}"
        );
    }
    up.signal(rustix::process::Signal::TERM);
    assert_eq!(up.end(), Some(0));
}

#[test]
fn a_daemon_reads_the_settings_again_when_hung_up_and_unlinks() {
    let home = Home::new();
    let mut up = home.start("up --listen 127.0.0.1:0 --json");
    up.line();
    let config = home.home().join(".config/lembas/config.toml");
    std::fs::write(&config, "[remote]\nmax_mod = \"auto\"\n").unwrap();
    up.signal(rustix::process::Signal::HUP);
    let until = instant() + Duration::from_secs(20);
    let broken = loop {
        let status = home.json("status --json");
        if status["config_problems"].is_array() {
            break status;
        }
        assert!(instant() < until, "{status}");
    };
    // The settings before it are in force, and the exit code says that something is wrong.
    assert_eq!(broken["limits"]["max_mode"], "edit");
    assert_eq!(broken["ok"], false);
    assert_eq!(home.run("status").code, Some(1));
    // Pause works all the same.
    assert_eq!(home.run("pause").code, Some(78));
    assert_eq!(home.json("status --json")["limits"]["paused"], true);

    std::fs::write(&config, "[remote]\nmax_mode = \"auto\"\n").unwrap();
    assert_eq!(home.run("unlink").code, Some(0));
    let status = home.json("status --json");
    assert_eq!(status["linked"]["state"], "never", "{status}");
    assert_eq!(status["limits"]["max_mode"], "manual");
    assert!(!home.home().join(".config/lembas/instance.json").exists());
}

#[test]
fn the_agent_for_an_editor_owns_the_store_or_is_a_pipe_to_the_daemon() {
    let home = Home::new();
    // Alone: it answers, and ends with the editor.
    let mut alone = home.start("acp");
    alone.send(&initialize());
    let answer = alone.line();
    assert_eq!(answer["result"]["protocolVersion"], 1, "{answer}");
    let epoch = answer["result"]["agentCapabilities"]["_meta"]["lembas"]["epoch"].clone();
    // A second editor is answered by the first one's process.
    let mut second = home.start("acp");
    second.send(&initialize());
    let same = second.line();
    assert_eq!(
        same["result"]["agentCapabilities"]["_meta"]["lembas"]["epoch"],
        epoch
    );
    drop(second.child.stdin.take());
    assert_eq!(second.end(), Some(0));
    drop(alone.child.stdin.take());
    assert_eq!(alone.end(), Some(0));

    // With a daemon: the same store, through it, and the daemon stays.
    let mut daemon = home.start("daemon --json");
    assert_eq!(daemon.line()["state"], "started");
    let mut piped = home.start("acp");
    piped.send(&initialize());
    let answer = piped.line();
    assert_eq!(
        answer["result"]["agentCapabilities"]["_meta"]["lembas"]["epoch"],
        epoch
    );
    piped.send(&json!({ "jsonrpc": "2.0", "id": 2, "method": "session/list", "params": {} }));
    assert_eq!(piped.line()["result"]["sessions"], json!([]));
    drop(piped.child.stdin.take());
    assert_eq!(piped.end(), Some(0));
    assert_eq!(home.run("status").code, Some(0));
    daemon.signal(rustix::process::Signal::TERM);
    assert_eq!(daemon.end(), Some(0));
}

#[test]
fn a_hub_is_cared_for_while_it_runs_and_while_it_does_not() {
    let home = Home::new();
    let list = home.json("hub model list --json");
    assert_eq!(list["models"][0]["practice"], true, "{list}");
    assert_eq!(home.run("hub link").code, Some(69));
    assert_eq!(home.run("hub user add ben").code, Some(69));

    let mut hub = home.start("hub --listen 127.0.0.1:0 --json");
    let said = hub.line();
    assert_eq!(said["state"], "started");
    assert!(
        said["token"].is_string(),
        "a first start brings a link: {said}"
    );
    let link = home.json("hub link --json");
    let url = link["url"].as_str().unwrap();
    assert!(url.starts_with(said["url"].as_str().unwrap()), "{url}");
    let ben = home.json("hub user add ben --json");
    assert_ne!(ben["token"], link["token"]);
    assert_eq!(home.run("hub user add ben").code, Some(1));
    let again = home.json("hub link --user ben --json");
    assert_ne!(again["token"], ben["token"]);
    assert_eq!(home.run("hub link --user nobody").code, Some(1));
    assert_eq!(
        home.json("hub user list --json")["users"],
        json!(["you", "ben"])
    );
    let none = home.run("hub model remove nothing");
    assert_eq!(none.code, Some(1));
    assert!(
        none.err.contains("try: lembas hub model list"),
        "{}",
        none.err
    );
    assert_eq!(home.run("hub").code, Some(69));
    hub.signal(rustix::process::Signal::TERM);
    let mut rest = String::new();
    hub.out.read_to_string(&mut rest).unwrap();
    assert_eq!(hub.end(), Some(0));
}

#[test]
fn a_watch_command_gives_a_hash_alone_and_asks_nobody() {
    let home = Home::new();
    let mut daemon = home.start("daemon --json");
    daemon.line();
    let ran = home.run("monitor --cwd projects -- echo hi");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert_eq!(
        ran.out,
        "sha256:762097821024b9bac69d876841ec885ca8e7148de25c1f285be84ac8e7abe589\n"
    );
    assert!(ran.err.contains("exit 0 · 3 bytes"), "{}", ran.err);
    // The command's own status is part of the hash and not ours.
    assert_eq!(home.run("monitor --cwd projects -- false").code, Some(0));

    let asks = home.run("monitor --cwd projects --json -- git push");
    assert_eq!(asks.code, Some(1), "{}", asks.out);
    let json: Value = serde_json::from_str(&asks.out).unwrap();
    assert_eq!(json["error"]["code"], -32051, "{json}");
    assert_eq!(json["error"]["reason"], "ask");
    assert_eq!(json["error"]["try"][0], "lembas allow --pending 1");
    // The number is the same after a restart, and can be allowed without a daemon.
    daemon.signal(rustix::process::Signal::TERM);
    assert_eq!(daemon.end(), Some(0));
    let pending = home.json("rules pending --json");
    assert_eq!(pending["pending"][0]["command"], "git push");
    assert_eq!(pending["pending"][0]["number"], 1);
    let mut daemon = home.start("daemon --json");
    daemon.line();
    let again = home.run("monitor --cwd projects --json -- git push");
    assert!(
        again.out.contains("lembas allow --pending 1\""),
        "{}",
        again.out
    );
    daemon.signal(rustix::process::Signal::TERM);
    assert_eq!(daemon.end(), Some(0));
    assert_eq!(home.run("allow --pending 1").code, Some(0));
    let rules = home.json("rules list --json");
    let id = rules["rules"][0]["id"].as_str().unwrap();
    assert_eq!(home.run(&format!("rules remove {id}")).code, Some(0));
    assert_eq!(home.json("rules list --json")["rules"], json!([]));
    assert_eq!(home.run("allow --pending 1").code, Some(1));
}

/// The whole way: a chat of the page, its question on this computer, the answer given here.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_given_here_counts_in_a_chat_of_the_page() {
    let home = Home::new();
    let mut up = home.start("up --listen 127.0.0.1:0 --json");
    let said = up.line();
    home.run("roots add projects");
    let url = said["url"].as_str().unwrap();
    // Another test of this process may have set it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let http = reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .unwrap();
    let token = said["token"].as_str().unwrap();
    let signed = http.get(format!("{url}/in/{token}")).send().await.unwrap();
    let cookie = signed.headers()["set-cookie"].to_str().unwrap();
    let cookie = cookie.split(';').next().unwrap().to_owned();
    let folder = home.home().canonicalize().unwrap().join("projects");
    let opened = http
        .post(format!("{url}/api/v2/chats"))
        .header("cookie", cookie)
        .header("x-lembas", "1")
        .header("origin", url)
        .header("content-type", "application/json")
        .body(
            json!({
                "device": said["device"]["id"], "cwd": folder, "model": "practice",
                "mode": "manual", "text": "hello", "key": "key-of-this-chat",
            })
            .to_string(),
        )
        .send()
        .await
        .unwrap();
    assert!(
        opened.status().is_success(),
        "{}",
        opened.text().await.unwrap()
    );

    // What would leave the box is refused here, the file is allowed.
    let until = instant() + Duration::from_secs(60);
    let written = folder.join("lembas-practice.md");
    let id = loop {
        assert!(instant() < until, "no question about the file came");
        let asks = home.json("asks --json");
        let Some(ask) = asks["asks"].get(0) else {
            continue;
        };
        let id = ask["ask"].as_str().unwrap().to_owned();
        if ask["command"] == json!(written) {
            break id;
        }
        let refused = home.run(&format!("answer {id} refuse --note no"));
        assert_eq!(refused.code, Some(0), "{}", refused.err);
    };
    assert!(!written.exists());
    let answered = home.run(&format!("answer {} allow", &id[..6]));
    assert_eq!(answered.code, Some(0), "{}", answered.err);
    while !written.exists() {
        assert!(instant() < until, "it was allowed and not done");
    }
    // Once is once: the same id has no question any more, and says so.
    let again = home.run(&format!("answer {id} refuse"));
    assert_eq!(again.code, Some(1), "{}", again.err);
    assert!(again.err.contains("try: lembas asks"), "{}", again.err);
    let log = home.run("log --json").out;
    let lines: Vec<Value> = log
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    assert!(
        lines
            .iter()
            .any(|l| l["verdict"] == "allowed once" && l["who"] == "you, on this computer"),
        "{log}"
    );
    let sessions = home.json("sessions --json");
    assert_eq!(sessions["sessions"][0]["cwd"], json!(folder));

    // A question may wait just now: its turn parks, and nothing holds the end up.
    let told = instant();
    up.signal(rustix::process::Signal::TERM);
    assert_eq!(up.end(), Some(0));
    assert!(
        told.elapsed() < Duration::from_secs(10),
        "{:?}",
        told.elapsed()
    );
}
