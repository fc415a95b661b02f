//! The bytes of a call's output, as the command wrote them, in pieces.
//!
//! They are in the output's file where it was long or no text, else in the journal. Not here: where
//! that file comes from (`exec`), how the pieces go over a wire (`acp`).

use std::path::Path;
use std::sync::Arc;

use crate::ids::CallId;
use crate::rt;
use crate::session::handle::Session;
use crate::store::db::StoreError;
use crate::store::item::{Body, CallStatus, Item};
use crate::tools;

/// An output that can be read. It stays readable while this lives, also when its file is deleted.
#[derive(Clone, Debug)]
pub struct Output {
    /// Bytes that are here.
    pub total: u64,
    /// Bytes that were written and are not here: they are the last ones.
    pub missing: u64,
    from: Source,
}

#[derive(Clone, Debug)]
enum Source {
    Text(Arc<[u8]>),
    File(Arc<std::fs::File>),
}

/// Why there is no output to read.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    #[error("there is no such call in this session")]
    Unknown,
    #[error("the call has not ended yet")]
    Running,
    #[error(
        "what this call put out is not kept whole any more; the chat has its beginning and end"
    )]
    Gone,
    #[error("the output cannot be read")]
    File(#[from] std::io::Error),
    #[error("the store cannot be read")]
    Store(#[from] StoreError),
}

impl Session {
    /// What a call of this session put out: for a command every byte that it wrote, for another
    /// tool its result before it was cut for the model.
    ///
    /// # Errors
    /// When there is no such call, it runs, or its bytes are gone.
    pub async fn output(&self, call: &CallId) -> Result<Output, OutputError> {
        let store = self.0.journal.store();
        // Text that is in memory only belongs to it.
        self.0.journal.flush().await?;
        let items = store.call_items(self.id(), call).await?;
        let kept = kept(&items).ok_or(OutputError::Unknown)?;
        let ended = kept.ended.ok_or(OutputError::Running)?;
        let path = if kept.command {
            store.output_file(self.id(), call)
        } else {
            tools::kept(&store.spill(self.id()), call.as_str())
        };
        if let Some(file) = rt::blocking(move || open(&path)).await.flatten() {
            let total = file.metadata()?.len();
            return Ok(Output {
                total,
                missing: ended.bytes.saturating_sub(total),
                from: Source::File(Arc::new(file)),
            });
        }
        let text = if kept.command {
            kept.output
        } else {
            ended.text
        };
        let unseen = ended.unseen || (ended.failed && text.is_empty());
        let whole = !kept.command || unseen || text.len() as u64 == ended.bytes;
        if whole {
            Ok(Output::of(text.into_bytes(), 0))
        } else {
            Err(OutputError::Gone)
        }
    }
}

impl Output {
    /// An output that is in memory.
    pub fn of(bytes: Vec<u8>, missing: u64) -> Self {
        Self {
            total: bytes.len() as u64,
            missing,
            from: Source::Text(bytes.into()),
        }
    }

    /// At most `max` bytes from `from` on; fewer only at the end.
    ///
    /// # Errors
    /// When its file cannot be read.
    pub async fn read(&self, from: u64, max: usize) -> std::io::Result<Vec<u8>> {
        let length = usize::try_from(self.total.saturating_sub(from)).map_or(max, |n| n.min(max));
        match &self.from {
            Source::Text(bytes) => {
                let from = usize::try_from(from).unwrap_or(usize::MAX);
                let part = bytes.get(from..from.saturating_add(length));
                Ok(part.unwrap_or_default().to_vec())
            }
            Source::File(file) => {
                use std::os::unix::fs::FileExt as _;
                let file = Arc::clone(file);
                let read = rt::blocking(move || {
                    let mut bytes = vec![0; length];
                    file.read_exact_at(&mut bytes, from).map(|()| bytes)
                });
                let broke = || std::io::Error::other("reading broke off");
                read.await.unwrap_or_else(|| Err(broke()))
            }
        }
    }
}

fn open(path: &Path) -> Option<std::fs::File> {
    std::fs::File::open(path).ok()
}

/// What the journal has of a call.
struct Kept {
    command: bool,
    output: String,
    ended: Option<Ended>,
}

struct Ended {
    bytes: u64,
    text: String,
    /// It did not run, or nobody saw its end: its bytes were not counted.
    unseen: bool,
    /// It failed without an exit status: it may have failed to run.
    failed: bool,
}

fn kept(items: &[Item]) -> Option<Kept> {
    let mut kept = None;
    for item in items {
        match &item.body {
            Body::Call { tool, .. } => {
                kept = Some(Kept {
                    command: tool == "bash",
                    output: String::new(),
                    ended: None,
                });
            }
            Body::Output { text, .. } => kept.as_mut()?.output.push_str(text),
            Body::Result {
                bytes,
                text,
                status,
                exit,
                ..
            } => {
                kept.as_mut()?.ended = Some(Ended {
                    bytes: *bytes,
                    text: text.clone(),
                    unseen: matches!(status, CallStatus::Unknown | CallStatus::Refused),
                    failed: *status == CallStatus::Failed && exit.is_none(),
                });
            }
            _ => {}
        }
    }
    kept
}
