//! The devices below a layer, and what each request to them is for.
//!
//! A layer numbers the requests to a device below in two sequences that never meet: the host's own id
//! doubled, or an odd number for a request that the layer makes itself. A device below may name a write long
//! after it completed (when the power fails), so the way back to the host's request needs no table that
//! grows.
//!
//! An event of a layer has its own time, which is before the present when a request of the host came late
//! ([`Device::submit_late`]). What the layer sends below then is late as well: [`Child::pass_on`] and
//! [`Child::submit_late`]. Work that nobody waits for begins when the device below can do it:
//! [`Child::submit`].

use std::collections::VecDeque;
use std::fmt;

use crate::device::{Ageing, Counters, Device, WriteFate};
use crate::request::{Completion, Operation, Request, RequestId, SECTOR_BYTES};
use crate::requests::Requests;
use crate::time::Instant;

/// Under which id a device below knows the host's request; at most once per request and device.
pub(crate) fn id_of_host(id: RequestId) -> RequestId {
    RequestId(id.0 * 2)
}

/// Under which id a device below knows a request that the layer makes itself.
pub(crate) fn id_of_own(number: u64) -> RequestId {
    RequestId(number * 2 + 1)
}

/// The number of a request that the layer made itself; `None` for one of the host's.
pub(crate) fn own_number(id: RequestId) -> Option<u64> {
    (!id.0.is_multiple_of(2)).then_some(id.0 / 2)
}

/// The host's request that a device below knows under `id`; `None` when the layer made the request itself.
fn host_id(id: RequestId) -> Option<RequestId> {
    id.0.is_multiple_of(2).then_some(RequestId(id.0 / 2))
}

/// A device below a layer, and what each request in it is for.
pub(crate) struct Child<Purpose> {
    device: Box<dyn Device>,
    /// The furthest moment that the device has seen.
    now: Instant,
    next_at: Option<Instant>,
    /// By id.
    in_flight: VecDeque<(RequestId, Purpose)>,
    next_number: u64,
}

impl<Purpose> Child<Purpose> {
    pub(crate) fn new(device: Box<dyn Device>) -> Child<Purpose> {
        let next_at = device.poll_at();
        Child { device, now: Instant::ZERO, next_at, in_flight: VecDeque::new(), next_number: 0 }
    }

    pub(crate) fn size_bytes(&self) -> u64 {
        self.device.size_bytes()
    }

    pub(crate) fn device(&self) -> &dyn Device {
        &*self.device
    }

    /// Requests that have not come back.
    pub(crate) fn in_flight_count(&self) -> usize {
        self.in_flight.len()
    }

    pub(crate) fn is_in_flight(&self, id: RequestId) -> bool {
        self.in_flight.binary_search_by_key(&id, |&(other, _)| other).is_ok()
    }

    /// Passes a request of the host on; at most once per request and device. Returns how many nanoseconds
    /// after `at` it counts as having come: zero where the device can look back.
    pub(crate) fn pass_on(&mut self, at: Instant, request: Request, purpose: Purpose) -> u64 {
        self.send(at, Request { id: id_of_host(request.id), ..request }, purpose)
    }

    /// Submits a request of the layer's own that the host waits for. Its `id` is replaced by the one
    /// returned; with it comes what [`Child::pass_on`] returns.
    pub(crate) fn submit_late(
        &mut self,
        at: Instant,
        request: Request,
        purpose: Purpose,
    ) -> (RequestId, u64) {
        let id = id_of_own(self.next_number);
        self.next_number += 1;
        (id, self.send(at, Request { id, ..request }, purpose))
    }

    /// Submits a request of the layer's own that nobody waits for; its `id` is replaced by the one returned.
    pub(crate) fn submit(&mut self, at: Instant, request: Request, purpose: Purpose) -> RequestId {
        self.submit_late(self.not_late(at), request, purpose).0
    }

    /// This moment, or the first one after it that the device has not passed.
    pub(crate) fn not_late(&self, at: Instant) -> Instant {
        at.max(self.now)
    }

    pub(crate) fn flush(&mut self, at: Instant, purpose: Purpose) {
        self.submit(at, request(Operation::Flush, 0, 0), purpose);
    }

    /// Sends a request under the id that it has: for a layer that numbers its own requests to several devices
    /// together.
    pub(crate) fn send(&mut self, at: Instant, request: Request, purpose: Purpose) -> u64 {
        if self.in_flight.back().is_some_and(|&(last, _)| last > request.id) {
            let place = self.in_flight.partition_point(|&(id, _)| id < request.id);
            self.in_flight.insert(place, (request.id, purpose));
        } else {
            self.in_flight.push_back((request.id, purpose));
        }
        self.now = self.now.max(at);
        let taken_at = self.device.submit_late(at, self.now, request);
        self.next_at = self.device.poll_at();
        taken_at - at
    }

    pub(crate) fn poll_at(&self) -> Option<Instant> {
        self.next_at
    }

    pub(crate) fn poll(&mut self, at: Instant) -> Option<(Purpose, Completion)> {
        let now = self.now.max(at);
        if self.next_at.is_none_or(|next_at| next_at > now) {
            return None;
        }
        self.now = now;
        let Some(completion) = self.device.poll(now) else {
            self.next_at = self.device.poll_at();
            return None;
        };
        let is_oldest = self.in_flight.front().is_some_and(|&(id, _)| id == completion.id);
        let found = if is_oldest { self.in_flight.pop_front() } else { self.remove(completion.id) };
        let (_, purpose) = found.expect("a device below completed a request twice");
        Some((purpose, completion))
    }

    fn remove(&mut self, id: RequestId) -> Option<(RequestId, Purpose)> {
        let place = self.in_flight.binary_search_by_key(&id, |&(other, _)| other).ok()?;
        self.in_flight.remove(place)
    }

    /// Fates under the ids that the device below knows.
    pub(crate) fn power_cut(&mut self, now: Instant) -> Vec<WriteFate> {
        self.in_flight.clear();
        self.now = self.now.max(now);
        let writes = self.device.power_cut(self.now).writes;
        self.next_at = self.device.poll_at();
        writes
    }

    pub(crate) fn age(&mut self, ageing: &Ageing) {
        self.device.age(ageing);
        self.next_at = self.device.poll_at();
    }

    pub(crate) fn secure_erase(&mut self) {
        self.device.secure_erase();
        self.next_at = self.device.poll_at();
    }

    pub(crate) fn counters(&self) -> Counters {
        self.device.counters()
    }
}

/// Fates that a device below gave for the host's writes, as the host must see them: a device below has told
/// the layer of a completion of which the host may not have been told yet.
pub(crate) fn in_host_terms(writes: Vec<WriteFate>, requests: &Requests) -> Vec<WriteFate> {
    writes
        .into_iter()
        .filter_map(|write| {
            let id = host_id(write.id)?;
            Some(WriteFate { id, acknowledged: !requests.is_outstanding(id), ..write })
        })
        .collect()
}

/// A request of a layer's own; [`Child::submit`] gives it its id.
pub(crate) fn request(operation: Operation, offset_bytes: u64, size_bytes: u64) -> Request {
    Request { id: RequestId(0), operation, offset_bytes, size_bytes, force_unit_access: false }
}

/// As [`request`], from one sector to before another.
pub(crate) fn sector_request(operation: Operation, start: u64, end: u64) -> Request {
    request(operation, start * SECTOR_BYTES, (end - start) * SECTOR_BYTES)
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
