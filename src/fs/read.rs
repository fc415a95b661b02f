//! Reading a whole file, with a bound.

use std::io::Read as _;
use std::path::Path;

use super::text::{Text, decode};
use super::{FsError, open};
use crate::ids::Digest;
use crate::permission::{Action, Grant};

/// Bytes of a file that is read at once. A longer one is refused, with the ways to look into it.
pub const MAX_FILE: u64 = 32 * 1024 * 1024;

/// A file as it was at one moment.
#[derive(Clone, Debug)]
pub struct Content {
    pub bytes: Vec<u8>,
    pub digest: Digest,
}

impl Content {
    /// The content as text.
    ///
    /// # Errors
    /// `Binary` when it is none.
    pub fn text(&self, path: &Path) -> Result<Text, FsError> {
        decode(&self.bytes).ok_or_else(|| FsError::Binary {
            path: path.to_owned(),
            size: self.bytes.len() as u64,
        })
    }
}

/// Reads a file that the grant names.
///
/// # Errors
/// When the grant is for something else, or the file cannot be read as a regular file.
pub fn read(grant: &Grant, path: &Path) -> Result<Content, FsError> {
    let named = match &grant.request().action {
        Action::Read { paths } => paths.iter().any(|named| path.starts_with(named)),
        Action::Write { path: named, .. } => named == path,
        Action::Execute(_) | Action::Interact | Action::Question(_) => false,
    };
    if !named {
        return Err(FsError::NotJudged(path.to_owned()));
    }
    current(path)
}

/// Reads a file to describe what a change to it would be, before that change is judged. What it
/// finds is shown to the person alone.
pub fn current(path: &Path) -> Result<Content, FsError> {
    let (file, about) = open::file(path)?;
    let too_long = |size| FsError::TooLong {
        path: path.to_owned(),
        size,
        most: MAX_FILE,
    };
    if about.len() > MAX_FILE {
        return Err(too_long(about.len()));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(about.len()).unwrap_or(0));
    // It may grow while it is read: one byte more than the bound tells.
    file.take(MAX_FILE + 1)
        .read_to_end(&mut bytes)
        .map_err(|e| FsError::of(path, e))?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(too_long(bytes.len() as u64));
    }
    let digest = Digest::of(&bytes);
    Ok(Content { bytes, digest })
}
