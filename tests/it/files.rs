//! The file tools over real files: what they refuse, and that what they change is all they change.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::PathBuf;

use lembas::ids::{CallId, SessionId};
use lembas::permission::testing::grant_for;
use lembas::plan::Plan;
use lembas::rt::CancellationToken;
use lembas::store::item::CallStatus;
use lembas::tools::{Outcome, OutputSink, Seen, ToolContext, Tools};
use serde_json::{Value, json};

struct Project {
    folder: tempfile::TempDir,
    context: ToolContext,
}

struct Nobody;

impl OutputSink for Nobody {
    fn text(&self, _chunk: &str) {}
}

impl Project {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let cwd = folder.path().canonicalize().unwrap().join("p");
        std::fs::create_dir(&cwd).unwrap();
        let context = ToolContext {
            store: None,
            session: SessionId::random(),
            spill: cwd.with_file_name("spill"),
            cwd,
            seen: Seen::default(),
            plan: Plan::default(),
        };
        Self { folder, context }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.context.cwd.join(name)
    }

    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    async fn call(&self, tool: &str, args: Value) -> Outcome {
        self.call_after(tool, args, || {}).await
    }

    /// The call, with something happening between judging and running.
    async fn call_after(&self, tool: &str, args: Value, between: impl FnOnce()) -> Outcome {
        let tool = Tools::standard().get(tool).unwrap();
        let prepared = match tool.prepare(&args, &self.context) {
            Ok(prepared) => prepared,
            Err(failure) => return failure.into(),
        };
        between();
        let grant = grant_for(prepared.request.clone());
        let call = CallId::new("c1");
        tool.run(
            &call,
            prepared,
            grant,
            &self.context,
            &Nobody,
            CancellationToken::new(),
        )
        .await
    }

    async fn said(&self, tool: &str, args: Value) -> String {
        self.call(tool, args).await.text
    }
}

#[tokio::test]
async fn read_shows_lines_with_numbers_and_the_hash() {
    let project = Project::new();
    project.file("a.txt", "one\ntwo\nthree\n");
    insta::assert_snapshot!(project.said("read", json!({ "path": "a.txt", "offset": 2, "limit": 1 })).await, @"
    [a.txt, lines 2 to 2 of 3, b6285c57e879]
    2	two
    ");
    project.file("empty", "");
    project.file("bin", b"\0\x01");
    insta::assert_snapshot!(
        [
            project.said("read", json!({ "path": "empty" })).await,
            project.said("read", json!({ "path": "bin" })).await.replace(&project.context.cwd.display().to_string(), "P"),
            project.said("read", json!({ "path": "none" })).await.replace(&project.context.cwd.display().to_string(), "P"),
            project.said("read", json!({})).await,
            project.said("read", json!({ "path": "a.txt", "offset": 0 })).await,
            project.said("read", json!({ "path": "a.txt", "offset": 9 })).await,
        ]
        .join("\n"),
        @"
    [empty is empty, e3b0c44298fc]
    P/bin is not text (2 bytes)
    No such file or directory: P/none
    path is missing
    offset must be a whole number, 1 or more
    [a.txt has 3 lines, b6285c57e879; there is no line 9]
    "
    );
}

#[tokio::test]
async fn an_edit_changes_what_it_names_and_keeps_everything_else() {
    let project = Project::new();
    let path = project.file("a.txt", "one\r\ntwo\r\nthree");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o751)).unwrap();
    project.call("read", json!({ "path": "a.txt" })).await;
    let done = project
        .call(
            "edit",
            json!({ "path": "a.txt", "old": "two\n", "new": "2\nzwei\n" }),
        )
        .await;
    assert_eq!(done.status, CallStatus::Ok, "{}", done.text);
    assert_eq!(std::fs::read(&path).unwrap(), b"one\r\n2\r\nzwei\r\nthree");
    assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o7777, 0o751);
    assert!(done.diff.unwrap().contains("+zwei"));
    // What it wrote counts as read: the next edit needs no further look.
    let again = project
        .call(
            "edit",
            json!({ "path": "a.txt", "old": "zwei", "new": "two" }),
        )
        .await;
    assert_eq!(again.status, CallStatus::Ok, "{}", again.text);
    let names: Vec<_> = std::fs::read_dir(&project.context.cwd).unwrap().collect();
    assert_eq!(names.len(), 1, "nothing is left beside the file");
}

#[tokio::test]
async fn a_file_must_have_been_read_and_be_as_it_was() {
    let project = Project::new();
    let path = project.file("a.txt", "one\n");
    let args = json!({ "path": "a.txt", "old": "one", "new": "1" });
    let unread = project.call("edit", args.clone()).await;
    assert_eq!(
        unread.text,
        "a.txt exists and was not read in this session: read it first"
    );
    project.call("read", json!({ "path": "a.txt" })).await;
    std::fs::write(&path, "one\nmore\n").unwrap();
    let changed = project.call("edit", args.clone()).await;
    assert_eq!(
        changed.text,
        "a.txt changed since it was read: read it again"
    );
    project.call("read", json!({ "path": "a.txt" })).await;
    let raced = project
        .call_after("edit", args, || std::fs::write(&path, "two\n").unwrap())
        .await;
    assert_eq!(raced.status, CallStatus::Failed);
    assert_eq!(
        std::fs::read_to_string(&path).unwrap(),
        "two\n",
        "the other's words stay"
    );
}

#[tokio::test]
async fn a_link_swapped_in_after_the_judgement_is_not_followed() {
    let project = Project::new();
    let secret = project.folder.path().join("secret");
    std::fs::write(&secret, "s3cret\n").unwrap();
    let path = project.file("sub/a.txt", "plain\n");
    let swap = || {
        std::fs::remove_file(&path).unwrap();
        symlink(&secret, &path).unwrap();
    };
    let read = project
        .call_after("read", json!({ "path": "sub/a.txt" }), swap)
        .await;
    assert!(!read.text.contains("s3cret"), "{}", read.text);
    // A folder on the way becoming a link is no better.
    let other = project.folder.path().join("other");
    std::fs::create_dir(&other).unwrap();
    let swap = || {
        std::fs::rename(project.path("sub"), project.path("old")).unwrap();
        symlink(&other, project.path("sub")).unwrap();
    };
    let made = project
        .call_after(
            "write",
            json!({ "path": "sub/new.txt", "content": "x" }),
            swap,
        )
        .await;
    assert_eq!(made.status, CallStatus::Failed, "{}", made.text);
    assert!(!other.join("new.txt").exists());
}

#[tokio::test]
async fn pipes_devices_and_hard_links_are_refused() {
    let project = Project::new();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        project.path("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    let pipe = project.said("read", json!({ "path": "pipe" })).await;
    assert!(pipe.contains("not a regular file"), "{pipe}");
    let device = project.said("read", json!({ "path": "/dev/zero" })).await;
    assert!(device.contains("not a regular file"), "{device}");
    let path = project.file("a.txt", "one\n");
    std::fs::hard_link(&path, project.folder.path().join("twin")).unwrap();
    project.call("read", json!({ "path": "a.txt" })).await;
    let linked = project
        .call("edit", json!({ "path": "a.txt", "old": "one", "new": "1" }))
        .await;
    assert!(linked.text.contains("2 names"), "{}", linked.text);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\n");
}

#[tokio::test]
async fn writing_makes_folders_and_refuses_what_is_unchanged() {
    let project = Project::new();
    let made = project
        .call("write", json!({ "path": "a/b/c.txt", "content": "x\n" }))
        .await;
    assert_eq!(made.status, CallStatus::Ok, "{}", made.text);
    insta::assert_snapshot!(made.text, @"
    Made a/b/c.txt, 2 bytes.
    --- a/b/c.txt
    +++ a/b/c.txt
    @@ -0,0 +1 @@
    +x
    ");
    let same = project
        .said("write", json!({ "path": "a/b/c.txt", "content": "x\n" }))
        .await;
    assert!(same.contains("nothing to change"), "{same}");
}

#[tokio::test]
async fn looking_around_leaves_out_what_is_ignored_and_what_is_secret() {
    let project = Project::new();
    project.file(".gitignore", "build/\n");
    project.file("build/x.rs", "fn needle() {}\n");
    project.file("src/main.rs", "fn main() {}\n// needle\n");
    project.file("src/lib.rs", "pub fn needle() {\n    1\n}\n");
    project.file(".env", "needle=1\n");
    project.file(".git/config", "needle\n");
    let cwd = project.context.cwd.display().to_string();
    let said = [
        project.said("list", json!({})).await,
        project.said("glob", json!({ "pattern": "*.rs" })).await,
        project
            .said("grep", json!({ "pattern": "needle", "context": 1 }))
            .await,
        project
            .said(
                "grep",
                json!({ "pattern": "NEEDLE", "include": "lib.rs", "ignore_case": true }),
            )
            .await,
        project.said("grep", json!({ "pattern": "(" })).await,
        project.said("list", json!({ "path": "none" })).await,
    ]
    .join("\n===\n")
    .replace(&cwd, "P");
    insta::assert_snapshot!(said, @"
    src/
      lib.rs  26 bytes
      main.rs  23 bytes
    .env  9 bytes
    .gitignore  7 bytes
    ===
    src/lib.rs
    src/main.rs
    ===
    src/lib.rs:1:pub fn needle() {
    src/lib.rs-2-    1
    src/main.rs-1-fn main() {}
    src/main.rs:2:// needle
    [1 file not looked into: too long, or read only when asked for by name]
    ===
    src/lib.rs:1:pub fn needle() {
    ===
    the expression `(` cannot be read: unclosed group
    ===
    No such file or directory: P/none
    ");
}

#[tokio::test]
async fn the_plan_tools_answer_the_plan() {
    let mut project = Project::new();
    let made = project
        .call(
            "plan_write",
            json!({ "title": "T", "phases": [{ "title": "A", "tasks": [{ "text": "one" }] }] }),
        )
        .await;
    project.context.plan = Plan::from_value(&made.plan.unwrap());
    let done = project
        .call(
            "plan_update",
            json!({ "tasks": [{ "id": "t1", "status": "done" }] }),
        )
        .await;
    assert!(done.text.contains("[x] t1 one"), "{}", done.text);
    let todo = project
        .call(
            "todo",
            json!({ "todos": [{ "content": "x", "status": "in_progress" }] }),
        )
        .await;
    assert!(todo.text.contains("[>] t2 x"), "{}", todo.text);
}
