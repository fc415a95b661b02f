//! The box: what of the disk a command sees and may change, no network, its own processes.
//!
//! Made by the system's `bwrap`. Without one there is no box here, and `permission` asks about
//! everything that is more than a read.

use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;

use super::protected::{self, Covers};
use super::{ExecError, seccomp};
use crate::permission::{BoxKind, Purpose, Run, Sees, Strength};
use crate::spec::permission::{Access, Place, permission};

/// The box of one command, ready to be entered. Dropping it takes away what it left on the disk.
#[derive(Debug, Default)]
pub(super) struct Fence {
    launcher: Option<(PathBuf, Vec<std::ffi::OsString>)>,
    filter: Option<OwnedFd>,
    _covers: Covers,
}

impl Fence {
    /// The program that makes the box, with its arguments up to the command.
    pub(super) fn launcher(&self) -> Option<&(PathBuf, Vec<std::ffi::OsString>)> {
        self.launcher.as_ref()
    }

    /// A descriptor that the box's maker reads.
    pub(super) fn passed(&self) -> Option<RawFd> {
        self.filter.as_ref().map(|f| f.as_raw_fd())
    }
}

/// How strong the box is here: tried once.
pub(super) fn strength() -> Strength {
    static TRIED: OnceLock<Strength> = OnceLock::new();
    *TRIED.get_or_init(|| {
        if works() {
            Strength::Full
        } else {
            Strength::None
        }
    })
}

/// Why there is no box, and what helps: for people.
pub(super) fn why_none() -> (&'static str, &'static str) {
    match (cfg!(target_os = "linux"), bwrap()) {
        (false, _) => ("no box is made on this system", "lembas help remote"),
        (true, None) => (
            "bubblewrap is not installed",
            "install the package bubblewrap, then start lembas again",
        ),
        (true, Some(_)) => (
            "bubblewrap is installed, but the system lets it make no user namespaces",
            "bwrap --unshare-user --unshare-net --ro-bind / / true          (it says what is refused)",
        ),
    }
}

/// What decides whether a box can be made: when it changes, the box is tried again.
pub(super) fn circumstances() -> String {
    use std::os::unix::fs::MetadataExt as _;
    let maker = bwrap().and_then(|path| Some((path, path.metadata().ok()?)));
    let maker = maker.map_or_else(
        || "no maker".to_owned(),
        |(path, meta)| format!("{} {} {}", path.display(), meta.mtime(), meta.size()),
    );
    let settings = [
        "/proc/sys/user/max_user_namespaces",
        "/proc/sys/kernel/unprivileged_userns_clone",
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
    ]
    .map(|path| std::fs::read_to_string(path).unwrap_or_default())
    .map(|text| text.trim().to_owned());
    format!("{maker} {}", settings.join(" "))
}

fn bwrap() -> Option<&'static Path> {
    static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
    FOUND
        .get_or_init(|| {
            // Only where the system keeps its programs: what makes the box is not looked for on
            // a path that others can write.
            [
                "/usr/bin",
                "/bin",
                "/usr/local/bin",
                "/run/current-system/sw/bin",
            ]
            .iter()
            .map(|folder| Path::new(folder).join("bwrap"))
            .find(|program| program.is_file())
        })
        .as_deref()
}

/// Whether a box can be made: what each of ours needs is tried.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the module that runs programs"
)]
fn works() -> bool {
    let (Some(bwrap), true) = (bwrap(), cfg!(target_os = "linux")) else {
        return false;
    };
    let (Some(shell), Some(_)) = (super::facts::shell(), filter()) else {
        return false;
    };
    std::process::Command::new(bwrap)
        .args(isolation(false))
        .args([
            "--ro-bind",
            "/",
            "/",
            "--dev",
            "/dev",
            "--proc",
            "/proc",
            "--tmpfs",
            "/tmp",
        ])
        .arg(shell)
        .args([
            "--noprofile",
            "--norc",
            "-c",
            "! : 2>/dev/null > /lembas-probe",
        ])
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

fn isolation(network: bool) -> Vec<&'static str> {
    let mut list = vec![
        "--unshare-user",
        "--unshare-ipc",
        "--unshare-pid",
        "--unshare-uts",
        "--unshare-cgroup-try",
        "--cap-drop",
        "ALL",
    ];
    if !network {
        list.push("--unshare-net");
    }
    list
}

/// Makes the box ready. `scratch`: what it sees as its temporary folder; none: one that is new and
/// gone afterwards.
pub(super) async fn prepare(run: &Run, scratch: Option<&Path>) -> Result<Fence, ExecError> {
    if run.r#box.kind == BoxKind::Open || strength() != Strength::Full {
        // `permission` granted this knowing how strong the box is; a watch command is boxed or
        // does not run.
        if run.purpose == Purpose::Monitor && strength() != Strength::Full {
            return Err(ExecError::NoBox(
                "watch commands need one that works (bubblewrap)".to_owned(),
            ));
        }
        if run.r#box.kind == BoxKind::Roots {
            return Err(ExecError::NoBox("it worked a moment ago".to_owned()));
        }
        return Ok(Fence::default());
    }
    let (run, scratch) = (run.clone(), scratch.map(Path::to_path_buf));
    crate::rt::blocking(move || build(&run, scratch.as_deref()))
        .await
        .unwrap_or_else(|| Err(ExecError::NoBox("making it failed".to_owned())))
}

/// The arguments as they grow.
struct Arguments(Vec<std::ffi::OsString>);

impl Arguments {
    fn add(&mut self, words: &[&str]) {
        self.0.extend(words.iter().map(Into::into));
    }
    fn path(&mut self, option: &str, path: &Path) {
        self.0.push(option.into());
        self.0.push(path.into());
    }
    fn bind(&mut self, option: &str, from: &Path, to: &Path) {
        self.0.push(option.into());
        self.0.push(from.into());
        self.0.push(to.into());
    }
}

fn build(run: &Run, scratch: Option<&Path>) -> Result<Fence, ExecError> {
    let launcher = bwrap().ok_or_else(|| ExecError::NoBox("bwrap is gone".to_owned()))?;
    let plan = &run.r#box;
    let mut args = Arguments(Vec::new());
    args.add(&isolation(plan.network));
    if run.purpose == Purpose::Tool {
        // Of a watch command the keeper notices what is left behind.
        args.add(&["--die-with-parent"]);
    }
    let home = crate::permission::resolve(
        &run.environment
            .iter()
            .find(|(name, _)| name == "HOME")
            .map_or_else(|| PathBuf::from("/"), |(_, home)| PathBuf::from(home)),
    );
    match plan.sees {
        Sees::Disk => {
            args.add(&["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]);
            if let Some(scratch) = scratch {
                private(scratch).map_err(ExecError::Spawn)?;
            }
            for folder in ["/tmp", "/var/tmp"] {
                if !Path::new(folder).is_dir() || is_link(Path::new(folder)) {
                    continue;
                }
                match scratch {
                    Some(scratch) => args.bind("--bind", scratch, Path::new(folder)),
                    None => args.add(&["--tmpfs", folder]),
                }
            }
            // Sockets of the session and of services: reached by their path, also read-only.
            args.add(&["--tmpfs", "/run"]);
            for back in ["/run/current-system", "/run/wrappers"] {
                args.add(&["--ro-bind-try", back, back]);
            }
        }
        Sees::Roots => sealed(&mut args, &home, scratch),
    }
    if plan.network && plan.sees == Sees::Disk {
        for back in [
            "/run/systemd/resolve",
            "/run/NetworkManager",
            "/run/resolvconf",
        ] {
            args.add(&["--ro-bind-try", back, back]);
        }
    }
    let roots: Vec<&PathBuf> = plan.roots.iter().filter(|r| r.is_dir()).collect();
    for root in &roots {
        let option = if plan.kind == BoxKind::Roots {
            "--bind"
        } else {
            "--ro-bind"
        };
        args.bind(option, root, root);
    }
    let mut covers = Covers::default();
    if plan.kind == BoxKind::Roots {
        covers = writable(&mut args, run, &home)?;
    }
    for path in &plan.also {
        if path.exists() {
            args.bind("--ro-bind", path, path);
        }
    }
    credentials(&mut args, run, &home);
    if plan.sees == Sees::Roots {
        secrets(&mut args, run);
    }
    sockets(&mut args, run)?;
    if plan.sees == Sees::Roots {
        args.add(&["--remount-ro", "/tmp", "--remount-ro", "/"]);
    }
    // A box without its filter is not the box that was judged.
    let filter = filter().ok_or_else(|| {
        ExecError::NoBox("the filter of system calls could not be made".to_owned())
    })?;
    args.add(&["--seccomp", &filter.as_raw_fd().to_string()]);
    args.path("--chdir", &run.cwd);
    args.add(&["--"]);
    Ok(Fence {
        launcher: Some((launcher.to_path_buf(), args.0)),
        filter: Some(filter),
        _covers: covers,
    })
}

/// The session's temporary folder, for nobody else.
fn private(scratch: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(scratch)
}

/// Only what every build needs, and an empty home.
fn sealed(args: &mut Arguments, home: &Path, scratch: Option<&Path>) {
    for entry in &permission().defaults.free {
        let path = crate_home(entry, home);
        if path.starts_with("/dev") || path.starts_with("/proc") {
            continue;
        }
        match path.symlink_metadata() {
            Ok(meta) if meta.is_symlink() => {
                if let Ok(target) = path.read_link() {
                    args.bind("--symlink", &target, &path);
                }
            }
            Ok(_) => args.bind("--ro-bind", &path, &path),
            Err(_) => {}
        }
    }
    args.add(&["--dev", "/dev", "--proc", "/proc"]);
    // What earlier commands of the session left in their temporary folder can be read.
    // Read-only in the end; until then what lies beneath it can be put there.
    match scratch.filter(|s| s.is_dir()) {
        Some(scratch) => args.bind("--bind", scratch, Path::new("/tmp")),
        None => args.add(&["--tmpfs", "/tmp"]),
    }
    args.path("--dir", home);
    args.add(&[
        "--ro-bind-try",
        "/run/current-system",
        "/run/current-system",
    ]);
}

fn crate_home(entry: &str, home: &Path) -> PathBuf {
    match entry.strip_prefix("~/") {
        Some(rest) => home.join(rest),
        None => PathBuf::from(entry),
    }
}

fn is_link(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|m| m.is_symlink())
}

/// Binds protected names read-only in the writable folders and covers missing ones.
fn writable(args: &mut Arguments, run: &Run, home: &Path) -> Result<Covers, ExecError> {
    let plan = &run.r#box;
    // A released path, what lies beneath it, and what it lies in.
    let released = |path: &Path| {
        plan.released
            .iter()
            .any(|r| r.starts_with(path) || path.starts_with(r))
    };
    let names = protected::names(&plan.roots, &run.cwd, home, &plan.own, &released)
        .map_err(|many| ExecError::TooMany(many.0))?;
    for folder in &names.pins {
        if !is_link(folder) && folder.is_dir() {
            args.bind("--bind", folder, folder);
        }
    }
    for path in &names.there {
        if !is_link(path) && !released(path) {
            args.bind("--ro-bind", path, path);
        }
    }
    for git in &names.repositories {
        if is_link(git) {
            continue;
        }
        if git.is_dir() && (plan.git || released(git)) {
            kept(args, git, &released);
        } else if !released(git) {
            args.bind("--ro-bind", git, git);
        }
    }
    let covers = names.missing;
    for path in &covers.paths {
        args.path("--tmpfs", path);
        args.path("--remount-ro", path);
    }
    Ok(covers)
}

/// A repository whose own files may change: hooks and settings stay as they are, at its top and in
/// those of its submodules and worktrees.
fn kept(args: &mut Arguments, git: &Path, released: &dyn Fn(&Path) -> bool) {
    // Pinned, so that it cannot be moved away and made anew.
    args.bind("--bind", git, git);
    let mut folders = vec![git.to_path_buf()];
    for nest in ["modules", "worktrees"] {
        let Ok(entries) = std::fs::read_dir(git.join(nest)) else {
            continue;
        };
        // A repository with more of them than this keeps the rest read-only as a whole.
        for (at, entry) in entries.flatten().enumerate() {
            if at < 256 {
                folders.push(entry.path());
            } else {
                args.bind("--ro-bind", &entry.path(), &entry.path());
            }
        }
    }
    for folder in folders {
        for name in &permission().hardline.git.kept {
            let path = folder.join(name);
            match path.symlink_metadata() {
                Ok(meta) if !meta.is_symlink() && !released(&path) => {
                    args.bind("--ro-bind", &path, &path);
                }
                _ => {}
            }
        }
    }
}

/// Covers what holds credentials, and this program's own folders. Of credentials that the person
/// said yes to only what was named is put back; nothing puts back what is our own.
fn credentials(args: &mut Arguments, run: &Run, home: &Path) {
    let plan = &run.r#box;
    let listed = permission()
        .hardline
        .protected
        .iter()
        .filter(|e| e.access == Access::All)
        .map(|e| match e.place {
            Place::Home => home.join(&e.path),
            _ => PathBuf::from(&e.path),
        });
    let own: Vec<PathBuf> = plan
        .own
        .iter()
        .map(|p| crate::permission::resolve(p))
        .collect();
    let listed = listed.map(|path| crate::permission::resolve(&path));
    for real in listed.chain(own.iter().cloned()) {
        let Ok(meta) = real.metadata() else { continue };
        let shown = |folders: &[PathBuf]| folders.iter().any(|folder| real.starts_with(folder));
        let named = shown(&plan.roots) || shown(&plan.also);
        // What lies in a folder that is not visible at all cannot be covered there.
        let hidden = ["/tmp", "/run", "/var/tmp"]
            .iter()
            .any(|f| real.starts_with(f));
        let unseen = plan.sees == Sees::Roots && !real.starts_with("/etc");
        let within: Vec<&PathBuf> = plan.also.iter().filter(|a| a.starts_with(&real)).collect();
        if (hidden || unseen) && !named && within.is_empty() {
            continue;
        }
        if meta.is_dir() {
            args.path("--tmpfs", &real);
        } else {
            args.bind("--ro-bind", Path::new("/dev/null"), &real);
        }
        let ours = |path: &Path| own.iter().any(|own| path.starts_with(own));
        for path in within {
            if !ours(path) && path.exists() {
                args.bind("--ro-bind", path, path);
            }
        }
    }
}

/// Covers what by its name holds secrets, at the top of the roots and in the folder of work.
fn secrets(args: &mut Arguments, run: &Run) {
    let plan = &run.r#box;
    let mut folders = plan.roots.clone();
    folders.push(run.cwd.clone());
    folders.dedup();
    for folder in folders {
        let Ok(entries) = std::fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries.flatten() {
            let path = entry.path();
            if crate::permission::is_secret_name(&path)
                && entry.file_type().is_ok_and(|t| t.is_file())
                && !plan.also.contains(&path)
            {
                args.bind("--ro-bind", Path::new("/dev/null"), &path);
            }
        }
    }
}

/// Covers sockets that others listen on: a read-only disk does not keep one from connecting.
fn sockets(args: &mut Arguments, run: &Run) -> Result<(), ExecError> {
    // No ordinary computer has so many. With more there is no box: a rest that stays reachable
    // would be a way out of it.
    const MOST: usize = 512;
    let table = std::fs::read_to_string("/proc/net/unix").map_err(|error| {
        ExecError::NoBox(format!(
            "the sockets of this computer could not be listed: {error}"
        ))
    })?;
    let mut seen = std::collections::BTreeSet::new();
    for path in table
        .lines()
        .filter_map(|l| l.split_ascii_whitespace().nth(7))
    {
        let path = Path::new(path);
        let rooted = run.r#box.roots.iter().any(|root| path.starts_with(root));
        let hidden = ["/tmp", "/run", "/var/tmp", "/var/run", "/dev", "/proc"]
            .iter()
            .any(|f| path.starts_with(f));
        if !path.is_absolute() || (hidden || run.r#box.sees == Sees::Roots) && !rooted {
            continue;
        }
        if path
            .symlink_metadata()
            .is_ok_and(|m| !m.is_symlink() && !m.is_dir())
            && path.canonicalize().is_ok_and(|real| real == path)
            && seen.insert(path.to_path_buf())
        {
            if seen.len() > MOST {
                let text = format!("more than {MOST} sockets would have to be covered");
                return Err(ExecError::NoBox(text));
            }
            args.bind("--ro-bind", Path::new("/dev/null"), path);
        }
    }
    Ok(())
}

/// The filter of system calls, in memory that the box's maker reads.
#[cfg(target_os = "linux")]
fn filter() -> Option<OwnedFd> {
    use rustix::fs::{MemfdFlags, SeekFrom, memfd_create, seek};
    static BYTES: OnceLock<Option<Vec<u8>>> = OnceLock::new();
    let bytes = BYTES.get_or_init(seccomp::filter).as_ref()?;
    let fd = memfd_create("lembas-filter", MemfdFlags::CLOEXEC).ok()?;
    let mut rest = bytes.as_slice();
    while !rest.is_empty() {
        let written = rustix::io::write(&fd, rest).ok()?;
        rest = rest.get(written..)?;
    }
    seek(&fd, SeekFrom::Start(0)).ok()?;
    Some(fd)
}

#[cfg(not(target_os = "linux"))]
fn filter() -> Option<OwnedFd> {
    let _ = seccomp::filter();
    None
}
