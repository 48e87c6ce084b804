//! The series of a record, one value per second.

use spindle_load::Second;

use super::{Window, machine, ratio};
use crate::observe::Sample;
use crate::record::Series;
use crate::server::telemetry::{Chart, Telemetry};

/// The series of the clients, the cores and the server. Mounts have series of their own.
pub(super) fn series(window: &Window) -> Series {
    let mut series = Series::default();
    let mut earlier = &window.first;
    for (second, sample) in &window.seconds {
        push(&mut series, window.telemetry, second, [earlier, sample]);
        earlier = sample;
    }
    // A counter with missing values would be misaligned with the others.
    let length = series.transactions_per_s.len();
    series.server.retain(|_, values| values.len() == length);
    series
}

/// Adds a second, with the samples at its start and its end.
pub fn push(
    series: &mut Series,
    telemetry: &dyn Telemetry,
    second: &Second,
    [earlier, sample]: [&Sample; 2],
) {
    let elapsed_s = (sample.at - earlier.at).as_secs_f64();
    push_of_clients(series, second);
    series.cpu_busy.push(sample.cpu.busy_since(earlier.cpu));
    for (name, value) in machine::second([earlier, sample]) {
        series.machine.entry(name.to_owned()).or_default().push(value);
    }
    for Chart { name, counter, is_level, .. } in telemetry.charts() {
        let Some(now) = sample.counters.get(*counter) else { continue };
        let before = earlier.counters.get(*counter).copied().unwrap_or(*now);
        let value = if *is_level { *now } else { ratio(now - before, elapsed_s) };
        series.server.entry((*name).to_owned()).or_default().push(value);
    }
}

/// Adds the figures of the clients alone.
pub fn push_of_clients(series: &mut Series, second: &Second) {
    series.transactions_per_s.push(second.transactions as f64);
    series.p50_ms.extend(second.p50_ms);
    series.p95_ms.extend(second.p95_ms);
    series.p99_ms.extend(second.p99_ms);
}
