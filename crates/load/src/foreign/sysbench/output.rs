//! Parses the output of sysbench 1.0.

use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use hdrhistogram::Histogram;

use spindle_base::histogram;

/// Start of the line of a second.
const SECOND: &str = "[ ";
/// The bins are between this line and an empty one.
const HISTOGRAM: &str = "Latency histogram (values are in milliseconds)";
/// Bins are reported in milliseconds with three decimals.
const US_PER_MS: f64 = 1e3;

/// The line of a second without its time; `None` for other lines.
///
/// # Errors
/// The line starts like a second but continues differently.
pub(crate) fn second(line: &str) -> Result<Option<&str>> {
    let Some(rest) = line.strip_prefix(SECOND) else { return Ok(None) };
    let (seconds, rest) = rest.split_once("s ] ").with_context(|| format!("sysbench wrote {line:?}"))?;
    seconds.parse::<f64>().with_context(|| format!("sysbench wrote {line:?}"))?;
    Ok(Some(rest))
}

/// The number after `label` in a line.
pub(crate) fn number_after(line: &str, label: &str) -> Result<f64> {
    let wrong = || anyhow!("sysbench wrote {line:?}, without a number after {label:?}");
    let rest = line.split_once(label).ok_or_else(wrong)?.1.trim_start();
    let length = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(rest.len());
    let number: f64 = rest[..length].parse().map_err(|_| wrong())?;
    ensure!(number.is_finite(), wrong());
    Ok(number)
}

/// The number in the indented line that starts with `label`.
///
/// # Errors
/// There is no such line, or more than one.
pub(crate) fn number(output: &[String], label: &str) -> Result<f64> {
    let mut lines = output.iter().filter(|line| line.trim_start().starts_with(label));
    let line = lines.next().with_context(|| format!("no {label:?}"))?;
    ensure!(lines.next().is_none(), "{label:?} is said twice");
    number_after(line, label)
}

/// The figures that every test reports.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) duration: Duration,
    pub(crate) event_count: u64,
    /// In microseconds.
    pub(crate) latencies: Histogram<u64>,
}

pub(crate) fn report(output: &[String]) -> Result<Report> {
    let duration = Duration::try_from_secs_f64(number(output, "total time:")?).context("the total time")?;
    ensure!(!duration.is_zero(), "a total time of nothing");
    let event_count = number(output, "total number of events:")? as u64;
    let latencies = latencies(output)?;
    let found = latencies.len();
    ensure!(found == event_count, "{event_count} events, and {found} in the histogram");
    Ok(Report { duration, event_count, latencies })
}

fn latencies(output: &[String]) -> Result<Histogram<u64>> {
    let mut lines =
        output.iter().skip_while(|line| line.as_str() != HISTOGRAM).skip(1).map(|line| line.trim());
    let is_titles = |line: &str| line.starts_with("value ") && line.ends_with(" count");
    ensure!(lines.next().is_some_and(is_titles), "no histogram");
    let mut latencies = histogram::new();
    for line in lines.take_while(|line| !line.is_empty()) {
        let bin = || {
            let (value_ms, rest) = line.split_once('|')?;
            let value_ms: f64 = value_ms.trim().parse().ok()?;
            let count: u64 = rest.split_whitespace().last()?.parse().ok()?;
            Some(((value_ms * US_PER_MS).round() as u64, count))
        };
        let (value_us, count) = bin().with_context(|| format!("{line:?} is no bin of a histogram"))?;
        latencies.saturating_record_n(value_us, count);
    }
    Ok(latencies)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    /// Printed by sysbench 1.0.20.
    const REPORT: &str = "\
Latency histogram (values are in milliseconds)
       value  ------------- distribution ------------- count
       0.017 |                                         1
       0.018 |**************************************** 41
       0.018 |*                                        2
       1.824 |                                         1
\x20

General statistics:
    total time:                          2.0034s
    total number of events:              45

Latency (ms):
         min:                                    0.02
";

    #[test]
    fn a_report_has_its_time_its_events_and_its_latencies() {
        let report = report(&lines(REPORT)).unwrap();
        assert_eq!(report.duration, Duration::from_micros(2_003_400));
        assert_eq!(report.event_count, 45);
        assert_eq!(report.latencies.count_at(18), 43);
        assert_eq!((report.latencies.min(), report.latencies.max()), (17, 1824));
    }

    #[track_caller]
    fn check_refused(from: &str, to: &str, expect: &str) {
        let changed = REPORT.replacen(from, to, 1);
        assert_ne!(changed, REPORT);
        let error = format!("{:#}", report(&lines(&changed)).unwrap_err());
        assert!(error.contains(expect), "{error}");
    }

    #[test]
    fn a_report_that_lacks_or_contradicts_something_is_no_report() {
        check_refused("    total time:                          2.0034s\n", "", "no \"total time:\"");
        check_refused("2.0034s", "0.0000s", "a total time of nothing");
        check_refused("2.0034s", "soon", "without a number");
        check_refused(
            "events:              45",
            "events:              44",
            "44 events, and 45 in the histogram",
        );
        check_refused("Latency histogram", "Histogram", "no histogram");
        check_refused("**** 41", "**** many", "is no bin of a histogram");
        check_refused("\n\nGeneral", "\n    total time:   1.0s\n\nGeneral", "is said twice");
    }

    #[test]
    fn only_a_second_is_a_second() {
        assert_eq!(second("[ 12s ] thds: 1 tps: 2.00").unwrap(), Some("thds: 1 tps: 2.00"));
        assert_eq!(second("Threads started!").unwrap(), None);
        assert!(second("[ soon ] thds: 1").is_err());
        assert!(second("[ xs ] thds: 1").is_err());
    }
}
