//! The write buffer: mapping units sent by the host and not yet on NAND, each with the writes that its data
//! came from.
//!
//! A unit is found through the map, which points at its entry while the entry waits. When its program is
//! issued, the map points to NAND. The entry stays until the program is done: its data is durable only then.
//! A newer write to a waiting unit joins the entry. A newer write to a unit that is being programmed gets its
//! own entry.

use std::collections::VecDeque;

use super::geometry::Unit;
use crate::device::WriteFate;
use crate::request::RequestId;
use crate::requests::{Slot, Submitted, put};
use crate::rng::Rng;
use crate::time::Instant;
use crate::volatile::{Part, fates};

/// The data of one write in a unit, in sectors of the device.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece {
    pub(super) id: RequestId,
    pub(super) sequence: u64,
    pub(super) start: u64,
    pub(super) end: u64,
    /// The write that completes when this piece is durable.
    pub(super) waiter: Option<Slot>,
}

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) unit: Unit,
    /// Submission order of entries.
    pub(super) number: u64,
    pub(super) buffered_at: Instant,
    /// Bitmap of the unit's sectors that hold data.
    mask: u64,
    /// NAND holds an older version, so a partly filled unit is completed from there first.
    is_rewrite: bool,
    /// The next entry in the same program.
    next: Option<u32>,
    last: Piece,
    /// The pieces before `last`, oldest first.
    older: Vec<Piece>,
    is_live: bool,
}

/// Entries that are programmed together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Batch {
    pub(super) first: u32,
    pub(super) unit_count: u32,
    /// A unit of the batch must be completed from NAND.
    pub(super) reads_first: bool,
    pub(super) is_slc: bool,
}

#[derive(Debug, Default)]
pub(super) struct Buffer {
    entries: Vec<Entry>,
    free: Vec<usize>,
    /// Entries not yet issued, oldest first.
    waiting: VecDeque<u32>,
    /// The lowest number of entries made from now on.
    pub(super) next_number: u64,
    /// Sectors whose data is not durable.
    pub(super) sectors: u64,
}

fn mask_of(unit_first_sector: u64, start: u64, end: u64) -> u64 {
    let count = end - start;
    let ones = if count == 64 { u64::MAX } else { (1 << count) - 1 };
    ones << (start - unit_first_sector)
}

impl Buffer {
    pub(super) fn entry(&self, index: u32) -> &Entry {
        &self.entries[index as usize]
    }

    pub(super) fn waiting_count(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn oldest_waiting(&self) -> Option<&Entry> {
        self.waiting.front().map(|&index| &self.entries[index as usize])
    }

    /// Entries that are not durable yet.
    pub(super) fn undurable_count(&self) -> u64 {
        (self.entries.len() - self.free.len()) as u64
    }

    pub(super) fn insert(
        &mut self,
        at: Instant,
        unit: Unit,
        first: u64,
        piece: Piece,
        is_rewrite: bool,
    ) -> u32 {
        let mask = mask_of(first, piece.start, piece.end);
        let number = self.next_number;
        self.next_number += 1;
        self.sectors += u64::from(mask.count_ones());
        let entry = Entry {
            unit,
            number,
            buffered_at: at,
            mask,
            is_rewrite,
            next: None,
            last: piece,
            older: Vec::new(),
            is_live: true,
        };
        let index = put(&mut self.entries, &mut self.free, entry) as u32;
        self.waiting.push_back(index);
        index
    }

    /// Joins a newer write to a waiting unit.
    pub(super) fn join(&mut self, index: u32, first: u64, piece: Piece) {
        let entry = &mut self.entries[index as usize];
        let added = mask_of(first, piece.start, piece.end) & !entry.mask;
        entry.mask |= added;
        self.sectors += u64::from(added.count_ones());
        entry.older.push(entry.last);
        entry.last = piece;
    }

    /// Whether a waiting unit holds the whole range.
    pub(super) fn covers(&self, index: u32, first: u64, start: u64, end: u64) -> bool {
        let wanted = mask_of(first, start, end);
        self.entries[index as usize].mask & wanted == wanted
    }

    /// Discards pieces of writes older than `before_sequence` in the range. Returns true if the entry is then
    /// empty: the unit is then in no program. Calls `wake` for each write that waited for discarded data.
    pub(super) fn discard(
        &mut self,
        index: u32,
        range: (u64, u64),
        first: u64,
        before_sequence: u64,
        mut wake: impl FnMut(Slot),
    ) -> bool {
        let entry = &mut self.entries[index as usize];
        let mut pieces = std::mem::take(&mut entry.older);
        pieces.push(entry.last);
        entry.last.waiter = None;
        let mut left = Vec::new();
        for mut piece in pieces {
            if piece.sequence >= before_sequence {
                left.push(piece);
                continue;
            }
            // A write is woken once per unit, even if a discard leaves a part of it there.
            let mut waiter = piece.waiter.take();
            for (start, end) in outside((piece.start, piece.end), range) {
                left.push(Piece { start, end, waiter: waiter.take(), ..piece });
            }
            if let Some(slot) = waiter {
                wake(slot);
            }
        }
        let mask = left.iter().fold(0, |mask, piece| mask | mask_of(first, piece.start, piece.end));
        self.sectors -= u64::from((entry.mask & !mask).count_ones());
        entry.mask = mask;
        match left.pop() {
            Some(last) => {
                entry.last = last;
                entry.older = left;
                false
            }
            None => true,
        }
    }

    /// Removes an entry from the queue of waiting entries.
    pub(super) fn withdraw(&mut self, index: u32) {
        self.waiting.retain(|&other| other != index);
    }

    /// Issues up to `count` waiting entries, oldest first, as a chain.
    pub(super) fn issue(&mut self, count: usize, unit_sectors: u64) -> Batch {
        let count = count.min(self.waiting.len());
        let first = self.waiting[0];
        let mut batch = Batch { first, unit_count: count as u32, reads_first: false, is_slc: false };
        let mut previous: Option<u32> = None;
        for _ in 0..count {
            let index = self.waiting.pop_front().expect("counted above");
            let entry = &mut self.entries[index as usize];
            batch.reads_first |= entry.is_rewrite && u64::from(entry.mask.count_ones()) < unit_sectors;
            entry.next = None;
            if let Some(previous) = previous {
                self.entries[previous as usize].next = Some(index);
            }
            previous = Some(index);
        }
        batch
    }

    pub(super) fn next_in_batch(&self, index: u32) -> Option<u32> {
        self.entries[index as usize].next
    }

    /// Releases an entry that is durable or discarded. Calls `wake` for each write that waited for it.
    pub(super) fn release(&mut self, index: u32, mut wake: impl FnMut(Slot)) {
        let entry = &mut self.entries[index as usize];
        assert!(entry.is_live, "an entry is released twice");
        entry.is_live = false;
        self.sectors -= u64::from(entry.mask.count_ones());
        for piece in entry.older.drain(..) {
            if let Some(slot) = piece.waiter {
                wake(slot);
            }
        }
        if let Some(slot) = entry.last.waiter {
            wake(slot);
        }
        self.free.push(index as usize);
    }

    pub(super) fn reset(&mut self) {
        *self = Buffer { next_number: self.next_number, ..Buffer::default() };
    }

    pub(super) fn live_entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| entry.is_live)
    }

    /// Fates after a power cut, by submission number.
    ///
    /// The model's program order is one of many that firmware may choose. Each volatile piece therefore draws
    /// its own fate: any subset of writes, and of the sectors within one, may survive. Data that a newer
    /// write replaced while both were waiting never left the buffer: it is lost.
    pub(super) fn power_cut(&self, outstanding: &[Submitted], rng: &mut Rng) -> Vec<WriteFate> {
        let mut parts: Vec<Part> = Vec::new();
        for entry in self.live_entries() {
            let mut newer: Vec<(u64, u64)> = Vec::new();
            for piece in std::iter::once(&entry.last).chain(entry.older.iter().rev()) {
                split(piece, &newer, &mut parts);
                newer.push((piece.start, piece.end));
            }
        }
        for command in outstanding {
            if let Some(Part { id, sequence, start, end, .. }) = command.unplaced() {
                // A large write may have a part of its data in the buffer.
                let pieces = self.live_entries().flat_map(|entry| entry.older.iter().chain([&entry.last]));
                let buffered: Vec<(u64, u64)> = pieces
                    .filter(|piece| piece.sequence == sequence)
                    .map(|piece| (piece.start, piece.end))
                    .collect();
                let mut rest = Vec::new();
                split(&Piece { id, sequence, start, end, waiter: None }, &buffered, &mut rest);
                parts.extend(rest.into_iter().filter(|part| part.is_drawn));
            }
        }
        parts.sort_by_key(|part| (part.sequence, part.start));
        // Merges the pieces of a write over several units.
        parts.dedup_by(|part, before| {
            let continues = before.sequence == part.sequence
                && before.end == part.start
                && before.is_drawn == part.is_drawn;
            if continues {
                before.end = part.end;
            }
            continues
        });
        fates(parts, outstanding, rng)
    }
}

/// The parts of a range outside another.
fn outside(range: (u64, u64), other: (u64, u64)) -> impl Iterator<Item = (u64, u64)> {
    let before = (range.0, range.1.min(other.0.max(range.0)));
    let after = (range.0.max(other.1.min(range.1)), range.1);
    let whole_is_outside = other.0 >= range.1 || other.1 <= range.0;
    let parts = if whole_is_outside { [range, (0, 0)] } else { [before, after] };
    parts.into_iter().filter(|part| part.0 < part.1)
}

/// Splits a piece into the parts covered by newer pieces and the other parts.
fn split(piece: &Piece, newer: &[(u64, u64)], parts: &mut Vec<Part>) {
    let part = |start, end, is_drawn| {
        let (id, sequence) = (piece.id, piece.sequence);
        Part { id, sequence, start, end, is_drawn }
    };
    let mut start = piece.start;
    while start < piece.end {
        let is_covered = |sector| newer.iter().any(|range| (range.0..range.1).contains(&sector));
        let is_drawn = !is_covered(start);
        let mut end = start + 1;
        while end < piece.end && is_covered(end) != is_drawn {
            end += 1;
        }
        parts.push(part(start, end, is_drawn));
        start = end;
    }
}
