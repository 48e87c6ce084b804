//! The measurement of a trial.

mod chart;
mod events;
mod evidence;
mod production;
mod settling;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use spindle_base::dilation::Dilation;
use spindle_load::{Check, Metric};

use super::{FileClass, MountView, ReplicationView, words};
pub use chart::{ChartHead, SeriesUnit};
pub use events::{EventView, PartView};
pub use evidence::{
    BusyThread, CommitEstimate, Evidence, RateEvidence, RateOf, RedoEvidence, StorageEvidence, ThreadEvidence,
};
pub use production::{ProductionView, SampledTrace};
pub use settling::Settling;

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct Measurement {
    /// Length of the measured window, in dilated time as every figure of the measurement. CPU seconds are
    /// those of the emulated cores.
    pub duration_s: f64,
    /// How many times longer the window was in real time, and how many times faster the cores looked.
    #[serde(default, skip_serializing_if = "Dilation::is_none")]
    #[schemars(with = "f64")]
    pub dilation: Dilation,
    /// The workload's own metric, by which cells are compared.
    /// Named `headline` in older records.
    #[serde(alias = "headline", deserialize_with = "metric_by_its_current_name")]
    pub metric: Metric,
    /// One per transaction type, in the workload's order.
    pub transactions: Vec<TransactionSummary>,
    /// All transaction types together. Missing where nobody timed them: counters know no latencies.
    #[serde(default, skip_serializing_if = "Latency::is_unknown")]
    pub latency: Latency,
    pub series: Series,
    /// How many times what the load had read before the window would fill the server's cache. `None` in earlier records,
    /// for a cold start, for fixed work, and where the size of the cache is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_turnovers: Option<f64>,
    /// `None` unless the scenario says `settle = "until steady"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settling: Option<Settling>,
    /// The server was killed behind the window: from its start to its first answer, on the emulated storage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery_s: Option<f64>,
    /// In the order of [`super::Cell::mounts`].
    pub mounts: Vec<MountView>,
    pub cpu: CpuSummary,
    /// `None` in earlier records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineActivity>,
    pub per_transaction: PerTransaction,
    /// Named `limiter` in older records.
    #[serde(alias = "limiter")]
    pub bottleneck: Bottleneck,
    /// `None` without replicas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replication: Option<ReplicationView>,
    /// The logs that are on their storage when a commit returns. `None` in earlier records, and for a server
    /// that does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flushed_at_commit: Option<Vec<FileClass>>,
    /// Differences of server counters over the measured window, by the server's own names.
    pub server_counters: BTreeMap<String, f64>,
    pub verification: Vec<Check>,
    /// The events that took place, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<EventView>,
    /// The parts of the window that the events make; none without events.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<PartView>,
    /// Present if the server was observed in production.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub production: Option<ProductionView>,
}

impl Measurement {
    /// The part of so many cores that server, load generator, emulator and replicas used, 0 to 1.
    pub(crate) fn own_cpu_share(&self, cpu_count: u32) -> Option<f64> {
        let cores_s = self.duration_s * f64::from(cpu_count);
        self.own_cpu_s().filter(|_| cores_s > 0.0).map(|own_s| own_s / cores_s)
    }

    /// CPU time of server, load generator, emulator and replicas. `None` for a server that Spindle did not
    /// start: it has counters and no process.
    fn own_cpu_s(&self) -> Option<f64> {
        let is_unknown = match &self.bottleneck.evidence {
            Some(evidence) => evidence.is_server_cpu_unknown,
            None => self.cpu.server_s == 0.0 && !self.server_counters.is_empty(),
        };
        if is_unknown {
            return None;
        }
        let replicas = self.replication.iter().flat_map(|replication| &replication.replicas);
        let replicas_s: f64 = replicas.map(|replica| replica.server_cpu_s).sum();
        Some(self.cpu.server_s + self.cpu.client_s + self.cpu.emulator_s + replicas_s)
    }

    /// Number of events in the window that the metric counts. Rows of one statement are one event, because
    /// they end together. `None` for fixed work, whose metric is a time.
    pub fn metric_events(&self) -> Option<u64> {
        let period_s = match self.metric.name.as_str() {
            name if name.contains(" per second") => 1.0,
            name if name.contains(" per minute") => 60.0,
            _ => return None,
        };
        let counted = (self.metric.value * self.duration_s / period_s).round() as u64;
        Some(counted.min(self.ended()))
    }

    /// Transactions that ended in the window, timed or only counted.
    pub(crate) fn ended(&self) -> u64 {
        let counted = || self.transactions.iter().map(|kind| kind.committed + kind.rolled_back).sum();
        if self.latency.is_unknown() { counted() } else { self.latency.count }
    }
}

/// Earlier records call fixed work "the list".
fn metric_by_its_current_name<'de, D: Deserializer<'de>>(metric: D) -> Result<Metric, D::Error> {
    let metric = Metric::deserialize(metric)?;
    let name = match metric.name.as_str() {
        "seconds for the list" => "seconds for the fixed work",
        "lists per hour" => "passes per hour",
        "operations per second of an unfinished list" => "operations per second of an unfinished pass",
        _ => return Ok(metric),
    };
    Ok(Metric { name: name.to_owned(), ..metric })
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq)]
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
    /// Missing where nobody timed them.
    #[serde(default, skip_serializing_if = "Latency::is_unknown")]
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
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq, Default)]
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

impl Latency {
    /// Whether nobody timed a transaction. Where transactions were timed and none ended, there is an empty
    /// histogram.
    pub fn is_unknown(&self) -> bool {
        *self == Latency::default()
    }
}

/// Activity of clients, cores and server: one value per second of the measured window. All vectors have the
/// same length; those without a source are empty.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq, Default)]
pub struct Series {
    pub transactions_per_s: Vec<f64>,
    pub p50_ms: Vec<f64>,
    pub p95_ms: Vec<f64>,
    pub p99_ms: Vec<f64>,
    /// Share of all cores, from 0 to 1.
    pub cpu_busy: Vec<f64>,
    /// What the machine did, by the names of [`MachineActivity`] that change from second to second; the cores
    /// in use by each process, the page cache, and the inside of the emulated drives.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub machine: BTreeMap<String, Vec<f64>>,
    /// Server counters as rates or levels, by name: `checkpoint_age_bytes`, `dirty_pages`, `history_list`,
    /// ...
    #[serde(default)]
    pub server: BTreeMap<String, Vec<f64>>,
    /// Charts of `server` and of `machine`; empty in earlier records, in which each counter of the server is
    /// a chart of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub charts: Vec<ChartHead>,
}

/// The machine over the measured window. Shares are of all cores' time, or of the window for pressure (time in
/// which processes waited: Documentation/accounting/psi.rst); from 0 to 1.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema, PartialEq, Default)]
pub struct MachineActivity {
    pub cpu_user: f64,
    pub cpu_system: f64,
    pub cpu_iowait: f64,
    /// What the hypervisor gave to others.
    pub cpu_steal: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pressure_cpu_some: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pressure_io_some: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pressure_io_full: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pressure_memory_some: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pressure_memory_full: Option<f64>,
    /// The least of all samples.
    pub memory_available_bytes: u64,
    /// The tail of timed answers between two threads, before the trial's server and clients began: what the
    /// host alone adds ([`spindle_mount::bare_tail`]), in real time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timer_tail_us: Option<f64>,
    /// What a fixed piece of arithmetic takes a core within the window, in the processor's time: the mean of its times and
    /// of the cores. `None` in earlier records; those from before 2026-12-03 have another piece.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core_work_us: Option<f64>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq, Default)]
pub struct CpuSummary {
    /// Share of all cores over the measured window, from 0 to 1.
    pub busy: f64,
    pub server_s: f64,
    pub client_s: f64,
    pub emulator_s: f64,
    /// The program that takes the samples of each second, without what the server spends on its answers.
    /// `None` in earlier records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampling_s: Option<f64>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq, Default)]
pub struct PerTransaction {
    pub reads: f64,
    pub writes: f64,
    pub read_kib: f64,
    pub write_kib: f64,
    pub flushes: f64,
    pub server_cpu_us: f64,
    pub client_cpu_us: f64,
    /// Of the server by its own count, of which a FLUSH of a device may serve several. `None` in earlier
    /// records, and for a server without such a counter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fsyncs: Option<f64>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum BottleneckKind {
    /// All cores.
    Cpu,
    /// One thread, or as many as there are terminals, while other cores are idle.
    OneCore,
    ReadLatency,
    CommitLatency,
    /// Writes and FLUSHes outside of commits.
    WriteLatency,
    Bandwidth,
    /// Requests per second.
    RequestRate,
    /// Of rows.
    Locks,
    /// Of files: of several threads that read and write one, some wait for the others.
    FileLocks,
    /// The acknowledgement of a replica.
    Replica,
    Client,
    Unknown,
}

impl BottleneckKind {
    /// Continues "limited by".
    pub fn name(self) -> String {
        match self {
            BottleneckKind::Cpu => "CPU".to_owned(),
            BottleneckKind::Client => "load generator".to_owned(),
            other => words(&other),
        }
    }
}

/// The bottleneck of a trial.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct Bottleneck {
    pub kind: BottleneckKind,
    /// Shares by cause, from 0 to 1: `read`, `commit`, `storage`, `locks`, `file-locks`, `work`, `queue` and `other` of
    /// the terminals' time, `cpu` of the cores, `bandwidth` and `requests` of a stated rate.
    pub shares: BTreeMap<String, f64>,
    /// The figures behind the verdict, in one sentence.
    pub reason: String,
    /// `None` in earlier records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<NextStep>,
    /// `None` in earlier records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Box<Evidence>>,
}

/// What to try next.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct NextStep {
    pub sentence: String,
    /// Upper bound of the throughput after the step, as a multiple of that before. `None` where the figures
    /// state none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<f64>,
}

impl Bottleneck {
    /// The reason, and what to try next.
    pub fn sentences(&self) -> String {
        match &self.next {
            Some(next) => format!("{} {}", self.reason, next.sentence),
            None => self.reason.clone(),
        }
    }

    /// The kind for a line that has no room for the reason.
    pub fn short(&self) -> String {
        match self.kind {
            BottleneckKind::Unknown => "no single bottleneck".to_owned(),
            kind => format!("limited by {}", kind.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_of_earlier_records_has_its_current_name() {
        let check = |written: &str, expect: &str| {
            let metric = serde_json::json!({"name": written, "value": 1});
            assert_eq!(metric_by_its_current_name(metric).unwrap().name, expect);
        };
        check("seconds for the list", "seconds for the fixed work");
        check("lists per hour", "passes per hour");
        check("commits per second", "commits per second");
    }
}
