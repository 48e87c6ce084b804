//! What a controller with a cache is made of.

use crate::profile::{Invalid, within};
use crate::request::SECTOR_BYTES;
use crate::time::{MICROSECOND, MILLISECOND, SECOND};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CachePolicy {
    /// A write is done when the device below has it.
    WriteThrough,
    /// A write is done when it is in the controller's memory, as long as the battery is good; else
    /// write-through.
    WriteBack,
    /// Write-back whatever the battery says: without it a power cut loses what a FLUSH had promised.
    WriteBackAlways,
}

#[derive(Debug, Clone, PartialEq)]
pub struct CacheParameters {
    pub policy: CachePolicy,
    /// Memory for writes.
    pub cache_bytes: u64,
    /// Memory for what was read, given up least recently used first; zero for none.
    pub read_cache_bytes: u64,
    /// A read that goes on where an earlier one ended brings everything up to the next multiple of this into the
    /// read cache: set it to the stripe of the array below (data members times chunk). Zero for no read-ahead.
    pub read_ahead_bytes: u64,
    /// Latency that the firmware adds to each command; commands overlap in it.
    pub command_ns: u64,
    /// Firmware work per command that does not overlap: its inverse is the highest rate of commands.
    pub command_interval_ns: u64,
    /// Between host and controller.
    pub link_bytes_per_s: u64,
    /// Writes to the device below at a time, while writing back.
    pub destage_queue_depth: u64,
    /// Adjacent dirty data is written back together up to this, and never across a multiple of it: set it to
    /// the row of the array below (data members times chunk), and whole rows are written.
    pub destage_bytes: u64,
    /// Dirty share of the memory above which writing back competes with the host's reads.
    pub destage_watermark_percent: u64,
    /// Below the watermark, writing back starts after the host has had nothing to do for this long.
    pub destage_idle_ns: u64,
    /// Time from power-on at which the battery is no longer good (failed, or a learn cycle); `None` for
    /// never.
    pub battery_out_at_ns: Option<u64>,
    /// When it is good again; `None` for never.
    pub battery_back_at_ns: Option<u64>,
}

impl CacheParameters {
    /// A cache of this size with assumed values: 40 microseconds per command, of the 20 to 50 that such
    /// controllers are taken to need; PCIe 1.0 x8; a quarter of the memory dirty before it writes back in
    /// earnest.
    pub fn new(policy: CachePolicy, cache_bytes: u64) -> CacheParameters {
        CacheParameters {
            policy,
            cache_bytes,
            read_cache_bytes: 0,
            read_ahead_bytes: 0,
            command_ns: 40 * MICROSECOND,
            command_interval_ns: 0,
            link_bytes_per_s: 2_000_000_000,
            destage_queue_depth: 32,
            destage_bytes: 256 << 10,
            destage_watermark_percent: 25,
            destage_idle_ns: 20 * MILLISECOND,
            battery_out_at_ns: None,
            battery_back_at_ns: None,
        }
    }

    /// Whether such a controller can be built.
    pub fn validate(&self) -> Result<(), Invalid> {
        within("cache", self.cache_bytes, 64 << 10, 1 << 50, " bytes")?;
        within("read_cache", self.read_cache_bytes, 0, 1 << 50, " bytes")?;
        self.validate_read_ahead()?;
        within("command", self.command_ns, 0, SECOND, " ns")?;
        within("command_interval", self.command_interval_ns, 0, SECOND, " ns")?;
        within("link_rate", self.link_bytes_per_s, 1 << 20, 1 << 50, " bytes/s")?;
        within("destage_queue_depth", self.destage_queue_depth, 1, 1_024, "")?;
        within("destage_size", self.destage_bytes, SECTOR_BYTES, 1 << 30, " bytes")?;
        if !self.destage_bytes.is_multiple_of(SECTOR_BYTES) {
            let problem = format!("is {} bytes, must be a multiple of {SECTOR_BYTES}", self.destage_bytes);
            return Err(Invalid { key: "destage_size", problem });
        }
        within("destage_watermark", self.destage_watermark_percent, 0, 100, " %")?;
        within("destage_idle", self.destage_idle_ns, 0, 1_000 * SECOND, " ns")?;
        match (self.battery_out_at_ns, self.battery_back_at_ns) {
            (out_at_ns, Some(back_at_ns)) if out_at_ns.is_none_or(|out_at_ns| back_at_ns <= out_at_ns) => {
                let problem = format!("is {back_at_ns} ns, must be after `battery_out_at`");
                Err(Invalid { key: "battery_back_at", problem })
            }
            _ => Ok(()),
        }
    }

    fn validate_read_ahead(&self) -> Result<(), Invalid> {
        within("read_ahead", self.read_ahead_bytes, 0, 1 << 30, " bytes")?;
        let invalid = |problem| Err(Invalid { key: "read_ahead", problem });
        // Of the lines of the read cache.
        if !self.read_ahead_bytes.is_multiple_of(4_096) {
            return invalid(format!("is {} bytes, must be a multiple of 4096", self.read_ahead_bytes));
        }
        if self.read_ahead_bytes > self.read_cache_bytes {
            return invalid(format!(
                "is {} bytes, must be at most `read_cache`, {} bytes, where it is kept",
                self.read_ahead_bytes, self.read_cache_bytes
            ));
        }
        Ok(())
    }
}
