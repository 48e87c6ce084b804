//! One cell, as a summary of its trials.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

use itertools::Itertools as _;
use serde::Serialize;
use spindle_stats::{CONFIDENCE, Comparison, Sample, mean, mean_interval, standard_deviation};

use super::{
    average::average,
    bottleneck::{CellBottleneck, bottleneck},
    latency::{Quantiles, merged},
    replication::ReplicationSummary,
    storage::{StorageView, storages},
};
use crate::record::{
    Cell, CpuSummary, Difference, EmulatorSummary, MachineActivity, Measurement, Metric, PerTransaction,
    Trial, Warning,
};
use crate::report::verdict::{Bound, Verdict};
use crate::report::{Records, format};

#[derive(Debug, Clone, Copy, Serialize, PartialEq)]
pub struct Range {
    pub low: f64,
    pub high: f64,
}

impl Display for Range {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} to {}", format::number(self.low), format::number(self.high))
    }
}

#[derive(Debug, Clone, Serialize)]
pub struct CellView {
    /// For commands; a sentence has the title.
    pub name: String,
    /// The label, unique among the cells ([`crate::record::Header::title`]).
    pub title: String,
    pub stack: String,
    pub summary: String,
    pub server: String,
    pub workload: String,
    pub failed_count: usize,
    /// Whether a trial's metric counts too few events.
    pub has_few_events: bool,
    /// Whether the load of a trial never settled, or throughput drifted in half of the trials. A drift in one
    /// trial of many is often chance.
    pub is_not_steady: bool,
    /// The parameters in which its storage differs from the baseline's, where the two are of one kind.
    pub differences: Vec<Difference>,
    pub trials: Vec<TrialView>,
    /// `None` without a measured trial, as the other options.
    pub throughput: Option<Throughput>,
    /// Over all transactions of all trials; also `None` when a histogram is missing.
    pub latency: Option<Quantiles>,
    /// The cell with which this one and the others of its family are compared
    /// ([`crate::record::Header::families`]): the first that was measured.
    pub baseline: Option<Baseline>,
    /// Ratio to the baseline; `None` for the baseline itself.
    pub ratio: Option<Ratio>,
    /// Compared with the baseline; `None` for the baseline itself.
    pub verdict: Option<Verdict>,
    pub bottleneck: Option<CellBottleneck>,
    /// Short names of the kinds of warnings. The sentences are in the view.
    pub warnings: Vec<String>,
    pub transactions: Vec<TransactionView>,
    /// Means over the trials.
    pub per_transaction: Option<PerTransaction>,
    pub cpu: Option<CpuSummary>,
    /// `None` in earlier records.
    pub machine: Option<MachineActivity>,
    /// Of the mount with the data.
    pub emulator: Option<EmulatorSummary>,
    /// One entry per mount, the data's first.
    pub storages: Vec<StorageView>,
    /// Present for a measured server with replicas.
    pub replication: Option<ReplicationSummary>,
}

#[derive(Debug, Clone, Serialize, PartialEq, Eq, Hash)]
pub struct Baseline {
    /// [`CellView::name`].
    pub name: String,
    /// [`CellView::title`].
    pub title: String,
}

#[derive(Debug, Clone, Serialize)]
pub struct Throughput {
    /// Name of the metric.
    pub name: String,
    /// True if the metric is a time.
    pub lower_is_better: bool,
    pub mean: f64,
    /// 95 % confidence interval of the mean; `None` for a single trial.
    pub interval: Option<Range>,
}

/// Metric of a cell divided by the baseline's.
#[derive(Debug, Clone, Serialize, PartialEq)]
pub struct Ratio {
    pub ratio: f64,
    pub interval: Option<Range>,
    pub method: String,
}

#[derive(Debug, Clone, Serialize)]
pub struct TransactionView {
    pub name: String,
    pub committed: u64,
    pub rolled_back: u64,
    pub retried: u64,
    pub failed: u64,
    pub latency: Option<Quantiles>,
    /// CPU time of the client per operation, if the workload reports it.
    pub client_cpu_us: Option<f64>,
    /// For fixed work: total time of all operations of this kind, as a mean over the trials.
    pub list_s: Option<f64>,
}

#[derive(Debug, Clone, Serialize)]
pub struct TrialView {
    pub trial: u32,
    pub block: u32,
    pub value: f64,
    pub seed: u64,
    pub duration_s: f64,
    pub mean_per_s: Option<f64>,
    pub lowest_per_s: Option<f64>,
    pub highest_per_s: Option<f64>,
    /// Standard deviation of the per-second values, as a share of their mean.
    pub variation: Option<f64>,
    /// Whether its load never settled or its throughput drifted.
    pub is_not_steady: bool,
    pub drift: Option<f64>,
    pub drift_noise: Option<f64>,
}

impl Throughput {
    /// The mean, with the marks of its cell.
    pub fn marked(&self, cell: &CellView) -> String {
        let mark = format::mark(cell.has_few_events, cell.is_not_steady);
        format!("{}{mark}", format::number(self.mean))
    }
}

/// A failed trial.
#[derive(Debug, Clone, Serialize)]
pub struct Failure {
    pub cell: String,
    /// [`CellView::title`].
    pub title: String,
    pub trial: u32,
    pub block: u32,
    pub error: String,
    /// Whether the trial was repeated and measured.
    pub repeated: bool,
}

/// Reason why a trial does not count; `None` when it counts. A database that fails its verification yields no
/// number.
pub(crate) fn failure(trial: &Trial) -> Option<String> {
    if let Some(error) = &trial.error {
        return Some(error.clone());
    }
    let Some(measurement) = &trial.measurement else {
        return Some("The record has neither a measurement nor an error.".to_owned());
    };
    let check = measurement.verification.iter().find(|check| !check.passed)?;
    Some(format!("Verification failed: {}: {}", check.name, check.detail))
}

/// The measured trials of a cell that count, by number. For a repeated trial, the last run counts, unless the
/// host disturbed it.
pub(crate) fn measured<'a>(records: &'a Records, cell: &str) -> Vec<(&'a Trial, &'a Measurement)> {
    let trials = records.trials.iter().filter(|trial| trial.cell == cell && failure(trial).is_none());
    let mut counted = BTreeMap::<u32, (&Trial, &Measurement)>::new();
    for (trial, measurement) in trials.filter_map(|trial| Some((trial, trial.measurement.as_ref()?))) {
        if counted.get(&trial.trial).is_none_or(|(earlier, _)| trial.replaces(earlier)) {
            counted.insert(trial.trial, (trial, measurement));
        }
    }
    counted.into_values().collect()
}

/// The measured trials of a cell that do not count, because another one of the same number does.
pub(crate) fn set_aside<'a>(records: &'a Records, cell: &str) -> Vec<(&'a Trial, &'a Measurement)> {
    let counted = measured(records, cell);
    let is_counted = |trial: &Trial| counted.iter().any(|(other, _)| std::ptr::eq(*other, trial));
    let trials = records.trials.iter().filter(|trial| trial.cell == cell && failure(trial).is_none());
    trials
        .filter(|trial| !is_counted(trial))
        .filter_map(|trial| Some((trial, trial.measurement.as_ref()?)))
        .collect()
}

pub(crate) fn samples(records: &Records, cell: &str) -> Vec<Sample> {
    measured(records, cell)
        .iter()
        .map(|(trial, measurement)| Sample { block: trial.block, value: measurement.metric.value })
        .collect()
}

pub(crate) fn metric<'a>(records: &'a Records, cell: &str) -> Option<&'a Metric> {
    measured(records, cell).first().map(|(_, measurement)| &measurement.metric)
}

/// Short names of the kinds of warnings of a cell, without those of the machine.
pub(crate) fn warning_names(records: &Records, cell: &str) -> Vec<String> {
    let trials = measured(records, cell);
    let warnings = trials.iter().flat_map(|(trial, _)| &trial.warnings);
    let warnings = warnings.filter(|warning| !warning.is_of_machine()).map(Warning::name).unique();
    warnings.map(str::to_owned).collect()
}

impl Ratio {
    /// Keeps the ratio of the values as they are: a smaller time has a ratio below one.
    pub(crate) fn new(comparison: &Comparison) -> Self {
        let method = match comparison.method {
            spindle_stats::Method::Paired => "paired by block",
            spindle_stats::Method::Welch => "Welch, unpaired",
            spindle_stats::Method::RatioOnly => "ratio only",
        };
        Self {
            ratio: comparison.ratio,
            interval: comparison.interval.map(|interval| Range { low: interval.low, high: interval.high }),
            method: method.to_owned(),
        }
    }

    /// `9.81 (9.12 to 10.5)`, or `at least 9.81 (9.12 to 10.5)`.
    pub fn bounded(&self, bound: Option<Bound>) -> String {
        bound.map_or_else(|| self.text(), |bound| format!("{} {}", bound.words(), self.text()))
    }

    /// `9.81 (9.12 to 10.5)`.
    pub fn text(&self) -> String {
        let interval = self.interval.map_or_else(|| "no interval".to_owned(), |range| range.to_string());
        format!("{} ({interval})", format::number(self.ratio))
    }
}

impl CellView {
    /// Whether others are compared with this cell.
    pub(in crate::report) fn is_baseline(&self) -> bool {
        self.baseline.as_ref().is_some_and(|baseline| baseline.name == self.name)
    }

    pub(super) fn new(records: &Records, cell: &Cell) -> Self {
        let trials = measured(records, &cell.name);
        let measurements: Vec<&Measurement> = trials.iter().map(|(_, measurement)| *measurement).collect();
        let failed =
            records.trials.iter().filter(|trial| trial.cell == cell.name && failure(trial).is_some());
        let emulators = measurements.iter().filter_map(|measurement| measurement.mounts.first());
        Self {
            name: cell.name.clone(),
            title: records.header.title(&cell.name),
            stack: cell.data().name.clone(),
            summary: cell.data().summary.clone(),
            server: cell.server.clone(),
            workload: cell.workload.clone(),
            failed_count: failed.count(),
            has_few_events: trials
                .iter()
                .any(|(trial, _)| trial.warnings.iter().any(Warning::is_of_few_events)),
            is_not_steady: is_not_steady(&trials),
            differences: Vec::new(),
            throughput: throughput(&measurements),
            latency: merged(measurements.iter().map(|measurement| &measurement.latency)),
            baseline: None,
            ratio: None,
            verdict: None,
            bottleneck: bottleneck(&trials).map(|found| CellBottleneck {
                reason: records.header.with_titles(cell, &found.reason, format::the),
                ..found
            }),
            warnings: warning_names(records, &cell.name),
            transactions: transactions(&measurements),
            per_transaction: average(measurements.iter().map(|measurement| &measurement.per_transaction)),
            cpu: average(measurements.iter().map(|measurement| &measurement.cpu)),
            machine: average(measurements.iter().filter_map(|measurement| measurement.machine.as_ref())),
            emulator: average(emulators.filter_map(|mount| mount.emulator.as_ref())),
            storages: storages(&records.header, cell, &measurements),
            replication: super::replication::summary(&records.header, cell, &measurements),
            trials: trials.iter().map(|(trial, measurement)| trial_view(trial, measurement)).collect(),
        }
    }
}

fn is_not_steady(trials: &[(&Trial, &Measurement)]) -> bool {
    let warnings = || trials.iter().flat_map(|(trial, _)| &trial.warnings);
    let has_never_settled =
        |warning: &Warning| matches!(warning, Warning::NotSteady { never_settled: Some(_), .. });
    let moving = warnings().filter(|warning| warning.is_of_steadiness()).count();
    warnings().any(has_never_settled) || moving > 0 && 2 * moving >= trials.len()
}

fn throughput(measurements: &[&Measurement]) -> Option<Throughput> {
    let values: Vec<f64> = measurements.iter().map(|measurement| measurement.metric.value).collect();
    Some(Throughput {
        name: measurements.first()?.metric.name.clone(),
        lower_is_better: measurements.first()?.metric.lower_is_better,
        mean: mean(&values)?,
        // Values are never negative, but Student's interval of few trials may reach below zero.
        interval: mean_interval(&values, CONFIDENCE)
            .map(|interval| Range { low: interval.low.max(0.0), high: interval.high }),
    })
}

fn trial_view(trial: &Trial, measurement: &Measurement) -> TrialView {
    let seconds = &measurement.series.transactions_per_s;
    let mean_per_s = mean(seconds);
    let drift = spindle_stats::drift(seconds);
    TrialView {
        trial: trial.trial,
        block: trial.block,
        value: measurement.metric.value,
        seed: trial.provenance.seed,
        duration_s: measurement.duration_s,
        mean_per_s,
        lowest_per_s: seconds.iter().copied().reduce(f64::min),
        highest_per_s: seconds.iter().copied().reduce(f64::max),
        variation: mean_per_s
            .filter(|mean| *mean > 0.0)
            .and_then(|mean| Some(standard_deviation(seconds)? / mean)),
        is_not_steady: trial.warnings.iter().any(Warning::is_of_steadiness),
        drift: drift.map(|drift| drift.relative),
        drift_noise: drift.map(|drift| drift.relative_noise),
    }
}

fn transactions(measurements: &[&Measurement]) -> Vec<TransactionView> {
    let Some(first) = measurements.first() else {
        return Vec::new();
    };
    first
        .transactions
        .iter()
        .map(|head| {
            let same: Vec<_> =
                measurements.iter().flat_map(|m| &m.transactions).filter(|t| t.name == head.name).collect();
            let ended: u64 = same.iter().map(|t| t.latency.count).sum();
            let client_cpu_s = same.iter().map(|t| t.client_cpu_s).sum::<Option<f64>>();
            let total_ms: f64 = same.iter().map(|t| t.latency.mean_ms * t.latency.count as f64).sum();
            TransactionView {
                client_cpu_us: client_cpu_s.filter(|_| ended > 0).map(|seconds| seconds * 1e6 / ended as f64),
                list_s: first.metric.lower_is_better.then(|| total_ms / 1e3 / measurements.len() as f64),
                name: head.name.clone(),
                committed: same.iter().map(|t| t.committed).sum(),
                rolled_back: same.iter().map(|t| t.rolled_back).sum(),
                retried: same.iter().map(|t| t.retried).sum(),
                failed: same.iter().map(|t| t.failed).sum(),
                latency: merged(same.iter().map(|t| &t.latency)),
            }
        })
        .collect()
}
