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

impl PartView {
    /// The seconds of a series over a whole window of this length that are in the part, by their middles.
    pub fn seconds<'a>(&self, series: &'a [f64], window_s: f64) -> &'a [f64] {
        let second_s = window_s / series.len() as f64;
        let first_from = |time_s: f64| ((time_s / second_s - 0.5).ceil().max(0.0) as usize).min(series.len());
        let (from, to) = (first_from(self.from_s), first_from(self.to_s));
        &series[from..to.max(from)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_is_of_the_part_that_has_its_middle() {
        let series = [1.0, 2.0, 3.0, 4.0, 5.0];
        let of = |from_s, to_s, window_s| {
            PartView { from_s, to_s, ..PartView::default() }.seconds(&series, window_s)
        };
        assert_eq!((of(0.0, 2.4, 5.0), of(2.4, 5.0, 5.0)), (&series[..2], &series[2..]));
        assert_eq!((of(0.0, 2.6, 5.0), of(2.6, 5.0, 5.0)), (&series[..3], &series[3..]));
        // Samples that came a little late.
        assert_eq!((of(0.0, 2.0, 5.1), of(2.0, 5.1, 5.1)), (&series[..2], &series[2..]));
        assert_eq!((of(0.0, 5.0, 5.0), of(0.1, 0.2, 5.0)), (&series[..], &series[..0]));
    }

    #[test]
    fn an_empty_series_has_no_seconds() {
        let part = PartView { from_s: 0.0, to_s: 5.0, ..PartView::default() };
        assert_eq!(part.seconds(&[], 10.0), [0.0; 0]);
    }
}
