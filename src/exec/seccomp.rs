//! The filter of a boxed command: system calls that no build needs and that lead out of boxes.

#[cfg(target_os = "linux")]
use std::collections::BTreeMap;

/// The filter as the kernel reads it; none where it cannot be made.
#[cfg(target_os = "linux")]
pub(super) fn filter() -> Option<Vec<u8>> {
    use seccompiler::{
        BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
        SeccompRule,
    };
    const REFUSED: &[libc::c_long] = &[
        libc::SYS_ptrace,
        libc::SYS_process_vm_readv,
        libc::SYS_process_vm_writev,
        libc::SYS_bpf,
        libc::SYS_perf_event_open,
        libc::SYS_userfaultfd,
        libc::SYS_add_key,
        libc::SYS_request_key,
        libc::SYS_keyctl,
        libc::SYS_kexec_load,
        libc::SYS_init_module,
        libc::SYS_finit_module,
        libc::SYS_delete_module,
        libc::SYS_mount,
        libc::SYS_umount2,
        libc::SYS_pivot_root,
        libc::SYS_fsopen,
        libc::SYS_fsconfig,
        libc::SYS_fsmount,
        libc::SYS_fspick,
        libc::SYS_open_tree,
        libc::SYS_move_mount,
        libc::SYS_mount_setattr,
        libc::SYS_setns,
        libc::SYS_open_by_handle_at,
        libc::SYS_io_uring_setup,
        libc::SYS_io_uring_enter,
        libc::SYS_io_uring_register,
        libc::SYS_swapon,
        libc::SYS_swapoff,
        libc::SYS_reboot,
        libc::SYS_syslog,
    ];
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    // Typing into the terminal that one was started from.
    let typing =
        SeccompCondition::new(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, libc::TIOCSTI).ok()?;
    rules.insert(libc::SYS_ioctl, vec![SeccompRule::new(vec![typing]).ok()?]);
    let errno = u32::try_from(libc::EPERM).ok()?;
    let filter = SeccompFilter::new(
        rules,
        SeccompAction::Allow,
        SeccompAction::Errno(errno),
        std::env::consts::ARCH.try_into().ok()?,
    )
    .ok()?;
    let program: BpfProgram = filter.try_into().ok()?;
    let mut bytes = Vec::with_capacity(program.len() * 8);
    for step in &program {
        bytes.extend_from_slice(&step.code.to_ne_bytes());
        bytes.push(step.jt);
        bytes.push(step.jf);
        bytes.extend_from_slice(&step.k.to_ne_bytes());
    }
    Some(bytes)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn filter() -> Option<Vec<u8>> {
    None
}
