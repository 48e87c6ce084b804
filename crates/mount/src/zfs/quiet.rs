//! Keeps ZFS from flushing the machine's other file systems.
//!
//! `zpool create`, and zfs-fuse when it exports a pool, call sync(2), which writes back every file system of
//! the machine. That disturbs other measurements. If one file system cannot be written (the disk of a hung
//! emulator, a server that is gone), they wait for ever. A pool does not need the call: zfs-fuse writes its
//! devices with O_DIRECT and fsync(2). So in these programs sync(2) does nothing (seccomp(2), Linux 3.5).

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

/// In a conditional jump, the second number is the number of instructions to skip if the values differ.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
static FILTER: [libc::sock_filter; 6] = [
    instruction(LOAD, 0, ARCHITECTURE_AT),
    instruction(JUMP_IF_EQUAL, 3, ARCHITECTURE),
    instruction(LOAD, 0, NUMBER_AT),
    instruction(JUMP_IF_EQUAL, 1, libc::SYS_sync as u32),
    // Error number zero: the call succeeds.
    instruction(RETURN, 0, libc::SECCOMP_RET_ERRNO),
    instruction(RETURN, 0, libc::SECCOMP_RET_ALLOW),
];

const fn instruction(code: u32, else_skip: u8, value: u32) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: 0, jf: else_skip, k: value }
}

/// Applies to the command and its descendants. If the kernel has no such filter, sync(2) works as usual.
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
    fn only_sync_is_suppressed() {
        if !rustix::process::geteuid().is_root() {
            return eprintln!("skipped: not root");
        }
        // `Seccomp:` is 2 under a filter. dd's fsync and all other calls work as usual.
        let mut shell = Command::new("sh");
        let script = "sync && dd if=/dev/zero of=file bs=4096 count=1 conv=fsync status=none && stat -c %s file && grep Seccomp: /proc/self/status";
        let directory = tempfile::tempdir().unwrap();
        let output = without_sync(shell.args(["-c", script]).current_dir(directory.path())).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "4096\nSeccomp:\t2\n");
    }
}
