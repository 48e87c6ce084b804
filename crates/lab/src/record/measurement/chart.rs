//! Charts over time of the series that a record keeps by name.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A chart of some of the series by name, all in one unit.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq, Eq)]
pub struct ChartHead {
    pub title: String,
    /// Names in [`super::Series::server`] or [`super::Series::machine`].
    pub lines: Vec<String>,
}

/// The unit of a series, with which its name ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SeriesUnit {
    Bytes,
    MegabytesPerSecond,
    PerSecond,
    /// From 0 to 1.
    Share,
    /// Mean number of processor cores in use.
    Cores,
    Milliseconds,
    /// Things that the name itself says.
    Count,
}

/// A longer suffix stands before its own end.
const SUFFIXES: [(&str, SeriesUnit); 6] = [
    ("_bytes", SeriesUnit::Bytes),
    ("_mb_per_s", SeriesUnit::MegabytesPerSecond),
    ("_per_s", SeriesUnit::PerSecond),
    ("_share", SeriesUnit::Share),
    ("_cores", SeriesUnit::Cores),
    ("_ms", SeriesUnit::Milliseconds),
];

impl SeriesUnit {
    /// The unit of a series, and its name without it: `checkpoint age` of `checkpoint_age_bytes`.
    pub fn split(name: &str) -> (String, SeriesUnit) {
        // Shares whose names say of what.
        if name.starts_with("cpu_") || name.starts_with("pressure_") {
            return (name.replace('_', " "), SeriesUnit::Share);
        }
        let found = SUFFIXES.iter().find_map(|(suffix, unit)| Some((name.strip_suffix(suffix)?, *unit)));
        let (words, unit) = found.unwrap_or((name, SeriesUnit::Count));
        (words.replace('_', " "), unit)
    }

    /// After a title; empty where the labels of an axis say it.
    pub fn words(self) -> &'static str {
        match self {
            SeriesUnit::MegabytesPerSecond => "MB per second",
            SeriesUnit::PerSecond => "per second",
            SeriesUnit::Milliseconds => "ms",
            SeriesUnit::Bytes | SeriesUnit::Share | SeriesUnit::Cores | SeriesUnit::Count => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_ends_with_its_unit() {
        let check = |name: &str, words: &str, unit: SeriesUnit| {
            assert_eq!(SeriesUnit::split(name), (words.to_owned(), unit));
        };
        check("checkpoint_age_bytes", "checkpoint age", SeriesUnit::Bytes);
        check("flash_write_mb_per_s", "flash write", SeriesUnit::MegabytesPerSecond);
        check("cpu_user", "cpu user", SeriesUnit::Share);
        check("log_waits_per_s", "log waits", SeriesUnit::PerSecond);
        check("history_list", "history list", SeriesUnit::Count);
    }
}
