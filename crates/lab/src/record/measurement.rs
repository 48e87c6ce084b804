//! The measurement of a trial.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use spindle_load::{Check, Metric};

use super::{MountView, ReplicationView};

#[derive(Debug, Clone, Serialize, Deserialize, PartialEq)]
pub struct Measurement {
    /// Length of the measured window.
    pub duration_s: f64,
    /// The workload's own metric, by which cells are compared.
    /// Named `headline` in older records.
    #[serde(alias = "headline")]
    pub metric: Metric,
    /// One per transaction type, in the workload's order.
    pub transactions: Vec<TransactionSummary>,
    /// All transaction types together.
    pub latency: Latency,
    pub series: Series,
    /// In the order of [`super::Cell::mounts`].
    pub mounts: Vec<MountView>,
    pub cpu: CpuSummary,
    pub per_transaction: PerTransaction,
    /// Named `limiter` in older records.
    #[serde(alias = "limiter")]
    pub bottleneck: Bottleneck,
    /// `None` without replicas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replication: Option<ReplicationView>,
    /// Differences of server counters over the measured window, by the server's own names.
    pub server_counters: BTreeMap<String, f64>,
    pub verification: Vec<Check>,
}

#[derive(Debug, Clone, Serialize, Deserialize, PartialEq)]
pub struct TransactionSummary {
    pub name: String,
    pub committed: u64,
    /// Rolled back as the workload prescribes (TPC-C's 1 % of new orders).
    pub rolled_back: u64,
    /// Attempts that the server refused (deadlock, lock wait timeout) and the client repeated.
    pub retried: u64,
    pub failed: u64,
    /// User and system CPU of the clients in these transactions; only some workloads report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_cpu_s: Option<f64>,
    pub latency: Latency,
}

impl TransactionSummary {
    /// Client CPU per transaction in microseconds; `None` if the workload does not report it or no
    /// transaction ended.
    pub fn client_cpu_us(&self) -> Option<f64> {
        let count = self.latency.count as f64;
        self.client_cpu_s.filter(|_| count > 0.0).map(|seconds| seconds * 1e6 / count)
    }
}

/// In milliseconds, from the send (closed loop) or from the intended start (open loop).
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Default)]
pub struct Latency {
    pub count: u64,
    pub mean_ms: f64,
    pub p50_ms: f64,
    pub p95_ms: f64,
    pub p99_ms: f64,
    pub p999_ms: f64,
    pub max_ms: f64,
    /// HDR histogram of microseconds, three digits, V2 encoding, base64.
    pub histogram: String,
}

/// Activity of clients, cores and server: one value per second of the measured window. All vectors have the
/// same length; those without a source are empty.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Default)]
pub struct Series {
    pub transactions_per_s: Vec<f64>,
    pub p50_ms: Vec<f64>,
    pub p95_ms: Vec<f64>,
    pub p99_ms: Vec<f64>,
    /// Share of all cores, from 0 to 1.
    pub cpu_busy: Vec<f64>,
    /// Server counters as rates or levels, by name: `checkpoint_age_bytes`, `dirty_pages`, `history_list`,
    /// ...
    #[serde(default)]
    pub server: BTreeMap<String, Vec<f64>>,
}

#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Default)]
pub struct CpuSummary {
    /// Share of all cores over the measured window, from 0 to 1.
    pub busy: f64,
    pub server_s: f64,
    pub client_s: f64,
    pub emulator_s: f64,
}

#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Default)]
pub struct PerTransaction {
    pub reads: f64,
    pub writes: f64,
    pub read_kib: f64,
    pub write_kib: f64,
    pub flushes: f64,
    pub server_cpu_us: f64,
    pub client_cpu_us: f64,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum BottleneckKind {
    Cpu,
    ReadLatency,
    CommitLatency,
    Bandwidth,
    Locks,
    Client,
    Unknown,
}

/// The bottleneck of a trial.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq)]
pub struct Bottleneck {
    pub kind: BottleneckKind,
    /// Shares by cause, from 0 to 1: `read`, `commit`, `locks` and `other` of the terminals' time, `cpu` of
    /// the cores.
    pub shares: BTreeMap<String, f64>,
    /// The figures behind the verdict, in one sentence.
    pub reason: String,
}
