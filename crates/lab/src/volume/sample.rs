//! A sample of a volume's counters, from the emulator and from the kernel.

use std::path::Path;

use anyhow::{Context, Result};
use spindle_base::dilation::Dilation;
use spindle_mount::{OperationStatistics, Statistics};

/// A sample of a volume mount.
#[derive(Debug, Clone, Default)]
pub struct MountSample {
    /// `None` when nothing is emulated.
    pub statistics: Option<Statistics>,
    /// The kernel's view of the same storage; `None` without a block device.
    pub block_device: Option<BlockCounters>,
    /// Samples of its devices by name, if there are several; these have no devices of their own.
    pub devices: Vec<(&'static str, MountSample)>,
}

impl MountSample {
    /// Puts the kernel's times into dilated time.
    pub fn dilate(&mut self, dilation: Dilation) {
        if let Some(BlockCounters { read, write, flush }) = &mut self.block_device {
            for operation in [read, write, flush] {
                operation.latency_ns = (operation.latency_ns as f64 / dilation.factor()) as u64;
            }
        }
        self.devices.iter_mut().for_each(|(_, device)| device.dilate(dilation));
    }
}

/// Counters of a block device since it was attached (Linux, Documentation/block/stat.rst). A latency is the
/// time from a request's creation to its completion.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct BlockCounters {
    pub read: OperationStatistics,
    pub write: OperationStatistics,
    pub flush: OperationStatistics,
}

/// Sector size in the kernel's statistics, independent of the device's own sectors.
const SECTOR_BYTES: u64 = 512;

impl BlockCounters {
    pub(crate) fn read(device: &Path) -> Result<BlockCounters> {
        let name = device.file_name().context("a block device without a name")?;
        // Lists partitions too, and a measured real disk may be a partition.
        let path = Path::new("/sys/class/block").join(name).join("stat");
        let text = std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        BlockCounters::parse(&text)
            .with_context(|| format!("{} is not as the kernel's stat.rst says", path.display()))
    }

    fn parse(text: &str) -> Option<BlockCounters> {
        let fields: Vec<u64> = text.split_whitespace().map_while(|word| word.parse().ok()).collect();
        let operation = |count: usize, bytes: u64, milliseconds: usize| {
            let (count, milliseconds) = (*fields.get(count)?, *fields.get(milliseconds)?);
            Some(OperationStatistics { count, bytes, latency_ns: milliseconds * 1_000_000 })
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
        assert_eq!(counters.read, OperationStatistics { count: 10, bytes: 40_960, latency_ns: 25_000_000 });
        assert_eq!(counters.write, OperationStatistics { count: 20, bytes: 81_920, latency_ns: 90_000_000 });
        assert_eq!(counters.flush, OperationStatistics { count: 7, bytes: 0, latency_ns: 33_000_000 });
        assert_eq!(BlockCounters::parse("10 0 80"), None);
    }
}
