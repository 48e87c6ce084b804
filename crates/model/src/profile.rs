//! Plain parameters of the device models. Units are in the names; where a value came from is the business of the
//! profile file (`profiles/*.toml`), which the laboratory reads.

use std::fmt;

use crate::request::SECTOR_BYTES;
use crate::time::SECOND;
use crate::volume::VolumeParameters;

/// A parameter that no device can have: the key as a profile file spells it, what it is, and the bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    pub key: &'static str,
    pub problem: String,
}

impl fmt::Display for Invalid {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "`{}` {}", self.key, self.problem)
    }
}

impl std::error::Error for Invalid {}

#[derive(Debug, Clone, PartialEq)]
pub enum Parameters {
    Null,
    Disk(DiskParameters),
    Flash(FlashParameters),
    Volume(VolumeParameters),
}

/// What happens to a write that the device has taken and not yet put on the medium.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteCache {
    /// Write-through: a write completes when it is on the medium.
    Off,
    /// Completes from volatile memory; FLUSH drains it; a power cut loses what was not flushed.
    Volatile,
    /// Completes from memory that capacitors can save (power-loss protection): nothing acknowledged is lost.
    Protected,
}

/// How an emulated size smaller than the drive is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stroke {
    /// Over the whole stroke, as a database that fills its drive: seeks are as long as the datasheet's.
    Full,
    /// On the outer cylinders only, as a small partition at the start of a large drive.
    Short,
}

#[derive(Debug, Clone, PartialEq)]
pub struct DiskParameters {
    pub capacity_bytes: u64,
    pub rotation_per_minute: u64,
    pub seek_track_to_track_ns: u64,
    /// What a seek further than to the next cylinder takes at least; the track-to-track time if nothing else is known.
    pub seek_minimum_ns: u64,
    pub seek_average_ns: u64,
    /// What a write's seek takes longer than a read's.
    pub write_settle_ns: u64,
    /// Sustained rate of the outermost and innermost zone.
    pub outer_bytes_per_s: u64,
    pub inner_bytes_per_s: u64,
    pub zone_count: u64,
    /// Recording surfaces.
    pub tracks_per_cylinder: u64,
    /// Spent on each command by the controller, one after another.
    pub command_overhead_ns: u64,
    pub interface_bytes_per_s: u64,
    /// Requests among which the drive chooses.
    pub queue_depth: u64,
    /// A command older than this goes first.
    pub age_limit_ns: u64,
    /// A write that covers a part of one makes the drive read it first and write it a rotation later (512e).
    pub physical_sector_bytes: u64,
    pub cache_bytes: u64,
    /// Parts of the cache that each hold one run of what was read, and what comes after it; none is no read-ahead.
    pub read_segments: u64,
    pub write_cache: WriteCache,
    /// Runs of contiguous sectors that the write cache can hold, whatever their size.
    pub dirty_runs: u64,
    /// Oldest dirty runs among which the drive chooses what to write back next.
    pub destage_candidates: u64,
    /// Dirty share of the cache, in bytes or in runs, above which writing back competes with the host's commands.
    pub destage_watermark_percent: u64,
    /// Below the watermark, writing back starts after the arm has had nothing to do for this long.
    pub destage_idle_ns: u64,
    /// None where no read needs retries.
    pub read_retries: Option<ReadRetries>,
    pub stroke: Stroke,
}

/// Reads that succeed only when the sector comes round again, once or several times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadRetries {
    /// Of a million reads that reach the platter.
    pub per_million: u64,
    /// What such a read takes in the mean; after each rotation the chance that it needs another is the same.
    pub mean_rotations: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct FlashParameters {
    /// What the host may use. Formatting a drive to less (a data space) makes this smaller and leaves the raw capacity as it is.
    pub capacity_bytes: u64,
    /// NAND that holds data or is spare; over-provisioning is `raw / capacity - 1`.
    pub raw_bytes: u64,
    pub channel_count: u64,
    pub dies_per_channel: u64,
    /// What the map knows the place of.
    pub mapping_unit_bytes: u64,
    pub page_bytes: u64,
    /// Pages that a die programs at once: its planes, times the pages of a cell that one pass writes.
    pub pages_per_program: u64,
    /// What a die erases at once, over all its planes.
    pub block_bytes: u64,
    /// tR: array to page register.
    pub page_read_ns: u64,
    /// tPROG: page registers to array, all pages of a program.
    pub page_program_ns: u64,
    /// tBERS.
    pub block_erase_ns: u64,
    /// How often a program or erase may be put off for a read; zero: never.
    pub suspend_limit: u64,
    /// From the read's arrival until the array is free for it.
    pub suspend_ns: u64,
    pub channel_bytes_per_s: u64,
    pub link_bytes_per_s: u64,
    /// Latency that the firmware adds to each command; commands overlap in it.
    pub read_overhead_ns: u64,
    pub write_overhead_ns: u64,
    /// Firmware work per command that does not overlap: its inverse is the highest rate of commands.
    pub command_interval_ns: u64,
    pub write_cache: WriteCache,
    pub buffer_bytes: u64,
    /// Writing the map after a FLUSH has drained the buffer.
    pub flush_commit_ns: u64,
    /// A FLUSH lets earlier commands finish and holds back later ones, as on SATA.
    pub flush_blocks_queue: bool,
    pub gc_victim: VictimChoice,
    /// Free share of the spare superblocks at which collection keeps pace with the host.
    pub gc_low_percent: u64,
    /// Up to which an idle drive collects.
    pub gc_high_percent: u64,
    pub slc: Option<SlcParameters>,
}

/// A write cache of native cells that are programmed with one bit each.
#[derive(Debug, Clone, PartialEq)]
pub struct SlcParameters {
    /// Bits of a native cell: a byte in the cache takes the space of so many.
    pub cell_bits: u64,
    /// Host data that it holds at any fill.
    pub static_bytes: u64,
    /// Host data that it holds on top of that, while enough of the drive is not filled.
    pub dynamic_bytes: u64,
    /// Fill of the drive up to which all of the dynamic part is there.
    pub dynamic_full_percent: u64,
    /// And from which nothing of it is left.
    pub dynamic_gone_percent: u64,
    /// In SLC mode, of as many pages as a native program writes.
    pub page_program_ns: u64,
    pub page_read_ns: u64,
}

/// Which superblock garbage collection empties next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VictimChoice {
    /// The one with the fewest valid units.
    Greedy,
    /// The best ratio of room gained to data moved, times age: cold data is moved less often.
    CostBenefit,
}

impl Parameters {
    pub fn validate(&self) -> Result<(), Invalid> {
        match self {
            Parameters::Null => Ok(()),
            Parameters::Disk(disk) => disk.validate(),
            Parameters::Flash(flash) => flash.validate(),
            Parameters::Volume(volume) => volume.validate(),
        }
    }

    /// Size of the real drive; `None` when the device has any size.
    pub fn capacity_bytes(&self) -> Option<u64> {
        match self {
            Parameters::Null => None,
            Parameters::Disk(disk) => Some(disk.capacity_bytes),
            Parameters::Flash(flash) => Some(flash.capacity_bytes),
            Parameters::Volume(volume) => Some(volume.capacity_bytes),
        }
    }

    /// What is between an acknowledged write and the medium.
    pub fn write_cache(&self) -> WriteCache {
        match self {
            Parameters::Null | Parameters::Volume(_) => WriteCache::Off,
            Parameters::Disk(disk) => disk.write_cache,
            Parameters::Flash(flash) => flash.write_cache,
        }
    }
}

const MEBIBYTE: u64 = 1 << 20;
const PEBIBYTE: u64 = 1 << 50;
const CYLINDER_LIMIT: u64 = 1 << 24;
/// Places that 31 bits can name, less what is lost by numbering units within a superblock in whole bits.
const MAPPING_UNITS_HIGH: u64 = 1 << 30;
/// Above this a transfer takes no time at all; it keeps products of bytes and nanoseconds within 128 bits.
const RATE_LIMIT: u64 = 1_000_000_000_000_000;

pub(crate) fn within(key: &'static str, value: u64, low: u64, high: u64, unit: &str) -> Result<(), Invalid> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    Err(Invalid { key, problem: format!("is {value}{unit}, must be {low} to {high}{unit}") })
}

pub(crate) fn at_least(
    key: &'static str,
    value: u64,
    other_key: &str,
    other: u64,
    unit: &str,
) -> Result<(), Invalid> {
    if value >= other {
        return Ok(());
    }
    Err(Invalid { key, problem: format!("is {value}{unit}, must be at least `{other_key}`, {other}{unit}") })
}

fn at_most(key: &'static str, value: u64, other_key: &str, other: u64, unit: &str) -> Result<(), Invalid> {
    if value <= other {
        return Ok(());
    }
    Err(Invalid { key, problem: format!("is {value}{unit}, must be at most `{other_key}`, {other}{unit}") })
}

impl DiskParameters {
    pub fn validate(&self) -> Result<(), Invalid> {
        within("capacity", self.capacity_bytes, MEBIBYTE, PEBIBYTE / 16, " bytes")?;
        within("rotation", self.rotation_per_minute, 1_000, 60_000, " rpm")?;
        within("seek_track_to_track", self.seek_track_to_track_ns, 1_000, SECOND / 10, " ns")?;
        at_least("seek_average", self.seek_average_ns, "seek_minimum", self.seek_minimum_ns, " ns")?;
        at_least(
            "seek_minimum",
            self.seek_minimum_ns,
            "seek_track_to_track",
            self.seek_track_to_track_ns,
            " ns",
        )?;
        within("seek_average", self.seek_average_ns, 1_000, SECOND / 2, " ns")?;
        within("write_settle", self.write_settle_ns, 0, SECOND / 10, " ns")?;
        within("inner_rate", self.inner_bytes_per_s, MEBIBYTE, 10_000 * MEBIBYTE, " bytes/s")?;
        within("outer_rate", self.outer_bytes_per_s, MEBIBYTE, 10_000 * MEBIBYTE, " bytes/s")?;
        at_least("outer_rate", self.outer_bytes_per_s, "inner_rate", self.inner_bytes_per_s, " bytes/s")?;
        within("zones", self.zone_count, 1, 1_000, "")?;
        within("tracks_per_cylinder", self.tracks_per_cylinder, 1, 100, "")?;
        self.validate_cylinders()?;
        within("command_overhead", self.command_overhead_ns, 0, SECOND, " ns")?;
        at_least(
            "interface_rate",
            self.interface_bytes_per_s,
            "outer_rate",
            self.outer_bytes_per_s,
            " bytes/s",
        )?;
        within("interface_rate", self.interface_bytes_per_s, MEBIBYTE, RATE_LIMIT, " bytes/s")?;
        within("queue_depth", self.queue_depth, 1, 1_024, "")?;
        within("age_limit", self.age_limit_ns, 1_000_000, 1_000 * SECOND, " ns")?;
        if !matches!(self.physical_sector_bytes, 512 | 4_096) {
            let problem = format!("is {} bytes, must be 512 or 4096", self.physical_sector_bytes);
            return Err(Invalid { key: "physical_sector", problem });
        }
        within("read_segments", self.read_segments, 0, 1_024, "")?;
        if self.write_cache != WriteCache::Off || self.read_segments > 0 {
            within("cache", self.cache_bytes, 64 * 1_024, PEBIBYTE, " bytes")?;
        }
        within("dirty_runs", self.dirty_runs, 1, 1_000_000, "")?;
        within("destage_candidates", self.destage_candidates, 1, 1_024, "")?;
        within("destage_watermark", self.destage_watermark_percent, 0, 100, " %")?;
        within("destage_idle", self.destage_idle_ns, 0, 1_000 * SECOND, " ns")?;
        let Some(retries) = self.read_retries else { return Ok(()) };
        within("read_retries", retries.per_million, 1, 1_000_000, " reads of a million")?;
        within("retry_rotations", retries.mean_rotations, 1, 1_000, "")
    }

    /// The seek table has one entry per cylinder.
    fn validate_cylinders(&self) -> Result<(), Invalid> {
        let slowest_track_bytes = sectors_per_track(self, self.zone_count - 1) * SECTOR_BYTES;
        let cylinders = self.capacity_bytes / slowest_track_bytes / self.tracks_per_cylinder;
        if cylinders <= CYLINDER_LIMIT {
            return Ok(());
        }
        let problem = format!(
            "is {} bytes, which takes {cylinders} cylinders at these rates, must be at most {CYLINDER_LIMIT}",
            self.capacity_bytes
        );
        Err(Invalid { key: "capacity", problem })
    }
}

/// A track holds what passes at the zone's sustained rate in one rotation and one track switch.
pub(crate) fn sectors_per_track(disk: &DiskParameters, zone: u64) -> u64 {
    let rotation_ns = 60 * SECOND / disk.rotation_per_minute;
    let fall = disk.outer_bytes_per_s - disk.inner_bytes_per_s;
    let rate = disk.outer_bytes_per_s - fall * zone / (disk.zone_count - 1).max(1);
    (rate * (rotation_ns + disk.seek_track_to_track_ns)).div_ceil(SECOND * SECTOR_BYTES)
}

impl FlashParameters {
    pub fn validate(&self) -> Result<(), Invalid> {
        within("capacity", self.capacity_bytes, MEBIBYTE, PEBIBYTE, " bytes")?;
        within("channels", self.channel_count, 1, 1_024, "")?;
        within("dies_per_channel", self.dies_per_channel, 1, 1_024, "")?;
        self.validate_geometry()?;
        within("page_read", self.page_read_ns, 0, SECOND, " ns")?;
        within("page_program", self.page_program_ns, 0, SECOND, " ns")?;
        within("block_erase", self.block_erase_ns, 0, SECOND, " ns")?;
        within("suspend_limit", self.suspend_limit, 0, 1_000, "")?;
        within("suspend", self.suspend_ns, 0, SECOND, " ns")?;
        within("channel_rate", self.channel_bytes_per_s, MEBIBYTE, RATE_LIMIT, " bytes/s")?;
        within("link_rate", self.link_bytes_per_s, MEBIBYTE, RATE_LIMIT, " bytes/s")?;
        within("read_overhead", self.read_overhead_ns, 0, SECOND, " ns")?;
        within("write_overhead", self.write_overhead_ns, 0, SECOND, " ns")?;
        within("command_interval", self.command_interval_ns, 0, SECOND, " ns")?;
        at_least("buffer", self.buffer_bytes, "program", self.program_bytes(), " bytes")?;
        within("buffer", self.buffer_bytes, SECTOR_BYTES, PEBIBYTE, " bytes")?;
        within("flush_commit", self.flush_commit_ns, 0, SECOND, " ns")?;
        within("gc_low_watermark", self.gc_low_percent, 0, 50, " %")?;
        within("gc_high_watermark", self.gc_high_percent, 0, 90, " %")?;
        self.slc.as_ref().map_or(Ok(()), |slc| self.validate_slc(slc))
    }

    fn validate_slc(&self, slc: &SlcParameters) -> Result<(), Invalid> {
        let bits = slc.cell_bits;
        within("cell_bits", bits, 2, 8, "")?;
        if self.block_bytes < bits * self.program_bytes() {
            let problem = format!(
                "is {} bytes, must be at least one program for each bit of a cell, {} bytes",
                self.block_bytes,
                bits * self.program_bytes()
            );
            return Err(Invalid { key: "block", problem });
        }
        at_most("slc_program", slc.page_program_ns, "page_program", self.page_program_ns, " ns")?;
        at_most("slc_read", slc.page_read_ns, "page_read", self.page_read_ns, " ns")?;
        within("slc_dynamic_gone", slc.dynamic_gone_percent, 0, 100, " %")?;
        at_most(
            "slc_dynamic_full",
            slc.dynamic_full_percent,
            "slc_dynamic_gone",
            slc.dynamic_gone_percent,
            " %",
        )?;
        if slc.static_bytes == 0 && slc.dynamic_bytes == 0 {
            let problem = "and `slc_dynamic` are 0 bytes, one of them must be above; leave all of these keys out for a drive \
                           without an SLC cache";
            return Err(Invalid { key: "slc_static", problem: problem.to_owned() });
        }
        let spare_bytes = (self.raw_bytes - self.capacity_bytes) / 100 * (100 - self.gc_high_percent);
        let room = "spare space that `gc_high_watermark` leaves";
        fits("slc_static", slc.static_bytes, bits, spare_bytes, room)?;
        let unfilled_bytes = self.capacity_bytes / 100 * (100 - slc.dynamic_full_percent);
        fits("slc_dynamic", slc.dynamic_bytes, bits, unfilled_bytes, "space that `slc_dynamic_full` leaves")
    }

    fn validate_geometry(&self) -> Result<(), Invalid> {
        power_of_two("page", self.page_bytes)?;
        within("page", self.page_bytes, SECTOR_BYTES, MEBIBYTE, " bytes")?;
        power_of_two("mapping_unit", self.mapping_unit_bytes)?;
        within("mapping_unit", self.mapping_unit_bytes, SECTOR_BYTES, 64 * SECTOR_BYTES, " bytes")?;
        at_least("page", self.page_bytes, "mapping_unit", self.mapping_unit_bytes, " bytes")?;
        within("pages_per_program", self.pages_per_program, 1, 256, "")?;
        within("block", self.block_bytes, self.program_bytes(), 1_024 * MEBIBYTE, " bytes")?;
        // One per cent is far below any drive's; without any, an overwritten page could not be collected.
        let least = self.capacity_bytes + self.capacity_bytes / 100;
        within("raw_capacity", self.raw_bytes, least, 100 * self.capacity_bytes, " bytes")?;
        let units = self.raw_bytes / self.mapping_unit_bytes;
        if units > MAPPING_UNITS_HIGH {
            let bytes = self.mapping_unit_bytes;
            let problem =
                format!("is {bytes} bytes, which makes {units} units, more than {MAPPING_UNITS_HIGH}");
            return Err(Invalid { key: "mapping_unit", problem });
        }
        Ok(())
    }

    /// What one program operation writes.
    pub fn program_bytes(&self) -> u64 {
        self.page_bytes * self.pages_per_program
    }
}

/// A cache of cells that could hold `bits` times as much, in a place of `room_bytes`.
fn fits(key: &'static str, bytes: u64, bits: u64, room_bytes: u64, room: &str) -> Result<(), Invalid> {
    let most = room_bytes / bits;
    if bytes <= most {
        return Ok(());
    }
    let problem = format!(
        "is {bytes} bytes, must be at most {most} bytes: one part in {bits} (`cell_bits`) of the {room}"
    );
    Err(Invalid { key, problem })
}

fn power_of_two(key: &'static str, bytes: u64) -> Result<(), Invalid> {
    if bytes.is_power_of_two() {
        return Ok(());
    }
    Err(Invalid { key, problem: format!("is {bytes} bytes, must be a power of two") })
}

/// Nanoseconds that `bytes` take at a rate, rounded down.
pub(crate) fn transfer_ns(bytes: u64, bytes_per_s: u64) -> u64 {
    match bytes.checked_mul(SECOND) {
        // Nearly always, and several times as fast.
        Some(product) => product / bytes_per_s,
        None => (u128::from(bytes) * u128::from(SECOND) / u128::from(bytes_per_s)) as u64,
    }
}
