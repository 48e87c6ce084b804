//! The map from logical units to the location of their data: 4 bytes per unit.
//!
//! The array starts as zero pages of the operating system. A drive with little data therefore takes little
//! memory.

use super::geometry::{Address, Superblock, Unit};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Location {
    /// Never written, or trimmed.
    Unmapped,
    /// In the write buffer, under this index.
    Buffered(u32),
    Nand(Address),
}

const BUFFERED: u32 = 1 << 31;

#[derive(Debug)]
pub(super) struct Map {
    /// Zero: unmapped. Below [`BUFFERED`]: address + 1.
    entries: Vec<u32>,
    offset_bits: u32,
}

impl Map {
    pub(super) fn new(unit_count: u32, offset_bits: u32) -> Map {
        Map { entries: vec![0; unit_count as usize], offset_bits }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    #[inline]
    pub(super) fn get(&self, unit: Unit) -> Location {
        match self.entries[unit as usize] {
            0 => Location::Unmapped,
            entry if entry >= BUFFERED => Location::Buffered(entry - BUFFERED),
            entry => Location::Nand(entry - 1),
        }
    }

    #[inline]
    pub(super) fn set(&mut self, unit: Unit, location: Location) {
        self.entries[unit as usize] = match location {
            Location::Unmapped => 0,
            Location::Buffered(index) => BUFFERED + index,
            Location::Nand(address) => address + 1,
        };
    }

    /// The superblock of a unit, or a number beyond all superblocks.
    #[inline]
    pub(super) fn superblock_or_beyond(&self, unit: usize) -> Superblock {
        // An unmapped entry wraps to the highest number. A buffered entry has its highest bit set.
        self.entries[unit].wrapping_sub(1) >> self.offset_bits
    }

    #[inline]
    pub(super) fn lies_in(&self, unit: Unit, superblock: Superblock) -> bool {
        self.superblock_or_beyond(unit as usize) == superblock
    }

    pub(super) fn clear(&mut self) {
        self.entries = vec![0; self.entries.len()];
    }
}
