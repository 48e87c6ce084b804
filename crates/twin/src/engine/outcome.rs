//! What a simulation found.

use spindle_model::Counters;

/// The window of a simulation.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Length of the window in nanoseconds of model time.
    pub elapsed_ns: u64,
    /// In the order of the facts' kinds.
    pub kinds: Vec<Ran>,
    pub waits: Waits,
    /// Share of the cores' time that was used.
    pub cpu_busy: f64,
    /// What each mount did within the window. Levels such as `queue_depth` are those at its end.
    pub mounts: Vec<Counters>,
    /// Rounds of the group commit.
    pub log_rounds: u64,
    /// Arrivals that found all connections busy and still wait (open loop).
    pub backlog: u64,
}

/// Transactions of one kind that ended within the window.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ran {
    /// From the intended start to the answer, in nanoseconds, in order of their ends.
    pub latencies_ns: Vec<u64>,
}

/// Time of all terminals within the window, in nanoseconds, by what they waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Waits {
    /// The processor, queueing included.
    pub cpu_ns: u64,
    pub read_ns: u64,
    pub lock_ns: u64,
    /// The lock of a file.
    pub file_ns: u64,
    pub commit_ns: u64,
    /// A clean page, or room in the log.
    pub flushing_ns: u64,
    /// No transaction (open loop).
    pub idle_ns: u64,
}

impl Outcome {
    pub fn transactions(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.latencies_ns.len() as u64).sum()
    }

    pub fn per_second(&self) -> f64 {
        self.transactions() as f64 * 1e9 / self.elapsed_ns.max(1) as f64
    }

    /// A quantile of the latencies of the kinds that `of` selects by index, in nanoseconds. `None` without a
    /// transaction.
    pub fn latency_ns(&self, quantile: f64, of: impl Fn(usize) -> bool) -> Option<u64> {
        let chosen = self.kinds.iter().enumerate().filter(|(index, _)| of(*index));
        let mut all: Vec<u64> = chosen.flat_map(|(_, kind)| kind.latencies_ns.iter().copied()).collect();
        all.sort_unstable();
        let index = (quantile * all.len() as f64).ceil() as usize;
        all.get(index.saturating_sub(1)).copied()
    }
}

impl Waits {
    pub fn total_ns(&self) -> u64 {
        self.cpu_ns + self.read_ns + self.lock_ns + self.file_ns + self.commit_ns + self.flushing_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_of_the_chosen_kinds() {
        let ran = |latencies: &[u64]| Ran { latencies_ns: latencies.to_vec() };
        let outcome = Outcome {
            elapsed_ns: 2_000_000_000,
            kinds: vec![ran(&[5, 1, 3]), ran(&[100])],
            waits: Waits::default(),
            cpu_busy: 0.0,
            mounts: vec![],
            log_rounds: 0,
            backlog: 0,
        };
        assert_eq!(outcome.latency_ns(0.5, |kind| kind == 0), Some(3));
        assert_eq!(outcome.latency_ns(1.0, |_| true), Some(100));
        assert_eq!(outcome.latency_ns(0.5, |_| false), None);
        assert_eq!(outcome.per_second(), 2.0);
    }
}
