//! What a trial measured.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{MountView, ReplicationView};

#[derive(Debug, Clone, Serialize, Deserialize, PartialEq)]
pub struct Measurement {
    /// Length of the measured window.
    pub duration_s: f64,
    /// The workload's own figure, by which cells are compared.
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
    /// Older records call it `limiter`.
    pub bottleneck: Bottleneck,
    /// Of a server with replicas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replication: Option<ReplicationView>,
    /// Server counters over the measured window (differences), by the server's own names.
    pub server_counters: BTreeMap<String, f64>,
    pub verification: Vec<Check>,
}

#[derive(Debug, Clone, Serialize, Deserialize, PartialEq)]
pub struct Metric {
    /// For example `new-order transactions per minute`.
    pub name: String,
    pub value: f64,
    /// A time; everything else is better when it is higher.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lower_is_better: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize, PartialEq)]
pub struct TransactionSummary {
    pub name: String,
    pub committed: u64,
    /// Rolled back because the workload says so (TPC-C's 1 % of new orders).
    pub rolled_back: u64,
    /// Attempts that the server refused (deadlock, lock wait timeout) and that were tried again.
    pub retried: u64,
    pub failed: u64,
    /// User and system CPU of the clients in these transactions; only some workloads say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_cpu_s: Option<f64>,
    pub latency: Latency,
}

impl TransactionSummary {
    /// Microseconds of the client's CPU in each; `None` where the workload does not say it, or none ended.
    pub fn client_cpu_us(&self) -> Option<f64> {
        let count = self.latency.count as f64;
        self.client_cpu_s.filter(|_| count > 0.0).map(|seconds| seconds * 1e6 / count)
    }
}

/// Milliseconds, from the send (closed loop) or the intended start (open loop).
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

/// What the clients, the cores and the server did: one value per second of the measured window; all vectors
/// have the same length, or are empty where nobody says the values.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Default)]
pub struct Series {
    pub transactions_per_s: Vec<f64>,
    pub p50_ms: Vec<f64>,
    pub p95_ms: Vec<f64>,
    pub p99_ms: Vec<f64>,
    /// Share of all cores, 0 to 1.
    pub cpu_busy: Vec<f64>,
    /// Server counters as rates or levels, by name: `checkpoint_age_bytes`, `dirty_pages`, `history_list`,
    /// ...
    #[serde(default)]
    pub server: BTreeMap<String, Vec<f64>>,
}

#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Default)]
pub struct CpuSummary {
    /// Share of all cores over the measured window, 0 to 1.
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

/// What a trial was waiting for.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq)]
pub struct Bottleneck {
    pub kind: BottleneckKind,
    /// Share of the terminals' time, 0 to 1, by cause: `read`, `commit`, `locks`, `other`; and `cpu` of the
    /// cores.
    pub shares: BTreeMap<String, f64>,
    /// One sentence with the figures behind the verdict.
    pub reason: String,
}

/// One verification of the database after the trial.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
pub struct Check {
    pub name: String,
    pub passed: bool,
    pub detail: String,
}
