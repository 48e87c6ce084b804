//! The activity log: which extents a write may go to without a note of it first.
//!
//! A machine that lost its power cannot know which of its last writes the other one has. It has to know where they
//! were, so that only those places are compared afterwards. A write to an extent that is not active is
//! therefore noted on the local device, and waits for that. One note is written at a time. It takes the places of the
//! extents that were not written for longest; an extent with a write under way keeps its own.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use crate::request::Request;

#[derive(Debug, Clone, Copy)]
struct Use {
    /// Writes under way.
    writes: u32,
    /// Number of the latest write.
    latest: u64,
}

#[derive(Debug)]
pub(super) struct ActivityLog {
    most: usize,
    extent_bytes: u64,
    active: BTreeMap<u64, Use>,
    write_count: u64,
}

impl ActivityLog {
    pub(super) fn new(most: u64, extent_bytes: u64) -> ActivityLog {
        let most = usize::try_from(most).expect("its bound is below");
        ActivityLog { most, extent_bytes, active: BTreeMap::new(), write_count: 0 }
    }

    /// A request without bytes is in the extent of its offset.
    fn extents(&self, request: &Request) -> RangeInclusive<u64> {
        let last_byte = request.end_bytes().max(request.offset_bytes + 1) - 1;
        request.offset_bytes / self.extent_bytes..=last_byte / self.extent_bytes
    }

    /// Begins a write if all of its extents are active.
    pub(super) fn enter(&mut self, request: &Request) -> bool {
        let extents = self.extents(request);
        if !extents.clone().all(|extent| self.active.contains_key(&extent)) {
            return false;
        }
        self.write_count += 1;
        for (_, of_extent) in self.active.range_mut(extents) {
            of_extent.writes += 1;
            of_extent.latest = self.write_count;
        }
        true
    }

    pub(super) fn leave(&mut self, request: &Request) {
        let extents = self.extents(request);
        self.active.range_mut(extents).for_each(|(_, of_extent)| of_extent.writes -= 1);
    }

    /// Makes room for the extents of a write that are not active: whether there is enough. A write of more extents
    /// than may be active has the whole log.
    pub(super) fn make_room(&mut self, request: &Request) -> bool {
        let extents = self.extents(request);
        let missing = extents.clone().filter(|extent| !self.active.contains_key(extent)).count();
        let others = self.active.iter().filter(|(extent, _)| !extents.contains(extent));
        let (busy, idle): (Vec<_>, Vec<_>) = others.partition(|(_, of_extent)| of_extent.writes > 0);
        let excess = (self.active.len() + missing).saturating_sub(self.most);
        if excess > idle.len() && !busy.is_empty() {
            return false;
        }
        let mut idle: Vec<(u64, u64)> =
            idle.into_iter().map(|(extent, of_extent)| (of_extent.latest, *extent)).collect();
        idle.sort_unstable();
        for (_, extent) in idle.into_iter().take(excess) {
            self.active.remove(&extent);
        }
        true
    }

    /// The extents of a write are active from now on: their note is on the device.
    pub(super) fn note(&mut self, request: &Request) {
        for extent in self.extents(request) {
            self.active.entry(extent).or_insert(Use { writes: 0, latest: self.write_count });
        }
    }

    /// No write is under way any more.
    pub(super) fn stop(&mut self) {
        self.active.values_mut().for_each(|of_extent| of_extent.writes = 0);
    }
}
