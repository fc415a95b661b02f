//! A command's output, bounded: its beginning and end in memory, the whole on disk.

use std::path::PathBuf;

use tokio::io::AsyncWriteExt as _;

/// How much of the beginning and of the end is kept in memory, each.
pub const KEPT_BYTES: usize = 256 * 1024;

/// The largest file that the whole output goes into; what comes after is counted and dropped, but
/// for its end, and [`Kept::missing`] says how much.
const MOST_SPILLED: u64 = 256 * 1024 * 1024;

/// Output that ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    head: String,
    tail: String,
    /// Bytes written in all.
    pub bytes: u64,
    /// Where the whole is (or as much of its beginning as there was room for), when it is longer
    /// than what is kept here.
    pub spill: Option<PathBuf>,
    /// Bytes that are nowhere: neither kept here nor on disk.
    pub missing: u64,
}

impl Kept {
    /// What is kept, as one text. A gap is marked by a line of its own.
    pub fn text(&self) -> String {
        if self.tail.is_empty() {
            return self.head.clone();
        }
        let between = self.bytes as usize - self.head.len().min(self.bytes as usize);
        if between <= self.tail.len() {
            return format!("{}{}", self.head, self.tail);
        }
        format!("{}\n[…]\n{}", self.head, self.tail)
    }

    /// Whether some of it is only on disk.
    pub fn is_cut(&self) -> bool {
        self.spill.is_some()
    }

    #[cfg(any(test, feature = "testing"))]
    pub fn of(text: &str) -> Self {
        Self {
            head: text.to_owned(),
            tail: String::new(),
            bytes: text.len() as u64,
            spill: None,
            missing: 0,
        }
    }
}

/// Output as it comes.
pub(super) struct Keeping {
    head: Vec<u8>,
    tail: std::collections::VecDeque<u8>,
    bytes: u64,
    path: PathBuf,
    file: Option<tokio::fs::File>,
    /// Bytes of the file, and how many it may have.
    spilled: u64,
    most: u64,
    failed: bool,
    /// The file is as long as it may be.
    full: bool,
    /// Bytes of a character that is not whole yet.
    rest: Vec<u8>,
}

impl Keeping {
    /// `room`: bytes that its file may have, where that is less than what any may have.
    pub(super) fn new(path: PathBuf, room: u64) -> Self {
        Self {
            head: Vec::new(),
            tail: std::collections::VecDeque::new(),
            bytes: 0,
            path,
            file: None,
            spilled: 0,
            most: MOST_SPILLED.min(room),
            failed: false,
            full: false,
            rest: Vec::new(),
        }
    }

    /// Takes a piece: keeps it, spills it where it is too long, and tells who listens.
    pub(super) async fn take(&mut self, piece: &[u8], output: &(dyn Fn(&str) + Send + Sync)) {
        self.bytes += piece.len() as u64;
        self.tell(piece, output);
        let free = KEPT_BYTES.saturating_sub(self.head.len());
        let (first, rest) = piece.split_at(free.min(piece.len()));
        self.head.extend_from_slice(first);
        if rest.is_empty() {
            return;
        }
        self.tail.extend(rest);
        let over = self.tail.len().saturating_sub(KEPT_BYTES);
        self.tail.drain(..over);
        self.spill(rest).await;
    }

    async fn spill(&mut self, rest: &[u8]) {
        if self.failed || self.full {
            return;
        }
        if self.file.is_none() {
            match create(&self.path).await {
                Ok(mut file) => {
                    let room = usize::try_from(self.most).unwrap_or(usize::MAX);
                    self.full = self.head.len() > room;
                    let fits = self.head.get(..room).unwrap_or(&self.head);
                    self.failed |= file.write_all(fits).await.is_err();
                    self.spilled = fits.len() as u64;
                    self.file = Some(file);
                }
                Err(_) => self.failed = true,
            }
        }
        if let Some(file) = &mut self.file {
            let room =
                usize::try_from(self.most.saturating_sub(self.spilled)).unwrap_or(usize::MAX);
            self.full |= rest.len() > room;
            let fits = rest.get(..room).unwrap_or(rest);
            self.spilled += fits.len() as u64;
            // A full disk costs the whole output, not the command.
            self.failed |= file.write_all(fits).await.is_err();
        }
    }

    fn tell(&mut self, piece: &[u8], output: &(dyn Fn(&str) + Send + Sync)) {
        self.rest.extend_from_slice(piece);
        let whole = match std::str::from_utf8(&self.rest) {
            Ok(_) => self.rest.len(),
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            // Broken in the middle: shown with replacements, but not held back.
            Err(_) => self.rest.len() - unfinished(&self.rest),
        };
        if whole > 0 {
            let text = String::from_utf8_lossy(self.rest.get(..whole).unwrap_or_default());
            output(&text);
            self.rest.drain(..whole);
        }
    }

    pub(super) async fn finish(mut self, output: &(dyn Fn(&str) + Send + Sync)) -> Kept {
        if !self.rest.is_empty() {
            output(&String::from_utf8_lossy(&self.rest));
        }
        if self.file.is_none() && std::str::from_utf8(&self.head).is_err() {
            // What others are told is text; the bytes as they were are in the file alone.
            self.spill(&[]).await;
        }
        if let Some(file) = &mut self.file {
            self.failed |= file.flush().await.is_err();
        }
        let cut = self.bytes > (self.head.len() + self.tail.len()) as u64;
        // Where head and tail touch, a character may lie across.
        if !cut {
            self.head.extend(self.tail.drain(..));
        }
        if self.failed {
            // Half a file would be taken for the whole.
            self.file = None;
            let _ = tokio::fs::remove_file(&self.path).await;
        }
        let from = if self.failed {
            self.head.len() as u64
        } else {
            self.spilled
        };
        let missing = if cut {
            self.bytes.saturating_sub(from + self.tail.len() as u64)
        } else {
            0
        };
        let tail: Vec<u8> = self.tail.into();
        Kept {
            head: String::from_utf8_lossy(&self.head).into_owned(),
            tail: String::from_utf8_lossy(&tail).into_owned(),
            bytes: self.bytes,
            spill: (cut && !self.failed).then(|| self.path.clone()),
            missing,
        }
    }
}

/// How many bytes at the end may be the beginning of a character.
fn unfinished(bytes: &[u8]) -> usize {
    (1..=3.min(bytes.len()))
        .find(|n| {
            let byte = bytes.get(bytes.len() - n).copied().unwrap_or_default();
            byte >= 0xc0
        })
        .filter(|n| {
            let start = bytes.len() - n;
            std::str::from_utf8(bytes.get(start..).unwrap_or_default())
                .is_err_and(|e| e.error_len().is_none())
        })
        .unwrap_or(0)
}

async fn create(path: &std::path::Path) -> std::io::Result<tokio::fs::File> {
    if let Some(folder) = path.parent() {
        let mut folders = tokio::fs::DirBuilder::new();
        folders.recursive(true).mode(0o700).create(folder).await?;
    }
    let mut options = tokio::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(path).await
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn kept(path: PathBuf, most: u64, pieces: usize) -> Kept {
        let mut keeping = Keeping::new(path, most);
        for n in 0..pieces {
            let piece = vec![b'a' + u8::try_from(n % 26).unwrap(); 100_000];
            keeping.take(&piece, &|_| {}).await;
        }
        keeping.finish(&|_| {}).await
    }

    #[tokio::test]
    async fn what_is_on_no_disk_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("spill/out");
        // Two ends in memory, all on disk.
        let whole = kept(path.clone(), 2_000_000, 20).await;
        assert_eq!((whole.bytes, whole.missing), (2_000_000, 0));
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 2_000_000);
        // The file ends at its bound; the end is in memory all the same.
        let long = kept(path.clone(), 1_000_000, 20).await;
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 1_000_000);
        let end = KEPT_BYTES as u64;
        assert_eq!((long.bytes, long.missing), (2_000_000, 1_000_000 - end));
        assert!(long.text().ends_with('t'));
        // Where no file can be made, only what memory holds is there.
        let nowhere = kept(path.join("no/folder"), 2_000_000, 20).await;
        assert_eq!(nowhere.spill, None);
        assert_eq!(nowhere.missing, 2_000_000 - 2 * end);
        // Short output needs none.
        let short = kept(path.join("no/folder"), 1, 2).await;
        assert_eq!((short.spill, short.missing), (None, 0));
        // What memory holds is whole for the model, and in the file for who wants the bytes.
        let both = kept(path.clone(), 2_000_000, 4).await;
        assert_eq!((both.spill, both.missing), (None, 0));
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 400_000);
    }

    #[tokio::test]
    async fn bytes_that_are_no_text_are_kept_as_they_were() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("spill/out");
        let mut keeping = Keeping::new(path.clone(), u64::MAX);
        keeping.take(b"a\xff\xfeb\xc3", &|_| {}).await;
        let kept = keeping.finish(&|_| {}).await;
        assert_eq!((kept.bytes, kept.spill), (5, None));
        assert_eq!(std::fs::read(&path).unwrap(), b"a\xff\xfeb\xc3");
    }
}
