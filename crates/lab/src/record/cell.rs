//! A cell of the matrix as the scenario asks for it, its mounts, and their stacks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{PartHead, ReplicationHead};

mod file_class;
mod published;

pub use file_class::FileClass;
pub use published::{FigureName, Mark, Per, PublishedTag, Selector, selector_words};

/// One point of the matrix.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct Cell {
    /// Unique within the file, short enough for an axis: `hdd`, or `hdd/mariadb` when several axes vary.
    pub name: String,
    pub label: String,
    /// Name in the scenario; `None` when the cell has a stack and no layout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<String>,
    /// The data's mount first. It holds every class of file that has no mount of its own. Never empty.
    pub mounts: Vec<MountHead>,
    /// Names of server and workload in the scenario. A variant of a swept axis has its values in the name:
    /// `tpcc/terminals=16`.
    pub server: String,
    pub workload: String,
    /// `None` without replicas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replication: Option<ReplicationHead>,
    /// The cell's values on the swept axes, those of the workload first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sweep: Vec<SweptValue>,
    /// Trials of this cell, where it has more than the scenario's others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trials: Option<u32>,
}

/// A cell's value on an axis that is values of a workload's key or of a server's setting.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct SweptValue {
    pub key: String,
    pub part: SweptPart,
    /// As written.
    pub value: String,
    /// Its place on the axis, bytes for a size; `None` for a word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<f64>,
    /// The setting reserves memory of the server.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_memory: bool,
}

/// What has the swept key.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "kebab-case")]
pub enum SweptPart {
    Workload,
    Server,
}

impl SweptValue {
    /// `terminals=16`.
    pub fn assignment(&self) -> String {
        format!("{}={}", self.key, self.value)
    }
}

impl Cell {
    /// Name of its layout or stack in the scenario.
    pub fn layout_name(&self) -> &str {
        self.layout.as_deref().unwrap_or(&self.data().name)
    }

    /// Names of server and workload without swept values.
    pub fn bases(&self) -> (&str, &str) {
        let base = |name: &str| name.split('/').next().unwrap_or(name).len();
        (&self.server[..base(&self.server)], &self.workload[..base(&self.workload)])
    }

    /// Label of its layout or stack: the label without the parts for server and workload.
    pub fn storage_label(&self) -> &str {
        let further = self.name.split('/').skip(1).collect::<Vec<_>>();
        let strip = |label, part: &&str| {
            let label: &str = label;
            label.strip_suffix(*part).and_then(|label| label.strip_suffix(", ")).unwrap_or(label)
        };
        further.iter().rev().fold(self.label.as_str(), strip)
    }

    /// The stack that holds the data.
    pub fn data(&self) -> &StackHead {
        &self.mounts[0].stack
    }

    /// The stacks of its mounts, the data's first, then those of its replicas.
    pub fn stacks(&self) -> impl Iterator<Item = &StackHead> {
        let replicas = self.replication.iter().flat_map(|replication| &replication.replicas);
        let of_replicas = replicas.flat_map(|replica| &replica.mounts);
        self.mounts.iter().chain(of_replicas).map(|mount| &mount.stack)
    }
}

/// A mount of a layout.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct MountHead {
    /// Classes of files on this mount.
    pub classes: Vec<FileClass>,
    /// The same files by the server's own names, for example `ib_logfile0`; empty for the data's mount.
    pub files: String,
    pub stack: StackHead,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct StackHead {
    pub name: String,
    /// For people; empty in earlier records.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub label: String,
    /// The emulated storage in one sentence.
    pub summary: String,
    pub size_bytes: u64,
    pub file_system: String,
    /// Options for mkfs and mount, in addition to our own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mkfs_options: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mount_options: Vec<String>,
    /// A real disk of the machine that ran the trial; nothing is emulated.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub real: bool,
    /// The pool, when the file system is ZFS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zfs: Option<ZfsHead>,
    /// Profile parameters without a source, as sentences.
    pub assumptions: Vec<String>,
    /// Every parameter; `None` for a real disk and in earlier records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<PartHead>,
}

impl StackHead {
    /// The label, or else the name.
    pub fn title(&self) -> &str {
        if self.label.is_empty() { &self.name } else { &self.label }
    }
}

/// A pool of real ZFS.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct ZfsHead {
    /// Device of the intent log (ZIL); without one, the log is on the data's device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<ZfsDeviceHead>,
    /// Device of the second-level read cache (L2ARC).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<ZfsDeviceHead>,
    pub record_bytes: u64,
    /// Size limit of the first-level cache (ARC).
    pub arc_bytes: u64,
}

impl ZfsHead {
    /// The sizes of log and cache, and the record size. A pool can start from another's snapshot when these
    /// are equal.
    pub fn shape(&self) -> [Option<u64>; 3] {
        let size = |device: &Option<ZfsDeviceHead>| device.as_ref().map(|device| device.size_bytes);
        [size(&self.log), size(&self.cache), Some(self.record_bytes)]
    }

    /// Number of devices without the data's.
    pub fn device_count(&self) -> u32 {
        u32::from(self.log.is_some()) + u32::from(self.cache.is_some())
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct ZfsDeviceHead {
    pub name: String,
    /// The emulated device in one sentence.
    pub summary: String,
    pub size_bytes: u64,
}
