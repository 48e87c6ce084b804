//! A device for tests: each request takes a fixed time, and none waits for another.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use spindle_model::{
    Completion, Counters, Device, Instant, Operation, Outcome, PowerCut, Request, RequestId,
};

#[derive(Debug)]
pub(super) struct Steady {
    request_ns: u64,
    flush_ns: u64,
    due: BinaryHeap<Reverse<(Instant, u64)>>,
    counters: Counters,
}

impl Steady {
    /// Nanoseconds of a read or write, and of a flush.
    pub(super) fn new(request_ns: u64, flush_ns: u64) -> Steady {
        Steady { request_ns, flush_ns, due: BinaryHeap::new(), counters: Counters::default() }
    }
}

impl Device for Steady {
    fn size_bytes(&self) -> u64 {
        1 << 30
    }

    fn submit_late(&mut self, sent: Instant, _: Instant, request: Request) -> Instant {
        let is_flush = request.operation == Operation::Flush;
        match request.operation {
            Operation::Read => self.counters.reads += 1,
            Operation::Write => self.counters.writes += 1,
            _ => self.counters.flushes += 1,
        }
        self.due.push(Reverse((sent + if is_flush { self.flush_ns } else { self.request_ns }, request.id.0)));
        sent
    }

    fn poll_at(&self) -> Option<Instant> {
        self.due.peek().map(|Reverse((at, _))| *at)
    }

    fn poll(&mut self, now: Instant) -> Option<Completion> {
        let Reverse((at, id)) = *self.due.peek()?;
        if at > now {
            return None;
        }
        self.due.pop();
        Some(Completion { id: RequestId(id), at, outcome: Outcome::Success })
    }

    fn power_cut(&mut self, _: Instant) -> PowerCut {
        PowerCut::default()
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}
