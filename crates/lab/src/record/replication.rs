//! What a record says of a server that has replicas.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{MountHead, MountView};

/// What a commit waits for.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum ReplicationMode {
    /// For no replica.
    Async,
    /// For one replica, whichever is first, to have it in its relay log.
    SemiSync,
}

impl ReplicationMode {
    /// As scenarios write it.
    pub fn name(self) -> &'static str {
        match self {
            ReplicationMode::Async => "async",
            ReplicationMode::SemiSync => "semi-sync",
        }
    }
}

/// Where a semi-synchronous commit waits (`rpl_semi_sync_master_wait_point`).
#[derive(Debug, Clone, Copy, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum WaitPoint {
    /// Before the storage engine commits: nobody sees what a replica does not have.
    AfterSync,
    /// After it: others may see what is lost with the primary.
    AfterCommit,
}

/// The replicas of a cell's server.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq)]
pub struct ReplicationHead {
    pub mode: ReplicationMode,
    /// `None` where the server's default holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_point: Option<WaitPoint>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_s: Option<f64>,
    pub replicas: Vec<ReplicaHead>,
}

#[derive(Debug, Clone, Serialize, Deserialize, PartialEq)]
pub struct ReplicaHead {
    /// What its storage is called in the scenario.
    pub layout: String,
    /// As [`super::Cell::mounts`].
    pub mounts: Vec<MountHead>,
}

/// What replication did over the measured window, and after it.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq)]
pub struct ReplicationView {
    /// Bytes of binary log that the primary wrote.
    pub binlog_bytes: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub semi_sync: Option<SemiSyncView>,
    /// In the order of [`ReplicationHead::replicas`].
    pub replicas: Vec<ReplicaView>,
}

/// The primary's own counters.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, PartialEq)]
pub struct SemiSyncView {
    /// Transactions that a replica had before the client heard of them (`Rpl_semi_sync_master_yes_tx`).
    pub acknowledged: u64,
    /// Those that went on without (`Rpl_semi_sync_master_no_tx`).
    pub unacknowledged: u64,
    /// Of those that waited (`Rpl_semi_sync_master_tx_wait_time` by `_tx_waits`).
    pub wait_mean_ms: f64,
}

#[derive(Debug, Clone, Serialize, Deserialize, PartialEq)]
pub struct ReplicaView {
    /// As sentences call it: `replica 1 (hdd)`.
    pub name: String,
    /// Binary log that the primary had written and the replica not applied, when the window began and when it
    /// ended; `None` when the replica did not answer then.
    pub behind_bytes_first: Option<u64>,
    pub behind_bytes_last: Option<u64>,
    /// From the end of the window until the replica had applied all that the primary wrote in it; `None` when
    /// that took longer than `catch_up_limit_s`.
    pub catch_up_s: Option<f64>,
    pub catch_up_limit_s: f64,
    /// User and system CPU of its server.
    pub server_cpu_s: f64,
    /// Its own settings, as it reports them.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// In the order of its layout, the data's first.
    pub mounts: Vec<MountView>,
    pub series: ReplicaSeries,
}

/// One value per second of the measured window; `None` where the replica did not answer in time.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Default)]
pub struct ReplicaSeries {
    pub behind_bytes: Vec<Option<u64>>,
    /// `Seconds_Behind_Master`, in whole seconds: how old the transaction is that the replica is at.
    pub behind_s: Vec<Option<f64>>,
}

impl ReplicaSeries {
    /// Mean and maximum of [`ReplicaSeries::behind_s`] where there are values.
    pub fn behind_s_mean_and_max(&self) -> Option<(f64, f64)> {
        let values: Vec<f64> = self.behind_s.iter().flatten().copied().collect();
        let max = values.iter().copied().reduce(f64::max)?;
        Some((values.iter().sum::<f64>() / values.len() as f64, max))
    }
}
