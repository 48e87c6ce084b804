//! The disk's write-back cache: room for writes, and what the arm writes back next.

use super::{Choice, Disk};
use crate::commands::Slot;
use crate::profile::WriteCache;
use crate::request::{Operation, Request, SECTOR_BYTES};
use crate::time::Instant;

/// Longest contiguous write-back, so that a read behind it waits at most for about a rotation of transfer.
const LONGEST_RUN_SECTORS: u64 = 2_048;
/// Dirty runs that the scheduler looks at, on each side of the head.
const WINDOW_RUNS: usize = 16;

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

    fn used_sectors(&self) -> u64 {
        self.cache.volatile_sectors() + self.reserved_sectors
    }

    pub(super) fn admit_to_cache(&mut self, at: Instant) {
        while let Some(&slot) = self.waiting_for_room.front() {
            let sectors = self.commands.get(slot).request.size_bytes / SECTOR_BYTES;
            if self.used_sectors() + sectors > self.capacity_sectors() {
                return;
            }
            self.waiting_for_room.pop_front();
            self.reserved_sectors += sectors;
            self.cross_interface(at, slot);
        }
    }

    pub(super) fn cross_interface(&mut self, at: Instant, slot: Slot) {
        self.interface_free_at = self.interface_free_at.max(at) + self.interface_ns(slot);
        self.interface.push_back((self.interface_free_at, slot));
    }

    pub(super) fn finish_interface_transfer(&mut self, at: Instant) {
        let Some((_, slot)) = self.interface.pop_front() else { return };
        let command = *self.commands.get(slot);
        if command.request.operation == Operation::Write {
            let (start, end) = command.sectors();
            self.reserved_sectors -= end - start;
            if start < end {
                self.cache.insert(start, end, command.request.id, command.sequence);
            }
            self.commands.mark_placed(slot);
        }
        self.commands.finish(at, slot);
    }

    /// When the arm will write back because it has nothing else to do.
    pub(super) fn idle_destage_at(&self) -> Option<Instant> {
        let is_possible = self.queue.is_empty() && !self.cache.is_clean();
        is_possible.then(|| self.host_idle_since + self.parameters.destage_idle_ns)
    }

    /// Whether writing back may compete for the arm now.
    pub(super) fn destage_is_due(&self, at: Instant) -> bool {
        let watermark = self.capacity_sectors() * self.parameters.destage_watermark_percent / 100;
        let is_draining = self.flush_ready && self.commands.working_count() == 0;
        !self.cache.is_clean()
            && (is_draining
                || !self.waiting_for_room.is_empty()
                || self.cache.dirty_sectors() > watermark
                || self.idle_destage_at().is_some_and(|idle_at| idle_at <= at))
    }

    /// The dirty run near the head that it can reach soonest, if that is sooner than `lowest_ns`.
    pub(super) fn best_destage_below(&mut self, mut lowest_ns: u32, phase_ns: u32) -> Option<Choice> {
        let mut runs = std::mem::take(&mut self.runs);
        self.cache.runs_near(self.head_sector, WINDOW_RUNS, LONGEST_RUN_SECTORS, &mut runs);
        let mut best = None;
        for &(start, end) in &runs {
            let target = self.geometry.locate(start);
            if let Some(positioning_ns) =
                self.geometry.positioning_below(lowest_ns, phase_ns, self.head, &target, true)
            {
                lowest_ns = positioning_ns;
                best = Some(Choice::Destage { start, end });
            }
        }
        self.runs = runs;
        best
    }
}
