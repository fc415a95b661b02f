//! A command's output: head and tail in bounded memory, the whole in a file.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Bytes kept in memory from the beginning and from the end.
const HEAD: usize = 128 * 1024;
const TAIL: usize = 128 * 1024;
/// Bytes kept in the file. What comes after is counted and not kept.
pub(super) const MAX_SPILL: u64 = 256 * 1024 * 1024;

/// Collects what a command writes.
#[derive(Debug)]
pub(super) struct Output {
    head: Vec<u8>,
    tail: Vec<u8>,
    bytes: u64,
    path: PathBuf,
    file: Option<File>,
    kept: u64,
    failed: bool,
}

/// What was collected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collected {
    /// Head and tail, with a line between them that counts what was left out.
    pub text: String,
    /// Bytes in all.
    pub bytes: u64,
    /// The file with the whole, when the text is not it.
    pub spill: Option<PathBuf>,
    /// The file ends before the output did: it passed its bound, or the disk refused.
    pub spill_cut: bool,
}

impl Output {
    pub(super) fn new(path: &Path) -> Self {
        Self {
            head: Vec::new(),
            tail: Vec::new(),
            bytes: 0,
            path: path.to_owned(),
            file: None,
            kept: 0,
            failed: false,
        }
    }

    pub(super) fn push(&mut self, chunk: &[u8]) {
        self.bytes += chunk.len() as u64;
        let room = HEAD.saturating_sub(self.head.len()).min(chunk.len());
        let (first, rest) = chunk.split_at(room);
        self.head.extend_from_slice(first);
        if rest.is_empty() {
            return;
        }
        if self.file.is_none() && !self.failed {
            self.open();
        }
        self.spill(rest);
        self.tail.extend_from_slice(rest);
        if self.tail.len() > 2 * TAIL {
            self.tail.drain(..self.tail.len() - TAIL);
        }
    }

    fn open(&mut self) {
        let made = self
            .path
            .parent()
            .map_or(Ok(()), std::fs::create_dir_all)
            .and_then(|()| {
                use std::os::unix::fs::OpenOptionsExt as _;
                File::options()
                    .write(true)
                    .create(true)
                    .truncate(true)
                    .mode(0o600)
                    .open(&self.path)
            });
        match made {
            Ok(file) => {
                self.file = Some(file);
                let head = self.head.clone();
                self.spill(&head);
            }
            Err(error) => {
                tracing::warn!(path = %self.path.display(), %error, "cannot keep a command's whole output");
                self.failed = true;
            }
        }
    }

    fn spill(&mut self, bytes: &[u8]) {
        let Some(file) = &mut self.file else { return };
        let room = usize::try_from(MAX_SPILL.saturating_sub(self.kept)).unwrap_or(usize::MAX);
        let kept = bytes.get(..room.min(bytes.len())).unwrap_or_default();
        if let Err(error) = file.write_all(kept) {
            tracing::warn!(path = %self.path.display(), %error, "a command's whole output is cut here");
            self.failed = true;
            self.file = None;
            return;
        }
        self.kept += kept.len() as u64;
    }

    pub(super) fn finish(mut self) -> Collected {
        if self.tail.len() > TAIL {
            self.tail.drain(..self.tail.len() - TAIL);
        }
        let left_out = self.bytes - (self.head.len() + self.tail.len()) as u64;
        let text = if left_out == 0 {
            let mut all = self.head;
            all.extend_from_slice(&self.tail);
            String::from_utf8_lossy(&all).into_owned()
        } else {
            format!(
                "{}\n[{left_out} bytes left out here]\n{}",
                String::from_utf8_lossy(&self.head),
                String::from_utf8_lossy(&self.tail)
            )
        };
        Collected {
            text,
            bytes: self.bytes,
            spill_cut: self.failed || (self.kept > 0 && self.kept < self.bytes),
            spill: (self.kept > 0).then_some(self.path),
        }
    }
}

/// Takes the text out of a stream of bytes: characters that are cut in two wait for their rest.
#[derive(Debug, Default)]
pub(super) struct Characters {
    rest: Vec<u8>,
}

impl Characters {
    pub(super) fn push(&mut self, chunk: &[u8]) -> String {
        self.rest.extend_from_slice(chunk);
        let mut text = String::new();
        let mut bytes = std::mem::take(&mut self.rest);
        loop {
            match std::str::from_utf8(&bytes) {
                Ok(good) => {
                    text.push_str(good);
                    return text;
                }
                Err(error) => {
                    let good = error.valid_up_to();
                    text.push_str(&String::from_utf8_lossy(
                        bytes.get(..good).unwrap_or_default(),
                    ));
                    match error.error_len() {
                        Some(bad) => {
                            text.push('\u{fffd}');
                            bytes.drain(..good + bad);
                        }
                        None => {
                            bytes.drain(..good);
                            self.rest = bytes;
                            return text;
                        }
                    }
                }
            }
        }
    }
}
