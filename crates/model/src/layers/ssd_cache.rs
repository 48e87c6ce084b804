//! An SSD cache: a fast device in front of a slow one, as a cache of blocks.
//!
//! The cache holds blocks of the slow device, valid by the sector, and evicts the least recently used clean
//! block.
//! * Reads use the fast device for the sectors that it holds. Data read from the slow device is copied in the
//!   background, if the promotion allows it.
//! * Write-back: writes complete on the fast device. Above a share of dirty blocks, a background writer
//!   copies them at a rate, in the order of the slow device, flushes the slow device, and then marks them
//!   clean. Above a limit, writes go to the slow device. FLUSH goes to both devices.
//! * Write-through: a write goes to both devices and completes when both are done. Write-around: a write goes
//!   to the slow device, and the cached copy is dropped. In both, FLUSH goes to the slow device alone.
//! * A stream longer than the sequential cut-off bypasses the cache, except for dirty blocks. The last 128
//!   streams are tracked.
//!
//! This follows `bcache` (Linux, Documentation/admin-guide/bcache.rst: cut-off 4 MiB, 128 requests tracked,
//! dirty data written in index order; `drivers/md/bcache/writeback.h`: no more caching of writes above 70 %
//! dirty). ZFS' L2ARC is a write-around cache that fills at 8 MiB/s (zfs(4): `l2arc_write_max`,
//! `l2arc_feed_secs`) and is lost at power-off unless it is rebuilt (`l2arc_rebuild_enabled`). The drain of
//! `bcache` above 10 % dirty is from memory [assumption].
//!
//! # Divergence
//! * The map is durable with the data and takes neither time nor space; `bcache` writes a journal for it.
//! * The drain rate is constant (`bcache` adjusts it with a controller), and below the share no dirty data is
//!   drained.
//! * L2ARC is fed with data about to leave the memory cache. Here, it is fed with data read, as far as the
//!   rate allows at that time.
//! * After a power cut, the clean part of a kept map counts as valid, even if it had not been flushed. The
//!   next drain also copies data lost on its way in. Only times depend on it.
//! * No read-ahead, no bypass when the fast device is congested.
//! * A failed read or write of a drain or a promotion counts as done.

mod drain;
mod map;
mod parameters;
mod records;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::VecDeque;

pub(crate) use parameters::SLOW_AND_FAST;
pub use parameters::{Promotion, SsdCacheParameters, WritePolicy};

use crate::children::sector_request;
use crate::device::{Device, WriteFate};
use crate::layered::{Base, Layered};
use crate::layers::LayerParameters;
use crate::parameter::{Invalid, Kind, within};
use crate::request::{Completion, Operation, Outcome, Request, RequestId, SECTOR_BYTES};
use crate::requests::{Slot, Submitted};
use crate::time::Instant;
use crate::token_bucket::TokenBucket;
use drain::{Drain, Drainer};
use map::{Map, Sectors, SlotIndex, pieces, sectors_between};
use records::{Record, Records};

/// Streams tracked.
const STREAM_COUNT: usize = 128;

/// Indices of the devices below.
const FAST: usize = 0;
const SLOW: usize = 1;

/// The purpose of a request to a device below.
#[derive(Debug)]
pub(crate) enum Purpose {
    /// A part of the host's request, with no more to do.
    Part(Slot),
    WriteFast {
        slot: Slot,
        recorded: bool,
    },
    FlushFast {
        slot: Slot,
        mark: u64,
    },
    /// Copies data that was read to the fast device.
    Fill {
        index: SlotIndex,
        generation: u64,
        sectors: Sectors,
    },
    DrainRead(Drain),
    ReadSlow {
        slot: Slot,
        start: u64,
        end: u64,
        fills: bool,
    },
    WriteSlow(Slot),
    /// Covers the drains written before it.
    FlushSlow {
        slot: Option<Slot>,
        mark: u64,
        covered: Vec<Drain>,
    },
    DrainWrite {
        number: u64,
    },
}

/// A run of requests, each of which begins at the end of the previous one.
#[derive(Debug, Clone, Copy)]
struct Stream {
    end_bytes: u64,
    length_bytes: u64,
}

/// Part of one block: the block and its sectors.
#[derive(Debug, Clone, Copy)]
struct BlockPart {
    block: u64,
    sectors: Sectors,
}

#[derive(Debug)]
pub struct SsdCache {
    parameters: SsdCacheParameters,
    block_sectors: u64,
    base: Base<Purpose>,
    map: Map,
    fast_records: Records,
    slow_records: Records,
    promotion: Option<TokenBucket>,
    streams: VecDeque<Stream>,
    drainer: Drainer,
}

impl SsdCache {
    /// # Errors
    /// Parameters rejected by [`SsdCacheParameters::validate`], and a cache larger than the fast device.
    pub fn new(
        parameters: SsdCacheParameters,
        fast: Box<dyn Device>,
        slow: Box<dyn Device>,
    ) -> Result<SsdCache, Invalid> {
        parameters.validate()?;
        let cache_bytes = parameters.cache_bytes.unwrap_or(fast.size_bytes());
        within("cache", cache_bytes, parameters.block_bytes, fast.size_bytes(), Kind::Size)?;
        let promotion = match parameters.promotion {
            Promotion::AtRate { bytes_per_s } => Some(TokenBucket::new(bytes_per_s, bytes_per_s)),
            Promotion::Never | Promotion::Always => None,
        };
        let capacity = cache_bytes / parameters.block_bytes;
        Ok(SsdCache {
            block_sectors: parameters.block_bytes / SECTOR_BYTES,
            base: Base::new(slow.size_bytes(), [fast, slow]),
            map: Map::new(capacity as usize),
            fast_records: Records::default(),
            slow_records: Records::default(),
            promotion,
            streams: VecDeque::new(),
            drainer: Drainer::new(&parameters),
            parameters,
        })
    }

    /// Bytes that only the fast device holds.
    pub fn dirty_bytes(&self) -> u64 {
        self.map.dirty_count as u64 * self.parameters.block_bytes
    }

    fn block_parts(&self, start: u64, end: u64) -> impl Iterator<Item = BlockPart> + use<> {
        let block_sectors = self.block_sectors;
        (start / block_sectors..end.div_ceil(block_sectors)).map(move |block| {
            let base = block * block_sectors;
            let sectors = sectors_between(start.max(base) - base, end.min(base + block_sectors) - base);
            BlockPart { block, sectors }
        })
    }

    fn fast_sector(&self, index: SlotIndex, sector: u64) -> u64 {
        index as u64 * self.block_sectors + sector
    }

    /// A request for these sectors of the block that the fast device has at this index.
    fn fast_request(&self, operation: Operation, index: SlotIndex, low: u64, high: u64) -> Request {
        sector_request(operation, self.fast_sector(index, low), self.fast_sector(index, high))
    }

    /// Whether the request belongs to a stream that bypasses the cache.
    fn bypasses(&mut self, request: &Request) -> bool {
        if self.parameters.sequential_cutoff_bytes == 0 {
            return false;
        }
        let known = self.streams.iter().rposition(|stream| stream.end_bytes == request.offset_bytes);
        let before_bytes =
            known.and_then(|index| self.streams.remove(index)).map_or(0, |stream| stream.length_bytes);
        if self.streams.len() == STREAM_COUNT {
            self.streams.pop_front();
        }
        let length_bytes = before_bytes + request.size_bytes;
        self.streams.push_back(Stream { end_bytes: request.end_bytes(), length_bytes });
        length_bytes >= self.parameters.sequential_cutoff_bytes
    }

    fn read(&mut self, slot: Slot, start: u64, end: u64, fills: bool) {
        let mut missing: Option<(u64, u64)> = None;
        let mut held: Option<(u64, u64)> = None;
        for BlockPart { block, sectors } in self.block_parts(start, end) {
            let base = block * self.block_sectors;
            let index = self.map.find(block);
            let valid = index.map_or(0, |index| self.map.get(index).valid & sectors);
            if let Some(index) = index {
                self.map.touch(index);
                for (low, high) in pieces(valid) {
                    let (low, high) = (self.fast_sector(index, low), self.fast_sector(index, high));
                    let ended = extend(&mut held, low, high);
                    self.read_fast(slot, ended);
                }
            }
            for (low, high) in pieces(sectors & !valid) {
                let ended = extend(&mut missing, base + low, base + high);
                self.read_slow(slot, ended, fills);
            }
        }
        self.read_fast(slot, held);
        self.read_slow(slot, missing, fills);
    }

    /// Sends a part of a host's request to a device below, with the arrival time of the request.
    fn send(&mut self, index: usize, slot: Slot, part: Request, purpose: Purpose) -> RequestId {
        self.base.requests.expect_parts(slot, 1);
        let arrived_at = self.base.requests.get(slot).arrived_at;
        let (id, lost_ns) = self.base.below[index].submit_late(arrived_at, part, purpose);
        self.base.requests.note_lost(slot, lost_ns);
        id
    }

    fn read_fast(&mut self, slot: Slot, sectors: Option<(u64, u64)>) {
        if let Some((start, end)) = sectors {
            self.send(FAST, slot, sector_request(Operation::Read, start, end), Purpose::Part(slot));
        }
    }

    fn read_slow(&mut self, slot: Slot, sectors: Option<(u64, u64)>, fills: bool) {
        if let Some((start, end)) = sectors {
            let read = sector_request(Operation::Read, start, end);
            self.send(SLOW, slot, read, Purpose::ReadSlow { slot, start, end, fills });
        }
    }

    /// Copies data read from the slow device to the fast one, as far as the promotion allows.
    fn fill(&mut self, start: u64, end: u64) {
        for BlockPart { block, sectors } in self.block_parts(start, end) {
            let size_bytes = u64::from(sectors.count_ones()) * SECTOR_BYTES;
            if let Some(bucket) = &mut self.promotion {
                if bucket.earliest(self.base.now, size_bytes) > self.base.now {
                    return;
                }
                bucket.take(self.base.now, size_bytes);
            }
            let Some(index) = self.map.find_or_allocate(block) else { return };
            let generation = self.map.get(index).generation;
            for (low, high) in pieces(sectors & !self.map.get(index).valid) {
                let write = self.fast_request(Operation::Write, index, low, high);
                let purpose = Purpose::Fill { index, generation, sectors: sectors_between(low, high) };
                self.base.below[FAST].submit(self.base.now, write, purpose);
            }
        }
    }

    fn write(&mut self, slot: Slot, bypasses: bool) {
        let host = *self.base.requests.get(slot);
        let (start, end) = host.sectors();
        let mut to_slow: Option<(u64, u64)> = None;
        if self.parameters.write_policy != WritePolicy::Back {
            to_slow = Some((start, end));
        }
        for part in self.block_parts(start, end) {
            let keeps = match self.parameters.write_policy {
                WritePolicy::Back => self.takes_write(part.block, bypasses),
                WritePolicy::Through => !bypasses,
                WritePolicy::Around => false,
            };
            let index = if keeps { self.map.find_or_allocate(part.block) } else { None };
            match index {
                Some(index) => self.write_fast(slot, index, part),
                None => {
                    self.drop_cached(part);
                    if self.parameters.write_policy == WritePolicy::Back {
                        let base = part.block * self.block_sectors;
                        let (low, high) = (start.max(base), end.min(base + self.block_sectors));
                        let ended = extend(&mut to_slow, low, high);
                        self.write_slow(slot, ended);
                    }
                }
            }
        }
        self.write_slow(slot, to_slow);
    }

    /// Write-back: whether a write to the block stays on the fast device. A dirty block must stay, because
    /// its copy there is the valid one.
    fn takes_write(&self, block: u64, bypasses: bool) -> bool {
        let is_dirty = self.map.find(block).is_some_and(|index| self.map.get(index).dirty != 0);
        let limit = self.map.capacity as u64 * self.parameters.dirty_limit_percent / 100;
        is_dirty || (!bypasses && (self.map.dirty_count as u64) < limit)
    }

    fn write_fast(&mut self, slot: Slot, index: SlotIndex, part: BlockPart) {
        let host = *self.base.requests.get(slot);
        let is_back = self.parameters.write_policy == WritePolicy::Back;
        if is_back {
            self.map.set_dirty(index, part.sectors);
        } else {
            self.map.set_valid(index, part.sectors);
            self.map.touch(index);
        }
        for (low, high) in pieces(part.sectors) {
            let device_start = self.fast_sector(index, low);
            let write = Request {
                force_unit_access: host.request.force_unit_access && is_back,
                ..sector_request(Operation::Write, device_start, self.fast_sector(index, high))
            };
            let id = self.send(FAST, slot, write, Purpose::WriteFast { slot, recorded: is_back });
            if is_back {
                let record = Record {
                    id: host.request.id,
                    sequence: host.sequence,
                    start: part.block * self.block_sectors + low,
                    device_start,
                    alive: Some((part.block, sectors_between(low, high))),
                };
                self.fast_records.insert(id, record);
            }
        }
    }

    fn write_slow(&mut self, slot: Slot, sectors: Option<(u64, u64)>) {
        let Some((start, end)) = sectors else { return };
        let host = *self.base.requests.get(slot);
        let write = Request {
            force_unit_access: host.request.force_unit_access,
            ..sector_request(Operation::Write, start, end)
        };
        let id = self.send(SLOW, slot, write, Purpose::WriteSlow(slot));
        let (sequence, id_of_host) = (host.sequence, host.request.id);
        let record = Record { id: id_of_host, sequence, start, device_start: start, alive: None };
        self.slow_records.insert(id, record);
    }

    fn drop_cached(&mut self, part: BlockPart) {
        if let Some(index) = self.map.find(part.block) {
            self.map.invalidate(index, part.sectors);
            self.fast_records.forget(part.block, part.sectors);
        }
    }

    fn flush(&mut self, slot: Slot) {
        if self.parameters.write_policy == WritePolicy::Back {
            self.base.requests.expect_parts(slot, 1);
            let mark = self.fast_records.mark();
            self.base.below[FAST].flush(self.base.now, Purpose::FlushFast { slot, mark });
        }
        self.base.requests.expect_parts(slot, 1);
        self.flush_slow(Some(slot));
    }
}

/// Extends a run of sectors, or begins the next one. Returns the run that ended.
fn extend(run: &mut Option<(u64, u64)>, low: u64, high: u64) -> Option<(u64, u64)> {
    match run {
        Some((_, end)) if *end == low => {
            *end = high;
            None
        }
        _ => run.replace((low, high)),
    }
}

impl Layered for SsdCache {
    type Purpose = Purpose;

    fn base(&self) -> &Base<Purpose> {
        &self.base
    }

    fn base_mut(&mut self) -> &mut Base<Purpose> {
        &mut self.base
    }

    fn stacks_below(&self) -> Vec<&dyn Device> {
        [SLOW, FAST].map(|index| self.base.below[index].device()).into()
    }

    fn begin(&mut self, _now: Instant, slot: Slot) {
        let Submitted { request, arrived_at, .. } = *self.base.requests.get(slot);
        let (start, end) = request.sectors();
        // Holds the request open until every part is submitted.
        self.base.requests.expect_parts(slot, 1);
        match request.operation {
            Operation::Read => {
                let bypasses = self.bypasses(&request);
                self.read(slot, start, end, !bypasses && self.parameters.promotion != Promotion::Never);
            }
            Operation::Write => {
                let bypasses = self.bypasses(&request);
                self.write(slot, bypasses);
            }
            Operation::Flush => self.flush(slot),
            Operation::Discard | Operation::WriteZeroes => {
                for part in self.block_parts(start, end) {
                    self.drop_cached(part);
                }
                self.send(SLOW, slot, request, Purpose::Part(slot));
            }
        }
        self.base.requests.finish_part(arrived_at, slot, Outcome::Success);
        self.drain();
    }

    fn complete(&mut self, _at: Instant, purpose: Purpose, Completion { id, at, outcome }: Completion) {
        match purpose {
            Purpose::Part(slot) => self.base.requests.finish_part(at, slot, outcome),
            Purpose::WriteFast { slot, recorded } => {
                if recorded {
                    self.fast_records.complete(id);
                }
                self.base.requests.finish_part(at, slot, outcome);
            }
            Purpose::FlushFast { slot, mark } => {
                self.fast_records.settle(mark);
                self.base.requests.finish_part(at, slot, outcome);
            }
            Purpose::Fill { index, generation, sectors } => {
                if self.map.get(index).generation == generation {
                    self.map.set_valid(index, sectors);
                }
            }
            Purpose::DrainRead(drain) => self.write_drained(drain),
            Purpose::ReadSlow { slot, start, end, fills } => {
                self.base.requests.finish_part(at, slot, outcome);
                if fills && outcome == Outcome::Success {
                    self.fill(start, end);
                }
            }
            Purpose::WriteSlow(slot) => {
                self.slow_records.complete(id);
                self.base.requests.finish_part(at, slot, outcome);
            }
            Purpose::FlushSlow { slot, mark, covered } => {
                self.slow_records.settle(mark);
                self.settle_drains(slot.is_none(), covered);
                if let Some(slot) = slot {
                    self.base.requests.finish_part(at, slot, outcome);
                }
            }
            Purpose::DrainWrite { number } => self.finish_drain_write(number),
        }
        self.fast_records.settle_if_many(&self.base.below[FAST]);
        self.slow_records.settle_if_many(&self.base.below[SLOW]);
    }

    fn own_event_at(&self) -> Option<Instant> {
        self.next_drain_at()
    }

    fn step(&mut self, at: Instant) {
        self.base.now = self.base.now.max(at);
        self.poll_below(self.base.now);
        self.drain();
    }

    fn cut(&mut self, now: Instant) -> Vec<WriteFate> {
        let fast = self.base.below[FAST].power_cut(now);
        let slow = self.base.below[SLOW].power_cut(now);
        let in_host_terms = |records: &Records, write| records.in_host_terms(write, self.block_sectors);
        let mut writes: Vec<(u64, WriteFate)> = Vec::new();
        writes.extend(fast.iter().flat_map(|write| in_host_terms(&self.fast_records, write)));
        writes.extend(slow.iter().flat_map(|write| in_host_terms(&self.slow_records, write)));
        writes.sort_by_key(|(sequence, write)| (*sequence, write.offset_bytes));
        self.fast_records.clear();
        self.slow_records.clear();
        self.map.power_on(self.parameters.keeps_clean_blocks);
        self.drainer = Drainer::new(&self.parameters);
        self.streams.clear();
        let acknowledged = |id| !self.base.requests.is_outstanding(id);
        let writes = writes.into_iter().map(|(_, write)| write);
        writes.map(|write| WriteFate { acknowledged: acknowledged(write.id), ..write }).collect()
    }
}
