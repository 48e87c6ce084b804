//! What the emulator counts, as it travels over the control socket.

use serde::{Deserialize, Serialize};

/// Cumulative since the disk came up; differences of two are what happened in between.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Default)]
pub struct Statistics {
    /// Nanoseconds since the disk came up.
    pub uptime_ns: u64,
    pub timing: bool,
    /// `SCHED_FIFO` or `SCHED_OTHER`.
    pub scheduler: String,
    /// Whether the emulator could come to wait for its own disk where memory is short, because the kernel
    /// refused it PR_SET_IO_FLUSHER.
    #[serde(default)]
    pub io_flusher_refused: bool,
    /// How requests reach the emulator: `io_uring` or `threads`.
    pub transport: String,
    /// Subtracted from every service time.
    pub floor: Floor,
    pub read: OperationStatistics,
    pub write: OperationStatistics,
    pub flush: OperationStatistics,
    pub discard: OperationStatistics,
    /// Integral of the number of requests inside the device over time; divided by time it is the mean queue
    /// depth.
    pub queue_time_ns: u64,
    pub queue_depth: u64,
    pub seeks: u64,
    /// Programmed into NAND, garbage collection included; divided by the written bytes it is the write
    /// amplification.
    pub nand_write_bytes: u64,
    /// The part of it that garbage collection moved.
    pub nand_moved_bytes: u64,
    pub erases: u64,
    /// Of the superblock that was erased most often.
    pub most_erases: u64,
    /// Requests answered later than 5 % of their service time and than 50 us.
    pub late_requests: u64,
    /// Sum over all requests of what each was later than 50 us, which the floor makes up for.
    pub late_ns: u64,
    /// Lateness of every reply: HDR histogram of nanoseconds, V2 encoding, base64.
    pub lateness_histogram: String,
    /// How often the emulator had to read the host's disk: page faults, and reads of its files that the page
    /// cache could not answer.
    pub major_faults: u64,
}

/// What a request costs on its way through the kernel and back, beside what the model says: with idle cores,
/// and with all cores busy, when every thread on the way has to push another one aside.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, PartialEq, Eq, Default)]
pub struct Floor {
    pub idle: FloorCost,
    pub busy: FloorCost,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize, PartialEq, Eq, Default)]
pub struct FloorCost {
    /// For a request that is alone.
    pub alone_ns: u64,
    /// More for every other request that is under way: one thread receives and one answers, so requests queue
    /// there.
    pub each_other_ns: u64,
}

impl Floor {
    /// Beyond this depth it is the emulator's throughput that limits, which no subtraction can make up for.
    const DEPTH_MAX: u64 = 8;

    /// For a request that makes the queue `depth` long, itself included, with this share of the cores busy (0
    /// to 1).
    pub fn at(self, depth: u64, busy: f64) -> u64 {
        let others = depth.clamp(1, Floor::DEPTH_MAX) - 1;
        let cost = |cost: FloorCost| (cost.alone_ns + cost.each_other_ns * others) as f64;
        let busy = busy.clamp(0.0, 1.0);
        (cost(self.idle) * (1.0 - busy) + cost(self.busy) * busy) as u64
    }
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize, PartialEq, Default)]
pub struct OperationStatistics {
    pub count: u64,
    pub bytes: u64,
    /// Sum of the times from arrival to reply, as the host saw them inside the emulator.
    pub latency_ns: u64,
}
