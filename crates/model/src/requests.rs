//! The requests inside a device or a layer: one slot per request from submission to collection, the finished
//! requests in order, and the requests held back by a FLUSH.
//!
//! Every model needs this bookkeeping, and none of it is physics. It is therefore shared.

use std::collections::VecDeque;

use crate::device::{Counters, Fate, WriteFate};
use crate::request::{Completion, Outcome, Request, RequestId, SECTOR_BYTES};
use crate::time::Instant;

/// Index of a request in its device or layer, from submission to collection.
pub(crate) type Slot = usize;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Submitted {
    pub(crate) request: Request,
    /// Submission number. It breaks ties, so that one seed gives one history.
    pub(crate) sequence: u64,
    /// Arrival time at this device or layer.
    pub(crate) arrived_at: Instant,
    /// Delay of the arrival at a device below that does not support the past.
    lost_ns: u64,
    /// Latest completion time of its finished parts.
    pub(crate) done_at: Instant,
    parts_left: u32,
    /// Set for a write that is on the medium or tracked by the device's volatile cache.
    pub(crate) placed: bool,
    has_failed: bool,
    occupied: bool,
}

impl Submitted {
    pub(crate) fn sectors(&self) -> (u64, u64) {
        self.request.sectors()
    }

    /// Effective arrival time: the value that [`crate::Device::submit_late`] returns.
    pub(crate) fn taken_at(&self) -> Instant {
        self.arrived_at + self.lost_ns
    }

    /// The fate of a whole write that was not acknowledged to the host.
    pub(crate) fn unacknowledged(&self, fate: Fate) -> WriteFate {
        let Request { id, offset_bytes, size_bytes, .. } = self.request;
        WriteFate { fate, ..WriteFate::lost(id, offset_bytes, size_bytes) }
    }
}

/// Puts an item into a list, at a free place if there is one. Returns its index.
pub(crate) fn put<T>(list: &mut Vec<T>, free: &mut Vec<usize>, item: T) -> usize {
    match free.pop() {
        Some(index) => {
            list[index] = item;
            index
        }
        None => {
            list.push(item);
            list.len() - 1
        }
    }
}

/// The index of the first hole in a list, which grows by one if it has none.
pub(crate) fn first_hole<T>(list: &mut Vec<Option<T>>) -> usize {
    list.iter().position(Option::is_none).unwrap_or_else(|| {
        list.push(None);
        list.len() - 1
    })
}

#[derive(Debug, Default)]
pub(crate) struct Requests {
    slots: Vec<Submitted>,
    free: Vec<Slot>,
    /// Ordered by time, then by submission number.
    finished: VecDeque<(Instant, Slot)>,
    /// Requests submitted after a non-queued FLUSH that is still running.
    held: VecDeque<Slot>,
    pub(crate) flush: Option<Slot>,
    /// The submission number of the next request.
    pub(crate) next_sequence: u64,
    unfinished_count: u64,
    pub(crate) counters: Counters,
}

impl Requests {
    pub(crate) fn accept(&mut self, arrived_at: Instant, request: Request, device_size_bytes: u64) -> Slot {
        assert!(
            request.offset_bytes.is_multiple_of(SECTOR_BYTES)
                && request.size_bytes.is_multiple_of(SECTOR_BYTES)
                && request.end_bytes() <= device_size_bytes,
            "{request:?} is unaligned or beyond the device's {device_size_bytes} bytes"
        );
        let submitted = Submitted {
            request,
            sequence: self.next_sequence,
            arrived_at,
            lost_ns: 0,
            done_at: Instant::ZERO,
            parts_left: 0,
            placed: false,
            has_failed: false,
            occupied: true,
        };
        self.next_sequence += 1;
        self.unfinished_count += 1;
        self.counters.queue_depth += 1;
        put(&mut self.slots, &mut self.free, submitted)
    }

    pub(crate) fn get(&self, slot: Slot) -> &Submitted {
        &self.slots[slot]
    }

    pub(crate) fn mark_placed(&mut self, slot: Slot) {
        self.slots[slot].placed = true;
    }

    /// Notes the delay of a part of the request at a device below.
    pub(crate) fn note_lost(&mut self, slot: Slot, lost_ns: u64) {
        let submitted = &mut self.slots[slot];
        submitted.lost_ns = submitted.lost_ns.max(lost_ns);
    }

    /// Adds this many parts that the request waits for.
    pub(crate) fn expect_parts(&mut self, slot: Slot, count: u32) {
        self.slots[slot].parts_left += count;
    }

    /// Finishes one part. The last part finishes the request. One failed part fails the request.
    pub(crate) fn finish_part(&mut self, at: Instant, slot: Slot, outcome: Outcome) {
        let submitted = &mut self.slots[slot];
        submitted.parts_left -= 1;
        submitted.has_failed |= outcome == Outcome::Failure;
        // A late part may finish before a part that finished already.
        submitted.done_at = submitted.done_at.max(at);
        if submitted.parts_left == 0 {
            let done_at = submitted.done_at;
            self.finish(done_at, slot);
        }
    }

    /// Finishes the request at `at`, which may be in the future. For a late request, `at` may be before a
    /// completion that was already collected.
    pub(crate) fn finish(&mut self, at: Instant, slot: Slot) {
        let submitted = &mut self.slots[slot];
        submitted.done_at = at;
        let sequence = submitted.sequence;
        let is_after = |&(last_at, last): &(Instant, Slot)| {
            last_at > at || (last_at == at && self.slots[last].sequence > sequence)
        };
        if self.finished.back().is_some_and(is_after) {
            self.finish_out_of_turn(at, slot);
        } else {
            self.finished.push_back((at, slot));
        }
        self.unfinished_count -= 1;
    }

    /// Inserts the request by time, then by submission number.
    #[cold]
    fn finish_out_of_turn(&mut self, at: Instant, slot: Slot) {
        let key = (at, self.slots[slot].sequence);
        let place = self
            .finished
            .partition_point(|&(earlier_at, earlier)| (earlier_at, self.slots[earlier].sequence) < key);
        self.finished.insert(place, (at, slot));
    }

    /// As [`Requests::finish`], with an outcome.
    pub(crate) fn finish_as(&mut self, at: Instant, slot: Slot, outcome: Outcome) {
        self.slots[slot].has_failed |= outcome == Outcome::Failure;
        self.finish(at, slot);
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
        let submitted = &mut self.slots[slot];
        submitted.occupied = false;
        let outcome = if submitted.has_failed { Outcome::Failure } else { Outcome::Success };
        let request = submitted.request;
        self.free.push(slot);
        self.counters.queue_depth -= 1;
        self.counters.add(&request);
        Some(Completion { id: request.id, at, outcome })
    }

    /// Requests in work: not finished, not held back, and not the FLUSH itself.
    pub(crate) fn working_count(&self) -> u64 {
        self.unfinished_count - self.held.len() as u64 - u64::from(self.flush.is_some())
    }

    /// Whether the request must wait behind a FLUSH; if so, it is held. A non-queued FLUSH becomes the one
    /// that others wait for.
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

    /// Ends the FLUSH. Returns the number of requests that it held back, each to be taken by
    /// [`Requests::take_held`] and passed to [`Requests::hold`] again.
    pub(crate) fn release(&mut self) -> usize {
        self.flush = None;
        self.held.len()
    }

    /// The oldest request that is held back.
    pub(crate) fn take_held(&mut self) -> Option<Slot> {
        self.held.pop_front()
    }

    /// All requests submitted and not collected, by submission number.
    pub(crate) fn outstanding(&self) -> Vec<Submitted> {
        let mut outstanding: Vec<Submitted> =
            self.slots.iter().filter(|submitted| submitted.occupied).copied().collect();
        outstanding.sort_by_key(|submitted| submitted.sequence);
        outstanding
    }

    /// Whether the host has not received the completion of this request.
    pub(crate) fn is_outstanding(&self, id: RequestId) -> bool {
        self.slots.iter().any(|submitted| submitted.occupied && submitted.request.id == id)
    }

    /// Power-on: removes all requests; totals stay.
    pub(crate) fn reset(&mut self) {
        let counters = Counters { queue_depth: 0, ..self.counters };
        *self = Requests { counters, next_sequence: self.next_sequence, ..Requests::default() };
    }
}

/// Whether the host has not received the completion of this request. The request may then not complete any
/// more.
pub(crate) fn is_unacknowledged(outstanding: &[Submitted], id: RequestId) -> bool {
    outstanding.iter().any(|submitted| submitted.request.id == id)
}
