//! What a run leaves behind: one JSON line per trial, flushed at once, with its whole provenance.
//!
//! A records file is JSON lines. The first line is a [`Header`], every further line a [`Trial`]; the report is a pure
//! function of them. A failed trial is a line with `error`. Units are in the names; times of day are UTC, RFC 3339.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::stack::layout::FileClass;

pub(crate) mod masking;
pub mod records_file;
mod replication;
pub use replication::{
    ReplicaHead, ReplicaSeries, ReplicaView, ReplicationHead, ReplicationMode, ReplicationView, SemiSyncView,
    WaitPoint,
};

/// Raised when a reader of the old format would misread the new one; this one reads all formats up to its own.
///
/// 2: a cell may have several mounts ([`Cell::other_mounts`]), which a reader of format 1 would not see.
pub const FORMAT: u32 = 2;

#[derive(Debug, Clone, Serialize, Deserialize, PartialEq)]
#[serde(tag = "line", rename_all = "kebab-case")]
#[expect(
    clippy::large_enum_variant,
    reason = "lines are read one by one; a box would only complicate the readers"
)]
pub enum Line {
    Header(Header),
    Trial(Trial),
}

/// What was asked, and on which machine.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq)]
pub struct Header {
    pub format: u32,
    pub created_at: String,
    pub provenance: Provenance,
    pub scenario: ScenarioHead,
    pub cells: Vec<Cell>,
    pub machine: Machine,
    /// Where the workloads differ from their specifications, as sentences.
    #[serde(default)]
    pub deviations: Vec<String>,
    /// Prints the report again: `spindle report FILE`.
    pub report_command: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, PartialEq)]
pub struct ScenarioHead {
    /// File stem of the scenario.
    pub name: String,
    pub title: String,
    /// The prose of the scenario (paragraphs separated by an empty line).
    pub question: String,
    /// The scenario file as it was, for the reader who wants to run it again.
    pub text: String,
    pub trials_per_cell: u32,
    pub start: StartState,
    pub seed: u64,
}

/// The state of a server's memory at the start of the measured window.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum StartState {
    /// Server just started, caches empty.
    Cold,
    /// Warmed up on the emulated storage.
    Warm,
    /// Warmed up with the physics off, then settled on the emulated storage.
    WarmFast,
}

/// One point of the matrix.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq)]
pub struct Cell {
    /// Unique within the file, short enough for an axis: `hdd`, or `hdd/mariadb` when several axes vary.
    pub name: String,
    pub label: String,
    /// By its name in the scenario; `None` when the cell has a stack and no layout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<String>,
    /// Under the data, and under every class of file that no other mount has.
    pub stack: StackHead,
    /// The further mounts of a layout; empty when everything lies on one stack.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_mounts: Vec<MountHead>,
    /// Server and workload by their names in the scenario.
    pub server: String,
    pub workload: String,
    /// Of a server with replicas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replication: Option<ReplicationHead>,
}

impl Cell {
    /// What its storage is called in the scenario.
    pub fn layout_name(&self) -> &str {
        self.layout.as_deref().unwrap_or(&self.stack.name)
    }

    /// The stacks under its mounts, the data's first, and then those of its replicas.
    pub fn stacks(&self) -> impl Iterator<Item = &StackHead> {
        let replicas = self.replication.iter().flat_map(|replication| &replication.replicas);
        let of_replicas = replicas.flat_map(|replica| {
            std::iter::once(&replica.stack).chain(replica.other_mounts.iter().map(|mount| &mount.stack))
        });
        std::iter::once(&self.stack)
            .chain(self.other_mounts.iter().map(|mount| &mount.stack))
            .chain(of_replicas)
    }
}

/// A mount of a layout besides the data's.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq)]
pub struct MountHead {
    /// What lies there and nowhere else.
    pub classes: Vec<FileClass>,
    /// The same in the server's own words, for example `ib_logfile0`.
    pub files: String,
    pub stack: StackHead,
}

#[derive(Debug, Clone, Serialize, Deserialize, PartialEq)]
pub struct StackHead {
    pub name: String,
    /// One sentence: what is emulated.
    pub summary: String,
    pub size_bytes: u64,
    pub file_system: String,
    /// Given to mkfs and to mount besides our own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mkfs_options: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mount_options: Vec<String>,
    /// Not emulated, but a disk of the machine on which it ran.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub real: bool,
    /// When the file system is ZFS: what the pool has besides the stack's own device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zfs: Option<ZfsHead>,
    /// Parameters of the profiles that have no source, as sentences.
    pub assumptions: Vec<String>,
}

/// A pool of real ZFS.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq)]
pub struct ZfsHead {
    /// Of the intent log (ZIL), which otherwise lies with the data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<ZfsDeviceHead>,
    /// Of the second-level read cache (L2ARC).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<ZfsDeviceHead>,
    pub record_bytes: u64,
    /// Most memory for the first-level cache.
    pub arc_bytes: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize, PartialEq)]
pub struct ZfsDeviceHead {
    pub name: String,
    /// One sentence: what is emulated.
    pub summary: String,
    pub size_bytes: u64,
}

impl ZfsHead {
    /// What pools must have in common for one to start from another's snapshot: the sizes of log and cache, and the record size.
    pub fn shape(&self) -> [Option<u64>; 3] {
        let size = |device: &Option<ZfsDeviceHead>| device.as_ref().map(|device| device.size_bytes);
        [size(&self.log), size(&self.cache), Some(self.record_bytes)]
    }

    /// Besides the data's.
    pub fn device_count(&self) -> u32 {
        u32::from(self.log.is_some()) + u32::from(self.cache.is_some())
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Default)]
pub struct Machine {
    pub kernel: String,
    pub cpu_model: String,
    pub cpu_count: u32,
    pub memory_bytes: u64,
    pub operating_system: String,
}

/// Everything that could make two results differ, on every line.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Default)]
pub struct Provenance {
    pub spindle_version: String,
    pub git_revision: String,
    pub scenario_hash: String,
    /// Hash of the resolved stack of this cell (profiles included); empty on the header.
    pub stack_hash: String,
    pub kernel: String,
    /// Version string of the server; empty on the header.
    pub server_version: String,
    /// Settings of the scenario as the running server reports them.
    pub settings: BTreeMap<String, String>,
    pub seed: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize, PartialEq)]
pub struct Trial {
    /// [`Cell::name`].
    pub cell: String,
    /// From 1.
    pub trial: u32,
    /// Trials of one block ran next to each other, one per cell, in shuffled order.
    pub block: u32,
    pub provenance: Provenance,
    pub started_at: String,
    /// Seconds spent per phase: restore, start, warm-up, settle, measure, verify, stop.
    pub phases_s: BTreeMap<String, f64>,
    /// Why there is no measurement: one sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measurement: Option<Measurement>,
    #[serde(default)]
    pub warnings: Vec<Warning>,
}

#[derive(Debug, Clone, Serialize, Deserialize, PartialEq)]
pub struct Measurement {
    /// Length of the measured window.
    pub duration_s: f64,
    /// The workload's own figure of merit, by which cells are compared.
    pub headline: Headline,
    /// One per transaction type, in the workload's order.
    pub transactions: Vec<TransactionSummary>,
    /// All transaction types together.
    pub latency: Latency,
    pub series: Series,
    pub emulator: Option<EmulatorSummary>,
    /// The same storage as the kernel above it saw it; `None` where there is no block device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostView>,
    /// The devices under the data where there are several, the data's own first; `emulator` is their sum then, and `host` the
    /// first of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<DeviceView>,
    /// The layout's mounts besides the data's, in the order of [`Cell::other_mounts`]. `emulator`, `host` and the storage
    /// part of `series` are the data's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_mounts: Vec<MountView>,
    pub cpu: CpuSummary,
    pub per_transaction: PerTransaction,
    /// Older records call it `limiter`.
    #[serde(alias = "limiter")]
    pub bottleneck: Bottleneck,
    /// Of a server with replicas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replication: Option<ReplicationView>,
    /// Server counters over the measured window (differences), by the server's own names.
    pub server_counters: BTreeMap<String, f64>,
    pub verification: Vec<Check>,
}

#[derive(Debug, Clone, Serialize, Deserialize, PartialEq)]
pub struct Headline {
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

/// One value per second of the measured window; all vectors have the same length, or are empty where nobody says the values.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Default)]
pub struct Series {
    pub transactions_per_s: Vec<f64>,
    pub p50_ms: Vec<f64>,
    pub p95_ms: Vec<f64>,
    pub p99_ms: Vec<f64>,
    /// Share of all cores, 0 to 1.
    pub cpu_busy: Vec<f64>,
    pub read_iops: Vec<f64>,
    pub write_iops: Vec<f64>,
    pub flushes_per_s: Vec<f64>,
    pub read_mb_per_s: Vec<f64>,
    pub write_mb_per_s: Vec<f64>,
    /// Mean number of requests inside the emulated device.
    pub queue_depth: Vec<f64>,
    /// Mean over the second as the emulated device answered; zero when there was none.
    pub read_latency_ms: Vec<f64>,
    pub write_latency_ms: Vec<f64>,
    pub flush_latency_ms: Vec<f64>,
    /// Server counters as rates or levels, by name: `checkpoint_age_bytes`, `dirty_pages`, `history_list`, ...
    #[serde(default)]
    pub server: BTreeMap<String, Vec<f64>>,
}

/// What one mount did over the measured window.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Default)]
pub struct MountView {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emulator: Option<EmulatorSummary>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostView>,
    pub series: StorageSeries,
    /// As [`Measurement::devices`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<DeviceView>,
}

/// What one of several devices of a mount did over the measured window.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Default)]
pub struct DeviceView {
    /// Of a ZFS pool `data`, `log` or `cache`.
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emulator: Option<EmulatorSummary>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostView>,
    pub series: StorageSeries,
}

/// One value per second of the measured window, as in [`Series`].
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Default)]
pub struct StorageSeries {
    pub read_iops: Vec<f64>,
    pub write_iops: Vec<f64>,
    pub flushes_per_s: Vec<f64>,
    pub read_mb_per_s: Vec<f64>,
    pub write_mb_per_s: Vec<f64>,
    pub queue_depth: Vec<f64>,
    pub read_latency_ms: Vec<f64>,
    pub write_latency_ms: Vec<f64>,
    pub flush_latency_ms: Vec<f64>,
}

/// Nothing but the storage.
impl From<StorageSeries> for Series {
    fn from(storage: StorageSeries) -> Series {
        Series {
            read_iops: storage.read_iops,
            write_iops: storage.write_iops,
            flushes_per_s: storage.flushes_per_s,
            read_mb_per_s: storage.read_mb_per_s,
            write_mb_per_s: storage.write_mb_per_s,
            queue_depth: storage.queue_depth,
            read_latency_ms: storage.read_latency_ms,
            write_latency_ms: storage.write_latency_ms,
            flush_latency_ms: storage.flush_latency_ms,
            ..Series::default()
        }
    }
}

/// What the emulator says about itself over the measured window.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Default)]
pub struct EmulatorSummary {
    /// `SCHED_FIFO`, or `SCHED_OTHER` where real time was refused.
    pub scheduler: String,
    /// How requests reach the emulator: `io_uring`, or `threads` on kernels without FUSE over io_uring.
    #[serde(default)]
    pub transport: String,
    /// Subtracted from every service time.
    pub floor_us: f64,
    pub requests: u64,
    pub lateness_p50_us: f64,
    pub lateness_p99_us: f64,
    pub lateness_max_us: f64,
    /// Share of requests answered later than 5 % of their service time.
    pub late_share: f64,
    /// Share of the time that requests took for which the emulator's lateness is to blame, beyond the floor.
    #[serde(default)]
    pub late_time_share: f64,
    pub reads: u64,
    pub writes: u64,
    pub flushes: u64,
    pub read_bytes: u64,
    pub write_bytes: u64,
    pub read_latency_mean_ms: f64,
    pub write_latency_mean_ms: f64,
    pub flush_latency_mean_ms: f64,
    pub queue_depth_mean: f64,
    pub seeks: u64,
}

/// From the block device's own counters (Linux, Documentation/block/stat.rst). Requests that wait in the kernel, for example behind a FLUSH,
/// are slower here than inside the emulator.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Default)]
pub struct HostView {
    pub reads: u64,
    pub writes: u64,
    pub flushes: u64,
    pub read_latency_mean_ms: f64,
    pub write_latency_mean_ms: f64,
    pub flush_latency_mean_ms: f64,
    #[serde(default)]
    pub read_bytes: u64,
    #[serde(default)]
    pub write_bytes: u64,
    /// Mean number of requests between their making and their completion.
    #[serde(default)]
    pub queue_depth_mean: f64,
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
    /// Share of the terminals' time, 0 to 1, by cause: `read`, `commit`, `locks`, `other`; and `cpu` of the cores.
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

/// Something that a reader must know before believing a number.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Warning {
    /// The emulator answered later than the model said.
    /// `share` is of the time that requests took.
    Late { p99_us: f64, share: f64 },
    /// The machine's cores, not the storage, set the pace. `client`: the load generator's share of all cores.
    CpuSaturated {
        busy: f64,
        #[serde(default)]
        client: f64,
    },
    /// The load generator itself used up the cores that it can use.
    ClientSaturated { share: f64 },
    /// The timer thread could not get real-time priority.
    NoRealTime,
    /// The kernel refused the emulator PR_SET_IO_FLUSHER.
    NoIoFlusher,
    /// Throughput still had a trend in the measured window.
    NotSteady { drift: f64 },
    /// The server failed some transactions.
    TransactionsFailed { share: f64 },
    /// Open loop: the server did less than it was asked, and transactions waited this long for their turn in the end.
    BehindSchedule { behind_s: f64 },
    /// The host's own disk was read while the emulated one was timed.
    HostDiskReads { major_faults: u64 },
    /// Semi-synchronous commits went on without a replica's acknowledgement; `share` is of all of them.
    SemiSyncFellBack { transactions: u64, share: f64 },
    /// A replica took this long after the window to apply what the primary had written in it; `None` when it had not after `waited_s`.
    ReplicaBehind { replica: String, catch_up_s: Option<f64>, waited_s: f64 },
    /// A replica did not answer when it was asked, once a second, for its progress.
    ReplicaSilent { replica: String, share: f64 },
}

impl Warning {
    /// Whether it is the same in every trial on a machine, so that saying it once is enough.
    pub fn is_of_machine(&self) -> bool {
        matches!(self, Warning::NoIoFlusher)
    }

    /// The fact, and what to do about it.
    pub fn sentence(&self) -> String {
        match self {
            Warning::Late { p99_us, share } => format!(
                "The emulator answered late (p99 {p99_us:.0} us), which is {:.1} % of the time that requests took: \
                 latencies are upper bounds; use fewer terminals or a machine with idle cores.",
                share * 100.0
            ),
            Warning::CpuSaturated { busy, client } => format!(
                "The cores were {:.0} % busy, {:.0} % with the load generator: this cell shows what the machine can do, not what the storage can; \
                 the true difference may be larger.",
                busy * 100.0,
                client * 100.0
            ),
            Warning::ClientSaturated { share } => format!(
                "The load generator used {:.0} % of the cores that its threads can use: it may have set the pace; add threads or cores.",
                share * 100.0
            ),
            Warning::NoRealTime => {
                "The emulator's timer runs without SCHED_FIFO, so its answers can be late under load: \
                 run as root, or grant CAP_SYS_NICE."
                    .to_owned()
            }
            Warning::NoIoFlusher => {
                "The emulator is not spared by memory reclaim (PR_SET_IO_FLUSHER was refused): under a memory limit it can come to wait for \
                 its own disk, and is ended then; grant CAP_SYS_RESOURCE, or leave memory free."
                    .to_owned()
            }
            Warning::NotSteady { drift } => format!(
                "Throughput drifted by {:.0} % within the measured window: lengthen the warm-up.",
                drift * 100.0
            ),
            Warning::TransactionsFailed { share } => {
                format!("{:.2} % of the transactions failed and were not counted.", share * 100.0)
            }
            Warning::BehindSchedule { behind_s } => format!(
                "The server did less than it was asked: at the end of the window transactions began {behind_s:.1} s after their time, and latencies \
                 are as long as the window makes them; ask for a lower rate.",
            ),
            Warning::SemiSyncFellBack { transactions, share } => format!(
                "{transactions} commits ({:.1} %) went on without the acknowledgement of a replica, because none came in time: this number \
                 is in part of asynchronous replication; raise `timeout`, or give the replica faster storage.",
                share * 100.0
            ),
            Warning::ReplicaBehind { replica, catch_up_s: Some(seconds), .. } => format!(
                "{replica} needed {seconds:.1} s after the window to apply what was written in it: it does not keep up with this load, and the \
                 number is the primary's alone."
            ),
            Warning::ReplicaBehind { replica, catch_up_s: None, waited_s } => format!(
                "{replica} had not applied what was written in the window {waited_s:.0} s after it: it does not keep up with this load, and the \
                 number is the primary's alone.",
            ),
            Warning::ReplicaSilent { replica, share } => format!(
                "{replica} did not answer in {:.0} % of the seconds, so that its lag is not known there: it stood still, or waited for its storage.",
                share * 100.0
            ),
            Warning::HostDiskReads { major_faults } => format!(
                "The emulated data did not fit in this machine's memory ({major_faults} reads of the real disk): \
                 latencies contain the real disk; use a smaller data set."
            ),
        }
    }
}
