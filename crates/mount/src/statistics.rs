//! Counters of the emulator, as sent over the control socket.

use serde::{Deserialize, Serialize};
use spindle_base::dilation::Dilation;
use spindle_model::Counters;

use crate::serve::LayerName;

/// Cumulative since the disk was ready for use: the requests of mkfs and mount are not counted. The
/// difference of two is the activity in between.
///
/// All times are in model time, that is in dilated time: one that took t on this machine's clock is told as t
/// divided by `dilation`.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Default)]
pub struct Statistics {
    /// Nanoseconds since then.
    pub uptime_ns: u64,
    /// Records from before dilation have none.
    #[serde(default)]
    pub dilation: Dilation,
    pub timing: bool,
    /// `SCHED_FIFO` or `SCHED_OTHER`.
    pub scheduler: String,
    /// Whether memory reclaim could make the emulator wait for its own disk, because the kernel refused it
    /// PR_SET_IO_FLUSHER.
    #[serde(default)]
    pub io_flusher_refused: bool,
    /// Transport of requests to the emulator: `io_uring` or `threads`.
    pub transport: String,
    /// Subtracted from every service time.
    pub floor: Floor,
    pub read: OperationStatistics,
    pub write: OperationStatistics,
    pub flush: OperationStatistics,
    pub discard: OperationStatistics,
    /// Integral over time of the number of requests inside the device. Divided by time it is the mean queue
    /// depth.
    pub queue_time_ns: u64,
    pub queue_depth: u64,
    pub seeks: u64,
    /// Bytes programmed into NAND, garbage collection included. Divided by the written bytes it is the write
    /// amplification.
    pub nand_write_bytes: u64,
    /// The part of `nand_write_bytes` that garbage collection moved.
    pub nand_moved_bytes: u64,
    pub erases: u64,
    /// Erases of the superblock with the most.
    pub most_erases: u64,
    /// Requests whose lateness exceeds both 5 % of their service time and 50 us of real time.
    pub late_requests: u64,
    /// Sum over all requests of the lateness beyond 50 us of real time; the floor makes up for those.
    pub late_ns: u64,
    /// Lateness of every reply: HDR histogram of nanoseconds, V2 encoding, base64.
    pub lateness_histogram: String,
    /// Reads from the host's disk by the emulator: major page faults, and reads of its files that missed the
    /// page cache.
    pub major_faults: u64,
    /// The devices and layers of the stack, a layer before what is below it. These count since the stack was built.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<LayerStatistics>,
}

/// The requests that a device or a layer of a stack has completed. What is below a layer has its own: a hit in a
/// cache never arrives there, and a small write to RAID 5 arrives as several.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq, Default)]
pub struct LayerStatistics {
    /// Layers above it.
    pub depth: u32,
    pub name: String,
    pub reads: u64,
    pub writes: u64,
    pub flushes: u64,
    pub discards: u64,
    pub read_bytes: u64,
    pub write_bytes: u64,
}

impl LayerStatistics {
    pub(crate) fn new(of: &LayerName, counters: &Counters) -> LayerStatistics {
        let Counters { reads, writes, flushes, discards, read_bytes, write_bytes, .. } = *counters;
        let LayerName { depth, name } = of.clone();
        LayerStatistics { depth, name, reads, writes, flushes, discards, read_bytes, write_bytes }
    }
}

/// Cost of a request on its way through the kernel and back, outside the model. Measured with idle cores, and
/// with all cores busy, when every thread on the way has to preempt another.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, PartialEq, Eq, Default)]
pub struct Floor {
    pub idle: FloorCost,
    pub busy: FloorCost,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize, PartialEq, Eq, Default)]
pub struct FloorCost {
    /// Cost of a request that is alone.
    pub alone_ns: u64,
    /// Added cost for every other request in flight. One thread receives and one answers, so requests queue
    /// there.
    pub each_other_ns: u64,
}

impl Floor {
    /// Beyond this depth the emulator's throughput is the limit, and no subtraction can make up for it.
    const DEPTH_MAX: u64 = 8;

    /// Cost in nanoseconds of a request that makes the queue `depth` long, itself included, with this share
    /// of the cores busy (0 to 1).
    pub fn at(self, depth: u64, busy: f64) -> u64 {
        let others = depth.clamp(1, Floor::DEPTH_MAX) - 1;
        let cost = |cost: FloorCost| (cost.alone_ns + cost.each_other_ns * others) as f64;
        let busy = busy.clamp(0.0, 1.0);
        (cost(self.idle) * (1.0 - busy) + cost(self.busy) * busy) as u64
    }

    /// Converts each of its times.
    pub(crate) fn each(self, convert: impl Fn(u64) -> u64) -> Floor {
        let cost = |cost: FloorCost| FloorCost {
            alone_ns: convert(cost.alone_ns),
            each_other_ns: convert(cost.each_other_ns),
        };
        Floor { idle: cost(self.idle), busy: cost(self.busy) }
    }
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize, PartialEq, Default)]
pub struct OperationStatistics {
    pub count: u64,
    pub bytes: u64,
    /// Sum of the times from arrival to reply, measured inside the emulator.
    pub latency_ns: u64,
}
