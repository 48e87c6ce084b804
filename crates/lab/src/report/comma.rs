//! Comma-separated values (RFC 4180), one row per trial, for other people's tools.

use super::{Records, cell::failure, limit::limiter_name, view::short_name};
use crate::record::{Measurement, Trial};

type Column = (&'static str, fn(&Trial, Option<&Measurement>) -> String);

fn value(measurement: Option<&Measurement>, pick: impl Fn(&Measurement) -> f64) -> String {
    measurement.map(|measurement| pick(measurement).to_string()).unwrap_or_default()
}

const COLUMNS: [Column; 27] = [
    ("cell", |trial, _| trial.cell.clone()),
    ("trial", |trial, _| trial.trial.to_string()),
    ("block", |trial, _| trial.block.to_string()),
    ("started_at", |trial, _| trial.started_at.clone()),
    ("seed", |trial, _| trial.provenance.seed.to_string()),
    ("server_version", |trial, _| trial.provenance.server_version.clone()),
    ("duration_s", |_, m| value(m, |m| m.duration_s)),
    ("headline", |_, m| m.map(|m| m.headline.name.clone()).unwrap_or_default()),
    ("value", |_, m| value(m, |m| m.headline.value)),
    ("transactions", |_, m| value(m, |m| m.latency.count as f64)),
    ("latency_mean_ms", |_, m| value(m, |m| m.latency.mean_ms)),
    ("latency_p50_ms", |_, m| value(m, |m| m.latency.p50_ms)),
    ("latency_p95_ms", |_, m| value(m, |m| m.latency.p95_ms)),
    ("latency_p99_ms", |_, m| value(m, |m| m.latency.p99_ms)),
    ("latency_p999_ms", |_, m| value(m, |m| m.latency.p999_ms)),
    ("latency_max_ms", |_, m| value(m, |m| m.latency.max_ms)),
    ("reads_per_transaction", |_, m| value(m, |m| m.per_transaction.reads)),
    ("writes_per_transaction", |_, m| value(m, |m| m.per_transaction.writes)),
    ("flushes_per_transaction", |_, m| value(m, |m| m.per_transaction.flushes)),
    ("read_kib_per_transaction", |_, m| value(m, |m| m.per_transaction.read_kib)),
    ("write_kib_per_transaction", |_, m| value(m, |m| m.per_transaction.write_kib)),
    ("cpu_busy", |_, m| value(m, |m| m.cpu.busy)),
    ("limiter", |_, m| m.map(|m| limiter_name(m.limiter.kind).to_owned()).unwrap_or_default()),
    ("lateness_p99_us", |_, m| {
        m.and_then(|m| m.emulator.as_ref())
            .map(|emulator| emulator.lateness_p99_us.to_string())
            .unwrap_or_default()
    }),
    ("late_share", |_, m| {
        m.and_then(|m| m.emulator.as_ref())
            .map(|emulator| emulator.late_share.to_string())
            .unwrap_or_default()
    }),
    ("warnings", |trial, _| trial.warnings.iter().map(short_name).collect::<Vec<_>>().join("; ")),
    ("error", |trial, _| failure(trial).unwrap_or_default()),
];

pub(super) fn rows(records: &Records) -> String {
    let mut text = COLUMNS.map(|(name, _)| name).join(",") + "\n";
    for trial in &records.trials {
        // A trial that failed its verification has a measurement, but not one to calculate with.
        let measurement = trial.measurement.as_ref().filter(|_| failure(trial).is_none());
        text += &(COLUMNS.map(|(_, column)| quoted(&column(trial, measurement))).join(",") + "\n");
    }
    text
}

fn quoted(field: &str) -> String {
    if field.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}
