//! Parameters of a flash drive.

use super::Flash;
use crate::declare;
use crate::device::Built;
use crate::devices::{DeviceParameters, MEBIBYTE, PEBIBYTE, RATE_LIMIT, WriteCache};
use crate::parameter::{
    Invalid, Kind, Step, at_least, at_most, choices, format_size_bytes, optional_group, within,
};
use crate::rates::{Rate, Rates};
use crate::request::SECTOR_BYTES;
use crate::time::SECOND;

/// Units that 31 bits can address, minus the loss from numbering units within a superblock in whole bits.
const MAPPING_UNITS_HIGH: u64 = 1 << 30;

choices! {
    /// The choice of the next superblock for garbage collection.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum VictimChoice {
        /// The one with the fewest valid units.
        Greedy = "greedy",
        /// The one with the best ratio of gained space to moved data, times age: cold data is moved less
        /// often.
        CostBenefit = "cost-benefit",
    }
}

declare! {
    #[derive(Debug, Clone, PartialEq)]
    pub struct FlashParameters {
        /// User capacity. Formatting a drive to less (a data space) lowers it and leaves the raw capacity as
        /// it is.
        pub capacity_bytes: u64 = Size "capacity" in MEBIBYTE..=PEBIBYTE, table "data_space" "Formatted to {}.";
        /// NAND for data and spare space. Over-provisioning is `raw / capacity - 1`.
        pub raw_bytes: u64 = Size "raw_capacity";
        pub channel_count: u64 = Count "channels" in 1..=1_024;
        pub dies_per_channel: u64 = Count "dies_per_channel" in 1..=1_024;
        /// Granularity of the map.
        pub mapping_unit_bytes: u64 = Size "mapping_unit" in SECTOR_BYTES..=64 * SECTOR_BYTES, step Step::PowerOfTwo;
        pub page_bytes: u64 = Size "page" in SECTOR_BYTES..=MEBIBYTE, step Step::PowerOfTwo;
        /// Pages that a die programs at once: its planes times the pages of a cell in one pass.
        pub pages_per_program: u64 = Count "pages_per_program" in 1..=256;
        /// Erase block of a die, over all its planes.
        pub block_bytes: u64 = Size "block";
        /// tR: array to page register.
        pub page_read_ns: u64 = Duration "page_read" in 0..=SECOND;
        /// tPROG: page registers to array, all pages of a program.
        pub page_program_ns: u64 = Duration "page_program" in 0..=SECOND;
        /// tBERS.
        pub block_erase_ns: u64 = Duration "block_erase" in 0..=SECOND;
        /// How often a program or erase may be suspended for a read. Zero turns suspension off.
        pub suspend_limit: u64 = Count "suspend_limit" in 0..=1_000;
        /// Time from the read's arrival until the array is free for it.
        pub suspend_ns: u64 = Duration "suspend" in 0..=SECOND;
        pub channel_bytes_per_s: u64 = Rate "channel_rate" in MEBIBYTE..=RATE_LIMIT;
        pub link_bytes_per_s: u64 = Rate "link_rate" in MEBIBYTE..=RATE_LIMIT;
        /// Latency that the firmware adds to each read; commands overlap in it.
        pub read_overhead_ns: u64 = Duration "read_overhead" in 0..=SECOND;
        /// Latency that the firmware adds to each write; commands overlap in it.
        pub write_overhead_ns: u64 = Duration "write_overhead" in 0..=SECOND;
        /// Firmware time per command that does not overlap. Its inverse is the highest command rate.
        pub command_interval_ns: u64 = Duration "command_interval" in 0..=SECOND;
        pub write_cache: WriteCache = Choice "write_cache", table "write_cache" "Its write cache is set to {}.";
        pub buffer_bytes: u64 = Size "buffer" in SECTOR_BYTES..=PEBIBYTE;
        /// Time to write the map after a FLUSH has drained the buffer.
        pub flush_commit_ns: u64 = Duration "flush_commit" in 0..=SECOND;
        /// Whether a FLUSH waits for earlier commands and holds back later ones, as on SATA.
        pub flush_blocks_queue: bool = Switch "flush_blocks_queue";
        pub gc_victim: VictimChoice = Choice "gc_victim";
        /// Free share of the spare superblocks at which garbage collection keeps pace with the host.
        pub gc_low_percent: u64 = Percent "gc_low_watermark" in 0..=50;
        /// Free share of the spare superblocks up to which an idle drive collects.
        pub gc_high_percent: u64 = Percent "gc_high_watermark" in 0..=90;
        /// None for a drive without an SLC write cache.
        pub slc: Option<SlcParameters> = Group "";
    }
}

declare! {
    /// A write cache of native cells, programmed with one bit each.
    #[derive(Debug, Clone, PartialEq)]
    pub struct SlcParameters {
        /// Bits of a native cell. A byte in the SLC cache takes the space of this many native bytes.
        pub cell_bits: u64 = Count "cell_bits" in 2..=8;
        /// Host data that the SLC cache holds at any fill of the drive.
        pub static_bytes: u64 = Size "slc_static";
        /// Further host data that the SLC cache holds while the drive has enough unfilled space.
        pub dynamic_bytes: u64 = Size "slc_dynamic";
        /// Fill of the drive up to which the dynamic part has its full size.
        pub dynamic_full_percent: u64 = Percent "slc_dynamic_full";
        /// Fill of the drive from which the dynamic part is gone.
        pub dynamic_gone_percent: u64 = Percent "slc_dynamic_gone" in 0..=100;
        /// tPROG in SLC mode, for as many pages as a native program writes.
        pub page_program_ns: u64 = Duration "slc_program";
        /// tR in SLC mode.
        pub page_read_ns: u64 = Duration "slc_read";
    }
}

optional_group!(SlcParameters);

impl DeviceParameters for FlashParameters {
    fn relations(&self) -> Result<(), Invalid> {
        self.validate_geometry()?;
        at_least("buffer", self.buffer_bytes, "program", self.program_bytes(), Kind::Size)?;
        self.slc.as_ref().map_or(Ok(()), |slc| self.validate_slc(slc))
    }

    fn capacity_bytes(&self) -> Option<u64> {
        Some(self.capacity_bytes)
    }

    /// Those of the link, and of all dies as they program without garbage collection. A cache of SLC programs
    /// faster.
    fn rates(&self) -> Rates {
        let dies = u128::from(self.channel_count * self.dies_per_channel);
        let programs = (dies * u128::from(self.program_bytes()) * u128::from(SECOND))
            .checked_div(u128::from(self.page_program_ns))
            .filter(|_| self.slc.is_none());
        let write = programs.map_or(self.link_bytes_per_s, |programs| {
            self.link_bytes_per_s.min(u64::try_from(programs).unwrap_or(u64::MAX))
        });
        Rates {
            read: Rate::bytes(self.link_bytes_per_s),
            write: Rate::bytes(write),
            total: Rate { bytes_per_s: None, iops: SECOND.checked_div(self.command_interval_ns) },
        }
    }

    fn write_cache(&self) -> WriteCache {
        self.write_cache
    }

    fn write_cache_bytes(&self) -> u64 {
        self.buffer_bytes
    }

    fn build(&self, size_bytes: u64, seed: u64) -> Built {
        Ok(Box::new(Flash::new(self.clone(), size_bytes, seed)))
    }
}

impl FlashParameters {
    fn validate_slc(&self, slc: &SlcParameters) -> Result<(), Invalid> {
        let bits = slc.cell_bits;
        if self.block_bytes < bits * self.program_bytes() {
            let problem = format!(
                "is {}, must be at least one program for each bit of a cell, {}",
                format_size_bytes(self.block_bytes),
                format_size_bytes(bits * self.program_bytes())
            );
            return Err(Invalid::new("block", problem));
        }
        at_most("slc_program", slc.page_program_ns, "page_program", self.page_program_ns, Kind::Duration)?;
        at_most("slc_read", slc.page_read_ns, "page_read", self.page_read_ns, Kind::Duration)?;
        let (full, gone) = (slc.dynamic_full_percent, slc.dynamic_gone_percent);
        at_most("slc_dynamic_full", full, "slc_dynamic_gone", gone, Kind::Percent)?;
        if slc.static_bytes == 0 && slc.dynamic_bytes == 0 {
            let problem = "and `slc_dynamic` are 0 bytes, one of them must be above; leave all of these keys out for a drive \
                           without an SLC cache";
            return Err(Invalid::new("slc_static", problem));
        }
        let spare_bytes = (self.raw_bytes - self.capacity_bytes) / 100 * (100 - self.gc_high_percent);
        let room = "spare space that `gc_high_watermark` leaves";
        fits("slc_static", slc.static_bytes, bits, spare_bytes, room)?;
        let unfilled_bytes = self.capacity_bytes / 100 * (100 - full);
        fits("slc_dynamic", slc.dynamic_bytes, bits, unfilled_bytes, "space that `slc_dynamic_full` leaves")
    }

    fn validate_geometry(&self) -> Result<(), Invalid> {
        at_least("page", self.page_bytes, "mapping_unit", self.mapping_unit_bytes, Kind::Size)?;
        within("block", self.block_bytes, self.program_bytes(), 1_024 * MEBIBYTE, Kind::Size)?;
        // Any drive has far more than one per cent. Without spare space, an overwritten page could not be
        // collected.
        let least = self.capacity_bytes + self.capacity_bytes / 100;
        within("raw_capacity", self.raw_bytes, least, 100 * self.capacity_bytes, Kind::Size)?;
        let units = self.raw_bytes / self.mapping_unit_bytes;
        if units > MAPPING_UNITS_HIGH {
            let size = format_size_bytes(self.mapping_unit_bytes);
            let problem = format!("is {size}, which makes {units} units, more than {MAPPING_UNITS_HIGH}");
            return Err(Invalid::new("mapping_unit", problem));
        }
        Ok(())
    }

    /// Bytes of one program operation.
    pub fn program_bytes(&self) -> u64 {
        self.page_bytes * self.pages_per_program
    }
}

/// Checks that a cache of cells of `bits` bits fits into `room_bytes` of native capacity.
fn fits(key: &'static str, bytes: u64, bits: u64, room_bytes: u64, room: &str) -> Result<(), Invalid> {
    let most = room_bytes / bits;
    if bytes <= most {
        return Ok(());
    }
    let problem = format!(
        "is {}, must be at most {}: one part in {bits} (`cell_bits`) of the {room}",
        format_size_bytes(bytes),
        format_size_bytes(most)
    );
    Err(Invalid::new(key, problem))
}
