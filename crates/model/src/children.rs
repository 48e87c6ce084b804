//! The devices below a layer, and the purpose of each request to them.
//!
//! A layer numbers its requests to a device below in two disjoint sequences. A request of the host gets twice
//! the host's id. A request of the layer's own gets an odd number. When the power fails, a device below may
//! report a write long after the write completed. The id alone leads back to the host's request, so no
//! growing table is needed.
//!
//! Each event of a layer has its own time. That time is in the past if a request of the host came late
//! ([`Device::submit_late`]). Requests that the layer then sends below are late as well: [`Child::pass_on`]
//! and [`Child::submit_late`]. Background work begins when the device below can do it: [`Child::submit`].

use std::collections::VecDeque;

use crate::change::{Change, Changed};
use crate::device::{Counters, Device, WriteFate};
use crate::layers::Ageing;
use crate::request::{Completion, Operation, Request, RequestId, SECTOR_BYTES};
use crate::requests::Requests;
use crate::time::Instant;

/// The id of the host's request at a device below; used at most once per request and device.
pub(crate) fn id_of_host(id: RequestId) -> RequestId {
    RequestId(id.0 * 2)
}

/// The id, at a device below, of a request of the layer's own.
pub(crate) fn id_of_own(number: u64) -> RequestId {
    RequestId(number * 2 + 1)
}

/// The number of a request of the layer's own; `None` for a request of the host.
pub(crate) fn own_number(id: RequestId) -> Option<u64> {
    (!id.0.is_multiple_of(2)).then_some(id.0 / 2)
}

/// The host's request behind `id` at a device below; `None` for a request of the layer's own.
fn host_id(id: RequestId) -> Option<RequestId> {
    id.0.is_multiple_of(2).then_some(RequestId(id.0 / 2))
}

/// A device below a layer, with the purpose of each request in it.
#[derive(Debug)]
pub(crate) struct Child<Purpose> {
    device: Box<dyn Device>,
    /// The latest time that was passed to the device.
    now: Instant,
    next_at: Option<Instant>,
    /// Ordered by id.
    in_flight: VecDeque<(RequestId, Purpose)>,
    next_number: u64,
}

impl<Purpose> Child<Purpose> {
    pub(crate) fn new(device: Box<dyn Device>) -> Child<Purpose> {
        let next_at = device.poll_at();
        Child { device, now: Instant::ZERO, next_at, in_flight: VecDeque::new(), next_number: 0 }
    }

    pub(crate) fn device(&self) -> &dyn Device {
        &*self.device
    }

    /// Requests that have not completed.
    pub(crate) fn in_flight_count(&self) -> usize {
        self.in_flight.len()
    }

    pub(crate) fn is_in_flight(&self, id: RequestId) -> bool {
        self.in_flight.binary_search_by_key(&id, |&(other, _)| other).is_ok()
    }

    /// Passes a request of the host on, at most once per request and device. Returns the delay in nanoseconds
    /// from `at` to the time that the device took as its arrival: zero if the device supports the past.
    pub(crate) fn pass_on(&mut self, at: Instant, request: Request, purpose: Purpose) -> u64 {
        self.send(at, Request { id: id_of_host(request.id), ..request }, purpose)
    }

    /// Submits a request of the layer's own on which the host waits. Returns the id, which replaces the
    /// request's `id`, and the delay as in [`Child::pass_on`].
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

    /// Submits a background request of the layer's own; its `id` is replaced by the one returned.
    pub(crate) fn submit(&mut self, at: Instant, request: Request, purpose: Purpose) -> RequestId {
        self.submit_late(self.not_late(at), request, purpose).0
    }

    /// The later of this time and the latest time that was passed to the device.
    pub(crate) fn not_late(&self, at: Instant) -> Instant {
        at.max(self.now)
    }

    pub(crate) fn flush(&mut self, at: Instant, purpose: Purpose) {
        self.submit(at, request(Operation::Flush, 0, 0), purpose);
    }

    /// Sends a request under its present id. For a layer with one numbering over several devices.
    #[inline]
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

    #[inline]
    pub(crate) fn poll_at(&self) -> Option<Instant> {
        self.next_at
    }

    #[inline]
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

    /// Fates under the ids of the device below.
    pub(crate) fn power_cut(&mut self, now: Instant) -> Vec<WriteFate> {
        self.in_flight.clear();
        self.now = self.now.max(now);
        let writes = self.device.power_cut(self.now).writes;
        self.next_at = self.device.poll_at();
        writes
    }

    pub(crate) fn set_use(&mut self, ageing: Option<&Ageing>) {
        self.device.set_use(ageing);
        self.next_at = self.device.poll_at();
    }

    pub(crate) fn change(&mut self, now: Instant, change: Change) -> Changed {
        self.now = self.now.max(now);
        let changed = self.device.change(self.now, change);
        self.next_at = self.device.poll_at();
        changed
    }

    pub(crate) fn counters(&self) -> Counters {
        self.device.counters()
    }
}

/// Translates fates of the host's writes from a device below into the host's view. A completion that the
/// layer has received may not have reached the host yet.
pub(crate) fn in_host_terms(writes: Vec<WriteFate>, requests: &Requests) -> Vec<WriteFate> {
    writes
        .into_iter()
        .filter_map(|write| {
            let id = host_id(write.id)?;
            Some(WriteFate { id, acknowledged: !requests.is_outstanding(id), ..write })
        })
        .collect()
}

/// A request of the layer's own; [`Child::submit`] sets its id.
pub(crate) fn request(operation: Operation, offset_bytes: u64, size_bytes: u64) -> Request {
    Request { id: RequestId(0), operation, offset_bytes, size_bytes, force_unit_access: false }
}

/// As [`request`], for the sectors `start..end`.
pub(crate) fn sector_request(operation: Operation, start: u64, end: u64) -> Request {
    request(operation, start * SECTOR_BYTES, (end - start) * SECTOR_BYTES)
}
