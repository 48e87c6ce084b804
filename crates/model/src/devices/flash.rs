//! A flash drive: a translation layer over dies behind channels and one host link, with a write buffer.
//!
//! A read takes firmware latency, then per NAND page the die (tR) and its channel, then the link. A write
//! takes firmware latency, the link and the buffer. Programs are made of waiting units in order of arrival
//! and go to the dies in turn. A die prefers reads to queued jobs, so a read waits only for the operation in
//! progress, or not even for that if the drive can suspend it. A full buffer or a FLUSH makes the jobs
//! urgent; reads and jobs then alternate. Busy-until times per die and channel follow NVMeVirt (Kim et al.,
//! FAST'23).
//!
//! FLUSH drains the buffer and then writes the map. With power-loss protection, the buffer needs no drain.
//!
//! Write amplification is a result: [`ftl`] maps units to superblocks and collects garbage; [`garbage`] sets
//! the time and the pace of collection. Discard and WriteZeroes unmap whole units, as in drives that read
//! trimmed sectors as zeroes.
//!
//! An SLC write cache ([`slc`]), if the drive has one, takes the host's data first. It is emptied when the
//! drive is idle.
//!
//! # Divergence
//! * A unit that was never written or was trimmed is read as slowly as any other, from a die chosen by its
//!   number. Reads answered from the map alone would flatter every measurement of an empty drive.
//! * Moved data is read on the die that programs it, not on its old die. The load per die is the same, and
//!   one event is enough.
//! * Likewise, the rest of a partly written unit is read by the die that programs the unit.
//! * A unit that is being programmed is read from its die, not from the buffer.
//! * A partly filled program waits [`PARTIAL_PROGRAM_NS`] for more data. No firmware publishes its time.
//! * A program is sent once it has its number of units, also if the last of them has only its first sectors.
//!   Sequential writes below a unit so have one unit fewer to a program, and what was one program's is in two.
//! * The map costs nothing except the commit after a FLUSH: no map cache, no map writes in between.
//! * Data moved out of the SLC cache, and the rest of a partly written unit, is read at the native speed.
//! * An erase in SLC mode wears cells as much as any other erase. The cache's superblocks change over time.
//! * The SLC cache is folded only when the drive is idle or short of space, not beside a light load. The
//!   superblock that is being filled is not folded. Firmware differs in the time of folding and in the part
//!   of the cache kept for later reads; little is published.
//! * No page types (LSB, MSB), no read retries, no static wear levelling, no bad blocks.

mod buffer;
mod dies;
mod events;
mod flush;
mod ftl;
#[cfg(test)]
mod ftl_tests;
mod garbage;
mod geometry;
mod map;
mod parameters;
mod slc;
#[cfg(test)]
mod slc_tests;
#[cfg(test)]
mod tests;
mod victims;

use std::collections::VecDeque;

use crate::device::{Counters, Device, PowerCut};
use crate::devices::{WriteCache, transfer_ns};
use crate::layers::Ageing;
use crate::request::{Completion, Operation, Request, SECTOR_BYTES};
use crate::requests::{Requests, Slot};
use crate::rng::Rng;
use crate::time::{Instant, MILLISECOND};
use buffer::{Batch, Buffer, Piece};
use dies::{Die, Job};
use events::{Event, Events};
use flush::Waiter;
use ftl::Ftl;
use garbage::Collection;
use geometry::Unit;
use map::Location;
pub use parameters::{FlashParameters, SlcParameters, VictimChoice};

/// Time that a partly filled program waits for more data.
const PARTIAL_PROGRAM_NS: u64 = 5 * MILLISECOND;
/// Limit on the jobs waiting at one die.
const JOBS_PER_DIE: usize = 2;

#[derive(Debug)]
pub struct Flash {
    parameters: FlashParameters,
    size_bytes: u64,
    rng: Rng,
    requests: Requests,
    channel_free_at: Vec<Instant>,
    dies: Vec<Die>,
    ftl: Ftl,
    buffer_units: u64,
    /// A write larger than this goes through the buffer in parts, so that programs overlap with the transfer.
    part_units: u32,
    state: State,
}

/// What changes with each request.
#[derive(Debug, Default)]
struct State {
    events: Events,
    firmware_free_at: Instant,
    link_free_at: Instant,
    /// The last time at which a read is done that is finished already: see [`Flash::finish_read`].
    reads_sent_at: Instant,
    /// By slot: pages on their way to the host, or units that a durable write waits for.
    pending: Vec<u32>,
    /// By slot: units of a write that have reached the buffer.
    buffered_units: Vec<u32>,
    collection: Collection,
    /// Moves queued or running.
    moves_running: usize,
    buffer: Buffer,
    /// Units in the buffer or on their way to it.
    used_units: u64,
    waiting_for_room: VecDeque<Slot>,
    /// Units of the first waiting write that have room.
    admitted_units: u32,
    /// Entries numbered below this are programmed even in a partly filled program.
    force_mark: u64,
    partial_timer_runs: bool,
    flush_waiters: Vec<Waiter>,
    /// Flushes and durable writes that wait for programs.
    durable_waiters: u64,
    /// The non-queued FLUSH has been decoded and waits for earlier commands.
    flush_ready: bool,
    /// Reused to save allocations.
    woken: Vec<Slot>,
    /// A result without meaning: see [`Ftl::glance`].
    glance: u32,
}

impl Flash {
    /// The parameters are valid and the size is within the capacity: see [`crate::StackSpec::build`].
    pub(crate) fn new(parameters: FlashParameters, size_bytes: u64, seed: u64) -> Flash {
        let die_count = (parameters.channel_count * parameters.dies_per_channel) as usize;
        let buffer_units = parameters.buffer_bytes / parameters.mapping_unit_bytes;
        let units_per_program = parameters.program_bytes() / parameters.mapping_unit_bytes;
        Flash {
            size_bytes,
            rng: Rng::new(seed),
            requests: Requests::default(),
            channel_free_at: vec![Instant::ZERO; parameters.channel_count as usize],
            dies: (0..die_count).map(|_| Die::default()).collect(),
            buffer_units,
            part_units: (buffer_units / 4).max(units_per_program).min(buffer_units) as u32,
            ftl: Ftl::new(&parameters, size_bytes),
            state: State::default(),
            parameters,
        }
    }

    fn schedule(&mut self, at: Instant, event: Event) {
        self.state.events.schedule(at, event);
    }

    /// Has a fast path, because a driver calls more often than events occur.
    #[inline]
    fn advance(&mut self, now: Instant) {
        if self.state.events.is_due(now) {
            self.handle_events(now, now);
        }
    }

    /// Handles the events until `now`, then those until `limit`, as far as no completion comes first.
    #[inline(never)]
    fn handle_events(&mut self, now: Instant, limit: Instant) {
        while self.state.events.is_due(limit) {
            let is_completion_first =
                self.requests.next_finished_at().is_some_and(|at| !self.state.events.is_due(at.max(now)));
            if is_completion_first {
                return;
            }
            let (at, event) = self.state.events.pop();
            match event {
                Event::Decoded(slot) => self.start_command(at, slot),
                Event::ArrayRead(die) => self.read_out(at, die),
                Event::ReadOut(die) => self.finish_read_out(at, die),
                Event::JobDone(die) => self.end_job(at, die),
                Event::Buffered(slot) => self.finish_buffering(at, slot),
                Event::Done(slot) => self.finish(at, slot),
                Event::PartialDue => self.partial_due(at),
                Event::IdleDue => self.idle_due(at),
            }
            self.begin_drain_if_quiet(at);
        }
    }

    fn enter_firmware(&mut self, now: Instant, slot: Slot) {
        let operation = self.requests.get(slot).request.operation;
        let is_non_queued = operation == Operation::Flush && self.parameters.flush_blocks_queue;
        if self.requests.hold(slot, is_non_queued) {
            return;
        }
        let start = self.state.firmware_free_at.max(now);
        self.state.firmware_free_at = start + self.parameters.command_interval_ns;
        let overhead_ns = match operation {
            Operation::Read => self.parameters.read_overhead_ns,
            _ => self.parameters.write_overhead_ns,
        };
        self.schedule(start + overhead_ns, Event::Decoded(slot));
    }

    fn start_command(&mut self, at: Instant, slot: Slot) {
        match self.requests.get(slot).request.operation {
            Operation::Read => self.start_read(at, slot),
            Operation::Write => {
                self.state.waiting_for_room.push_back(slot);
                self.admit_to_buffer(at);
                if !self.state.waiting_for_room.is_empty() {
                    self.pump(at);
                }
            }
            Operation::Discard | Operation::WriteZeroes => {
                self.unmap(at, slot);
                self.finish(at, slot);
                self.pump(at);
            }
            Operation::Flush => self.start_flush(at, slot),
        }
    }

    fn finish(&mut self, at: Instant, slot: Slot) {
        if self.requests.flush == Some(slot) {
            let held_count = self.requests.release();
            self.requests.finish(at, slot);
            for _ in 0..held_count {
                if let Some(slot) = self.requests.take_held() {
                    self.enter_firmware(at, slot);
                }
            }
        } else {
            self.requests.finish(at, slot);
        }
        if self.requests.working_count() == 0 {
            self.note_quiet(at);
        }
    }

    /// Logical units that a request touches.
    fn units(&self, slot: Slot) -> std::ops::Range<Unit> {
        let request = self.requests.get(slot).request;
        if request.size_bytes == 0 {
            return 0..0;
        }
        let bits = self.ftl.geometry.unit_bits;
        (request.offset_bytes >> bits) as Unit..((request.end_bytes() - 1) >> bits) as Unit + 1
    }

    fn first_sector(&self, unit: Unit) -> u64 {
        u64::from(unit) * self.ftl.geometry.unit_sectors
    }

    fn cross_link(&mut self, at: Instant, bytes: u64) -> Instant {
        self.state.link_free_at =
            self.state.link_free_at.max(at) + transfer_ns(bytes, self.parameters.link_bytes_per_s);
        self.state.link_free_at
    }

    fn admit_to_buffer(&mut self, at: Instant) {
        while let Some(&slot) = self.state.waiting_for_room.front() {
            let left_units = self.units(slot).len() as u32 - self.state.admitted_units;
            let unit_count = left_units.min(self.part_units);
            if self.state.used_units + u64::from(unit_count) > self.buffer_units {
                return;
            }
            self.state.used_units += u64::from(unit_count);
            self.state.admitted_units += unit_count;
            let size_bytes = self.requests.get(slot).request.size_bytes;
            let bytes = size_bytes.min(u64::from(unit_count) * self.ftl.geometry.unit_bytes);
            let buffered_at = self.cross_link(at, bytes);
            self.schedule(buffered_at, Event::Buffered(slot));
            if unit_count == left_units {
                self.state.waiting_for_room.pop_front();
                self.state.admitted_units = 0;
            }
        }
    }

    /// Handles the arrival of the next part of a write in the buffer.
    fn finish_buffering(&mut self, at: Instant, slot: Slot) {
        let command = *self.requests.get(slot);
        let must_be_durable = match self.parameters.write_cache {
            WriteCache::Off => true,
            WriteCache::Volatile => command.request.force_unit_access,
            WriteCache::Protected => false,
        };
        let (start, end) = command.sectors();
        let units = self.units(slot);
        let from = units.start + self.state.buffered_units[slot];
        let to = (from + self.part_units).min(units.end);
        if must_be_durable && from == units.start && !units.is_empty() {
            self.state.pending[slot] = units.len() as u32;
            self.state.durable_waiters += 1;
        }
        for unit in from..to {
            let first = self.first_sector(unit);
            let piece = Piece {
                id: command.request.id,
                sequence: command.sequence,
                start: start.max(first),
                end: end.min(first + self.ftl.geometry.unit_sectors),
                waiter: must_be_durable.then_some(slot),
            };
            self.buffer_unit(at, unit, piece);
        }
        self.state.buffered_units[slot] = to - units.start;
        if must_be_durable && from < to {
            self.state.force_mark = self.state.buffer.next_number;
        }
        if to == units.end {
            self.state.buffered_units[slot] = 0;
            self.requests.mark_placed(slot);
            if !must_be_durable || units.is_empty() {
                self.finish(at, slot);
            }
        }
        self.admit_to_buffer(at);
        self.pump(at);
    }

    fn buffer_unit(&mut self, at: Instant, unit: Unit, piece: Piece) {
        let first = self.first_sector(unit);
        match self.ftl.locate(unit) {
            Location::Buffered(index) => {
                // The waiting entry takes this data along.
                self.state.used_units -= 1;
                self.state.buffer.join(index, first, piece);
            }
            location => {
                let is_rewrite = location != Location::Unmapped;
                let index = self.state.buffer.insert(at, unit, first, piece, is_rewrite);
                self.ftl.leave_nand(unit, Location::Buffered(index));
            }
        }
    }

    fn start_partial_timer(&mut self, at: Instant) {
        let is_part_filled = self.state.buffer.waiting_count() < self.ftl.geometry.units_per_program as usize;
        if is_part_filled
            && !self.state.partial_timer_runs
            && let Some(oldest) = self.state.buffer.oldest_waiting()
            && oldest.number >= self.state.force_mark
        {
            self.state.partial_timer_runs = true;
            self.schedule(at.max(oldest.buffered_at + PARTIAL_PROGRAM_NS), Event::PartialDue);
        }
    }

    fn partial_due(&mut self, at: Instant) {
        self.state.partial_timer_runs = false;
        if self
            .state
            .buffer
            .oldest_waiting()
            .is_some_and(|oldest| oldest.buffered_at + PARTIAL_PROGRAM_NS <= at)
        {
            self.state.force_mark = self.state.buffer.next_number;
        }
        self.pump(at);
    }

    /// Issues work to the dies as far as they have room.
    fn pump(&mut self, at: Instant) {
        loop {
            let collected = self.collect(at);
            let issued = self.issue_program(at);
            if !collected && !issued {
                break;
            }
        }
        self.start_partial_timer(at);
    }

    /// Sends the next program of the host's data to its die. Returns false if there is none, or if it must
    /// wait.
    fn issue_program(&mut self, at: Instant) -> bool {
        let Some(oldest) = self.state.buffer.oldest_waiting() else { return false };
        let (waiting, full) =
            (self.state.buffer.waiting_count(), self.ftl.geometry.units_per_program as usize);
        // Avoids a deadlock: writes that wait for room and a program that waits for writes.
        let is_starved = !self.state.waiting_for_room.is_empty() && self.state.used_units == waiting as u64;
        if waiting < full && oldest.number >= self.state.force_mark && !is_starved {
            return false;
        }
        if self.is_in_debt() || !self.ftl.has_room() {
            return false;
        }
        let die = self.ftl.open_host_program();
        if self.dies[die].jobs.len() >= JOBS_PER_DIE {
            return false;
        }
        let mut batch = self.state.buffer.issue(full, self.ftl.geometry.unit_sectors);
        batch.is_slc = self.ftl.slc.is_open;
        let mut next = Some(batch.first);
        while let Some(index) = next {
            self.ftl.place_host(self.state.buffer.entry(index).unit);
            next = self.state.buffer.next_in_batch(index);
        }
        self.ftl.pad_host_program();
        self.charge(self.ftl.geometry.units_per_program);
        self.queue_job(at, die, Job::Program(batch));
        true
    }

    fn finish_batch(&mut self, at: Instant, batch: Batch) {
        let mut next = Some(batch.first);
        while let Some(index) = next {
            next = self.state.buffer.next_in_batch(index);
            self.release(at, index);
        }
        self.admit_to_buffer(at);
    }

    /// Releases an entry that is durable or fully discarded.
    fn release(&mut self, at: Instant, index: u32) {
        let number = self.state.buffer.entry(index).number;
        self.state.buffer.release(index, |slot| self.state.woken.push(slot));
        self.state.used_units -= 1;
        self.wake(at);
        if !self.state.flush_waiters.is_empty() {
            for waiter in self.state.flush_waiters.iter_mut().filter(|waiter| number < waiter.mark) {
                waiter.left -= 1;
            }
            self.release_drained(at);
        }
    }

    /// Counts one unit less for each woken write.
    fn wake(&mut self, at: Instant) {
        for index in 0..self.state.woken.len() {
            let slot = self.state.woken[index];
            self.state.pending[slot] -= 1;
            if self.state.pending[slot] == 0 {
                self.state.durable_waiters -= 1;
                self.schedule(at, Event::Done(slot));
            }
        }
        self.state.woken.clear();
    }

    /// Discard and WriteZeroes: unmaps whole units and drops older data in the buffer.
    fn unmap(&mut self, at: Instant, slot: Slot) {
        let command = *self.requests.get(slot);
        let (start, end) = command.sectors();
        for unit in self.units(slot) {
            let first = self.first_sector(unit);
            let last = (first + self.ftl.geometry.unit_sectors).min(self.size_bytes / SECTOR_BYTES);
            match self.ftl.locate(unit) {
                Location::Buffered(index) => {
                    let wake = |slot| self.state.woken.push(slot);
                    let is_empty =
                        self.state.buffer.discard(index, (start, end), first, command.sequence, wake);
                    self.wake(at);
                    if is_empty {
                        self.state.buffer.withdraw(index);
                        self.ftl.leave_nand(unit, Location::Unmapped);
                        self.release(at, index);
                    }
                }
                Location::Nand(_) if start <= first && last <= end => {
                    self.ftl.leave_nand(unit, Location::Unmapped);
                }
                Location::Nand(_) | Location::Unmapped => {}
            }
        }
        self.admit_to_buffer(at);
    }

    /// Stops all work. Units that the map has in the buffer are moved to NAND in zero time.
    fn stop_work(&mut self, now: Instant) {
        self.state.events.clear();
        self.forget_die_work();
        self.forget_collection();
        while self.state.buffer.waiting_count() > 0 {
            let batch = self.state.buffer.issue(1, self.ftl.geometry.unit_sectors);
            self.ftl.write_at_once(self.state.buffer.entry(batch.first).unit);
        }
        self.ftl.pad_host_program();
        self.state.buffer.reset();
        self.state.used_units = 0;
        self.state.partial_timer_runs = false;
        self.state.firmware_free_at = now;
        self.state.link_free_at = now;
        self.state.reads_sent_at = now;
        self.channel_free_at.fill(now);
    }
}

impl Device for Flash {
    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// The free times of firmware, dies, channels and link allow a start in the past.
    fn submit_late(&mut self, sent: Instant, now: Instant, request: Request) -> Instant {
        let from = request.begins_at(sent, now);
        self.advance(now);
        let slot = self.requests.accept(from, request, self.size_bytes);
        if self.state.pending.len() <= slot {
            self.state.pending.resize(slot + 1, 0);
            self.state.buffered_units.resize(slot + 1, 0);
        }
        self.note_submit(now);
        self.state.glance ^= self.ftl.glance(request.offset_bytes);
        self.enter_firmware(from, slot);
        self.advance(now);
        from
    }

    fn poll_at(&self) -> Option<Instant> {
        self.requests.next_finished_at().into_iter().chain(self.state.events.next_at()).min()
    }

    fn poll(&mut self, now: Instant) -> Option<Completion> {
        self.advance(now);
        self.requests.collect(now)
    }

    /// As the default, in one loop.
    fn poll_until(&mut self, now: Instant, limit: Instant) -> Option<Completion> {
        self.handle_events(now, limit);
        self.requests.collect(limit)
    }

    fn power_cut(&mut self, now: Instant) -> PowerCut {
        self.advance(now);
        let outstanding = self.requests.outstanding();
        let protected = Buffer::default();
        let is_protected = self.parameters.write_cache == WriteCache::Protected;
        let buffer = if is_protected { &protected } else { &self.state.buffer };
        let writes = buffer.power_cut(&outstanding, &mut self.rng);
        self.stop_work(now);
        self.state.waiting_for_room.clear();
        self.state.admitted_units = 0;
        self.state.buffered_units.fill(0);
        self.state.flush_waiters.clear();
        self.state.durable_waiters = 0;
        self.state.flush_ready = false;
        self.requests.reset();
        PowerCut { writes }
    }

    fn counters(&self) -> Counters {
        let volatile_bytes = match self.parameters.write_cache {
            WriteCache::Volatile => self.state.buffer.sectors * SECTOR_BYTES,
            WriteCache::Off | WriteCache::Protected => 0,
        };
        let ftl = self.ftl.counters;
        let unit_bytes = self.ftl.geometry.unit_bytes;
        Counters {
            volatile_bytes,
            nand_write_bytes: (ftl.host_units + ftl.moved_units + ftl.padded_units) * unit_bytes,
            nand_moved_bytes: ftl.moved_units * unit_bytes,
            erases: ftl.erases,
            most_erases: u64::from(ftl.most_erases),
            ..self.requests.counters
        }
    }

    fn set_use(&mut self, ageing: Option<&Ageing>) {
        assert!(
            self.requests.counters.queue_depth == 0,
            "a drive is aged or erased while nothing is asked of it"
        );
        self.stop_work(self.state.firmware_free_at);
        match ageing {
            Some(ageing) => self.ftl.age(ageing),
            None => self.ftl.secure_erase(),
        }
    }
}
