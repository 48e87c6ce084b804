//! What the emulator counts, as it travels over the control socket.

use serde::{Deserialize, Serialize};

/// Cumulative since the disk came up; differences of two are what happened in between.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Default)]
pub struct Statistics {
    /// Nanoseconds since the disk came up.
    pub uptime_ns: u64,
    pub physics: bool,
    /// `SCHED_FIFO` or `SCHED_OTHER`.
    pub scheduler: String,
    /// Subtracted from every service time.
    pub floor_ns: u64,
    pub read: OperationStatistics,
    pub write: OperationStatistics,
    pub flush: OperationStatistics,
    pub discard: OperationStatistics,
    /// Integral of the number of requests inside the device over time; divided by time it is the mean queue depth.
    pub queue_time_ns: u64,
    pub queue_depth: u64,
    pub seeks: u64,
    pub nand_write_bytes: u64,
    /// Requests answered later than 5 % of their service time.
    pub late_requests: u64,
    /// Lateness of every reply: HDR histogram of nanoseconds, V2 encoding, base64.
    pub lateness_histogram: String,
    /// Page faults of the emulator that had to read the host's disk.
    pub major_faults: u64,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize, PartialEq, Default)]
pub struct OperationStatistics {
    pub count: u64,
    pub bytes: u64,
    /// Sum of the times from arrival to reply, as the host saw them inside the emulator.
    pub latency_ns: u64,
}
