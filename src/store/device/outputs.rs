//! Outputs of calls: what of them is in the journal, and the room that their files may take.
//!
//! A long output lies whole in a file of its session's spill folder, `<call>.out`. Not here: writing
//! it (`exec`), what of it is read (`session::output`).

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rusqlite::params;

use super::items::row;
use crate::ids::{CallId, SessionId};
use crate::rt;
use crate::store::db::StoreError;
use crate::store::device::Store;
use crate::store::item::Item;
use crate::store::journal::SESSION_CAP;

/// How much of the cap the newest output finds free: older ones go for it.
const FREE: u64 = SESSION_CAP / 2;

impl Store {
    /// The file that the bytes of a call's output are in, where they are kept.
    pub fn output_file(&self, session: &SessionId, call: &CallId) -> PathBuf {
        self.spill(session).join(format!("{call}.out"))
    }

    /// What the journal has of a call besides asks: the call, its output in pieces, its result.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn call_items(
        &self,
        session: &SessionId,
        call: &CallId,
    ) -> Result<Vec<Item>, StoreError> {
        let (session, call) = (session.clone(), call.clone());
        self.db()
            .call(move |c| {
                c.prepare(
                    "select seq, turn, time, body, text from items
                     where session = ?1 and kind in ('call', 'output', 'result')
                       and json_extract(body, '$.call') = ?2 order by seq",
                )?
                .query_map(params![session.as_str(), call.as_str()], row)?
                .collect()
            })
            .await
    }

    /// Bytes that the next output of a session may take on the disk: its items and the files of its
    /// outputs share one cap. Where they have more than half of it, the oldest files go first.
    pub async fn room_for_output(&self, session: &SessionId) -> u64 {
        let items = match self.session(session).await {
            Ok(row) => row.map_or(0, |row| row.bytes),
            // Nothing is promised that cannot be known.
            Err(_) => return 0,
        };
        let folder = self.spill(session);
        let files = rt::blocking(move || {
            let most = SESSION_CAP.saturating_sub(FREE).saturating_sub(items);
            make_room(&folder, most)
        });
        let used = items.saturating_add(files.await.unwrap_or(SESSION_CAP));
        SESSION_CAP.saturating_sub(used)
    }
}

/// Deletes the oldest files of a folder until they have at most `most` bytes. Answers how many they
/// then have.
fn make_room(folder: &Path, most: u64) -> u64 {
    let mut files = files(folder);
    files.sort_by_key(|file| file.written);
    let mut used = files.iter().map(|file| file.bytes).sum::<u64>();
    for file in files {
        if used <= most {
            break;
        }
        match std::fs::remove_file(&file.path) {
            Ok(()) => used -= file.bytes,
            Err(error) => tracing::warn!(%error, "an old output could not be deleted"),
        }
    }
    used
}

struct File {
    path: PathBuf,
    bytes: u64,
    written: SystemTime,
}

/// The files that lie in a folder itself; the temporary folder beside them is the commands' own.
fn files(folder: &Path) -> Vec<File> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let about = entry.metadata().ok().filter(std::fs::Metadata::is_file)?;
            Some(File {
                path: entry.path(),
                bytes: about.len(),
                written: about.modified().unwrap_or(SystemTime::UNIX_EPOCH),
            })
        })
        .collect()
}

/// Bytes of the outputs of all sessions.
pub(super) async fn spilled(folder: PathBuf) -> u64 {
    let all = rt::blocking(move || {
        let sessions = std::fs::read_dir(folder).into_iter().flatten().flatten();
        sessions
            .flat_map(|session| files(&session.path()))
            .map(|file| file.bytes)
            .sum::<u64>()
    });
    all.await.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_outputs_go_for_the_newest() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for (age, name) in ["new.out", "mid.out", "old.out"].iter().enumerate() {
            std::fs::write(path(name), [0; 100]).unwrap();
            let written =
                SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000 - age as u64);
            let file = std::fs::File::options()
                .write(true)
                .open(path(name))
                .unwrap();
            file.set_modified(written).unwrap();
        }
        std::fs::create_dir(path("tmp")).unwrap();
        assert_eq!(make_room(folder.path(), 300), 300);
        assert_eq!(make_room(folder.path(), 250), 200);
        assert!(!path("old.out").exists() && path("mid.out").exists());
        assert_eq!(make_room(folder.path(), 0), 0);
        assert_eq!(make_room(&path("nowhere"), 0), 0);
    }
}
