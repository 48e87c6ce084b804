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
    /// What was read of its device.
    pub fn reads(&self) -> OperationStatistics {
        let emulated = self.statistics.as_ref().map(|statistics| statistics.read);
        emulated.or(self.block_device.map(|device| device.read)).unwrap_or_default()
    }

    /// What was written to its device.
    pub fn writes(&self) -> OperationStatistics {
        let emulated = self.statistics.as_ref().map(|statistics| statistics.write);
        emulated.or(self.block_device.map(|device| device.write)).unwrap_or_default()
    }

    /// Puts the kernel's times into dilated time.
    pub fn dilate(&mut self, dilation: Dilation) {
        if let Some(BlockCounters { read, write, discard, flush, busy_ns, queue_ns, .. }) =
            &mut self.block_device
        {
            let latencies = [read, write, discard, flush].map(|operation| &mut operation.latency_ns);
            for time_ns in latencies.into_iter().chain([busy_ns, queue_ns]) {
                *time_ns = (*time_ns as f64 / dilation.factor()) as u64;
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
    pub discard: OperationStatistics,
    pub flush: OperationStatistics,
    /// Requests that joined a neighbour before the device saw them. They are not in the counts.
    pub reads_merged: u64,
    pub writes_merged: u64,
    pub discards_merged: u64,
    /// At this moment; no sum as the others.
    pub in_flight: u64,
    /// Time with a request in flight. Newer kernels count whole clock ticks.
    pub busy_ns: u64,
    /// Sum of the times of all requests, by the kernel's own account.
    pub queue_ns: u64,
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
            discard: operation(11, bytes(13)?, 14)?,
            flush: operation(15, 0, 16)?,
            reads_merged: *fields.get(1)?,
            writes_merged: *fields.get(5)?,
            discards_merged: *fields.get(12)?,
            in_flight: *fields.get(8)?,
            busy_ns: *fields.get(9)? * 1_000_000,
            queue_ns: *fields.get(10)? * 1_000_000,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dilation_divides_every_time_of_the_kernel_and_no_count() {
        let text = "10 5 80 40 20 1 160 80 8 60 120 3 2 24 4 7 32";
        let mut sample = MountSample { block_device: BlockCounters::parse(text), ..MountSample::default() };
        sample.dilate(Dilation::new(4.0).unwrap());
        let expect = BlockCounters::parse("10 5 80 10 20 1 160 20 8 15 30 3 2 24 1 7 8");
        assert_eq!(sample.block_device, expect);
    }

    #[test]
    fn block_counters_are_where_the_kernel_puts_them() {
        let text = "  10 5 80 25 20 1 160 90 8 60 120 3 2 24 4 7 33\n";
        let counters = BlockCounters::parse(text).unwrap();
        assert_eq!(counters.read, OperationStatistics { count: 10, bytes: 40_960, latency_ns: 25_000_000 });
        assert_eq!(counters.write, OperationStatistics { count: 20, bytes: 81_920, latency_ns: 90_000_000 });
        assert_eq!(counters.flush, OperationStatistics { count: 7, bytes: 0, latency_ns: 33_000_000 });
        assert_eq!(counters.discard, OperationStatistics { count: 3, bytes: 12_288, latency_ns: 4_000_000 });
        assert_eq!((counters.reads_merged, counters.writes_merged, counters.discards_merged), (5, 1, 2));
        let times = (counters.in_flight, counters.busy_ns, counters.queue_ns);
        assert_eq!(times, (8, 60_000_000, 120_000_000));
        assert_eq!(BlockCounters::parse("10 0 80"), None);
    }
}
