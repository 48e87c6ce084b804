//! Settings of the kernel with which a thread answers on time.
//!
//! The reasons: `reference` figures in METHODOLOGY.md. A timer with default slack wakes 50 us late. Without
//! SCHED_FIFO it wakes milliseconds late when the database uses every core. A swapped or reclaimed page of
//! the emulator would need the very disk that it emulates.

#![expect(unsafe_code, reason = "scheduling policy has no safe wrapper in rustix")]

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::num::NonZeroU64;
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use rustix::mm::{MlockAllFlags, mlockall};
use rustix::process::{
    Signal, configure_io_flusher_behavior, is_io_flusher, set_parent_process_death_signal,
};
use rustix::thread::set_current_timer_slack;
use spindle_base::proc::thread_cpu;

/// Keeps idle cores ready to run, for as long as the file is open (Linux,
/// Documentation/power/pm_qos_interface.rst).
///
/// In a virtual machine an idle core halts, and waking it takes the hypervisor 30 us or more. A request
/// through FUSE needs three wake-ups. Closing the file undoes the setting, however the process ends.
pub(crate) fn keep_cores_awake() -> Option<File> {
    let mut file = OpenOptions::new().write(true).open("/dev/cpu_dma_latency").ok()?;
    file.write_all(&0_i32.to_ne_bytes()).ok()?;
    Some(file)
}

/// Priority of the answering thread: above the receiving threads, below the kernel's own (50 and more). Both
/// numbers are odd, by which [`crate::workers`] recognises its own.
pub(crate) const ANSWERING: i32 = 23;
pub(crate) const RECEIVING: i32 = 13;

/// Puts the calling thread, and threads that it will start, under SCHED_FIFO. False if the kernel refuses.
pub(crate) fn set_fifo(priority: i32) -> bool {
    set_fifo_of(0, priority)
}

/// Keeps a thread under SCHED_FIFO that computes without a pause.
///
/// The kernel stops real-time threads that use a core for more than 0.95 s of a second until that second is
/// over (sched_rt_runtime_us, Documentation/scheduler/sched-rt-group.rst), even if nobody else wants the
/// core: 50 ms in which nothing is answered. So such a thread spends a part of its time under the normal
/// policy instead, at the best nice value, where it only shares the core.
#[derive(Debug)]
pub(crate) struct Allowance {
    priority: i32,
    looked_at: Instant,
    window_began: Instant,
    used_before: Duration,
    is_spent: bool,
}

impl Allowance {
    const WINDOW: Duration = Duration::from_millis(100);
    const SHARE: f64 = 0.9;
    const LOOK: Duration = Duration::from_millis(1);
    const NICE: i32 = -20;

    /// For the calling thread, which was put under SCHED_FIFO at this priority.
    pub(crate) fn new(priority: i32) -> Allowance {
        // Without the right to it the thread shares the core as others do.
        let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), Allowance::NICE);
        let now = Instant::now();
        Allowance { priority, looked_at: now, window_began: now, used_before: thread_cpu(), is_spent: false }
    }

    /// To be called often.
    pub(crate) fn look(&mut self) {
        let now = Instant::now();
        if now - self.looked_at < Allowance::LOOK {
            return;
        }
        self.looked_at = now;
        if now - self.window_began >= Allowance::WINDOW {
            self.window_began = now;
            self.used_before = thread_cpu();
            if std::mem::take(&mut self.is_spent) {
                set_fifo(self.priority);
            }
        } else if !self.is_spent
            && thread_cpu() - self.used_before > Allowance::WINDOW.mul_f64(Allowance::SHARE)
        {
            self.is_spent = true;
            set_other(0);
        }
    }
}

/// As [`set_fifo`], for another thread; 0 is the calling one.
pub(crate) fn set_fifo_of(thread: u32, priority: i32) -> bool {
    set_policy(thread, libc::SCHED_FIFO, priority)
}

/// Puts a thread back under the normal policy; 0 is the calling one.
pub(crate) fn set_other(thread: u32) {
    set_policy(thread, libc::SCHED_OTHER, 0);
}

fn set_policy(thread: u32, policy: libc::c_int, priority: i32) -> bool {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: the pointer is to a live, initialised struct.
    unsafe { libc::sched_setscheduler(thread as libc::pid_t, policy, &parameters) == 0 }
}

/// The priority of a thread under SCHED_FIFO, `None` under any other policy.
pub(crate) fn fifo_priority(thread: u32) -> Option<i32> {
    let mut parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the pointer is to a live struct, which the kernel fills.
    let (policy, known) = unsafe {
        (
            libc::sched_getscheduler(thread as libc::pid_t),
            libc::sched_getparam(thread as libc::pid_t, &mut parameters),
        )
    };
    (policy == libc::SCHED_FIFO && known == 0).then_some(parameters.sched_priority)
}

/// Sets the timer slack of the calling thread to one nanosecond.
pub(crate) fn set_timer_slack() {
    // Supported since Linux 2.6.28.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
}

/// Keeps the process's present pages in memory. Also tells the kernel that it serves a block device, so that
/// memory reclaim never waits for it (PR_SET_IO_FLUSHER, Linux 5.6). Both are refused without privilege: see
/// [`has_io_flusher`].
pub(crate) fn protect_process() {
    let _ = configure_io_flusher_behavior(true);
    // Locks the present mappings, before that of the store exists.
    let _ = mlockall(MlockAllFlags::CURRENT);
}

/// Whether memory reclaim spares emulators of this process's privilege. Without CAP_SYS_RESOURCE the kernel
/// neither reports nor grants it. When memory is short, reclaim may then wait for ever for the very disk that
/// the waiting thread emulates.
pub fn has_io_flusher() -> bool {
    is_io_flusher().is_ok()
}

/// Sends this process SIGTERM when the thread that started it ends, so that a killed run leaves no emulator.
pub(crate) fn die_with_parent() {
    // Every existing signal is accepted.
    let _ = set_parent_process_death_signal(Some(Signal::TERM));
}

/// Page faults of this process that read from the host's disk.
pub(crate) fn major_faults() -> u64 {
    getrusage(UsageWho::RUSAGE_SELF).map_or(0, |usage| usage.major_page_faults() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_computes_without_a_pause_gives_its_priority_up_for_a_while() {
        let thread = std::thread::spawn(|| {
            if !set_fifo(ANSWERING) {
                assert!(std::env::var_os("CI").is_none(), "CI must grant SCHED_FIFO");
                eprintln!("skipped: no SCHED_FIFO");
                return;
            }
            let mut allowance = Allowance::new(ANSWERING);
            let mut seen = vec![Some(ANSWERING)];
            let end = Instant::now() + 4 * Allowance::WINDOW;
            while Instant::now() < end {
                allowance.look();
                let priority = fifo_priority(0);
                if seen.last() != Some(&priority) {
                    seen.push(priority);
                }
            }
            assert!(seen.starts_with(&[Some(ANSWERING), None, Some(ANSWERING)]), "{seen:?}");
        });
        thread.join().unwrap();
    }
}
