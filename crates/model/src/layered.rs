//! The common part of layers, and of devices without a fast path: a [`Base`] and the verbs of [`Layered`].

use crate::change::{Change, Changed};
use crate::children::{Child, in_host_terms};
use crate::device::{Counters, Device, PowerCut, WriteFate};
use crate::layers::Ageing;
use crate::request::{Completion, Request};
use crate::requests::{Requests, Slot};
use crate::time::Instant;

/// The requests of a layer, and the devices below it.
#[derive(Debug)]
pub(crate) struct Base<Purpose> {
    pub(crate) size_bytes: u64,
    pub(crate) requests: Requests,
    pub(crate) below: Vec<Child<Purpose>>,
    /// The time of the latest call.
    pub(crate) now: Instant,
}

impl<Purpose> Base<Purpose> {
    pub(crate) fn new(size_bytes: u64, below: impl IntoIterator<Item = Box<dyn Device>>) -> Base<Purpose> {
        let below = below.into_iter().map(Child::new).collect();
        Base { size_bytes, requests: Requests::default(), below, now: Instant::ZERO }
    }

    /// A layer as large as the one device below it.
    pub(crate) fn over(below: Box<dyn Device>) -> Base<Purpose> {
        Base::new(below.size_bytes(), [below])
    }

    /// Passes a request of the host on to the device of this index, with a delay that the host sees.
    pub(crate) fn pass_on(
        &mut self,
        at: Instant,
        index: usize,
        slot: Slot,
        request: Request,
        purpose: Purpose,
    ) {
        let lost_ns = self.below[index].pass_on(at, request, purpose);
        self.requests.note_lost(slot, lost_ns);
    }

    /// Fates at a power cut, in the host's view, of the writes that the one device below had.
    pub(crate) fn cut_below(&mut self, now: Instant) -> Vec<WriteFate> {
        in_host_terms(self.below[0].power_cut(now), &self.requests)
    }
}

/// A layer, or a device without devices below, over a table of requests. Each of them is a [`Device`].
pub(crate) trait Layered: Send {
    type Purpose: Send;

    fn base(&self) -> &Base<Self::Purpose>;

    fn base_mut(&mut self) -> &mut Base<Self::Purpose>;

    /// As [`Device::below`].
    fn stacks_below(&self) -> Vec<&dyn Device> {
        self.base().below.iter().map(Child::device).collect()
    }

    /// When the layer takes a request that was sent at `sent`.
    fn arrives_at(&self, sent: Instant, _now: Instant, _request: &Request) -> Instant {
        sent
    }

    /// Starts work on a request that has been accepted.
    fn begin(&mut self, now: Instant, slot: Slot);

    /// Handles a completion of a device below.
    fn complete(&mut self, _at: Instant, _purpose: Self::Purpose, _completion: Completion) {}

    /// The next event of the layer's own.
    fn own_event_at(&self) -> Option<Instant> {
        None
    }

    /// Handles all that is due at `at`, the time of the next event.
    fn step(&mut self, at: Instant) {
        self.poll_below(at);
    }

    /// As [`Device::change`], of the layer alone, at a time up to which all events have been handled.
    fn change_own(&mut self, _now: Instant, _change: Change) -> Changed {
        Ok(false)
    }

    /// As [`Device::power_cut`], at a time up to which all events have been handled. The table of requests is
    /// reset afterwards.
    fn cut(&mut self, now: Instant) -> Vec<WriteFate>;

    /// As [`Device::counters`].
    fn totals(&self) -> Counters {
        let Base { requests, below, .. } = self.base();
        requests.counters.over(below.iter().map(Child::counters))
    }

    #[inline]
    fn poll_below(&mut self, at: Instant) {
        for index in 0..self.base().below.len() {
            while let Some((purpose, completion)) = self.base_mut().below[index].poll(at) {
                self.complete(at, purpose, completion);
            }
        }
    }

    fn next_event_at(&self) -> Option<Instant> {
        self.base().below.iter().fold(self.own_event_at(), |next, device| earlier(next, device.poll_at()))
    }

    /// Handles events up to `now`.
    #[inline]
    fn advance(&mut self, now: Instant) {
        while let Some(at) = self.next_event_at().filter(|&at| at <= now) {
            self.step(at);
        }
        self.base_mut().now = now;
    }

    /// When the driver has something to do; [`Layered::next_event_at`] may be earlier.
    fn wakes_at(&self) -> Option<Instant> {
        self.next_event_at()
    }
}

/// Changes the first of the devices that has such a part.
pub(crate) fn change_first<'a, Purpose: 'a>(
    devices: impl IntoIterator<Item = &'a mut Child<Purpose>>,
    now: Instant,
    change: Change,
) -> Changed {
    for device in devices {
        if device.change(now, change)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The earlier of two times. Without an iterator, because a driver asks after each call.
#[inline]
fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

impl<L: Layered> Device for L {
    fn size_bytes(&self) -> u64 {
        self.base().size_bytes
    }

    fn submit_late(&mut self, sent: Instant, now: Instant, request: Request) -> Instant {
        self.advance(now);
        let arrives_at = self.arrives_at(sent, now, &request);
        let base = self.base_mut();
        let slot = base.requests.accept(arrives_at, request, base.size_bytes);
        self.begin(now, slot);
        self.advance(now);
        self.base().requests.get(slot).taken_at()
    }

    fn poll_at(&self) -> Option<Instant> {
        earlier(self.base().requests.next_finished_at(), self.wakes_at())
    }

    fn poll(&mut self, now: Instant) -> Option<Completion> {
        self.advance(now);
        self.base_mut().requests.collect(now)
    }

    fn power_cut(&mut self, now: Instant) -> PowerCut {
        self.advance(now);
        let writes = self.cut(now);
        self.base_mut().requests.reset();
        PowerCut { writes }
    }

    fn counters(&self) -> Counters {
        self.totals()
    }

    fn below(&self) -> Vec<&dyn Device> {
        self.stacks_below()
    }

    fn set_use(&mut self, ageing: Option<&Ageing>) {
        self.base_mut().below.iter_mut().for_each(|device| device.set_use(ageing));
    }

    fn change(&mut self, now: Instant, change: Change) -> Changed {
        self.advance(now);
        let is_changed =
            self.change_own(now, change)? || change_first(&mut self.base_mut().below, now, change)?;
        self.advance(now);
        Ok(is_changed)
    }
}
