//! The events of a window, and its parts between them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spindle_load::Metric;

use super::Latency;

/// A change that was planted in the window, and took place. Times are seconds since the begin of the window,
/// dilated as it is.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq, Default)]
pub struct EventView {
    /// In words, such as `innodb_io_capacity = 2000`.
    pub change: String,
    pub planned_s: f64,
    pub at_s: f64,
    /// Until the server, the disk or the load process had changed.
    pub took_s: f64,
    /// What it found and left, in words; empty where nothing answers.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub outcome: String,
}

/// The part of a window between two events, with the transactions that ended in it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq, Default)]
pub struct PartView {
    pub from_s: f64,
    pub to_s: f64,
    /// The workload's own metric.
    pub metric: Metric,
    pub latency: Latency,
}
