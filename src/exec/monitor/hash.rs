//! The hash of a watch command: SHA-256 over the status in decimal, a newline, and the bytes.
//!
//! The status is known last and hashed first. Short output waits for it in memory. Long output is
//! hashed as if the status were 0 while it comes, and kept in an unnamed file from which it is
//! hashed again when the status is another one. The file is bounded; its bytes are gone when it is
//! closed, also when this program dies.

use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use ring::digest::{Context as Hash, SHA256};

use super::numbers;

/// How much output waits for the status in memory.
const HELD: usize = 512 * 1024;

/// How much is read from the file at once.
const BUFFER: usize = 256 * 1024;

/// `sha256:` and the hex of the hash of a status and all bytes.
pub fn hash_of(exit: i32, bytes: &[u8]) -> String {
    let mut hash = begin(exit);
    hash.update(bytes);
    said(hash)
}

/// What was read so far.
pub(super) struct Taking {
    held: Vec<u8>,
    /// Of output that was too long for memory: the hash if the status will be 0.
    guess: Option<Hash>,
    kept: Kept,
    bytes: u64,
    head: Vec<u8>,
    tail: Vec<u8>,
}

/// Output that is too long for memory, in a file.
enum Kept {
    /// Not needed yet; the folder it would lie in, and how long it may become.
    Unused(PathBuf, u64),
    File {
        file: File,
        /// How many bytes it may still take.
        left: u64,
    },
    /// It was too long, or could not be written: nothing is kept any more.
    Over,
}

/// What there is when everything was read.
pub(super) struct Taken {
    /// None: it was too long for its status.
    pub(super) hash: Option<String>,
    pub(super) bytes: u64,
    /// The first and the last bytes, enough for an excerpt.
    pub(super) head: Vec<u8>,
    pub(super) tail: Vec<u8>,
}

impl Taking {
    /// `room`: the folder of the file; `most`: how many bytes it may take.
    pub(super) fn new(room: PathBuf, most: u64) -> Self {
        Self {
            held: Vec::new(),
            guess: None,
            kept: Kept::Unused(room, most),
            bytes: 0,
            head: Vec::new(),
            tail: Vec::new(),
        }
    }

    /// Whether taking so many bytes writes to the disk.
    pub(super) fn blocks(&self, count: usize) -> bool {
        !matches!(self.kept, Kept::Over) && (self.guess.is_some() || self.held.len() + count > HELD)
    }

    pub(super) fn take(&mut self, piece: &[u8]) {
        self.bytes += piece.len() as u64;
        self.ends(piece);
        match &mut self.guess {
            Some(hash) => hash.update(piece),
            None if self.held.len() + piece.len() <= HELD => {
                self.held.extend_from_slice(piece);
                return;
            }
            None => {
                let mut hash = begin(0);
                hash.update(&self.held);
                hash.update(piece);
                self.guess = Some(hash);
                let held = std::mem::take(&mut self.held);
                self.kept.take(&held);
            }
        }
        self.kept.take(piece);
    }

    /// Remembers beginning and end.
    fn ends(&mut self, piece: &[u8]) {
        // A character is at most four bytes.
        let most = numbers().excerpt_max_chars * 4;
        let free = most.saturating_sub(self.head.len());
        self.head
            .extend_from_slice(piece.get(..free.min(piece.len())).unwrap_or_default());
        if piece.len() >= most {
            self.tail.clear();
        }
        let from = piece.len().saturating_sub(most);
        self.tail
            .extend_from_slice(piece.get(from..).unwrap_or_default());
        let over = self.tail.len().saturating_sub(most);
        self.tail.drain(..over);
    }

    /// The hash with this status. Reads the file where there is one and the status is not 0.
    pub(super) fn finish(self, exit: i32) -> Taken {
        let hash = match self.guess {
            None => Some(hash_of(exit, &self.held)),
            Some(hash) if exit == 0 => Some(said(hash)),
            Some(_) => self.kept.hash(exit),
        };
        Taken {
            hash,
            bytes: self.bytes,
            head: self.head,
            tail: self.tail,
        }
    }
}

impl Kept {
    fn take(&mut self, piece: &[u8]) {
        if let Self::Unused(room, most) = self {
            *self = match unnamed(room) {
                Ok(file) => Self::File { file, left: *most },
                Err(error) => {
                    tracing::debug!(%error, "no file for a long output");
                    Self::Over
                }
            };
        }
        if let Self::File { file, left } = self {
            let count = piece.len() as u64;
            // Past the bound, and where the disk is full, the file is given back at once.
            if count > *left || file.write_all(piece).is_err() {
                *self = Self::Over;
            } else {
                *left -= count;
            }
        }
    }

    /// None: not all is there.
    fn hash(self, exit: i32) -> Option<String> {
        let Self::File { mut file, .. } = self else {
            return None;
        };
        file.rewind().ok()?;
        let mut hash = begin(exit);
        let mut buffer = vec![0; BUFFER];
        loop {
            match file.read(&mut buffer) {
                Ok(0) => return Some(said(hash)),
                Ok(count) => hash.update(buffer.get(..count)?),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
    }
}

/// A file without a name, for nobody else.
fn unnamed(room: &Path) -> std::io::Result<File> {
    use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
    let mut folders = std::fs::DirBuilder::new();
    folders.recursive(true).mode(0o700).create(room)?;
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{Mode, OFlags, open};
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        if let Ok(fd) = open(room, flags, Mode::from_raw_mode(0o600)) {
            return Ok(fd.into());
        }
    }
    // A disk that has no such files: one with a name, for a moment.
    let path = room.join(format!(".output-{}", crate::ids::random_hex(8)));
    let mut options = std::fs::OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(0o600);
    let file = options.open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

fn begin(exit: i32) -> Hash {
    let mut hash = Hash::new(&SHA256);
    hash.update(exit.to_string().as_bytes());
    hash.update(b"\n");
    hash
}

fn said(hash: Hash) -> String {
    format!("sha256:{}", crate::ids::hex(hash.finish().as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pieces of uneven length, more than memory holds.
    fn pieces() -> Vec<Vec<u8>> {
        (0..40u8)
            .map(|n| vec![n; 17_000 + usize::from(n) * 311])
            .collect()
    }

    fn taken(room: &Path, most: u64, exit: i32) -> Taken {
        let mut taking = Taking::new(room.to_path_buf(), most);
        for piece in pieces() {
            taking.take(&piece);
        }
        taking.finish(exit)
    }

    #[test]
    fn long_output_is_hashed_with_any_status_and_leaves_no_file() {
        let room = tempfile::tempdir().unwrap();
        let folder = room.path().join("not/there/yet");
        let whole = pieces().concat();
        assert!(whole.len() > HELD);
        for exit in [0, 1, 137, 255] {
            let taken = taken(&folder, 1 << 20, exit);
            assert_eq!(taken.hash, Some(hash_of(exit, &whole)), "{exit}");
            assert_eq!(taken.bytes, whole.len() as u64);
            assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
        }
    }

    #[test]
    fn past_the_bound_only_the_status_0_has_a_hash() {
        let room = tempfile::tempdir().unwrap();
        let whole = pieces().concat();
        let bound = whole.len() as u64;
        assert!(taken(room.path(), bound, 3).hash.is_some());
        assert!(taken(room.path(), bound - 1, 3).hash.is_none());
        assert_eq!(
            taken(room.path(), bound - 1, 0).hash,
            Some(hash_of(0, &whole))
        );
        // The same where no file can be made.
        let file = room.path().join("a-file");
        std::fs::write(&file, "").unwrap();
        assert!(taken(&file, bound, 3).hash.is_none());
        assert_eq!(taken(&file, bound, 0).hash, Some(hash_of(0, &whole)));
    }

    #[test]
    fn short_output_never_touches_the_disk() {
        let mut taking = Taking::new(PathBuf::from("/nowhere/at/all"), 1 << 20);
        assert!(!taking.blocks(HELD));
        taking.take(&vec![7; HELD]);
        assert!(taking.blocks(1));
        assert_eq!(taking.finish(2).hash, Some(hash_of(2, &vec![7; HELD])));
    }
}
