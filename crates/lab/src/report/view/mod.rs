//! The content of the report, from records.

use std::collections::BTreeMap;

use itertools::Itertools as _;
use serde::Serialize;
use spindle_stats::{CONFIDENCE, compare};

mod average;
mod bottleneck;
mod cell;
mod charts;
mod latency;
mod provenance;
mod replication;
mod storage;
mod table;
mod verdict;

use self::cell::Failure;
pub use self::cell::{CellView, Ratio};
use self::cell::{failure, measured};
pub(crate) use self::cell::{metric, samples};
use self::charts::Charts;
pub(super) use self::charts::panel_titles;
pub(super) use self::latency::PROBABILITIES;
pub use self::latency::Quantiles;
use self::provenance::Setting;
pub use self::storage::StorageView;
pub use self::table::TrialTable;
use self::verdict::VerdictView;
use super::{Records, format};
use crate::record::{Cell, Header, StackHead, StartState, Trial, Warning};

#[derive(Debug, Clone, Serialize)]
pub struct View {
    pub header: Header,
    pub verdict: VerdictView,
    /// The first cell with a number. The other cells are divided by it.
    pub baseline: Option<String>,
    /// Present when all cells have the same metric.
    pub metric: Option<String>,
    /// True if that metric is a time.
    pub lower_is_better: bool,
    pub cells: Vec<CellView>,
    pub warnings: Vec<WarningView>,
    pub failures: Vec<Failure>,
    pub checks: Vec<CheckView>,
    /// Notes about the file itself.
    pub notes: Vec<String>,
    pub start: String,
    pub settings: Vec<Setting>,
    pub provenance: Vec<Setting>,
    pub assumptions: Vec<String>,
    /// Activity of the replicas, as sentences.
    pub replication: Vec<String>,
    pub trials: TrialTable,
    pub charts: Charts,
}

/// One kind of warning in one cell, with the sentence of the worst trial.
#[derive(Debug, Clone, Serialize)]
pub struct WarningView {
    pub cell: String,
    pub name: String,
    pub trial_count: usize,
    pub sentence: String,
}

/// One verification, over all trials of all cells.
#[derive(Debug, Clone, Serialize)]
pub struct CheckView {
    pub name: String,
    /// One count per cell, in the header's order; `None` when no trial reached the verification.
    pub cells: Vec<Option<CheckCount>>,
    /// Messages of the failed checks.
    pub failures: Vec<String>,
}

#[derive(Debug, Clone, Copy, Serialize)]
pub struct CheckCount {
    pub passed: usize,
    pub trials: usize,
}

impl View {
    pub fn new(records: &Records) -> Self {
        let header = &records.header;
        let mut cells: Vec<CellView> = header.cells.iter().map(|cell| CellView::new(records, cell)).collect();
        let baseline = cells.iter().find(|cell| cell.throughput.is_some()).map(|cell| cell.name.clone());
        if let Some(baseline) = &baseline {
            for cell in cells.iter_mut().filter(|cell| cell.name != *baseline) {
                cell.ratio = ratio(records, baseline, &cell.name);
            }
        }
        let throughputs = cells.iter().filter_map(|cell| cell.throughput.as_ref()).collect_vec();
        let metric = throughputs.iter().map(|throughput| &throughput.name).all_equal_value().ok().cloned();
        let lower_is_better =
            metric.is_some() && throughputs.iter().all(|throughput| throughput.lower_is_better);
        let failures = failures(records);
        let verdict = VerdictView::new(records, &cells, baseline.as_deref(), metric.as_deref(), &failures);
        Self {
            verdict,
            baseline,
            lower_is_better,
            warnings: warnings(records),
            failures,
            checks: checks(records),
            notes: notes(records, &cells),
            start: start(header.scenario.start),
            settings: provenance::settings(records),
            provenance: provenance::origins(records),
            assumptions: assumptions(header),
            header: header.clone(),
            replication: replication::sentences(&cells),
            trials: TrialTable::new(records),
            charts: Charts::new(metric.as_deref(), &cells, records),
            metric,
            cells,
        }
    }
}

/// `None` when either cell has no number, or when their metrics differ.
pub(super) fn ratio(records: &Records, baseline: &str, candidate: &str) -> Option<Ratio> {
    let (metric, other) = (metric(records, baseline)?, metric(records, candidate)?);
    if metric.name != other.name {
        return None;
    }
    let comparison = compare(&samples(records, baseline), &samples(records, candidate), CONFIDENCE)?;
    Some(Ratio::new(comparison, metric.lower_is_better))
}

fn failures(records: &Records) -> Vec<Failure> {
    let of_cell = |cell: &Cell| {
        let measured = measured(records, &cell.name).iter().map(|(trial, _)| trial.trial).collect_vec();
        let trials = records.trials.iter().filter(|trial| trial.cell == cell.name);
        let failed = trials.filter_map(|trial| Some((trial, failure(trial)?)));
        let view = |(trial, error): (&Trial, String)| Failure {
            cell: cell.name.clone(),
            trial: trial.trial,
            block: trial.block,
            error,
            repeated: measured.contains(&trial.trial),
        };
        failed.map(view).collect_vec()
    };
    records.header.cells.iter().flat_map(of_cell).collect()
}

pub(super) fn short_name(warning: &Warning) -> &'static str {
    name_and_severity(warning).0
}

/// The severity is comparable within one kind.
fn name_and_severity(warning: &Warning) -> (&'static str, f64) {
    match warning {
        Warning::Late { p99_us, .. } => ("late", *p99_us),
        Warning::CpuSaturated { busy, .. } => ("CPU saturated", *busy),
        Warning::ClientSaturated { share } => ("client saturated", *share),
        Warning::NoRealTime => ("no real time", 0.0),
        Warning::NoIoFlusher => ("no I/O flusher", 0.0),
        Warning::NotSteady { drift } => ("not steady", drift.abs()),
        Warning::TransactionsFailed { share } => ("failures", *share),
        Warning::BehindSchedule { behind_s } => ("behind schedule", *behind_s),
        Warning::NearlyEmptyDisk { share, .. } => ("nearly empty disk", 1.0 - share),
        Warning::HostDiskReads { major_faults } => ("host disk reads", *major_faults as f64),
        Warning::SemiSyncFellBack { share, .. } => ("fell back to async", *share),
        Warning::ReplicaBehind { catch_up_s, .. } => ("replica behind", catch_up_s.unwrap_or(f64::INFINITY)),
        Warning::ReplicaSilent { share, .. } => ("replica silent", *share),
        Warning::OtherRun { .. } => ("another run", 0.0),
    }
}

fn warnings(records: &Records) -> Vec<WarningView> {
    let severity = |warning: &Warning| name_and_severity(warning).1;
    let mut views = Vec::new();
    for cell in &records.header.cells {
        let trials = measured(records, &cell.name);
        let mut by_name: BTreeMap<&str, Vec<&Warning>> = BTreeMap::new();
        for (trial, _) in &trials {
            let warnings = trial.warnings.iter().filter(|warning| !warning.is_of_machine());
            // Each trial counts once per kind.
            for warning in warnings.unique_by(|warning| short_name(warning)) {
                by_name.entry(short_name(warning)).or_default().push(warning);
            }
        }
        for (name, found) in by_name {
            let worst = found.iter().max_by(|left, right| severity(left).total_cmp(&severity(right)));
            views.extend(worst.map(|worst| WarningView {
                cell: cell.name.clone(),
                name: name.to_owned(),
                trial_count: found.len(),
                sentence: worst.sentence(),
            }));
        }
    }
    views
}

fn checks(records: &Records) -> Vec<CheckView> {
    let mut views: Vec<CheckView> = Vec::new();
    let cells = &records.header.cells;
    for (index, cell) in cells.iter().enumerate() {
        for trial in records.trials.iter().filter(|trial| trial.cell == cell.name) {
            for check in trial.measurement.iter().flat_map(|measurement| &measurement.verification) {
                let position = views.iter().position(|view| view.name == check.name).unwrap_or_else(|| {
                    let (name, cells) = (check.name.clone(), vec![None; cells.len()]);
                    views.push(CheckView { name, cells, failures: Vec::new() });
                    views.len() - 1
                });
                let count = views[position].cells[index].get_or_insert(CheckCount { passed: 0, trials: 0 });
                count.trials += 1;
                count.passed += usize::from(check.passed);
                if !check.passed {
                    let failure = format!("{}, trial {}: {}", cell.name, trial.trial, check.detail);
                    views[position].failures.push(failure);
                }
            }
        }
    }
    views
}

fn notes(records: &Records, cells: &[CellView]) -> Vec<String> {
    let mut notes = records.notes.clone();
    let of_machine = records.trials.iter().flat_map(|trial| &trial.warnings).filter(|it| it.is_of_machine());
    notes.extend(of_machine.map(Warning::sentence).unique());
    let planned = records.header.scenario.trials_per_cell as usize;
    for cell in &records.header.cells {
        let real = cell.stacks().filter(|stack| stack.real).map(|stack| &stack.name).join(", ");
        if !real.is_empty() && records.header.scenario.start == StartState::WarmFast {
            let name = &cell.name;
            notes.push(format!(
                "{name} ran on a real disk ({real}), which has no fast warm-up: it warmed up at the speed of the disk."
            ));
        }
    }
    for cell in cells {
        let found = cell.trials.len() + cell.failed_count;
        if found < planned {
            let found = format::plural(found, "trial");
            notes.push(format!("{} has {found} of {planned}: the run stopped early.", cell.name));
        }
        if cell.throughput.is_some() && cell.latency.is_none() {
            notes.push(format!("{} has no complete latency histograms, so no quantiles.", cell.name));
        }
    }
    notes
}

/// Explains a start state to readers new to the terms.
fn start(start: StartState) -> String {
    match start {
        StartState::Cold => {
            "cold: the server had just been started and its caches were empty when the measured window began"
        }
        StartState::Warm => {
            "warm: before the measured window the workload ran on the emulated storage until the caches were filled"
        }
        StartState::WarmFast => {
            "warm-fast: the caches were filled at memory speed, with the emulation switched off; then the emulation was \
             switched on, and the workload settled on it before the measured window"
        }
    }
    .to_owned()
}

fn assumptions(header: &Header) -> Vec<String> {
    let stacks = header.cells.iter().flat_map(Cell::stacks);
    let of_stack = |stack: &StackHead| {
        stack.assumptions.iter().map(|assumption| format!("{}: {assumption}", stack.name)).collect_vec()
    };
    stacks.flat_map(of_stack).unique().collect()
}
