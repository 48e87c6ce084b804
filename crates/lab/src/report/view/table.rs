//! One row per trial, for other programs.
//!
//! Columns that only some records have come last: one for each operation with known client CPU, and several
//! for each replica.

use itertools::Itertools as _;
use serde::Serialize;
use serde_json::Value;

use super::bottleneck::bottleneck_name;
use super::cell::failure;
use super::short_name;
use crate::record::{EmulatorSummary, Measurement, ReplicaView, Trial};
use crate::report::Records;

/// Every row has a value for every column; `null` when it is unknown.
#[derive(Debug, Clone, Serialize)]
pub struct TrialTable {
    pub columns: Vec<String>,
    pub rows: Vec<Vec<Value>>,
}

type Column = (&'static str, fn(&Trial, Option<&Measurement>) -> Value);

fn value(measurement: Option<&Measurement>, pick: impl Fn(&Measurement) -> f64) -> Value {
    measurement.map(pick).into()
}

const COLUMNS: [Column; 29] = [
    ("cell", |trial, _| trial.cell.clone().into()),
    ("trial", |trial, _| trial.trial.into()),
    ("block", |trial, _| trial.block.into()),
    ("started_at", |trial, _| trial.started_at.clone().into()),
    ("seed", |trial, _| trial.provenance.seed.into()),
    ("server_version", |trial, _| trial.provenance.server_version.clone().into()),
    ("duration_s", |_, m| value(m, |m| m.duration_s)),
    ("metric", |_, m| m.map(|m| m.metric.name.clone()).into()),
    ("value", |_, m| value(m, |m| m.metric.value)),
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
    ("bottleneck", |_, m| m.map(|m| bottleneck_name(m.bottleneck.kind)).into()),
    ("lateness_p99_us", |_, m| emulator(m).map(|emulator| emulator.lateness_p99_us).into()),
    ("late_share", |_, m| emulator(m).map(|emulator| emulator.late_share).into()),
    ("warnings", |trial, _| trial.warnings.iter().map(short_name).join("; ").into()),
    ("error", |trial, _| failure(trial).into()),
];

type ReplicaColumn = (&'static str, fn(&ReplicaView) -> Value);

/// The names get a prefix: `replica_1_` and so on.
const REPLICA_COLUMNS: [ReplicaColumn; 5] = [
    ("name", |replica| replica.name.clone().into()),
    ("behind_s_mean", |replica| replica.series.behind_s_mean_and_max().map(|(mean, _)| mean).into()),
    ("behind_s_max", |replica| replica.series.behind_s_mean_and_max().map(|(_, max)| max).into()),
    ("behind_mb_last", |replica| replica.behind_bytes_last.map(|bytes| bytes as f64 / 1e6).into()),
    ("catch_up_s", |replica| replica.catch_up_s.into()),
];

/// The optional columns.
struct Further<'a> {
    /// Operations with known client CPU.
    operations: Vec<&'a str>,
    replica_count: usize,
}

impl<'a> Further<'a> {
    fn of(records: &'a Records) -> Further<'a> {
        let measurements = records.trials.iter().filter_map(|trial| trial.measurement.as_ref());
        let operations = measurements.clone().flat_map(|measurement| &measurement.transactions);
        let timed = operations.filter(|kind| kind.client_cpu_us().is_some());
        let replications = measurements.filter_map(|measurement| measurement.replication.as_ref());
        Further {
            operations: timed.map(|kind| kind.name.as_str()).unique().collect(),
            replica_count: replications.map(|view| view.replicas.len()).max().unwrap_or_default(),
        }
    }

    fn names(&self) -> impl Iterator<Item = String> {
        let operations = self.operations.iter().map(|name| format!("client_cpu_us_{name}"));
        let replicas = (1..=self.replica_count)
            .flat_map(|number| REPLICA_COLUMNS.map(|(name, _)| format!("replica_{number}_{name}")));
        operations.chain(replicas)
    }

    fn values(&self, measurement: Option<&Measurement>) -> impl Iterator<Item = Value> {
        let cpu_us = move |name: &&str| {
            let mut kinds = measurement?.transactions.iter();
            kinds.find(|kind| kind.name == **name)?.client_cpu_us()
        };
        let replica = move |index| measurement?.replication.as_ref()?.replicas.get(index);
        let of_replica =
            move |index| REPLICA_COLUMNS.map(|(_, column)| replica(index).map(column).unwrap_or_default());
        let operations = self.operations.iter().map(move |name| cpu_us(name).into());
        operations.chain((0..self.replica_count).flat_map(of_replica))
    }
}

impl TrialTable {
    pub(super) fn new(records: &Records) -> TrialTable {
        let further = Further::of(records);
        let columns = COLUMNS.iter().map(|(name, _)| (*name).to_owned()).chain(further.names());
        let row = |trial: &Trial| {
            // A trial that failed its verification has a measurement, but it is excluded from calculations.
            let measurement = trial.measurement.as_ref().filter(|_| failure(trial).is_none());
            let fields = COLUMNS.iter().map(|(_, column)| column(trial, measurement));
            fields.chain(further.values(measurement)).collect()
        };
        TrialTable { columns: columns.collect(), rows: records.trials.iter().map(row).collect() }
    }
}

fn emulator(measurement: Option<&Measurement>) -> Option<&EmulatorSummary> {
    measurement?.mounts.first()?.emulator.as_ref()
}
