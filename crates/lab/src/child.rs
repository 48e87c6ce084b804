//! Child processes that never outlive us: a server or a load generator left behind would ruin the next trial.

use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{Signal, set_parent_process_death_signal};

/// Asks the kernel to kill the child when the *thread* that spawns it ends. Spawn from a thread that lives as long as
/// the child is needed.
#[expect(
    unsafe_code,
    reason = "code between fork and exec is unsafe to add; this one makes a single system call"
)]
pub fn die_with_parent(command: &mut Command) -> &mut Command {
    let request = || set_parent_process_death_signal(Some(Signal::KILL)).map_err(std::io::Error::from);
    // SAFETY: the closure runs in the forked child, where only async-signal-safe work is allowed. It makes the
    // system call prctl and allocates nothing.
    unsafe { command.pre_exec(request) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    #[test]
    fn a_child_dies_with_the_thread_that_spawned_it() {
        let spawned =
            std::thread::spawn(|| die_with_parent(Command::new("sleep").arg("600")).spawn().unwrap());
        let mut child = spawned.join().unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(Signal::KILL.as_raw()));
    }
}
