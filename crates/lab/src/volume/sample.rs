//! One look at what a volume has done: by the emulator's own words, and by the kernel's.

use std::path::Path;

use anyhow::{Context, Result};
use spindle_mount::Statistics;

/// One look at a volume mount.
#[derive(Debug, Clone, Default)]
pub struct MountSample {
    /// `None` when nothing is emulated.
    pub statistics: Option<Statistics>,
    /// The kernel's view of the same storage; `None` when there is no block device.
    pub block_device: Option<BlockCounters>,
    /// Of the devices it lies on, by their names, where there are several; these have none of their own.
    pub devices: Vec<(&'static str, MountSample)>,
}

/// Counters of a block device since it was attached (Linux, Documentation/block/stat.rst).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BlockCounters {
    pub read: BlockOperation,
    pub write: BlockOperation,
    pub flush: BlockOperation,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BlockOperation {
    pub count: u64,
    pub bytes: u64,
    /// Sum of the times from the request's making to its completion.
    pub milliseconds: u64,
}

/// Of the kernel's statistics, whatever the device's own sectors are.
const SECTOR_BYTES: u64 = 512;

impl BlockCounters {
    pub(crate) fn read(device: &Path) -> Result<BlockCounters> {
        let name = device.file_name().context("a block device without a name")?;
        // Partitions are here too, as they are when a real disk is measured.
        let path = Path::new("/sys/class/block").join(name).join("stat");
        let text = std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        BlockCounters::parse(&text)
            .with_context(|| format!("{} is not as the kernel's stat.rst says", path.display()))
    }

    fn parse(text: &str) -> Option<BlockCounters> {
        let fields: Vec<u64> = text.split_whitespace().map_while(|word| word.parse().ok()).collect();
        let operation = |count: usize, bytes: u64, milliseconds: usize| {
            let (count, milliseconds) = (*fields.get(count)?, *fields.get(milliseconds)?);
            Some(BlockOperation { count, bytes, milliseconds })
        };
        let bytes = |sectors: usize| Some(fields.get(sectors)? * SECTOR_BYTES);
        Some(BlockCounters {
            read: operation(0, bytes(2)?, 3)?,
            write: operation(4, bytes(6)?, 7)?,
            flush: operation(15, 0, 16)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_counters_are_where_the_kernel_puts_them() {
        let text = "  10 0 80 25 20 1 160 90 0 60 120 3 0 24 4 7 33\n";
        let counters = BlockCounters::parse(text).unwrap();
        assert_eq!(counters.read, BlockOperation { count: 10, bytes: 40_960, milliseconds: 25 });
        assert_eq!(counters.write, BlockOperation { count: 20, bytes: 81_920, milliseconds: 90 });
        assert_eq!(counters.flush, BlockOperation { count: 7, bytes: 0, milliseconds: 33 });
        assert_eq!(BlockCounters::parse("10 0 80"), None);
    }
}
