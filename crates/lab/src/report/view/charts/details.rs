//! The charts of one cell alone, from the trial with the middle result: the server's counters, the machine,
//! and the kernel's counters of each device.

use itertools::Itertools as _;
use serde::Serialize;

use super::over_time::{Points, Reduction, rounded};
use crate::record::{ChartHead, HostSeries, Measurement, OperationSeries, Series, SeriesUnit, Trial};
use crate::report::text::capitalized;
use crate::report::view::CellView;

#[derive(Debug, Clone, Serialize)]
pub(super) struct Details {
    pub trial: u32,
    pub charts: Vec<DetailChart>,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct DetailChart {
    pub title: String,
    pub unit: SeriesUnit,
    /// After the title; empty for a plain number.
    pub unit_words: &'static str,
    pub lines: Vec<DetailLine>,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct DetailLine {
    pub label: String,
    /// Over the seconds with a value, as the next two.
    pub mean: Option<f64>,
    pub lowest: Option<f64>,
    pub highest: Option<f64>,
    pub points: Points,
}

/// `None` without a trial.
pub(super) fn details(
    cell: &CellView,
    trials: &[(&Trial, &Measurement)],
    reduction: Reduction,
) -> Option<Details> {
    let by_result =
        trials.iter().sorted_by(|(_, one), (_, other)| one.metric.value.total_cmp(&other.metric.value));
    let (trial, measurement) = by_result.collect_vec().get(trials.len().saturating_sub(1) / 2).copied()?;
    let mut charts = of_series(&measurement.series, reduction);
    let is_alone = cell.storages.len() == 1;
    for storage in &cell.storages {
        let whose = if is_alone { String::new() } else { format!(", {}", storage.name) };
        let found = storage.place.host_series(measurement).filter(|series| !series.is_empty());
        charts.extend(found.into_iter().flat_map(|series| of_device(series, &whose, reduction)));
    }
    (!charts.is_empty()).then_some(Details { trial: trial.trial, charts })
}

/// The charts that the record declares. In earlier records, each counter of the server has its own.
fn of_series(series: &Series, reduction: Reduction) -> Vec<DetailChart> {
    let single = |name: &String| {
        let (title, _) = SeriesUnit::split(name);
        let title = capitalized(&title);
        ChartHead { title, lines: vec![name.clone()] }
    };
    let heads = match series.charts.as_slice() {
        [] => series.server.keys().map(single).collect(),
        heads => heads.to_vec(),
    };
    let chart = |head: &ChartHead| {
        let lines = head.lines.iter().filter_map(|name| {
            let values = series.server.get(name).or_else(|| series.machine.get(name))?;
            let (label, unit) = SeriesUnit::split(name);
            Some((unit, line(label, values.iter().copied().map(Some), reduction)))
        });
        let (units, lines): (Vec<_>, Vec<_>) = lines.unzip();
        Some(detail_chart(head.title.clone(), *units.first()?, lines))
    };
    heads.iter().filter_map(chart).collect()
}

fn detail_chart(title: String, unit: SeriesUnit, lines: Vec<DetailLine>) -> DetailChart {
    DetailChart { title, unit, unit_words: unit.words(), lines }
}

fn line(label: String, values: impl Iterator<Item = Option<f64>>, reduction: Reduction) -> DetailLine {
    let values = values.map(|value| value.filter(|value| value.is_finite())).collect_vec();
    let known = values.iter().flatten().copied().collect_vec();
    DetailLine {
        label,
        mean: spindle_stats::mean(&known).map(rounded),
        lowest: known.iter().copied().reduce(f64::min).map(rounded),
        highest: known.iter().copied().reduce(f64::max).map(rounded),
        points: reduction.points(&values),
    }
}

/// Requests, response times and concurrency by kind. By Little's law the mean number in flight is the sum of
/// the times over the elapsed time.
fn of_device(series: &HostSeries, whose: &str, reduction: Reduction) -> Vec<DetailChart> {
    type Figure = fn(&OperationSeries, usize, f64) -> Option<f64>;
    let charts: [(&str, SeriesUnit, Figure); 3] = [
        ("Requests that the kernel completed", SeriesUnit::PerSecond, |of, second, elapsed_s| {
            Some(*of.count.get(second)? as f64 / elapsed_s)
        }),
        ("Response time, by the kernel", SeriesUnit::Milliseconds, |of, second, _| {
            let count = *of.count.get(second)?;
            (count > 0).then(|| of.time_ms.get(second).copied().unwrap_or(0.0) / count as f64)
        }),
        ("Requests in flight, by Little's law", SeriesUnit::Count, |of, second, elapsed_s| {
            Some(of.time_ms.get(second)? / 1e3 / elapsed_s)
        }),
    ];
    let kinds = [
        ("reads", &series.read),
        ("writes", &series.write),
        ("flushes", &series.flush),
        ("discards", &series.discard),
    ];
    let seen = kinds.into_iter().filter(|(_, of)| !of.count.is_empty()).collect_vec();
    let chart = |(title, unit, figure): (&str, SeriesUnit, Figure)| {
        let lines = seen.iter().map(|(label, of)| {
            let seconds = series.elapsed_s.iter().enumerate();
            let values = seconds.map(|(second, elapsed_s)| figure(of, second, *elapsed_s));
            line((*label).to_owned(), values, reduction)
        });
        detail_chart(format!("{title}{whose}"), unit, lines.collect())
    };
    if seen.is_empty() { Vec::new() } else { charts.into_iter().map(chart).collect() }
}
