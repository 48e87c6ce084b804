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
use spindle_mount::Statistics;

use crate::server::Running;
use crate::server::replication::Position;
use crate::volume::mounts::Mounts;

/// One look at everything; all values are cumulative or levels.
#[derive(Debug, Clone)]
pub struct Sample {
    pub at: Instant,
    pub cpu: CpuTimes,
    /// User and system CPU of the process and its children; zero where there is no process.
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
            cpu: CpuTimes::read()?,
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

/// All cores together, in clock ticks since boot (proc(5), /proc/stat).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CpuTimes {
    pub busy: u64,
    pub total: u64,
}

impl CpuTimes {
    fn read() -> Result<CpuTimes> {
        let text = std::fs::read_to_string("/proc/stat").context("reading /proc/stat")?;
        CpuTimes::parse(&text).context("/proc/stat is not as proc(5) says")
    }

    /// Guest time is part of user time already. Stolen time counts as busy: the cores were not ours to use.
    fn parse(text: &str) -> Option<CpuTimes> {
        let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let ticks: Vec<u64> = line.split_whitespace().take(8).map_while(|word| word.parse().ok()).collect();
        let [user, nice, system, idle, wait, interrupts, soft_interrupts, stolen] = ticks[..] else {
            return None;
        };
        let busy = user + nice + system + interrupts + soft_interrupts + stolen;
        Some(CpuTimes { busy, total: busy + idle + wait })
    }

    /// Share of all cores, 0 to 1, between two readings.
    pub fn busy_since(self, earlier: CpuTimes) -> f64 {
        let total = self.total.saturating_sub(earlier.total);
        if total == 0 { 0.0 } else { self.busy.saturating_sub(earlier.busy) as f64 / total as f64 }
    }
}

/// User and system CPU of a process with all its threads; zero when it is gone.
pub fn process_cpu_s(process_id: u32) -> f64 {
    seconds(process_ticks(process_id).own)
}

/// As [`process_cpu_s`], with its children, those that have ended too: a server may have a process per connection.
fn family_cpu_s(process_id: u32) -> f64 {
    let ProcessTicks { own, ended_children } = process_ticks(process_id);
    let living: u64 = children(process_id).into_iter().map(|child| process_ticks(child).own).sum();
    seconds(own + ended_children + living)
}

fn seconds(ticks: u64) -> f64 {
    ticks as f64 / rustix::param::clock_ticks_per_second() as f64
}

/// The living children of a process that has one thread.
pub(crate) fn children(process_id: u32) -> Vec<u32> {
    let text = std::fs::read_to_string(format!("/proc/{process_id}/task/{process_id}/children"));
    text.unwrap_or_default().split_whitespace().filter_map(|id| id.parse().ok()).collect()
}

/// User and system CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct ProcessTicks {
    own: u64,
    /// Of children that the process has waited for.
    ended_children: u64,
}

/// Zero for what is gone, or stands for no process.
fn process_ticks(process_id: u32) -> ProcessTicks {
    let text = std::fs::read_to_string(format!("/proc/{process_id}/stat")).unwrap_or_default();
    ProcessTicks::parse(&text).unwrap_or_default()
}

impl ProcessTicks {
    /// The name in the second field may hold spaces and parentheses, so counting starts after its last `)`.
    fn parse(stat: &str) -> Option<ProcessTicks> {
        let fields: Vec<&str> = stat[stat.rfind(')')? + 1..].split_whitespace().collect();
        // Counted from 3, as in proc(5).
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        Some(ProcessTicks { own: field(14)? + field(15)?, ended_children: field(16)? + field(17)? })
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
    fn guest_time_is_not_counted_twice_and_waiting_for_disks_is_idle() {
        let times = CpuTimes::parse("cpu  100 10 50 800 30 4 6 0 90 9\ncpu0 1 1 1 1 1 1 1 1 1 1\n").unwrap();
        assert_eq!(times, CpuTimes { busy: 170, total: 1000 });
        let later = CpuTimes { busy: 270, total: 1200 };
        assert_eq!(later.busy_since(times), 0.5);
        assert_eq!(times.busy_since(times), 0.0);
    }

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
    fn a_process_may_be_named_like_a_field() {
        let stat = "42 (a ) b) S 1 42 42 0 -1 4194560 100 0 0 0 250 50 7 4 20 0 9 0 100 0 0";
        assert_eq!(ProcessTicks::parse(stat), Some(ProcessTicks { own: 300, ended_children: 11 }));
    }

    #[test]
    fn this_process_has_used_some_cpu() {
        let mut value = 1_u64;
        while process_cpu_s(std::process::id()) == 0.0 {
            value = std::hint::black_box(value.wrapping_mul(31));
        }
        assert_eq!(process_cpu_s(0), 0.0);
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
