//! A layer that is a part of another device: the smallest layer to copy for a new one.
//!
//! It does no work of its own, so its counters are those of the device below.

use std::fmt;

use crate::device::{Ageing, Counters, Device, PowerCut};
use crate::request::{Completion, Operation, Request};
use crate::time::Instant;

pub struct Partition {
    offset_bytes: u64,
    size_bytes: u64,
    below: Box<dyn Device>,
}

impl Partition {
    pub(crate) fn new(offset_bytes: u64, size_bytes: u64, below: Box<dyn Device>) -> Partition {
        assert!(offset_bytes + size_bytes <= below.size_bytes(), "a partition beyond its device");
        Partition { offset_bytes, size_bytes, below }
    }
}

impl Device for Partition {
    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn submit_late(&mut self, sent: Instant, now: Instant, request: Request) -> Instant {
        assert!(request.end_bytes() <= self.size_bytes, "{request:?} is beyond the partition");
        let offset_bytes = match request.operation {
            Operation::Flush => 0,
            _ => request.offset_bytes + self.offset_bytes,
        };
        self.below.submit_late(sent, now, Request { offset_bytes, ..request })
    }

    fn poll_at(&self) -> Option<Instant> {
        self.below.poll_at()
    }

    fn poll(&mut self, now: Instant) -> Option<Completion> {
        self.below.poll(now)
    }

    fn power_cut(&mut self, now: Instant) -> PowerCut {
        let mut cut = self.below.power_cut(now);
        for write in &mut cut.writes {
            write.offset_bytes -= self.offset_bytes;
        }
        cut
    }

    fn counters(&self) -> Counters {
        self.below.counters()
    }

    fn age(&mut self, ageing: &Ageing) {
        self.below.age(ageing);
    }

    fn secure_erase(&mut self) {
        self.below.secure_erase();
    }
}

impl fmt::Debug for Partition {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Partition")
            .field("offset_bytes", &self.offset_bytes)
            .field("size_bytes", &self.size_bytes)
            .finish_non_exhaustive()
    }
}
