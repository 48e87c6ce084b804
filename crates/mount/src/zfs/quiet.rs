//! ZFS that leaves the machine's other file systems alone.
//!
//! `zpool create` and zfs-fuse, when it exports a pool, call sync(2), which writes every file system of the
//! machine back: whatever is measured beside is disturbed, and where one of them cannot be written (the disk
//! of an emulator that stands still, a server that is gone) they wait for ever. A pool needs none of it:
//! zfs-fuse writes its devices with O_DIRECT and fsync(2). So that one call does nothing in them (seccomp(2),
//! Linux 3.5).

#![expect(unsafe_code, reason = "code between fork and exec, and a pointer to a filter")]

use std::os::unix::process::CommandExt;
use std::process::Command;

/// `AUDIT_ARCH_X86_64` and `AUDIT_ARCH_AARCH64` of linux/audit.h.
#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;

/// Offsets in `struct seccomp_data`.
const NUMBER_AT: u32 = 0;
const ARCHITECTURE_AT: u32 = 4;

const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
const JUMP_IF_EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
const RETURN: u32 = libc::BPF_RET | libc::BPF_K;

/// Of the conditional jumps the second number is how many instructions are passed over where it is not equal.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
static FILTER: [libc::sock_filter; 6] = [
    instruction(LOAD, 0, ARCHITECTURE_AT),
    instruction(JUMP_IF_EQUAL, 3, ARCHITECTURE),
    instruction(LOAD, 0, NUMBER_AT),
    instruction(JUMP_IF_EQUAL, 1, libc::SYS_sync as u32),
    // An error number of zero: it succeeds.
    instruction(RETURN, 0, libc::SECCOMP_RET_ERRNO),
    instruction(RETURN, 0, libc::SECCOMP_RET_ALLOW),
];

const fn instruction(code: u32, else_skip: u8, value: u32) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: 0, jf: else_skip, k: value }
}

/// For the command and all that it starts. Where the kernel has no such filter, the call waits as it always
/// did.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(super) fn without_sync(command: &mut Command) -> &mut Command {
    let install = || {
        let filter = libc::sock_fprog { len: FILTER.len() as u16, filter: FILTER.as_ptr().cast_mut() };
        // SAFETY: the kernel copies the filter, which is static, and writes nothing.
        unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &filter) };
        Ok(())
    };
    // SAFETY: the closure runs in the forked child, where only async-signal-safe work is allowed; it makes
    // the system call prctl and allocates nothing.
    unsafe { command.pre_exec(install) }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) fn without_sync(command: &mut Command) -> &mut Command {
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_sync_is_left_out() {
        if !rustix::process::geteuid().is_root() {
            return eprintln!("skipped: not root");
        }
        // `Seccomp:` is 2 where a filter is in force; dd's fsync and everything else work as ever.
        let mut shell = Command::new("sh");
        let script = "sync && dd if=/dev/zero of=file bs=4096 count=1 conv=fsync status=none && stat -c %s file && grep Seccomp: /proc/self/status";
        let directory = tempfile::tempdir().unwrap();
        let output = without_sync(shell.args(["-c", script]).current_dir(directory.path())).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "4096\nSeccomp:\t2\n");
    }
}
