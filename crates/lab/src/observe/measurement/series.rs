//! The series of a record, one value per second.

use std::collections::BTreeMap;

use spindle_load::Second;

use super::{Window, machine as activity};
use crate::observe::{Sample, machine};
use crate::record::{ChartHead, Series};
use crate::report::rounded;
use crate::server::telemetry::{Chart, Telemetry};

type Named = BTreeMap<String, Vec<f64>>;

/// The series of the clients, the cores and the server. Mounts have series of their own.
pub(super) fn series(window: &Window) -> Series {
    let mut series = Series::default();
    let mut earlier = &window.first;
    for (second, sample) in &window.seconds {
        push(&mut series, window.telemetry, second, [earlier, sample]);
        let elapsed_s = elapsed_s([earlier, sample]);
        push_lines(&mut series.machine, &machine::CHARTS, [&earlier.readings, &sample.readings], elapsed_s);
        earlier = sample;
    }
    let length = series.transactions_per_s.len();
    for (named, charts) in
        [(&mut series.server, window.telemetry.charts()), (&mut series.machine, &machine::CHARTS[..])]
    {
        // A counter with missing values would be misaligned with the others.
        named.retain(|_, values| values.len() == length);
        named.values_mut().flatten().for_each(|value| *value = rounded(*value));
        series.charts.extend(charts.iter().filter_map(|chart| head(chart, named)));
    }
    series.cpu_busy.iter_mut().for_each(|busy| *busy = rounded(*busy));
    series
}

/// A chart of those of its lines that have values.
fn head(chart: &Chart, named: &Named) -> Option<ChartHead> {
    let names = chart.lines.iter().map(|line| line.name).filter(|name| named.contains_key(*name));
    let lines: Vec<String> = names.map(str::to_owned).collect();
    (!lines.is_empty()).then(|| ChartHead { title: chart.title.to_owned(), lines })
}

fn elapsed_s([earlier, later]: [&Sample; 2]) -> f64 {
    later.at.saturating_sub(earlier.at).as_secs_f64()
}

/// Adds a second, with the samples at its start and its end.
pub fn push(series: &mut Series, telemetry: &dyn Telemetry, second: &Second, between: [&Sample; 2]) {
    let [earlier, sample] = between;
    push_of_clients(series, second);
    series.cpu_busy.push(sample.cpu.busy_since(earlier.cpu));
    for (name, value) in activity::second(between) {
        series.machine.entry(name.to_owned()).or_default().push(value);
    }
    let counters = [&earlier.counters, &sample.counters];
    push_lines(&mut series.server, telemetry.charts(), counters, elapsed_s(between));
}

fn push_lines(named: &mut Named, charts: &[Chart], between: [&BTreeMap<String, f64>; 2], elapsed_s: f64) {
    for line in charts.iter().flat_map(|chart| chart.lines) {
        if let Some(value) = line.value(between, elapsed_s) {
            named.entry(line.name.to_owned()).or_default().push(value);
        }
    }
}

/// Adds the figures of the clients alone.
pub fn push_of_clients(series: &mut Series, second: &Second) {
    series.transactions_per_s.push(second.transactions as f64);
    series.p50_ms.extend(second.p50_ms);
    series.p95_ms.extend(second.p95_ms);
    series.p99_ms.extend(second.p99_ms);
}
