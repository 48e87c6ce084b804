//! The background writer: copies dirty blocks from the fast device to the slow one.
//!
//! A block is read, written, and clean after a FLUSH of the slow device that covers the write. Until then,
//! the copy on the fast device is the valid one. A FLUSH of the host covers drains too. Otherwise, each group
//! of drains has one FLUSH.

use std::collections::BTreeMap;

use super::map::{SlotIndex, pieces};
use super::{FAST, Purpose, SLOW, SsdCache, SsdCacheParameters};
use crate::children::sector_request;
use crate::request::Operation;
use crate::requests::Slot;
use crate::time::Instant;
use crate::token_bucket::TokenBucket;

/// Limit on blocks being drained at once; also the number of blocks per FLUSH.
const GROUP: usize = 64;

/// A block on its way to the slow device.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Drain {
    number: u64,
    index: SlotIndex,
}

#[derive(Debug)]
pub(super) struct Drainer {
    rate: TokenBucket,
    /// Earliest start of the next block by the rate.
    allowed_at: Instant,
    next_number: u64,
    next_block: u64,
    /// Drains being read or written, each with its number of open writes.
    in_work: BTreeMap<u64, (Drain, usize)>,
    /// Drains written, waiting for a FLUSH.
    written: Vec<Drain>,
    is_flushing: bool,
}

impl Drainer {
    pub(super) fn new(parameters: &SsdCacheParameters) -> Drainer {
        Drainer {
            rate: TokenBucket::new(parameters.writeback_bytes_per_s, parameters.block_bytes),
            allowed_at: Instant::ZERO,
            next_number: 0,
            next_block: 0,
            in_work: BTreeMap::new(),
            written: Vec::new(),
            is_flushing: false,
        }
    }
}

impl SsdCache {
    fn wants_drain(&self) -> bool {
        let share = self.map.capacity as u64 * self.parameters.writeback_percent / 100;
        self.map.drainable_count() as u64 > share
    }

    pub(super) fn next_drain_at(&self) -> Option<Instant> {
        let is_possible = self.wants_drain() && self.drainer.in_work.len() < GROUP;
        is_possible.then(|| self.drainer.allowed_at.max(self.base.now))
    }

    /// Starts the drains that are due, and the FLUSH after a group of them.
    pub(super) fn drain(&mut self) {
        while self.next_drain_at().is_some_and(|at| at <= self.base.now) {
            let number = self.drainer.next_number;
            let Some((index, sectors)) = self.map.start_drain(self.drainer.next_block, number) else { break };
            self.drainer.next_number += 1;
            self.drainer.next_block = self.map.get(index).block + 1;
            self.drainer.rate.take(self.base.now, self.parameters.block_bytes);
            self.drainer.allowed_at = self.drainer.rate.earliest(self.base.now, self.parameters.block_bytes);
            let drain = Drain { number, index };
            self.drainer.in_work.insert(number, (drain, 0));
            let (low, high) = (sectors.trailing_zeros(), u128::BITS - sectors.leading_zeros());
            let read = self.fast_request(Operation::Read, index, u64::from(low), u64::from(high));
            self.base.below[FAST].submit(self.base.now, read, Purpose::DrainRead(drain));
        }
        let is_last = self.drainer.in_work.is_empty() && !self.wants_drain();
        let written = self.drainer.written.len();
        if !self.drainer.is_flushing && (written >= GROUP || (is_last && written > 0)) {
            self.drainer.is_flushing = true;
            self.flush_slow(None);
        }
    }

    /// Writes the sectors of the block that are still to be drained to the slow device; the block is in
    /// memory.
    pub(super) fn write_drained(&mut self, drain: Drain) {
        let slot = self.map.get(drain.index);
        let sectors = match slot.draining {
            Some((number, sectors)) if number == drain.number => sectors,
            _ => 0,
        };
        let base = slot.block * self.block_sectors;
        let writes: Vec<(u64, u64)> = pieces(sectors).collect();
        self.drainer.in_work.insert(drain.number, (drain, writes.len()));
        for &(low, high) in &writes {
            let write = sector_request(Operation::Write, base + low, base + high);
            self.base.below[SLOW].submit(self.base.now, write, Purpose::DrainWrite { number: drain.number });
        }
        if writes.is_empty() {
            self.finish_drain_write(drain.number);
        }
    }

    pub(super) fn finish_drain_write(&mut self, number: u64) {
        let Some((drain, writes_left)) = self.drainer.in_work.get_mut(&number) else { return };
        *writes_left = writes_left.saturating_sub(1);
        if *writes_left == 0 {
            let drain = *drain;
            self.drainer.in_work.remove(&number);
            self.drainer.written.push(drain);
        }
    }

    pub(super) fn flush_slow(&mut self, slot: Option<Slot>) {
        let covered = std::mem::take(&mut self.drainer.written);
        let mark = self.slow_records.mark();
        self.base.below[SLOW].flush(self.base.now, Purpose::FlushSlow { slot, mark, covered });
    }

    pub(super) fn settle_drains(&mut self, is_own_flush: bool, covered: Vec<Drain>) {
        if is_own_flush {
            self.drainer.is_flushing = false;
        }
        for drain in covered {
            let block = self.map.get(drain.index).block;
            let clean = self.map.finish_drain(drain.index, drain.number);
            self.fast_records.forget(block, clean);
        }
    }
}
