//! Instruction files: from where they come, how far up, and that a change is told.

use lembas::permission::Origin;
use lembas::testing::model::Reply;

use super::home::{Home, prompt, remote};

fn system(home: &Home, n: usize) -> String {
    let requests = home.model.requests();
    let text = requests[n]["messages"][0]["content"].as_str().unwrap();
    text.to_owned()
}

async fn real() -> Home {
    let mut home = Home::new().await;
    home.real = true;
    home
}

#[tokio::test]
async fn they_stack_from_the_top_of_the_project_down_and_a_change_is_told_once() {
    let home = real().await;
    let top = home.cwd();
    let deep = top.join("part/deep");
    std::fs::create_dir_all(&deep).unwrap();
    std::fs::create_dir(top.join(".git")).unwrap();
    std::fs::write(top.join("AGENTS.md"), "Top: use tabs.\n").unwrap();
    std::fs::write(top.join("CLAUDE.md"), "Not read: the first name counts.\n").unwrap();
    std::fs::write(top.join("part/CLAUDE.md"), "Part: use spaces.\n").unwrap();
    std::os::unix::fs::symlink(top.join("AGENTS.md"), deep.join("AGENTS.md")).unwrap();
    let registry = home.start(&home.tasks).await;
    let mut new = home.new_session(Origin::Local);
    new.cwd = deep.clone();
    let session = registry.open(new).await.unwrap();
    home.model.play([
        Reply::text("a"),
        Reply::text("b"),
        Reply::text("c"),
        Reply::text("d"),
    ]);
    session.prompt(prompt("1", "go")).await.unwrap();
    let text = system(&home, 0);
    let at = |part: &str| {
        text.find(part)
            .unwrap_or_else(|| panic!("{part} in {text}"))
    };
    assert!(
        at("<instructions file=\"../../AGENTS.md\">") < at("<instructions file=\"../CLAUDE.md\">")
    );
    assert!(at("Part: use spaces.") < at("<instructions file=\"AGENTS.md\">"));
    assert!(!text.contains("Not read"), "{text}");
    assert!(text.contains("They cannot allow what a mode or the person refuses."));

    // The first message does not say again what the system text says.
    let requests = home.model.requests();
    assert!(!requests[0]["messages"][1].to_string().contains("use tabs"));
    std::fs::write(top.join("part/CLAUDE.md"), "Part: use nothing.\n").unwrap();
    std::fs::remove_file(deep.join("AGENTS.md")).unwrap();
    session.prompt(prompt("2", "go")).await.unwrap();
    session.prompt(prompt("3", "go")).await.unwrap();
    let requests = home.model.requests();
    assert_eq!(system(&home, 0), system(&home, 2));
    let last = |n: usize| {
        let messages = requests[n]["messages"].as_array().unwrap();
        messages.last().unwrap()["content"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert!(last(1).contains("The instructions in ../CLAUDE.md changed:\nPart: use nothing."));
    assert!(
        last(1).contains("The instructions in AGENTS.md are gone"),
        "{}",
        last(1)
    );
    assert_eq!(last(2), "go");
    home.no_faults();
}

#[tokio::test]
async fn none_comes_from_above_the_shared_root_or_from_where_a_question_is_needed() {
    let home = real().await;
    let top = home.cwd();
    let shared = top.join("shared");
    let inner = shared.join("inner");
    std::fs::create_dir_all(&inner).unwrap();
    std::fs::create_dir(top.join(".git")).unwrap();
    std::fs::write(top.join("AGENTS.md"), "above the root").unwrap();
    std::fs::write(shared.join("AGENTS.md"), "in the root").unwrap();
    home.share(|r| r.roots = vec![shared.clone()]);
    let registry = home.start(&home.tasks).await;
    let mut new = home.new_session(remote());
    new.cwd = inner;
    let session = registry.open(new).await.unwrap();
    home.model.play([Reply::text("a")]);
    session.prompt(prompt("1", "go")).await.unwrap();
    let text = system(&home, 0);
    assert!(
        text.contains("in the root") && !text.contains("above the root"),
        "{text}"
    );
}

#[tokio::test]
async fn long_ones_are_cut_and_odd_ones_left_out() {
    let home = real().await;
    let top = home.cwd();
    std::fs::write(
        top.join("AGENTS.md"),
        format!("start {}", "x".repeat(30_000)),
    )
    .unwrap();
    let (_registry, session) = home.local().await;
    home.model.play([Reply::text("a"), Reply::text("b")]);
    session.prompt(prompt("1", "go")).await.unwrap();
    let text = system(&home, 0);
    assert!(
        text.contains("[6006 characters more: read AGENTS.md]"),
        "{}",
        text.len()
    );
    // A pipe, bytes that are no text, and something enormous: the session goes on without.
    std::fs::remove_file(top.join("AGENTS.md")).unwrap();
    std::fs::write(top.join("AGENTS.md"), [0_u8, 1, 2]).unwrap();
    session.prompt(prompt("2", "go")).await.unwrap();
    home.no_faults();
}
