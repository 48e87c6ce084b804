//! Parameters of a log of synchronous writes.

use super::{IntentLog, LOG_WRITE_BYTES};
use crate::declare;
use crate::device::{Built, Device};
use crate::layers::ssd_cache::SLOW_AND_FAST;
use crate::layers::{Below, LayerParameters, Told, take};
use crate::parameter::{Invalid, Kind, Step, at_most, within};
use crate::request::SECTOR_BYTES;
use crate::time::{MICROSECOND, SECOND};

const LOG_BYTES_LEAST: u64 = 1 << 20;

declare! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct IntentLogParameters {
        /// Used part of the fast device. The default is all of it.
        pub log_bytes: Option<u64> = Size "log" in LOG_BYTES_LEAST..=1 << 50, step Step::MultipleOf(SECTOR_BYTES);
        /// Header of each contiguous write in the log.
        pub record_header_bytes: u64 = Size "record_header" in 0..=1 << 16,
            default 192, assumed "from memory";
        /// Block of the log. A log write is rounded up to a multiple of it.
        pub log_block_bytes: u64 = Size "log_block" in SECTOR_BYTES..=LOG_WRITE_BYTES,
            step Step::MultipleOf(SECTOR_BYTES), default 4 << 10, assumed "from memory";
        /// Time of a read or write in memory.
        pub memory_ns: u64 = Duration "memory" in 0..=SECOND,
            default MICROSECOND, assumed "a copy of 16 KiB";
        /// Time from the first write of a group until the group is closed.
        pub group_interval_ns: u64 = Duration "group_interval" in 1..=100_000 * SECOND, default 5 * SECOND;
        /// Dirty data at which a group is closed early.
        pub group_bytes: u64 = Size "group" in SECTOR_BYTES..=1 << 50,
            default 64 << 20, assumed "from memory";
        /// Dirty data above which writes wait.
        pub dirty_limit_bytes: u64 = Size "dirty_limit" in SECTOR_BYTES..=1 << 50,
            default 256 << 20, assumed "a tenth of a small machine's memory";
        /// Concurrent writes of a group to the pool.
        pub pool_queue_depth: u64 = Count "pool_queue_depth" in 1..=1_024,
            default 10, assumed "from memory";
    }
}

impl LayerParameters for IntentLogParameters {
    fn below() -> &'static [Below] {
        SLOW_AND_FAST
    }

    fn relations(&self) -> Result<(), Invalid> {
        at_most("group", self.group_bytes, "dirty_limit", self.dirty_limit_bytes, Kind::Size)
    }

    fn check_sizes(&self, below_bytes: &[u64]) -> Result<(), Invalid> {
        let fast_bytes = below_bytes[1];
        within("log", self.log_bytes.unwrap_or(fast_bytes), LOG_BYTES_LEAST, fast_bytes, Kind::Size)
    }

    /// The layer's memory is volatile, regardless of the devices.
    fn has_volatile_cache(&self, _below_has: bool) -> bool {
        true
    }

    fn summary(&self, below: &[Told<'_>]) -> String {
        format!("A log of synchronous writes on: {} In front of: {}", below[1].summary, below[0].summary)
    }

    fn build(&self, below: Vec<Box<dyn Device>>, _size_bytes: u64, _seed: u64) -> Built {
        let [slow, fast] = take(below);
        Ok(Box::new(IntentLog::new(*self, fast, slow)?))
    }
}
