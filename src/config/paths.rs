//! Where things are kept: settings, data, state and what lives only while the daemon does.

use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::{env, files};
use crate::ids::Digest;

/// The folders of one lembas of one user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths {
    /// The user's home, for `~`.
    pub home: PathBuf,
    /// `config.toml`, the instance and its token.
    pub config: PathBuf,
    /// The stores of the device and the hub.
    pub data: PathBuf,
    /// Logs and spilled outputs.
    pub state: PathBuf,
    /// The lock and the control socket.
    pub runtime: PathBuf,
}

/// Why the folders could not be found or made.
#[derive(Debug, thiserror::Error)]
pub enum PathsError {
    #[error("HOME is not set, so there is no place to look")]
    NoHome,
    #[error("the folder {} cannot be used", path.display())]
    Folder {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

/// The longest path a Unix socket may have, with room for its end (104 bytes on macOS).
const SOCKET_PATH: usize = 100;

impl Paths {
    /// The folders of this user, by the usual places of the system (XDG on Linux). With `data`,
    /// or `LEMBAS_DATA`, everything lies under that one folder instead.
    pub fn find(data: Option<&Path>) -> Result<Self, PathsError> {
        let base = directories::BaseDirs::new().ok_or(PathsError::NoHome)?;
        let home = base.home_dir().to_owned();
        let given = data
            .map(Path::to_owned)
            .or_else(|| env::os(&env::LEMBAS_DATA).map(PathBuf::from));
        if let Some(data) = given {
            let data = std::path::absolute(&data).map_err(|source| PathsError::Folder {
                path: data.clone(),
                source,
            })?;
            return Ok(Self::under(&crate::text::path::clean(&data), home));
        }
        let own = directories::ProjectDirs::from("", "", "lembas").ok_or(PathsError::NoHome)?;
        let state = own
            .state_dir()
            .map_or_else(|| own.data_local_dir().join("state"), Path::to_owned);
        let runtime = own
            .runtime_dir()
            .map_or_else(|| state.join("run"), Path::to_owned);
        Ok(Self {
            home,
            config: own.config_dir().to_owned(),
            data: own.data_dir().to_owned(),
            state,
            runtime: short(runtime),
        })
    }

    /// Everything under one folder.
    pub fn under(data: &Path, home: PathBuf) -> Self {
        Self {
            home,
            config: data.join("config"),
            data: data.to_owned(),
            state: data.join("state"),
            runtime: short(data.join("run")),
        }
    }

    /// Makes the folders, private to this user.
    pub fn create(&self) -> Result<(), PathsError> {
        for path in self.own() {
            files::private_dir(path).map_err(|source| PathsError::Folder {
                path: path.to_owned(),
                source,
            })?;
        }
        Ok(())
    }

    /// The folders of lembas itself, which no agent reads, changes or works in.
    pub fn own(&self) -> [&Path; 4] {
        [&self.config, &self.data, &self.state, &self.runtime]
    }

    /// What lembas makes in its folders, by name: with `--data` they may be somebody's, with other
    /// things in them.
    pub fn made(&self) -> Vec<PathBuf> {
        let names: [(&Path, &[&str]); 3] = [
            (
                &self.config,
                &[
                    "config.toml",
                    ".config.lock",
                    "config.draft.toml",
                    "config.draft.base",
                    "config.draft.old.toml",
                    "instance.json",
                    "device",
                ],
            ),
            (
                &self.data,
                &[
                    "device.db",
                    "device.db-wal",
                    "device.db-shm",
                    "device.lock",
                    "spill",
                    "hub",
                ],
            ),
            (&self.state, &["chain", "box", "lembas.log", "lembas.log.1"]),
        ];
        let made = names.iter().flat_map(|(folder, names)| {
            let named = names.iter().map(|name| folder.join(name));
            std::iter::once(folder.to_path_buf()).chain(named)
        });
        made.chain([self.runtime.clone()]).collect()
    }

    pub fn config_file(&self) -> PathBuf {
        self.config.join("config.toml")
    }

    /// The control socket of the daemon.
    pub fn socket(&self) -> PathBuf {
        self.runtime.join("control.sock")
    }

    /// The control socket of a hub that runs without the daemon.
    pub fn hub_socket(&self) -> PathBuf {
        self.runtime.join("hub.sock")
    }

    /// Held by the one process that owns the store.
    pub fn lock(&self) -> PathBuf {
        self.data.join("device.lock")
    }

    /// The device's store.
    pub fn store(&self) -> PathBuf {
        self.data.join("device.db")
    }

    /// The program's own log.
    pub fn log(&self) -> PathBuf {
        self.state.join("lembas.log")
    }

    /// Whole outputs that are longer than what a model is shown.
    pub fn spill(&self) -> PathBuf {
        self.state.join("spill")
    }

    /// The folder of the embedded hub.
    pub fn hub(&self) -> PathBuf {
        self.data.join("hub")
    }

    /// A path as a person reads it.
    pub fn show(&self, path: &Path) -> String {
        crate::text::path::tilde(path, Some(&self.home))
    }
}

/// A folder for a socket: the given one, or where its path would be too long for a socket, one
/// in the system's temporary folder that is named after it.
fn short(folder: PathBuf) -> PathBuf {
    let bytes = folder.as_os_str().as_bytes();
    if bytes.len() + "/control.sock".len() <= SOCKET_PATH {
        return folder;
    }
    let digest = Digest::of(bytes);
    let name = digest.as_str().trim_start_matches("sha256:");
    let uid = rustix::process::geteuid().as_raw();
    PathBuf::from("/tmp").join(format!(
        "lembas-{uid}-{}",
        crate::text::cut::prefix(name, 16)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_folder_holds_everything() {
        let base = tempfile::tempdir().unwrap();
        let paths = Paths::under(base.path(), PathBuf::from("/home/ana"));
        paths.create().unwrap();
        for path in [&paths.config, &paths.data, &paths.state, &paths.runtime] {
            assert!(path.starts_with(base.path()), "{}", path.display());
        }
    }

    #[test]
    fn a_socket_path_is_never_too_long() {
        let long = PathBuf::from("/").join("x".repeat(200));
        let paths = Paths::under(&long, PathBuf::from("/"));
        assert!(paths.socket().as_os_str().len() <= SOCKET_PATH);
        assert_eq!(paths, Paths::under(&long, PathBuf::from("/")));
        let other = Paths::under(&long.join("y"), PathBuf::from("/"));
        assert_ne!(paths.socket(), other.socket());
    }
}
