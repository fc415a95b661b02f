//! One shell with its keeper and its pipe.

use std::collections::HashSet;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};
use std::process::Stdio;

use rustix::pipe::{PipeFlags, pipe_with};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};

use super::ExecError;
use super::fence::Fence;
use crate::permission::Run;

/// What happens to what the shell leaves behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leftover {
    /// It is ended at once.
    End,
    /// It may hold the pipe for a while, so that it is noticed.
    Notice,
}

/// A running shell.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    /// Closed: the keeper ends everything.
    control: Option<OwnedFd>,
    status: pipe::Receiver,
    exit: Option<i32>,
    /// What the box's maker says, where that is not part of the output.
    maker: Option<pipe::Receiver>,
    /// Who was told to end: each once, since many programs take a second word for "at once".
    told: HashSet<u32>,
}

/// What a shell says when the box is made and it is in it.
const ENTERED: &str = "entered\n";

/// The most that is read of what the box's maker says; more of it is not needed to say why.
const COMPLAINT: u64 = 4096;

impl Process {
    /// Starts the shell, boxed or not.
    pub(super) fn start(
        run: &Run,
        fence: &Fence,
        left: Leftover,
    ) -> Result<(Self, Output), ExecError> {
        let (output, write) = pipe_with(PipeFlags::CLOEXEC).map_err(spawn)?;
        // Fewer wake-ups for those who write much. Where the system refuses, the usual size does.
        #[cfg(target_os = "linux")]
        let _ = rustix::pipe::fcntl_setpipe_size(&output, 256 * 1024);
        let (control_read, control) = pipe_with(PipeFlags::CLOEXEC).map_err(spawn)?;
        let (status, status_write) = pipe_with(PipeFlags::CLOEXEC).map_err(spawn)?;
        // The box's maker stays while anything runs in the box: where it must be seen who holds
        // the pipe, it gets another one for itself.
        let apart = left == Leftover::Notice && fence.launcher().is_some();
        let mut command = command(run, fence, apart.then(|| write.as_raw_fd()))?;
        let (maker, own) = if apart {
            let (maker, own) = pipe_with(PipeFlags::CLOEXEC).map_err(spawn)?;
            (Some(maker), own)
        } else {
            (None, write.try_clone().map_err(ExecError::Spawn)?)
        };
        command
            .stdin(Stdio::null())
            .stdout(own.try_clone().map_err(ExecError::Spawn)?)
            .stderr(own)
            .env_clear()
            .envs(run.environment.iter().map(|(k, v)| (k, v)))
            .current_dir(&run.cwd);
        let passed = [fence.passed(), apart.then(|| write.as_raw_fd())];
        prepare(
            &mut command,
            control_read.as_raw_fd(),
            status_write.as_raw_fd(),
            passed,
            left,
        );
        let child = command.spawn().map_err(ExecError::Spawn)?;
        // The command holds its own copies of the pipe's write end, which would keep it open.
        drop(command);
        drop((control_read, status_write, write));
        let process = Self {
            child,
            control: Some(control),
            status: receiver(status)?,
            exit: None,
            maker: maker.map(receiver).transpose()?,
            told: HashSet::new(),
        };
        Ok((process, Output(receiver(output)?)))
    }

    /// Waits until everything has ended; the shell's exit status. Cancel-safe.
    pub(super) async fn ended(&mut self) -> i32 {
        let _ = self.child.wait().await;
        self.shell_ended().await
    }

    /// Waits until the shell itself has ended; its exit status. Cancel-safe.
    pub(super) async fn shell_ended(&mut self) -> i32 {
        if let Some(exit) = self.exit {
            return exit;
        }
        let mut raw = [0; 4];
        // Four bytes written at once into a pipe arrive at once.
        let exit = match self.status.read(&mut raw).await {
            Ok(4) => exit_of(i32::from_ne_bytes(raw)),
            _ => 255,
        };
        self.exit = Some(exit);
        exit
    }

    /// Why the box was not made, once everything has ended; none when the shell was in it.
    pub(super) async fn not_boxed(&mut self) -> Option<String> {
        let mut said = Vec::new();
        // Everyone who could write has ended: there is an end.
        let _ = self
            .maker
            .take()?
            .take(COMPLAINT)
            .read_to_end(&mut said)
            .await;
        let said = String::from_utf8_lossy(&said);
        let line = said.lines().next().unwrap_or("it ended before the command");
        (!said.ends_with(ENTERED)).then(|| line.to_owned())
    }

    /// Tells everything in the box or session to end that was not told before. Said again until
    /// all has ended: while the box is being made nobody in it hears yet.
    pub(super) fn terminate(&mut self) {
        if let Some(keeper) = self.child.id() {
            terminate_beneath(keeper, &mut self.told);
        }
    }

    /// Ends everything.
    pub(super) fn kill(&mut self) {
        self.control = None;
    }
}

/// What the shell and all that it starts write, both streams in one.
#[derive(Debug)]
pub(super) struct Output(pipe::Receiver);

impl Output {
    /// Reads output. Zero: everyone who could write has ended. Cancel-safe.
    pub(super) async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer).await
    }
}

fn spawn(error: rustix::io::Errno) -> ExecError {
    ExecError::Spawn(error.into())
}

fn receiver(fd: OwnedFd) -> Result<pipe::Receiver, ExecError> {
    pipe::Receiver::from_owned_fd(fd).map_err(ExecError::Spawn)
}

/// The exit status of a `wait` status: signal N is `128 + N`.
fn exit_of(raw: i32) -> i32 {
    use std::os::unix::process::ExitStatusExt as _;
    let status = std::process::ExitStatus::from_raw(raw);
    status
        .code()
        .or_else(|| status.signal().map(|s| 128 + s))
        .unwrap_or(255)
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is the module that runs programs"
)]
fn command(run: &Run, fence: &Fence, apart: Option<RawFd>) -> Result<Command, ExecError> {
    let shell = super::facts::shell().ok_or(ExecError::NoShell)?;
    let mut command = match fence.launcher() {
        Some((program, arguments)) => {
            let mut command = Command::new(program);
            command.args(arguments).arg(&shell);
            command
        }
        None => Command::new(&shell),
    };
    let plain = ["--noprofile", "--norc", "-c", "--"];
    if let Some(output) = apart {
        let enter = format!(
            "echo {}; exec 1>&{output} 2>&{output} {output}>&-; exec \"$0\" {} \"$1\"",
            ENTERED.trim_end(),
            plain.join(" "),
        );
        command.args(plain).arg(enter).arg(&shell);
    } else {
        command.args(plain);
    }
    // The text is what was judged, byte for byte. `--` so that it is never taken for an option.
    command.arg(&run.text);
    command.kill_on_drop(false);
    Ok(command)
}

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "pre_exec is where the keeper splits off")]
fn prepare(
    command: &mut Command,
    control: RawFd,
    status: RawFd,
    passed: [Option<RawFd>; 2],
    left: Leftover,
) {
    use super::keeper::{Pipes, split};
    let pipes = Pipes {
        control,
        status,
        patience: match left {
            Leftover::End => 0,
            Leftover::Notice => 3_000,
        },
    };
    // SAFETY: only system calls that are allowed between fork and exec; `passed` is copied.
    unsafe {
        command.pre_exec(move || {
            split(pipes)?;
            rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
            if left == Leftover::Notice {
                // What the shell says of a crash says too whether a core was written.
                no_core();
            }
            for fd in passed.into_iter().flatten() {
                // They go on to the box.
                let fd = std::os::fd::BorrowedFd::borrow_raw(fd);
                rustix::io::fcntl_setfd(fd, rustix::io::FdFlags::empty())?;
            }
            Ok(())
        });
    }
}

/// No core files of a crashed child.
#[cfg(target_os = "linux")]
fn no_core() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = Rlimit {
        current: Some(0),
        ..getrlimit(Resource::Core)
    };
    // Where it cannot be set, it stays as it was, and is the same at the next run.
    let _ = setrlimit(Resource::Core, limit);
}

/// Without subreapers: a session of its own, ended as a group.
#[cfg(not(target_os = "linux"))]
#[expect(unsafe_code, reason = "pre_exec is where the session begins")]
fn prepare(command: &mut Command, _: RawFd, _: RawFd, _: [Option<RawFd>; 2], _: Leftover) {
    // SAFETY: one system call that is allowed between fork and exec.
    unsafe {
        command.pre_exec(|| {
            rustix::process::setsid()?;
            Ok(())
        });
    }
}

/// Tells every process beneath the keeper to end, apart from the box's own two.
#[cfg(target_os = "linux")]
fn terminate_beneath(keeper: u32, told: &mut HashSet<u32>) {
    // More processes than this are met by the end that follows the grace.
    const MOST: usize = 10_000;
    let mut work = vec![keeper];
    let mut seen = 0;
    while let Some(parent) = work.pop() {
        let Ok(tasks) = std::fs::read_dir(format!("/proc/{parent}/task")) else {
            continue;
        };
        for task in tasks.flatten() {
            let children = task.path().join("children");
            for child in std::fs::read_to_string(children)
                .unwrap_or_default()
                .split_ascii_whitespace()
                .filter_map(|p| p.parse::<u32>().ok())
            {
                seen += 1;
                if seen > MOST {
                    return;
                }
                work.push(child);
                let name = std::fs::read_to_string(format!("/proc/{child}/comm"));
                if name.is_ok_and(|n| n.trim() == "bwrap") {
                    continue;
                }
                if told.insert(child) {
                    tell(child);
                }
            }
        }
    }
}

#[cfg(target_os = "linux")]
fn tell(pid: u32) {
    use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
    // Through a descriptor, so that a number that was given away meanwhile is not hit.
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw)
        && let Ok(fd) = pidfd_open(pid, PidfdFlags::empty())
    {
        let _ = pidfd_send_signal(fd, Signal::TERM);
    }
}

#[cfg(not(target_os = "linux"))]
fn terminate_beneath(leader: u32, told: &mut HashSet<u32>) {
    use rustix::process::{Pid, Signal, kill_process_group};
    if !told.insert(leader) {
        return;
    }
    if let Some(pid) = i32::try_from(leader).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(pid, Signal::TERM);
    }
}
