//! The unit of a published number.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::bench::Row;

/// Spelling in a file: `requests/s`, `MB/s`, `MiB/s`, `ratio`, or a latency such as `us mean` or `ms p99.9`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Unit {
    RequestsPerS,
    MegabytesPerS,
    MebibytesPerS,
    /// The mean without a percentile.
    Latency {
        scale: Scale,
        percentile: Option<f64>,
    },
    /// Requests a second, divided by those of the figure's `over`.
    Ratio,
}

const NAMES: [(&str, Unit); 4] = [
    ("requests/s", Unit::RequestsPerS),
    ("MB/s", Unit::MegabytesPerS),
    ("MiB/s", Unit::MebibytesPerS),
    ("ratio", Unit::Ratio),
];

/// A unit of time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    name: &'static str,
    length_us: f64,
}

const SCALES: [Scale; 2] = [Scale { name: "us", length_us: 1.0 }, Scale { name: "ms", length_us: 1e3 }];

/// Latencies of requests, and their elapsed time together.
pub(super) struct Sample {
    pub(super) block_bytes: u64,
    pub(super) latencies_us: Vec<f64>,
    pub(super) elapsed_ns: u64,
}

/// Number of samples beyond a quantile.
const TAIL_SAMPLES: f64 = 100.0;

impl Unit {
    /// Requests that a quantile needs; zero for other quantities.
    pub(super) fn tail_requests(self) -> u64 {
        match self {
            Unit::Latency { percentile: Some(percent), .. } => {
                (TAIL_SAMPLES / (1.0 - percent / 100.0)) as u64
            }
            _ => 0,
        }
    }

    /// The quantity of measured requests; `None` if there are none.
    pub(super) fn of_sample(self, sample: &Sample) -> Option<f64> {
        let latencies_us = &sample.latencies_us;
        let mean_us = spindle_stats::mean(latencies_us)?;
        let per_second = latencies_us.len() as f64 * 1e9 / sample.elapsed_ns.max(1) as f64;
        let latency_us = |percentile: Option<f64>| match percentile {
            None => Some(mean_us),
            Some(percent) => spindle_stats::quantile(latencies_us, percent / 100.0),
        };
        self.of(per_second, per_second * sample.block_bytes as f64, latency_us)
    }

    /// The quantity of a row of a bench; `None` if the row lacks it.
    pub(super) fn of_row(self, row: &Row) -> Option<f64> {
        let latency_us = |percentile| match percentile {
            None => Some(row.latency_us_mean),
            Some(50.0) => row.latency_us_p50,
            Some(99.0) => row.latency_us_p99,
            Some(99.9) => row.latency_us_p999,
            Some(_) => None,
        };
        self.of(row.per_second, row.bytes_per_s, latency_us)
    }

    fn of(
        self,
        per_second: f64,
        bytes_per_s: f64,
        latency_us: impl Fn(Option<f64>) -> Option<f64>,
    ) -> Option<f64> {
        match self {
            Unit::RequestsPerS | Unit::Ratio => Some(per_second),
            Unit::MegabytesPerS => Some(bytes_per_s / 1e6),
            Unit::MebibytesPerS => Some(bytes_per_s / f64::from(1 << 20)),
            Unit::Latency { scale, percentile } => Some(latency_us(percentile)? / scale.length_us),
        }
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unit::Latency { scale, percentile: None } => write!(formatter, "{} mean", scale.name),
            Unit::Latency { scale, percentile: Some(percent) } => {
                write!(formatter, "{} p{percent}", scale.name)
            }
            other => NAMES
                .iter()
                .filter(|(_, unit)| unit == other)
                .try_for_each(|(name, _)| formatter.write_str(name)),
        }
    }
}

impl From<Unit> for String {
    fn from(unit: Unit) -> String {
        unit.to_string()
    }
}

impl TryFrom<String> for Unit {
    type Error = String;

    fn try_from(text: String) -> Result<Unit, String> {
        let named = NAMES.iter().find(|(name, _)| *name == text).map(|(_, unit)| *unit);
        named.or_else(|| latency(&text)).ok_or_else(|| {
            format!(
                "unit: `{text}` must be \"requests/s\", \"MB/s\", \"MiB/s\", \"ratio\", or a latency such as \
                 \"us mean\", \"ms p50\" or \"ms p99.9\""
            )
        })
    }
}

fn latency(text: &str) -> Option<Unit> {
    let (scale, statistic) = text.split_once(' ')?;
    let scale = SCALES.into_iter().find(|known| known.name == scale)?;
    if statistic == "mean" {
        return Some(Unit::Latency { scale, percentile: None });
    }
    let percent: f64 = statistic.strip_prefix('p')?.parse().ok()?;
    let is_one = percent > 0.0 && percent < 100.0;
    is_one.then_some(Unit::Latency { scale, percentile: Some(percent) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_read_back_as_they_are_written() {
        for text in
            ["requests/s", "MB/s", "MiB/s", "ratio", "us mean", "ms mean", "ms p10", "us p50", "ms p99.9"]
        {
            assert_eq!(Unit::try_from(text.to_owned()).unwrap().to_string(), text);
        }
        for text in ["", "s mean", "ms p0", "ms p100", "ms pNaN", "ms 50", "GB/s"] {
            assert!(Unit::try_from(text.to_owned()).unwrap_err().starts_with("unit: "), "{text}");
        }
    }

    #[test]
    fn a_sample_has_the_quantity_of_each_unit() {
        let sample =
            Sample { block_bytes: 1 << 20, latencies_us: vec![1e3, 2e3, 6e3], elapsed_ns: 9_000_000 };
        let of = |text: &str| Unit::try_from(text.to_owned()).unwrap().of_sample(&sample).unwrap();
        let close = |value: f64, expected: f64| assert!((value / expected - 1.0).abs() < 1e-9, "{value}");
        close(of("requests/s"), 1e3 / 3.0);
        close(of("MiB/s"), 1e3 / 3.0);
        close(of("MB/s"), 1.048_576e3 / 3.0);
        close(of("us mean"), 3e3);
        close(of("ms p50"), 2.0);
    }
}
