//! A device that takes no time: the lower bound of a driver's cost, and the smallest device to copy for a new
//! one.
//!
//! # Divergence
//! No such drive exists. Every write is durable at once. A power cut loses no acknowledged write.

use crate::declare;
use crate::device::{Built, Counters, Device, Fate, PowerCut};
use crate::devices::DeviceParameters;
use crate::request::{Completion, Operation, Request};
use crate::requests::Requests;
use crate::time::Instant;

declare! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct NullParameters {}
}

impl DeviceParameters for NullParameters {
    fn capacity_bytes(&self) -> Option<u64> {
        None
    }

    fn build(&self, size_bytes: u64, _seed: u64) -> Built {
        Ok(Box::new(Null::new(size_bytes)))
    }
}

#[derive(Debug)]
pub struct Null {
    size_bytes: u64,
    requests: Requests,
}

impl Null {
    pub fn new(size_bytes: u64) -> Null {
        Null { size_bytes, requests: Requests::default() }
    }
}

impl Device for Null {
    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn submit_late(&mut self, _sent: Instant, now: Instant, request: Request) -> Instant {
        let slot = self.requests.accept(now, request, self.size_bytes);
        self.requests.finish(now, slot);
        now
    }

    fn poll_at(&self) -> Option<Instant> {
        self.requests.next_finished_at()
    }

    fn poll(&mut self, now: Instant) -> Option<Completion> {
        self.requests.collect(now)
    }

    fn power_cut(&mut self, _now: Instant) -> PowerCut {
        // The write is on the medium, but its completion was not delivered.
        let writes = self
            .requests
            .outstanding()
            .into_iter()
            .filter(|command| command.request.operation == Operation::Write)
            .map(|command| command.unacknowledged(Fate::Kept))
            .collect();
        self.requests.reset();
        PowerCut { writes }
    }

    fn counters(&self) -> Counters {
        self.requests.counters
    }
}
