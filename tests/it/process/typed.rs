//! A person at a terminal: `lembas link` waits without showing what is typed and leaves the terminal
//! as it was, however it ends; lists fit the terminal.

use lembas::testing::model::Reply;
use lembas::text::table::columns;
use rustix::process::{Pid, Signal, kill_process};

use super::home::Home;
use super::world::{World, bash};
use crate::pty::Terminal;

impl Home {
    /// A command for a terminal.
    fn at_a_terminal(&self, words: &[&str]) -> std::process::Command {
        let mut command = crate::tied::lembas_at_a_terminal();
        command
            .env_clear()
            .env("HOME", self.path(""))
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("TERM", "xterm")
            .current_dir(self.path(""))
            .args(words);
        command
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_code_is_waited_for_in_silence_and_the_terminal_is_as_before() {
    let home = Home::new();
    let mut hub = home.start("hub --listen 127.0.0.1:0 --json");
    let url = hub.line().await["url"].as_str().unwrap().to_owned();
    for (end, code) in [("Ctrl-C", 130), ("TERM", 143), ("HUP", 143)] {
        let mut terminal = Terminal::new(80);
        assert!(terminal.echoes());
        let mut link = terminal.start(home.at_a_terminal(&["link", &url]));
        terminal.until("the wait", |text| text.contains("Waiting,"));
        assert!(!terminal.echoes(), "{end}");
        terminal.press("y\nlet me see\n");
        // The line goes on, and nothing of that is in it.
        let lines = |text: &str| text.matches("Waiting,").count();
        let before = lines(&terminal.until("a line", |_| true));
        let shown = terminal.until("another line", |text| lines(text) > before + 1);
        assert!(!shown.contains("let me see"), "{shown}");
        let pid = Pid::from_child(&link);
        match end {
            "Ctrl-C" => terminal.press("\u{3}"),
            "TERM" => kill_process(pid, Signal::TERM).unwrap(),
            _ => kill_process(pid, Signal::HUP).unwrap(),
        }
        assert_eq!(link.wait().unwrap().code(), Some(code), "{end}");
        assert!(terminal.echoes(), "{end}");
        let shown = terminal.until("its end", |_| true);
        assert!(!shown.contains("^C"), "{shown}");
        assert!(!home.settings().join("instance.json").exists());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_fit_the_terminal_and_are_whole_in_a_pipe() {
    let world = World::new().await;
    let mut events = world.page.events(None).await;
    let script = [
        Reply::calls(&[bash(
            "echo this is one long command >> ran.txt; echo 日本語のとても長い一行 >> ran.txt",
        )]),
        Reply::text("It ran."),
    ];
    let chat = world.chat("edit", script).await;
    world.said(&mut events, &chat, "It ran.").await;
    let script = [Reply::calls(&[bash(
        "touch a file that somebody must say yes to",
    )])];
    let chat = world.chat("manual", script).await;
    world.asked(&mut events, &chat, 1).await;
    let home = &world.home;
    for words in [
        &["status"][..],
        &["sessions"],
        &["log"],
        &["rules", "list"],
        &["asks"],
        &["hub", "model", "list"],
    ] {
        let piped = home.run_words(words).await.out;
        assert!(!piped.contains('…'), "{piped}");
        for width in [40, 80, 200] {
            let seen = Terminal::new(width).seen(home.at_a_terminal(words));
            for line in seen.lines() {
                let fits = columns(line) <= usize::from(width);
                // What is pasted, and a single long word, stays whole.
                let one = line.trim().split(' ').count() == 1 || line.contains("lembas ");
                // So does the command that is asked about, below the line that says where.
                let command = words == ["asks"] && line.starts_with("    ");
                assert!(fits || one || command, "{width} {words:?}: {line}");
            }
        }
    }
}
