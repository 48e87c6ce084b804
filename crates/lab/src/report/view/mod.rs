//! The content of the report, from records.

use itertools::Itertools as _;
use serde::Serialize;

mod average;
mod bottleneck;
mod cell;
mod charts;
pub(super) mod costs;
mod events;
mod latency;
mod matrix;
mod provenance;
mod replication;
mod storage;
mod table;
mod verdict;
mod warnings;

use self::cell::{Baseline, Failure};
pub use self::cell::{CellView, Range, Ratio};
pub(crate) use self::cell::{failure, measured, metric, samples, set_aside, warning_names};
use self::charts::Charts;
pub(crate) use self::charts::rounded;
pub(super) use self::events::{EventRow, Figure as EventFigure, Level as EventLevel};
pub(super) use self::latency::PROBABILITIES;
pub use self::latency::Quantiles;
pub use self::matrix::{CurveView, StudyTable, SweepView};
use self::provenance::{Assumptions, Setting};
pub(super) use self::storage::LAYER_HEADS;
pub use self::storage::StorageView;
pub(crate) use self::table::{CPU_BUSY_PERCENT, figure_beside_event, figure_of};
pub use self::table::{EventSide, TrialTable};
use self::verdict::VerdictView;
use self::warnings::WarningView;
use super::diskstats::DiskStats;
use super::verdict::{CellOf, Judged, WITHIN, judge};
use super::{Records, dilation, disturbed, format, precision};
use crate::host::summary::Section;
use crate::record::{Header, RecordSource, StartState, Warning};
use spindle_base::text::plural;

#[derive(Debug, Clone, Serialize)]
pub struct View {
    pub header: Header,
    pub verdict: VerdictView,
    /// The cell with which all others are compared. `None` if several workloads have their own ([`CellView::baseline`]).
    pub baseline: Option<String>,
    /// Its [`CellView::title`].
    pub baseline_title: Option<String>,
    /// What a row of a table is: `storage`, or `cell` where servers or workloads differ too.
    pub subject: &'static str,
    /// Present when all cells have the same metric.
    pub metric: Option<String>,
    /// True if that metric is a time.
    pub lower_is_better: bool,
    pub cells: Vec<CellView>,
    pub warnings: Vec<WarningView>,
    pub failures: Vec<Failure>,
    /// A sentence of the method.
    pub how_many_trials: String,
    /// Of a ratio, for a sentence of the method.
    pub which_interval: &'static str,
    /// Each mount of each cell, in a sentence.
    pub storages: Vec<String>,
    /// Explanations of the marks in the tables, as sentences.
    pub footnotes: Vec<String>,
    pub checks: Vec<CheckView>,
    /// Notes about the file itself.
    pub notes: Vec<String>,
    pub start: String,
    pub settings: Vec<Setting>,
    pub provenance: Vec<Setting>,
    /// Changes of the method that are later than the records, as sentences.
    pub errata: Vec<String>,
    /// Everything that the record knows about its machine; empty for earlier records.
    pub machine: Vec<Section>,
    pub assumptions: Vec<Assumptions>,
    /// Activity of the replicas, as sentences.
    pub replication: Vec<String>,
    /// The curves over swept values.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sweeps: Vec<SweepView>,
    /// Tests by storage, for a matrix of several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub study: Option<StudyTable>,
    /// Each event of each cell, with the figures before and after it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<EventRow>,
    pub trials: TrialTable,
    pub charts: Charts,
    /// For `--format diskstats` alone: a page would double in size.
    #[serde(skip)]
    pub diskstats: DiskStats,
    /// For `--format records` alone.
    #[serde(skip)]
    pub records: Records,
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
        for family in header.families() {
            compare_with_first(records, &mut cells, &family);
        }
        let throughputs = cells.iter().filter_map(|cell| cell.throughput.as_ref()).collect_vec();
        let metric = throughputs.iter().map(|throughput| &throughput.name).all_equal_value().ok().cloned();
        let lower_is_better =
            metric.is_some() && throughputs.iter().all(|throughput| throughput.lower_is_better);
        let failures = warnings::failures(records);
        let baselines = cells.iter().filter_map(|cell| cell.baseline.as_ref());
        let baseline = baselines.unique_by(|baseline| &baseline.name).exactly_one().ok().cloned();
        let sweeps = SweepView::all(records, &cells);
        let of_first_key = sweeps.iter().filter(|sweep| sweep.key == sweeps[0].key);
        let peaks: Vec<&str> = of_first_key.flat_map(SweepView::peaks).collect();
        let events = events::rows(records, &cells);
        let trials = TrialTable::new(records, &cells);
        let verdict = VerdictView::new(records, &cells, &peaks, &failures);
        Self {
            verdict,
            subject: subject(header),
            baseline_title: baseline.as_ref().map(|baseline| baseline.title.clone()),
            baseline: baseline.map(|baseline| baseline.name),
            lower_is_better,
            warnings: warnings::warnings(records),
            failures,
            how_many_trials: precision::how_many_trials(records, subject(header)),
            which_interval: precision::which_interval(records),
            storages: storage::sentences(cells.iter().flat_map(|cell| &cell.storages)),
            footnotes: footnotes(&cells),
            checks: checks(records),
            notes: notes(records, &cells),
            start: start(header),
            settings: provenance::settings(records),
            provenance: provenance::origins(records),
            errata: provenance::errata(&records.header.created_at),
            machine: header.machine.summary.iter().flat_map(|summary| summary.sections()).collect(),
            assumptions: Assumptions::by_device(header),
            header: header.clone(),
            replication: replication::sentences(&cells),
            study: StudyTable::new(records, &cells),
            trials,
            charts: Charts::new(metric.as_deref(), &cells, &sweeps, &events, records),
            events,
            sweeps,
            diskstats: DiskStats::new(records),
            records: records.clone(),
            metric,
            cells,
        }
    }
}

/// Compares the cells of a family with the first of them that was measured.
fn compare_with_first(records: &Records, cells: &mut [CellView], family: &[usize]) {
    let Some(first) = family.iter().find(|index| cells[**index].throughput.is_some()) else { return };
    let baseline = Baseline { name: cells[*first].name.clone(), title: cells[*first].title.clone() };
    for index in family {
        let cell = &mut cells[*index];
        if index != first {
            if let Some(judged) = judged(records, &baseline.name, &cell.name) {
                (cell.ratio, cell.verdict) = (judged.ratio, Some(judged.verdict));
            }
            cell.differences = storage::differences(&records.header, &cell.name, &baseline.name);
        }
        cell.baseline = Some(baseline.clone());
    }
}

/// Two cells of a run. `None` for a cell that is not in its header.
pub(super) fn judged(records: &Records, baseline: &str, candidate: &str) -> Option<Judged> {
    let find = |name: &str| records.header.cells.iter().find(|cell| cell.name == name);
    let [baseline, candidate] = [find(baseline)?, find(candidate)?].map(|cell| CellOf { records, cell });
    Some(judge(baseline, candidate, true, WITHIN))
}

fn subject(header: &Header) -> &'static str {
    let is_one = header.cells.iter().map(|cell| (&cell.server, &cell.workload)).all_equal();
    if is_one { "storage" } else { "cell" }
}

/// The reasons for `†`, `‡` and `-` in the tables, and for a ratio that contradicts the means.
fn footnotes(cells: &[CellView]) -> Vec<String> {
    let few = cells.iter().any(|cell| cell.has_few_events);
    let few = few.then(|| {
        "† From too few transactions: see the warning, which names the window that is needed.".to_owned()
    });
    let moving = cells.iter().any(|cell| cell.is_not_steady);
    let moving = moving.then(|| {
        "‡ The load was not steady: see the warning, which says what was still changing.".to_owned()
    });
    let latencies = cells.iter().filter_map(|cell| cell.latency.as_ref());
    few.into_iter().chain(moving).chain(contrary(cells)).chain(latency::footnote(latencies)).collect()
}

/// Cells whose ratio says more than one where the means say less, or the reverse.
fn contrary(cells: &[CellView]) -> Option<String> {
    let mean = |name: &str| {
        let cell = cells.iter().find(|cell| cell.name == name)?;
        Some(cell.throughput.as_ref()?.mean)
    };
    let is_contrary = |cell: &&CellView| {
        let of_baseline = cell.baseline.as_ref().and_then(|baseline| mean(&baseline.name));
        let of_means = mean(&cell.name).zip(of_baseline).map(|(mean, of_baseline)| mean / of_baseline);
        let of_pairs = cell.ratio.as_ref().map(|ratio| ratio.ratio);
        of_means.zip(of_pairs).is_some_and(|(of_means, of_pairs)| {
            let is_one = |ratio: f64| format::number(ratio) == "1.00";
            !is_one(of_means) && !is_one(of_pairs) && (of_means < 1.0) != (of_pairs < 1.0)
        })
    };
    let titles = cells.iter().filter(is_contrary).map(|cell| format::the(&cell.title)).collect_vec();
    (!titles.is_empty()).then(|| {
        format!(
            "For {}, ratio and means point in opposite directions, because the trials differ widely: the ratio is the \
             geometric mean of the ratios of single trials.",
            format::list(titles)
        )
    })
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
                    let title = records.header.title(&cell.name);
                    let failure = format!("{title}, trial {}: {}", trial.trial, check.detail);
                    views[position].failures.push(failure);
                }
            }
        }
    }
    views
}

fn notes(records: &Records, cells: &[CellView]) -> Vec<String> {
    let mut notes = records.notes.clone();
    notes.extend(dilation::notes(records));
    notes.extend(precision::notes(records));
    notes.extend(disturbed::notes(records));
    let of_machine = records.trials.iter().flat_map(|trial| &trial.warnings).filter(|it| it.is_of_machine());
    notes.extend(of_machine.map(Warning::sentence).unique());
    for cell in &records.header.cells {
        let real = cell
            .stacks()
            .filter(|stack| stack.real)
            .map(|stack| records.header.stack_title(stack))
            .join(", ");
        if !real.is_empty() && records.header.scenario.start == StartState::WarmFast {
            let title = format::the_first(&records.header.title(&cell.name));
            notes.push(format!(
                "{title} ran on a real disk ({real}), which has no fast warm-up: it warmed up at the speed of the disk."
            ));
        }
    }
    for (cell, head) in cells.iter().zip(&records.header.cells) {
        let found = cell.trials.len() + cell.failed_count;
        let planned = head.trials.unwrap_or(records.header.scenario.trials_per_cell) as usize;
        if found < planned {
            let (title, found) = (format::the_first(&cell.title), plural(found, "trial"));
            notes.push(format!("{title} has {found} of {planned}: the run stopped early."));
        }
        if cell.throughput.is_some() && cell.latency.is_none() {
            let title = format::the_first(&cell.title);
            let measured = measured(records, &cell.name);
            let why = latency::why_unknown(measured.iter().map(|(_, measurement)| *measurement));
            notes.push(format!("{title} {why}."));
        }
    }
    notes
}

/// Explains a start state to readers new to the terms.
fn start(header: &Header) -> String {
    if header.source == Some(RecordSource::Production) {
        return "in production: the server was running, and its own clients used it".to_owned();
    }
    match header.scenario.start {
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
