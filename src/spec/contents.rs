//! The spec as files: what is embedded, what a folder holds, and whether two are the same.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use include_dir::{Dir, include_dir};

use crate::ids::Digest;

static EMBEDDED: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/spec");

/// A spec folder is small; a larger file or more of them is not one.
const MAX_FILES: usize = 1_000;
const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;

/// The files of a spec by path, with `/` between folders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents(BTreeMap<String, Bytes>);

/// What is embedded is not copied.
type Bytes = Cow<'static, [u8]>;

/// How a copy differs from this spec in one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    Missing(String),
    Changed(String),
    Extra(String),
}

impl Contents {
    /// What this program carries.
    pub fn embedded() -> Self {
        let mut files = BTreeMap::new();
        gather(&EMBEDDED, &mut files);
        Self(files)
    }

    /// What a folder holds.
    ///
    /// # Errors
    /// When it cannot be read, or is too large to be a spec.
    pub fn read(folder: &Path) -> io::Result<Self> {
        let mut files = BTreeMap::new();
        walk(folder, "", &mut files)?;
        Ok(Self(files))
    }

    /// The content hash: SHA-256 over, for each file in the order of its path's bytes, the path, a
    /// zero byte, the length in decimal, a zero byte, and the bytes.
    pub fn hash(&self) -> Digest {
        let mut all = Vec::new();
        for (path, bytes) in &self.0 {
            all.extend_from_slice(path.as_bytes());
            all.extend_from_slice(format!("\0{}\0", bytes.len()).as_bytes());
            all.extend_from_slice(bytes);
        }
        Digest::of(&all)
    }

    /// How `copy` differs from this, in the order of paths.
    pub fn differences(&self, copy: &Self) -> Vec<Difference> {
        let ours = self
            .0
            .iter()
            .filter_map(|(path, bytes)| match copy.0.get(path) {
                None => Some(Difference::Missing(path.clone())),
                Some(theirs) if theirs != bytes => Some(Difference::Changed(path.clone())),
                Some(_) => None,
            });
        let extra = copy.0.keys().filter(|path| !self.0.contains_key(*path));
        ours.chain(extra.map(|path| Difference::Extra(path.clone())))
            .collect()
    }

    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// A file as text; none when there is none, or it is not UTF-8.
    pub fn text(&self, path: &str) -> Option<&str> {
        std::str::from_utf8(self.0.get(path)?).ok()
    }

    /// Puts a file in place of the one there is.
    #[must_use]
    pub fn with(mut self, path: &str, text: &str) -> Self {
        self.0
            .insert(path.to_owned(), Cow::Owned(text.as_bytes().to_vec()));
        self
    }
}

fn gather(dir: &Dir<'static>, files: &mut BTreeMap<String, Bytes>) {
    for file in dir.files() {
        let path = file.path().to_string_lossy().replace('\\', "/");
        files.insert(path, Cow::Borrowed(file.contents()));
    }
    dir.dirs().for_each(|inner| gather(inner, files));
}

fn walk(folder: &Path, prefix: &str, files: &mut BTreeMap<String, Bytes>) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
        let kind = entry.file_type()?;
        if kind.is_dir() {
            walk(&entry.path(), &format!("{path}/"), files)?;
        } else if files.len() >= MAX_FILES || entry.metadata()?.len() > MAX_FILE_BYTES {
            return Err(io::Error::other(format!(
                "{path} makes this too large to be a spec"
            )));
        } else {
            files.insert(path, Cow::Owned(std::fs::read(entry.path())?));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_on_disk_has_the_same_hash_and_every_change_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let ours = Contents::embedded();
        for (path, bytes) in &ours.0 {
            let to = folder.path().join(path);
            std::fs::create_dir_all(to.parent().unwrap()).unwrap();
            std::fs::write(to, bytes).unwrap();
        }
        let copy = Contents::read(folder.path()).unwrap();
        assert_eq!(ours.hash(), copy.hash());
        assert_eq!(ours.differences(&copy), []);

        std::fs::write(folder.path().join("VERSION"), "0.0.0\n").unwrap();
        std::fs::remove_file(folder.path().join("loop.json")).unwrap();
        std::fs::write(folder.path().join("tools/zz.json"), "{}").unwrap();
        let copy = Contents::read(folder.path()).unwrap();
        assert_ne!(ours.hash(), copy.hash());
        let expected = [
            Difference::Changed("VERSION".to_owned()),
            Difference::Missing("loop.json".to_owned()),
            Difference::Extra("tools/zz.json".to_owned()),
        ];
        assert_eq!(ours.differences(&copy), expected);
    }

    #[test]
    fn the_hash_tells_a_moved_byte_from_a_moved_border() {
        let a = Contents::default().with("a", "1").with("b", "2");
        let b = Contents::default().with("a", "12").with("b", "");
        assert_ne!(a.hash(), b.hash());
    }
}
