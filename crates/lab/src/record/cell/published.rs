//! The row of a published table that a cell reproduces, as a scenario names it.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

use itertools::Itertools as _;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Cell;
use crate::record::{EmulatorSummary, Measurement};

/// A value of a table's dimension. TOML's `1` and `1.0` are equal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Mark {
    Switch(bool),
    Number(f64),
    Text(String),
}

/// Values by dimension. A value for every dimension of a table selects one row.
pub type Selector = BTreeMap<String, Mark>;

/// A cell, and the row of a published table that it reproduces.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PublishedTag {
    /// Study, as `spindle published list` names it.
    #[schemars(example = &"x25m-2009-tpcc-mysql")]
    pub study: String,
    /// Table of the study, as `spindle published show STUDY` names it.
    #[schemars(example = &"tpcc-peak")]
    pub table: String,
    /// Row of the table: a value for each of its dimensions.
    #[schemars(example = serde_json::json!({ "scenario": "hdd" }))]
    pub row: Selector,
    /// The cell's stack or layout. Leave it out if the matrix has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack: Option<String>,
    /// The cell's server. Leave it out if the matrix has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The cell's workload. Leave it out if the matrix has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
    /// Figure of a trial that stands for the row's. Unless given, `metric`.
    #[serde(default, skip_serializing_if = "TrialFigure::is_metric")]
    pub figure: TrialFigure,
    /// Column of the row. Unless given, `value`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
}

/// A figure of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TrialFigure {
    /// The workload's metric.
    #[default]
    Metric,
    LatencyMeanMs,
    LatencyP50Ms,
    LatencyP95Ms,
    LatencyP99Ms,
    LatencyP999Ms,
    /// Share of all cores.
    CpuBusyPercent,
    /// Requests that reached the emulated devices of all mounts.
    ReadsPerS,
    WritesPerS,
    /// Mean size of such a request.
    ReadKib,
    WriteKib,
}

impl PublishedTag {
    pub fn is_of(&self, cell: &Cell) -> bool {
        let is = |wanted: &Option<String>, name: &str| wanted.as_deref().is_none_or(|wanted| wanted == name);
        is(&self.stack, cell.layout_name())
            && is(&self.server, &cell.server)
            && is(&self.workload, &cell.workload)
    }
}

impl TrialFigure {
    fn is_metric(&self) -> bool {
        *self == TrialFigure::Metric
    }

    /// `None` for a request of a storage without an emulator, and for the size of no request.
    pub fn of(self, measurement: &Measurement) -> Option<f64> {
        let latency = &measurement.latency;
        let sum = |count: fn(&EmulatorSummary) -> u64| -> Option<f64> {
            let counts = measurement.mounts.iter().map(|mount| mount.emulator.as_ref().map(count));
            counts.sum::<Option<u64>>().map(|sum| sum as f64)
        };
        let kib = |bytes: Option<f64>, count: Option<f64>| Some(bytes? / count? / 1024.0);
        let value = match self {
            TrialFigure::Metric => Some(measurement.metric.value),
            TrialFigure::LatencyMeanMs => Some(latency.mean_ms),
            TrialFigure::LatencyP50Ms => Some(latency.p50_ms),
            TrialFigure::LatencyP95Ms => Some(latency.p95_ms),
            TrialFigure::LatencyP99Ms => Some(latency.p99_ms),
            TrialFigure::LatencyP999Ms => Some(latency.p999_ms),
            TrialFigure::CpuBusyPercent => Some(measurement.cpu.busy * 100.0),
            TrialFigure::ReadsPerS => sum(|of| of.reads).map(|count| count / measurement.duration_s),
            TrialFigure::WritesPerS => sum(|of| of.writes).map(|count| count / measurement.duration_s),
            TrialFigure::ReadKib => kib(sum(|of| of.read_bytes), sum(|of| of.reads)),
            TrialFigure::WriteKib => kib(sum(|of| of.write_bytes), sum(|of| of.writes)),
        };
        value.filter(|value| value.is_finite())
    }
}

impl Display for Mark {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Mark::Switch(on) => on.fmt(formatter),
            Mark::Number(number) => number.fmt(formatter),
            Mark::Text(text) => text.fmt(formatter),
        }
    }
}

/// `scenario = hdd, test = create`.
pub fn selector_words(selector: &Selector) -> String {
    selector.iter().map(|(key, mark)| format!("{key} = {mark}")).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_and_real_numbers_of_a_row_are_equal() {
        let read = |text: &str| toml::from_str::<Selector>(text).unwrap();
        assert_eq!(read("a = 1\nb = \"x\""), read("a = 1.0\nb = \"x\""));
        assert_ne!(read("a = 1"), read("a = \"1\""));
        assert_eq!(
            selector_words(&read("b = 30\na = \"x\"\nc = true\nd = 0.5")),
            "a = x, b = 30, c = true, d = 0.5"
        );
    }

    #[test]
    fn a_figure_without_a_source_has_no_value() {
        let text = include_str!("../../../../../records/quickstart/records.jsonl");
        let records = crate::record::input::parse(text, "quickstart").unwrap();
        let mut measurement = records.trials.iter().find_map(|trial| trial.measurement.clone()).unwrap();
        assert_eq!(TrialFigure::Metric.of(&measurement), Some(measurement.metric.value));
        let kib = TrialFigure::ReadKib.of(&measurement).unwrap();
        assert!((4.0..1024.0).contains(&kib), "{kib} KiB a read");
        assert!(TrialFigure::ReadsPerS.of(&measurement).unwrap() > 1.0);
        measurement.mounts[0].emulator = None;
        assert_eq!(TrialFigure::ReadsPerS.of(&measurement), None);
        assert_eq!(TrialFigure::ReadKib.of(&measurement), None);
    }
}
