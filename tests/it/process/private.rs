//! Nobody else reads anything that lembas keeps: every folder is 0700 and every file 0600, whatever
//! a chat, a command, a long output and a watch command left.

use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::Path;

use lembas::testing::model::Reply;

use super::world::{World, bash};

/// What others could do with, by its path.
fn open(at: &Path, into: &mut Vec<String>, count: &mut usize) {
    let meta = std::fs::symlink_metadata(at).unwrap();
    let mode = meta.permissions().mode() & 0o777;
    *count += 1;
    let private = match meta.is_dir() {
        true => mode == 0o700,
        false => {
            mode == 0o600
                || meta.file_type().is_symlink()
                || meta.file_type().is_socket() && mode & 0o077 == 0
        }
    };
    if !private {
        into.push(format!("{mode:o} {}", at.display()));
    }
    // What a command itself makes in its temporary folder is its own, in a folder that is private.
    if meta.is_dir() && at.file_name().is_none_or(|name| name != "tmp") {
        for entry in std::fs::read_dir(at).unwrap() {
            open(&entry.unwrap().path(), into, count);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_that_is_kept_is_private_and_is_made_so_at_a_start() {
    let mut world = World::new().await;
    let mut events = world.page.events(None).await;
    let script = [
        Reply::calls(&[bash("seq 300000; echo ran >> ran.txt")]),
        Reply::text("It ran."),
    ];
    let chat = world.chat("edit", script).await;
    world.said(&mut events, &chat, "It ran.").await;
    world.home.run_words(&["monitor", "--", "seq 100000"]).await;
    let own = [
        ".config/lembas",
        ".local/share/lembas",
        ".local/state/lembas",
    ];
    let own = own.map(|path| world.home.path(path));
    let look = || {
        let (mut wrong, mut count) = (Vec::new(), 0);
        for folder in &own {
            open(folder, &mut wrong, &mut count);
        }
        assert!(count > 10, "{count}");
        wrong
    };
    assert_eq!(look(), Vec::<String>::new());

    // What somebody opened up is closed again by the next start.
    world.daemon.kill().await;
    let spill = own[1].join("spill");
    assert!(spill.is_dir());
    for (path, mode) in [
        (&own[1].join("device.db"), 0o644),
        (&own[2].join("chain"), 0o666),
        (&spill, 0o755),
    ] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    assert_eq!(look().len(), 3);
    world.start_again().await;
    assert_eq!(look(), Vec::<String>::new());
}
