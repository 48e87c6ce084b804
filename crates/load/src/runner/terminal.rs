//! The thread of one terminal.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Barrier, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::conversation::Message;
use super::schedule::Schedule;
use crate::sql::waits;
use crate::workload::{Client, Failure, Outcome};

/// Failures in a row after which a terminal ends the run.
const MAXIMUM_FAILURES_IN_A_ROW: u32 = 20;
/// The longest delay until a stop is noticed.
const LONGEST_SLEEP: Duration = Duration::from_millis(100);
/// Error messages may contain data. Kinds beyond this number are counted together.
const MAXIMUM_ERROR_KINDS: usize = 20;

#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    pub(super) kind: u8,
    pub(super) rolled_back: bool,
    pub(super) retries: u32,
    pub(super) latency_us: u64,
}

/// Time spent waiting for COMMIT; `None` as soon as a transaction does not report it.
#[derive(Debug, Clone, Copy)]
pub(super) struct CommitWait(pub(super) Option<Duration>);

impl Default for CommitWait {
    fn default() -> CommitWait {
        CommitWait(Some(Duration::ZERO))
    }
}

impl CommitWait {
    pub(super) fn add(&mut self, wait: Option<Duration>) {
        self.0 = self.0.zip(wait).map(|(sum, wait)| sum + wait);
    }
}

/// Samples of a terminal since the last call.
#[derive(Debug, Default)]
pub(super) struct Samples {
    pub(super) ended: Vec<Sample>,
    /// Kinds of the transactions that failed.
    pub(super) failed: Vec<u8>,
    pub(super) commit_wait: CommitWait,
    /// Time from sending to the answer, failures included.
    pub(super) busy: Duration,
    pub(super) errors: BTreeMap<String, u64>,
    /// Client CPU time by kind, if clients report it.
    pub(super) client_cpu: BTreeMap<u8, Duration>,
}

impl Samples {
    fn end(&mut self, kind: usize, latency: Duration, outcome: &Outcome) {
        self.commit_wait.add(outcome.commit_wait);
        if let Some(cpu) = outcome.client_cpu {
            *self.client_cpu.entry(kind as u8).or_default() += cpu;
        }
        self.ended.push(Sample {
            kind: kind as u8,
            rolled_back: outcome.rolled_back,
            retries: outcome.retries,
            latency_us: latency.as_micros() as u64,
        });
    }

    fn fail(&mut self, kind: usize, message: String) {
        self.failed.push(kind as u8);
        count_error(&mut self.errors, message, 1);
    }
}

pub(super) fn count_error(errors: &mut BTreeMap<String, u64>, message: String, count: u64) {
    let known = errors.contains_key(&message) || errors.len() < MAXIMUM_ERROR_KINDS;
    *errors.entry(if known { message } else { "other errors".to_owned() }).or_default() += count;
}

/// A result with the commit wait of an engine in this process. Its stopwatch takes precedence, because it also
/// times a statement that commits, and leaves locks out.
fn by_the_engine(
    result: Result<Outcome, Failure>,
    commit_wait: Option<Duration>,
) -> Result<Outcome, Failure> {
    let timed = |outcome: Outcome| Outcome { commit_wait: commit_wait.or(outcome.commit_wait), ..outcome };
    result.map(timed)
}

/// State that the coordinator and a terminal share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) stop: Arc<AtomicBool>,
    /// All terminals begin together.
    pub(super) start: Arc<Barrier>,
    /// The schedule of the open loop.
    pub(super) schedule: Option<Arc<Schedule>>,
    pub(super) samples: Arc<Mutex<Samples>>,
    /// Fixed work: the client ends by itself.
    pub(super) once: bool,
}

impl Shared {
    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// False if it was stopped.
    fn sleep_until(&self, time: Instant) -> bool {
        while !self.is_stopped() {
            let left = time.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            std::thread::sleep(left.min(LONGEST_SLEEP));
        }
        false
    }

    /// Records the result of a transaction. Returns the reason if the terminal cannot continue.
    fn note(
        &self,
        kind: usize,
        latency: Duration,
        busy: Duration,
        result: Result<Outcome, Failure>,
        failures_in_a_row: &mut u32,
    ) -> Option<String> {
        let mut samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        samples.busy += busy;
        match result {
            Ok(outcome) => {
                samples.end(kind, latency, &outcome);
                *failures_in_a_row = 0;
                None
            }
            Err(Failure::Transaction(message)) => {
                samples.fail(kind, message.clone());
                *failures_in_a_row += 1;
                (*failures_in_a_row == MAXIMUM_FAILURES_IN_A_ROW)
                    .then(|| format!("{failures_in_a_row} failures in a row, the last: {message}"))
            }
            Err(Failure::Fatal(message)) => Some(message),
        }
    }

    fn pause(&self, duration: Duration) -> bool {
        duration.is_zero() || self.sleep_until(Instant::now() + duration)
    }
}

/// True if fixed work is done. A failure is sent to the coordinator and ends it too.
fn is_done(client: &mut dyn Client, messages: &Sender<Message>) -> bool {
    let message = match client.is_through() {
        Ok(false) => return false,
        Ok(true) => Message::Through,
        Err(Failure::Transaction(message) | Failure::Fatal(message)) => Message::Fatal(message),
    };
    // Sending fails if the coordinator has already given up.
    let _ = messages.send(message);
    true
}

/// Runs until it is stopped. A failure that ends the run is sent, not returned.
pub(super) fn run(mut client: Box<dyn Client>, shared: &Shared, messages: &Sender<Message>) {
    let mut failures_in_a_row = 0;
    // The default timer slack of 50 us delays every start by as much as a quick answer takes. The call fails
    // only where the kernel lacks it.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    shared.start.wait();
    while !shared.is_stopped() {
        if shared.once && is_done(&mut *client, messages) {
            return;
        }
        let kind = client.choose();
        let intended_start = match &shared.schedule {
            Some(schedule) => schedule.take(),
            None => Instant::now() + client.pause_before(),
        };
        if !shared.sleep_until(intended_start) {
            return;
        }
        // Those of an earlier step.
        waits::take_commit();
        let sent = Instant::now();
        let result = client.execute();
        let answered = Instant::now();
        let result = by_the_engine(result, waits::take_commit());
        // Without a schedule an overlong sleep is not part of the latency.
        let latency = answered - if shared.schedule.is_some() { intended_start } else { sent };
        let fatal = shared.note(kind, latency, answered - sent, result, &mut failures_in_a_row);
        if let Some(message) = fatal {
            // Sending fails if the coordinator has already given up.
            let _ = messages.send(Message::Fatal(message));
            return;
        }
        if shared.schedule.is_none() && !shared.pause(client.pause_after()) {
            return;
        }
    }
}

/// Reports a panic of a terminal's thread to the coordinator, which would wait for the thread forever.
#[derive(Debug)]
pub(super) struct PanicReport(pub(super) Sender<Message>);

impl Drop for PanicReport {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = self.0.send(Message::Fatal("a terminal panicked; its message is above".to_owned()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_commit_that_nobody_timed_makes_the_sum_unknown() {
        let mut wait = CommitWait::default();
        wait.add(Some(Duration::from_millis(2)));
        wait.add(Some(Duration::from_millis(3)));
        assert_eq!(wait.0, Some(Duration::from_millis(5)));
        wait.add(None);
        wait.add(Some(Duration::from_millis(3)));
        assert_eq!(wait.0, None);
    }
}
