//! A layer that limits I/O operations per second and bytes per second, like a hypervisor or a control group.
//!
//! Limits apply to reads, to writes, and to both together. Reads and writes each wait in a FIFO queue, as in
//! Linux (`blk-throttle`: one queue per direction), so that limited writes do not delay reads. If both heads
//! may go, the older one goes first. FLUSH, discard and write-zeroes pass at once: a FLUSH gives no guarantee
//! for writes that have not completed.
//!
//! # Divergence
//! Linux divides time into windows and passes a budget per window. This layer is a token bucket, which is
//! smoother.

mod parameters;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

pub use parameters::{Limit, ThrottleParameters};

use crate::device::{Device, Fate, WriteFate};
use crate::layered::{Base, Layered};
use crate::layers::LayerParameters;
use crate::parameter::Invalid;
use crate::request::{Completion, Operation};
use crate::requests::{Slot, Submitted};
use crate::time::{Instant, SECOND};
use crate::token_bucket::TokenBucket;

#[derive(Debug)]
struct Buckets {
    operations: Option<TokenBucket>,
    bytes: Option<TokenBucket>,
}

impl Buckets {
    fn new(limit: Limit, burst_ns: u64) -> Buckets {
        let bucket = |rate: Option<u64>| {
            rate.map(|rate| {
                let depth = u128::from(rate) * u128::from(burst_ns) / u128::from(SECOND);
                TokenBucket::new(rate, (depth as u64).max(1))
            })
        };
        Buckets { operations: bucket(limit.iops), bytes: bucket(limit.bytes_per_s) }
    }

    fn earliest(&self, now: Instant, size_bytes: u64) -> Instant {
        let operations_at = self.operations.as_ref().map(|bucket| bucket.earliest(now, 1));
        let bytes_at = self.bytes.as_ref().map(|bucket| bucket.earliest(now, size_bytes));
        [Some(now), operations_at, bytes_at].into_iter().flatten().max().unwrap_or(now)
    }

    fn take(&mut self, now: Instant, size_bytes: u64) {
        if let Some(bucket) = &mut self.operations {
            bucket.take(now, 1);
        }
        if let Some(bucket) = &mut self.bytes {
            bucket.take(now, size_bytes);
        }
    }
}

#[derive(Debug)]
struct Direction {
    buckets: Buckets,
    waiting: VecDeque<Slot>,
    /// Start time of the head of the queue, and its submission number. It changes only when tokens are taken.
    head: Option<(Instant, u64)>,
}

#[derive(Debug)]
pub struct Throttle {
    base: Base<Slot>,
    /// Reads, then writes.
    directions: [Direction; 2],
    total: Buckets,
}

impl Throttle {
    /// # Errors
    /// Parameters rejected by [`ThrottleParameters::validate`].
    pub fn new(parameters: ThrottleParameters, below: Box<dyn Device>) -> Result<Throttle, Invalid> {
        parameters.validate()?;
        let buckets = |limit| Buckets::new(limit, parameters.burst_ns);
        let direction = |limit| Direction { buckets: buckets(limit), waiting: VecDeque::new(), head: None };
        Ok(Throttle {
            base: Base::over(below),
            directions: [direction(parameters.read), direction(parameters.write)],
            total: buckets(parameters.total),
        })
    }

    /// Recomputes the start time of a queue's head, at or after `from`.
    fn look_at_head(&mut self, from: Instant, index: usize) {
        let direction = &self.directions[index];
        let head = direction.waiting.front().map(|&slot| {
            let host = self.base.requests.get(slot);
            let size_bytes = host.request.size_bytes;
            let at = direction.buckets.earliest(from, size_bytes);
            (at.max(self.total.earliest(from, size_bytes)), host.sequence)
        });
        self.directions[index].head = head;
    }

    fn enqueue(&mut self, sent: Instant, index: usize, slot: Slot) {
        self.directions[index].waiting.push_back(slot);
        if self.directions[index].waiting.len() == 1 {
            self.look_at_head(sent, index);
        }
    }

    fn dispatch(&mut self) {
        loop {
            let ready = |index: usize| self.directions[index].head.filter(|&(at, _)| at <= self.base.now);
            let (index, at) = match (ready(0), ready(1)) {
                (Some((at, read)), Some((_, write))) if read < write => (0, at),
                (_, Some((at, _))) => (1, at),
                (Some((at, _)), None) => (0, at),
                (None, None) => return,
            };
            let direction = &mut self.directions[index];
            let Some(slot) = direction.waiting.pop_front() else { return };
            let request = self.base.requests.get(slot).request;
            direction.buckets.take(at, request.size_bytes);
            self.total.take(at, request.size_bytes);
            self.look_at_head(self.base.now, 0);
            self.look_at_head(self.base.now, 1);
            self.base.pass_on(at, 0, slot, request, slot);
        }
    }
}

impl Layered for Throttle {
    type Purpose = Slot;

    fn base(&self) -> &Base<Slot> {
        &self.base
    }

    fn base_mut(&mut self) -> &mut Base<Slot> {
        &mut self.base
    }

    fn begin(&mut self, _now: Instant, slot: Slot) {
        let Submitted { request, arrived_at, .. } = *self.base.requests.get(slot);
        match request.operation {
            Operation::Read => self.enqueue(arrived_at, 0, slot),
            Operation::Write => self.enqueue(arrived_at, 1, slot),
            _ => self.base.pass_on(arrived_at, 0, slot, request, slot),
        }
        self.dispatch();
    }

    fn complete(&mut self, _at: Instant, slot: Slot, completion: Completion) {
        self.base.requests.finish_as(completion.at, slot, completion.outcome);
    }

    fn own_event_at(&self) -> Option<Instant> {
        self.directions.iter().filter_map(|direction| direction.head).map(|(at, _)| at).min()
    }

    fn step(&mut self, at: Instant) {
        self.base.now = self.base.now.max(at);
        self.poll_below(self.base.now);
        self.dispatch();
    }

    fn cut(&mut self, now: Instant) -> Vec<WriteFate> {
        let mut writes = self.base.cut_below(now);
        // Writes share one queue, so those still waiting are younger than all others.
        let waiting = self.directions[1].waiting.iter();
        writes.extend(waiting.map(|&slot| self.base.requests.get(slot).unacknowledged(Fate::Lost)));
        for direction in &mut self.directions {
            direction.waiting.clear();
            direction.head = None;
        }
        writes
    }
}
