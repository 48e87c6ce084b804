//! The logical units in the superblocks that garbage collection will empty next.
//!
//! A full reverse map would need as much memory as the map itself (160 MB more for a 160 GB drive with units
//! of 4 KiB). A closed superblock gets no new data, so its content can be found ahead of time. A group of
//! likely victims is chosen, and the map is scanned once for all of them, a little with each program. Units
//! overwritten since the scan are detected at their move, because the map no longer points to the victim.
//! Memory: one list per group member.

use super::geometry::{Superblock, Unit};
use super::map::Map;

/// One superblock of this many is in a group, up to a size that limits the memory of large drives.
const GROUP_SHARE: usize = 16;
const GROUP_SIZE_HIGH: usize = 96;
const NO_LIST: u8 = u8::MAX;
/// Marks a member of a group whose lists are complete.
const READY: u8 = u8::MAX - 1;
/// Stands for a superblock that has left its group.
const LEFT: Superblock = Superblock::MAX;

#[derive(Debug, Default)]
pub(super) struct List {
    pub(super) superblock: Superblock,
    /// Units found by the scan of the map; a superset of the present units.
    pub(super) units: Vec<Unit>,
}

#[derive(Debug)]
pub(super) struct Victims {
    /// Lists that are complete.
    pub(super) ready: Vec<List>,
    /// Lists of the next group, complete up to `scanned`.
    next: Vec<List>,
    /// By superblock: index in `next`, or [`READY`], or [`NO_LIST`].
    list_of: Vec<u8>,
    scanned: usize,
    /// Allocations of unused lists.
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

    pub(super) fn take(&mut self, index: usize) -> List {
        let list = self.ready.swap_remove(index);
        self.list_of[list.superblock as usize] = NO_LIST;
        list
    }

    pub(super) fn is_ready(&self, superblock: Superblock) -> bool {
        self.list_of[superblock as usize] == READY
    }

    /// Removes a superblock that will be erased and reused.
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

    /// Clears all groups, for example because better victims exist outside them.
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

    /// Begins the next group; its lists are empty until the map has been scanned.
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
            // A number beyond the table: not in NAND.
            let superblock = map.superblock_or_beyond(unit) as usize;
            if let Some(&list) = self.list_of.get(superblock)
                && list < READY
            {
                self.next[usize::from(list)].units.push(unit as Unit);
            }
        }
        self.scanned = end;
    }

    /// Completes the scan and makes the next group the ready one.
    pub(super) fn complete(&mut self, map: &Map) {
        self.scan(map, usize::MAX);
        for list in self.next.drain(..).filter(|list| list.superblock != LEFT) {
            self.list_of[list.superblock as usize] = READY;
            self.ready.push(list);
        }
    }
}
