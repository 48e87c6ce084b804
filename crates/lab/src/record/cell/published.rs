//! The row of a published table that a cell reproduces, as a scenario names it.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

use itertools::Itertools as _;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Cell;

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
    /// Table of the study, as `spindle published show STUDY` names it, or the quantity of a check without a
    /// table.
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
    /// An axis of values: the row is of the cell with the best metric on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"terminals")]
    pub best_over: Option<String>,
    /// Figure of a trial that stands for the row's: `metric`, or one of the CSV (docs/records.md), such as
    /// `latency_p95_ms` or `server_mean_checkpoint_age_bytes`. Of all mounts together: `reads_per_s`,
    /// `writes_per_s`, `reads_and_writes_per_s`, `read_kib` and `write_kib`, and `cpu_busy_percent` of the machine.
    /// `swept_KEY` is the best value of the axis `best_over`. Unless given, `metric`.
    #[serde(default, skip_serializing_if = "FigureName::is_metric")]
    pub figure: FigureName,
    /// Part of the figure, as in the CSV: a mount, such as `data`, or a part of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"data")]
    pub part: Option<String>,
    /// Type of transaction of the figure, as in the CSV. Unless given, all types together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"new-order")]
    pub transaction: Option<String>,
    /// Divisor of a figure that is a sum over the window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per: Option<Per>,
    /// Stack or layout of another cell, with the same server and workload: the row is the ratio of the two cells, block by
    /// block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"hdd")]
    pub over: Option<String>,
    /// The figure divided by this is in the row's unit: 1048576 makes MiB of bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub divide_by: Option<f64>,
    /// The row is a time, and the figure a rate: the seconds that so many of what it counts take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = 50000)]
    pub seconds_for: Option<f64>,
    /// Column of the row. Unless given, `value`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    /// What the cell has in place of what the study measured, such as another server: a claim about it is told with these
    /// words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"PostgreSQL in the place of CUBRID")]
    pub stand_in: Option<String>,
}

/// Name of a figure of a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct FigureName(pub String);

/// Divisor of a sum over the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Per {
    Second,
    Transaction,
}

impl PublishedTag {
    pub fn is_of(&self, cell: &Cell) -> bool {
        // A swept cell's server and workload have the values behind their names.
        let is_base = |wanted: &str, name: &str| {
            self.best_over.is_some() && name.strip_prefix(wanted).is_some_and(|rest| rest.starts_with('/'))
        };
        let is = |wanted: &Option<String>, name: &str| {
            wanted.as_deref().is_none_or(|wanted| wanted == name || is_base(wanted, name))
        };
        is(&self.stack, cell.layout_name())
            && is(&self.server, &cell.server)
            && is(&self.workload, &cell.workload)
    }
}

impl FigureName {
    const METRIC: &str = "metric";

    pub fn is_metric(&self) -> bool {
        self.0 == FigureName::METRIC
    }
}

impl Default for FigureName {
    fn default() -> FigureName {
        FigureName(FigureName::METRIC.to_owned())
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
}
