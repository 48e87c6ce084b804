//! A log of synchronous writes on a fast device, in front of a pool on a slow device: the separate log (SLOG)
//! of ZFS.
//!
//! A write completes in memory. A FLUSH (or FUA) writes the data in memory that is not yet durable to the
//! log, sequentially, and flushes the log; then it completes. Groups of writes (transaction groups) go to the
//! pool later: after an interval, when enough data is dirty, or when the log is full. A FLUSH of the pool
//! ends the group and frees its part of the log. Too much dirty data delays writes. The pool therefore sees
//! large sorted writes, and commits take the log device's time.
//!
//! A power cut loses writes that were neither logged nor in a finished group; the log is replayed. Blocks are
//! never overwritten in place (copy on write), so no write is torn.
//!
//! Source: zfs(4) of OpenZFS 2.1. A group lasts 5 s at most (`zfs_txg_timeout`), log blocks are up to 128 KiB
//! (`zil_maxblocksize`) and flushed (`zil_nocacheflush`), writes to a disk are merged up to 1 MiB
//! (`zfs_vdev_aggregation_limit`). The layout of the log's blocks is from memory [assumption]: header and
//! rounding are parameters.
//!
//! # Divergence
//! * Concurrent FLUSHes do not wait to share a log write. With no data to log, they wait for earlier FLUSHes
//!   only.
//! * Sequential writes of a group go to the places that the host named, not to new ones: no allocation, no
//!   fragmentation, no metadata, no amplification.
//! * Without a read cache: only dirty data is read from memory, and only if one group holds all of it.
//! * The write throttle is a hard limit; ZFS delays writes from 60 % on.
//! * A log block in flight when the power fails counts as lost. The replay of the log takes no time.

mod parameters;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

pub use parameters::IntentLogParameters;

use crate::children::{Child, request, sector_request};
use crate::device::{Counters, Device, Fate, WriteFate};
use crate::layered::{Base, Layered};
use crate::layers::LayerParameters;
use crate::parameter::{Invalid, Kind, within};
use crate::request::{Completion, Operation, Request, RequestId, SECTOR_BYTES};
use crate::requests::{Slot, Submitted};
use crate::rng::Rng;
use crate::time::Instant;
use crate::volatile::{Taken, VolatileWrites};

/// Longest writes to the log and to the pool: see the module's documentation.
pub(super) const LOG_WRITE_BYTES: u64 = 128 << 10;
const POOL_WRITE_SECTORS: u64 = 2_048;

/// Indices of the devices below.
const LOG: usize = 0;
const POOL: usize = 1;

/// The purpose of a request to a device below.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Purpose {
    LogWrite {
        batch: u64,
    },
    LogFlush {
        batch: u64,
    },
    /// Passed on to the pool.
    Host(Slot),
    PoolWrite,
    /// Ends the group.
    PoolFlush,
}

/// The data that one FLUSH logs.
#[derive(Debug)]
struct Batch {
    number: u64,
    taken: Vec<Taken>,
    writes_left: usize,
    done_at: Option<Instant>,
    /// Requests that complete with this batch, after all earlier batches.
    waiting: Vec<Slot>,
}

/// A group on its way to the pool.
#[derive(Debug)]
struct Group {
    data: VolatileWrites,
    to_write: VecDeque<(u64, u64)>,
    in_flight: u64,
    is_flushing: bool,
    /// Every write with a lower number is in this group or an older one. Every batch below `end_batch` holds
    /// only such writes.
    end_write: u64,
    end_batch: u64,
    /// Log space used by those batches.
    log_bytes: u64,
    waiting: Vec<Slot>,
}

#[derive(Debug)]
pub struct IntentLog {
    parameters: IntentLogParameters,
    /// Size of the log on the fast device.
    log_bytes: u64,
    base: Base<Purpose>,
    state: State,
}

/// What changes with each request.
#[derive(Debug, Default)]
struct State {
    /// Completed writes that are not in the log, by number. Numbers below `durable_write` are in the pool.
    memory: VolatileWrites,
    next_write: u64,
    durable_write: u64,
    /// The host's ids of the writes, starting at `durable_write`.
    ids: VecDeque<RequestId>,
    /// Data of the open group, as intervals.
    open: VolatileWrites,
    group_at: Option<Instant>,
    group_is_due: bool,
    syncing: Option<Group>,
    /// Writes delayed by too much dirty data.
    waiting_for_room: VecDeque<Slot>,
    /// FLUSHes that found the log full. The open group makes their writes durable.
    waiting_for_group: Vec<Slot>,
    batches: VecDeque<Batch>,
    next_batch: u64,
    log_head_bytes: u64,
    log_used_bytes: u64,
}

impl IntentLog {
    /// # Errors
    /// Parameters rejected by [`IntentLogParameters::validate`], and a log larger than the fast device.
    pub fn new(
        parameters: IntentLogParameters,
        fast: Box<dyn Device>,
        slow: Box<dyn Device>,
    ) -> Result<IntentLog, Invalid> {
        parameters.validate()?;
        let log_bytes = parameters.log_bytes.unwrap_or(fast.size_bytes());
        within("log", log_bytes, 1 << 20, fast.size_bytes(), Kind::Size)?;
        Ok(IntentLog {
            state: State::default(),
            parameters,
            log_bytes,
            base: Base::new(slow.size_bytes(), [fast, slow]),
        })
    }

    fn dirty_bytes(&self) -> u64 {
        let syncing = self.state.syncing.as_ref().map_or(0, |group| group.data.dirty_sectors);
        (self.state.open.dirty_sectors + syncing) * SECTOR_BYTES
    }

    fn admit_writes(&mut self, at: Instant) {
        while let Some(&slot) = self.state.waiting_for_room.front() {
            let host = *self.base.requests.get(slot);
            let dirty_bytes = self.dirty_bytes();
            if dirty_bytes > 0 && dirty_bytes + host.request.size_bytes > self.parameters.dirty_limit_bytes {
                self.state.group_is_due |= self.state.syncing.is_none();
                break;
            }
            self.state.waiting_for_room.pop_front();
            let (start, end) = host.sectors();
            let number = RequestId(self.state.next_write);
            if start < end {
                self.state.memory.insert(start, end, number, self.state.next_write);
                self.state.open.insert(start, end, number, self.state.next_write);
            }
            self.state.ids.push_back(host.request.id);
            self.state.next_write += 1;
            if self.state.group_at.is_none() && !self.state.group_is_due {
                self.state.group_at = Some(at + self.parameters.group_interval_ns);
            }
            self.state.group_is_due |=
                self.state.open.dirty_sectors * SECTOR_BYTES >= self.parameters.group_bytes;
            if host.request.force_unit_access {
                self.commit(at, slot);
            } else {
                self.base.requests.finish(at + self.parameters.memory_ns, slot);
            }
        }
        self.start_group_if_due(at);
    }

    /// Completes the request when all data now in memory is durable.
    fn commit(&mut self, at: Instant, slot: Slot) {
        if self.state.memory.is_clean() {
            match self.state.batches.back_mut() {
                Some(last) => last.waiting.push(slot),
                None => self.base.requests.finish(at + self.parameters.memory_ns, slot),
            }
            return;
        }
        let (run_count, sectors) = (self.state.memory.runs().len() as u64, self.state.memory.dirty_sectors);
        let payload_bytes = sectors * SECTOR_BYTES + run_count * self.parameters.record_header_bytes;
        let log_bytes = payload_bytes.next_multiple_of(self.parameters.log_block_bytes);
        if self.state.log_used_bytes + log_bytes > self.log_bytes {
            self.state.waiting_for_group.push(slot);
            self.state.group_is_due = true;
            self.start_group_if_due(at);
            return;
        }
        let mut taken = Vec::new();
        self.state.memory.take(0, self.base.size_bytes / SECTOR_BYTES, &mut taken);
        self.state.log_used_bytes += log_bytes;
        let number = self.state.next_batch;
        self.state.next_batch += 1;
        let writes_left = self.write_log(at, number, log_bytes);
        let waiting = vec![slot];
        self.state.batches.push_back(Batch { number, taken, writes_left, done_at: None, waiting });
    }

    /// Issues sequential writes to the log, wrapping at its end. Returns their number.
    fn write_log(&mut self, at: Instant, batch: u64, mut bytes: u64) -> usize {
        let mut count = 0;
        while bytes > 0 {
            let size_bytes = bytes.min(LOG_WRITE_BYTES).min(self.log_bytes - self.state.log_head_bytes);
            let write = request(Operation::Write, self.state.log_head_bytes, size_bytes);
            self.base.below[LOG].submit_late(at, write, Purpose::LogWrite { batch });
            self.state.log_head_bytes = (self.state.log_head_bytes + size_bytes) % self.log_bytes;
            bytes -= size_bytes;
            count += 1;
        }
        count
    }

    fn finish_log_write(&mut self, at: Instant, number: u64) {
        let Some(batch) = self.state.batches.iter_mut().find(|batch| batch.number == number) else { return };
        batch.writes_left -= 1;
        if batch.writes_left == 0 {
            self.base.below[LOG].flush(at, Purpose::LogFlush { batch: number });
        }
    }

    fn finish_batch(&mut self, at: Instant, number: u64) {
        if let Some(batch) = self.state.batches.iter_mut().find(|batch| batch.number == number) {
            batch.done_at = Some(at);
        }
        // Replay stops at the first gap of the log, so a batch counts when all earlier batches are there.
        let mut at = at;
        while let Some(done_at) = self.state.batches.front().and_then(|batch| batch.done_at)
            && let Some(batch) = self.state.batches.pop_front()
        {
            at = at.max(done_at);
            self.state.memory.settle(&batch.taken);
            for slot in batch.waiting {
                self.base.requests.finish(at, slot);
            }
        }
    }

    fn start_group_if_due(&mut self, at: Instant) {
        if !self.state.group_is_due || self.state.syncing.is_some() {
            return;
        }
        self.state.group_is_due = false;
        self.state.group_at = None;
        let data = std::mem::take(&mut self.state.open);
        self.state.syncing = Some(Group {
            to_write: data.runs(),
            data,
            in_flight: 0,
            is_flushing: false,
            end_write: self.state.next_write,
            end_batch: self.state.next_batch,
            log_bytes: self.state.log_used_bytes,
            waiting: std::mem::take(&mut self.state.waiting_for_group),
        });
        self.write_group(at);
    }

    fn write_group(&mut self, at: Instant) {
        let Some(group) = &mut self.state.syncing else { return };
        while group.in_flight < self.parameters.pool_queue_depth
            && let Some((start, run_end)) = group.to_write.pop_front()
        {
            let end = run_end.min(start + POOL_WRITE_SECTORS);
            if end < run_end {
                group.to_write.push_front((end, run_end));
            }
            group.in_flight += 1;
            self.base.below[POOL].submit(
                at,
                sector_request(Operation::Write, start, end),
                Purpose::PoolWrite,
            );
        }
        if group.in_flight == 0 && !group.is_flushing {
            group.is_flushing = true;
            self.base.below[POOL].flush(at, Purpose::PoolFlush);
        }
    }

    fn finish_pool_write(&mut self, at: Instant) {
        if let Some(group) = &mut self.state.syncing {
            group.in_flight -= 1;
        }
        self.write_group(at);
    }

    /// Ends a group that is durable in the pool and frees its part of the log.
    fn finish_group(&mut self, at: Instant) {
        let Some(group) = self.state.syncing.take() else { return };
        self.state.log_used_bytes -= group.log_bytes;
        self.state.memory.forget(0, self.base.size_bytes / SECTOR_BYTES, group.end_write);
        self.state.ids.drain(..(group.end_write - self.state.durable_write) as usize);
        self.state.durable_write = group.end_write;
        for batch in self.state.batches.iter_mut().filter(|batch| batch.number < group.end_batch) {
            self.state.memory.settle(&std::mem::take(&mut batch.taken));
        }
        for slot in group.waiting {
            self.base.requests.finish(at, slot);
        }
        self.admit_writes(at);
        if self.state.open.is_clean() {
            self.state.group_at = None;
        }
        if !self.state.waiting_for_group.is_empty() {
            self.state.group_is_due = true;
        }
        self.start_group_if_due(at);
    }

    fn holds(&self, start: u64, end: u64) -> bool {
        let is_syncing = self.state.syncing.as_ref().is_some_and(|group| group.data.covers(start, end));
        is_syncing || self.state.open.covers(start, end)
    }

    fn pass_on(&mut self, slot: Slot) {
        let Submitted { request, arrived_at, .. } = *self.base.requests.get(slot);
        self.base.pass_on(arrived_at, POOL, slot, request, Purpose::Host(slot));
    }
}

impl Layered for IntentLog {
    type Purpose = Purpose;

    fn base(&self) -> &Base<Purpose> {
        &self.base
    }

    fn base_mut(&mut self) -> &mut Base<Purpose> {
        &mut self.base
    }

    fn stacks_below(&self) -> Vec<&dyn Device> {
        [POOL, LOG].map(|index| self.base.below[index].device()).into()
    }

    fn arrives_at(&self, sent: Instant, now: Instant, request: &Request) -> Instant {
        request.begins_at(sent, now)
    }

    fn begin(&mut self, _now: Instant, slot: Slot) {
        let Submitted { request, arrived_at, .. } = *self.base.requests.get(slot);
        let (start, end) = request.sectors();
        match request.operation {
            Operation::Read if self.holds(start, end) => {
                self.base.requests.finish(arrived_at + self.parameters.memory_ns, slot);
            }
            Operation::Read => self.pass_on(slot),
            Operation::Write => {
                self.state.waiting_for_room.push_back(slot);
                self.admit_writes(arrived_at);
            }
            Operation::Flush => self.commit(arrived_at, slot),
            Operation::Discard | Operation::WriteZeroes => {
                self.state.memory.forget(start, end, u64::MAX);
                self.state.open.forget(start, end, u64::MAX);
                self.pass_on(slot);
            }
        }
    }

    fn complete(&mut self, now: Instant, purpose: Purpose, Completion { at, outcome, .. }: Completion) {
        match purpose {
            Purpose::LogWrite { batch } => self.finish_log_write(at, batch),
            Purpose::LogFlush { batch } => self.finish_batch(at, batch),
            Purpose::Host(slot) => self.base.requests.finish_as(at, slot, outcome),
            Purpose::PoolWrite => self.finish_pool_write(now),
            Purpose::PoolFlush => self.finish_group(now),
        }
    }

    fn own_event_at(&self) -> Option<Instant> {
        self.state.group_at
    }

    fn step(&mut self, at: Instant) {
        self.poll_below(at);
        if self.state.group_at.is_some_and(|due_at| due_at <= at) {
            self.state.group_at = None;
            self.state.group_is_due = true;
        }
        self.start_group_if_due(at);
    }

    fn cut(&mut self, now: Instant) -> Vec<WriteFate> {
        self.base.below.iter_mut().for_each(|device| drop(device.power_cut(now)));
        let taken: Vec<Taken> = self.state.batches.iter().flat_map(|batch| &batch.taken).copied().collect();
        let in_memory = self.state.memory.power_cut(&taken, &[], &mut Rng::new(0)).into_iter();
        let mut writes: Vec<WriteFate> = in_memory
            // The pool may since have received data that a newer write in memory replaced.
            .filter(|write| write.id.0 >= self.state.durable_write)
            .map(|write| {
                let id = self.state.ids[(write.id.0 - self.state.durable_write) as usize];
                WriteFate {
                    id,
                    acknowledged: !self.base.requests.is_outstanding(id),
                    fate: Fate::Lost,
                    ..write
                }
            })
            .collect();
        let held_up = self.state.waiting_for_room.iter();
        writes.extend(held_up.map(|&slot| self.base.requests.get(slot).unacknowledged(Fate::Lost)));
        let State { next_write, next_batch, log_head_bytes, .. } = self.state;
        let state = State { next_write, durable_write: next_write, next_batch, ..State::default() };
        self.state = State { log_head_bytes, ..state };
        writes
    }

    /// Data that a group made durable during its log write counts as volatile until the log write completes.
    fn totals(&self) -> Counters {
        let below = self.base.below.iter().map(Child::counters);
        let volatile_bytes = self.state.memory.volatile_sectors() * SECTOR_BYTES;
        Counters { volatile_bytes, ..self.base.requests.counters.over(below) }
    }
}
