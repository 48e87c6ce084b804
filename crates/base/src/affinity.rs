//! CPU affinity (`man 2 sched_setaffinity`): a thread and what it starts stay on some of the cores, and an emulator on
//! the others.
//!
//! A client and a server that take turns wake each other with each statement: on one core that is a change of tasks, on
//! two an interrupt from one to the other. [docs/results/cpu-affinity.md] has what that makes of a test.
//!
//! [docs/results/cpu-affinity.md]: ../../../docs/results/cpu-affinity.md

use std::cell::Cell;
use std::io;
use std::marker::PhantomData;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

thread_local! {
    /// The cores that this thread could use before it was pinned.
    static BEFORE: Cell<Option<CpuSet>> = const { Cell::new(None) };
}

/// The numbers of the cores that this thread may use.
///
/// # Errors
/// The kernel does not say: it has more than [`CpuSet::MAX_CPU`].
pub fn cores() -> io::Result<Vec<usize>> {
    Ok(numbers(&sched_getaffinity(None)?).collect())
}

/// Keeps the calling thread on some cores until it is dropped. Threads and processes that it starts stay on them.
#[derive(Debug)]
#[must_use]
pub struct Pinned {
    /// It is dropped by the thread that it pinned.
    of_this_thread: PhantomData<*const ()>,
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
        Ok(Pinned { of_this_thread: PhantomData })
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if let Some(before) = BEFORE.take() {
            // Refused only if those cores are gone.
            let _ = sched_setaffinity(None, &before);
        }
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
        let (before, all) = (cores().unwrap(), of_child(false));
        let pinned = Pinned::to(1).unwrap();
        assert_eq!(cores().unwrap(), before[..1]);
        assert_eq!(of_child(false), before[0].to_string());
        // Only a machine of one core has none apart.
        let apart = before.get(1).unwrap_or(&before[0]);
        assert!(of_child(true).starts_with(&apart.to_string()), "{}", of_child(true));
        drop(pinned);
        assert_eq!((cores().unwrap(), of_child(true)), (before, all));
    }

    #[test]
    fn more_cores_than_there_are_are_all() {
        let before = cores().unwrap();
        let _pinned = Pinned::to(u32::MAX).unwrap();
        assert_eq!(cores().unwrap(), before);
    }
}
