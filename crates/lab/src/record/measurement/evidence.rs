//! The figures behind a bottleneck, all over the same measured window. A record keeps them, so that a rule
//! can be applied again.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Evidence {
    pub duration_s: f64,
    pub terminals: u32,
    /// Terminals times duration.
    pub terminal_time_s: f64,
    /// Share of all cores, 0 to 1.
    pub cpu_busy: f64,
    /// Part of `cpu_busy` used by server, client and emulator.
    pub cpu_own: f64,
    /// Part of `cpu_own` without the emulator.
    pub cpu_programs: f64,
    /// Whether `cpu_own` is without the server, because Spindle did not start it.
    pub is_server_cpu_unknown: bool,
    pub cpu_count: u32,
    /// Busy share of the cores that the load generator's threads can use, 0 to 1. Their number is that of its
    /// threads, at most all cores.
    pub client_share: f64,
    /// The load generator's share of all cores, 0 to 1.
    pub client_cpu: f64,
    /// The load generator's threads do the work of the database.
    pub is_client_the_database: bool,
    /// `None` when the server's threads are unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<ThreadEvidence>,
    /// `None` when the clients do not report it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit_wait_s: Option<f64>,
    /// The estimate that replaces `commit_wait_s`; `None` when that is unknown as well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commits: Option<CommitEstimate>,
    /// Part of the commit time spent on a replica's acknowledgement, summed over terminals.
    pub acknowledgement_wait_s: f64,
    /// Zero where the server does not count them.
    pub foreground_reads: f64,
    /// Latency of the devices with the data.
    pub read_latency_mean_ms: f64,
    /// Name of those devices, when there are others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_place: Option<String>,
    /// Waits of sessions for pages that they read, from their number five times a second, or once a sample in production. `None` where nobody looked, or
    /// sessions are no processes of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_wait_s: Option<f64>,
    /// Present when the redo log has its own device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redo: Option<RedoEvidence>,
    /// Waits for row locks.
    pub lock_wait_s: f64,
    /// Waits of the server's threads for the lock of a file, from their number five times a second, or once a sample in production; zero
    /// where the kernel tells of none. `None` where nobody looked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_lock_wait_s: Option<f64>,
    /// Waits of writers for each other, in a database with one writer at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writer_wait_s: Option<f64>,
    /// The device with the most requests in flight; `None` without a block device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage: Option<StorageEvidence>,
    /// The stated rate of a device that was used most, if one is stated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<RateEvidence>,
}

/// CPU time of the server's threads.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ThreadEvidence {
    /// Of the busiest, one for each terminal.
    pub busiest_s: f64,
    /// The busiest one; `None` without a process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busiest: Option<BusyThread>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct BusyThread {
    pub name: String,
    /// Share of one core, 0 to 1.
    pub share: f64,
}

/// Estimate of commits without a stopwatch.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CommitEstimate {
    /// Commits that had to reach the log.
    pub count: f64,
    /// Wait of each commit for its logs, without a replica's acknowledgement.
    pub wait_ms: f64,
}

/// The device of the redo log, when it differs from that of the reads.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct RedoEvidence {
    /// Name of the storage under the redo log.
    pub place: String,
    pub write_latency_mean_ms: f64,
    /// `None` where the device needs no FLUSH.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flush_latency_mean_ms: Option<f64>,
}

/// Requests of one device, as the kernel saw them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct StorageEvidence {
    /// Name of the device, when there are others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// Share of the window with a request in flight, at most.
    pub busy: f64,
    pub queue_depth: f64,
    /// Time of all reads, of all writes and of all FLUSHes.
    pub read_s: f64,
    pub write_s: f64,
    pub flush_s: f64,
}

/// Use of a rate that the parameters of a device state.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct RateEvidence {
    /// Name of the device, when there are others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    pub of: RateOf,
    /// Per second: bytes or requests.
    pub limit: f64,
    /// Used share, 0 to 1.
    pub share: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RateOf {
    #[default]
    Bytes,
    Requests,
}
