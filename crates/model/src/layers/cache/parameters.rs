//! Parameters of a controller with a cache.

use super::Cache;
use super::read_cache::LINE_BYTES;
use crate::declare;
use crate::device::{Built, Device};
use crate::layers::{LayerParameters, Told, take};
use crate::parameter::{Declared, Invalid, Parameter, Step, choices, format_duration_ns, format_size_bytes};
use crate::request::SECTOR_BYTES;
use crate::time::{MICROSECOND, MILLISECOND, SECOND};

choices! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum CachePolicy {
        /// A write completes in the controller's memory while the battery is good; otherwise write-through.
        WriteBack = "write-back",
        /// A write completes when the device below has it.
        WriteThrough = "write-through",
        /// Write-back regardless of the battery: without a battery, a power cut loses flushed data.
        WriteBackAlways = "write-back-always",
    }
}

const CACHE_BYTES_LEAST: u64 = 64 << 10;

declare! {
    #[derive(Debug, Clone, PartialEq)]
    pub struct CacheParameters {
        pub policy: CachePolicy = Choice "policy";
        /// Memory for writes.
        pub cache_bytes: u64 = Size "cache" in CACHE_BYTES_LEAST..=1 << 50,
            hint "how much memory has the controller for writes?";
        /// Memory for data that was read, in LRU order. Zero for none.
        pub read_cache_bytes: u64 = Size "read_cache" in 0..=1 << 50, default 0;
        /// A sequential read brings all data up to the next multiple of this into the read cache. Set it to
        /// the stripe of the array below (data members times chunk). Zero turns read-ahead off.
        pub read_ahead_bytes: u64 = Size "read_ahead" in 0..=1 << 30, step Step::MultipleOf(LINE_BYTES), default 0;
        /// Latency that the firmware adds to each command; commands overlap in it.
        pub command_ns: u64 = Duration "command" in 0..=SECOND, default 40 * MICROSECOND,
            assumed "a battery-backed controller is taken to need 20 to 50 us for a write";
        /// Firmware time per command that does not overlap. Its inverse is the highest command rate.
        pub command_interval_ns: u64 = Duration "command_interval" in 0..=SECOND, default 0;
        /// Link between host and controller. The default is PCIe 1.0 x8.
        pub link_bytes_per_s: u64 = Rate "link_rate" in 1 << 20..=1 << 50, default 2_000_000_000;
        /// Concurrent writes to the device below during write-back.
        pub destage_queue_depth: u64 = Count "destage_queue_depth" in 1..=1_024, default 32;
        /// Longest contiguous write-back. It does not cross a multiple of this size. Set it to the row of the
        /// array below (data members times chunk), so that whole rows are written.
        pub destage_bytes: u64 = Size "destage_size" in SECTOR_BYTES..=1 << 30,
            step Step::MultipleOf(SECTOR_BYTES), default 256 << 10;
        /// Dirty share of the memory above which write-back competes with the host's reads.
        pub destage_watermark_percent: u64 = Percent "destage_watermark" in 0..=100, default 25;
        /// Below the watermark, write-back starts after the host has been idle for this long.
        pub destage_idle_ns: u64 = Duration "destage_idle" in 0..=1_000 * SECOND, default 20 * MILLISECOND;
        /// Time from power-on at which the battery fails or enters a learn cycle. The default is never.
        pub battery_out_at_ns: Option<u64> = Duration "battery_out_at";
        /// Time from power-on at which the battery is good again. The default is never.
        pub battery_back_at_ns: Option<u64> = Duration "battery_back_at";
    }
}

impl CacheParameters {
    /// A cache of this size, with the defaults of a stack table for all other parameters.
    pub fn new(policy: CachePolicy, cache_bytes: u64) -> CacheParameters {
        let given = [("policy", policy.value()), ("cache", CACHE_BYTES_LEAST.value())];
        let given = given.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
        let defaults = CacheParameters::from_values(given.collect());
        CacheParameters { cache_bytes, ..defaults.expect("everything else has a default") }
    }
}

impl CacheParameters {
    /// The outage of the battery and its effect, as a phrase that follows the policy.
    fn battery_told(&self) -> String {
        let Some(out_at_ns) = self.battery_out_at_ns else { return String::new() };
        let from = match out_at_ns {
            0 => String::new(),
            _ => format!(" from {}", format_duration_ns(out_at_ns)),
        };
        let until =
            self.battery_back_at_ns.map(|back_at_ns| format!(" until {}", format_duration_ns(back_at_ns)));
        let effect = match (self.policy, &until) {
            (CachePolicy::WriteBack, None) => ", so it writes through",
            (CachePolicy::WriteBack, Some(_)) => ", and it writes through meanwhile",
            (CachePolicy::WriteThrough, _) => "",
            (CachePolicy::WriteBackAlways, _) => ", so a power cut loses flushed data",
        };
        format!(" (its battery is out{from}{}{effect})", until.unwrap_or_default())
    }
}

impl LayerParameters for CacheParameters {
    fn relations(&self) -> Result<(), Invalid> {
        if self.read_ahead_bytes > self.read_cache_bytes {
            let problem = format!(
                "is {}, must be at most `read_cache`, {}, where it is kept",
                format_size_bytes(self.read_ahead_bytes),
                format_size_bytes(self.read_cache_bytes)
            );
            return Err(Invalid::new("read_ahead", problem));
        }
        match (self.battery_out_at_ns, self.battery_back_at_ns) {
            (out_at_ns, Some(back_at_ns)) if out_at_ns.is_none_or(|out_at_ns| back_at_ns <= out_at_ns) => {
                let back_at = format_duration_ns(back_at_ns);
                let problem = format!("is {back_at}, must be after `battery_out_at`");
                Err(Invalid::new("battery_back_at", problem))
            }
            _ => Ok(()),
        }
    }

    /// A controller reports write-through to the host, whatever its policy.
    fn has_volatile_cache(&self, _below_has: bool) -> bool {
        false
    }

    fn assumptions(&self) -> &'static [&'static str] {
        match self.read_ahead_bytes {
            0 => &[],
            _ => &["32 sequential readers are told apart: firmwares do not publish it"],
        }
    }

    fn summary(&self, below: &[Told<'_>]) -> String {
        let policy = match self.policy {
            CachePolicy::WriteBack => "write-back",
            CachePolicy::WriteThrough => "write-through",
            CachePolicy::WriteBackAlways => "write-back without regard to the battery",
        };
        let battery = self.battery_told();
        let memory = format_size_bytes(self.cache_bytes);
        let read_ahead = match self.read_ahead_bytes {
            0 => String::new(),
            bytes => format!(", reading ahead by stripes of {}", format_size_bytes(bytes)),
        };
        let below = below[0].summary;
        format!(
            "A controller with {memory} of battery-backed cache, {policy}{battery}{read_ahead}, on: {below}"
        )
    }

    fn build(&self, below: Vec<Box<dyn Device>>, _size_bytes: u64, seed: u64) -> Built {
        let [below] = take(below);
        Ok(Box::new(Cache::new(self.clone(), below, seed)?))
    }
}
