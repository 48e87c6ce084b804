//! A pseudo-SLC write cache: superblocks programmed with one bit per cell. They are fast, and take space in
//! proportion to the bits of a native cell.
//!
//! The host's data goes to the cache first. When the cache is full, it goes to native cells until the drive
//! has been idle. Garbage collection on the idle drive then prefers superblocks in SLC mode as victims and
//! moves (folds) their data to native cells. Each erased one is available to the cache again. A drive that is
//! short of space folds earlier and does not return the space to the cache. This follows the description of
//! Samsung's TurboWrite (AnandTech 8747).
//!
//! The static part exists at any fill. It is made of spare superblocks, which idle collection frees. The
//! dynamic part is made of unfilled user space: it has full size up to one fill, then shrinks in proportion
//! until another. The content of the cache itself does not count as fill.
//!
//! An SLC program writes as many pages as a native program. Programs and their dies are therefore the same in
//! both modes; a superblock in SLC mode holds fewer programs.

use super::geometry::{Geometry, Superblock};
use crate::devices::SlcParameters;

/// The superblocks in SLC mode, and the limit on their number.
#[derive(Debug, Default)]
pub(super) struct Slc {
    /// By superblock; empty for a drive without a cache.
    modes: Vec<bool>,
    units_per_superblock: u32,
    static_superblocks: u32,
    dynamic_superblocks: u32,
    /// Native units in use: the limit of the full dynamic part, and the level without any dynamic part.
    full_units: u32,
    gone_units: u32,
    /// Superblocks in SLC mode that are not yet erased.
    used_superblocks: u32,
    /// Those of `used_superblocks` that can be folded.
    closed_superblocks: u32,
    /// The host now writes to the cache: its next superblock is in SLC mode.
    pub(super) is_open: bool,
}

impl Slc {
    pub(super) fn new(parameters: Option<&SlcParameters>, capacity_bytes: u64, geometry: &Geometry) -> Slc {
        let Some(slc) = parameters else { return Slc::default() };
        let die_count = geometry.die_count;
        let programs = geometry.programs_per_superblock / slc.cell_bits as u32;
        // A multiple of the number of dies, so that each die has an equal share.
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

    /// Whether the host must bypass the cache until the drive has been idle.
    pub(super) fn is_used_up(&self) -> bool {
        !self.is_open && !self.modes.is_empty()
    }

    pub(super) fn can_be_folded(&self) -> bool {
        self.closed_superblocks > 0
    }

    /// Spare superblocks that the static part could still use.
    pub(super) fn unused_static_superblocks(&self) -> u32 {
        self.static_superblocks.saturating_sub(self.used_superblocks)
    }

    /// Whether one more superblock may be in SLC mode with `native_units` units in native cells.
    pub(super) fn may_grow(&self, native_units: u32) -> bool {
        let left_units = self.gone_units.saturating_sub(native_units);
        let range_units = self.gone_units.saturating_sub(self.full_units).max(1);
        let dynamic = u64::from(self.dynamic_superblocks) * u64::from(left_units.min(range_units))
            / u64::from(range_units);
        self.used_superblocks < self.static_superblocks + dynamic as u32
    }

    /// Opens a superblock for the host. Returns the number of units that fit into it.
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

    /// Resets the cache after an erase of all superblocks.
    pub(super) fn reset(&mut self) {
        self.modes.fill(false);
        (self.used_superblocks, self.closed_superblocks) = (0, 0);
        self.is_open = !self.modes.is_empty();
    }

    /// Superblocks in SLC mode, and the number of them that are closed.
    #[cfg(test)]
    pub(super) fn counts(&self) -> (u32, u32) {
        assert_eq!(self.modes.iter().filter(|mode| **mode).count(), self.used_superblocks as usize);
        (self.used_superblocks, self.closed_superblocks)
    }
}
