//! The open loop: transactions start when their time has come, whether those before have been answered or
//! not.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use spindle_base::random::Random;

/// When the next transactions are to start: intervals are exponential, as those of independent customers are.
/// Terminals take one start after the other, so whichever is idle begins at that time; when none is,
/// transactions wait, and their latency counts from it.
#[derive(Debug)]
pub(super) struct Schedule {
    mean: Duration,
    next: Mutex<Next>,
}

#[derive(Debug)]
struct Next {
    random: Random,
    /// Of the transaction that nobody has taken yet; `None` before the first.
    start: Option<Instant>,
}

impl Schedule {
    pub(super) fn new(per_s: u32, seed: u64) -> Schedule {
        let random = Random::seeded(&[seed, SCHEDULE]);
        Schedule { mean: Duration::from_secs(1) / per_s, next: Mutex::new(Next { random, start: None }) }
    }

    /// The next start; the first is an interval after the first call.
    pub(super) fn take(&self) -> Instant {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let start = match next.start {
            Some(start) => start,
            None => Instant::now() + self.interval(&mut next.random),
        };
        next.start = Some(start + self.interval(&mut next.random));
        start
    }

    fn interval(&self, random: &mut Random) -> Duration {
        self.mean.mul_f64(-(1.0 - random.unit()).ln())
    }

    /// How long the first transaction that no terminal has taken waits already; zero when there is no queue.
    pub(super) fn behind(&self, now: Instant) -> Duration {
        let next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        next.start.map_or(Duration::ZERO, |start| now.saturating_duration_since(start))
    }
}

/// Tells its stream of random numbers from the terminals'.
const SCHEDULE: u64 = u64::MAX;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_are_exponential_at_the_rate() {
        let schedule = Schedule::new(1_000, 1);
        let first = schedule.take();
        let starts: Vec<Instant> = (0..20_000).map(|_| schedule.take()).collect();
        let mean_s = (starts[19_999] - first).as_secs_f64() / 20_000.0;
        assert!((mean_s - 1e-3).abs() < 3e-5, "four standard errors: {mean_s}");
        let longer_than_mean =
            starts.windows(2).filter(|pair| (pair[1] - pair[0]).as_secs_f64() > 1e-3).count();
        let share = longer_than_mean as f64 / 19_999.0;
        assert!((share - (-1.0_f64).exp()).abs() < 0.014, "four standard errors: {share}");
        // What the terminals hold is on time, however long ago it began; what comes after it is not.
        assert_eq!(schedule.behind(starts[19_999]), Duration::ZERO);
        let behind = schedule.behind(starts[19_999] + Duration::from_secs(1));
        assert_eq!(starts[19_999] + Duration::from_secs(1) - behind, schedule.take());
    }
}
