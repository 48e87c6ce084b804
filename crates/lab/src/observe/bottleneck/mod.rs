//! The bottleneck of a trial, and the warnings for the reader. Pure functions of a few figures.
//!
//! The shares are estimates from independent counters and need not add up to one:
//! * `read`: foreground reads times the mean latency of reads as the kernel saw it, over the terminals' time.
//!   Foreground reads are the reads that a transaction waited for, as the server counts them, without
//!   read-ahead; at most as many as reached the device below the page cache. The kernel's latency includes
//!   time behind a FLUSH. In a ZFS pool, reads of the data disk and of the cache device count together; hits
//!   in its memory (ARC) do not count.
//! * `commit`: the terminals' own stopwatch around COMMIT. Where transactions commit within a statement, or a
//!   foreign tool keeps no stopwatch, an estimate replaces it (`measurement/commits.rs`; METHODOLOGY.md
//!   compares it with the stopwatch). The estimate is the server's number of commits, times a write and a
//!   FLUSH of each log that a commit waits for, as the kernel saw them. The same time is added once more in
//!   proportion to the share of the time in which the other terminals keep the log busy. The estimate is zero
//!   where the settings let a commit return without waiting. A semi-synchronous primary's wait for a replica
//!   is included in the stopwatch, and added to the estimate.
//! * `locks`: time that sessions waited for locks: as summed by the server, or from the number of waiting
//!   sessions once a second.
//! * `cpu`: busy share of all cores of the machine.
//! * `bandwidth`: bytes moved over the device's best bandwidth, where that is known.
//!
//! The first rule that holds decides:
//! 1. `client`: the load generator used [`CLIENT_BUSY`] of the cores that its threads can use. Nothing behind
//!    it was tested.
//! 2. `cpu`: the cores were busy for [`CPU_BUSY`], and [`CPU_OWN`] of all cores with the trial itself. Waits
//!    then include waits for a core, so they prove nothing. Other processes that keep the cores busy cause a
//!    warning instead.
//! 3. `bandwidth`: [`BANDWIDTH_BUSY`] of the device's bandwidth was used.
//! 4. The largest of `read`, `commit` and `locks`, if it is at least [`WAIT_SHARE`]. Locks win only if they
//!    exceed reads and commits together: a lock is held as long as its owner waits for the disk.
//! 5. Otherwise unknown, and the sentence states the shares.

mod evidence;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use crate::record::{Bottleneck, BottleneckKind, CPU_BUSY, CPU_OWN, NeverSettled, Warning};
pub use evidence::{CommitEstimate, Evidence, RedoEvidence};

pub const CLIENT_BUSY: f64 = 0.80;
pub const BANDWIDTH_BUSY: f64 = 0.80;
pub const WAIT_SHARE: f64 = 0.30;

/// A smaller share of the requests' time is invisible in a mean latency.
const LATE_SHARE: f64 = 0.02;
/// A queue this long at the end of a window is more than a momentary delay.
const BEHIND_S: f64 = 0.5;
/// Reads of the host's disk per request to the emulated one.
const HOST_READ_SHARE: f64 = 0.001;

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

pub fn verdict(evidence: &Evidence) -> Bottleneck {
    let read = evidence.share(evidence.foreground_reads * evidence.read_latency_mean_ms / 1e3);
    let commit_s = evidence.commit_s();
    let commit = evidence.share(commit_s.unwrap_or(0.0));
    let locks = evidence.share(evidence.lock_wait_s);
    let other = (1.0 - read - commit - locks).max(0.0);
    let mut shares = BTreeMap::from(
        [("read", read), ("locks", locks), ("other", other), ("cpu", evidence.cpu_busy)]
            .map(|(name, share)| (name.to_owned(), share)),
    );
    shares.extend(commit_s.map(|_| ("commit".to_owned(), commit)));
    shares.extend(evidence.bandwidth_share.map(|share| ("bandwidth".to_owned(), share)));

    let cores = evidence.cores_words();
    let bandwidth = evidence.bandwidth_share.unwrap_or(0.0);
    let (kind, reason) = if evidence.client_share >= CLIENT_BUSY {
        let share = percent(evidence.client_share);
        let reason = format!("The load generator used {share} of the cores that its threads can use.");
        (BottleneckKind::Client, reason)
    } else if evidence.cpu_busy >= CPU_BUSY && evidence.cpu_own >= CPU_OWN {
        (BottleneckKind::Cpu, cores.replacen('t', "T", 1))
    } else if bandwidth >= BANDWIDTH_BUSY {
        (BottleneckKind::Bandwidth, format!("{} of the device's bandwidth was used.", percent(bandwidth)))
    } else if locks >= WAIT_SHARE && locks > read + commit {
        (
            BottleneckKind::Locks,
            format!("{} of the terminals' time went into row locks; {cores}", percent(locks)),
        )
    } else if read >= WAIT_SHARE && read >= commit {
        let from = evidence.read_place.as_ref().map(|place| format!(" from {place}"));
        let reason = format!(
            "{} of the terminals' time went into {:.0} reads of {:.2} ms each{}; {cores}",
            percent(read),
            evidence.foreground_reads,
            evidence.read_latency_mean_ms,
            from.unwrap_or_default()
        );
        (BottleneckKind::ReadLatency, reason)
    } else if commit >= WAIT_SHARE {
        (BottleneckKind::CommitLatency, format!("{}; {cores}", evidence.commit_words(commit)))
    } else {
        let reason = format!(
            "No single cause: reads took {} of the terminals' time, commits {}, row locks {}; {cores}",
            percent(read),
            match (evidence.commit_wait_s, commit_s) {
                (Some(_), _) => percent(commit),
                (None, Some(_)) => format!("about {}", percent(commit)),
                (None, None) => "an unknown part".to_owned(),
            },
            percent(locks)
        );
        (BottleneckKind::Unknown, reason)
    };
    Bottleneck { kind, shares, reason }
}

/// Further figures for warnings.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Symptoms {
    /// Without an emulator, the emulators' figures are zero.
    pub scheduler: Option<String>,
    pub requests: u64,
    /// As a share of the requests' time.
    pub late_share: f64,
    pub lateness_p99_us: f64,
    pub major_faults: u64,
    /// Whether at least one emulator was refused the flag.
    pub io_flusher_refused: bool,
    pub transactions: u64,
    pub failed_transactions: u64,
    /// For an open loop: lateness of the transactions' starts at the end.
    pub behind_s: f64,
    pub transactions_per_s: Vec<f64>,
    /// The load before the window had not become steady in its time.
    pub never_settled: Option<NeverSettled>,
}

pub fn warnings(evidence: &Evidence, symptoms: &Symptoms) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if let Some(scheduler) = &symptoms.scheduler {
        if symptoms.late_share >= LATE_SHARE {
            warnings.push(Warning::Late { p99_us: symptoms.lateness_p99_us, share: symptoms.late_share });
        }
        if scheduler != "SCHED_FIFO" {
            warnings.push(Warning::NoRealTime);
        }
        if symptoms.io_flusher_refused {
            warnings.push(Warning::NoIoFlusher);
        }
        if symptoms.major_faults as f64 > symptoms.requests as f64 * HOST_READ_SHARE {
            warnings.push(Warning::HostDiskReads { major_faults: symptoms.major_faults });
        }
    }
    let own = (!evidence.is_server_cpu_unknown).then_some(evidence.cpu_own);
    warnings.extend(Warning::of_cores(evidence.cpu_busy, own, evidence.client_cpu));
    if evidence.client_share >= CLIENT_BUSY {
        warnings.push(Warning::ClientSaturated { share: evidence.client_share });
    }
    if symptoms.behind_s >= BEHIND_S {
        warnings.push(Warning::BehindSchedule { behind_s: symptoms.behind_s });
    }
    let drift = spindle_stats::trend(&symptoms.transactions_per_s).map(|drift| drift.relative);
    if drift.is_some() || symptoms.never_settled.is_some() {
        let never_settled = symptoms.never_settled.clone();
        warnings.push(Warning::NotSteady { drift: drift.unwrap_or(0.0), never_settled });
    }
    if symptoms.failed_transactions > 0 {
        let all = symptoms.transactions + symptoms.failed_transactions;
        warnings
            .push(Warning::TransactionsFailed { share: symptoms.failed_transactions as f64 / all as f64 });
    }
    warnings
}
