//! What layers share and what is not physics: the host's requests from submission to collection, and the devices
//! below with what each request sent to them is for.
//!
//! A layer numbers the requests to a device below in two sequences that never meet: the host's own id doubled, or
//! an odd number for a request that the layer makes itself. A device below may name a write long after it completed
//! (when the power fails), so the way back needs no table that grows.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::fmt;

use crate::device::{Ageing, Counters, Device, Fate, WriteFate};
use crate::request::{Completion, Operation, Outcome, Request, RequestId, SECTOR_BYTES};
use crate::time::Instant;

/// Index of a host's request in its layer, from submission to collection.
pub(crate) type HostSlot = usize;

#[derive(Debug, Clone, Copy)]
pub(crate) struct HostRequest {
    pub(crate) request: Request,
    /// Submission number: breaks ties, so that one seed gives one history.
    pub(crate) sequence: u64,
    parts_left: u32,
    has_failed: bool,
    occupied: bool,
}

impl HostRequest {
    pub(crate) fn sectors(&self) -> (u64, u64) {
        (self.request.offset_bytes / SECTOR_BYTES, self.request.end_bytes() / SECTOR_BYTES)
    }

    /// The fate of the whole write, of which the host has not been told that it is done.
    pub(crate) fn unacknowledged(&self, fate: Fate) -> WriteFate {
        WriteFate {
            id: self.request.id,
            offset_bytes: self.request.offset_bytes,
            size_bytes: self.request.size_bytes,
            acknowledged: false,
            fate,
        }
    }
}

/// The host's requests in a layer.
#[derive(Debug, Default)]
pub(crate) struct HostRequests {
    slots: Vec<HostRequest>,
    free: Vec<HostSlot>,
    /// By time, then by submission number.
    finished: BinaryHeap<Reverse<(Instant, u64, HostSlot)>>,
    next_sequence: u64,
    pub(crate) counters: Counters,
}

impl HostRequests {
    pub(crate) fn accept(&mut self, request: Request, device_size_bytes: u64) -> HostSlot {
        assert!(
            request.offset_bytes.is_multiple_of(SECTOR_BYTES)
                && request.size_bytes.is_multiple_of(SECTOR_BYTES)
                && request.end_bytes() <= device_size_bytes,
            "{request:?} is unaligned or beyond the device's {device_size_bytes} bytes"
        );
        let sequence = self.next_sequence;
        let host = HostRequest { request, sequence, parts_left: 0, has_failed: false, occupied: true };
        self.next_sequence += 1;
        self.counters.queue_depth += 1;
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot] = host;
                slot
            }
            None => {
                self.slots.push(host);
                self.slots.len() - 1
            }
        }
    }

    pub(crate) fn get(&self, slot: HostSlot) -> &HostRequest {
        &self.slots[slot]
    }

    /// The submission number that the next request will have.
    pub(crate) fn next_sequence(&self) -> u64 {
        self.next_sequence
    }

    /// The request waits for this many more parts.
    pub(crate) fn expect_parts(&mut self, slot: HostSlot, count: u32) {
        self.slots[slot].parts_left += count;
    }

    /// One part is done; with the last one the request is. One failed part fails it.
    pub(crate) fn finish_part(&mut self, at: Instant, slot: HostSlot, outcome: Outcome) {
        let host = &mut self.slots[slot];
        host.parts_left -= 1;
        host.has_failed |= outcome == Outcome::Failure;
        if host.parts_left == 0 {
            let outcome = if host.has_failed { Outcome::Failure } else { Outcome::Success };
            self.finish(at, slot, outcome);
        }
    }

    /// The request is done at `at`, which may be in the future but not before a completion already collected.
    pub(crate) fn finish(&mut self, at: Instant, slot: HostSlot, outcome: Outcome) {
        let host = &mut self.slots[slot];
        host.has_failed = outcome == Outcome::Failure;
        self.finished.push(Reverse((at, host.sequence, slot)));
    }

    pub(crate) fn next_finished_at(&self) -> Option<Instant> {
        self.finished.peek().map(|Reverse((at, ..))| *at)
    }

    pub(crate) fn collect(&mut self, now: Instant) -> Option<Completion> {
        let &Reverse((at, _, slot)) = self.finished.peek()?;
        if at > now {
            return None;
        }
        self.finished.pop();
        let host = &mut self.slots[slot];
        host.occupied = false;
        let (request, has_failed) = (host.request, host.has_failed);
        self.free.push(slot);
        self.counters.queue_depth -= 1;
        self.count(request);
        let outcome = if has_failed { Outcome::Failure } else { Outcome::Success };
        Some(Completion { id: request.id, at, outcome })
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

    /// The host's requests, with what it has no way to count itself taken from the devices below.
    pub(crate) fn counters_with(&self, below: &[Counters]) -> Counters {
        self.counters.over(below.iter().copied())
    }

    /// Everything submitted and not collected, by submission number.
    pub(crate) fn outstanding_slots(&self) -> Vec<HostSlot> {
        let mut slots: Vec<HostSlot> =
            (0..self.slots.len()).filter(|&slot| self.slots[slot].occupied).collect();
        slots.sort_by_key(|&slot| self.slots[slot].sequence);
        slots
    }

    pub(crate) fn is_outstanding(&self, id: RequestId) -> bool {
        self.slots.iter().any(|host| host.occupied && host.request.id == id)
    }

    /// Fates that a device below gave for the host's writes, as the host must see them: a device below has told this
    /// layer of a completion of which the host may not have been told yet.
    pub(crate) fn in_host_terms(&self, writes: Vec<WriteFate>) -> Vec<WriteFate> {
        writes
            .into_iter()
            .filter_map(|write| {
                let id = host_id(write.id)?;
                Some(WriteFate { id, acknowledged: !self.is_outstanding(id), ..write })
            })
            .collect()
    }

    /// Power-on: nothing is in the layer any more; totals stay.
    pub(crate) fn reset(&mut self) {
        let counters = Counters { queue_depth: 0, ..self.counters };
        *self = HostRequests { counters, next_sequence: self.next_sequence, ..HostRequests::default() };
    }
}

/// The host's request that a device below knows under `id`; `None` when the layer made the request itself.
pub(crate) fn host_id(id: RequestId) -> Option<RequestId> {
    id.0.is_multiple_of(2).then_some(RequestId(id.0 / 2))
}

/// A device below a layer, and what each request in it is for.
pub(crate) struct Child<Purpose> {
    device: Box<dyn Device>,
    in_flight: BTreeMap<RequestId, Purpose>,
    next_number: u64,
}

impl<Purpose> Child<Purpose> {
    pub(crate) fn new(device: Box<dyn Device>) -> Child<Purpose> {
        Child { device, in_flight: BTreeMap::new(), next_number: 0 }
    }

    pub(crate) fn size_bytes(&self) -> u64 {
        self.device.size_bytes()
    }

    /// Passes a request of the host on; at most once per request and device.
    pub(crate) fn pass_on(&mut self, now: Instant, request: Request, purpose: Purpose) {
        let id = RequestId(request.id.0 * 2);
        self.in_flight.insert(id, purpose);
        self.device.submit(now, Request { id, ..request });
    }

    /// Submits a request of the layer's own; its `id` is replaced by the one returned.
    pub(crate) fn submit(&mut self, now: Instant, request: Request, purpose: Purpose) -> RequestId {
        let id = RequestId(self.next_number * 2 + 1);
        self.next_number += 1;
        self.in_flight.insert(id, purpose);
        self.device.submit(now, Request { id, ..request });
        id
    }

    pub(crate) fn flush(&mut self, now: Instant, purpose: Purpose) -> RequestId {
        self.submit(now, request(Operation::Flush, 0, 0), purpose)
    }

    pub(crate) fn poll_at(&self) -> Option<Instant> {
        self.device.poll_at()
    }

    pub(crate) fn poll(&mut self, now: Instant) -> Option<(Purpose, Completion)> {
        let completion = self.device.poll(now)?;
        let purpose =
            self.in_flight.remove(&completion.id).expect("a device below completed a request twice");
        Some((purpose, completion))
    }

    /// Fates under the ids that the device below knows: see [`host_id`].
    pub(crate) fn power_cut(&mut self, now: Instant) -> Vec<WriteFate> {
        self.in_flight.clear();
        self.device.power_cut(now).writes
    }

    pub(crate) fn age(&mut self, ageing: &Ageing) {
        self.device.age(ageing);
    }

    pub(crate) fn secure_erase(&mut self) {
        self.device.secure_erase();
    }

    pub(crate) fn counters(&self) -> Counters {
        self.device.counters()
    }
}

/// A request of a layer's own; [`Child::submit`] gives it its id.
pub(crate) fn request(operation: Operation, offset_bytes: u64, size_bytes: u64) -> Request {
    Request { id: RequestId(0), operation, offset_bytes, size_bytes, force_unit_access: false }
}

impl<Purpose> fmt::Debug for Child<Purpose> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Child")
            .field("size_bytes", &self.device.size_bytes())
            .field("in_flight", &self.in_flight.len())
            .finish_non_exhaustive()
    }
}
