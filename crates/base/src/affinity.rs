//! CPU affinity (`man 2 sched_setaffinity`): a thread and what it starts stay on some of the cores, and an emulator on
//! the others.
//!
//! A client and a server that take turns wake each other with each statement. On two cores that is an interrupt between
//! them, and on a virtual machine often a way through the hypervisor, because the other core had gone to sleep; on one
//! core it is a change of tasks. [docs/results/cpu-affinity.md] has what that makes of a test.
//!
//! [docs/results/cpu-affinity.md]: ../../../docs/results/cpu-affinity.md

use std::cell::Cell;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

thread_local! {
    /// The cores that this thread could use before it was pinned.
    static BEFORE: Cell<Option<CpuSet>> = const { Cell::new(None) };
}

/// Whether this thread may use a core, by its number; every core if the kernel does not say.
pub fn allows(core: usize) -> bool {
    core < CpuSet::MAX_CPU && sched_getaffinity(None).map_or(true, |allowed| allowed.is_set(core))
}

/// Keeps the calling thread on some cores until it is dropped. Threads and processes that it starts stay on them.
#[derive(Debug)]
#[must_use]
pub struct Pinned {
    before: CpuSet,
}

impl Pinned {
    /// To the first `cores` of those that the thread may use; to all of them if there are not so many.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn to(cores: u32) -> io::Result<Pinned> {
        let before = sched_getaffinity(None)?;
        let mut chosen = CpuSet::new();
        numbers(&before).take(cores as usize).for_each(|core| chosen.set(core));
        sched_setaffinity(None, &chosen)?;
        BEFORE.set(Some(before));
        Ok(Pinned { before })
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        BEFORE.set(None);
        // Refused only if those cores are gone.
        let _ = sched_setaffinity(None, &self.before);
    }
}

/// Lets the child of a thread that is [`Pinned`] run on the other cores, if there are any, or else on all.
#[expect(
    unsafe_code,
    reason = "code between fork and exec is unsafe to add; this one makes a single system call"
)]
pub fn keep_apart(command: &mut Command) -> &mut Command {
    let Some((before, pinned)) = BEFORE.get().zip(sched_getaffinity(None).ok()) else { return command };
    let mut others = before;
    numbers(&pinned).for_each(|core| others.unset(core));
    let others = if others.count() == 0 { before } else { others };
    // SAFETY: the closure runs in the forked child, where only async-signal-safe work is allowed. It makes the system
    // call sched_setaffinity, and allocates nothing.
    unsafe { command.pre_exec(move || sched_setaffinity(None, &others).map_err(io::Error::from)) }
}

fn numbers(set: &CpuSet) -> impl Iterator<Item = usize> {
    (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> CpuSet {
        sched_getaffinity(None).unwrap()
    }

    /// As the kernel lists the cores of a child, such as `0-1`.
    fn of_child(apart: bool) -> String {
        let mut command = Command::new("grep");
        command.args(["Cpus_allowed_list", "/proc/self/status"]);
        let command = if apart { keep_apart(&mut command) } else { &mut command };
        let output = String::from_utf8(command.output().unwrap().stdout).unwrap();
        output.split_once('\t').unwrap().1.trim().to_owned()
    }

    #[test]
    fn a_pinned_thread_and_its_children_stay_on_its_cores() {
        let (before, all) = (own(), of_child(false));
        let cores: Vec<usize> = numbers(&before).collect();
        let pinned = Pinned::to(1).unwrap();
        assert_eq!(numbers(&own()).collect::<Vec<_>>(), cores[..1]);
        assert!(allows(cores[0]) && cores[1..].iter().all(|core| !allows(*core)));
        assert_eq!(of_child(false), cores[0].to_string());
        // Only a machine of one core has none apart.
        let apart = if cores.len() == 1 { cores[0] } else { cores[1] };
        assert!(of_child(true).starts_with(&apart.to_string()), "{}", of_child(true));
        drop(pinned);
        assert_eq!((own(), of_child(true)), (before, all));
    }

    #[test]
    fn more_cores_than_there_are_are_all() {
        let before = own();
        let _pinned = Pinned::to(u32::MAX).unwrap();
        assert_eq!(own(), before);
        assert!(!allows(CpuSet::MAX_CPU));
    }
}
