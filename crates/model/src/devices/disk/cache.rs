//! The disk's write-back cache: room for writes, and the choice of the next destage.
//!
//! The cache holds a limited number of runs of contiguous sectors, and the arm chooses among the oldest of
//! them. Firmware keeps a table of segments; it does not sort megabytes of pages.

use super::{Choice, Disk};
use crate::devices::WriteCache;
use crate::request::{Operation, Request, SECTOR_BYTES};
use crate::requests::Slot;
use crate::time::Instant;

/// Longest contiguous destage. It limits the wait of a read behind it to about one rotation of transfer.
const LONGEST_RUN_SECTORS: u64 = 2_048;

impl Disk {
    pub(super) fn is_cached(&self, request: &Request) -> bool {
        let must_be_durable =
            request.force_unit_access && self.parameters.write_cache == WriteCache::Volatile;
        self.parameters.write_cache != WriteCache::Off
            && !must_be_durable
            && request.size_bytes <= self.parameters.cache_bytes
    }

    fn capacity_sectors(&self) -> u64 {
        self.parameters.cache_bytes / SECTOR_BYTES
    }

    pub(super) fn admit_to_cache(&mut self, at: Instant) {
        while let Some(&slot) = self.state.waiting_for_room.front() {
            let sectors = self.requests.get(slot).request.size_bytes / SECTOR_BYTES;
            let used_sectors = self.state.cache.volatile_sectors() + self.state.reserved_sectors;
            let used_runs =
                self.dirty.len() as u64 + self.state.reserved_runs + u64::from(!self.state.taken.is_empty());
            if used_sectors + sectors > self.capacity_sectors() || used_runs >= self.parameters.dirty_runs {
                return;
            }
            self.state.waiting_for_room.pop_front();
            self.state.reserved_sectors += sectors;
            self.state.reserved_runs += 1;
            self.cross_interface(at, slot);
        }
    }

    pub(super) fn cross_interface(&mut self, at: Instant, slot: Slot) {
        self.state.interface_free_at = self.state.interface_free_at.max(at) + self.interface_ns(slot);
        self.state.interface.push_back((self.state.interface_free_at, slot));
    }

    pub(super) fn finish_interface_transfer(&mut self, at: Instant) {
        let Some((_, slot)) = self.state.interface.pop_front() else { return };
        let command = self.requests.get(slot);
        let (id, sequence) = (command.request.id, command.sequence);
        if command.request.operation == Operation::Write {
            let (start, end) = command.sectors();
            self.state.reserved_sectors -= end - start;
            self.state.reserved_runs -= 1;
            if start < end {
                // Any sector identifies a run. A write that touches a run therefore needs no entry of its
                // own.
                if self.state.cache.insert(start, end, id, sequence) {
                    self.dirty.push(self.geometry.locate(start, true), start);
                }
            }
            self.requests.mark_placed(slot);
        }
        self.requests.finish(at, slot);
    }

    /// Drops older data in the range, replaced by a write to the platter or a discard. Older means below this
    /// sequence number.
    pub(super) fn forget(&mut self, start: u64, end: u64, before_sequence: u64) {
        self.state.cache.forget(start, end, before_sequence);
        if self.state.cache.is_clean() {
            // Without dirty data, no destage will remove the entries. A write may wait for their room.
            self.dirty.clear();
        }
    }

    /// When the arm starts to destage because it is idle.
    pub(super) fn idle_destage_at(&self) -> Option<Instant> {
        let is_possible = self.queue.is_empty() && !self.state.cache.is_clean();
        is_possible.then(|| self.state.host_idle_since + self.parameters.destage_idle_ns)
    }

    /// Whether destaging may compete for the arm now.
    pub(super) fn destage_is_due(&self, at: Instant) -> bool {
        let share = |whole: u64| whole * self.parameters.destage_watermark_percent / 100;
        let is_draining = self.state.flush_ready && self.requests.working_count() == 0;
        !self.state.cache.is_clean()
            && (is_draining
                || !self.state.waiting_for_room.is_empty()
                || self.state.cache.dirty_sectors > share(self.capacity_sectors())
                || self.dirty.len() as u64 > share(self.parameters.dirty_runs)
                || self.idle_destage_at().is_some_and(|idle_at| idle_at <= at))
    }

    /// The dirty run in view that the arm can reach soonest, and the time to reach it. Requires a cache that
    /// is not clean.
    pub(super) fn nearest_destage(&mut self, phase_ns: u32) -> Option<(Choice, u32)> {
        loop {
            let Some((index, positioning_ns)) = self.dirty.nearest(&self.geometry, phase_ns, self.head)
            else {
                // A write or a discard has removed the sector that identified a run.
                let first = self.state.cache.first_dirty()?;
                self.dirty.push(self.geometry.locate(first, true), first);
                continue;
            };
            if let Some((start, end)) =
                self.state.cache.run_around(*self.dirty.get(index), LONGEST_RUN_SECTORS)
            {
                return Some((Choice::Destage { index, start, end }, positioning_ns));
            }
            self.dirty.remove(index);
        }
    }

    /// Takes a run out of the cache. If the run is longer than one destage, its rest stays the oldest.
    pub(super) fn take_run(&mut self, index: usize, start: u64, end: u64) {
        let (known_by, _) = self.dirty.remove(index);
        self.state.cache.take(start, end, &mut self.state.taken);
        if end - start == LONGEST_RUN_SECTORS && self.state.cache.touches(end, end + 1) {
            self.dirty.push_front(self.geometry.locate(end, true), end);
        }
        if start > 0 && known_by - start == LONGEST_RUN_SECTORS && self.state.cache.touches(start - 1, start)
        {
            self.dirty.push_front(self.geometry.locate(start - 1, true), start - 1);
        }
        if self.state.cache.is_clean() {
            self.dirty.clear();
        }
    }
}
