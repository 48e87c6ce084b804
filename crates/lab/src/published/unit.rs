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
    Latency {
        scale: Scale,
        statistic: Statistic,
    },
    /// Requests a second, divided by those of the figure's `over`.
    Ratio,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    Microseconds,
    Milliseconds,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Statistic {
    Mean,
    Percentile(f64),
}

impl Scale {
    fn name_and_us(self) -> (&'static str, f64) {
        match self {
            Scale::Microseconds => ("us", 1.0),
            Scale::Milliseconds => ("ms", 1e3),
        }
    }
}

/// Latencies of requests, and their elapsed time together.
pub(super) struct Sample {
    pub(super) block_bytes: u64,
    pub(super) latencies_us: Vec<f64>,
    pub(super) elapsed_ns: u64,
}

impl Sample {
    pub(super) fn per_second(&self) -> f64 {
        self.latencies_us.len() as f64 * 1e9 / self.elapsed_ns.max(1) as f64
    }
}

/// Number of samples beyond a quantile.
const TAIL_SAMPLES: f64 = 100.0;

impl Unit {
    /// Requests that a quantile needs; zero for other quantities.
    pub(super) fn tail_requests(self) -> u64 {
        match self {
            Unit::Latency { statistic: Statistic::Percentile(percent), .. } => {
                (TAIL_SAMPLES / (1.0 - percent / 100.0)) as u64
            }
            _ => 0,
        }
    }

    /// The quantity of measured requests; `None` if there are none.
    pub(super) fn of_sample(self, sample: &Sample) -> Option<f64> {
        if sample.latencies_us.is_empty() {
            return None;
        }
        let bytes_per_s = sample.per_second() * sample.block_bytes as f64;
        match self {
            Unit::RequestsPerS | Unit::Ratio => Some(sample.per_second()),
            Unit::MegabytesPerS => Some(bytes_per_s / 1e6),
            Unit::MebibytesPerS => Some(bytes_per_s / f64::from(1 << 20)),
            Unit::Latency { scale, statistic } => {
                let us = match statistic {
                    Statistic::Mean => spindle_stats::mean(&sample.latencies_us),
                    Statistic::Percentile(percent) => {
                        spindle_stats::quantile(&sample.latencies_us, percent / 100.0)
                    }
                };
                us.map(|us| us / scale.name_and_us().1)
            }
        }
    }

    /// The quantity of a row of a bench; `None` if the row lacks it.
    pub(super) fn of_row(self, row: &Row) -> Option<f64> {
        match self {
            Unit::RequestsPerS => Some(row.per_second),
            Unit::MegabytesPerS => Some(row.bytes_per_s / 1e6),
            Unit::MebibytesPerS => Some(row.bytes_per_s / f64::from(1 << 20)),
            Unit::Ratio => None,
            Unit::Latency { scale, statistic } => {
                let us = match statistic {
                    Statistic::Mean => Some(row.latency_us_mean),
                    Statistic::Percentile(50.0) => row.latency_us_p50,
                    Statistic::Percentile(99.0) => row.latency_us_p99,
                    Statistic::Percentile(99.9) => row.latency_us_p999,
                    Statistic::Percentile(_) => None,
                };
                us.map(|us| us / scale.name_and_us().1)
            }
        }
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unit::RequestsPerS => formatter.write_str("requests/s"),
            Unit::MegabytesPerS => formatter.write_str("MB/s"),
            Unit::MebibytesPerS => formatter.write_str("MiB/s"),
            Unit::Ratio => formatter.write_str("ratio"),
            Unit::Latency { scale, statistic: Statistic::Mean } => {
                write!(formatter, "{} mean", scale.name_and_us().0)
            }
            Unit::Latency { scale, statistic: Statistic::Percentile(percent) } => {
                write!(formatter, "{} p{percent}", scale.name_and_us().0)
            }
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
        match text.as_str() {
            "requests/s" => return Ok(Unit::RequestsPerS),
            "MB/s" => return Ok(Unit::MegabytesPerS),
            "MiB/s" => return Ok(Unit::MebibytesPerS),
            "ratio" => return Ok(Unit::Ratio),
            _ => {}
        }
        latency(&text).ok_or_else(|| {
            format!(
                "unit: `{text}` must be \"requests/s\", \"MB/s\", \"MiB/s\", \"ratio\", or a latency such as \
                 \"us mean\", \"ms p50\" or \"ms p99.9\""
            )
        })
    }
}

fn latency(text: &str) -> Option<Unit> {
    let (scale, statistic) = text.split_once(' ')?;
    let scale = match scale {
        "us" => Scale::Microseconds,
        "ms" => Scale::Milliseconds,
        _ => return None,
    };
    if statistic == "mean" {
        return Some(Unit::Latency { scale, statistic: Statistic::Mean });
    }
    let percent: f64 = statistic.strip_prefix('p')?.parse().ok()?;
    let is_one = percent > 0.0 && percent < 100.0;
    is_one.then_some(Unit::Latency { scale, statistic: Statistic::Percentile(percent) })
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
