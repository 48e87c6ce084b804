//! Replication in a record.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{MountHead, MountView};

/// The replicas that a commit waits for.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum ReplicationMode {
    /// None.
    Async,
    /// The first replica to have the transaction in its relay log.
    SemiSync,
}

/// Where a semi-synchronous commit waits (`rpl_semi_sync_master_wait_point`).
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum WaitPoint {
    /// Before the storage engine commits: nobody sees a transaction that no replica has.
    AfterSync,
    /// After the storage engine commits: others may see a transaction that is lost with the primary.
    AfterCommit,
}

/// The replicas of a cell's server.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct ReplicationHead {
    pub mode: ReplicationMode,
    /// `None` for the server's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_point: Option<WaitPoint>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_s: Option<f64>,
    pub replicas: Vec<ReplicaHead>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct ReplicaHead {
    /// Name of its layout or stack in the scenario.
    pub layout: String,
    /// See [`super::Cell::mounts`].
    pub mounts: Vec<MountHead>,
}

/// Replication over the measured window, and after it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct ReplicationView {
    /// Bytes of binary log that the primary wrote.
    pub binlog_bytes: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub semi_sync: Option<SemiSyncView>,
    /// In the order of [`ReplicationHead::replicas`].
    pub replicas: Vec<ReplicaView>,
}

/// The primary's own counters.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct SemiSyncView {
    /// Transactions that a replica acknowledged (`Rpl_semi_sync_master_yes_tx`).
    pub acknowledged: u64,
    /// Transactions that went on without an acknowledgement (`Rpl_semi_sync_master_no_tx`).
    pub unacknowledged: u64,
    /// Mean over the transactions that waited (`Rpl_semi_sync_master_tx_wait_time` by `_tx_waits`).
    pub wait_mean_ms: f64,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct ReplicaView {
    /// Name in sentences: `replica 1 (hdd)`.
    pub name: String,
    /// Binary log written by the primary and not yet applied by the replica, at the start and at the end of
    /// the window; `None` when the replica did not answer then.
    pub behind_bytes_first: Option<u64>,
    pub behind_bytes_last: Option<u64>,
    /// Time from the end of the window until the replica had applied everything written in it; `None` if
    /// longer than `catch_up_limit_s`.
    pub catch_up_s: Option<f64>,
    pub catch_up_limit_s: f64,
    /// User and system CPU of its server.
    pub server_cpu_s: f64,
    /// Its settings, as it reports them.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// In the order of its layout, the data's first.
    pub mounts: Vec<MountView>,
    pub series: ReplicaSeries,
}

/// One value per second of the measured window; `None` if the replica did not answer in time.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq, Default)]
pub struct ReplicaSeries {
    pub behind_bytes: Vec<Option<u64>>,
    /// `Seconds_Behind_Master`, in whole seconds: the age of the transaction that the replica applies.
    pub behind_s: Vec<Option<f64>>,
}

impl ReplicaSeries {
    /// Mean and maximum of [`ReplicaSeries::behind_s`], without seconds that have no value.
    pub fn behind_s_mean_and_max(&self) -> Option<(f64, f64)> {
        let values: Vec<f64> = self.behind_s.iter().flatten().copied().collect();
        let max = values.iter().copied().reduce(f64::max)?;
        Some((values.iter().sum::<f64>() / values.len() as f64, max))
    }
}
