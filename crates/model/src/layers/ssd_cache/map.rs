//! The blocks of the slow device on the fast one: a map with the clean blocks in LRU order.
//!
//! Validity is tracked per sector, so that a write of less than a block needs no read of the rest.

use std::collections::{BTreeMap, BTreeSet};

pub(crate) type SlotIndex = usize;

/// Sectors of one block, as bits.
pub(crate) type Sectors = u128;

pub(super) const MOST_SECTORS: u64 = Sectors::BITS as u64;

const NOWHERE: SlotIndex = SlotIndex::MAX;

/// A place for one block on the fast device; its index is its position there.
#[derive(Debug, Clone, Default)]
pub(super) struct Slot {
    pub(super) block: u64,
    pub(super) valid: Sectors,
    pub(super) dirty: Sectors,
    /// Number of the drain in progress, and the sectors that it makes clean.
    pub(super) draining: Option<(u64, Sectors)>,
    /// Incremented when a fill in flight becomes void.
    pub(super) generation: u64,
    in_use: bool,
    newer: SlotIndex,
    older: SlotIndex,
}

#[derive(Debug)]
pub(super) struct Map {
    slots: Vec<Slot>,
    free: Vec<SlotIndex>,
    pub(super) capacity: usize,
    by_block: BTreeMap<u64, SlotIndex>,
    pub(super) dirty_count: usize,
    /// Dirty blocks that no drain is processing, in the order of the slow device.
    drainable: BTreeSet<u64>,
    newest: SlotIndex,
    oldest: SlotIndex,
}

impl Map {
    pub(super) fn new(capacity: usize) -> Map {
        Map {
            slots: Vec::new(),
            free: Vec::new(),
            capacity,
            by_block: BTreeMap::new(),
            dirty_count: 0,
            drainable: BTreeSet::new(),
            newest: NOWHERE,
            oldest: NOWHERE,
        }
    }

    pub(super) fn get(&self, index: SlotIndex) -> &Slot {
        &self.slots[index]
    }

    pub(super) fn find(&self, block: u64) -> Option<SlotIndex> {
        self.by_block.get(&block).copied()
    }

    pub(super) fn drainable_count(&self) -> usize {
        self.drainable.len()
    }

    /// Marks the block as most recently used.
    pub(super) fn touch(&mut self, index: SlotIndex) {
        if self.slots[index].dirty == 0 {
            self.unlink(index);
            self.link_newest(index);
        }
    }

    /// The place of the block. A new place evicts the least recently used clean block if necessary. `None` if
    /// all blocks are dirty.
    pub(super) fn find_or_allocate(&mut self, block: u64) -> Option<SlotIndex> {
        if let Some(index) = self.find(block) {
            return Some(index);
        }
        let index = match self.free.pop() {
            Some(index) => index,
            None if self.slots.len() < self.capacity => {
                self.slots.push(Slot::default());
                self.slots.len() - 1
            }
            None if self.oldest != NOWHERE => {
                self.release(self.oldest);
                self.free.pop()?
            }
            None => return None,
        };
        let generation = self.slots[index].generation;
        self.slots[index] = Slot { block, generation, in_use: true, ..Slot::default() };
        self.by_block.insert(block, index);
        self.link_newest(index);
        Some(index)
    }

    fn release(&mut self, index: SlotIndex) {
        self.unlink(index);
        self.by_block.remove(&self.slots[index].block);
        self.slots[index].in_use = false;
        self.slots[index].generation += 1;
        self.free.push(index);
    }

    pub(super) fn set_valid(&mut self, index: SlotIndex, sectors: Sectors) {
        self.slots[index].valid |= sectors;
    }

    pub(super) fn set_dirty(&mut self, index: SlotIndex, sectors: Sectors) {
        if self.slots[index].dirty == 0 {
            self.unlink(index);
            self.dirty_count += 1;
        }
        let slot = &mut self.slots[index];
        slot.valid |= sectors;
        slot.dirty |= sectors;
        if let Some((_, draining)) = &mut slot.draining {
            // A drain in progress has read the old data.
            *draining &= !sectors;
        } else {
            self.drainable.insert(slot.block);
        }
    }

    /// Removes these sectors from the fast device's map.
    pub(super) fn invalidate(&mut self, index: SlotIndex, sectors: Sectors) {
        let slot = &mut self.slots[index];
        slot.generation += 1;
        slot.valid &= !sectors;
        if let Some((_, draining)) = &mut slot.draining {
            *draining &= !sectors;
        }
        if slot.dirty != 0 {
            slot.dirty &= !sectors;
            if slot.dirty == 0 {
                slot.draining = None;
                self.became_clean(index);
            }
        }
        if self.slots[index].valid == 0 && self.slots[index].dirty == 0 {
            self.release(index);
        }
    }

    fn became_clean(&mut self, index: SlotIndex) {
        self.dirty_count -= 1;
        self.drainable.remove(&self.slots[index].block);
        self.link_newest(index);
    }

    /// Assigns the next dirty block to this drain, in the order of the slow device, wrapping at the end.
    pub(super) fn start_drain(&mut self, from_block: u64, number: u64) -> Option<(SlotIndex, Sectors)> {
        let block = *self.drainable.range(from_block..).next().or_else(|| self.drainable.first())?;
        self.drainable.remove(&block);
        let index = self.find(block)?;
        let slot = &mut self.slots[index];
        slot.draining = Some((number, slot.dirty));
        Some((index, slot.dirty))
    }

    /// Ends a drain whose copy is durable on the slow device. Returns the sectors that are clean now.
    pub(super) fn finish_drain(&mut self, index: SlotIndex, number: u64) -> Sectors {
        let slot = &mut self.slots[index];
        let Some((_, drained)) = slot.draining.filter(|&(draining_number, _)| draining_number == number)
        else {
            return 0;
        };
        slot.draining = None;
        slot.dirty &= !drained;
        if slot.dirty == 0 {
            self.became_clean(index);
        } else {
            self.drainable.insert(slot.block);
        }
        drained
    }

    /// Sets the state after power-on: no drains and no fills in flight. Without `keeps_clean`, only dirty
    /// blocks stay in the map.
    pub(super) fn power_on(&mut self, keeps_clean: bool) {
        for index in 0..self.slots.len() {
            let slot = &mut self.slots[index];
            if !slot.in_use {
                continue;
            }
            slot.generation += 1;
            if slot.dirty != 0 {
                slot.draining = None;
                self.drainable.insert(slot.block);
            } else if !keeps_clean || slot.valid == 0 {
                self.release(index);
            }
        }
    }

    fn unlink(&mut self, index: SlotIndex) {
        let (newer, older) = (self.slots[index].newer, self.slots[index].older);
        match newer {
            NOWHERE => self.newest = older,
            _ => self.slots[newer].older = older,
        }
        match older {
            NOWHERE => self.oldest = newer,
            _ => self.slots[older].newer = newer,
        }
    }

    fn link_newest(&mut self, index: SlotIndex) {
        self.slots[index].newer = NOWHERE;
        self.slots[index].older = self.newest;
        match self.newest {
            NOWHERE => self.oldest = index,
            newest => self.slots[newest].newer = index,
        }
        self.newest = index;
    }
}

/// The sectors `start..end` of a block.
pub(super) fn sectors_between(start: u64, end: u64) -> Sectors {
    let below = |sector: u64| if sector == MOST_SECTORS { Sectors::MAX } else { (1 << sector) - 1 };
    below(end) & !below(start)
}

/// The contiguous pieces of a set of sectors, as start and end.
pub(super) fn pieces(mut sectors: Sectors) -> impl Iterator<Item = (u64, u64)> {
    std::iter::from_fn(move || {
        if sectors == 0 {
            return None;
        }
        let start = u64::from(sectors.trailing_zeros());
        let end = start + u64::from((sectors >> start).trailing_ones());
        sectors &= !sectors_between(start, end);
        Some((start, end))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_the_runs_of_a_set() {
        let check = |sectors: Sectors, expect: &[(u64, u64)]| {
            assert_eq!(pieces(sectors).collect::<Vec<_>>(), expect);
        };
        check(0, &[]);
        check(Sectors::MAX, &[(0, 128)]);
        check(
            sectors_between(0, 8) | sectors_between(120, 128) | sectors_between(9, 10),
            &[(0, 8), (9, 10), (120, 128)],
        );
    }

    #[test]
    fn the_block_unused_for_longest_goes_first() {
        let mut map = Map::new(2);
        let first = map.find_or_allocate(10).unwrap();
        map.find_or_allocate(20).unwrap();
        map.touch(first);
        map.find_or_allocate(30).unwrap();
        assert!(map.find(10).is_some() && map.find(20).is_none() && map.find(30).is_some());
    }

    #[test]
    fn dirty_blocks_stay_until_they_are_drained() {
        let mut map = Map::new(2);
        for block in [10, 20] {
            let index = map.find_or_allocate(block).unwrap();
            map.set_dirty(index, 0b11);
        }
        assert_eq!(map.find_or_allocate(30), None);
        let (index, sectors) = map.start_drain(15, 1).unwrap();
        assert_eq!((map.get(index).block, sectors), (20, 0b11));
        // Written again while it is drained.
        map.set_dirty(index, 0b10);
        assert_eq!(map.finish_drain(index, 1), 0b01);
        assert_eq!(map.find_or_allocate(30), None);
        map.start_drain(15, 2);
        assert_eq!(map.finish_drain(index, 2), 0b10);
        assert!(map.find_or_allocate(30).is_some() && map.find(20).is_none());
    }
}
