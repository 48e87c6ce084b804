//! Ctrl-C and SIGTERM: a flag that the runner checks between steps and once a second.
//!
//! The signal only sets the flag. The runner then returns, which stops the client, the server and the
//! volume in the usual order, and prints how to resume.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use spindle_base::proc::Thread;

/// Longest delay until a waiting runner notices a signal.
const POLL: Duration = Duration::from_millis(20);

/// Signals within this time are one wish: `timeout` and others send theirs to the process and once more to its group, and
/// people press a key twice.
const ONE_WISH: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

/// The user asked to stop. This is not a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("interrupted")]
pub struct Interrupted;

impl Interrupt {
    /// Listens to SIGINT and SIGTERM from now on. A signal more than a second after the first one kills as usual; the next
    /// start removes the remains.
    pub fn listen() -> Result<Interrupt> {
        let interrupt = Interrupt::default();
        let is_late = Arc::new(AtomicBool::new(false));
        let both = [SIGINT, SIGTERM];
        for signal in both {
            signal_hook::flag::register_conditional_default(signal, Arc::clone(&is_late))
                .context("listening to signals")?;
        }
        let mut signals = Signals::new(both).context("listening to signals")?;
        let is_set = Arc::clone(&interrupt.0);
        let named = std::thread::Builder::new().name("signals".to_owned());
        let waiting = named.spawn(move || {
            signals.forever().next();
            is_set.store(true, Ordering::Relaxed);
            std::thread::sleep(ONE_WISH);
            is_late.store(true, Ordering::Relaxed);
        });
        waiting.context("listening to signals")?;
        Ok(interrupt)
    }

    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub fn check(&self) -> Result<(), Interrupted> {
        if self.is_set() { Err(Interrupted) } else { Ok(()) }
    }

    /// Runs `work`, which waits for a process. A signal kills that process and the processes that `work` has
    /// started, such as a foreign tool that fills tables, so that `work` fails at once. A `process_id` of
    /// zero means no process.
    pub fn kill_on_signal<T>(&self, process_id: u32, work: impl FnOnce() -> T) -> T {
        let thread = Thread::current();
        let before = thread.children();
        let mut is_killed = false;
        let end = move || {
            if !std::mem::replace(&mut is_killed, true) {
                kill(process_id);
            }
            let started = thread.children().into_iter().filter(|id| !before.contains(id));
            started.for_each(kill);
        };
        self.end_on_signal(end, work)
    }

    /// Runs `work`. From a signal until `work` returns, `end` is called repeatedly, because `work` may be about to
    /// start something.
    pub fn end_on_signal<T>(&self, mut end: impl FnMut() + Send, work: impl FnOnce() -> T) -> T {
        let (done, is_done) = channel::<()>();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                while is_done.recv_timeout(POLL) == Err(RecvTimeoutError::Timeout) {
                    if self.is_set() {
                        end();
                    }
                }
            });
            // Dropped with the closure, also when `work` panics.
            let _done = done;
            work()
        })
    }

    pub fn sleep(&self, duration: Duration) -> Result<(), Interrupted> {
        let end = Instant::now() + duration;
        loop {
            self.check()?;
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(POLL));
        }
    }
}

fn kill(process_id: u32) {
    if let Some(process) = i32::try_from(process_id).ok().and_then(Pid::from_raw) {
        // Fails only if the process is gone already.
        let _ = kill_process(process, Signal::KILL);
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_wait_for_a_process_ends_with_the_signal() {
        let interrupt = Interrupt::default();
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        let raiser = interrupt.clone();
        let raised = std::thread::spawn(move || {
            std::thread::sleep(3 * POLL);
            raiser.0.store(true, Ordering::Relaxed);
        });
        let status = interrupt.kill_on_signal(child.id(), || child.wait().unwrap());
        raised.join().unwrap();
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(Signal::KILL.as_raw()));
    }

    #[test]
    fn a_signal_ends_only_the_processes_of_the_work() {
        let sleep = || Command::new("sleep").arg("600").spawn().unwrap();
        let interrupt = Interrupt::default();
        let mut earlier = sleep();
        let status = interrupt.kill_on_signal(0, || {
            let mut child = sleep();
            interrupt.0.store(true, Ordering::Relaxed);
            child.wait().unwrap()
        });
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(Signal::KILL.as_raw()));
        assert_eq!(earlier.try_wait().unwrap(), None);
        earlier.kill().unwrap();
        earlier.wait().unwrap();
    }

    #[test]
    fn without_a_signal_nothing_is_killed() {
        let status = |child: &mut std::process::Child| child.wait().unwrap();
        let mut child = Command::new("sleep").arg("0.1").spawn().unwrap();
        assert!(Interrupt::default().kill_on_signal(child.id(), || status(&mut child)).success());
    }
}
