//! What is looked at once a second while a trial runs: the machine's cores, the processes, the emulated disk and the
//! server's counters. Reading is in this file; what the readings mean is in [`crate::observe::measurement`].

pub mod bottleneck;
pub mod measurement;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, anyhow};
use hdrhistogram::Histogram;
use spindle_base::histogram::decode;
use spindle_base::proc::{CpuTimes, family_cpu_s};
use spindle_mount::Statistics;

use crate::server::Running;
use crate::server::replication::Position;
use crate::volume::mounts::Mounts;

/// One look at everything; all values are cumulative or levels.
#[derive(Debug, Clone)]
pub struct Sample {
    pub at: Instant,
    pub cpu: CpuTimes,
    /// User and system CPU of the process and its children, which a server may have for each connection; zero where
    /// there is no process.
    pub server_cpu_s: f64,
    /// Of all emulators.
    pub emulator_cpu_s: f64,
    /// In the order of the layout, the data's first.
    pub mounts: Vec<MountSample>,
    pub counters: BTreeMap<String, f64>,
    /// Bytes of binary log that the server has written; `None` for one without replicas.
    pub binlog_bytes: Option<u64>,
    /// In the order of the scenario.
    pub replicas: Vec<ReplicaSample>,
}

/// One look at a replica.
#[derive(Debug, Clone, Default)]
pub struct ReplicaSample {
    pub server_cpu_s: f64,
    /// Of the emulators under it.
    pub emulator_cpu_s: f64,
    /// In the order of its layout, the data's first.
    pub mounts: Vec<MountSample>,
    /// `None` when it did not answer in time.
    pub position: Option<Position>,
}

impl ReplicaSample {
    pub fn take(mounts: &mut Mounts, process_id: u32, position: Option<Position>) -> Result<ReplicaSample> {
        Ok(ReplicaSample {
            server_cpu_s: family_cpu_s(process_id),
            emulator_cpu_s: mounts.emulator_cpu_s(),
            mounts: mounts.samples()?,
            position,
        })
    }
}

impl Sample {
    /// Without replicas.
    pub fn take(mounts: &mut Mounts, server: &mut dyn Running) -> Result<Sample> {
        Ok(Sample {
            cpu: CpuTimes::read().context("/proc/stat is not as proc(5) says")?,
            server_cpu_s: family_cpu_s(server.process_id()),
            emulator_cpu_s: mounts.emulator_cpu_s(),
            mounts: mounts.samples()?,
            counters: server.counters().context("asking the server for its counters")?,
            binlog_bytes: None,
            replicas: Vec::new(),
            at: Instant::now(),
        })
    }
}

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

/// What was added to a cumulative histogram between two readings; HDR V2, base64, as [`Statistics`] carries it.
pub fn histogram_difference(earlier: &str, later: &str) -> Result<Histogram<u64>> {
    let mut histogram = decode(later)?;
    if !earlier.is_empty() {
        histogram
            .subtract(decode(earlier)?)
            .map_err(|error| anyhow!("the emulator's histogram shrank: {error}"))?;
    }
    Ok(histogram)
}

#[cfg(test)]
mod tests {
    use spindle_base::histogram;

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

    #[test]
    fn only_what_was_added_is_left() {
        let encode = |values: &[u64]| {
            let mut recorded = histogram::new();
            values.iter().for_each(|value| recorded.record(*value).unwrap());
            histogram::encode(&recorded)
        };
        let difference =
            histogram_difference(&encode(&[10, 500_000]), &encode(&[10, 500_000, 700, 800])).unwrap();
        assert_eq!(difference.len(), 2);
        assert_eq!((difference.value_at_quantile(0.0), difference.max()), (700, 800));
        assert_eq!(histogram_difference("", &encode(&[7])).unwrap().len(), 1);
    }
}
