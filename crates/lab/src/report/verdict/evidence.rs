//! What the records of a cell say about its limits besides the storage.

use super::{CellOf, Limit};
use crate::record::{BottleneckKind, FileClass, Measurement, Trial, Warning};
use crate::report::Records;
use crate::report::format::percent;
use crate::report::view::measured;
use spindle_base::text::plural;

/// The facts of the measured trials of a cell.
pub(super) struct Evidence {
    trial_count: usize,
    /// In at least half of the trials: the number of trials, and the busy share of all cores.
    cores: Option<(usize, f64)>,
    client_trials: usize,
    late_trials: usize,
    /// Part of all request time that was lateness, as a mean over the trials.
    pub(super) late_share: f64,
    /// Per transaction. `None` where nothing counted them.
    pub(super) reads: Option<f64>,
    pub(super) flushed_at_commit: Option<Vec<FileClass>>,
    /// Memory that the storage itself caches data in.
    pub(super) storage_memory_bytes: u64,
}

impl Evidence {
    pub(super) fn of(side: CellOf<'_>) -> Evidence {
        let trials = measured(side.records, &side.cell.name);
        let late: Vec<f64> = trials.iter().filter_map(|(trial, _)| late_share(trial)).collect();
        let client = trials.iter().filter(|(trial, measurement)| is_of_client(trial, measurement));
        let reads: Option<Vec<f64>> = trials.iter().map(|(_, measurement)| reads(measurement)).collect();
        let zfs = side.cell.stacks().filter_map(|stack| stack.zfs.as_ref());
        Evidence {
            trial_count: trials.len(),
            cores: cores(&trials),
            client_trials: client.count(),
            late_trials: late.len(),
            late_share: late.iter().sum::<f64>() / trials.len().max(1) as f64,
            reads: reads.and_then(|reads| spindle_stats::mean(&reads)),
            flushed_at_commit: trials.iter().find_map(|(_, m)| m.flushed_at_commit.clone()),
            storage_memory_bytes: zfs.map(|zfs| zfs.arc_bytes).sum(),
        }
    }

    /// What limited the cell besides its storage, with the evidence. Cores are a fair limit to cells that
    /// differ in their programs: those ran on the same cores.
    pub(super) fn limit(&self, title: &str, cores_count: bool) -> Option<(Limit, String)> {
        let of_trials = |count: usize| format!("in {count} of {}", plural(self.trial_count, "trial"));
        if are_usual(self.client_trials, self.trial_count) {
            let words = format!("the load generator limited {title} {}", of_trials(self.client_trials));
            return Some((Limit::LoadGenerator, words));
        }
        let (count, busy) = self.cores.filter(|_| cores_count)?;
        let words = format!("the cores limited {title} ({} busy {})", percent(busy), of_trials(count));
        Some((Limit::Cores, words))
    }

    /// The same of an emulator that answered late.
    pub(super) fn lateness(&self, title: &str) -> Option<String> {
        are_usual(self.late_trials, self.trial_count).then(|| {
            let (share, count) = (percent(self.late_share), self.late_trials);
            let trials = plural(self.trial_count, "trial");
            format!(
                "the emulator answered late for {title} ({share} of all request time, {count} of {trials})"
            )
        })
    }
}

/// Whether the cores limited a cell in at least half of its trials.
pub(crate) fn is_limited_by_cores(records: &Records, cell: &str) -> bool {
    cores(&measured(records, cell)).is_some()
}

/// Whether the server put off writes of the window in at least half of a cell's trials.
pub(crate) fn puts_off_writes(records: &Records, cell: &str) -> bool {
    let trials = measured(records, cell);
    let is_one = |warning: &Warning| matches!(warning, Warning::WritesPutOff { .. });
    let count = trials.iter().filter(|(trial, _)| trial.warnings.iter().any(is_one)).count();
    are_usual(count, trials.len())
}

/// Whether so many of the trials are at least half of them.
fn are_usual(count: usize, trial_count: usize) -> bool {
    count > 0 && 2 * count >= trial_count
}

/// The trials that the cores limited, if they are at least half: their number, and the busy share of all cores.
fn cores(trials: &[(&Trial, &Measurement)]) -> Option<(usize, f64)> {
    let busy: Vec<f64> = trials.iter().filter_map(|(trial, _)| busy_share(trial)).collect();
    let share = spindle_stats::mean(&busy).filter(|_| are_usual(busy.len(), trials.len()));
    share.map(|share| (busy.len(), share))
}

fn busy_share(trial: &Trial) -> Option<f64> {
    trial.warnings.iter().find_map(|warning| match warning {
        Warning::CpuSaturated { busy, .. } => Some(*busy),
        _ => None,
    })
}

fn late_share(trial: &Trial) -> Option<f64> {
    trial.warnings.iter().find_map(|warning| match warning {
        Warning::Late { share, .. } => Some(*share),
        _ => None,
    })
}

fn is_of_client(trial: &Trial, measurement: &Measurement) -> bool {
    measurement.bottleneck.kind == BottleneckKind::Client
        || trial.warnings.iter().any(|warning| matches!(warning, Warning::ClientSaturated { .. }))
}

/// Reads per transaction, if an emulator or the kernel counted them.
fn reads(measurement: &Measurement) -> Option<f64> {
    let is_counted = measurement.mounts.iter().any(|mount| mount.emulator.is_some() || mount.host.is_some());
    is_counted.then_some(measurement.per_transaction.reads)
}
