//! The open loop: transactions start on a schedule, independent of earlier answers.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use spindle_base::random::Random;

/// Start times of the next transactions. Intervals are exponential, like those of independent customers.
/// Terminals take one start time after the other, so that an idle terminal starts each transaction on time.
/// If no terminal is idle, transactions queue, and their latency counts from the start time.
#[derive(Debug)]
pub(super) struct Schedule {
    /// Interval at the workload's own rate.
    mean: Duration,
    next: Mutex<Next>,
}

#[derive(Debug)]
struct Next {
    random: Random,
    /// The start time of the first transaction in the queue; `None` before the first call.
    start: Option<Instant>,
    /// The rate is so many times the workload's own.
    times: f64,
}

impl Schedule {
    pub(super) fn new(per_s: u32, seed: u64) -> Schedule {
        let random = Random::seeded(&[seed, SCHEDULE]);
        Schedule {
            mean: Duration::from_secs(1) / per_s,
            next: Mutex::new(Next { random, start: None, times: 1.0 }),
        }
    }

    /// The next start time. The first is one interval after the first call.
    pub(super) fn take(&self) -> Instant {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let start = match next.start {
            Some(start) => start,
            None => Instant::now() + self.interval(&mut next),
        };
        next.start = Some(start + self.interval(&mut next));
        start
    }

    fn interval(&self, next: &mut Next) -> Duration {
        self.mean.mul_f64(-(1.0 - next.random.unit()).ln() / next.times)
    }

    /// From the next interval on. The intervals have no memory, so the one that runs may end as it would have.
    pub(super) fn set_times(&self, times: f64) {
        self.next.lock().unwrap_or_else(PoisonError::into_inner).times = times;
    }

    /// How long the first transaction in the queue has waited; zero if the queue is empty.
    pub(super) fn behind(&self, now: Instant) -> Duration {
        let next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        next.start.map_or(Duration::ZERO, |start| now.saturating_duration_since(start))
    }
}

/// Separates its random numbers from those of the terminals.
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
        // The starts that terminals have taken are on time, however long ago; the next start is late.
        assert_eq!(schedule.behind(starts[19_999]), Duration::ZERO);
        let behind = schedule.behind(starts[19_999] + Duration::from_secs(1));
        assert_eq!(starts[19_999] + Duration::from_secs(1) - behind, schedule.take());
    }
}
