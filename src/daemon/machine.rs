//! What is known of this computer for judging and running, and how strong its box was found.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::config::{Paths, files};
use crate::exec::Computer;
use crate::permission::{Facts as _, Strength};
use crate::rt;

/// The daemon's own folders: no box shows them.
pub(super) fn own(paths: &Paths) -> Vec<PathBuf> {
    paths.own().map(Path::to_path_buf).to_vec()
}

/// How strong the box of this computer is. It is tried once for a kernel, its settings, what makes
/// the box and a version of ours, and then remembered: a start must not wait for programs. What a command runs in is found anew in
/// every process; this is what the handshake and the tools' texts say.
pub(super) async fn strength(paths: &Paths, machine: &Arc<Computer>) -> Strength {
    let file = paths.state.join("box");
    let here = format!(
        "{} {} {}",
        rustix::system::uname().release().to_string_lossy(),
        env!("CARGO_PKG_VERSION"),
        Computer::circumstances(),
    );
    let known = std::fs::read_to_string(&file).unwrap_or_default();
    if let Some((before, word)) = known.split_once('\n')
        && before == here
        && let Some(strength) = [Strength::Full, Strength::WritesOnly, Strength::None]
            .into_iter()
            .find(|strength| strength.word() == word)
    {
        return strength;
    }
    let machine = Arc::clone(machine);
    let found = rt::blocking(move || machine.strength()).await;
    let strength = found.unwrap_or(Strength::None);
    let text = format!("{here}\n{}", strength.word());
    // When it cannot be kept, the next start tries the box again.
    if let Err(error) = files::replace(&file, text.as_bytes(), 0o600) {
        tracing::debug!(%error, "the strength of the box could not be kept");
    }
    strength
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_is_remembered_for_this_kernel_only() {
        let base = tempfile::tempdir().unwrap();
        let paths = Paths::under(base.path(), PathBuf::from("/home/ana"));
        paths.create().unwrap();
        let machine = Arc::new(Computer::new(own(&paths)));
        let file = paths.state.join("box");
        let found = strength(&paths, &machine).await;
        let kept = std::fs::read_to_string(&file).unwrap();
        assert!(kept.ends_with(found.word()), "{kept}");
        // What is kept is believed for this kernel, and for no other.
        let here = kept.lines().next().unwrap();
        std::fs::write(&file, format!("{here}\nwrites only")).unwrap();
        assert_eq!(strength(&paths, &machine).await, Strength::WritesOnly);
        std::fs::write(&file, "another kernel\nwrites only").unwrap();
        assert_eq!(strength(&paths, &machine).await, found);
    }
}
