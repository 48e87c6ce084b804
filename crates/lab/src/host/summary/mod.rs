//! A summary of this machine for a performance engineer: processor, memory, block devices, file systems.
//!
//! Everything is read from `/proc` and `/sys` below a root directory; nothing runs and nothing needs root.
//! A file that is missing (a container, another architecture) leaves its field out.
//!
//! Records are sent to others, so a summary has no host name, no address, no serial number or UUID, and no
//! name that a user chose: users, volume groups, pools, labels, directories below the usual ones. Kernel
//! names (`sda1`, `dm-0`) stand for devices.

mod block_device;
mod file_system;
mod memory;
mod platform;
mod processor;
mod raid;
#[cfg(test)]
mod tests;
mod tree;
mod words;

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use block_device::{Alignment, BlockDevice};
pub use file_system::FileSystem;
pub use memory::{HugePages, Memory, MemoryNode, Swap};
pub use platform::Platform;
pub use processor::{Cache, IdleState, Processor};
pub use raid::Raid;
use tree::Tree;
pub use words::Section;

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq, Default)]
#[serde(default)]
pub struct Summary {
    pub platform: Platform,
    pub processor: Processor,
    pub memory: Memory,
    /// Devices with a size. Loop devices and RAM disks are left out: emulated disks are among them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub block_devices: Vec<BlockDevice>,
    /// One mount of each file system that keeps data.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub file_systems: Vec<FileSystem>,
}

impl Summary {
    /// `root` is `/`.
    pub fn read(root: &Path) -> Summary {
        let tree = Tree(root);
        let devices = block_device::read(tree);
        Summary {
            platform: Platform::read(tree),
            processor: Processor::read(tree),
            memory: Memory::read(tree),
            file_systems: file_system::read(tree, &devices.numbers),
            block_devices: devices.list,
        }
    }

    /// The summary in words, the same on the screen and in a report.
    pub fn sections(&self) -> Vec<Section> {
        words::sections(self)
    }
}
