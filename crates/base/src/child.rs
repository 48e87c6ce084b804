//! Child processes that end with their parent, and the user they run as. A leftover server or load generator
//! would ruin the next trial.

use std::env;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Signal, geteuid, getpid, getppid, set_parent_process_death_signal};
use serde::{Deserialize, Serialize};

/// The user that another project's program runs as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunAs {
    /// Our own user: the program was named by the user himself.
    #[default]
    Caller,
    /// User and group of this number, if we are root: the program was named by a file.
    User(u32),
}

impl RunAs {
    pub fn is_caller(&self) -> bool {
        *self == RunAs::Caller
    }

    /// Call it before [`die_with_parent`]: a change of user clears that request.
    pub fn apply(self, command: &mut Command) -> &mut Command {
        if let (RunAs::User(id), true) = (self, geteuid().is_root()) {
            // That user may have no access to our working directory.
            if command.get_current_dir().is_none() {
                command.current_dir("/");
            }
            command.uid(id).gid(id);
        }
        command
    }
}

/// Asks the kernel to kill the child when the *thread* that spawns it ends. Spawn from a thread that lives as
/// long as the child is needed.
#[expect(
    unsafe_code,
    reason = "code between fork and exec is unsafe to add; this one makes a single system call"
)]
pub fn die_with_parent(command: &mut Command) -> &mut Command {
    let parent = getpid();
    let request = move || {
        set_parent_process_death_signal(Some(Signal::KILL)).map_err(std::io::Error::from)?;
        // The kernel does not signal the death of a parent that was killed before the request.
        if getppid() == Some(parent) { Ok(()) } else { Err(Errno::SRCH.into()) }
    };
    // SAFETY: the closure runs in the forked child, where only async-signal-safe work is allowed. It makes
    // the system calls prctl and getppid, and allocates nothing.
    unsafe { command.pre_exec(request) }
}

/// Lets the child enter a control group before it becomes the program, so that all of its memory and all of
/// its children are counted there. `group` is the directory of the group.
///
/// The file of the group is opened here, because the child may be another user by then: the kernel asks
/// whether the user who opened it may move processes (Linux 5.16 and the stable kernels of January 2022,
/// kernel/cgroup, `of->file->f_cred`).
///
/// # Errors
/// There is no such group, or this user may not put processes into it.
#[expect(
    unsafe_code,
    reason = "code between fork and exec is unsafe to add; this one makes a single system call"
)]
pub fn enter_control_group<'a>(command: &'a mut Command, group: &Path) -> io::Result<&'a mut Command> {
    let processes: File = OpenOptions::new().write(true).open(group.join("cgroup.procs"))?;
    // Zero stands for the process that writes it (cgroups(7)).
    let enter = move || (&processes).write_all(b"0");
    // SAFETY: the closure runs in the forked child, where only async-signal-safe work is allowed. It makes
    // the system call write, and allocates nothing.
    Ok(unsafe { command.pre_exec(enter) })
}

/// Waits for the child to end. Returns its exit status and its user and system time together. The child is
/// reaped, so its process id may be reused.
///
/// # Errors
/// The child was waited for before.
#[expect(
    unsafe_code,
    reason = "only wait4 reports the CPU time of one child, and none of our crates offers it"
)]
pub fn wait_with_cpu(child: &Child) -> io::Result<(ExitStatus, Duration)> {
    let process_id = libc::pid_t::try_from(child.id()).map_err(io::Error::other)?;
    let mut status = 0;
    // SAFETY: all zeros is a valid `rusage`; the two pointers are to local variables that outlive the call.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        while libc::wait4(process_id, &mut status, 0, &mut usage) < 0 {
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
        usage
    };
    let time = |of: libc::timeval| Duration::new(of.tv_sec as u64, 1_000 * of.tv_usec as u32);
    Ok((ExitStatus::from_raw(status), time(usage.ru_utime) + time(usage.ru_stime)))
}

/// Directories of administrators' programs, which a user's PATH often lacks.
const MORE_DIRECTORIES: [&str; 4] = ["/usr/sbin", "/sbin", "/usr/bin", "/usr/local/bin"];

/// The program at a path, or in a directory of programs if it is a name.
pub fn find_program(program: impl AsRef<Path>) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let directories = env::split_paths(&path).chain(MORE_DIRECTORIES.map(PathBuf::from));
    let program = program.as_ref();
    let is_name = program.components().count() == 1 && program.is_relative();
    let candidates = directories.filter(|_| is_name).map(|directory| directory.join(program));
    candidates.chain((!is_name).then(|| program.to_owned())).find(|candidate| candidate.is_file())
}

/// Whether the program has no dynamic linker, so that nothing can be preloaded into it (ELF, PT_INTERP).
/// False for what is no program of its own, such as a script.
///
/// # Errors
/// The file cannot be read.
pub fn is_static(program: &Path) -> std::io::Result<bool> {
    const MAGIC: &[u8] = b"\x7fELF\x02";
    const PT_INTERP: u32 = 3;
    let bytes = std::fs::read(program)?;
    let number = |offset: usize, size: usize| {
        let bytes = bytes.get(offset..offset + size)?;
        Some(bytes.iter().rev().fold(0_u64, |value, byte| value << 8 | u64::from(*byte)))
    };
    if !bytes.starts_with(MAGIC) {
        return Ok(false);
    }
    // The table of program headers, its size of an entry and their number, in a file of 64 bits.
    let (Some(table), Some(size), Some(count)) = (number(32, 8), number(54, 2), number(56, 2)) else {
        return Ok(false);
    };
    let kind = |index: u64| number((table + index * size) as usize, 4);
    Ok((0..count).all(|index| kind(index) != Some(u64::from(PT_INTERP))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_by_its_name_or_at_its_path() {
        let found = find_program("sh").unwrap();
        assert_eq!(find_program(&found), Some(found));
        assert_eq!(find_program("/nowhere/sh"), None);
        assert_eq!(find_program("no-program-of-this-name"), None);
    }

    #[test]
    fn a_child_that_ended_tells_what_it_used() {
        let mut command = Command::new("sh");
        let mut child =
            command.args(["-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; exit 3"]).spawn().unwrap();
        let (status, cpu) = wait_with_cpu(&child).unwrap();
        assert_eq!(status.code(), Some(3));
        assert!(cpu > Duration::ZERO);
        assert!(child.wait().is_err(), "it is reaped");
    }

    #[test]
    fn a_child_dies_with_the_thread_that_spawned_it() {
        let spawned =
            std::thread::spawn(|| die_with_parent(Command::new("sleep").arg("600")).spawn().unwrap());
        let mut child = spawned.join().unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(Signal::KILL.as_raw()));
    }

    #[test]
    fn a_child_enters_its_control_group_and_then_is_the_program() {
        let group = std::env::temp_dir().join(format!("spindle-group-{}", std::process::id()));
        std::fs::create_dir(&group).unwrap();
        let mut command = Command::new("true");
        assert!(enter_control_group(&mut command, &group).is_err(), "a group has a list of its processes");
        std::fs::write(group.join("cgroup.procs"), "").unwrap();
        let status = enter_control_group(&mut command, &group).unwrap().status().unwrap();
        assert!(status.success());
        assert_eq!(std::fs::read_to_string(group.join("cgroup.procs")).unwrap(), "0");
        std::fs::remove_dir_all(group).unwrap();
    }

    #[test]
    fn a_program_without_a_dynamic_linker_is_static() {
        assert!(!is_static(Path::new("/bin/sh")).unwrap());
        let mut program = std::fs::read("/bin/sh").unwrap();
        // As many program headers as none.
        program[56..58].copy_from_slice(&[0, 0]);
        let file = std::env::temp_dir().join(format!("spindle-static-{}", std::process::id()));
        std::fs::write(&file, program).unwrap();
        assert!(is_static(&file).unwrap());
        std::fs::write(&file, "#!/bin/sh\n").unwrap();
        assert!(!is_static(&file).unwrap());
        std::fs::remove_file(file).unwrap();
    }
}
