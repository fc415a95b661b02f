//! What the engine must know of this computer. `exec` finds it out; tests make it up.

use std::path::PathBuf;

/// How strong the box is here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub enum Strength {
    /// Disk, network, processes.
    #[serde(rename = "full")]
    Full,
    /// What may be written is fenced, the network is not.
    #[serde(rename = "writes only")]
    WritesOnly,
    #[serde(rename = "none")]
    None,
}

impl Strength {
    /// As `doctor`, the limits and each ask say it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::WritesOnly => "writes only",
            Self::None => "none",
        }
    }
}

/// The computer's facts. Each is found out once, when it is first asked for.
pub trait Facts: Send + Sync + std::fmt::Debug {
    fn strength(&self) -> Strength;
    /// Where programs are looked for: absolute folders.
    fn path(&self) -> Vec<PathBuf>;
    fn home(&self) -> PathBuf;
    /// What a command's environment is, whole.
    fn environment(&self) -> Vec<(String, String)>;
    /// What a watch command's environment is, whole: the same at every run.
    fn monitor_environment(&self) -> Vec<(String, String)>;
    /// Folders of this program itself.
    fn own(&self) -> Vec<PathBuf>;
}

/// Made-up facts.
#[cfg(any(test, feature = "testing"))]
pub(super) mod testing {
    use super::{Facts, PathBuf, Strength};

    /// A computer on which nothing is found out.
    #[derive(Clone, Debug)]
    pub struct Fixed {
        pub strength: Strength,
        pub home: PathBuf,
        pub own: Vec<PathBuf>,
    }

    impl Default for Fixed {
        fn default() -> Self {
            Self {
                strength: Strength::Full,
                home: PathBuf::from("/home/ana"),
                own: vec![PathBuf::from("/home/ana/.config/lembas")],
            }
        }
    }

    impl Facts for Fixed {
        fn strength(&self) -> Strength {
            self.strength
        }
        fn path(&self) -> Vec<PathBuf> {
            ["/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"]
                .map(PathBuf::from)
                .to_vec()
        }
        fn home(&self) -> PathBuf {
            self.home.clone()
        }
        fn environment(&self) -> Vec<(String, String)> {
            vec![
                ("HOME".into(), self.home.display().to_string()),
                ("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()),
            ]
        }
        fn monitor_environment(&self) -> Vec<(String, String)> {
            self.environment()
        }
        fn own(&self) -> Vec<PathBuf> {
            self.own.clone()
        }
    }
}
