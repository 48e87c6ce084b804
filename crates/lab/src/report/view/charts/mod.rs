//! Data for the charts, reduced as far as possible without a visible loss.

use serde::Serialize;

mod details;
mod over_time;

use self::details::{Details, details};
pub(crate) use self::over_time::rounded;
use self::over_time::{Points, Reduction};
use super::cell::measured;
use super::matrix::PointView;
use super::{CellView, StorageView, SweepView};
use crate::record::{Measurement, StorageSeries};
use crate::report::Records;

#[derive(Debug, Clone, Serialize)]
pub struct Charts {
    metric: Option<String>,
    cells: Vec<CellCharts>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sweeps: Vec<SweepChart>,
}

#[derive(Debug, Clone, Serialize)]
struct SweepChart {
    /// Words for the values of the axis.
    labels: Vec<String>,
    /// Places on a logarithmic axis; absent on an axis of words.
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<Vec<f64>>,
    curves: Vec<SweptCurve>,
}

#[derive(Debug, Clone, Serialize)]
struct SweptCurve {
    name: String,
    points: Vec<SweptPoint>,
}

#[derive(Debug, Clone, Serialize)]
struct SweptPoint {
    mean: Option<f64>,
    interval: Option<(f64, f64)>,
    marks: Vec<&'static str>,
}

#[derive(Debug, Clone, Serialize)]
struct CellCharts {
    name: String,
    values: Vec<f64>,
    mean: Option<f64>,
    has_few_events: bool,
    is_not_steady: bool,
    interval: Option<(f64, f64)>,
    curve: Vec<(f64, f64)>,
    shares: Option<std::collections::BTreeMap<String, f64>>,
    cpu: Option<f64>,
    /// From point to point of every line over time.
    step_s: f64,
    trials: Vec<TrialCharts>,
    /// In the order of the cell's view.
    storages: Vec<StorageCharts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Details>,
}

#[derive(Debug, Clone, Serialize)]
struct StorageCharts {
    name: String,
    /// One list per panel of the storage view: means over the trials for each second.
    panels: Vec<Points>,
}

#[derive(Debug, Clone, Serialize)]
struct TrialCharts {
    trial: u32,
    per_s: Points,
}

/// Title and series of a panel, and whether a zero means no value.
type Panel = (&'static str, fn(&StorageSeries) -> &Vec<f64>, bool);

/// The panels of the storage view. A zero latency means a second without requests.
const PANELS: [Panel; 7] = [
    ("Reads per second", |series| &series.read_iops, false),
    ("Read latency, ms", |series| &series.read_latency_ms, true),
    ("Writes per second", |series| &series.write_iops, false),
    ("Write latency, ms", |series| &series.write_latency_ms, true),
    ("Flushes per second", |series| &series.flushes_per_s, false),
    ("Flush latency, ms", |series| &series.flush_latency_ms, true),
    ("Requests inside the device", |series| &series.queue_depth, false),
];

impl Charts {
    /// Index and title of the panels with a value; the cores come last.
    pub(in crate::report) fn panels(&self) -> Vec<(usize, &'static str)> {
        let storages = || self.cells.iter().flat_map(|cell| &cell.storages);
        let has_value = |index: usize| {
            let mut panels = storages().filter_map(|storage| storage.panels.get(index));
            panels.any(|points| points.0.iter().any(Option::is_some))
        };
        let titles = PANELS.into_iter().map(|(title, ..)| title).chain(["Processor cores busy"]);
        titles.enumerate().filter(|(index, _)| has_value(*index)).collect()
    }

    pub(super) fn new(
        metric: Option<&str>,
        cells: &[CellView],
        sweeps: &[SweepView],
        records: &Records,
    ) -> Self {
        let cells = cells.iter().filter(|cell| cell.throughput.is_some());
        let cells = cells.map(|cell| {
            let trials = measured(records, &cell.name);
            let measurements: Vec<&Measurement> =
                trials.iter().map(|(_, measurement)| *measurement).collect();
            let throughput = cell.throughput.as_ref();
            let per_s = || measurements.iter().map(|measurement| &measurement.series.transactions_per_s);
            let reduction = Reduction::of_window(per_s().map(Vec::len).max().unwrap_or_default());
            CellCharts {
                name: cell.title.clone(),
                values: cell.trials.iter().map(|trial| rounded(trial.value)).collect(),
                mean: throughput.map(|throughput| throughput.mean),
                has_few_events: cell.has_few_events,
                is_not_steady: cell.is_not_steady,
                interval: throughput.and_then(|t| t.interval).map(|interval| (interval.low, interval.high)),
                curve: cell.latency.as_ref().map_or_else(Vec::new, |latency| {
                    latency.curve.iter().map(|(nines, ms)| (rounded(*nines), rounded(*ms))).collect()
                }),
                shares: cell.bottleneck.as_ref().map(|bottleneck| bottleneck.shares.clone()),
                cpu: cell.bottleneck.as_ref().map(|bottleneck| bottleneck.cpu),
                step_s: reduction.step_s(),
                trials: trials
                    .iter()
                    .zip(per_s())
                    .map(|((trial, _), per_s)| TrialCharts {
                        trial: trial.trial,
                        per_s: reduction.points(&per_s.iter().copied().map(Some).collect::<Vec<_>>()),
                    })
                    .collect(),
                storages: storages(cell, &measurements, reduction),
                details: details(cell, &trials, reduction),
            }
        });
        let sweeps = sweeps.iter().map(sweep_chart).collect();
        Self { metric: metric.map(str::to_owned), cells: cells.collect(), sweeps }
    }
}

fn sweep_chart(view: &SweepView) -> SweepChart {
    let numbers = view.values.iter().map(|value| value.number);
    let curves = view.curves.iter().map(|curve| SweptCurve {
        name: curve.title.clone(),
        points: curve.points.iter().map(swept_point).collect(),
    });
    SweepChart {
        labels: view.values.iter().map(|value| value.value.clone()).collect(),
        at: numbers.collect::<Option<Vec<f64>>>().filter(|_| view.is_numeric),
        curves: curves.collect(),
    }
}

fn swept_point(point: &PointView) -> SweptPoint {
    SweptPoint {
        mean: point.mean.map(rounded),
        interval: point.interval.map(|range| (rounded(range.low), rounded(range.high))),
        marks: point.marks.clone(),
    }
}

fn storages(cell: &CellView, measurements: &[&Measurement], reduction: Reduction) -> Vec<StorageCharts> {
    let cpu = || measurements.iter().map(|measurement| &measurement.series.cpu_busy);
    let cpu = || reduction.points(&panel(cpu(), false));
    let charts = |(index, storage): (usize, &StorageView)| {
        let series: Vec<&StorageSeries> =
            measurements.iter().filter_map(|measurement| storage.place.series(measurement)).collect();
        let storage_panel = |(_, select, gaps): Panel| {
            reduction.points(&panel(series.iter().map(|series| select(series)), gaps))
        };
        let mut panels = PANELS.map(storage_panel).to_vec();
        // The cores belong to the machine, so they are shown once.
        panels.push(if index == 0 { cpu() } else { Points::default() });
        StorageCharts { name: storage.name.clone(), panels }
    };
    cell.storages.iter().enumerate().map(charts).collect()
}

/// Means over the trials for each second.
fn panel<'a>(series: impl Iterator<Item = &'a Vec<f64>> + Clone, zero_is_none: bool) -> Vec<Option<f64>> {
    let length = series.clone().map(Vec::len).max().unwrap_or_default();
    let second = |index: usize| {
        let values: Vec<f64> = series
            .clone()
            .filter_map(|values| values.get(index).copied())
            .filter(|value| value.is_finite() && !(zero_is_none && *value == 0.0))
            .collect();
        spindle_stats::mean(&values)
    };
    (0..length).map(second).collect()
}
