//! Comma-separated values (RFC 4180), one row per trial, for other people's tools.
//!
//! What only some records have comes last: a column for each operation whose clients' CPU is known, and some for each replica.

use super::{Records, bottleneck::bottleneck_name, cell::failure, view::short_name};
use crate::record::{Measurement, ReplicaView, Trial};
use spindle_base::text::one_line;

type Column = (&'static str, fn(&Trial, Option<&Measurement>) -> String);

fn value(measurement: Option<&Measurement>, pick: impl Fn(&Measurement) -> f64) -> String {
    known(measurement.map(pick))
}

fn known(value: Option<f64>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

const COLUMNS: [Column; 29] = [
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
    ("server_cpu_us_per_transaction", |_, m| value(m, |m| m.per_transaction.server_cpu_us)),
    ("client_cpu_us_per_transaction", |_, m| value(m, |m| m.per_transaction.client_cpu_us)),
    ("cpu_busy", |_, m| value(m, |m| m.cpu.busy)),
    ("bottleneck", |_, m| m.map(|m| bottleneck_name(m.bottleneck.kind).to_owned()).unwrap_or_default()),
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

type ReplicaColumn = (&'static str, fn(&ReplicaView) -> String);

/// In the names, `replica_1_` and so on come before these.
const REPLICA_COLUMNS: [ReplicaColumn; 5] = [
    ("name", |replica| replica.name.clone()),
    ("behind_s_mean", |replica| known(replica.series.behind_s_mean_and_max().map(|(mean, _)| mean))),
    ("behind_s_max", |replica| known(replica.series.behind_s_mean_and_max().map(|(_, max)| max))),
    ("behind_mb_last", |replica| known(replica.behind_bytes_last.map(|bytes| bytes as f64 / 1e6))),
    ("catch_up_s", |replica| known(replica.catch_up_s)),
];

/// What only some records have.
struct Further<'a> {
    /// Operations of which the client's CPU is known.
    operations: Vec<&'a str>,
    replica_count: usize,
}

impl<'a> Further<'a> {
    fn of(records: &'a Records) -> Further<'a> {
        let measurements = records.trials.iter().filter_map(|trial| trial.measurement.as_ref());
        let mut further = Further { operations: Vec::new(), replica_count: 0 };
        for measurement in measurements {
            for operation in measurement.transactions.iter().filter(|kind| kind.client_cpu_us().is_some()) {
                if !further.operations.contains(&operation.name.as_str()) {
                    further.operations.push(&operation.name);
                }
            }
            let replica_count = measurement.replication.as_ref().map_or(0, |view| view.replicas.len());
            further.replica_count = further.replica_count.max(replica_count);
        }
        further
    }

    fn names(&self) -> impl Iterator<Item = String> {
        let operations = self.operations.iter().map(|name| format!("client_cpu_us_{name}"));
        let replicas = (1..=self.replica_count)
            .flat_map(|number| REPLICA_COLUMNS.map(|(name, _)| format!("replica_{number}_{name}")));
        operations.chain(replicas)
    }

    fn values(&self, measurement: Option<&Measurement>) -> impl Iterator<Item = String> {
        let cpu_us = move |name: &&str| {
            let mut kinds = measurement?.transactions.iter();
            kinds.find(|kind| kind.name == **name)?.client_cpu_us()
        };
        let replica = move |index| measurement?.replication.as_ref()?.replicas.get(index);
        let of_replica =
            move |index| REPLICA_COLUMNS.map(|(_, column)| replica(index).map(column).unwrap_or_default());
        let operations = self.operations.iter().map(move |name| known(cpu_us(name)));
        operations.chain((0..self.replica_count).flat_map(of_replica))
    }
}

pub(super) fn rows(records: &Records) -> String {
    let further = Further::of(records);
    let names = COLUMNS.iter().map(|(name, _)| (*name).to_owned()).chain(further.names());
    let mut text = line(names);
    for trial in &records.trials {
        // A trial that failed its verification has a measurement, but not one to calculate with.
        let measurement = trial.measurement.as_ref().filter(|_| failure(trial).is_none());
        let fields = COLUMNS.iter().map(|(_, column)| column(trial, measurement));
        text += &line(fields.chain(further.values(measurement)));
    }
    text
}

/// A spreadsheet would calculate what begins so (OWASP, "CSV Injection").
fn not_a_formula(field: &str) -> String {
    let is_formula = field.trim_start().starts_with(['=', '+', '-', '@']) && field.parse::<f64>().is_err();
    if is_formula { format!("'{field}") } else { field.to_owned() }
}

fn line(fields: impl Iterator<Item = String>) -> String {
    fields.map(|field| quoted(&field)).collect::<Vec<_>>().join(",") + "\n"
}

fn quoted(field: &str) -> String {
    let field = &not_a_formula(&one_line(field));
    if field.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}
