//! Requests of a host to a device, and their completions.

use crate::time::Instant;

/// The smallest unit of a device, in bytes. Offsets and sizes of requests are multiples of it.
pub const SECTOR_BYTES: u64 = 512;

/// Names one request. The submitter chooses it; the device returns it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    Read,
    Write,
    /// Writes completed before the submission of this request are durable when it completes (Linux,
    /// Documentation/block/writeback_cache_control.rst).
    Flush,
    Discard,
    WriteZeroes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    pub id: RequestId,
    pub operation: Operation,
    /// Offset from the start of the device; a multiple of [`SECTOR_BYTES`]; zero for a flush.
    pub offset_bytes: u64,
    /// A multiple of [`SECTOR_BYTES`]; zero for a flush.
    pub size_bytes: u64,
    /// FUA: this write is durable when it completes.
    pub force_unit_access: bool,
}

impl Request {
    pub fn end_bytes(&self) -> u64 {
        self.offset_bytes + self.size_bytes
    }

    /// First sector, and the sector after the last.
    pub(crate) fn sectors(&self) -> (u64, u64) {
        (self.offset_bytes / SECTOR_BYTES, self.end_bytes() / SECTOR_BYTES)
    }

    /// Earliest start of work on a request that was sent at `sent`. Reads and writes may start in the past if
    /// nothing else was in their way. Other requests refer to the present content of the device and start at
    /// `now`.
    pub(crate) fn begins_at(&self, sent: Instant, now: Instant) -> Instant {
        match self.operation {
            Operation::Read | Operation::Write => sent.min(now),
            Operation::Flush | Operation::Discard | Operation::WriteZeroes => now,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Success,
    /// The device failed the request: the host sees EIO.
    Failure,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    pub id: RequestId,
    /// Time at which the device completed the request; it may be earlier than the call to `poll`.
    pub at: Instant,
    pub outcome: Outcome,
}
