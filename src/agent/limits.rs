//! The limits of `[remote]` as they are now, for a turn that runs. Opening and prompting are
//! judged by `remote`; here it is whether the turn may go on, and in which mode.

use std::path::{Path, PathBuf};

use crate::agent::{SessionFacts, words};
use crate::config::{Config, Mode};
use crate::permission::Origin;

/// Whether a session may work now; else the words of its turn's end.
pub fn may_work(config: &Config, facts: &SessionFacts) -> Result<(), String> {
    if facts.origin == Origin::Local {
        return Ok(());
    }
    if !config.remote.enabled {
        return Err(words::limit("stopped_off"));
    }
    if config.remote.paused {
        return Err(words::limit("stopped_pause"));
    }
    if !shared(config, &facts.cwd) {
        return Err(words::limit("folder_gone"));
    }
    Ok(())
}

/// The folders that count as inside: the session's own, as far as they are still shared.
pub fn inside(config: &Config, facts: &SessionFacts) -> Vec<PathBuf> {
    let own = std::iter::once(&facts.cwd).chain(&facts.also);
    match facts.origin {
        Origin::Local => own.cloned().collect(),
        Origin::Remote { .. } => own.filter(|p| shared(config, p)).cloned().collect(),
    }
}

/// The folder above which nothing of the project lies: the outermost shared root that holds the
/// session's folder; on the person's own word the top of its git project, else the folder itself.
pub fn boundary(config: &Config, facts: &SessionFacts) -> PathBuf {
    let mut above = facts.cwd.ancestors();
    let found = match facts.origin {
        Origin::Local => above.find(|folder| folder.join(".git").symlink_metadata().is_ok()),
        Origin::Remote { .. } => above.filter(|folder| shared(config, folder)).last(),
    };
    found.unwrap_or(&facts.cwd).to_owned()
}

/// min(session mode, `max_mode` now) for a remote session.
pub fn mode(config: &Config, facts: &SessionFacts, mode: Mode) -> Mode {
    match facts.origin {
        Origin::Local => mode,
        Origin::Remote { .. } => mode.min(config.remote.max_mode),
    }
}

/// Whether a canonical path lies in a shared root.
fn shared(config: &Config, path: &Path) -> bool {
    config.remote.roots.iter().any(|root| {
        // The root as the person wrote it may go through links.
        let canonical = std::fs::canonicalize(root);
        path.starts_with(canonical.as_deref().unwrap_or(root))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Remote;
    use crate::ids::SessionId;

    fn facts(origin: Origin) -> SessionFacts {
        SessionFacts {
            id: SessionId::new("s"),
            origin_text: crate::agent::origin_text(&origin),
            origin,
            cwd: "/shared/api".into(),
            also: vec!["/shared2/x".into(), "/private".into()],
            scheduled_wait: None,
        }
    }

    fn remote() -> Origin {
        Origin::Remote {
            instance: "i".into(),
            grant: "g".into(),
        }
    }

    fn config(remote: Remote) -> Config {
        Config {
            remote,
            ..Config::default()
        }
    }

    #[test]
    fn limits_bind_remote_sessions_only() {
        let off = config(Remote {
            enabled: false,
            ..Remote::default()
        });
        assert_eq!(may_work(&off, &facts(Origin::Local)), Ok(()));
        assert!(may_work(&off, &facts(remote())).is_err());
        assert_eq!(mode(&off, &facts(Origin::Local), Mode::Auto), Mode::Auto);
        assert_eq!(mode(&off, &facts(remote()), Mode::Auto), Mode::Manual);
        assert_eq!(mode(&off, &facts(remote()), Mode::Plan), Mode::Plan);
    }

    #[test]
    fn a_root_is_a_folder_not_the_beginning_of_a_name() {
        let with = |roots: &[&str]| {
            config(Remote {
                roots: roots.iter().map(PathBuf::from).collect(),
                ..Remote::default()
            })
        };
        assert!(may_work(&with(&["/shared"]), &facts(remote())).is_ok());
        assert!(may_work(&with(&["/share"]), &facts(remote())).is_err());
        assert!(may_work(&with(&["/shared/api/deeper"]), &facts(remote())).is_err());
        assert_eq!(
            inside(&with(&["/shared", "/shared2"]), &facts(remote())),
            [PathBuf::from("/shared/api"), "/shared2/x".into()]
        );
        let paused = config(Remote {
            paused: true,
            roots: vec!["/shared".into()],
            ..Remote::default()
        });
        assert_eq!(
            may_work(&paused, &facts(remote())),
            Err("paused on this computer".to_owned())
        );
    }
}
