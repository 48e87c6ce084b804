//! A flash drive: dies behind channels behind one host link, with a write buffer.
//!
//! A read is firmware, then per page the die (tR), its channel, and the link. A write is firmware, the link and the buffer; pages are
//! programmed from the buffer in the background, by whichever die is free. A die gives reads priority over queued
//! programs, so a read waits only for the operation that the die is already doing, until a full buffer or a
//! FLUSH makes the programs urgent: then the two take turns. Busy-until times per die and channel follow NVMeVirt (Kim et al., FAST'23).
//!
//! FLUSH drains the buffer and then writes the map. With power-loss protection there is nothing to drain.
//!
//! # Divergence
//! * No flash translation layer yet: write amplification is one constant, paid as extra programs; there is no garbage collection,
//!   no erase, no wear, and discard only forgets what is buffered.
//! * Logical pages are striped statically over the dies for reads, wherever they were programmed; a page that was never
//!   written reads as slowly as any other.
//! * A write of less than a page programs a whole page without reading the rest of it first.
//! * A page being programmed at that moment is read from its die, not from the buffer.
//! * No program suspend, no page types (LSB, MSB), no read retries.

mod dies;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::commands::{Commands, Slot};
use crate::device::{Counters, Device, PowerCut};
use crate::profile::{FlashParameters, WriteCache, transfer_ns};
use crate::request::{Completion, Operation, Request, SECTOR_BYTES};
use crate::rng::Rng;
use crate::time::Instant;
use crate::volatile::VolatileWrites;
use dies::{Die, Program};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The firmware has decoded the command.
    Decoded(Slot),
    /// A page is in its die's register.
    ArrayRead(usize),
    /// A page has left its die.
    ReadOut(usize),
    Programmed(usize),
    /// A write's data is in the buffer.
    Buffered(Slot),
    /// The last byte of a read is with the host, or a FLUSH has written the map.
    Done(Slot),
}

/// A FLUSH or a durable write waits until every program numbered below `mark` is done.
#[derive(Debug, Clone, Copy)]
struct DrainWaiter {
    slot: Slot,
    mark: u64,
}

#[derive(Debug)]
pub struct Flash {
    parameters: FlashParameters,
    size_bytes: u64,
    rng: Rng,
    commands: Commands,
    /// By time, then by the order in which they were scheduled.
    events: BinaryHeap<Reverse<(Instant, u64, Event)>>,
    next_event_number: u64,
    firmware_free_at: Instant,
    link_free_at: Instant,
    channel_free_at: Vec<Instant>,
    dies: Vec<Die>,
    idle_die_count: usize,
    /// Where the search for an idle die starts.
    next_die: usize,
    /// Pages on their way to the host, by slot of the read.
    missing_pages: Vec<u64>,
    programs: VecDeque<Program>,
    next_program_number: u64,
    /// Programs owed to write amplification, in thousandths.
    amplification_debt: u64,
    buffer: VolatileWrites,
    used_pages: u64,
    waiting_for_room: VecDeque<Slot>,
    drain_waiters: Vec<DrainWaiter>,
    /// The non-queued FLUSH has been decoded and waits for earlier commands.
    flush_ready: bool,
    nand_write_bytes: u64,
}

impl Flash {
    /// The parameters are valid and the size is within the capacity: see [`crate::StackSpec::build`].
    pub(crate) fn new(parameters: FlashParameters, size_bytes: u64, seed: u64) -> Flash {
        let die_count = (parameters.channel_count * parameters.dies_per_channel) as usize;
        Flash {
            size_bytes,
            rng: Rng::new(seed),
            commands: Commands::default(),
            events: BinaryHeap::new(),
            next_event_number: 0,
            firmware_free_at: Instant::ZERO,
            link_free_at: Instant::ZERO,
            channel_free_at: vec![Instant::ZERO; parameters.channel_count as usize],
            dies: (0..die_count).map(|_| Die::default()).collect(),
            idle_die_count: die_count,
            next_die: 0,
            missing_pages: Vec::new(),
            programs: VecDeque::new(),
            next_program_number: 0,
            amplification_debt: 0,
            buffer: VolatileWrites::default(),
            used_pages: 0,
            waiting_for_room: VecDeque::new(),
            drain_waiters: Vec::new(),
            flush_ready: false,
            nand_write_bytes: 0,
            parameters,
        }
    }

    fn schedule(&mut self, at: Instant, event: Event) {
        self.events.push(Reverse((at, self.next_event_number, event)));
        self.next_event_number += 1;
    }

    fn next_event_at(&self) -> Option<Instant> {
        self.events.peek().map(|Reverse((at, ..))| *at)
    }

    fn advance(&mut self, now: Instant) {
        while self.next_event_at().is_some_and(|at| at <= now) {
            let Some(Reverse((at, _, event))) = self.events.pop() else { return };
            match event {
                Event::Decoded(slot) => self.start_command(at, slot),
                Event::ArrayRead(die) => self.read_out(at, die),
                Event::ReadOut(die) => self.finish_read_out(at, die),
                Event::Programmed(die) => self.finish_program(at, die),
                Event::Buffered(slot) => self.finish_buffering(at, slot),
                Event::Done(slot) => self.finish(at, slot),
            }
            self.begin_drain_if_quiet(at);
        }
    }

    fn enter_firmware(&mut self, now: Instant, slot: Slot) {
        let operation = self.commands.get(slot).request.operation;
        let is_non_queued = operation == Operation::Flush && self.parameters.flush_blocks_queue;
        if self.commands.hold(slot, is_non_queued) {
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
        let command = *self.commands.get(slot);
        match command.request.operation {
            Operation::Read => self.start_read(at, slot),
            Operation::Write => {
                self.waiting_for_room.push_back(slot);
                self.admit_to_buffer(at);
            }
            Operation::Discard | Operation::WriteZeroes => {
                let (start, end) = command.sectors();
                self.buffer.forget(start, end, command.sequence);
                self.finish(at, slot);
            }
            Operation::Flush if self.parameters.flush_blocks_queue => self.flush_ready = true,
            Operation::Flush => self.wait_for_drain(at, slot),
        }
    }

    fn finish(&mut self, at: Instant, slot: Slot) {
        if self.commands.flush() == Some(slot) {
            let held = self.commands.release();
            self.commands.finish(at, slot);
            for slot in held {
                self.enter_firmware(at, slot);
            }
        } else {
            self.commands.finish(at, slot);
        }
    }

    fn pages(&self, slot: Slot) -> std::ops::Range<u64> {
        let request = self.commands.get(slot).request;
        request.offset_bytes / self.parameters.page_bytes
            ..request.end_bytes().div_ceil(self.parameters.page_bytes)
    }

    fn page_sectors(&self, page: u64) -> (u64, u64) {
        let sectors = self.parameters.page_bytes / SECTOR_BYTES;
        (page * sectors, (page + 1) * sectors)
    }

    fn cross_link(&mut self, at: Instant, bytes: u64) -> Instant {
        self.link_free_at = self.link_free_at.max(at) + transfer_ns(bytes, self.parameters.link_bytes_per_s);
        self.link_free_at
    }

    fn admit_to_buffer(&mut self, at: Instant) {
        let capacity_pages = self.parameters.buffer_bytes / self.parameters.page_bytes;
        while let Some(&slot) = self.waiting_for_room.front() {
            let pages = self.pages(slot);
            let page_count = pages.end - pages.start;
            // A write larger than the buffer has it for itself.
            if self.used_pages > 0 && self.used_pages + page_count > capacity_pages {
                return;
            }
            self.waiting_for_room.pop_front();
            self.used_pages += page_count;
            let buffered_at = self.cross_link(at, self.commands.get(slot).request.size_bytes);
            self.schedule(buffered_at, Event::Buffered(slot));
        }
    }

    fn finish_buffering(&mut self, at: Instant, slot: Slot) {
        let command = *self.commands.get(slot);
        let (start, end) = command.sectors();
        for page in self.pages(slot) {
            let (first, last) = self.page_sectors(page);
            if self.buffer.touches(first, last) {
                // Its page waits for a die already and takes this data along.
                self.used_pages -= 1;
            } else {
                self.queue_program(Some(page));
            }
        }
        if start < end {
            self.buffer.insert(start, end, command.request.id, command.sequence);
        }
        self.commands.mark_placed(slot);
        let must_be_durable = match self.parameters.write_cache {
            WriteCache::Off => true,
            WriteCache::Volatile => command.request.force_unit_access,
            WriteCache::Protected => false,
        };
        if must_be_durable {
            self.wait_for_drain(at, slot);
        } else {
            self.finish(at, slot);
        }
        self.wake_dies(at);
        self.admit_to_buffer(at);
    }

    /// The non-queued FLUSH starts when the commands before it are done.
    fn begin_drain_if_quiet(&mut self, at: Instant) {
        if self.flush_ready
            && self.commands.working_count() == 0
            && let Some(slot) = self.commands.flush()
        {
            self.flush_ready = false;
            self.wait_for_drain(at, slot);
        }
    }

    fn wait_for_drain(&mut self, at: Instant, slot: Slot) {
        self.drain_waiters.push(DrainWaiter { slot, mark: self.next_program_number });
        self.release_drained(at);
    }

    fn release_drained(&mut self, at: Instant) {
        if self.drain_waiters.is_empty() {
            return;
        }
        let is_protected = self.parameters.write_cache == WriteCache::Protected;
        let drained = if is_protected { u64::MAX } else { self.oldest_program_number() };
        for index in (0..self.drain_waiters.len()).rev() {
            let DrainWaiter { slot, mark } = self.drain_waiters[index];
            if mark <= drained {
                self.drain_waiters.remove(index);
                let is_flush = self.commands.get(slot).request.operation == Operation::Flush;
                let commit_ns = if is_flush { self.parameters.flush_commit_ns } else { 0 };
                self.schedule(at + commit_ns, Event::Done(slot));
            }
        }
    }
}

impl Device for Flash {
    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn submit(&mut self, now: Instant, request: Request) {
        self.advance(now);
        let slot = self.commands.accept(now, request, self.size_bytes);
        if self.missing_pages.len() <= slot {
            self.missing_pages.resize(slot + 1, 0);
        }
        self.enter_firmware(now, slot);
        self.advance(now);
    }

    fn poll_at(&self) -> Option<Instant> {
        self.commands.next_finished_at().into_iter().chain(self.next_event_at()).min()
    }

    fn poll(&mut self, now: Instant) -> Option<Completion> {
        self.advance(now);
        self.commands.collect(now)
    }

    fn power_cut(&mut self, now: Instant) -> PowerCut {
        self.advance(now);
        let outstanding = self.commands.outstanding();
        let mut taken = self.forget_die_work();
        if self.parameters.write_cache == WriteCache::Protected {
            taken.clear();
            self.buffer.reset();
        }
        let writes = self.buffer.power_cut(&taken, &outstanding, &mut self.rng);
        self.events.clear();
        self.programs.clear();
        self.waiting_for_room.clear();
        self.drain_waiters.clear();
        self.used_pages = 0;
        self.flush_ready = false;
        self.firmware_free_at = now;
        self.link_free_at = now;
        self.channel_free_at.fill(now);
        self.buffer.reset();
        self.commands.reset();
        PowerCut { writes }
    }

    fn counters(&self) -> Counters {
        let volatile_bytes = match self.parameters.write_cache {
            WriteCache::Volatile => self.buffer.volatile_sectors() * SECTOR_BYTES,
            WriteCache::Off | WriteCache::Protected => 0,
        };
        Counters { volatile_bytes, nand_write_bytes: self.nand_write_bytes, ..self.commands.counters }
    }
}
