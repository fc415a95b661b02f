//! The process between this program and a shell: it hears of every orphan and ends them all.
//!
//! It is a fork of this program that never runs anything else: it closes every descriptor but its
//! two pipes, waits for the shell, says how that ended, and ends whatever is left. It does so too
//! when its control pipe closes, which it does when this program dies. Between the forks nothing
//! is allocated and no lock is taken: only plain system calls are made.

#![expect(
    unsafe_code,
    reason = "fork and what may be called between it and exec are not in safe Rust"
)]

use std::io;
use std::os::fd::RawFd;

/// What the keeper needs to know.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pipes {
    /// Read end: closed by us when all shall be ended at once.
    pub(super) control: RawFd,
    /// Write end: how the shell ended, four bytes of `wait` status.
    pub(super) status: RawFd,
    /// Milliseconds that what the shell left behind may still run.
    pub(super) patience: i32,
}

/// Splits the new process in two: the keeper, which never returns, and the one that goes on to
/// become the shell.
///
/// # Safety
/// Only to be called between fork and exec.
pub(super) unsafe fn split(pipes: Pipes) -> io::Result<()> {
    // SAFETY: plain system calls without memory of ours, in a process of one thread.
    unsafe {
        libc::setsid();
        if libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0 {
            return Err(io::Error::last_os_error());
        }
        match libc::fork() {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                libc::setsid();
                Ok(())
            }
            shell => keep(shell, pipes),
        }
    }
}

/// The keeper's whole life.
unsafe fn keep(shell: libc::pid_t, pipes: Pipes) -> ! {
    // SAFETY: plain system calls; the two descriptors were given to us by the parent.
    unsafe {
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
            libc::signal(signal, libc::SIG_IGN);
        }
        // Everything else that this program had open is not ours to hold.
        let (low, high) = if pipes.control < pipes.status {
            (pipes.control, pipes.status)
        } else {
            (pipes.status, pipes.control)
        };
        close_between(0, low - 1);
        close_between(low + 1, high - 1);
        close_between(high + 1, i32::MAX);
        let mut told = false;
        let mut left_since: i32 = 0;
        let mut shell_ended = false;
        loop {
            // Reap whatever ended.
            loop {
                let mut status = 0;
                let pid = libc::waitpid(-1, &raw mut status, libc::WNOHANG);
                if pid == shell {
                    shell_ended = true;
                    libc::write(pipes.status, (&raw const status).cast(), 4);
                }
                if pid < 0 {
                    // Nothing is left.
                    libc::_exit(0);
                }
                if pid == 0 {
                    break;
                }
            }
            if told || (shell_ended && left_since >= pipes.patience) {
                end_children(if shell_ended { None } else { Some(shell) });
            }
            // Short while things end, so that the end is noticed at once; SIGCHLD is not used.
            let wait = if told || shell_ended { 2 } else { 1000 };
            let mut watched = [
                libc::pollfd {
                    fd: if told { -1 } else { pipes.control },
                    events: libc::POLLIN,
                    revents: 0,
                },
                libc::pollfd {
                    fd: -1,
                    events: libc::POLLIN,
                    revents: 0,
                },
            ];
            let pidfd = if shell_ended {
                -1
            } else {
                libc::syscall(libc::SYS_pidfd_open, shell, 0) as RawFd
            };
            watched[1].fd = pidfd;
            let wait = if !shell_ended && pidfd < 0 { 5 } else { wait };
            libc::poll(watched.as_mut_ptr(), 2, wait);
            if pidfd >= 0 {
                libc::close(pidfd);
            }
            if watched[0].revents != 0 {
                told = true;
            }
            if shell_ended && !told {
                left_since += wait;
            }
        }
    }
}

unsafe fn close_between(from: i32, to: i32) {
    if from > to {
        return;
    }
    // SAFETY: closing descriptors of this process.
    unsafe {
        let done = libc::syscall(libc::SYS_close_range, from, to, 0);
        if done != 0 {
            // An old kernel: one by one, up to what is plausible.
            for fd in from..=to.min(65_536) {
                libc::close(fd);
            }
        }
    }
}

/// Ends every child of this process, and whoever is in the shell's group. Their children become
/// ours and are met at the next round.
unsafe fn end_children(shell: Option<libc::pid_t>) {
    // SAFETY: a buffer on the stack; `open`, `read`, `kill` on what the kernel says are our
    // children, which cannot be reused before we wait for them.
    unsafe {
        // Its number is not given away while we have not waited for it.
        if let Some(shell) = shell {
            libc::kill(-shell, libc::SIGKILL);
        }
        let file = libc::open(
            c"/proc/thread-self/children".as_ptr(),
            libc::O_RDONLY | libc::O_CLOEXEC,
        );
        if file < 0 {
            // A kernel without this file: what left the group is not found.
            return;
        }
        let mut pid: libc::pid_t = 0;
        let mut buffer = [0u8; 4096];
        loop {
            let count = libc::read(file, buffer.as_mut_ptr().cast(), buffer.len());
            if count <= 0 {
                break;
            }
            for byte in buffer.iter().take(count as usize) {
                if byte.is_ascii_digit() {
                    pid = pid * 10 + i32::from(byte - b'0');
                } else if pid > 1 {
                    libc::kill(pid, libc::SIGKILL);
                    pid = 0;
                }
            }
        }
        if pid > 1 {
            libc::kill(pid, libc::SIGKILL);
        }
        libc::close(file);
    }
}
