//! The warnings for the reader of a trial.

use super::CLIENT_BUSY;
use crate::record::{Evidence, NeverSettled, Warning};

/// A smaller share of the requests' time is invisible in a mean latency.
const LATE_SHARE: f64 = 0.02;
/// A queue this long at the end of a window is more than a momentary delay.
const BEHIND_S: f64 = 0.5;
/// Reads of the host's disk per request to the emulated one.
const HOST_READ_SHARE: f64 = 0.001;

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
    if evidence.client_share >= CLIENT_BUSY && !evidence.is_client_the_database {
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
