//! What a host asks of a device, and what it gets back.

use crate::time::Instant;

/// The smallest unit of a device, in bytes. Offsets and sizes of requests are multiples of it.
pub const SECTOR_BYTES: u64 = 512;

/// Names one request. The submitter chooses it; a device only carries it back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    Read,
    Write,
    /// Every write that was completed before this was submitted is durable when this completes
    /// (Linux, Documentation/block/writeback_cache_control.rst).
    Flush,
    Discard,
    WriteZeroes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    pub id: RequestId,
    pub operation: Operation,
    /// From the start of the device; a multiple of [`SECTOR_BYTES`]; zero for a flush.
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

    /// First sector, and the one after the last.
    pub(crate) fn sectors(&self) -> (u64, u64) {
        (self.offset_bytes / SECTOR_BYTES, self.end_bytes() / SECTOR_BYTES)
    }

    /// When work on a request that was sent at `sent` may begin. Reads and writes may begin in the past,
    /// where nothing else was in their way; the others are about what the device holds now.
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
    /// The device could not do it: the host sees EIO.
    Failure,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    pub id: RequestId,
    /// When the device was done, which may be earlier than the moment it was asked.
    pub at: Instant,
    pub outcome: Outcome,
}
