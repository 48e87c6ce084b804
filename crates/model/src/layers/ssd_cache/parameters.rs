//! Parameters of a cache on a fast device.

use super::SsdCache;
use super::map::MOST_SECTORS;
use crate::declare;
use crate::device::{Built, Device};
use crate::layers::{Below, LayerParameters, RATE_LIMIT, Told, take};
use crate::parameter::{
    Invalid, Kind, Parameter, Step, Value, at_least, choices, format_size_bytes, value_of, within,
};
use crate::request::SECTOR_BYTES;

/// The slow stack, and the fast one in front of it.
pub(crate) const SLOW_AND_FAST: &[Below] =
    &[Below::ON, Below { key: "fast", size_key: Some("fast_size"), hint: Some("which stack is in front?") }];

choices! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum WritePolicy {
        Back = "write-back",
        Through = "write-through",
        Around = "write-around",
    }
}

/// When data read from the slow device is copied to the fast one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Promotion {
    Never,
    Always,
    /// Up to this rate, with a burst of one second; reads beyond it are not copied.
    AtRate {
        bytes_per_s: u64,
    },
}

impl Parameter for Promotion {
    const WORDS: &'static [&'static str] = &["always", "never"];

    fn value(&self) -> Option<Value> {
        Some(match *self {
            Promotion::Never => Value::Word("never"),
            Promotion::Always => Value::Word("always"),
            Promotion::AtRate { bytes_per_s } => Value::Number(bytes_per_s),
        })
    }

    fn from_value(value: &Value) -> Option<Promotion> {
        match *value {
            Value::Word("never") => Some(Promotion::Never),
            Value::Word("always") => Some(Promotion::Always),
            Value::Number(bytes_per_s) => Some(Promotion::AtRate { bytes_per_s }),
            _ => None,
        }
    }
}

declare! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct SsdCacheParameters {
        /// Granularity of the map.
        pub block_bytes: u64 = Size "block" in SECTOR_BYTES..=MOST_SECTORS * SECTOR_BYTES, step Step::PowerOfTwo,
            default 16 << 10, assumed "the page of InnoDB";
        /// Used part of the fast device. The default is all of it.
        pub cache_bytes: Option<u64> = Size "cache";
        pub write_policy: WritePolicy = Choice "policy";
        /// Whether data read from the slow device is copied: always, never, or up to a rate.
        pub promotion: Promotion = Rate "promotion" in 1..=RATE_LIMIT, default Promotion::Always;
        /// Length from which a sequential stream bypasses the cache. Zero for none.
        pub sequential_cutoff_bytes: u64 = Size "sequential_cutoff" in 0..=1 << 50, default 4 << 20;
        /// Write-back: share of dirty blocks above which they are drained.
        pub writeback_percent: u64 = Percent "writeback" in 0..=100,
            default 10, assumed "bcache's, from memory";
        /// Write-back: rate of draining.
        pub writeback_bytes_per_s: u64 = Rate "writeback_rate" in 1..=RATE_LIMIT,
            default 50_000_000, assumed "bcache has a controller for it";
        /// Write-back: share of dirty blocks above which writes bypass the cache.
        pub dirty_limit_percent: u64 = Percent "dirty_limit" in 0..=100, default 70;
        /// Whether the map of clean blocks survives a power cut. The map of dirty blocks always does.
        pub keeps_clean_blocks: bool = Switch "keeps_clean_blocks", default true;
    }
}

impl LayerParameters for SsdCacheParameters {
    fn below() -> &'static [Below] {
        SLOW_AND_FAST
    }

    fn relations(&self) -> Result<(), Invalid> {
        if let Some(cache_bytes) = self.cache_bytes {
            at_least("cache", cache_bytes, "block", self.block_bytes, Kind::Size)?;
        }
        at_least("dirty_limit", self.dirty_limit_percent, "writeback", self.writeback_percent, Kind::Percent)
    }

    fn check_sizes(&self, below_bytes: &[u64]) -> Result<(), Invalid> {
        let fast_bytes = below_bytes[1];
        within("cache", self.cache_bytes.unwrap_or(fast_bytes), self.block_bytes, fast_bytes, Kind::Size)
    }

    /// Parameters of write-back have no effect under the other policies.
    fn uses(&self, key: &str) -> bool {
        self.write_policy == WritePolicy::Back || !key.starts_with("writeback")
    }

    fn summary(&self, below: &[Told<'_>]) -> String {
        let policy = match value_of(&self.write_policy) {
            Some(Value::Word(policy)) => policy,
            _ => "",
        };
        let size = format_size_bytes(self.cache_bytes.unwrap_or(below[1].size_bytes));
        format!("A {policy} cache of {size} on: {} In front of: {}", below[1].summary, below[0].summary)
    }

    fn build(&self, below: Vec<Box<dyn Device>>, _size_bytes: u64, _seed: u64) -> Built {
        let [slow, fast] = take(below);
        Ok(Box::new(SsdCache::new(*self, fast, slow)?))
    }
}
