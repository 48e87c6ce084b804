//! What will happen next, in order of time, then of scheduling.
//!
//! An event is one number, because the queue is most of what a simple request costs: comparing and moving 16 bytes is twice as fast as
//! a tuple with an enum.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::commands::Slot;
use crate::time::Instant;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// The firmware has decoded the command.
    Decoded(Slot),
    /// A page is in its die's register.
    ArrayRead(usize),
    /// A page has left its die.
    ReadOut(usize),
    JobDone(usize),
    /// A write's data is in the buffer.
    Buffered(Slot),
    /// The last byte of a read is with the host, a write is durable, or a FLUSH has written the map.
    Done(Slot),
    PartialDue,
    IdleDue,
}

const INDEX_BITS: u32 = 24;
const KIND_BITS: u32 = 4;

impl Event {
    fn pack(self) -> u64 {
        let (kind, index) = match self {
            Event::Decoded(slot) => (0, slot),
            Event::ArrayRead(die) => (1, die),
            Event::ReadOut(die) => (2, die),
            Event::JobDone(die) => (3, die),
            Event::Buffered(slot) => (4, slot),
            Event::Done(slot) => (5, slot),
            Event::PartialDue => (6, 0),
            Event::IdleDue => (7, 0),
        };
        assert!(index < 1 << INDEX_BITS, "more than {} requests in a device", 1 << INDEX_BITS);
        kind << INDEX_BITS | index as u64
    }

    fn unpack(packed: u64) -> Event {
        let index = (packed & ((1 << INDEX_BITS) - 1)) as usize;
        match packed >> INDEX_BITS & ((1 << KIND_BITS) - 1) {
            0 => Event::Decoded(index),
            1 => Event::ArrayRead(index),
            2 => Event::ReadOut(index),
            3 => Event::JobDone(index),
            4 => Event::Buffered(index),
            5 => Event::Done(index),
            6 => Event::PartialDue,
            _ => Event::IdleDue,
        }
    }
}

/// Events that mostly happen in the order in which they are scheduled: those that cross one link, or take a constant time.
const LANE_COUNT: usize = 3;

#[derive(Debug, Default)]
pub(super) struct Events {
    /// Time, then number (36 bits, 68 thousand million events), then what happens.
    heap: BinaryHeap<Reverse<u128>>,
    /// In order; an event that would break the order goes to the heap. A lane costs a tenth of what a heap does.
    lanes: [VecDeque<u128>; LANE_COUNT],
    next_number: u64,
}

fn time_of(packed: u128) -> Instant {
    Instant((packed >> 64) as u64)
}

impl Events {
    pub(super) fn schedule(&mut self, at: Instant, event: Event) {
        let low = self.next_number << (INDEX_BITS + KIND_BITS) | event.pack();
        self.next_number += 1;
        let packed = u128::from(at.0) << 64 | u128::from(low);
        let lane = match event {
            Event::Decoded(_) => 0,
            Event::ArrayRead(_) => 1,
            Event::Buffered(_) | Event::Done(_) => 2,
            Event::JobDone(_) | Event::ReadOut(_) | Event::PartialDue | Event::IdleDue => LANE_COUNT,
        };
        match self.lanes.get_mut(lane) {
            Some(lane) if lane.back().is_none_or(|&last| last < packed) => lane.push_back(packed),
            _ => self.heap.push(Reverse(packed)),
        }
    }

    /// The next event, and the lane that it is in; past the lanes comes the heap.
    fn first(&self) -> (u128, usize) {
        let mut first = (self.heap.peek().map_or(u128::MAX, |Reverse(packed)| *packed), LANE_COUNT);
        for (index, lane) in self.lanes.iter().enumerate() {
            let packed = lane.front().copied().unwrap_or(u128::MAX);
            if packed < first.0 {
                first = (packed, index);
            }
        }
        first
    }

    pub(super) fn next_at(&self) -> Option<Instant> {
        let (packed, _) = self.first();
        (packed < u128::MAX).then(|| time_of(packed))
    }

    /// The next event, if it is due.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<(Instant, Event)> {
        let (packed, lane) = self.first();
        if packed == u128::MAX || time_of(packed) > now {
            return None;
        }
        match self.lanes.get_mut(lane) {
            Some(lane) => lane.pop_front().map(drop),
            None => self.heap.pop().map(drop),
        };
        Some((time_of(packed), Event::unpack(packed as u64)))
    }

    pub(super) fn clear(&mut self) {
        self.heap.clear();
        self.lanes.iter_mut().for_each(VecDeque::clear);
        // Ties are only between events in the queue.
        self.next_number = 0;
    }
}
