//! A command's output, bounded: its beginning and end in memory, the whole on disk.

use std::path::PathBuf;

use tokio::io::AsyncWriteExt as _;

/// How much of the beginning and of the end is kept in memory, each.
pub const KEPT_BYTES: usize = 256 * 1024;

/// The largest file that the whole output goes into; what comes after is counted and dropped.
const MOST_SPILLED: u64 = 256 * 1024 * 1024;

/// Output that ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    head: String,
    tail: String,
    /// Bytes written in all.
    pub bytes: u64,
    /// Where the whole is (or its first 256 MiB), when it is longer than what is kept here.
    pub spill: Option<PathBuf>,
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
    spilled: u64,
    failed: bool,
    /// Bytes of a character that is not whole yet.
    rest: Vec<u8>,
}

impl Keeping {
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            head: Vec::new(),
            tail: std::collections::VecDeque::new(),
            bytes: 0,
            path,
            file: None,
            spilled: 0,
            failed: false,
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
        if self.failed || self.spilled > MOST_SPILLED {
            return;
        }
        if self.file.is_none() {
            match create(&self.path).await {
                Ok(mut file) => {
                    self.failed |= file.write_all(&self.head).await.is_err();
                    self.file = Some(file);
                }
                Err(_) => self.failed = true,
            }
        }
        if let Some(file) = &mut self.file {
            self.spilled += rest.len() as u64;
            // A full disk costs the whole output, not the command.
            self.failed |= file.write_all(rest).await.is_err();
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
        if let Some(file) = &mut self.file {
            let _ = file.flush().await;
        }
        let cut = self.bytes > (self.head.len() + self.tail.len()) as u64;
        // Where head and tail touch, a character may lie across.
        if !cut {
            self.head.extend(self.tail.drain(..));
        }
        let tail: Vec<u8> = self.tail.into();
        let kept = Kept {
            head: String::from_utf8_lossy(&self.head).into_owned(),
            tail: String::from_utf8_lossy(&tail).into_owned(),
            bytes: self.bytes,
            spill: (cut && !self.failed).then(|| self.path.clone()),
        };
        if !cut && self.file.is_some() {
            let _ = tokio::fs::remove_file(&self.path).await;
        }
        kept
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
        tokio::fs::create_dir_all(folder).await?;
    }
    let mut options = tokio::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(path).await
}
