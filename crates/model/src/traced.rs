//! One request of a block trace.

use crate::request::Operation;
use crate::time::Instant;

/// A request as the host submitted it to a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traced {
    /// Since the start of the trace, in model time.
    pub at: Instant,
    pub operation: Operation,
    /// Offset from the start of the device; zero for a flush.
    pub offset_bytes: u64,
    /// Zero for a flush.
    pub size_bytes: u64,
    /// FUA: this write is durable when it completes.
    pub force_unit_access: bool,
}
