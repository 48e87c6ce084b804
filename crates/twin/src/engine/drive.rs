//! One block device and the way to it: the block layer's handling of FLUSH, and the worker of a loop device.

use std::collections::VecDeque;

use spindle_model::{Counters, Device, Instant, Operation, Request, RequestId, SECTOR_BYTES};

use crate::facts::{Access, Mount};
use crate::flushing::Seen;

/// Who waits for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    /// A page that a terminal needs.
    Terminal(usize),
    Nobody,
    Log,
    /// A write of the log through the page cache, which counts with those of the cleaner.
    BufferedLog,
    Cleaner,
}

#[derive(Debug)]
struct Waiting {
    operation: Operation,
    access: Access,
    owner: Owner,
}

#[derive(Debug)]
struct InFlight {
    operation: Operation,
    since: Instant,
    owner: Owner,
}

/// Requests to one device, and their owners.
#[derive(Debug)]
pub(super) struct Drive {
    device: Box<dyn Device>,
    /// When the device has its next event. It is asked for more often than the device is used.
    device_next_at: Option<Instant>,
    size_bytes: u64,
    flush_stops_the_queue: bool,
    has_volatile_cache: bool,
    next_id: u64,
    /// By request, from the oldest one in flight.
    first_id: u64,
    in_flight: VecDeque<Option<InFlight>>,
    /// Requests that the worker has not submitted yet.
    queue: VecDeque<Waiting>,
    is_worker_in_flush: bool,
    /// Owners of the FLUSH that is on its way, and of the next one: FLUSHes that come meanwhile become one
    /// (block/blk-flush.c).
    flushing: Vec<Owner>,
    to_flush: Vec<Owner>,
    /// Owners of requests that are done.
    done: VecDeque<Owner>,
    seen: Seen,
    /// The read that is watched.
    watched: Option<(RequestId, Instant)>,
}

impl Drive {
    pub(super) fn new(mount: Mount) -> Drive {
        Drive {
            size_bytes: mount.device.size_bytes(),
            device_next_at: mount.device.poll_at(),
            device: mount.device,
            flush_stops_the_queue: mount.flush_stops_the_queue,
            has_volatile_cache: mount.has_volatile_cache,
            next_id: 0,
            first_id: 0,
            in_flight: VecDeque::new(),
            queue: VecDeque::new(),
            is_worker_in_flush: false,
            flushing: Vec::new(),
            to_flush: Vec::new(),
            done: VecDeque::new(),
            seen: Seen::default(),
            watched: None,
        }
    }

    pub(super) fn counters(&self) -> Counters {
        self.device.counters()
    }

    /// What it did since it was last asked.
    pub(super) fn take_seen(&mut self, now: Instant) -> Seen {
        let waits_for_read_ns = self.watched.map_or(0, |(_, since)| now - since);
        Seen { waits_for_read_ns, ..std::mem::take(&mut self.seen) }
    }

    pub(super) fn send(&mut self, now: Instant, operation: Operation, access: Access, owner: Owner) {
        if operation == Operation::Flush && !self.has_volatile_cache {
            self.done.push_back(owner);
            return;
        }
        if operation == Operation::Flush {
            if self.flushing.is_empty() {
                self.flushing.push(owner);
                self.dispatch(now, Waiting { operation, access, owner: Owner::Nobody });
            } else {
                self.to_flush.push(owner);
            }
            return;
        }
        self.dispatch(now, Waiting { operation, access, owner });
    }

    fn dispatch(&mut self, now: Instant, waiting: Waiting) {
        if self.is_worker_in_flush {
            self.queue.push_back(waiting);
        } else {
            self.submit(now, &waiting);
        }
    }

    fn submit(&mut self, now: Instant, waiting: &Waiting) {
        let operation = waiting.operation;
        self.is_worker_in_flush = operation == Operation::Flush && self.flush_stops_the_queue;
        let Access { offset_bytes, size_bytes } = self.within(operation, waiting.access);
        let id = RequestId(self.next_id);
        self.next_id += 1;
        if operation == Operation::Read {
            self.watched.get_or_insert((id, now));
        }
        self.in_flight.push_back(Some(InFlight { operation, since: now, owner: waiting.owner }));
        self.device
            .submit(now, Request { id, operation, offset_bytes, size_bytes, force_unit_access: false });
        self.device_next_at = self.device.poll_at();
    }

    /// The place in whole sectors of this device. A place beyond its end is folded back: the recorded disk
    /// was larger.
    fn within(&self, operation: Operation, access: Access) -> Access {
        if operation == Operation::Flush {
            return Access { offset_bytes: 0, size_bytes: 0 };
        }
        let size_bytes =
            access.size_bytes.next_multiple_of(SECTOR_BYTES).clamp(SECTOR_BYTES, self.size_bytes);
        let last = self.size_bytes - size_bytes;
        let offset =
            if access.offset_bytes <= last { access.offset_bytes } else { access.offset_bytes % (last + 1) };
        Access { offset_bytes: offset / SECTOR_BYTES * SECTOR_BYTES, size_bytes }
    }

    pub(super) fn next_at(&self) -> Option<Instant> {
        if self.done.is_empty() { self.device_next_at } else { Some(Instant::ZERO) }
    }

    /// The owner of the next request that is done from `now` until `limit`, and when it is.
    pub(super) fn take(&mut self, now: Instant, limit: Instant) -> Option<(Instant, Owner)> {
        let mut at = now;
        while self.done.is_empty() {
            let completion = self.device.poll_until(at, limit);
            self.device_next_at = self.device.poll_at();
            let completion = completion?;
            at = at.max(completion.at);
            self.complete(at, completion.id);
        }
        Some((at, self.done.pop_front()?))
    }

    fn complete(&mut self, now: Instant, id: RequestId) {
        let index = usize::try_from(id.0 - self.first_id).expect("a request in flight");
        let InFlight { operation, since, owner } =
            self.in_flight[index].take().expect("the device completed a request twice");
        while let Some(None) = self.in_flight.front() {
            self.in_flight.pop_front();
            self.first_id += 1;
        }
        self.watched = self.watched.filter(|(watched, _)| *watched != id);
        match operation {
            Operation::Read => {
                let least_ns = self.seen.least_read_ns.unwrap_or(u64::MAX).min(now - since);
                self.seen.least_read_ns = Some(least_ns);
            }
            Operation::Write => self.seen.writes += 1,
            _ => {}
        }
        if operation == Operation::Flush {
            self.flushed(now);
        } else {
            self.done.push_back(owner);
        }
    }

    fn flushed(&mut self, now: Instant) {
        self.done.extend(self.flushing.drain(..));
        self.is_worker_in_flush = false;
        while !self.is_worker_in_flush {
            let Some(waiting) = self.queue.pop_front() else { break };
            self.submit(now, &waiting);
        }
        if !self.to_flush.is_empty() {
            std::mem::swap(&mut self.flushing, &mut self.to_flush);
            let access = Access { offset_bytes: 0, size_bytes: 0 };
            self.dispatch(now, Waiting { operation: Operation::Flush, access, owner: Owner::Nobody });
        }
    }
}

#[cfg(test)]
mod tests {
    use spindle_model::MILLISECOND;

    use super::super::steady::Steady;
    use super::*;

    const PAGE: Access = Access { offset_bytes: 1 << 24, size_bytes: 16 << 10 };

    fn drive(flush_stops_the_queue: bool) -> Drive {
        Drive::new(Mount {
            device: Box::new(Steady::new(MILLISECOND, 4 * MILLISECOND)),
            flush_stops_the_queue,
            has_volatile_cache: true,
            rotates: false,
        })
    }

    /// Owners in the order in which they are answered.
    fn order(drive: &mut Drive) -> Vec<Owner> {
        let mut now = Instant::ZERO;
        let mut owners = Vec::new();
        while let Some((at, owner)) = drive.take(now, Instant::FAR_FUTURE) {
            assert!(at >= now);
            now = at;
            owners.push(owner);
        }
        owners
    }

    #[test]
    fn flushes_that_come_during_one_share_the_next() {
        let mut drive = drive(false);
        let now = Instant(MILLISECOND);
        for terminal in 0..4 {
            drive.send(now, Operation::Flush, PAGE, Owner::Terminal(terminal));
        }
        assert_eq!(order(&mut drive), [0, 1, 2, 3].map(Owner::Terminal));
        assert_eq!(drive.counters().flushes, 2);
    }

    #[test]
    fn a_device_without_a_volatile_cache_gets_no_flush() {
        let mut drive = Drive { has_volatile_cache: false, ..drive(true) };
        drive.send(Instant(MILLISECOND), Operation::Flush, PAGE, Owner::Log);
        assert_eq!(order(&mut drive), [Owner::Log]);
        assert_eq!(drive.counters().flushes, 0);
    }

    #[test]
    fn a_flush_of_a_loop_device_holds_a_read_back() {
        let answered = |flush_stops_the_queue| {
            let mut drive = drive(flush_stops_the_queue);
            let now = Instant(MILLISECOND);
            drive.send(now, Operation::Flush, PAGE, Owner::Log);
            drive.send(now, Operation::Read, PAGE, Owner::Terminal(0));
            order(&mut drive)
        };
        assert_eq!(answered(true), [Owner::Log, Owner::Terminal(0)]);
        assert_eq!(answered(false), [Owner::Terminal(0), Owner::Log]);
    }
}
