//! From a judged run to a started process.

use std::io::PipeReader;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::net::unix::pipe::Receiver;
use tokio::process::{Child, Command};

use super::fence;
use crate::permission::Run;

/// The variable that marks every process of one call, so that none outlives it unseen.
pub(super) const MARK: &str = "LEMBAS_CALL";

/// A started command: its shell, one pipe with all that it writes, and its mark.
#[derive(Debug)]
pub(super) struct Started {
    pub(super) child: Child,
    pub(super) output: Receiver,
    pub(super) mark: String,
    pub(super) pid: u32,
}

/// Starts `bash -c` with the text that was judged, without start-up files, in its box.
///
/// # Errors
/// When the shell or the box cannot be started.
pub(super) fn start(run: &Run, scratch: &Path, own: &[PathBuf]) -> std::io::Result<Started> {
    let mark = crate::ids::random_hex(8);
    let shell = ["bash", "--noprofile", "--norc", "-c"];
    let words = fence::words(run, scratch, own)?
        .into_iter()
        .chain(shell.map(Into::into))
        .chain([run.text.as_str().into()])
        .collect::<Vec<std::ffi::OsString>>();
    let Some((program, args)) = words.split_first() else {
        return Err(std::io::Error::other("nothing to start"));
    };
    let (reader, writer) = std::io::pipe()?;
    #[expect(clippy::disallowed_methods, reason = "this is the exec module")]
    let mut command = std::process::Command::new(program);
    command
        .args(args)
        .current_dir(&run.cwd)
        .env_clear()
        .envs(run.environment.iter().map(|(name, value)| (name, value)))
        .env(MARK, &mark)
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer);
    own_session(&mut command);
    let mut command = Command::from(command);
    command.kill_on_drop(true);
    let child = command.spawn()?;
    // The writing end must be closed here, or the end of the output is never seen.
    drop(command);
    let pid = child.id().unwrap_or(0);
    Ok(Started {
        child,
        output: receiver(reader)?,
        mark,
        pid,
    })
}

fn receiver(reader: PipeReader) -> std::io::Result<Receiver> {
    let fd = OwnedFd::from(reader);
    // Fewer reads for programs that write much. Best effort: users have a total bound.
    #[cfg(target_os = "linux")]
    let _larger = rustix::pipe::fcntl_setpipe_size(&fd, 256 * 1024);
    Receiver::from_owned_fd(fd)
}

/// The command leads a session of its own: no terminal, and one group to signal.
#[expect(unsafe_code, reason = "setsid must happen between fork and exec")]
fn own_session(command: &mut std::process::Command) {
    // SAFETY: the closure makes two system calls and nothing else: no allocation, no locks.
    unsafe {
        command.pre_exec(|| {
            rustix::process::setsid()?;
            rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
            Ok(())
        });
    }
}
