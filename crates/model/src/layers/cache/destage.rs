//! Destaging: an elevator over the dirty data.

use super::{Cache, Purpose};
use crate::children::sector_request;
use crate::request::{Operation, Outcome, Request, RequestId, SECTOR_BYTES};
use crate::requests::first_hole;
use crate::time::Instant;
use crate::volatile::Taken;

/// Dirty data on its way to the device below.
#[derive(Debug)]
pub(super) struct Destage {
    /// The id at the device below.
    pub(super) id: RequestId,
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) taken: Vec<Taken>,
}

#[derive(Debug, Default)]
pub(super) struct Destages {
    pub(super) list: Vec<Option<Destage>>,
    in_flight_count: u64,
    /// Position of the elevator, in sectors.
    position: u64,
    /// Set after the host has been idle long enough, until its next request.
    pub(super) is_idle_run: bool,
    pub(super) failed_bytes: u64,
}

impl Destages {
    pub(super) fn holds(&self, start: u64, end: u64) -> bool {
        self.list.iter().flatten().any(|destage| destage.start <= start && end <= destage.end)
    }

    fn touches(&self, start: u64, end: u64) -> bool {
        self.list.iter().flatten().any(|destage| destage.start < end && start < destage.end)
    }

    pub(super) fn reset(&mut self) {
        *self = Destages { failed_bytes: self.failed_bytes, ..Destages::default() };
    }
}

impl Cache {
    /// When destaging starts because the host is idle.
    pub(super) fn idle_destage_at(&self) -> Option<Instant> {
        let is_possible = !self.destages.is_idle_run
            && self.base.requests.working_count() == 0
            && !self.state.dirty.is_clean();
        is_possible.then(|| self.state.host_idle_since + self.parameters.destage_idle_ns)
    }

    fn destage_is_due(&self) -> bool {
        let watermark =
            self.parameters.cache_bytes / SECTOR_BYTES * self.parameters.destage_watermark_percent / 100;
        self.destages.is_idle_run
            || !self.is_battery_good
            || !self.state.waiting_for_room.is_empty()
            || self.state.dirty.dirty_sectors > watermark
    }

    pub(super) fn destage(&mut self, at: Instant) {
        while self.destages.in_flight_count < self.parameters.destage_queue_depth
            && !self.state.dirty.is_clean()
            && self.destage_is_due()
            && let Some((start, end)) = self.next_run()
        {
            self.start_destage(at, start, end);
        }
    }

    /// The next dirty run upward, wrapping around at the end. Skips runs whose older data is being destaged.
    fn next_run(&mut self) -> Option<(u64, u64)> {
        let longest = self.parameters.destage_bytes / SECTOR_BYTES;
        let mut position = self.destages.position;
        // Each skipped run is blocked by another destage in flight. Wrapping around takes one more step.
        for _ in 0..self.destages.list.len() + 2 {
            let Some((start, end)) = self.state.dirty.run_from(position, longest) else {
                position = 0;
                continue;
            };
            let end = end.min((start / longest + 1) * longest);
            if !self.destages.touches(start, end) {
                return Some((start, end));
            }
            position = end;
        }
        None
    }

    fn start_destage(&mut self, at: Instant, start: u64, end: u64) {
        let mut taken = Vec::new();
        self.state.dirty.take(start, end, &mut taken);
        let index = first_hole(&mut self.destages.list);
        let write = Request { force_unit_access: true, ..sector_request(Operation::Write, start, end) };
        let id = self.base.below[0].submit(at, write, Purpose::Destage(index));
        self.destages.list[index] = Some(Destage { id, start, end, taken });
        self.destages.in_flight_count += 1;
        self.destages.position = end;
    }

    pub(super) fn finish_destage(&mut self, index: usize, outcome: Outcome) {
        let Some(destage) = self.destages.list[index].take() else { return };
        self.destages.in_flight_count -= 1;
        self.state.dirty.settle(&destage.taken);
        if outcome == Outcome::Failure {
            self.destages.failed_bytes += (destage.end - destage.start) * SECTOR_BYTES;
        }
    }
}
