//! The requests inside a device: a slot per request from submission until its completion is collected, the
//! finished ones in order, and those held back behind a FLUSH.
//!
//! Every model needs this and nothing in it is physics, so it is written once.

use std::collections::VecDeque;

use crate::device::Counters;
use crate::request::{Completion, Operation, Outcome, Request, RequestId, SECTOR_BYTES};
use crate::time::Instant;

/// Index of a request in its device, from submission to collection.
pub(crate) type Slot = usize;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Command {
    pub(crate) request: Request,
    /// Submission number: breaks ties, so that one seed gives one history.
    pub(crate) sequence: u64,
    pub(crate) arrived_at: Instant,
    /// A write that is on the medium, or that the device's volatile cache accounts for.
    pub(crate) placed: bool,
    occupied: bool,
}

impl Command {
    pub(crate) fn sectors(&self) -> (u64, u64) {
        (self.request.offset_bytes / SECTOR_BYTES, self.request.end_bytes() / SECTOR_BYTES)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Commands {
    slots: Vec<Command>,
    free: Vec<Slot>,
    /// Ordered by time, then by submission number.
    finished: VecDeque<(Instant, Slot)>,
    /// Submitted after a non-queued FLUSH that is still running.
    held: VecDeque<Slot>,
    flush: Option<Slot>,
    next_sequence: u64,
    unfinished_count: u64,
    pub(crate) counters: Counters,
}

impl Commands {
    pub(crate) fn accept(&mut self, now: Instant, request: Request, device_size_bytes: u64) -> Slot {
        assert!(
            request.offset_bytes.is_multiple_of(SECTOR_BYTES)
                && request.size_bytes.is_multiple_of(SECTOR_BYTES)
                && request.end_bytes() <= device_size_bytes,
            "{request:?} is unaligned or beyond the device's {device_size_bytes} bytes"
        );
        let command =
            Command { request, sequence: self.next_sequence, arrived_at: now, placed: false, occupied: true };
        self.next_sequence += 1;
        self.unfinished_count += 1;
        self.counters.queue_depth += 1;
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot] = command;
                slot
            }
            None => {
                self.slots.push(command);
                self.slots.len() - 1
            }
        }
    }

    pub(crate) fn get(&self, slot: Slot) -> &Command {
        &self.slots[slot]
    }

    pub(crate) fn mark_placed(&mut self, slot: Slot) {
        self.slots[slot].placed = true;
    }

    /// The device is done with the request; `at` is before an earlier call's only for a request that came late.
    pub(crate) fn finish(&mut self, at: Instant, slot: Slot) {
        let sequence = self.slots[slot].sequence;
        let is_late = |&(last_at, last): &(Instant, Slot)| {
            last_at > at || (last_at == at && self.slots[last].sequence > sequence)
        };
        if self.finished.back().is_some_and(is_late) {
            self.finish_among_equals(at, slot);
        } else {
            self.finished.push_back((at, slot));
        }
        self.unfinished_count -= 1;
        self.count(self.slots[slot].request);
    }

    /// After those of the same time that were submitted before it.
    #[cold]
    fn finish_among_equals(&mut self, at: Instant, slot: Slot) {
        let sequence = self.slots[slot].sequence;
        let mut place = self.finished.len();
        while place > 0 {
            let (earlier_at, earlier_slot) = self.finished[place - 1];
            if (earlier_at, self.slots[earlier_slot].sequence) < (at, sequence) {
                break;
            }
            place -= 1;
        }
        self.finished.insert(place, (at, slot));
    }

    fn count(&mut self, request: Request) {
        match request.operation {
            Operation::Read => {
                self.counters.reads += 1;
                self.counters.read_bytes += request.size_bytes;
            }
            Operation::Write => {
                self.counters.writes += 1;
                self.counters.write_bytes += request.size_bytes;
            }
            Operation::Flush => self.counters.flushes += 1,
            Operation::Discard | Operation::WriteZeroes => self.counters.discards += 1,
        }
    }

    pub(crate) fn next_finished_at(&self) -> Option<Instant> {
        self.finished.front().map(|&(at, _)| at)
    }

    #[inline]
    pub(crate) fn collect(&mut self, now: Instant) -> Option<Completion> {
        let &(at, slot) = self.finished.front()?;
        if at > now {
            return None;
        }
        self.finished.pop_front();
        self.slots[slot].occupied = false;
        self.free.push(slot);
        self.counters.queue_depth -= 1;
        Some(Completion { id: self.slots[slot].request.id, at, outcome: Outcome::Success })
    }

    /// Requests that the device works on: neither finished, nor held back, nor the FLUSH itself.
    pub(crate) fn working_count(&self) -> u64 {
        self.unfinished_count - self.held.len() as u64 - u64::from(self.flush.is_some())
    }

    pub(crate) fn flush(&self) -> Option<Slot> {
        self.flush
    }

    /// Whether the request must wait behind a FLUSH; if so it is remembered. A non-queued FLUSH becomes
    /// the one that others wait for.
    pub(crate) fn hold(&mut self, slot: Slot, non_queued_flush: bool) -> bool {
        if self.flush.is_some() {
            self.held.push_back(slot);
            return true;
        }
        if non_queued_flush {
            self.flush = Some(slot);
        }
        false
    }

    /// The FLUSH is over: the requests that it held back, in order, for [`Commands::hold`] to see again.
    pub(crate) fn release(&mut self) -> VecDeque<Slot> {
        self.flush = None;
        std::mem::take(&mut self.held)
    }

    /// Everything submitted and not collected, by submission number.
    pub(crate) fn outstanding(&self) -> Vec<Command> {
        let mut commands: Vec<Command> =
            self.slots.iter().filter(|command| command.occupied).copied().collect();
        commands.sort_by_key(|command| command.sequence);
        commands
    }

    /// Power-on: nothing is in the device any more; totals stay.
    pub(crate) fn reset(&mut self) {
        let counters = Counters { queue_depth: 0, ..self.counters };
        *self = Commands { counters, next_sequence: self.next_sequence, ..Commands::default() };
    }
}

/// Whether the host has not been told about this request: it may complete no more.
pub(crate) fn is_unacknowledged(outstanding: &[Command], id: RequestId) -> bool {
    outstanding.iter().any(|command| command.request.id == id)
}
