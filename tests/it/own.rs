//! A home folder that is shared holds lembas' own folders and the credential stores too: no tool of
//! the agent reads them, changes them or looks through them, in any mode and whoever asks.

use std::path::PathBuf;
use std::sync::Arc;

use lembas::config::{Approvals, Mode, Sudo};
use lembas::exec::Computer;
use lembas::ids::{CallId, SessionId};
use lembas::permission::{Attended, Context, Engine, Facts, Origin, Strength, Verdict};
use lembas::plan::Plan;
use lembas::rt::CancellationToken;
use lembas::store::item::Scope;
use lembas::tools::{OutputSink, Seen, ToolContext, Tools};
use serde_json::{Value, json};

/// This computer, with a home of its own.
#[derive(Debug)]
struct At(Computer, PathBuf);

impl Facts for At {
    fn strength(&self) -> Strength {
        self.0.strength()
    }
    fn path(&self) -> Vec<PathBuf> {
        self.0.path()
    }
    fn home(&self) -> PathBuf {
        self.1.clone()
    }
    fn environment(&self) -> Vec<(String, String)> {
        let mut all = self.0.environment();
        all.retain(|(name, _)| name != "HOME");
        all.push(("HOME".to_owned(), self.1.display().to_string()));
        all
    }
    fn monitor_environment(&self) -> Vec<(String, String)> {
        self.environment()
    }
    fn own(&self) -> Vec<PathBuf> {
        self.0.own()
    }
}

struct Nobody;

impl OutputSink for Nobody {
    fn text(&self, _chunk: &str) {}
}

/// What stands in every file that must not be read.
const TOKEN: &str = "lmb_d0ntreadme";

struct Home {
    _folder: tempfile::TempDir,
    home: PathBuf,
    engine: Engine,
    context: ToolContext,
}

impl Home {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap().join("ana");
        let own = [
            ".config/lembas",
            ".local/share/lembas",
            ".local/state/lembas",
        ];
        for (path, text) in [
            (".config/lembas/instance.json", TOKEN),
            (".local/share/lembas/device.db", TOKEN),
            (".local/state/lembas/spill/1", TOKEN),
            (".ssh/id_one", TOKEN),
            ("projects/a.txt", "an ordinary line"),
        ] {
            let path = home.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        std::os::unix::fs::symlink(home.join(".config/lembas"), home.join("projects/link"))
            .unwrap();
        let computer = Computer::new(own.map(|path| home.join(path)).to_vec());
        let engine = Engine::with(Arc::new(At(computer, home.clone())));
        let context = ToolContext {
            store: None,
            session: SessionId::random(),
            spill: folder.path().join("spill"),
            cwd: home.clone(),
            seen: Seen::default(),
            plan: Plan::default(),
        };
        Self {
            _folder: folder,
            home,
            engine,
            context,
        }
    }

    fn judged_in(&self, mode: Mode, origin: Origin) -> Context {
        Context {
            session: SessionId::new("s"),
            origin,
            mode,
            roots: vec![self.home.clone()],
            attended: Attended::Person,
            approvals: Approvals::Full,
            sudo: Sudo::Refuse,
            // Somebody meant well.
            released: vec![self.home.join(".config/lembas")],
        }
    }

    /// What a model reads of a call; a question is answered with yes.
    async fn said(&self, tool: &str, args: &Value, mode: Mode, origin: Origin) -> String {
        let tool = Tools::standard().get(tool).unwrap();
        let prepared = match tool.prepare(args, &self.context) {
            Ok(prepared) => prepared,
            Err(failure) => return failure.0,
        };
        let context = self.judged_in(mode, origin);
        let grant = match self.engine.judge(&prepared.request, &context, &[]) {
            Verdict::Allow(grant) => grant,
            Verdict::Ask(pending) => pending.allowed(Scope::Once).0,
            Verdict::Refuse(refusal) => return refusal.text,
        };
        let (call, stop) = (CallId::new("c1"), CancellationToken::new());
        let ran = tool.run(&call, prepared, grant, &self.context, &Nobody, stop);
        ran.await.text
    }
}

fn remote() -> Origin {
    Origin::Remote {
        instance: "i".to_owned(),
        grant: "g".to_owned(),
    }
}

#[tokio::test]
async fn no_tool_reads_a_token_or_the_store_of_a_shared_home() {
    let home = Home::new();
    let dir = home.home.display().to_string();
    let named = |rest: &str| format!("{dir}/{rest}");
    let files = [
        ".config/lembas/instance.json",
        ".local/share/lembas/device.db",
        ".local/state/lembas/spill/1",
        "projects/link/instance.json",
    ];
    for mode in [Mode::Plan, Mode::Manual, Mode::Edit, Mode::Auto] {
        for origin in [Origin::Local, remote()] {
            for file in files {
                let args = json!({ "path": named(file) });
                let said = home.said("read", &args, mode, origin.clone()).await;
                assert!(said.contains("is protected"), "{mode:?} {file}: {said}");
                let args = json!({ "path": named(file), "pattern": "lmb" });
                let said = home.said("grep", &args, mode, origin.clone()).await;
                assert!(!said.contains(TOKEN), "{mode:?} {file}: {said}");
                let args = json!({ "path": named(file), "content": "mine" });
                let said = home.said("write", &args, mode, origin.clone()).await;
                assert!(!said.contains(TOKEN), "{mode:?} {file}: {said}");
                assert_eq!(std::fs::read_to_string(named(file)).unwrap(), TOKEN);
            }
            // On the way through the home nothing of them is met.
            let args = json!({ "path": dir, "pattern": "lmb_|ordinary" });
            let said = home.said("grep", &args, mode, origin.clone()).await;
            assert!(said.contains("ordinary"), "{mode:?}: {said}");
            assert!(!said.contains(TOKEN), "{mode:?}: {said}");
            let args = json!({ "path": dir, "pattern": "**/*" });
            let said = home.said("glob", &args, mode, origin.clone()).await;
            assert!(said.contains("a.txt"), "{mode:?}: {said}");
            for hidden in ["instance.json", "device.db", "id_one"] {
                assert!(!said.contains(hidden), "{mode:?}: {said}");
            }
            let args = json!({ "path": dir, "depth": 9 });
            let said = home.said("list", &args, mode, origin.clone()).await;
            assert!(!said.contains("device.db"), "{mode:?}: {said}");
        }
    }
}

#[tokio::test]
async fn no_boxed_command_reads_or_changes_them() {
    let home = Home::new();
    if home.engine.facts().strength() != Strength::Full {
        assert!(!std::path::Path::new("/usr/bin/bwrap").exists());
        return;
    }
    let commands = [
        "grep -rs lmb_ ~ .",
        "cat ~/.config/lembas/* .local/share/lembas/device.db",
        "cat projects/link/*",
        "d=.local; cat $d/*/lem*/*",
        "find . -name '*.db' -o -name 'instance*' | xargs cat",
        "cp -r .config .c2; cat .c2/*/*",
        "mv .local .l2 2>/dev/null; cat .l2/share/lembas/device.db",
        "echo mine > .config/lembas/instance.json; d=.local/share; rm -rf $d/lembas",
        "ln projects/link/instance.json projects/hard; cat projects/hard",
    ];
    for mode in [Mode::Plan, Mode::Manual, Mode::Edit] {
        for origin in [Origin::Local, remote()] {
            for command in commands {
                let args = json!({ "command": command });
                let said = home.said("bash", &args, mode, origin.clone()).await;
                assert!(!said.contains(TOKEN), "{mode:?} {command}: {said}");
            }
        }
    }
    for file in [
        ".config/lembas/instance.json",
        ".local/share/lembas/device.db",
    ] {
        let text = std::fs::read_to_string(home.home.join(file)).unwrap();
        assert_eq!(text, TOKEN, "{file}");
    }
}
