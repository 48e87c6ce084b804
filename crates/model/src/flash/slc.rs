//! A pseudo-SLC write cache: superblocks that are programmed with one bit per cell. That is fast, and takes
//! as many times the space as a cell has bits.
//!
//! The host's data goes there first. Once the cache is full, it goes straight to native cells until the drive
//! has been idle: then garbage collection, which finds superblocks in SLC mode to be the best victims there
//! are, moves (folds) what they hold to native cells, and each one erased is cache again. A drive that is
//! short of space folds before that, without giving the space back to the cache. So Samsung's TurboWrite is
//! described (AnandTech 8747).
//!
//! A static part is there at any fill, made of spare superblocks; idle collection frees them. A dynamic part
//! is made of what the user has not filled: whole up to one fill, then shrinking in proportion until another.
//! What the cache itself holds fills nothing.
//!
//! An SLC program writes as many pages as a native one, so that programs, and the dies that they go to, are
//! the same in both modes; a superblock just holds fewer of them.

use super::geometry::{Geometry, Superblock};
use crate::profile::SlcParameters;

/// Which superblocks are in SLC mode, and how many may be.
#[derive(Debug, Default)]
pub(super) struct Slc {
    /// By superblock; empty for a drive without a cache.
    modes: Vec<bool>,
    units_per_superblock: u32,
    static_superblocks: u32,
    dynamic_superblocks: u32,
    /// Native units in use up to which all of the dynamic part is there, and from which none is.
    full_units: u32,
    gone_units: u32,
    /// In SLC mode and not yet erased.
    used_superblocks: u32,
    /// Of these, those that can be folded.
    closed_superblocks: u32,
    /// The host writes to the cache now.
    is_open: bool,
}

impl Slc {
    pub(super) fn new(parameters: Option<&SlcParameters>, capacity_bytes: u64, geometry: &Geometry) -> Slc {
        let Some(slc) = parameters else { return Slc::default() };
        let die_count = geometry.die_count;
        let programs = geometry.programs_per_superblock / slc.cell_bits as u32;
        // Whole turns round the dies, so that each of them has its share.
        let programs = if programs > die_count { programs / die_count * die_count } else { programs.max(1) };
        let units_per_superblock = programs * geometry.units_per_program;
        let units =
            |bytes: u64| u128::from(geometry.unit_count) * u128::from(bytes) / u128::from(capacity_bytes);
        let superblocks = |bytes: u64| units(bytes).div_ceil(u128::from(units_per_superblock)) as u32;
        let share = |percent: u64| (u64::from(geometry.unit_count) * percent / 100) as u32;
        Slc {
            modes: vec![false; geometry.superblock_count as usize],
            units_per_superblock,
            static_superblocks: superblocks(slc.static_bytes),
            dynamic_superblocks: superblocks(slc.dynamic_bytes),
            full_units: share(slc.dynamic_full_percent),
            gone_units: share(slc.dynamic_gone_percent),
            used_superblocks: 0,
            closed_superblocks: 0,
            is_open: true,
        }
    }

    #[inline]
    pub(super) fn holds(&self, superblock: Superblock) -> bool {
        self.modes.get(superblock as usize).copied().unwrap_or(false)
    }

    /// Whether the host's next superblock is one in SLC mode.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Whether the host has to do without until the drive has been idle.
    pub(super) fn is_used_up(&self) -> bool {
        !self.is_open && !self.modes.is_empty()
    }

    pub(super) fn can_be_folded(&self) -> bool {
        self.closed_superblocks > 0
    }

    /// Spare superblocks that the static part could still take.
    pub(super) fn unused_static_superblocks(&self) -> u32 {
        self.static_superblocks.saturating_sub(self.used_superblocks)
    }

    /// Whether another superblock may be in SLC mode while native cells hold so many units.
    pub(super) fn may_grow(&self, native_units: u32) -> bool {
        let left_units = self.gone_units.saturating_sub(native_units);
        let range_units = self.gone_units.saturating_sub(self.full_units).max(1);
        let dynamic = u64::from(self.dynamic_superblocks) * u64::from(left_units.min(range_units))
            / u64::from(range_units);
        self.used_superblocks < self.static_superblocks + dynamic as u32
    }

    pub(super) fn open(&mut self) {
        self.is_open = true;
    }

    pub(super) fn close(&mut self) {
        self.is_open = false;
    }

    /// The host opens a superblock: how many units fit into it.
    pub(super) fn begin_superblock(&mut self, superblock: Superblock) -> u32 {
        self.modes[superblock as usize] = true;
        self.used_superblocks += 1;
        self.units_per_superblock
    }

    pub(super) fn note_closed(&mut self, superblock: Superblock) {
        self.closed_superblocks += u32::from(self.holds(superblock));
    }

    pub(super) fn note_retired(&mut self, superblock: Superblock) {
        self.closed_superblocks -= u32::from(self.holds(superblock));
    }

    pub(super) fn note_erased(&mut self, superblock: Superblock) {
        if self.holds(superblock) {
            self.modes[superblock as usize] = false;
            self.used_superblocks -= 1;
        }
    }

    /// Empty, after the erase of all superblocks.
    pub(super) fn reset(&mut self) {
        self.modes.fill(false);
        (self.used_superblocks, self.closed_superblocks) = (0, 0);
        self.is_open = !self.modes.is_empty();
    }

    /// Superblocks in SLC mode, and those of them that are closed.
    #[cfg(test)]
    pub(super) fn counts(&self) -> (u32, u32) {
        assert_eq!(self.modes.iter().filter(|mode| **mode).count(), self.used_superblocks as usize);
        (self.used_superblocks, self.closed_superblocks)
    }
}
