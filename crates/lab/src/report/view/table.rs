//! One row per figure of a trial, for other programs: the long form, which pandas and DuckDB filter and
//! pivot.
//!
//! Figures come from the record's own structures, by the names of their fields: a field that is added there
//! has a row here. A failed trial has its reason and no figures.

use std::collections::BTreeMap;

use itertools::Itertools as _;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use spindle_stats::fewest_for_quantile;

use super::cell::{CellView, failure, set_aside};
use super::latency::is_shown;
use crate::record::{
    Cell, Latency, LayerView, Measurement, MountHead, MountView, ReplicaView, Settling, SweptValue, Trial,
    Warning,
};
use crate::report::{Records, disturbance, format};

/// Every row has a value for every column; `null` when there is none.
#[derive(Debug, Clone, Serialize)]
pub struct TrialTable {
    pub columns: Vec<&'static str>,
    pub rows: Vec<Vec<Value>>,
}

/// Columns that are equal in all rows of a trial.
const OF_TRIAL: [&str; 12] = [
    "experiment",
    "cell",
    "cell_label",
    "storage",
    "storage_label",
    "server",
    "server_version",
    "workload",
    "trial",
    "block",
    "seed",
    "started_at",
];

/// `transaction` is empty for all types together, `part` for what is of no mount or replica.
const OF_FIGURE: [&str; 6] = ["transaction", "part", "metric", "unit", "value", "text"];

impl TrialTable {
    /// The trials, and after them the comparison of each cell with its baseline.
    pub(super) fn new(records: &Records, cells: &[CellView]) -> TrialTable {
        let cell = |trial: &Trial| records.header.cells.iter().find(|cell| cell.name == trial.cell);
        let trials = records.trials.iter().filter_map(|trial| Some((trial, cell(trial)?)));
        let set_aside =
            records.header.cells.iter().flat_map(|cell| set_aside(records, &cell.name)).collect_vec();
        let is_set_aside = |trial: &Trial| set_aside.iter().any(|(other, _)| std::ptr::eq(*other, trial));
        let rows = trials.flat_map(|(trial, cell)| {
            let head = head(records, trial, cell);
            let rows =
                if is_set_aside(trial) { set_aside_figures(records, trial) } else { figures(trial, cell) };
            rows.into_iter().map(move |figure| head.iter().cloned().chain(figure.values()).collect())
        });
        let compared = cells.iter().zip(&records.header.cells).flat_map(|(view, cell)| {
            let head = head_of_cell(records, cell);
            let row = move |figure: Figure| head.iter().cloned().chain(figure.values()).collect();
            comparison(view).into_iter().map(row)
        });
        let columns = [&OF_TRIAL[..], &OF_FIGURE[..]].concat();
        TrialTable { columns, rows: rows.chain(compared).collect() }
    }
}

/// The head of a row that is of all trials of a cell.
fn head_of_cell(records: &Records, cell: &Cell) -> [Value; OF_TRIAL.len()] {
    let [experiment, name, label, storage, storage_label, server] = [
        records.header.scenario.name.as_str(),
        &cell.name,
        &cell.label,
        cell.layout_name(),
        cell.storage_label(),
        &cell.server,
    ]
    .map(Value::from);
    let (workload, null) = (cell.workload.clone().into(), || Value::Null);
    [
        experiment,
        name,
        label,
        storage,
        storage_label,
        server,
        null(),
        workload,
        null(),
        null(),
        null(),
        null(),
    ]
}

/// Ratio and verdict of a cell, which name the baseline in `text`.
fn comparison(cell: &CellView) -> Vec<Figure> {
    let (Some(verdict), Some(baseline)) = (&cell.verdict, &cell.baseline) else { return Vec::new() };
    let of = |field: &str, value: f64| Figure { text: baseline.name.clone(), ..figure(field, value) };
    let words = |field: &str, text: &str| Figure {
        metric: field.to_owned(),
        text: text.to_owned(),
        ..Figure::default()
    };
    let ratio = cell.ratio.iter().map(|ratio| of("ratio", ratio.ratio));
    let interval = cell.ratio.iter().filter_map(|ratio| ratio.interval).flat_map(|interval| {
        [of("ratio_interval_low", interval.low), of("ratio_interval_high", interval.high)]
    });
    let bound = verdict.bound.map(|bound| words("ratio_bound", bound.words()));
    let more = verdict.more_trials.map(|more| figure("more_trials", f64::from(more)));
    let verdict = [words("verdict", verdict.word.name()), words("verdict_reason", &verdict.reason)];
    ratio.chain(interval).chain(bound).chain(verdict).chain(more).collect()
}

fn head(records: &Records, trial: &Trial, cell: &Cell) -> [Value; OF_TRIAL.len()] {
    [
        records.header.scenario.name.clone().into(),
        cell.name.clone().into(),
        cell.label.clone().into(),
        cell.layout_name().into(),
        cell.storage_label().into(),
        cell.server.clone().into(),
        trial.provenance.server_version.clone().into(),
        cell.workload.clone().into(),
        trial.trial.into(),
        trial.block.into(),
        trial.provenance.seed.into(),
        trial.started_at.clone().into(),
    ]
}

#[derive(Debug, Clone, Default)]
struct Figure {
    transaction: String,
    part: String,
    metric: String,
    unit: String,
    value: Option<f64>,
    /// A value in words, or the reason why there is none.
    text: String,
}

impl Figure {
    fn values(self) -> [Value; OF_FIGURE.len()] {
        let Figure { transaction, part, metric, unit, value, text } = self;
        [transaction.into(), part.into(), metric.into(), unit.into(), value.into(), text.into()]
    }
}

/// A figure by the name of its field, which ends with its unit.
fn figure(field: &str, value: f64) -> Figure {
    const UNITS: [(&str, &str); 8] = [
        ("_per_s", "1/s"),
        ("_cores", "cores"),
        ("_ms", "ms"),
        ("_us", "us"),
        ("_s", "s"),
        ("_bytes", "bytes"),
        ("_kib", "KiB"),
        ("_share", "share"),
    ];
    let suffix = UNITS.into_iter().find(|(suffix, _)| field.ends_with(suffix));
    // A coefficient of variation has no unit, whatever it is of.
    let suffix = suffix.filter(|_| !field.contains("_variation_"));
    let unit = suffix.map_or("", |(_, unit)| unit);
    Figure { metric: field.to_owned(), unit: unit.to_owned(), value: Some(value), ..Figure::default() }
}

/// The numbers of a flat structure. A quantile of fewer than enough of `count` values is left empty.
fn numbers(prefix: &str, structure: &impl Serialize, count: u64) -> Vec<Figure> {
    let Value::Object(fields) = json!(structure) else { return Vec::new() };
    let numbers = fields.iter().filter_map(|(field, value)| Some((field, value.as_f64()?)));
    let figures = numbers.map(|(field, value)| {
        let figure = figure(&format!("{prefix}{field}"), value);
        match probability(field).filter(|probability| !is_shown(count, *probability)) {
            Some(probability) => Figure {
                value: None,
                text: format!("too few: {count} of {}", format::count(fewest_for_quantile(probability))),
                ..figure
            },
            None => figure,
        }
    });
    figures.collect()
}

/// 0.999 of `p999_ms` or `lateness_p999_us`.
fn probability(field: &str) -> Option<f64> {
    field.split('_').find_map(|part| format!("0.{}", part.strip_prefix('p')?).parse().ok())
}

/// Of a trial that does not count, with names of their own, so that nobody averages them with those that do.
fn set_aside_figures(records: &Records, trial: &Trial) -> Vec<Figure> {
    let reason = disturbance(records, trial).unwrap_or_default();
    let result = trial.measurement.iter().map(|measurement| result(trial, measurement));
    let result = result.map(|figure| Figure { metric: "set_aside_result".to_owned(), ..figure });
    let mark = Figure { text: reason, ..figure("trial_set_aside", 1.0) };
    [mark].into_iter().chain(phases(trial)).chain(result).collect()
}

/// The figure of a trial that counts, by its name; of all types of transactions, and of the whole trial, unless one or a
/// part is named.
pub(crate) fn figure_of(
    trial: &Trial,
    cell: &Cell,
    transaction: Option<&str>,
    part: Option<&str>,
    name: &str,
) -> Option<f64> {
    let (transaction, part) = (transaction.unwrap_or_default(), part.unwrap_or_default());
    let is_it =
        |figure: &Figure| figure.metric == name && figure.part == part && figure.transaction == transaction;
    figures(trial, cell).into_iter().find(is_it)?.value
}

/// Seconds of a window beside an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EventSide {
    Before,
    After,
}

/// Share of the cores' time, as a figure beside those of the CSV.
pub(crate) const CPU_BUSY_PERCENT: &str = "cpu_busy_percent";

/// A figure of a series, for the seconds on that side of the window's first event.
pub(crate) fn figure_beside_event(measurement: &Measurement, side: EventSide, name: &str) -> Option<f64> {
    let part = match side {
        EventSide::Before => measurement.parts.first()?,
        EventSide::After => measurement.parts.get(1)?,
    };
    let seconds = |series: &[f64]| part.seconds(series, measurement.duration_s).to_vec();
    if name == CPU_BUSY_PERCENT {
        return Some(spindle_stats::mean(&seconds(&measurement.series.cpu_busy))? * 100.0);
    }
    let server = measurement.series.server.iter().map(|(name, series)| (name.clone(), seconds(series)));
    of_series("server", &server.collect()).into_iter().find(|figure| figure.metric == name)?.value
}

fn phases(trial: &Trial) -> impl Iterator<Item = Figure> {
    trial.phases_s.iter().map(|(phase, seconds)| figure(&format!("phase_{phase}_s"), *seconds))
}

fn figures(trial: &Trial, cell: &Cell) -> Vec<Figure> {
    let failure = failure(trial);
    let mut figures = vec![Figure {
        text: failure.clone().unwrap_or_default(),
        ..figure("trial_failed", f64::from(u8::from(failure.is_some())))
    }];
    figures.extend(phases(trial));
    let swept = |value: &SweptValue| Figure {
        metric: format!("swept_{}", value.key),
        value: value.number,
        text: value.value.clone(),
        ..Figure::default()
    };
    figures.extend(cell.sweep.iter().map(swept));
    // A trial that failed its verification has a measurement, but it is excluded from calculations.
    if let Some(measurement) = trial.measurement.as_ref().filter(|_| failure.is_none()) {
        figures.push(result(trial, measurement));
        figures.push(warnings(trial));
        figures.extend(of_measurement(measurement));
        figures.extend(of_transactions(measurement));
        figures.extend(of_mounts("", &cell.mounts, &measurement.mounts));
        let heads = cell.replication.iter().flat_map(|replication| &replication.replicas);
        let views = measurement.replication.iter().flat_map(|replication| &replication.replicas);
        for (index, (head, view)) in heads.zip(views).enumerate() {
            let part = format!("replica {}", index + 1);
            figures.extend(of_replica(&part, view));
            figures.extend(of_mounts(&format!("{part}: "), &head.mounts, &view.mounts));
        }
    }
    figures
}

/// The figure by which cells are compared. Its unit is the metric's name.
fn result(trial: &Trial, measurement: &Measurement) -> Figure {
    let derived = Warning::derived(measurement);
    let few = derived.iter().find(|warning| warning.is_of_few_events());
    let moving = trial.warnings.iter().find(|warning| warning.is_of_steadiness());
    Figure {
        unit: measurement.metric.name.clone(),
        text: few.into_iter().chain(moving).map(Warning::name).join("; "),
        ..figure("result", measurement.metric.value)
    }
}

fn warnings(trial: &Trial) -> Figure {
    let names = trial.warnings.iter().map(Warning::name).join("; ");
    Figure { text: names, ..figure("warnings", trial.warnings.len() as f64) }
}

fn of_measurement(measurement: &Measurement) -> Vec<Figure> {
    let mut figures =
        vec![figure("window_s", measurement.duration_s), figure("dilation", measurement.dilation.factor())];
    if let Some(Settling { is_steady, needed_s, last_to_settle, .. }) = &measurement.settling {
        let last = last_to_settle.join("; ");
        figures.push(figure("settling_s", *needed_s));
        figures.push(Figure { text: last, ..figure("settled", f64::from(u8::from(*is_steady))) });
    }
    figures.extend(measurement.cache_turnovers.map(|turnovers| figure("cache_turnovers", turnovers)));
    figures.extend(measurement.recovery_s.map(|seconds| figure("recovery_s", seconds)));
    figures.extend(latencies(&measurement.latency));
    figures.extend(numbers("per_transaction_", &measurement.per_transaction, 0));
    figures.extend(numbers("cpu_", &measurement.cpu, 0));
    figures.extend(of_series("server", &measurement.series.server));
    figures.extend(of_series("machine", &measurement.series.machine));
    figures.extend(measurement.machine.iter().flat_map(|machine| numbers("machine_", machine, 0)));
    let bottleneck = &measurement.bottleneck;
    figures.push(Figure { value: None, text: bottleneck.kind.name(), ..figure("bottleneck", 0.0) });
    let share = |(cause, share): (&String, &f64)| figure(&format!("{cause}_share"), *share);
    figures.extend(bottleneck.shares.iter().map(share));
    let passed = measurement.verification.iter().filter(|check| check.passed).count();
    figures.push(figure("verifications_passed", passed as f64));
    if let Some(replication) = &measurement.replication {
        figures.push(figure("binlog_bytes", replication.binlog_bytes as f64));
        let semi_sync = replication.semi_sync.as_ref().map(|view| numbers("semi_sync_", view, 0));
        figures.extend(semi_sync.into_iter().flatten());
    }
    figures
}

/// None where nobody timed the transactions.
fn latencies(latency: &Latency) -> Vec<Figure> {
    if latency.is_unknown() { Vec::new() } else { numbers("latency_", latency, latency.count) }
}

/// Mean, extremes and coefficient of variation of the series by name.
fn of_series(whose: &str, series: &BTreeMap<String, Vec<f64>>) -> Vec<Figure> {
    let of = |(name, values): (&String, &Vec<f64>)| {
        let values = values.iter().copied();
        let figures = [
            ("mean", spindle_stats::mean(&values.clone().collect_vec())),
            ("variation", variation(&values.clone().collect_vec())),
            ("lowest", values.clone().reduce(f64::min)),
            ("highest", values.reduce(f64::max)),
        ];
        let named =
            |(what, value): (&str, Option<f64>)| Some(figure(&format!("{whose}_{what}_{name}"), value?));
        figures.into_iter().filter_map(named).collect_vec()
    };
    series.iter().flat_map(of).collect()
}

/// The standard deviation over the mean.
pub(super) fn variation(values: &[f64]) -> Option<f64> {
    let mean = spindle_stats::mean(values).filter(|mean| *mean > 0.0)?;
    let squares = values.iter().map(|value| (value - mean).powi(2)).collect_vec();
    Some(spindle_stats::mean(&squares)?.sqrt() / mean)
}

fn of_transactions(measurement: &Measurement) -> Vec<Figure> {
    let of_kind = measurement.transactions.iter().flat_map(|kind| {
        let mut figures = numbers("", kind, 0);
        figures.extend(kind.client_cpu_us().map(|us| figure("client_cpu_per_transaction_us", us)));
        figures.extend(latencies(&kind.latency));
        figures.into_iter().map(|figure| Figure { transaction: kind.name.clone(), ..figure })
    });
    of_kind.collect()
}

/// What the emulator and the kernel counted on each mount, and on each device of a mount with several.
fn of_mounts(whose: &str, heads: &[MountHead], views: &[MountView]) -> Vec<Figure> {
    let mut figures = Vec::new();
    let mut add = |part: String, emulator: Option<_>, kernel: Option<_>| {
        let of_emulator =
            emulator.map(|view: &crate::record::EmulatorSummary| numbers("emulator_", view, view.requests));
        let of_kernel = kernel.map(|view: &crate::record::HostView| numbers("kernel_", view, 0));
        let both = of_emulator.into_iter().chain(of_kernel).flatten();
        figures.extend(both.map(|figure| Figure { part: part.clone(), ..figure }));
    };
    for (head, view) in heads.iter().zip(views) {
        let part = format!("{whose}{}", head.classes.iter().map(|class| class.key()).join("+"));
        add(part.clone(), view.emulator.as_ref(), view.host.as_ref());
        for device in &view.devices {
            add(format!("{part}, {} device", device.name), device.emulator.as_ref(), device.host.as_ref());
        }
    }
    for (head, view) in heads.iter().zip(views) {
        let part = format!("{whose}{}", head.classes.iter().map(|class| class.key()).join("+"));
        let written = variation(&view.series.write_mb_per_s);
        let written = written.map(|value| figure("emulator_variation_write_mb_per_s", value));
        figures.extend(written.map(|figure| Figure { part: part.clone(), ..figure }));
        figures.extend(of_layers(&part, &view.layers));
        for device in &view.devices {
            figures.extend(of_layers(&format!("{part}, {} device", device.name), &device.layers));
        }
    }
    figures
}

/// A layer's part names those above it: `data: cache: raid: disk 1`.
fn of_layers(part: &str, layers: &[LayerView]) -> Vec<Figure> {
    let (mut figures, mut above) = (Vec::new(), Vec::new());
    for LayerView { depth, name, reads, writes, flushes, discards, read_bytes, write_bytes } in layers {
        above.truncate(*depth as usize);
        above.push(name.as_str());
        let part = format!("{part}: {}", above.join(": "));
        let of_layer = [
            ("layer_reads", reads),
            ("layer_writes", writes),
            ("layer_flushes", flushes),
            ("layer_discards", discards),
            ("layer_read_bytes", read_bytes),
            ("layer_write_bytes", write_bytes),
        ];
        let named =
            |(name, value): (&str, &u64)| Figure { part: part.clone(), ..figure(name, *value as f64) };
        figures.extend(of_layer.map(named));
    }
    figures
}

fn of_replica(part: &str, view: &ReplicaView) -> Vec<Figure> {
    let mut figures = numbers("", view, 0);
    if let Some((mean, max)) = view.series.behind_s_mean_and_max() {
        figures.extend([figure("behind_mean_s", mean), figure("behind_max_s", max)]);
    }
    let named = figures.into_iter().map(|figure| Figure { part: part.to_owned(), ..figure });
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_says_its_unit() {
        let units =
            ["lateness_p99_us", "late_share", "server_s", "reads"].map(|field| figure(field, 1.0).unit);
        assert_eq!(units, ["us", "share", "s", ""]);
    }

    #[test]
    fn a_quantile_of_too_few_values_is_empty_and_says_so() {
        let check = |count: u64, expect: (Option<f64>, &str)| {
            let figures = numbers("", &json!({ "p99_ms": 2.0 }), count);
            assert_eq!((figures[0].value, figures[0].text.as_str()), expect);
        };
        check(999, (None, "too few: 999 of 1,000"));
        check(1_000, (Some(2.0), ""));
    }

    #[test]
    fn the_probability_is_in_the_name_of_a_quantile() {
        let names = ["p50_ms", "p999_ms", "lateness_p99_us", "per_transaction", "mean_ms"];
        assert_eq!(names.map(probability), [Some(0.5), Some(0.999), Some(0.99), None, None]);
    }
}
