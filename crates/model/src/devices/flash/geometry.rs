//! Layout of the emulated drive: mapping units in programs, programs in superblocks, superblocks on dies.
//!
//! A superblock is one erase block of every die, written as one. If the emulated size is smaller than the
//! drive, the number of dies and the ratio of raw to user capacity stay, because they determine rates and
//! write amplification. Each die then has fewer erase blocks. Below [`SUPERBLOCKS_WANTED`] superblocks, the
//! blocks become smaller instead, with an erase time in proportion: with few superblocks, the steps of
//! garbage collection would be far too coarse.

use crate::devices::FlashParameters;
use crate::request::SECTOR_BYTES;

/// A position in NAND: superblock and mapping unit within it.
pub(super) type Address = u32;
/// A logical mapping unit.
pub(super) type Unit = u32;
pub(super) type Superblock = u32;

const SUPERBLOCKS_WANTED: u64 = 512;
const UNITS_PER_SUPERBLOCK_LOW: u64 = 64;
/// Superblocks beyond the drive's raw capacity: two open ones and the free ones that collection needs. All
/// over-provisioned space is therefore available for data, at any emulated size.
const WORKING_SUPERBLOCKS: u64 = 3;
/// An SLC write cache has one more open superblock.
const WORKING_SUPERBLOCKS_WITH_SLC: u64 = 4;

#[derive(Debug, Clone)]
pub(super) struct Geometry {
    pub(super) unit_bytes: u64,
    /// `unit_bytes` is `1 << unit_bits`.
    pub(super) unit_bits: u32,
    pub(super) unit_sectors: u64,
    /// Logical size.
    pub(super) unit_count: u32,
    pub(super) units_per_page: u32,
    pub(super) units_per_program: u32,
    pub(super) units_per_superblock: u32,
    pub(super) programs_per_superblock: u32,
    /// An [`Address`] is `superblock << offset_bits | offset`.
    pub(super) offset_bits: u32,
    pub(super) superblock_count: u32,
    /// Superblocks beyond the user capacity.
    pub(super) spare_superblocks: u32,
    pub(super) die_count: u32,
    /// Dies that an erase of a superblock occupies, and the time of each.
    pub(super) erase_jobs: u32,
    pub(super) erase_ns: u64,
}

impl Geometry {
    pub(super) fn new(parameters: &FlashParameters, size_bytes: u64) -> Geometry {
        let unit_bytes = parameters.mapping_unit_bytes;
        let die_count = parameters.channel_count * parameters.dies_per_channel;
        let units_per_program = parameters.program_bytes() / unit_bytes;
        let unit_count = size_bytes.div_ceil(unit_bytes);
        let raw_units = scaled(unit_count, parameters.raw_bytes, parameters.capacity_bytes);
        let programs_per_block = (parameters.block_bytes / parameters.program_bytes()).max(1);
        let programs = (raw_units / SUPERBLOCKS_WANTED / units_per_program)
            .max(UNITS_PER_SUPERBLOCK_LOW.div_ceil(units_per_program))
            // Gives every die a part of a superblock in SLC mode.
            .max(parameters.slc.as_ref().map_or(0, |slc| slc.cell_bits * die_count))
            .min(programs_per_block * die_count);
        let programs = if programs > die_count { programs / die_count * die_count } else { programs };
        let units_per_superblock = programs * units_per_program;
        let working_superblocks =
            if parameters.slc.is_some() { WORKING_SUPERBLOCKS_WITH_SLC } else { WORKING_SUPERBLOCKS };
        let superblock_count = raw_units.div_ceil(units_per_superblock) + working_superblocks;
        let erase_jobs = programs.min(die_count);
        Geometry {
            unit_bytes,
            unit_bits: unit_bytes.trailing_zeros(),
            unit_sectors: unit_bytes / SECTOR_BYTES,
            unit_count: unit_count as u32,
            units_per_page: (parameters.page_bytes / unit_bytes) as u32,
            units_per_program: units_per_program as u32,
            units_per_superblock: units_per_superblock as u32,
            programs_per_superblock: programs as u32,
            offset_bits: units_per_superblock.next_power_of_two().trailing_zeros(),
            superblock_count: superblock_count as u32,
            spare_superblocks: (superblock_count - unit_count.div_ceil(units_per_superblock)) as u32,
            die_count: die_count as u32,
            erase_jobs: erase_jobs as u32,
            erase_ns: parameters.block_erase_ns * programs / erase_jobs / programs_per_block,
        }
    }

    /// The die of a program: consecutive programs go to the dies in turn.
    pub(super) fn die_of(&self, address: Address) -> usize {
        let offset = address & ((1 << self.offset_bits) - 1);
        self.die_of_program(address >> self.offset_bits, offset / self.units_per_program)
    }

    pub(super) fn die_of_program(&self, superblock: Superblock, program: u32) -> usize {
        ((superblock * self.programs_per_superblock + program) % self.die_count) as usize
    }

    /// The NAND page of an address, as a unique number.
    pub(super) fn page_of(&self, address: Address) -> u32 {
        address / self.units_per_page
    }
}

fn scaled(units: u64, raw_bytes: u64, capacity_bytes: u64) -> u64 {
    (u128::from(units) * u128::from(raw_bytes)).div_ceil(u128::from(capacity_bytes)) as u64
}
