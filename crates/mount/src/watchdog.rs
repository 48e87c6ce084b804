//! Detects an emulator that does not answer, and ends it.
//!
//! An emulator hangs if a signal stopped it or if it waits for its own disk. The users of its disk (the
//! server, mkfs, an unmounting process) then wait inside the kernel, where not even SIGKILL reaches them.
//! They continue, with errors, once the emulator is dead and its FUSE connection is aborted (Linux,
//! Documentation/filesystems/fuse/fuse.rst). The watchdog does both. Its times are about this machine, so
//! they are real under any dilation.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use spindle_base::proc;

use crate::control;
use crate::serve::{fuse_directory, socket};
use crate::system::{kill, wait_until};

/// File in the state directory that identifies the emulator's process.
pub(crate) const PROCESS_FILE: &str = "pid";
/// [`PROCESS_FILE`] while it is written.
pub(crate) const PROCESS_DRAFT: &str = "pid.new";
/// File in the state directory with the emulator's output.
pub(crate) const LOG_FILE: &str = "log";
/// Period of the probes.
const EVERY: Duration = Duration::from_secs(1);
/// A single silent probe may be an accident, for example after the machine was suspended.
const SILENT_PROBES_MAX: u32 = 3;
/// A single wait inside the kernel of this length means that the emulator waits for itself. Applies when a
/// user wants the disk gone.
const STUCK_TIME: Duration = Duration::from_secs(5);
/// The same for a disk in use, whose host may be slow.
const STUCK_TIME_IN_USE: Duration = Duration::from_secs(60);
const ABORT_TIME: Duration = Duration::from_secs(5);

/// Ends the emulator when it stops answering, until this is dropped.
#[derive(Debug)]
pub(crate) struct Watchdog {
    /// Dropping it ends the thread.
    _end: Sender<()>,
}

impl Watchdog {
    pub(crate) fn start(state: &Path, process: u32) -> Result<Watchdog> {
        let (end, ended) = channel();
        let state: PathBuf = state.to_owned();
        let watch = move || {
            let mut silent_probes = 0;
            while ended.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                silent_probes = if control::answers(&socket(&state)) { 0 } else { silent_probes + 1 };
                let is_silent = silent_probes >= SILENT_PROBES_MAX;
                if !is_silent && !is_stuck(process, STUCK_TIME_IN_USE) {
                    continue;
                }
                // Unless it was taken down meanwhile.
                if ended.recv_timeout(Duration::ZERO) == Err(RecvTimeoutError::Timeout) {
                    end_at_once(&state, process, if is_silent { "did not answer" } else { "was stuck" });
                }
                return;
            }
        };
        std::thread::Builder::new()
            .name("watchdog".to_owned())
            .spawn(watch)
            .context("starting a watchdog")?;
        Ok(Watchdog { _end: end })
    }
}

/// Writes [`PROCESS_FILE`], process number and start time, at once: no reader sees half of it.
pub(crate) fn write_identity(state: &Path, process: u32) -> Result<()> {
    let identity = format!("{process} {}", proc::started_at_ticks(process).unwrap_or(0));
    let draft = state.join(PROCESS_DRAFT);
    let written = std::fs::write(&draft, identity);
    let written = written.and_then(|()| std::fs::rename(&draft, state.join(PROCESS_FILE)));
    written.with_context(|| format!("writing {}", state.join(PROCESS_FILE).display()))
}

/// The emulator's process, if it is alive and really is this disk's.
pub(crate) fn emulator_of(state: &Path) -> Option<u32> {
    let text = std::fs::read_to_string(state.join(PROCESS_FILE)).ok()?;
    let (process, started) = text.trim().split_once(' ')?;
    let process = process.parse().ok()?;
    (proc::started_at_ticks(process) == started.parse().ok()).then_some(process)
}

/// Whether a living emulator does not answer, or is stuck.
pub(crate) fn is_silent(state: &Path, process: u32) -> bool {
    !control::answers(&socket(state)) || is_stuck(process, STUCK_TIME)
}

/// Kills the emulator, and lets the users of its disk continue with errors. `why` becomes the last line of
/// its log.
pub(crate) fn end_at_once(state: &Path, process: u32, why: &str) {
    if emulator_of(state) != Some(process) {
        return;
    }
    if let Ok(mut log) = OpenOptions::new().append(true).open(state.join(LOG_FILE)) {
        // A failure loses only the log line.
        let _ = writeln!(log, "it {why} and was killed");
    }
    kill(process);
    abort(state);
}

/// Aborts the FUSE connection: every request to the FUSE file fails from now on. Only this ends an emulator
/// that waits for its own disk. False if the kernel does not finish: a thread of the emulator that waits
/// inside io_uring holds a lock that the abort needs. A separate process makes the call, so the caller need
/// not wait for it.
pub(crate) fn abort(state: &Path) -> bool {
    let mut umount = Command::new("umount");
    // Avoid access to the mount point, which might not answer either.
    umount.args(["--internal-only", "--no-canonicalize", "--force"]).arg(fuse_directory(state));
    umount.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(mut umount) = umount.spawn() else { return false };
    // The file system stays mounted while a loop device has the file open. The abort comes before that check.
    wait_until(ABORT_TIME, || !matches!(umount.try_wait(), Ok(None)))
}

/// Whether a thread of the process has been in a single uninterruptible wait for that long. Threads of the
/// control socket are exempt, because they write snapshots.
fn is_stuck(process: u32, patience: Duration) -> bool {
    let started = Instant::now();
    let mut stuck = waits(process);
    while !stuck.is_empty() && started.elapsed() < patience {
        sleep(Duration::from_millis(50));
        let now = waits(process);
        stuck.retain(|thread, switches| now.get(thread) == Some(switches));
    }
    !stuck.is_empty()
}

/// Threads in an uninterruptible wait, with their numbers of context switches. While that number is constant
/// it is the same wait.
fn waits(process: u32) -> BTreeMap<u32, u64> {
    let wait = |thread| Some((thread, uninterruptible_wait(&proc::thread_status(process, thread))?));
    proc::threads(process).filter_map(wait).collect()
}

/// Context switches of a thread in an uninterruptible wait, from its `status` (proc(5)).
fn uninterruptible_wait(status: &str) -> Option<u64> {
    let field = |name: &str| proc::field(status, name, ':');
    let waits = field("State")?.starts_with('D') && field("Name")? != control::THREAD;
    let switches = |name: &str| field(name)?.parse::<u64>().ok();
    waits.then_some(switches("voluntary_ctxt_switches")? + switches("nonvoluntary_ctxt_switches")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, state: &str, expect: Option<u64>) {
        let status = format!(
            "Name:\t{name}\nState:\t{state}\nvoluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t2\n"
        );
        assert_eq!(uninterruptible_wait(&status), expect, "{status}");
    }

    #[test]
    fn a_thread_that_serves_the_disk_and_waits_in_the_kernel_may_be_stuck() {
        check("ring", "D (disk sleep)", Some(9));
    }

    #[test]
    fn a_thread_that_works_or_writes_a_snapshot_is_not_stuck() {
        check("ring", "S (sleeping)", None);
        check("ring", "R (running)", None);
        check(control::THREAD, "D (disk sleep)", None);
        assert!(!is_stuck(std::process::id(), Duration::from_secs(60)));
    }
}
