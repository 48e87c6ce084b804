//! A flash drive: a translation layer over dies behind channels behind one host link, with a write buffer.
//!
//! A read is firmware, then per NAND page the die (tR), its channel, and the link. A write is firmware, the
//! link and the buffer; programs are made of waiting units, in order of arrival, and go round the dies. A die
//! gives reads priority over queued jobs, so a read waits only for the operation that the die is already
//! doing (or not even for that, where the drive can suspend it), until a full buffer or a FLUSH makes the
//! jobs urgent: then the two take turns. Busy-until times per die and channel follow NVMeVirt (Kim et al.,
//! FAST'23).
//!
//! FLUSH drains the buffer and then writes the map. With power-loss protection there is nothing to drain.
//!
//! Write amplification is a result: [`ftl`] maps units to superblocks and collects garbage, [`garbage`] says
//! when and how fast. Discard and WriteZeroes unmap whole units, as drives do that read trimmed sectors as
//! zeroes.
//!
//! An SLC write cache ([`slc`]), where the drive has one, takes the host's data first and is emptied when the
//! drive is idle.
//!
//! # Divergence
//! * A unit that was never written or was trimmed reads as slowly as any other, from a die by its number:
//!   what a drive answers from its map alone would flatter every measurement of an empty drive.
//! * What collection moves is read on the die that it is programmed to, not where it lay: the load per die is
//!   the same, and one event does.
//! * The rest of a part-written unit is read by the die that programs the unit, too.
//! * A unit being programmed at that moment is read from its die, not from the buffer.
//! * A program that is not full waits [`PARTIAL_PROGRAM_NS`] for more data. No firmware publishes its time.
//! * The map costs nothing but the commit after a FLUSH: no map cache, no map writes in between.
//! * What is moved out of the SLC cache, and the rest of a unit that is part-written, is read at the native
//!   speed.
//! * Cells wear as much by an erase in SLC mode as by any other; the cache's superblocks are not the same
//!   ones for ever.
//! * The SLC cache is folded only when the drive is idle or short of space, not beside a light load, and the
//!   superblock that is being filled stays as it is. Firmware differs in when it folds and in how much of the
//!   cache it keeps for later reads; little is published.
//! * No page types (LSB, MSB), no read retries, no static wear levelling, no bad blocks.

mod buffer;
mod dies;
mod events;
mod ftl;
#[cfg(test)]
mod ftl_tests;
mod garbage;
mod geometry;
mod map;
mod slc;
#[cfg(test)]
mod slc_tests;
#[cfg(test)]
mod tests;
mod victims;

use std::collections::VecDeque;

use crate::device::{Ageing, Counters, Device, PowerCut};
use crate::profile::{FlashParameters, WriteCache, transfer_ns};
use crate::request::{Completion, Operation, Request, SECTOR_BYTES};
use crate::requests::{Requests, Slot};
use crate::rng::Rng;
use crate::time::{Instant, MILLISECOND};
use buffer::{Batch, Buffer, Piece};
use dies::{Die, Job};
use events::{Event, Events};
use ftl::Ftl;
use garbage::Collection;
use geometry::Unit;
use map::Location;

/// How long a part-filled program waits for more data.
const PARTIAL_PROGRAM_NS: u64 = 5 * MILLISECOND;
/// Jobs that may wait at one die.
const JOBS_PER_DIE: usize = 2;

/// A FLUSH waits until the entries numbered below `mark` are durable; `left` are not.
#[derive(Debug, Clone, Copy)]
struct FlushWaiter {
    slot: Slot,
    mark: u64,
    left: u64,
}

#[derive(Debug)]
pub struct Flash {
    parameters: FlashParameters,
    size_bytes: u64,
    rng: Rng,
    requests: Requests,
    events: Events,
    firmware_free_at: Instant,
    link_free_at: Instant,
    channel_free_at: Vec<Instant>,
    dies: Vec<Die>,
    /// By slot: pages on their way to the host, or units that a durable write waits for.
    pending: Vec<u32>,
    /// By slot: units of a write that are in the buffer already.
    buffered_units: Vec<u32>,
    ftl: Ftl,
    collection: Collection,
    /// Moves queued or running.
    moves_running: usize,
    buffer: Buffer,
    buffer_units: u64,
    /// A write larger than this goes through the buffer in parts, so that programs overlap with the transfer.
    part_units: u32,
    /// Units in the buffer or on their way to it.
    used_units: u64,
    waiting_for_room: VecDeque<Slot>,
    /// Units of the first of them that have found room.
    admitted_units: u32,
    /// Entries numbered below this go out even in a part-filled program.
    force_mark: u64,
    partial_timer_runs: bool,
    flush_waiters: Vec<FlushWaiter>,
    /// Flushes and durable writes that wait for programs.
    durable_waiters: u64,
    /// The non-queued FLUSH has been decoded and waits for earlier commands.
    flush_ready: bool,
    /// Kept to save allocations.
    woken: Vec<Slot>,
    /// Means nothing: see [`Ftl::glance`].
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
            events: Events::default(),
            firmware_free_at: Instant::ZERO,
            link_free_at: Instant::ZERO,
            channel_free_at: vec![Instant::ZERO; parameters.channel_count as usize],
            dies: (0..die_count).map(|_| Die::default()).collect(),
            pending: Vec::new(),
            buffered_units: Vec::new(),
            buffer_units,
            part_units: (buffer_units / 4).max(units_per_program).min(buffer_units) as u32,
            ftl: Ftl::new(&parameters, size_bytes),
            collection: Collection::default(),
            moves_running: 0,
            buffer: Buffer::default(),
            used_units: 0,
            waiting_for_room: VecDeque::new(),
            admitted_units: 0,
            force_mark: 0,
            partial_timer_runs: false,
            flush_waiters: Vec::new(),
            durable_waiters: 0,
            flush_ready: false,
            woken: Vec::new(),
            glance: 0,
            parameters,
        }
    }

    fn schedule(&mut self, at: Instant, event: Event) {
        self.events.schedule(at, event);
    }

    /// A driver asks more often than something happens.
    #[inline]
    fn advance(&mut self, now: Instant) {
        if self.events.is_due(now) {
            self.handle_events(now);
        }
    }

    #[inline(never)]
    fn handle_events(&mut self, now: Instant) {
        while self.events.is_due(now) {
            let (at, event) = self.events.pop();
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
        let start = self.firmware_free_at.max(now);
        self.firmware_free_at = start + self.parameters.command_interval_ns;
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
                self.waiting_for_room.push_back(slot);
                self.admit_to_buffer(at);
                if !self.waiting_for_room.is_empty() {
                    self.pump(at);
                }
            }
            Operation::Discard | Operation::WriteZeroes => {
                self.unmap(at, slot);
                self.finish(at, slot);
                self.pump(at);
            }
            Operation::Flush if self.parameters.flush_blocks_queue => self.flush_ready = true,
            Operation::Flush => self.wait_for_drain(at, slot),
        }
    }

    fn finish(&mut self, at: Instant, slot: Slot) {
        if self.requests.flush() == Some(slot) {
            let held = self.requests.release();
            self.requests.finish(at, slot);
            for slot in held {
                self.enter_firmware(at, slot);
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
        self.link_free_at = self.link_free_at.max(at) + transfer_ns(bytes, self.parameters.link_bytes_per_s);
        self.link_free_at
    }

    fn admit_to_buffer(&mut self, at: Instant) {
        while let Some(&slot) = self.waiting_for_room.front() {
            let left_units = self.units(slot).len() as u32 - self.admitted_units;
            let unit_count = left_units.min(self.part_units);
            if self.used_units + u64::from(unit_count) > self.buffer_units {
                return;
            }
            self.used_units += u64::from(unit_count);
            self.admitted_units += unit_count;
            let size_bytes = self.requests.get(slot).request.size_bytes;
            let bytes = size_bytes.min(u64::from(unit_count) * self.ftl.geometry.unit_bytes);
            let buffered_at = self.cross_link(at, bytes);
            self.schedule(buffered_at, Event::Buffered(slot));
            if unit_count == left_units {
                self.waiting_for_room.pop_front();
                self.admitted_units = 0;
            }
        }
    }

    /// The next part of a write is in the buffer.
    fn finish_buffering(&mut self, at: Instant, slot: Slot) {
        let command = *self.requests.get(slot);
        let must_be_durable = match self.parameters.write_cache {
            WriteCache::Off => true,
            WriteCache::Volatile => command.request.force_unit_access,
            WriteCache::Protected => false,
        };
        let (start, end) = command.sectors();
        let units = self.units(slot);
        let from = units.start + self.buffered_units[slot];
        let to = (from + self.part_units).min(units.end);
        if must_be_durable && from == units.start && !units.is_empty() {
            self.pending[slot] = units.len() as u32;
            self.durable_waiters += 1;
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
        self.buffered_units[slot] = to - units.start;
        if must_be_durable && from < to {
            self.force_mark = self.buffer.next_number();
        }
        if to == units.end {
            self.buffered_units[slot] = 0;
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
                // It waits for a die already and takes this data along.
                self.used_units -= 1;
                self.buffer.join(index, first, piece);
            }
            location => {
                let is_rewrite = location != Location::Unmapped;
                let index = self.buffer.insert(at, unit, first, piece, is_rewrite);
                self.ftl.leave_nand(unit, Location::Buffered(index));
            }
        }
    }

    fn start_partial_timer(&mut self, at: Instant) {
        let is_part_filled = self.buffer.waiting_count() < self.ftl.geometry.units_per_program as usize;
        if is_part_filled
            && !self.partial_timer_runs
            && let Some(oldest) = self.buffer.oldest_waiting()
            && oldest.number >= self.force_mark
        {
            self.partial_timer_runs = true;
            self.schedule(at.max(oldest.buffered_at + PARTIAL_PROGRAM_NS), Event::PartialDue);
        }
    }

    fn partial_due(&mut self, at: Instant) {
        self.partial_timer_runs = false;
        if self.buffer.oldest_waiting().is_some_and(|oldest| oldest.buffered_at + PARTIAL_PROGRAM_NS <= at) {
            self.force_mark = self.buffer.next_number();
        }
        self.pump(at);
    }

    /// Gives the dies what there is to do, as far as they have room for it.
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

    /// Sends the next program of the host's data to its die, if there is one and it may go.
    fn issue_program(&mut self, at: Instant) -> bool {
        let Some(oldest) = self.buffer.oldest_waiting() else { return false };
        let (waiting, full) = (self.buffer.waiting_count(), self.ftl.geometry.units_per_program as usize);
        // Writes that wait for room must not wait for a program that waits for writes.
        let is_starved = !self.waiting_for_room.is_empty() && self.used_units == waiting as u64;
        if waiting < full && oldest.number >= self.force_mark && !is_starved {
            return false;
        }
        if self.is_in_debt() || !self.ftl.has_room() {
            return false;
        }
        let die = self.ftl.open_host_program();
        if self.dies[die].jobs.len() >= JOBS_PER_DIE {
            return false;
        }
        let mut batch = self.buffer.issue(full, self.ftl.geometry.unit_sectors);
        batch.is_slc = self.ftl.host_is_in_slc();
        let mut next = Some(batch.first);
        while let Some(index) = next {
            self.ftl.place_host(self.buffer.entry(index).unit);
            next = self.buffer.next_in_batch(index);
        }
        self.ftl.pad_host_program();
        self.charge(self.ftl.geometry.units_per_program);
        self.queue_job(at, die, Job::Program(batch));
        true
    }

    fn finish_batch(&mut self, at: Instant, batch: Batch) {
        let mut next = Some(batch.first);
        while let Some(index) = next {
            next = self.buffer.next_in_batch(index);
            self.release(at, index);
        }
        self.admit_to_buffer(at);
    }

    /// An entry is durable, or nothing is left of it.
    fn release(&mut self, at: Instant, index: u32) {
        let number = self.buffer.entry(index).number;
        self.buffer.release(index, |slot| self.woken.push(slot));
        self.used_units -= 1;
        self.wake(at);
        if !self.flush_waiters.is_empty() {
            for waiter in self.flush_waiters.iter_mut().filter(|waiter| number < waiter.mark) {
                waiter.left -= 1;
            }
            self.release_drained(at);
        }
    }

    /// Writes have one unit less to wait for.
    fn wake(&mut self, at: Instant) {
        for index in 0..self.woken.len() {
            let slot = self.woken[index];
            self.pending[slot] -= 1;
            if self.pending[slot] == 0 {
                self.durable_waiters -= 1;
                self.schedule(at, Event::Done(slot));
            }
        }
        self.woken.clear();
    }

    /// Discard and WriteZeroes: whole units leave the map, and older data in the buffer is overtaken.
    fn unmap(&mut self, at: Instant, slot: Slot) {
        let command = *self.requests.get(slot);
        let (start, end) = command.sectors();
        for unit in self.units(slot) {
            let first = self.first_sector(unit);
            let last = (first + self.ftl.geometry.unit_sectors).min(self.size_bytes / SECTOR_BYTES);
            match self.ftl.locate(unit) {
                Location::Buffered(index) => {
                    let wake = |slot| self.woken.push(slot);
                    let is_empty = self.buffer.discard(index, (start, end), first, command.sequence, wake);
                    self.wake(at);
                    if is_empty {
                        self.buffer.withdraw(index);
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

    /// The non-queued FLUSH starts when the commands before it are done.
    fn begin_drain_if_quiet(&mut self, at: Instant) {
        if self.flush_ready
            && self.requests.working_count() == 0
            && let Some(slot) = self.requests.flush()
        {
            self.flush_ready = false;
            self.wait_for_drain(at, slot);
        }
    }

    fn wait_for_drain(&mut self, at: Instant, slot: Slot) {
        let is_protected = self.parameters.write_cache == WriteCache::Protected;
        let left = if is_protected { 0 } else { self.buffer.undurable_count() };
        let mark = self.buffer.next_number();
        self.flush_waiters.push(FlushWaiter { slot, mark, left });
        self.durable_waiters += 1;
        if left > 0 {
            self.force_mark = mark;
            self.pump(at);
        }
        self.release_drained(at);
    }

    fn release_drained(&mut self, at: Instant) {
        for index in (0..self.flush_waiters.len()).rev() {
            let FlushWaiter { slot, left, .. } = self.flush_waiters[index];
            if left == 0 {
                self.flush_waiters.remove(index);
                self.durable_waiters -= 1;
                self.schedule(at + self.parameters.flush_commit_ns, Event::Done(slot));
            }
        }
    }

    /// Everything in the drive stops; what the map calls buffered is on NAND afterwards, in no time.
    fn stop_work(&mut self, now: Instant) {
        self.events.clear();
        self.forget_die_work();
        self.forget_collection();
        while self.buffer.waiting_count() > 0 {
            let batch = self.buffer.issue(1, self.ftl.geometry.unit_sectors);
            self.ftl.write_at_once(self.buffer.entry(batch.first).unit);
        }
        self.ftl.pad_host_program();
        self.buffer.reset();
        self.used_units = 0;
        self.partial_timer_runs = false;
        self.firmware_free_at = now;
        self.link_free_at = now;
        self.channel_free_at.fill(now);
    }
}

impl Device for Flash {
    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Firmware, dies, channels and the link know since when they are free.
    fn submit_late(&mut self, sent: Instant, now: Instant, request: Request) -> Instant {
        let from = request.begins_at(sent, now);
        self.advance(now);
        let slot = self.requests.accept(from, request, self.size_bytes);
        if self.pending.len() <= slot {
            self.pending.resize(slot + 1, 0);
            self.buffered_units.resize(slot + 1, 0);
        }
        self.note_submit(now);
        self.glance ^= self.ftl.glance(request.offset_bytes);
        self.enter_firmware(from, slot);
        self.advance(now);
        from
    }

    fn poll_at(&self) -> Option<Instant> {
        self.requests.next_finished_at().into_iter().chain(self.events.next_at()).min()
    }

    fn poll(&mut self, now: Instant) -> Option<Completion> {
        self.advance(now);
        self.requests.collect(now)
    }

    fn power_cut(&mut self, now: Instant) -> PowerCut {
        self.advance(now);
        let outstanding = self.requests.outstanding();
        let protected = Buffer::default();
        let is_protected = self.parameters.write_cache == WriteCache::Protected;
        let buffer = if is_protected { &protected } else { &self.buffer };
        let writes = buffer.power_cut(&outstanding, &mut self.rng);
        self.stop_work(now);
        self.waiting_for_room.clear();
        self.admitted_units = 0;
        self.buffered_units.fill(0);
        self.flush_waiters.clear();
        self.durable_waiters = 0;
        self.flush_ready = false;
        self.requests.reset();
        PowerCut { writes }
    }

    fn counters(&self) -> Counters {
        let volatile_bytes = match self.parameters.write_cache {
            WriteCache::Volatile => self.buffer.sectors * SECTOR_BYTES,
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

    fn age(&mut self, ageing: &Ageing) {
        assert!(self.requests.counters.queue_depth == 0, "a drive is aged while nothing is asked of it");
        self.stop_work(self.firmware_free_at);
        let before = self.ftl.counters;
        let unit_count = u64::from(self.ftl.geometry.unit_count);
        let filled = unit_count * ageing.fill_percent.min(100) / 100;
        for unit in 0..filled as Unit {
            if self.ftl.locate(unit) == Location::Unmapped {
                self.ftl.write_at_once(unit);
            }
        }
        let mut rng = Rng::new(ageing.seed);
        for _ in 0..if filled > 0 { unit_count * ageing.overwrite_percent / 100 } else { 0 } {
            self.ftl.write_at_once(rng.below(filled) as Unit);
        }
        self.ftl.pad_host_program();
        self.ftl.keep_wear_only(before);
    }

    fn secure_erase(&mut self) {
        assert!(self.requests.counters.queue_depth == 0, "a drive is erased while nothing is asked of it");
        self.stop_work(self.firmware_free_at);
        self.ftl.secure_erase();
    }
}
