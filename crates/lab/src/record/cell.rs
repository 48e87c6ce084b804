//! What was asked for: a cell, its mounts and the stacks under them.

use serde::{Deserialize, Serialize};

use super::{FileClass, ReplicationHead};

/// One point of the matrix.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq)]
pub struct Cell {
    /// Unique within the file, short enough for an axis: `hdd`, or `hdd/mariadb` when several axes vary.
    pub name: String,
    pub label: String,
    /// By its name in the scenario; `None` when the cell has a stack and no layout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<String>,
    /// The data's mount first, which has every class of file that no other mount has. There is at least one.
    pub mounts: Vec<MountHead>,
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
        self.layout.as_deref().unwrap_or(&self.data().name)
    }

    /// The stack under the data.
    pub fn data(&self) -> &StackHead {
        &self.mounts[0].stack
    }

    /// The stacks under its mounts, the data's first, and then those of its replicas.
    pub fn stacks(&self) -> impl Iterator<Item = &StackHead> {
        let replicas = self.replication.iter().flat_map(|replication| &replication.replicas);
        let of_replicas = replicas.flat_map(|replica| &replica.mounts);
        self.mounts.iter().chain(of_replicas).map(|mount| &mount.stack)
    }
}

/// A mount of a layout.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq)]
pub struct MountHead {
    /// What lies there.
    pub classes: Vec<FileClass>,
    /// The same in the server's own words, for example `ib_logfile0`; empty for the data's mount.
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

impl ZfsHead {
    /// What pools must have in common for one to start from another's snapshot: the sizes of log and cache,
    /// and the record size.
    pub fn shape(&self) -> [Option<u64>; 3] {
        let size = |device: &Option<ZfsDeviceHead>| device.as_ref().map(|device| device.size_bytes);
        [size(&self.log), size(&self.cache), Some(self.record_bytes)]
    }

    /// Besides the data's.
    pub fn device_count(&self) -> u32 {
        u32::from(self.log.is_some()) + u32::from(self.cache.is_some())
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, PartialEq)]
pub struct ZfsDeviceHead {
    pub name: String,
    /// One sentence: what is emulated.
    pub summary: String,
    pub size_bytes: u64,
}
