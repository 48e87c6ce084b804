//! Which logical units lie in the superblocks that garbage collection will empty next.
//!
//! A full reverse map would cost as much memory as the map itself (a 160 GB drive with units of 4 KiB: 160 MB
//! more). But a superblock gets no new data once it is closed, so what lies in it can be found ahead of time:
//! a group of likely victims is chosen, the map is scanned once for all of them, a little with each program,
//! and what was overwritten since is seen when its turn comes, because the map no longer points there.
//! Memory: one list per group member.

use super::geometry::{Superblock, Unit};
use super::map::Map;

/// One superblock in this many is in a group, up to a size that bounds the memory of large drives.
const GROUP_SHARE: usize = 16;
const GROUP_SIZE_HIGH: usize = 96;
const NO_LIST: u8 = u8::MAX;
/// In a group whose lists are complete.
const READY: u8 = u8::MAX - 1;
/// In place of a superblock that has left its group.
const LEFT: Superblock = Superblock::MAX;

#[derive(Debug, Default)]
pub(super) struct List {
    pub(super) superblock: Superblock,
    /// Units that lay there when the map was scanned; a superset of those that do now.
    pub(super) units: Vec<Unit>,
}

#[derive(Debug)]
pub(super) struct Victims {
    /// Lists that are complete.
    ready: Vec<List>,
    /// Lists of the next group, complete up to `scanned`.
    next: Vec<List>,
    /// By superblock: index in `next`, or [`READY`], or [`NO_LIST`].
    list_of: Vec<u8>,
    scanned: usize,
    /// Allocations of lists that are no longer needed.
    spare: Vec<Vec<Unit>>,
}

impl Victims {
    pub(super) fn new(superblock_count: u32) -> Victims {
        let list_of = vec![NO_LIST; superblock_count as usize];
        Victims { ready: Vec::new(), next: Vec::new(), list_of, scanned: 0, spare: Vec::new() }
    }

    pub(super) fn group_size(&self) -> usize {
        (self.list_of.len() / GROUP_SHARE).clamp(1, GROUP_SIZE_HIGH)
    }

    pub(super) fn ready(&self) -> &[List] {
        &self.ready
    }

    pub(super) fn take(&mut self, index: usize) -> List {
        let list = self.ready.swap_remove(index);
        self.list_of[list.superblock as usize] = NO_LIST;
        list
    }

    pub(super) fn is_ready(&self, superblock: Superblock) -> bool {
        self.list_of[superblock as usize] == READY
    }

    /// The superblock is going to be erased, and to hold something else afterwards.
    pub(super) fn leave(&mut self, superblock: Superblock) {
        match std::mem::replace(&mut self.list_of[superblock as usize], NO_LIST) {
            NO_LIST => {}
            READY => self.ready.retain(|list| list.superblock != superblock),
            list => self.next[usize::from(list)].superblock = LEFT,
        }
    }

    pub(super) fn give_back(&mut self, mut units: Vec<Unit>) {
        units.clear();
        self.spare.push(units);
    }

    /// Forgets everything, for example because better victims have appeared outside the groups.
    pub(super) fn clear(&mut self) {
        for list in self.ready.drain(..).chain(self.next.drain(..)) {
            if list.superblock != LEFT {
                self.list_of[list.superblock as usize] = NO_LIST;
            }
            let mut units = list.units;
            units.clear();
            self.spare.push(units);
        }
        self.scanned = 0;
    }

    pub(super) fn is_being_scanned(&self) -> bool {
        !self.next.is_empty()
    }

    /// These are next; their lists are empty until the map has been scanned.
    pub(super) fn begin(&mut self, superblocks: impl Iterator<Item = Superblock>) {
        self.scanned = 0;
        for superblock in superblocks {
            self.list_of[superblock as usize] = self.next.len() as u8;
            let units = self.spare.pop().unwrap_or_default();
            self.next.push(List { superblock, units });
        }
    }

    /// Scans `count` more units of the map.
    pub(super) fn scan(&mut self, map: &Map, count: usize) {
        if self.next.is_empty() {
            return;
        }
        let end = self.scanned.saturating_add(count).min(map.len());
        for unit in self.scanned..end {
            // Beyond the table: not in NAND.
            let superblock = map.superblock_or_beyond(unit) as usize;
            if let Some(&list) = self.list_of.get(superblock)
                && list < READY
            {
                self.next[usize::from(list)].units.push(unit as Unit);
            }
        }
        self.scanned = end;
    }

    /// The next group becomes the ready one.
    pub(super) fn complete(&mut self, map: &Map) {
        self.scan(map, usize::MAX);
        for list in self.next.drain(..).filter(|list| list.superblock != LEFT) {
            self.list_of[list.superblock as usize] = READY;
            self.ready.push(list);
        }
    }
}
