//! Stores that are none: a letter, half a file, a folder, one of a newer lembas. Each is told with
//! what to do, and is as it was afterwards.

use std::path::Path;

use rusqlite::Connection;

use super::hold;
use crate::cli::Home;

fn spoil(kind: &str, store: &Path) {
    match kind {
        "a letter" => std::fs::write(store, "Dear store, this is not a database.").unwrap(),
        "half of it" => {
            // Some content, so that half of it is not a whole store too.
            let whole = Connection::open(store).unwrap();
            whole
                .execute_batch("create table t (x); insert into t values (zeroblob(20000))")
                .unwrap();
            drop(whole);
            let bytes = std::fs::read(store).unwrap();
            std::fs::write(store, &bytes[..bytes.len() / 2]).unwrap();
        }
        "a folder" => std::fs::create_dir(store).unwrap(),
        _ => {
            let newer = Connection::open(store).unwrap();
            // Kept as lembas keeps its stores.
            newer.pragma_update(None, "journal_mode", "WAL").unwrap();
            newer.pragma_update(None, "user_version", 99).unwrap();
        }
    }
}

#[test]
fn every_store_that_is_none_is_told_and_left_as_it_was() {
    let mut said = Vec::new();
    for (folder, store, lines) in [
        (
            ".local/share/lembas",
            "device.db",
            ["daemon", "sessions", "acp"].as_slice(),
        ),
        (
            ".local/share/lembas/hub",
            "hub.db",
            &["hub --listen 127.0.0.1:0", "hub user list"],
        ),
    ] {
        for kind in ["a letter", "half of it", "a folder", "a newer one"] {
            let home = Home::new();
            // The folders are made as they are wanted.
            home.run("config path");
            let folder = home.home().join(folder);
            std::fs::create_dir_all(&folder).unwrap();
            let store = folder.join(store);
            spoil(kind, &store);
            let before = std::fs::read(&store).ok();
            for line in lines {
                let seen = home.see(line);
                said.push(format!("{kind}\n{seen}"));
            }
            let same = std::fs::read(&store).ok() == before;
            assert!(same, "{kind} was changed");
        }
    }
    hold("stores", &said.join("\n"));
}
