//! The instance this computer is linked to, as it is kept on disk: one private file.
//!
//! It holds the token. While a successor of the token is not confirmed both are kept; a use of the
//! old one after the new one was used would revoke both (spec/acp.md section 3), so the new one is
//! used from the moment it is written, and the old one only again when the new one was refused
//! before it was ever used.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::ids::{AccountId, DeviceId};
use crate::rt;
use crate::secret::{self, FileError, Secret};

/// The person's account there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    pub id: AccountId,
    pub name: String,
}

/// What pairing brought.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instance {
    /// The base URL.
    pub url: String,
    /// The instance's id and its name for people.
    pub instance: String,
    pub name: String,
    /// The address of the link, and of the model API when there is one.
    pub link: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub models: Option<String>,
    pub account: Account,
    pub device: DeviceId,
    /// Milliseconds since the epoch.
    pub paired_at: i64,
    pub token: Secret,
    /// A new token that was not used yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub successor: Option<Secret>,
}

impl Instance {
    /// The token to use now.
    pub fn current(&self) -> &Secret {
        self.successor.as_ref().unwrap_or(&self.token)
    }
}

/// Why the instance on disk cannot be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum InstanceError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error(
        "{path} cannot be understood: link this computer again (lembas link https://your.address)"
    )]
    Unreadable { path: PathBuf },
    #[error("this computer is not linked: run lembas link https://your.address")]
    NotLinked,
    #[error("a token is 20 to 512 characters of A–Z a–z 0–9 - . _ ~ + / =")]
    BadToken,
    #[error("the work on {path} did not finish")]
    Cut { path: PathBuf },
}

/// The file, and what it held when it was last read or written. Cheap to clone.
#[derive(Clone, Debug)]
pub struct InstanceFile {
    path: Arc<PathBuf>,
    held: Arc<Mutex<Option<Arc<Instance>>>>,
}

impl InstanceFile {
    /// The file `instance.json` in the folder of the person's settings. Nothing is read yet.
    pub fn in_folder(folder: &Path) -> Self {
        Self {
            path: Arc::new(folder.join("instance.json")),
            held: Arc::default(),
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What was last read or written.
    pub fn held(&self) -> Option<Arc<Instance>> {
        self.held.lock().clone()
    }

    /// The token to use now: what the model API and the link send.
    pub fn token(&self) -> Option<Secret> {
        self.held().map(|held| held.current().clone())
    }

    /// Reads the file; `None` when this computer is not linked.
    pub async fn load(&self) -> Result<Option<Arc<Instance>>, InstanceError> {
        self.on_disk(|path, held| {
            let instance = read(path)?.map(Arc::new);
            held.lock().clone_from(&instance);
            Ok(instance)
        })
        .await
    }

    /// Writes a new pairing over whatever was there.
    pub async fn save(&self, instance: Instance) -> Result<(), InstanceError> {
        self.on_disk(move |path, held| write(path, held, instance))
            .await
    }

    /// Forgets the pairing. The token is not revoked by this.
    pub async fn forget(&self) -> Result<(), InstanceError> {
        self.on_disk(|path, held| {
            secret::remove(path)?;
            *held.lock() = None;
            Ok(())
        })
        .await
    }

    /// Takes a successor of the token (`_lembas/token`). When this returns it is on the disk, so
    /// the answer may go out. One that was not used yet is replaced.
    pub async fn succeed(&self, token: Secret) -> Result<(), InstanceError> {
        if !is_token(token.reveal()) {
            return Err(InstanceError::BadToken);
        }
        self.change(move |instance| {
            if *instance.current() == token {
                return false;
            }
            instance.successor = Some(token);
            true
        })
        .await?;
        Ok(())
    }

    /// `used` was accepted by the instance: a successor that is it becomes the token.
    pub async fn confirm(&self, used: Secret) -> Result<(), InstanceError> {
        self.change(
            move |instance| match instance.successor.take_if(|new| *new == used) {
                Some(new) => {
                    instance.token = new;
                    true
                }
                None => false,
            },
        )
        .await?;
        Ok(())
    }

    /// `used` was refused. True when it was an unused successor, and the token before it is the
    /// one to use again.
    pub async fn refuse(&self, used: Secret) -> Result<bool, InstanceError> {
        self.change(move |instance| instance.successor.take_if(|new| *new == used).is_some())
            .await
    }

    /// Changes what is on disk; says whether there was anything to change.
    async fn change(
        &self,
        change: impl FnOnce(&mut Instance) -> bool + Send + 'static,
    ) -> Result<bool, InstanceError> {
        self.on_disk(move |path, held| {
            // The file is read again: a command of the person's may have changed it meanwhile.
            let mut instance = read(path)?.ok_or(InstanceError::NotLinked)?;
            let changed = change(&mut instance);
            if changed {
                write(path, held, instance)?;
            }
            Ok(changed)
        })
        .await
    }

    async fn on_disk<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Path, &Mutex<Option<Arc<Instance>>>) -> Result<T, InstanceError>
        + Send
        + 'static,
    ) -> Result<T, InstanceError> {
        let path = Arc::clone(&self.path);
        let held = Arc::clone(&self.held);
        let done = rt::blocking(move || work(&path, &held)).await;
        done.unwrap_or_else(|| {
            Err(InstanceError::Cut {
                path: (*self.path).clone(),
            })
        })
    }
}

fn read(path: &Path) -> Result<Option<Instance>, InstanceError> {
    let Some(bytes) = secret::read(path)? else {
        return Ok(None);
    };
    let unreadable = |_| InstanceError::Unreadable {
        path: path.to_owned(),
    };
    serde_json::from_slice(&bytes).map(Some).map_err(unreadable)
}

fn write(
    path: &Path,
    held: &Mutex<Option<Arc<Instance>>>,
    instance: Instance,
) -> Result<(), InstanceError> {
    let unreadable = |_| InstanceError::Unreadable {
        path: path.to_owned(),
    };
    let bytes = serde_json::to_vec_pretty(&instance).map_err(unreadable)?;
    secret::write(path, &bytes)?;
    *held.lock() = Some(Arc::new(instance));
    Ok(())
}

/// Whether this can be a token (spec/acp.md T1).
pub(super) fn is_token(text: &str) -> bool {
    (20..=512).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte))
}

/// The id of this computer, made once and kept in the file `device` of `folder` (spec/acp.md P1).
pub async fn device_id(folder: &Path) -> Result<DeviceId, InstanceError> {
    let path = folder.join("device");
    let at = path.clone();
    let work = move || {
        let known = secret::read(&path)?.and_then(|bytes| String::from_utf8(bytes).ok());
        let known = known.map(|text| text.trim().to_owned());
        let valid = |id: &String| {
            id.len() == 32 && id.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
        };
        if let Some(id) = known.filter(valid) {
            return Ok(DeviceId::new(id));
        }
        let id = DeviceId::random();
        secret::write(&path, format!("{id}\n").as_bytes())?;
        Ok(id)
    };
    rt::blocking(work)
        .await
        .unwrap_or(Err(InstanceError::Cut { path: at }))
}

#[cfg(test)]
mod tests;
