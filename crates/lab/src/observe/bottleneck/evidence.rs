//! The figures of a verdict, and their words in its sentence.

use super::percent;
use crate::record::CPU_OTHERS;

/// The figures behind a verdict, all over the same measured window.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Evidence {
    /// Share of all cores, 0 to 1.
    pub cpu_busy: f64,
    /// Part of `cpu_busy` used by server, client and emulator.
    pub cpu_own: f64,
    /// Whether `cpu_own` is without the server, because Spindle did not start it.
    pub is_server_cpu_unknown: bool,
    pub cpu_count: u32,
    /// Busy share of the cores that the load generator's threads can use, 0 to 1. Their number is that of its
    /// threads, at most all cores.
    pub client_share: f64,
    /// The load generator's share of all cores, 0 to 1.
    pub client_cpu: f64,
    /// Terminals times duration.
    pub terminal_time_s: f64,
    /// `None` when the clients do not report it.
    pub commit_wait_s: Option<f64>,
    /// The estimate that replaces `commit_wait_s`; `None` when that is unknown as well.
    pub commits: Option<CommitEstimate>,
    /// Part of the commit time spent on a replica's acknowledgement, summed over terminals.
    pub acknowledgement_wait_s: f64,
    /// Zero where the server does not count them.
    pub foreground_reads: f64,
    /// Latency of the devices with the data.
    pub read_latency_mean_ms: f64,
    /// Name of those devices, when there are others.
    pub read_place: Option<String>,
    /// Present when the redo log has its own device.
    pub redo: Option<RedoEvidence>,
    pub lock_wait_s: f64,
    /// Share of the device's best bandwidth, 0 to 1; `None` when that is unknown.
    pub bandwidth_share: Option<f64>,
}

/// Estimate of commits without a stopwatch.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CommitEstimate {
    /// Commits that had to reach the log.
    pub count: f64,
    /// Wait of each commit for its logs, without a replica's acknowledgement.
    pub wait_ms: f64,
}

/// The device of the redo log, when it differs from that of the reads.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RedoEvidence {
    /// Name of the storage under the redo log.
    pub place: String,
    pub write_latency_mean_ms: f64,
    /// `None` where the device needs no FLUSH.
    pub flush_latency_mean_ms: Option<f64>,
}

impl RedoEvidence {
    /// A phrase that continues a sentence ending with COMMIT.
    fn words(&self) -> String {
        let flushes = match self.flush_latency_mean_ms {
            Some(ms) => format!(" and flushes of {ms:.2} ms"),
            None => String::new(),
        };
        format!(", with writes of {:.2} ms{flushes} on {}", self.write_latency_mean_ms, self.place)
    }
}

impl Evidence {
    pub(super) fn share(&self, seconds: f64) -> f64 {
        if self.terminal_time_s > 0.0 { (seconds / self.terminal_time_s).clamp(0.0, 1.0) } else { 0.0 }
    }

    /// From the stopwatch, or else from the estimate.
    pub(super) fn commit_s(&self) -> Option<f64> {
        let estimate =
            |commits: CommitEstimate| commits.count * commits.wait_ms / 1e3 + self.acknowledgement_wait_s;
        self.commit_wait_s.or(self.commits.map(estimate))
    }

    /// A clause that ends a sentence. Other programs are named where they use much, because a busy core is
    /// then no sign of the trial.
    pub(super) fn cores_words(&self) -> String {
        let (count, busy, others) = (self.cpu_count, percent(self.cpu_busy), self.cpu_busy - self.cpu_own);
        if self.is_server_cpu_unknown || others < CPU_OTHERS {
            return format!("the {count} cores were {busy} busy.");
        }
        let (own, others) = (percent(self.cpu_own), percent(others));
        format!("the {count} cores were {busy} busy, {own} with the trial and {others} with other programs.")
    }

    pub(super) fn commit_words(&self, share: f64) -> String {
        let (share, commit_s) = (percent(share), self.commit_s().unwrap_or(0.0));
        let into = match (self.commit_wait_s, self.commits) {
            (None, Some(CommitEstimate { count, .. })) => format!(
                "About {share} of the terminals' time went into {count:.0} commits of {:.2} ms each (estimated from the server's counters)",
                commit_s * 1e3 / count
            ),
            _ => format!("{share} of the terminals' time went into COMMIT"),
        };
        let redo = self.redo.as_ref().map(RedoEvidence::words).unwrap_or_default();
        let acknowledged = match self.acknowledgement_wait_s {
            0.0 => String::new(),
            wait_s => {
                let share = percent((wait_s / commit_s).min(1.0));
                format!(", {share} of it into waiting for a replica's acknowledgement")
            }
        };
        format!("{into}{redo}{acknowledged}")
    }
}
