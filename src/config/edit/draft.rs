//! A copy of the settings that a person edits; it takes the place of the file once it is understood.

use std::path::PathBuf;

use super::{EditError, Edited, HEADER, take_turn};
use crate::config::{ConfigError, Paths, files, load};

/// A copy being edited. It stays on disk until it was taken, so that nothing typed is lost.
#[derive(Debug)]
pub struct Draft {
    /// Where the copy is.
    pub path: PathBuf,
    /// Whether it was left by an earlier edit that ended with mistakes.
    pub left: bool,
    /// Where one was put that was left and began from other settings than those of now: to go on
    /// with it would take back what was changed since.
    pub aside: Option<PathBuf>,
    /// The file as it was when the edit began; none when there was none.
    old: Option<String>,
}

impl Draft {
    /// Makes the copy, or goes on with the one that was left.
    ///
    /// # Errors
    /// The file cannot be read as text, or the copy cannot be written.
    pub fn begin(paths: &Paths) -> Result<Self, EditError> {
        let old = load::text(&paths.config_file())?;
        let path = paths.config.join("config.draft.toml");
        let base = paths.config.join("config.draft.base");
        let text = old.as_deref().unwrap_or(HEADER);
        let mut left = path.exists();
        let mut aside = None;
        let begun = files::private_dir(&paths.config).and_then(|()| {
            if left && std::fs::read_to_string(&base).ok().as_deref() != Some(text) {
                let kept = paths.config.join("config.draft.old.toml");
                std::fs::rename(&path, &kept)?;
                aside = Some(kept);
                left = false;
            }
            if !left {
                files::replace(&base, text.as_bytes(), 0o600)?;
                files::replace(&path, text.as_bytes(), 0o600)?;
            }
            Ok(())
        });
        begun.map_err(|source| EditError::Write {
            path: path.clone(),
            source,
        })?;
        Ok(Self {
            path,
            left,
            aside,
            old,
        })
    }

    /// Removes the copy when nothing was typed into it; whether it was kept.
    pub fn forget_untouched(&self) -> bool {
        let began = self.old.as_deref().unwrap_or(HEADER);
        let same =
            !self.left && std::fs::read_to_string(&self.path).is_ok_and(|text| text == began);
        !(same && std::fs::remove_file(&self.path).is_ok())
    }

    /// Puts the copy in the place of the file, and removes it.
    ///
    /// # Errors
    /// What is wrong with the copy, each with its line; or that the file was changed by another
    /// meanwhile. The copy is kept then, and the file is as it was.
    pub fn finish(&self, paths: &Paths) -> Result<Edited, EditError> {
        let file = paths.config_file();
        let write = |source| EditError::Write {
            path: file.clone(),
            source,
        };
        // A copy that the person threw away changes nothing.
        let Some(new) = load::text(&self.path)? else {
            let config = load(&file, &paths.home)?;
            return Ok(Edited {
                config,
                changed: false,
            });
        };
        let config = load::parse(&new, &paths.home).map_err(|problems| ConfigError::Wrong {
            path: self.path.clone(),
            problems,
        })?;
        let _turn = take_turn(&paths.config.join(".config.lock")).map_err(write)?;
        let now = load::text(&file)?;
        if now != self.old && now.as_deref() != Some(&new) {
            return Err(EditError::Moved {
                path: file,
                draft: self.path.clone(),
            });
        }
        let untouched = now.is_none() && new == HEADER;
        let changed = now.as_deref() != Some(&new) && !untouched;
        if changed {
            super::put(&file, &new).map_err(write)?;
        }
        // One that stays behind is gone on with the next time.
        let _ = std::fs::remove_file(&self.path);
        Ok(Edited { config, changed })
    }
}
