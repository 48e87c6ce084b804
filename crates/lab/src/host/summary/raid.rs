//! Arrays of the kernel (md). Source: Linux, Documentation/admin-guide/md.rst.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::block_device::is_zero;
use super::tree::Tree;

/// An array of the kernel (md).
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq, Eq, Default)]
#[serde(default)]
pub struct Raid {
    /// `raid10`, `linear`, ...
    pub level: String,
    pub disks: u32,
    #[serde(skip_serializing_if = "is_zero")]
    pub chunk_bytes: u64,
    /// Disks that are missing.
    pub degraded: u32,
    /// `clean`, `active`, `readonly`, ...
    pub state: String,
    /// `resync`, `recover`, `check`, ...; `None` when idle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// Whether a bitmap of dirty regions is written.
    pub bitmap: bool,
}

impl Raid {
    /// `None` if the directory is not of an array.
    pub(super) fn read(tree: Tree, directory: &str) -> Option<Raid> {
        let text = |file: &str| tree.text(&format!("{directory}/{file}"));
        let number = |file: &str| tree.number::<u64>(&format!("{directory}/{file}"));
        Some(Raid {
            level: text("level")?,
            disks: number("raid_disks").unwrap_or(0) as u32,
            chunk_bytes: number("chunk_size").unwrap_or(0),
            degraded: number("degraded").unwrap_or(0) as u32,
            state: text("array_state").unwrap_or_default(),
            action: text("sync_action").filter(|action| action != "idle"),
            bitmap: text("bitmap/location").is_some_and(|location| location != "none"),
        })
    }
}
