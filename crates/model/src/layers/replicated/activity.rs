//! The activity log: which extents a write may go to without a note of it first.
//!
//! A machine that lost its power cannot know which of its last writes the other one has. It has to know where they
//! were, so that only those places are compared afterwards. A write to an extent that is not active is
//! therefore noted on the local device, and waits for that. One note is written at a time. It takes the places of the
//! extents that were not written for longest; an extent with a write under way keeps its own.

use std::collections::{BTreeMap, BTreeSet};
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
    /// Latest write and number of the active extents without a write under way.
    idle: BTreeSet<(u64, u64)>,
    write_count: u64,
}

impl ActivityLog {
    pub(super) fn new(most: u64, extent_bytes: u64) -> ActivityLog {
        let most = usize::try_from(most).expect("its bound is below");
        ActivityLog { most, extent_bytes, active: BTreeMap::new(), idle: BTreeSet::new(), write_count: 0 }
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
        for (extent, of_extent) in self.active.range_mut(extents) {
            if of_extent.writes == 0 {
                self.idle.remove(&(of_extent.latest, *extent));
            }
            of_extent.writes += 1;
            of_extent.latest = self.write_count;
        }
        true
    }

    pub(super) fn leave(&mut self, request: &Request) {
        let extents = self.extents(request);
        for (extent, of_extent) in self.active.range_mut(extents) {
            of_extent.writes -= 1;
            if of_extent.writes == 0 {
                self.idle.insert((of_extent.latest, *extent));
            }
        }
    }

    /// Makes room for the extents of a write that are not active: whether there is enough. A write of more extents
    /// than may be active has the whole log.
    pub(super) fn make_room(&mut self, request: &Request) -> bool {
        let extents = self.extents(request);
        let (mut own, mut own_idle) = (0, 0);
        for (_, of_extent) in self.active.range(extents.clone()) {
            own += 1;
            own_idle += usize::from(of_extent.writes == 0);
        }
        let wanted = self.active.len() + extents.clone().count() - own;
        let excess = wanted.saturating_sub(self.most);
        let idle = self.idle.len() - own_idle;
        let busy = self.active.len() - own - idle;
        if excess > idle && busy > 0 {
            return false;
        }
        let others = self.idle.iter().filter(|(_, extent)| !extents.contains(extent));
        let oldest: Vec<(u64, u64)> = others.take(excess).copied().collect();
        for (latest, extent) in oldest {
            self.idle.remove(&(latest, extent));
            self.active.remove(&extent);
        }
        true
    }

    /// The extents of a write are active from now on: their note is on the device.
    pub(super) fn note(&mut self, request: &Request) {
        let latest = self.write_count;
        for extent in self.extents(request) {
            self.active.entry(extent).or_insert_with(|| {
                self.idle.insert((latest, extent));
                Use { writes: 0, latest }
            });
        }
    }

    /// No write is under way any more.
    pub(super) fn stop(&mut self) {
        for (extent, of_extent) in &mut self.active {
            of_extent.writes = 0;
            self.idle.insert((of_extent.latest, *extent));
        }
    }
}
